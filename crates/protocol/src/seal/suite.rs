//! The suites: which cipher and which code go together.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::cipher::consts::U12;
use aes_gcm::{Aes256Gcm, AesGcm};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use sm3::Sm3;
use sm4::Sm4;

use super::signature::{Mac, Signed, is_id};
use super::{
    ID_HEADER, KeyError, Message, NONCE_BYTES, Opened, Received, SealError, SealKey, Sealed,
    compact,
};

/// What two parties agree on: how a message is sealed and opened.
pub trait Suite: Send + Sync + std::fmt::Debug {
    /// Its name in configuration and tables.
    fn name(&self) -> &'static str;

    /// Encrypts under the first key, then signs the exact bytes with every key.
    ///
    /// # Errors
    /// No key, a key that does not fit the suite, or an id that cannot be one.
    fn seal(&self, keys: &[SealKey], message: &Message<'_>) -> Result<Sealed, SealError>;

    /// Verifies timestamp and signature, and only then decrypts. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Whatever does not hold, the first thing first.
    fn open(
        &self,
        keys: &[SealKey],
        received: &Received<'_>,
        now: i64,
    ) -> Result<Opened, SealError>;
}

/// JWE `dir` and `A256GCM` under HMAC-SHA256.
pub const JOSE: &dyn Suite = &Pair {
    name: "jose",
    enc: "A256GCM",
    key_bytes: 32,
    encrypt: encrypt::<Aes256Gcm>,
    decrypt: decrypt::<Aes256Gcm>,
    mac: Mac { version: "v1", sign: sign_sha256, verify: verify_sha256 },
};

/// SM4-GCM under HMAC-SM3.
pub const GM: &dyn Suite = &Pair {
    name: "gm",
    enc: "SM4GCM",
    key_bytes: 16,
    encrypt: encrypt::<Sm4Gcm>,
    decrypt: decrypt::<Sm4Gcm>,
    mac: Mac { version: "v1sm3", sign: sign_sm3, verify: verify_sm3 },
};

/// The suite of this name.
pub fn suite(name: &str) -> Option<&'static dyn Suite> {
    [JOSE, GM].into_iter().find(|suite| suite.name() == name)
}

type Sm4Gcm = AesGcm<Sm4, U12>;

/// Key, nonce, what is covered besides, text. `None` when the key's length is wrong or the tag is.
type Cipher = fn(&[u8], &[u8; NONCE_BYTES], &[u8], &[u8]) -> Option<Vec<u8>>;

struct Pair {
    name: &'static str,
    enc: &'static str,
    key_bytes: usize,
    encrypt: Cipher,
    decrypt: Cipher,
    mac: Mac,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Pair {
    fn check(&self, key: &SealKey) -> Result<(), KeyError> {
        let found = key.encryption.len();
        if found == self.key_bytes {
            return Ok(());
        }
        Err(KeyError::Length { suite: self.name, needed: self.key_bytes, found })
    }
}

impl Suite for Pair {
    fn name(&self) -> &'static str {
        self.name
    }

    fn seal(&self, keys: &[SealKey], message: &Message<'_>) -> Result<Sealed, SealError> {
        let key = keys.first().ok_or(SealError::NoKey)?;
        self.check(key)?;
        if !is_id(message.id) {
            return Err(SealError::Header(ID_HEADER));
        }
        let header = compact::header(self.enc, &key.id);
        let Message { nonce, plain, .. } = message;
        let sealed = (self.encrypt)(&key.encryption, nonce, header.as_bytes(), plain);
        let sealed = sealed.ok_or(SealError::Shape("it is too long to be sealed"))?;
        let body = compact::join(&header, nonce, &sealed);
        let timestamp = message.timestamp.to_string();
        let signature = self.mac.header(keys, message.id, &timestamp, &body);
        Ok(Sealed { id: message.id.to_owned(), timestamp, signature, body })
    }

