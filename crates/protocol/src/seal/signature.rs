//! Standard Webhooks 1.0.0: `version,base64(MAC(secret, id.timestamp.body))`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{ID_HEADER, Received, SIGNATURE_HEADER, SealError, SealKey, TIMESTAMP_HEADER};

/// How far a timestamp may be from the receiver's clock, either way.
pub const MAX_SKEW_SECONDS: i64 = 300;
/// Signatures of one message that are looked at: more than any rotation needs.
pub const MAX_SIGNATURES: usize = 16;
/// Bytes of an id.
const MAX_ID_BYTES: usize = 255;

/// Id, timestamp and body, which are signed joined by full stops.
pub(super) type Signed<'a> = [&'a [u8]; 3];

/// A message authentication code over three parts.
pub(super) struct Mac {
    /// What a signature begins with.
    pub(super) version: &'static str,
    /// Signs.
    pub(super) sign: fn(key: &[u8], parts: Signed<'_>) -> Vec<u8>,
    /// Compares in constant time.
    pub(super) verify: fn(key: &[u8], parts: Signed<'_>, signature: &[u8]) -> bool,
}

impl Mac {
    /// One signature a key.
    pub(super) fn header(&self, keys: &[SealKey], id: &str, timestamp: &str, body: &str) -> String {
        let parts = [id.as_bytes(), timestamp.as_bytes(), body.as_bytes()];
        let one = |key: &SealKey| {
            let signature = STANDARD.encode((self.sign)(&key.signing, parts));
            format!("{},{signature}", self.version)
        };
        keys.iter().take(MAX_SIGNATURES).map(one).collect::<Vec<_>>().join(" ")
    }

    /// Proves that a message is of somebody who holds one of the keys, and of now.
    pub(super) fn prove(
        &self,
        keys: &[SealKey],
        received: &Received<'_>,
        now: i64,
    ) -> Result<(), SealError> {
        if !is_id(received.id) {
            return Err(SealError::Header(ID_HEADER));
        }
        let sent = seconds(received.timestamp).ok_or(SealError::Header(TIMESTAMP_HEADER))?;
        let apart = now.saturating_sub(sent);
        if apart.saturating_abs() > MAX_SKEW_SECONDS {
            return Err(SealError::Stale { apart });
        }
        if received.signature.is_empty() {
            return Err(SealError::Header(SIGNATURE_HEADER));
        }
        let parts = [received.id.as_bytes(), received.timestamp.as_bytes(), received.body];
        let candidates = received.signature.split(' ').take(MAX_SIGNATURES);
        for candidate in candidates {
            let Some((version, text)) = candidate.split_once(',') else { continue };
            if version != self.version {
                continue;
            }
            let Ok(signature) = STANDARD.decode(text) else { continue };
            if keys.iter().any(|key| (self.verify)(&key.signing, parts, &signature)) {
                return Ok(());
            }
        }
        Err(SealError::Signature)
    }
}

/// An id may not hold what separates it in the signed bytes, nor what a header cannot carry.
pub(super) fn is_id(id: &str) -> bool {
    let fits = (1..=MAX_ID_BYTES).contains(&id.len());
    fits && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.')
}

/// Digits only: `+1` and ` 1` are other texts of the same number, and the text is what is signed.
fn seconds(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}
