//! Keys as they are written down.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use thiserror::Error;

/// Bytes of a signing secret: Standard Webhooks asks for 24 to 64.
const SIGNING_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// What a signing secret begins with.
const SIGNING_PREFIX: &str = "whsec_";

/// One key of a pair of parties: one secret encrypts, another one signs.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey {
    /// `kid`: the key's name, which both know.
    pub id: String,
    pub(super) encryption: Vec<u8>,
    pub(super) signing: Vec<u8>,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What is wrong with a key as written. Says nothing of the secret itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The signing secret.
    #[error("the signing secret must be whsec_ and base64 of 24 to 64 bytes")]
    Signing,
    /// The encryption key.
    #[error("the encryption key must be base64url without padding")]
    Encryption,
    /// The encryption key's length does not fit the suite.
    #[error("the encryption key has {found} bytes; {suite} takes {needed}")]
    Length {
        /// The suite.
        suite: &'static str,
        /// What it takes.
        needed: usize,
        /// What there is.
        found: usize,
    },
}

impl SealKey {
    /// Reads a key: `whsec_` and base64 for signing, base64url without padding for encryption.
    /// Blanks around either are no part of it: files end in a line feed.
    pub fn parse(
        id: impl Into<String>,
        signing: &str,
        encryption: &str,
    ) -> Result<SealKey, KeyError> {
        let signing = signing.trim().strip_prefix(SIGNING_PREFIX).ok_or(KeyError::Signing)?;
        let signing = STANDARD.decode(signing).map_err(|_| KeyError::Signing)?;
        if !SIGNING_BYTES.contains(&signing.len()) {
            return Err(KeyError::Signing);
        }
        let encryption = URL_SAFE_NO_PAD.decode(encryption.trim());
        let encryption = encryption.map_err(|_| KeyError::Encryption)?;
        Ok(SealKey { id: id.into(), encryption, signing })
    }
}
