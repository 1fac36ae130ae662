//! Content-Digest (RFC 9530).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

use super::SignatureError;
use super::field::{Bare, Item, Member, dictionary};

/// The field's value for a body, which may be empty.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// Proves a body by the field: every digest in it that is known must be the body's, and one must
/// be known.
pub(super) fn check(field: &str, body: &[u8]) -> Result<(), SignatureError> {
    let mut known = 0;
    for (algorithm, member) in dictionary(field)? {
        let Member::Item(Item { value: Bare::Bytes(said), .. }) = member else {
            return Err(SignatureError::Malformed("a content digest is no bytes"));
        };
        let is_right = match algorithm.as_str() {
            "sha-256" => Sha256::digest(body).as_slice() == said,
            "sha-512" => Sha512::digest(body).as_slice() == said,
            _ => continue,
        };
        if !is_right {
            return Err(SignatureError::Digest);
        }
        known += 1;
    }
    if known == 0 { Err(SignatureError::Digest) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9530, appendix B; RFC 9421, appendix B.2.
    #[test]
    fn the_digests_published_in_the_standards_are_right() {
        let hello = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
        assert_eq!(content_digest(b"{\"hello\": \"world\"}"), hello);
        let long = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyeal\
                    dVLvRwEmTHWXvJwew==:";
        assert_eq!(check(long, b"{\"hello\": \"world\"}"), Ok(()));
        assert_eq!(check(&format!("{hello}, {long}"), b"{\"hello\": \"world\"}"), Ok(()));
        assert_eq!(content_digest(b""), "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:");
    }

    #[test]
    fn another_body_an_unknown_algorithm_or_one_wrong_of_two_is_refused() {
        let hello = content_digest(b"hello");
        assert_eq!(check(&hello, b"hellO"), Err(SignatureError::Digest));
        assert_eq!(check("md5=:AQI=:", b"hello"), Err(SignatureError::Digest));
        let mixed = format!("{hello}, sha-512=:AQI=:");
        assert_eq!(check(&mixed, b"hello"), Err(SignatureError::Digest));
        assert!(check("sha-256=1", b"hello").is_err());
    }
}
