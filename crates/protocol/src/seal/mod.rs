//! Sealed messages between two parties that share keys: encrypted first, then the exact bytes are
//! signed; received the other way round, so that nothing unverified is ever decrypted.
//!
//! Two suites. `jose`: a compact JWE (RFC 7516) of `dir` and `A256GCM` under a Standard Webhooks
//! 1.0.0 signature (HMAC-SHA256). `gm`: the same shapes with SM4-GCM (RFC 8998) and HMAC-SM3. Both
//! keep their id, timestamp and signature in the three `webhook-` headers. Keys rotate: a message
//! is signed with every key that still counts and sealed with the first, and is accepted under any.
//!
//! No I/O: the caller brings the clock and the nonce. Source: `reference/conventions.md`, outgoing
//! webhooks; payment-flow.md, S09.

mod compact;
mod key;
mod signature;
mod suite;
#[cfg(test)]
mod tests;

pub use key::{KeyError, SealKey};
pub use signature::{MAX_SIGNATURES, MAX_SKEW_SECONDS};
pub use suite::{GM, JOSE, Suite, suite};

use thiserror::Error;

/// The header of a message's id: one a message, the same when it is sent again.
pub const ID_HEADER: &str = "webhook-id";
/// The header of the moment of sending, in whole seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header of the signatures, separated by blanks.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// Bytes of a nonce. A key seals fewer than 2³² messages, or random nonces may meet.
pub const NONCE_BYTES: usize = 12;

/// What is to be sealed.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Its id; no blank and no full stop.
    pub id: &'a str,
    /// When it is sent, in seconds since 1970.
    pub timestamp: i64,
    /// Never used before with this key: random.
    pub nonce: [u8; NONCE_BYTES],
    /// What it says.
    pub plain: &'a [u8],
}

/// What goes over the wire: the body's exact bytes and the three headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// [`ID_HEADER`].
    pub id: String,
    /// [`TIMESTAMP_HEADER`].
    pub timestamp: String,
    /// [`SIGNATURE_HEADER`].
    pub signature: String,
    /// The body.
    pub body: String,
}

/// What came over the wire. Nothing of it is believed yet.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// [`ID_HEADER`].
    pub id: &'a str,
    /// [`TIMESTAMP_HEADER`].
    pub timestamp: &'a str,
    /// [`SIGNATURE_HEADER`].
    pub signature: &'a str,
    /// The body's exact bytes.
    pub body: &'a [u8],
}

/// A message that was proved and decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// What it says.
    pub plain: Vec<u8>,
    /// The id of the key it was sealed with: an answer under it can be read by the sender.
    pub key: String,
}

/// Why a message was not sealed or not opened. The first four come before any decryption.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// There is no key.
    #[error("there is no key")]
    NoKey,
    /// A header is missing or cannot be one.
    #[error("the header {0} is missing or malformed")]
    Header(&'static str),
    /// The message is too old, or from the future.
    #[error("its timestamp is {apart} s from now; {MAX_SKEW_SECONDS} s are allowed")]
    Stale {
        /// How far away.
        apart: i64,
    },
    /// No signature is one of ours over these very bytes.
    #[error("no signature fits the message under any known key")]
    Signature,
    /// The body is no compact message of this suite.
    #[error("the body is no sealed message: {0}")]
    Shape(&'static str),
    /// The body cannot be decrypted under the key it names.
    #[error("the body cannot be decrypted")]
    Decryption,
    /// A key does not fit the suite.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl SealError {
    /// Whether it was refused before anything was decrypted.
    pub fn is_before_decryption(&self) -> bool {
        !matches!(self, SealError::Decryption)
    }
}
