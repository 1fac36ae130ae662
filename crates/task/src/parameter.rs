//! A handler's parameter: read strictly. What does not parse runs nothing.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::Kind;

/// Why a parameter was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// Not JSON, or not an object.
    #[error("the parameter is not a JSON object: {0}")]
    NotAnObject(String),
    /// A field nobody knows.
    #[error("the parameter has the unknown field {0}")]
    UnknownField(String),
    /// A field of the wrong type.
    #[error("the parameter's field {field} must be {expected}")]
    WrongType {
        /// The field.
        field: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A selector that holds nothing but blanks.
    #[error("the parameter's selector {0} is empty")]
    EmptySelector(String),
}

/// Named tasks: those with one of the codes or one of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Task codes, trimmed and without duplicates.
    pub codes: Vec<String>,
    /// Business keys, likewise.
    pub keys: Vec<String>,
}

/// What a round was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundParameter {
    pub(crate) selector: Option<Selector>,
    pub(crate) max_tasks: u32,
}

impl RoundParameter {
    /// An automatic scan with the kind's default number of tasks.
    pub fn scan(kind: &Kind) -> RoundParameter {
        RoundParameter { selector: None, max_tasks: kind.default_round }
    }

    /// Reads bare JSON, `{"data":{…}}` or `{"data":"…json text…"}`; blank is an automatic scan.
    pub fn parse(kind: &Kind, text: &str) -> Result<RoundParameter, ParameterError> {
        if text.trim().is_empty() {
            return Ok(RoundParameter::scan(kind));
        }
        let fields = unwrap(object(text)?)?;
        let mut codes = Vec::new();
        let mut keys = Vec::new();
        let mut named = None;
        let mut max_tasks = kind.default_round;
        for (field, value) in &fields {
            match field.as_str() {
                "taskCode" | "taskCodes" => {
                    merge(&mut codes, field, value)?;
                    named = selector_of(named, field, value);
                }
                "businessKey" | "businessKeys" => {
                    merge(&mut keys, field, value)?;
                    named = selector_of(named, field, value);
                }
                "maxTaskCount" => max_tasks = task_count(kind, field, value)?,
                _ => return Err(ParameterError::UnknownField(field.clone())),
            }
        }
        let empty = codes.is_empty() && keys.is_empty();
        if let (Some(field), true) = (&named, empty) {
            return Err(ParameterError::EmptySelector(field.clone()));
        }
        let selector = (!empty).then_some(Selector { codes, keys });
        Ok(RoundParameter { selector, max_tasks })
    }
}

/// A null selector counts as not given; anything else that ends up empty is refused.
fn selector_of(named: Option<String>, field: &str, value: &Value) -> Option<String> {
    named.or_else(|| (!value.is_null()).then(|| field.to_owned()))
}

fn object(text: &str) -> Result<Map<String, Value>, ParameterError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(ParameterError::NotAnObject(format!("it is {}", name_of(&other)))),
        Err(error) => Err(ParameterError::NotAnObject(error.to_string())),
    }
}

