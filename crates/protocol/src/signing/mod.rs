//! HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530), both ways.
//!
//! Our own, because what a signature must cover is enforced here and not left to callers: every
//! request covers `@method`, `@target-uri`, `content-digest` (of an empty body too) and, with a
//! body, `content-type`, and carries `created`, `expires`, `nonce`, `keyid` (the app key) and
//! `alg`. Every response covers `@status`, `content-digest`, `content-type` and, of its request,
//! `@method`, `@target-uri` and the signature, so that it answers that very request and no other.
//!
//! No I/O: the clock, the nonce and the keys are passed in. Storing nonces is the receiver's part
//! ([`NonceStore`]), after the signature was proved. Source: `shared/spec/reconcile.md`, "Signing".

mod base;
mod digest;
mod field;
mod key;
mod request;
mod response;

use chrono::{DateTime, TimeDelta, Utc};
use thiserror::Error;

pub use digest::content_digest;
pub use key::{KeyError, Keyring, LEAST_SECRET, SigningKey, VerifyingKey};
pub use request::{Verified, sign_request, verify_request};
pub use response::{sign_response, verify_response};

/// A header: its name in lower case, and its value.
pub type Header = (String, String);

/// A request as it is signed.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// The whole URI, such as `https://centre.example/oapi/form-sync/tasks/1/grant?a=b`.
    pub target_uri: &'a str,
    /// The headers, names in lower case.
    pub headers: &'a [Header],
    /// The body; empty = none.
    pub body: &'a [u8],
}

/// A response as it is signed.
#[derive(Debug, Clone, Copy)]
pub struct ResponseParts<'a> {
    /// Such as 200.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: &'a [Header],
    /// The body.
    pub body: &'a [u8],
}

/// How long signatures last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// From `created` to `expires` at most, and of what we sign ourselves.
    pub lifetime: TimeDelta,
    /// How far two clocks may be apart.
    pub skew: TimeDelta,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { lifetime: TimeDelta::seconds(300), skew: TimeDelta::seconds(300) }
    }
}

/// Why a message is not believed. Over HTTP it is always 401 and nothing else; the code is for the
/// receiver's own log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// No signature, or more than one.
    #[error("the message has no signature, or more than one")]
    Missing,
    /// A field cannot be read.
    #[error("the signature cannot be read: {0}")]
    Malformed(&'static str),
    /// A component that must be covered is not, or is covered and not there.
    #[error("the signature does not cover {0}, or it is not there")]
    Coverage(String),
    /// A parameter is missing or wrong.
    #[error("the signature's parameter {0} is missing or wrong")]
    Parameter(&'static str),
    /// It is over, or not begun, by more than the allowed skew.
    #[error("the signature is not valid now: created {created}, now {now}")]
    NotNow {
        /// When it was made, in seconds.
        created: i64,
        /// The receiver's clock, in seconds.
        now: i64,
    },
    /// Nobody trusts that app here.
    #[error("the app {0} has no key here")]
    UnknownApp(String),
    /// No key of the app proves it, under the algorithm that the key's record binds.
    #[error("the signature is wrong")]
    Wrong,
    /// The body is not the one that was signed.
    #[error("the body is not the one that was signed")]
    Digest,
    /// The nonce was accepted before.
    #[error("the nonce was used before")]
    NonceReused,
}

impl SignatureError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            SignatureError::Missing => "signature-missing",
            SignatureError::Malformed(_) => "signature-malformed",
            SignatureError::Coverage(_) => "signature-coverage",
            SignatureError::Parameter(_) => "signature-parameter",
            SignatureError::NotNow { .. } => "signature-not-now",
            SignatureError::UnknownApp(_) => "signature-unknown-app",
            SignatureError::Wrong => "signature-wrong",
            SignatureError::Digest => "content-digest-mismatch",
            SignatureError::NonceReused => "nonce-reused",
        }
    }
}

/// Where a receiver remembers nonces, across its processes.
#[async_trait::async_trait]
pub trait NonceStore: Send + Sync {
    /// What can go wrong with the store itself.
    type Error;

    /// Remembers a nonce of an app until `keep_until` at least. False = it was there already.
    async fn remember(
        &self,
        app: &str,
        nonce: &str,
        keep_until: DateTime<Utc>,
    ) -> Result<bool, Self::Error>;
}

/// Characters of a nonce that is accepted, and of an app key.
pub const MAX_NONCE: usize = 128;
/// Characters of an app key.
pub const MAX_APP_KEY: usize = 64;

/// The label of our signatures.
const LABEL: &str = "sig1";

fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
