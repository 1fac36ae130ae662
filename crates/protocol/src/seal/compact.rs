//! The compact form of a sealed body: five parts between full stops, base64url without padding.
//! RFC 7516, sections 3.1 and 7.1, for `alg` = `dir`: the second part is empty.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{NONCE_BYTES, SealError};

/// Bytes of an authentication tag.
pub(super) const TAG_BYTES: usize = 16;
/// Bytes of a protected header: algorithm, encryption and a key's name.
const MAX_HEADER_BYTES: usize = 512;

/// The protected header. Any other member, such as `zip` or `crit`, is refused, and so is one that
/// stands twice.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    enc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
}

/// A compact body taken apart.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The header's own text, which the tag covers.
    pub(super) header: &'a str,
    /// The key it names.
    pub(super) kid: Option<String>,
    pub(super) nonce: [u8; NONCE_BYTES],
    /// Ciphertext and tag.
    pub(super) sealed: Vec<u8>,
}

/// The header's text for a key.
pub(super) fn header(enc: &str, kid: &str) -> String {
    let header = Header { alg: "dir".into(), enc: enc.into(), kid: Some(kid.into()) };
    // Three texts always serialize.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header).unwrap_or_default())
}

/// Puts a body together from ciphertext and tag.
pub(super) fn join(header: &str, nonce: &[u8], sealed: &[u8]) -> String {
    let (text, tag) = sealed.split_at(sealed.len().saturating_sub(TAG_BYTES));
    let code = |bytes| URL_SAFE_NO_PAD.encode(bytes);
    format!("{header}..{}.{}.{}", code(nonce), code(text), code(tag))
}

/// Takes a body apart.
pub(super) fn split<'a>(body: &'a [u8], enc: &str) -> Result<Parts<'a>, SealError> {
    let body = std::str::from_utf8(body).map_err(|_| SealError::Shape("it is no text"))?;
    let parts: Vec<&str> = body.splitn(6, '.').collect();
    let [header, key, nonce, text, tag] = parts[..] else {
        return Err(SealError::Shape("it has not five parts"));
    };
    if !key.is_empty() {
        return Err(SealError::Shape("it brings a key; only direct keys are taken"));
    }
    let decode = |part: &str| {
        URL_SAFE_NO_PAD.decode(part).map_err(|_| SealError::Shape("a part is no base64url"))
    };
    if header.len() > MAX_HEADER_BYTES {
        return Err(SealError::Shape("its header is too long"));
    }
    let bytes = decode(header)?;
    if bytes.first() != Some(&b'{') {
        return Err(SealError::Shape("its header is no object"));
    }
    let known: Header = serde_json::from_slice(&bytes)
        .map_err(|_| SealError::Shape("its header holds something else than alg, enc and kid"))?;
    if known.alg != "dir" || known.enc != enc {
        return Err(SealError::Shape("its algorithms are not this suite's"));
    }
    let nonce = decode(nonce)?;
    let nonce = nonce.try_into().map_err(|_| SealError::Shape("its nonce has another length"))?;
    let tag = decode(tag)?;
    if tag.len() != TAG_BYTES {
        return Err(SealError::Shape("its tag has another length"));
    }
    let mut sealed = decode(text)?;
    sealed.extend_from_slice(&tag);
    Ok(Parts { header, kid: known.kid, nonce, sealed })
}