    fn open(
        &self,
        keys: &[SealKey],
        received: &Received<'_>,
        now: i64,
    ) -> Result<Opened, SealError> {
        if keys.is_empty() {
            return Err(SealError::NoKey);
        }
        self.mac.prove(keys, received, now)?;
        let parts = compact::split(received.body, self.enc)?;
        let named = |key: &&SealKey| parts.kid.as_ref().is_none_or(|kid| *kid == key.id);
        for key in keys.iter().filter(named) {
            self.check(key)?;
            let aad = parts.header.as_bytes();
            if let Some(plain) = (self.decrypt)(&key.encryption, &parts.nonce, aad, &parts.sealed) {
                return Ok(Opened { plain, key: key.id.clone() });
            }
        }
        Err(SealError::Decryption)
    }
}

fn encrypt<C: Aead + KeyInit>(
    key: &[u8],
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    msg: &[u8],
) -> Option<Vec<u8>> {
    let cipher = C::new_from_slice(key).ok()?;
    cipher.encrypt(&nonce[..].try_into().ok()?, Payload { msg, aad }).ok()
}

fn decrypt<C: Aead + KeyInit>(
    key: &[u8],
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    msg: &[u8],
) -> Option<Vec<u8>> {
    let cipher = C::new_from_slice(key).ok()?;
    cipher.decrypt(&nonce[..].try_into().ok()?, Payload { msg, aad }).ok()
}

macro_rules! mac {
    ($sign:ident, $verify:ident, $hash:ty) => {
        fn $sign(key: &[u8], parts: Signed<'_>) -> Vec<u8> {
            feed::<$hash>(key, parts).finalize().into_bytes().to_vec()
        }

        fn $verify(key: &[u8], parts: Signed<'_>, signature: &[u8]) -> bool {
            feed::<$hash>(key, parts).verify_slice(signature).is_ok()
        }
    };
}

mac!(sign_sha256, verify_sha256, Hmac<Sha256>);
mac!(sign_sm3, verify_sm3, Hmac<Sm3>);

fn feed<M: hmac::Mac + hmac::KeyInit>(key: &[u8], parts: Signed<'_>) -> M {
    // HMAC takes a key of any length.
    let mut mac = <M as hmac::KeyInit>::new_from_slice(key).unwrap_or_else(|_| unreachable!());
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            mac.update(b".");
        }
        mac.update(part);
    }
    mac
}

/// The signature over a body of another origin.
#[cfg(test)]
pub(super) fn sign_jose(key: &SealKey, sealed: &Sealed) -> String {
    let mac = Mac { version: "v1", sign: sign_sha256, verify: verify_sha256 };
    mac.header(std::slice::from_ref(key), &sealed.id, &sealed.timestamp, &sealed.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// RFC 8998, appendix A.1.
    #[test]
    fn sm4_gcm_gives_the_bytes_of_its_rfc() {
        let key = bytes("0123456789ABCDEFFEDCBA9876543210");
        let nonce: [u8; 12] = bytes("00001234567800000000ABCD").try_into().unwrap();
        let plain = bytes(
            "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBCCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD\
             EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFFEEEEEEEEEEEEEEEEAAAAAAAAAAAAAAAA",
        );
        let aad = bytes("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2");
        let sealed = bytes(
            "17F399F08C67D5EE19D0DC9969C4BB7D5FD46FD3756489069157B282BB200735\
             D82710CA5C22F0CCFA7CBF93D496AC15A56834CBCF98C397B4024A2691233B8D\
             83DE3541E4C2B58177E065A9BF7B62EC",
        );
        assert_eq!(encrypt::<Sm4Gcm>(&key, &nonce, &aad, &plain), Some(sealed.clone()));
        assert_eq!(decrypt::<Sm4Gcm>(&key, &nonce, &aad, &sealed), Some(plain));
    }

    /// What `openssl dgst -sm3 -mac HMAC` (3.0.19) says of `ab.c.d` under 01…20.
    #[test]
    fn hmac_sm3_gives_the_bytes_of_openssl() {
        let key: Vec<u8> = (1..=32).collect();
        let signature = bytes("f29128f63fd5ca5c2906db19e2430c91599711dff2a64753ec1fb6cf83b70c76");
        let parts: [&[u8]; 3] = [b"ab", b"c", b"d"];
        assert_eq!(sign_sm3(&key, parts), signature);
        assert!(verify_sm3(&key, parts, &signature));
    }
}
