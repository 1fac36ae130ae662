//! Canonical JSON (RFC 8785) and the content hash of an answer, `fc.canon.v1`.
//!
//! Our own: the public canonicaliser rounds numbers without a word, so that two answers could
//! share a hash, and a parsed value has lost keys given twice and lone surrogates by then. Here
//! numbers keep their own text until they are judged. One implementation for delivery, manifest
//! and projection. Source: `shared/spec/reconcile.md`, "The content hash".

mod answer;
mod number;
mod read;
mod write;

use thiserror::Error;

pub use answer::{AnswerContent, CANON_PREFIX, ContentHash, read_answer};
pub use number::canonical_number;
pub use read::{MAX_DEPTH, read};
pub use write::canonical;

/// A JSON value as it was written: numbers are text, members stand in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was spelt.
    Number(String),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object; its keys differ.
    Object(Vec<(String, Json)>),
}

/// Why a JSON text cannot be hashed, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {reason}", if path.is_empty() { "(the whole)" } else { path.as_str() })]
pub struct Unhashable {
    /// A JSON pointer (RFC 6901); empty = the whole.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

impl Unhashable {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        "answer-unhashable"
    }

    /// The same, seen from one step above.
    fn under(self, name: &str) -> Unhashable {
        Unhashable { path: format!("{}{}", step("", name), self.path), ..self }
    }
}

/// Why a JSON text cannot be hashed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Malformed(&'static str),
    /// Arrays and objects are nested too deep.
    #[error("it is nested deeper than {0}")]
    TooDeep(usize),
    /// A key stands twice in one object, perhaps spelt differently.
    #[error("the key stands twice")]
    DuplicateKey,
    /// A text holds U+0000.
    #[error("it holds U+0000")]
    Nul,
    /// A text holds half of a surrogate pair.
    #[error("it holds half of a surrogate pair")]
    LoneSurrogate,
    /// An integer beyond ±(2^53 − 1), however spelt.
    #[error("it is an integer beyond ±9007199254740991; write it as a text")]
    TooLarge,
    /// A number that no double holds exactly as it would be written.
    #[error("it would be written as {0}, which is another number; write it as a text")]
    Rounded(String),
    /// A number beyond every double.
    #[error("it is beyond every double; write it as a text")]
    Overflow,
    /// A field of an answer is missing, unknown or of a wrong type.
    #[error("{0}")]
    Field(&'static str),
}

impl Reason {
    fn at(self, path: &str) -> Unhashable {
        Unhashable { path: path.to_owned(), reason: self }
    }
}

/// `path` one step deeper.
fn step(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}