fn unwrap(fields: Map<String, Value>) -> Result<Map<String, Value>, ParameterError> {
    let Some(data) = fields.get("data") else {
        return Ok(fields);
    };
    if let Some(other) = fields.keys().find(|key| *key != "data") {
        return Err(ParameterError::UnknownField(other.clone()));
    }
    match data {
        Value::Object(inner) => Ok(inner.clone()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => object(text),
        Value::Null => Ok(Map::new()),
        _ => Err(ParameterError::WrongType {
            field: "data".into(),
            expected: "an object or JSON text",
        }),
    }
}

fn merge(into: &mut Vec<String>, field: &str, value: &Value) -> Result<(), ParameterError> {
    let plural = field.ends_with('s');
    let wrong = || ParameterError::WrongType {
        field: field.to_owned(),
        expected: if plural { "a list of texts" } else { "a text" },
    };
    let texts: Vec<&str> = match value {
        Value::Null => Vec::new(),
        Value::String(text) if !plural => vec![text],
        Value::Array(items) if plural => {
            items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    for text in texts.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
        if !into.iter().any(|known| known == text) {
            into.push(text.to_owned());
        }
    }
    Ok(())
}

fn task_count(kind: &Kind, field: &str, value: &Value) -> Result<u32, ParameterError> {
    let wrong =
        || ParameterError::WrongType { field: field.to_owned(), expected: "a whole number" };
    let count = match value {
        Value::Null => return Ok(kind.default_round),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(count), _) => count,
            (None, Some(_)) => i64::MAX,
            (None, None) => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    if count <= 0 {
        return Ok(kind.default_round);
    }
    Ok(u32::try_from(count).unwrap_or(u32::MAX).min(kind.max_round))
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        handler: "h",
        task_type: "T",
        prefix: "P",
        stage: "s",
        default_round: 50,
        max_round: 200,
    };

    fn parse(text: &str) -> Result<RoundParameter, ParameterError> {
        RoundParameter::parse(&KIND, text)
    }

    #[test]
    fn nothing_to_select_is_an_automatic_scan() {
        for text in ["", "  ", "{}", r#"{"data":{}}"#, r#"{"data":""}"#, r#"{"taskCode":null}"#] {
            assert_eq!(parse(text), Ok(RoundParameter::scan(&KIND)), "{text}");
        }
    }

    #[test]
    fn three_wrappings_say_the_same() {
        let bare = parse(r#"{"businessKey":"K","maxTaskCount":1}"#).unwrap();
        assert_eq!(parse(r#"{"data":{"businessKey":"K","maxTaskCount":1}}"#), Ok(bare.clone()));
        let text = r#"{"data":"{\"businessKey\":\"K\",\"maxTaskCount\":1}"}"#;
        assert_eq!(parse(text), Ok(bare));
    }

    #[test]
    fn singular_and_plural_merge_trimmed_and_without_duplicates() {
        let parameter =
            parse(r#"{"taskCode":" a ","taskCodes":["a","b"," "],"businessKeys":["k"]}"#).unwrap();
        let selector = Selector { codes: vec!["a".into(), "b".into()], keys: vec!["k".into()] };
        assert_eq!(parameter.selector, Some(selector));
    }

    #[test]
    fn the_task_count_has_a_default_and_a_cap() {
        for (text, count) in [("null", 50), ("0", 50), ("-3", 50), ("7", 7), ("1000", 200)] {
            let parameter = parse(&format!(r#"{{"maxTaskCount":{text}}}"#)).unwrap();
            assert_eq!(parameter.max_tasks, count, "{text}");
        }
        assert_eq!(parse(r#"{"maxTaskCount":18446744073709551615}"#).unwrap().max_tasks, 200);
    }

    // Seed 001, 10.3: the old system fell back to a scan of 50 when the parameter did not parse.
    #[test]
    fn what_does_not_parse_is_refused_and_names_the_field() {
        let refused = [
            (r#"{"businessKey":"#, "not a JSON object"),
            ("[]", "it is a list"),
            (r#"{"bussinessKey":"K"}"#, "unknown field bussinessKey"),
            (r#"{"data":{"x":1}}"#, "unknown field x"),
            (r#"{"data":{},"taskCode":"a"}"#, "unknown field taskCode"),
            (r#"{"data":7}"#, "field data must be"),
            (r#"{"data":"nonsense"}"#, "not a JSON object"),
            (r#"{"taskCode":7}"#, "field taskCode must be a text"),
            (r#"{"taskCodes":"a"}"#, "field taskCodes must be a list"),
            (r#"{"taskCodes":["a",1]}"#, "field taskCodes must be a list"),
            (r#"{"maxTaskCount":"5"}"#, "field maxTaskCount must be"),
            (r#"{"maxTaskCount":1.5}"#, "field maxTaskCount must be"),
            (r#"{"taskCode":"  "}"#, "selector taskCode is empty"),
            (r#"{"businessKeys":[]}"#, "selector businessKeys is empty"),
        ];
        for (text, why) in refused {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
