//! Keys. The record of a key binds its algorithm: what a message claims about it only has to agree.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The least bytes of a shared secret: as many as its digest has.
pub const LEAST_SECRET: usize = 32;

/// What is wrong with a configured key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no base64.
    #[error("a key is written in base64")]
    Encoding,
    /// It has the wrong number of bytes, or is no point of the curve.
    #[error("this is no key of {algorithm}: {why}")]
    Shape {
        /// The algorithm.
        algorithm: &'static str,
        /// Why.
        why: &'static str,
    },
    /// No such algorithm here.
    #[error("algorithms are ed25519 and hmac-sha256, not {0}")]
    Algorithm(String),
    /// One secret for two peers: each could speak for the other.
    #[error("{0} has the shared secret of another app; hmac-sha256 needs a key for each pair")]
    SharedTwice(String),
}

/// A key to sign with.
#[derive(Clone)]
pub enum SigningKey {
    /// Our own key pair.
    Ed25519(Box<ed25519_dalek::SigningKey>),
    /// The secret of one pair of apps.
    HmacSha256(Vec<u8>),
}

/// A key to prove signatures with.
#[derive(Clone)]
pub enum VerifyingKey {
    /// The peer's public key.
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
    /// The secret of one pair of apps.
    HmacSha256(Vec<u8>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.algorithm())
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.algorithm())
    }
}

const ED25519: &str = "ed25519";
const HMAC_SHA256: &str = "hmac-sha256";

fn decode(text: &str) -> Result<Vec<u8>, KeyError> {
    STANDARD.decode(text.trim()).map_err(|_| KeyError::Encoding)
}

fn of_ed25519(bytes: Vec<u8>) -> Result<[u8; 32], KeyError> {
    let why = "it has 32 bytes";
    bytes.try_into().map_err(|_| KeyError::Shape { algorithm: ED25519, why })
}

fn secret(bytes: Vec<u8>) -> Result<Vec<u8>, KeyError> {
    if bytes.len() < LEAST_SECRET {
        let why = "a secret has 32 bytes or more";
        return Err(KeyError::Shape { algorithm: HMAC_SHA256, why });
    }
    Ok(bytes)
}

impl SigningKey {
    /// Reads a key: for `ed25519` the base64 of the 32 bytes of the private key (its seed).
    ///
    /// # Errors
    /// When it is none.
    pub fn read(algorithm: &str, text: &str) -> Result<SigningKey, KeyError> {
        let bytes = decode(text)?;
        match algorithm {
            ED25519 => {
                let key = ed25519_dalek::SigningKey::from_bytes(&of_ed25519(bytes)?);
                Ok(SigningKey::Ed25519(Box::new(key)))
            }
            HMAC_SHA256 => Ok(SigningKey::HmacSha256(secret(bytes)?)),
            other => Err(KeyError::Algorithm(other.to_owned())),
        }
    }

    /// What others must know to prove our signatures, in base64; `None` for a shared secret.
    pub fn public(&self) -> Option<String> {
        match self {
            SigningKey::Ed25519(key) => Some(STANDARD.encode(key.verifying_key().as_bytes())),
            SigningKey::HmacSha256(_) => None,
        }
    }

    /// The algorithm's registered name.
    pub fn algorithm(&self) -> &'static str {
        match self {
            SigningKey::Ed25519(_) => ED25519,
            SigningKey::HmacSha256(_) => HMAC_SHA256,
        }
    }

    /// Signs bytes that are no HTTP message, such as a document.
    pub fn sign(&self, base: &[u8]) -> Vec<u8> {
        match self {
            SigningKey::Ed25519(key) => key.sign(base).to_bytes().to_vec(),
            SigningKey::HmacSha256(secret) => mac(secret, base).finalize().into_bytes().to_vec(),
        }
    }
}

impl VerifyingKey {
    /// Reads a key: base64 of the public key's 32 bytes (`ed25519`) or of the pair's secret
    /// (`hmac-sha256`).
    ///
    /// # Errors
    /// When it is none.
    pub fn read(algorithm: &str, text: &str) -> Result<VerifyingKey, KeyError> {
        let bytes = decode(text)?;
        match algorithm {
            ED25519 => {
                let key = ed25519_dalek::VerifyingKey::from_bytes(&of_ed25519(bytes)?);
                let why = "it is no point of the curve";
                let key = key.map_err(|_| KeyError::Shape { algorithm: ED25519, why })?;
                Ok(VerifyingKey::Ed25519(Box::new(key)))
            }
            HMAC_SHA256 => Ok(VerifyingKey::HmacSha256(secret(bytes)?)),
            other => Err(KeyError::Algorithm(other.to_owned())),
        }
    }

