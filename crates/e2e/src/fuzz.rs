//! Fuzzing of what reads strangers' bytes: canonical JSON, and signatures of requests.
//!
//! A seeded loop of mutations, no instrumentation: it runs on the stable compiler and gives the
//! same inputs for the same seed. What it ever finds becomes a file of the corpus, which CI
//! replays.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use counterfoil_protocol::canon::{self, MAX_DEPTH, read_answer};
use counterfoil_protocol::signing::{
    Header, Keyring, RequestParts, SigningKey, Terms, VerifyingKey, sign_request, verify_request,
};

use crate::Random;

/// The longest input.
const MAX_BYTES: usize = 64 * 1024;
/// Mutations of one input at most.
const MAX_CHANGES: u64 = 6;

/// A target: its name, which is its corpus's folder, and what must hold of every input.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    check: fn(&[u8]) -> Result<(), String>,
    words: &'static [&'static str],
}

/// All targets.
pub const TARGETS: [Target; 2] = [
    Target {
        name: "canon",
        check: canonical_json,
        words: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\u0000",
            "\\ud800",
            "\\udc00",
            "\\/",
            "null",
            "true",
            "-0",
            "1e400",
            "1e-400",
            "9007199254740993",
            "0.1",
            "1E+2",
            "\u{feff}",
            "é",
            "e\u{301}",
            "\"values\":",
            "\"isDeleted\":true",
            "[[[[[[[[[[[[[[[[",
            "]]]]]]]]]]]]]]]]",
        ],
    },
    Target {
        name: "signature",
        check: request_signature,
        words: &[
            "sig1=",
            "sig2=",
            "(\"@method\")",
            ";created=",
            ";expires=",
            ";nonce=\"\"",
            ";keyid=\"hall\"",
            ";alg=\"hmac-sha256\"",
            ";alg=\"ed25519\"",
            ";tag=\"x\"",
            ":",
            "\"",
            "\\",
            ",",
            ";req",
            ";sr",
            ";bs",
            ";key=\"a\"",
            "sha-256=:",
            "sha-512=:",
            "=:",
            "?1",
            "\t",
            "\u{7f}",
            "é",
            "\"@query-param\"",
            "\"content-digest\"",
            "1788000000",
            "-1",
        ],
    },
];

/// Whatever is accepted has one canonical text, which is accepted again as the same.
fn canonical_json(bytes: &[u8]) -> Result<(), String> {
    if let Ok(json) = canon::read(bytes, MAX_DEPTH) {
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err() {
            return Err("another parser does not take it for JSON".into());
        }
        if let Ok(text) = canon::canonical(&json) {
            let again = canon::read(text.as_bytes(), MAX_DEPTH)
                .map_err(|fault| format!("the canonical text is refused: {fault}"))?;
            let twice = canon::canonical(&again).map_err(|fault| fault.to_string())?;
            if twice != text {
                return Err(format!("canonical twice is another text: {twice}"));
            }
        }
    }
    let Ok(answer) = read_answer(bytes) else { return Ok(()) };
    let text = answer.canonical().map_err(|fault| format!("it was read: {fault}"))?;
    let again = read_answer(text.as_bytes()).map_err(|fault| format!("canonical: {fault}"))?;
    let (one, other) = (answer.hash(), again.hash());
    if one != other || one.is_err() {
        return Err(format!("{one:?} and {other:?} are hashes of one answer"));
    }
    Ok(())
}

const URI: &str = "http://centre.test/oapi/form-sync/tasks/1/result";
const BODY: &[u8] = b"{\"taskId\":\"1\"}";

fn signed_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_788_000_000, 0).unwrap_or_default()
}

fn key(seed: u8) -> SigningKey {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode([seed; 32]);
    SigningKey::read("ed25519", &text).expect("a key")
}

