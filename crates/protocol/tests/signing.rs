//! What a receiver must not believe: each line of `shared/spec/reconcile.md`, "Signing".

use chrono::{DateTime, TimeDelta, Utc};
use counterfoil_protocol::signing::{
    Header, Keyring, RequestParts, ResponseParts, SignatureError, SigningKey, Terms, VerifyingKey,
    content_digest, sign_request, sign_response, verify_request, verify_response,
};

const URI: &str = "http://centre.test/oapi/form-sync/tasks/1/result?x=1";

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_788_000_000 + seconds, 0).unwrap()
}

/// Deterministic keys: seeds of one repeated byte.
fn key(seed: u8) -> SigningKey {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode([seed; 32]);
    SigningKey::read("ed25519", &text).unwrap()
}

fn public(key: &SigningKey) -> VerifyingKey {
    VerifyingKey::read("ed25519", &key.public().unwrap()).unwrap()
}

fn ring(app: &str, keys: &[SigningKey]) -> Keyring {
    let mut ring = Keyring::new("centre", None);
    for key in keys {
        ring.trust(app, public(key)).unwrap();
    }
    ring
}

/// A request with its headers, signed or not.
#[derive(Clone)]
struct Sent {
    method: &'static str,
    uri: String,
    headers: Vec<Header>,
    body: Vec<u8>,
}

impl Sent {
    fn signed(body: &[u8], key: &SigningKey) -> Sent {
        let mut sent = Sent {
            method: "POST",
            uri: URI.into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.to_vec(),
        };
        let added = sign_request(sent.parts(), "hall", key, "n-1", at(0), Terms::default());
        sent.headers.extend(added.unwrap());
        sent
    }

    fn parts(&self) -> RequestParts<'_> {
        RequestParts {
            method: self.method,
            target_uri: &self.uri,
            headers: &self.headers,
            body: &self.body,
        }
    }

    fn value(&mut self, name: &str) -> &mut String {
        &mut self.headers.iter_mut().find(|(known, _)| known == name).unwrap().1
    }

    fn verdict(&self, seconds: i64) -> Result<(), SignatureError> {
        let ring = ring("hall", &[key(1)]);
        verify_request(self.parts(), &ring, at(seconds), Terms::default()).map(|_| ())
    }

    /// The signature's input rewritten and signed again, as a careless or hostile signer would.
    fn rewritten(&self, change: impl Fn(&str) -> String) -> Sent {
        let mut sent = self.clone();
        let input = change(sent.value("signature-input"));
        *sent.value("signature-input") = input.clone();
        let list = input.strip_prefix("sig1=").unwrap();
        let names = list[1..list.find(')').unwrap()].split(' ').filter(|name| !name.is_empty());
        let mut base = String::new();
        for name in names {
            let value = match name.trim_matches('"') {
                "@method" => sent.method.to_owned(),
                "@target-uri" => sent.uri.clone(),
                header => {
                    let header = header.to_owned();
                    sent.headers.iter().find(|(known, _)| *known == header).unwrap().1.clone()
                }
            };
            base.push_str(&format!("{name}: {value}\n"));
        }
        base.push_str(&format!("\"@signature-params\": {list}"));
        use ed25519_dalek::Signer as _;
        let raw = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).sign(base.as_bytes()).to_bytes();
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(raw);
        *sent.value("signature") = format!("sig1=:{text}:");
        sent
    }
}

#[test]
fn a_signed_request_names_its_app_and_its_nonce() {
    for body in ["{\"a\":1}", ""] {
        let sent = Sent::signed(body.as_bytes(), &key(1));
        let ring = ring("hall", &[key(1)]);
        let verified = verify_request(sent.parts(), &ring, at(5), Terms::default()).unwrap();
        assert_eq!((verified.app.as_str(), verified.nonce.as_str()), ("hall", "n-1"));
        assert!(verified.keep_nonce_until > at(300 + 300));
    }
}

