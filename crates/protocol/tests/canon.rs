//! `fc.canon.v1`: the published vectors, what is refused and where, and what holds for any answer.

use counterfoil_protocol::canon::{
    AnswerContent, Json, MAX_DEPTH, Reason, Unhashable, canonical, read, read_answer,
};
use proptest::prelude::*;

fn content(values: &str) -> Result<AnswerContent, Unhashable> {
    let bare = AnswerContent {
        answer_uuid: "0123456789abcdef0123456789abcdef".into(),
        form_uuid: "f".into(),
        form_version: 1,
        is_deleted: false,
        sch_id: "s".into(),
        values: Json::Null,
    };
    let content = bare.with_values(Some(values))?;
    content.canonical()?;
    Ok(content)
}

/// `docs/canon-vectors.json`; its hashes were computed by another program (Python's hashlib).
#[test]
fn the_published_vectors_have_their_hashes() {
    let text = include_str!("../../../docs/canon-vectors.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    assert!(vectors.len() >= 10);
    for vector in vectors {
        let part = |name: &str| vector[name].as_str().unwrap().to_owned();
        let answer = read_answer(part("answer").as_bytes()).unwrap();
        assert_eq!(answer.canonical().unwrap(), part("canonical"), "{}", part("name"));
        assert_eq!(answer.hash().unwrap().0, part("hash"), "{}", part("name"));
    }
}

#[test]
fn what_could_share_a_hash_is_refused_with_its_path() {
    let refused = |values: &str| {
        let fault = content(values).unwrap_err();
        (fault.path, fault.reason)
    };
    let at = |path: &str, reason: Reason| (path.to_owned(), reason);
    for integer in ["9007199254740992", "-9007199254740993", "9007199254740993.0", "1e21"] {
        let values = format!("{{\"a\":[1,{integer}]}}");
        assert_eq!(refused(&values), at("/values/a/1", Reason::TooLarge), "{integer}");
    }
    assert_eq!(refused("{\"a\":1e999}"), at("/values/a", Reason::Overflow));
    let rounded = Reason::Rounded("0.1".into());
    assert_eq!(refused("[0.10000000000000000001]"), at("/values/0", rounded));
    assert_eq!(refused("{\"a\":{\"b\":1,\"\\u0062\":2}}"), at("/values/a/b", Reason::DuplicateKey));
    assert_eq!(refused("{\"x/y\":\"\\u0000\"}"), at("/values/x~1y", Reason::Nul));
    for lone in ["\\ud800", "\\udc00", "\\ud800\\u0041", "\\ud800x", "\\udbff\\ud800"] {
        assert_eq!(refused(&format!("[\"{lone}\"]")), at("/values/0", Reason::LoneSurrogate));
    }
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(content(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(refused(&deep(MAX_DEPTH + 1)).1, Reason::TooDeep(MAX_DEPTH));
    for broken in ["{", "[1,]", "{\"a\" 1}", "01", "1.", "+1", "NaN", "'a'", "\"\n\"", "1 2", "-"] {
        assert!(matches!(refused(broken).1, Reason::Malformed(_)), "{broken}");
    }
}

#[test]
fn an_answer_names_what_it_lacks() {
    let whole = r#"{"answerUuid":"a","formUuid":"f","formVersion":1,"isDeleted":false,"schId":"s",
                    "values":{}}"#;
    assert!(read_answer(whole.as_bytes()).is_ok());
    let fault = |from: &str, to: &str| read_answer(whole.replace(from, to).as_bytes());
    let path = |from: &str, to: &str| fault(from, to).unwrap_err().path;
    assert_eq!(path("\"answerUuid\":\"a\",", ""), "/answerUuid");
    assert_eq!(path("\"formVersion\":1", "\"formVersion\":1.5"), "/formVersion");
    assert_eq!(path("\"formVersion\":1", "\"formVersion\":\"1\""), "/formVersion");
    assert_eq!(path("false", "0"), "/isDeleted");
    assert_eq!(path("\"schId\":\"s\"", "\"schId\":7"), "/schId");
    assert_eq!(path("\"values\":{}", "\"values\":{},\"extra\":1"), "/extra");
    assert_eq!(path("{}", "{}, \"values\":1"), "/values");
    assert_eq!(read_answer(b"[]").unwrap_err().path, "");
    assert!(read_answer(&[0xff, 0xfe]).is_err());
    // Revision and sequence are no part of the hash.
    let more = fault("{}", "{}, \"revision\":7, \"seqNo\":1").unwrap();
    assert_eq!(more, read_answer(whole.as_bytes()).unwrap());
}

#[test]
fn a_tombstone_has_null_values_whatever_is_stored() {
    let deleted = |values: &str| {
        let bare = content("{}").unwrap();
        AnswerContent { is_deleted: true, ..bare }.with_values(Some(values)).unwrap().hash()
    };
    assert_eq!(deleted("{\"a\":1}"), deleted("null"));
    assert_ne!(deleted("null"), content("null").unwrap().hash());
}

/// Whether two values are the same, where an integer and a float may be.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => a.as_f64() == b.as_f64(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Into::into),
        any::<i32>().prop_map(|n| serde_json::from_str(&format!("{n}.125")).unwrap()),
        "[^\\x00]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[^\\x00]{0,4}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The same value, its members in another order and with blanks in between.
fn respelt(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(respelt).collect();
            format!("[ {} ]", items.join(" ,\n"))
        }
        serde_json::Value::Object(members) => {
            let quoted = |key: &String| serde_json::Value::from(key.as_str()).to_string();
            let pair = |(key, value): (&String, &serde_json::Value)| {
                format!("{} : {}", quoted(key), respelt(value))
            };
            let pairs: Vec<String> = members.iter().rev().map(pair).collect();
            format!("{{\t{} }}", pairs.join(" , "))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn the_canonical_text_is_the_same_value_and_its_own_canonical_text(value in any_json()) {
        let text = canonical(&read(value.to_string().as_bytes(), MAX_DEPTH).unwrap()).unwrap();
        prop_assert!(same(&serde_json::from_str(&text).unwrap(), &value), "{text}");
        let again = canonical(&read(text.as_bytes(), MAX_DEPTH).unwrap()).unwrap();
        prop_assert_eq!(again, text);
    }

    #[test]
    fn spelling_changes_no_hash_and_another_value_changes_it(a in any_json(), b in any_json()) {
        let hash = |text: &str| content(text).unwrap().hash().unwrap();
        let (text, other) = (a.to_string(), b.to_string());
        prop_assert_eq!(hash(&text), hash(&respelt(&a)));
        let canonical_of = |text: &str| canonical(&read(text.as_bytes(), MAX_DEPTH).unwrap());
        let is_same = canonical_of(&text) == canonical_of(&other);
        prop_assert_eq!(hash(&text) == hash(&other), is_same);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_answer(&bytes);
    }

    #[test]
    fn no_json_like_text_makes_the_reader_panic(text in "[\\[\\]{}:,\"\\\\u0d8e1. -]{0,80}") {
        if let Ok(Ok(text)) = read(text.as_bytes(), MAX_DEPTH).map(|value| canonical(&value)) {
            let again = read(text.as_bytes(), MAX_DEPTH).map(|value| canonical(&value));
            prop_assert_eq!(again, Ok(Ok(text)));
        }
    }
}