/// What a well-behaved signer sends: Signature-Input, Signature, Content-Digest, and the body.
pub fn signed_request() -> Vec<u8> {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let parts = RequestParts { method: "POST", target_uri: URI, headers: &headers, body: BODY };
    let signed = sign_request(parts, "hall", &key(1), "n-1", signed_at(), Terms::default());
    let signed: Vec<Header> = signed.expect("a signature");
    let value = |name: &str| {
        let found = signed.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let lines = ["signature-input", "signature", "content-digest"].map(value);
    [lines.join("\n").as_bytes(), b"\n", BODY].concat()
}

/// Whatever is let in was signed just so: app, nonce and body are the signer's.
fn request_signature(bytes: &[u8]) -> Result<(), String> {
    let mut pieces = bytes.splitn(4, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(pieces.next().unwrap_or_default()).into_owned();
    let names = ["signature-input", "signature", "content-digest"];
    let mut headers: Vec<Header> = names.iter().map(|name| ((*name).to_owned(), text())).collect();
    headers.push(("content-type".into(), "application/json".into()));
    let body = pieces.next().unwrap_or_default();
    let mut ring = Keyring::new("centre", None);
    let public = key(1).public().expect("a public half");
    let public = VerifyingKey::read("ed25519", &public).expect("a key");
    ring.trust("hall", public).map_err(|error| error.to_string())?;
    let parts = RequestParts { method: "POST", target_uri: URI, headers: &headers, body };
    match verify_request(parts, &ring, signed_at(), Terms::default()) {
        Err(_) => Ok(()),
        Ok(verified) if verified.app == "hall" && verified.nonce == "n-1" && body == BODY => Ok(()),
        Ok(verified) => Err(format!("it is let in as {verified:?} with {} bytes", body.len())),
    }
}

/// An input that breaks its target.
#[derive(Debug)]
pub struct Broken {
    /// The target.
    pub target: &'static str,
    /// The input.
    pub input: Vec<u8>,
    /// Why.
    pub why: String,
}

/// Where the corpus is.
pub fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The inputs of a target: its files in the order of their names, and what a signer really sends.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = corpus_folder().join(target.name);
    let entries = std::fs::read_dir(&folder).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut inputs: Vec<Vec<u8>> =
        paths.iter().map(|path| std::fs::read(path).expect("a file")).collect();
    if target.name == "signature" {
        inputs.push(signed_request());
    }
    inputs
}

/// Checks one input; a panic is a breach like any other.
pub fn check(target: &Target, input: &[u8]) -> Option<Broken> {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let why = match outcome {
        Ok(Ok(())) => return None,
        Ok(Err(why)) => why,
        Err(_) => "it panics".to_owned(),
    };
    Some(Broken { target: target.name, input: input.to_vec(), why })
}

/// Checks the corpus and then so many mutations of it; ends at the first breach.
pub fn fuzz(target: &Target, rounds: u64, seed: u64) -> Option<Broken> {
    let corpus = corpus(target);
    if let Some(broken) = corpus.iter().find_map(|input| check(target, input)) {
        return Some(broken);
    }
    let mut random = Random::new(seed);
    (0..rounds).find_map(|_| check(target, &mutated(&corpus, target.words, &mut random)))
}

fn place(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64 + 1)).unwrap_or(0)
}

fn mutated(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| corpus[place(random, corpus.len() - 1)].clone();
    let mut input = pick(random);
    for _ in 0..=random.below(MAX_CHANGES) {
        let at = place(random, input.len());
        match random.below(7) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => {
                input.remove(at);
            }
            2 => input.insert(at, u8::try_from(random.below(256)).unwrap_or(0)),
            3 => {
                let word = words[place(random, words.len() - 1)].as_bytes();
                input.splice(at..at, word.iter().copied());
            }
            4 => {
                let end = (at + place(random, 32)).min(input.len());
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            5 => {
                let end = (at + place(random, 32)).min(input.len());
                input.drain(at..end);
            }
            _ => {
                let other = pick(random);
                let from = place(random, other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(MAX_BYTES);
    input
}