    /// The algorithm's registered name.
    pub fn algorithm(&self) -> &'static str {
        match self {
            VerifyingKey::Ed25519(_) => ED25519,
            VerifyingKey::HmacSha256(_) => HMAC_SHA256,
        }
    }

    pub(super) fn proves(&self, base: &[u8], signature: &[u8]) -> bool {
        match self {
            VerifyingKey::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(base, &signature).is_ok()),
            // Compared in constant time.
            VerifyingKey::HmacSha256(secret) => mac(secret, base).verify_slice(signature).is_ok(),
        }
    }
}

fn mac(secret: &[u8], base: &[u8]) -> Hmac<Sha256> {
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret);
    // HMAC takes keys of any length.
    let mut mac = mac.unwrap_or_else(|_| unreachable!("HMAC refused a length"));
    mac.update(base);
    mac
}

/// Who we are, and whom we trust: the keys of each app, newest first. Two of one app may be valid
/// at a time, so that keys rotate without a gap.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    app_key: String,
    own: Option<SigningKey>,
    peers: BTreeMap<String, Vec<VerifyingKey>>,
}

impl Keyring {
    /// A keyring of the app `app_key`, which signs with `own` unless a pair has a secret.
    pub fn new(app_key: &str, own: Option<SigningKey>) -> Keyring {
        Keyring { app_key: app_key.to_owned(), own, peers: BTreeMap::new() }
    }

    /// Our own app key.
    pub fn app_key(&self) -> &str {
        &self.app_key
    }

    /// Trusts another key of a peer, after those it has already.
    ///
    /// # Errors
    /// When the secret is another peer's too.
    pub fn trust(&mut self, app: &str, key: VerifyingKey) -> Result<(), KeyError> {
        if let VerifyingKey::HmacSha256(secret) = &key {
            let of_another = self.peers.iter().filter(|(known, _)| *known != app);
            let mut keys = of_another.flat_map(|(_, keys)| keys);
            let is_same =
                |key: &VerifyingKey| matches!(key, VerifyingKey::HmacSha256(k) if k == secret);
            if keys.any(is_same) {
                return Err(KeyError::SharedTwice(app.to_owned()));
            }
        }
        self.peers.entry(app.to_owned()).or_default().push(key);
        Ok(())
    }

    /// The keys of a peer.
    pub fn keys_of(&self, app: &str) -> &[VerifyingKey] {
        self.peers.get(app).map_or(&[], Vec::as_slice)
    }

    /// What we sign with for a peer: the pair's secret where its first key is one, else our own.
    pub fn key_for(&self, peer: &str) -> Option<SigningKey> {
        match self.keys_of(peer).first() {
            Some(VerifyingKey::HmacSha256(secret)) => Some(SigningKey::HmacSha256(secret.clone())),
            _ => self.own.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_none_is_refused_with_its_reason() {
        let read = |algorithm, text: &str| VerifyingKey::read(algorithm, text).map(|_| ());
        assert_eq!(read("ed25519", "%"), Err(KeyError::Encoding));
        assert!(matches!(read("ed25519", "AQI="), Err(KeyError::Shape { .. })));
        assert!(matches!(read("hmac-sha256", "AQI="), Err(KeyError::Shape { .. })));
        assert_eq!(read("rsa", "AQI="), Err(KeyError::Algorithm("rsa".into())));
        let none = STANDARD.encode([255_u8; 32]);
        assert!(read("hmac-sha256", &none).is_ok());
    }

    #[test]
    fn one_secret_never_serves_two_pairs() {
        let secret = || VerifyingKey::HmacSha256(vec![7; 32]);
        let mut ring = Keyring::new("me", None);
        assert_eq!(ring.trust("a", secret()), Ok(()));
        assert_eq!(ring.trust("a", secret()), Ok(()));
        assert_eq!(ring.trust("b", secret()), Err(KeyError::SharedTwice("b".into())));
        assert!(ring.key_for("a").is_some());
        assert!(ring.key_for("b").is_none());
    }

    #[test]
    fn a_key_never_shows_itself() {
        let key = SigningKey::HmacSha256(vec![7; 32]);
        assert_eq!(format!("{key:?}"), "SigningKey(hmac-sha256)");
    }
}