#[test]
fn whatever_was_signed_cannot_be_changed() {
    let sent = Sent::signed(b"{\"a\":1}", &key(1));
    let changed = |change: &dyn Fn(&mut Sent)| {
        let mut other = sent.clone();
        change(&mut other);
        other.verdict(0)
    };
    assert_eq!(changed(&|_| {}), Ok(()));
    assert_eq!(changed(&|s| s.method = "PUT"), Err(SignatureError::Wrong));
    assert_eq!(changed(&|s| s.uri.push('2')), Err(SignatureError::Wrong));
    assert_eq!(changed(&|s| s.body[1] = b'x'), Err(SignatureError::Digest));
    assert_eq!(
        changed(&|s| *s.value("content-type") = "text/plain".into()),
        Err(SignatureError::Wrong)
    );
    let other_body = |s: &mut Sent| {
        s.body = b"{}".to_vec();
        *s.value("content-digest") = content_digest(b"{}");
    };
    assert_eq!(changed(&other_body), Err(SignatureError::Wrong));
    let swap = |from: &'static str, to: &'static str| {
        changed(&move |s: &mut Sent| {
            let input = s.value("signature-input");
            *input = input.replace(from, to);
        })
    };
    assert_eq!(swap("n-1", "n-2"), Err(SignatureError::Wrong));
    assert_eq!(swap("ed25519", "hmac-sha256"), Err(SignatureError::Wrong));
    assert_eq!(swap("\"hall\"", "\"other\""), Err(SignatureError::UnknownApp("other".into())));
    assert_eq!(changed(&|s| s.headers.retain(|(n, _)| n != "signature")), missing());
    assert_eq!(changed(&|s| s.headers.retain(|(n, _)| n != "signature-input")), missing());
}

fn missing() -> Result<(), SignatureError> {
    Err(SignatureError::Missing)
}

/// The public crates accept each of these unless told otherwise (issue 4; `stack.md`).
#[test]
fn a_right_signature_over_too_little_is_refused() {
    let sent = Sent::signed(b"{\"a\":1}", &key(1));
    assert_eq!(sent.rewritten(str::to_owned).verdict(0), Ok(()));
    for name in ["@method", "@target-uri", "content-digest", "content-type"] {
        let quoted = format!("\"{name}\"");
        let without = sent.rewritten(|input| input.replacen(&quoted, "", 1).replace("  ", " "));
        assert_eq!(without.verdict(0), Err(SignatureError::Coverage(quoted)), "{name}");
    }
    let nothing = sent.rewritten(|input| {
        let end = input.find(')').unwrap();
        format!("sig1=({}", &input[end..])
    });
    assert!(matches!(nothing.verdict(0), Err(SignatureError::Coverage(_))));
    for name in ["created", "expires", "nonce", "keyid", "alg"] {
        let without = sent.rewritten(|input| {
            let start = input.find(&format!(";{name}=")).unwrap();
            let end = input[start + 1..].find(';').map_or(input.len(), |at| start + 1 + at);
            format!("{}{}", &input[..start], &input[end..])
        });
        assert_eq!(without.verdict(0), Err(SignatureError::Parameter(name)), "{name}");
    }
    let long = sent.rewritten(|input| {
        input.replace(&format!("expires={}", at(300).timestamp()), "expires=9999999999")
    });
    assert_eq!(long.verdict(0), Err(SignatureError::Parameter("expires")));
    let backwards = sent.rewritten(|input| {
        let expires = format!("expires={}", at(300).timestamp());
        input.replace(&expires, &format!("expires={}", at(-1).timestamp()))
    });
    assert_eq!(backwards.verdict(0), Err(SignatureError::Parameter("expires")));
}

#[test]
fn clocks_may_be_five_minutes_apart_and_no_more() {
    let sent = Sent::signed(b"{}", &key(1));
    for (seconds, is_right) in
        [(-300, true), (-301, false), (0, true), (300, true), (600, true), (601, false)]
    {
        assert_eq!(sent.verdict(seconds).is_ok(), is_right, "{seconds}");
    }
    let narrow = Terms { skew: TimeDelta::seconds(10), ..Terms::default() };
    let ring = ring("hall", &[key(1)]);
    let verdict = verify_request(sent.parts(), &ring, at(-11), narrow);
    assert!(matches!(verdict, Err(SignatureError::NotNow { .. })));
}

#[test]
fn two_keys_of_one_app_are_valid_while_they_rotate_and_a_removed_one_is_not() {
    let (old, new) = (key(1), key(2));
    let rotating = ring("hall", &[new.clone(), old.clone()]);
    let rotated = ring("hall", std::slice::from_ref(&new));
    for (key, in_rotation, after) in [(&old, true, false), (&new, true, true)] {
        let sent = Sent::signed(b"{}", key);
        let verdict = |ring: &Keyring| verify_request(sent.parts(), ring, at(0), Terms::default());
        assert_eq!(verdict(&rotating).is_ok(), in_rotation);
        assert_eq!(verdict(&rotated).is_ok(), after);
    }
}

#[test]
fn a_shared_secret_signs_for_its_pair_only_under_its_own_algorithm() {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode([9_u8; 32]);
    let secret = SigningKey::read("hmac-sha256", &text).unwrap();
    let sent = Sent::signed(b"{}", &secret);
    let mut pair = Keyring::new("centre", None);
    pair.trust("hall", VerifyingKey::read("hmac-sha256", &text).unwrap()).unwrap();
    assert!(verify_request(sent.parts(), &pair, at(0), Terms::default()).is_ok());
    // The known confusion: a public key's bytes taken for a shared secret.
    let confused = ring("hall", &[key(1)]);
    let verdict = verify_request(sent.parts(), &confused, at(0), Terms::default());
    assert_eq!(verdict, Err(SignatureError::Wrong));
}

fn answer(request: RequestParts<'_>, status: u16, body: &[u8]) -> Vec<Header> {
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let response = ResponseParts { status, headers: &headers, body };
    let terms = Terms::default();
    let added = sign_response(response, request, "hall", &key(1), at(1), terms).unwrap();
    headers.into_iter().chain(added).collect()
}

#[test]
fn a_response_answers_its_own_request_and_no_other() {
    let asked = Sent::signed(b"{\"a\":1}", &key(3));
    let mut again = Sent::signed(b"{\"a\":1}", &key(3));
    let added =
        sign_request(again.parts(), "centre", &key(3), "n-2", at(0), Terms::default()).unwrap();
    again.headers.truncate(1);
    again.headers.extend(added);
    let (status, body) = (200, b"{\"presence\":\"ABSENT\"}".as_slice());
    let headers = answer(asked.parts(), status, body);
    let ring = ring("hall", &[key(1)]);
    let verdict = |request: &Sent, status, headers: &[Header], body, peer, seconds| {
        let response = ResponseParts { status, headers, body };
        verify_response(response, request.parts(), peer, &ring, at(seconds), Terms::default())
    };
    assert_eq!(verdict(&asked, 200, &headers, body, "hall", 2), Ok(()));
    // Replayed as the answer to the same question asked again: another nonce, another signature.
    assert_eq!(verdict(&again, 200, &headers, body, "hall", 2), Err(SignatureError::Wrong));
    assert_eq!(verdict(&asked, 404, &headers, body, "hall", 2), Err(SignatureError::Wrong));
    assert_eq!(verdict(&asked, 200, &headers, b"{}", "hall", 2), Err(SignatureError::Digest));
    let other = verdict(&asked, 200, &headers, body, "centre", 2);
    assert_eq!(other, Err(SignatureError::UnknownApp("hall".into())));
    let late = verdict(&asked, 200, &headers, body, "hall", 1000);
    assert!(matches!(late, Err(SignatureError::NotNow { .. })));
    assert_eq!(verdict(&asked, 200, &headers[..1], body, "hall", 2), missing());
    // A signature over the response alone could be put under any question.
    let loose: Vec<Header> = headers
        .iter()
        .map(|(name, value)| (name.clone(), value.replace(" \"signature\";req", "")))
        .collect();
    let covered = SignatureError::Coverage("\"signature\";req".into());
    assert_eq!(verdict(&asked, 200, &loose, body, "hall", 2), Err(covered));
}
