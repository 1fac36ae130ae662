//! Signing and proving requests.

use chrono::{DateTime, TimeDelta, Utc};

use super::base::{Claim, Message, component, signature_base};
use super::field::{Bare, Item, Parameters, show_list};
use super::{
    Header, Keyring, LABEL, MAX_APP_KEY, MAX_NONCE, RequestParts, SignatureError, SigningKey,
    Terms, content_digest, digest, header,
};

/// Signs a request as the app `app_key`. Answers the headers to add: Content-Digest,
/// Signature-Input and Signature. Of the request's own headers Content-Type is covered when there
/// is a body. `nonce` must be new each time: a retry signs anew.
///
/// # Errors
/// A body without a Content-Type, or a nonce or app key that a field cannot hold.
pub fn sign_request(
    parts: RequestParts<'_>,
    app_key: &str,
    key: &SigningKey,
    nonce: &str,
    now: DateTime<Utc>,
    terms: Terms,
) -> Result<Vec<Header>, SignatureError> {
    let headers: Vec<Header> = parts
        .headers
        .iter()
        .filter(|(name, _)| name != "content-digest")
        .cloned()
        .chain([("content-digest".to_owned(), content_digest(parts.body))])
        .collect();
    let request = RequestParts { headers: &headers, ..parts };
    let mut components = vec![component("@method"), component("@target-uri")];
    components.push(component("content-digest"));
    if !parts.body.is_empty() {
        components.push(component("content-type"));
    }
    let created = now.timestamp();
    let mut parameters = vec![
        ("created".to_owned(), Bare::Integer(created)),
        ("expires".to_owned(), Bare::Integer(created + terms.lifetime.num_seconds())),
        ("nonce".to_owned(), Bare::Text(printable(nonce, "nonce")?)),
    ];
    parameters.extend(identity(app_key, key)?);
    let message = Message { request, response: None };
    let digest = content_digest(parts.body);
    let mut added = vec![("content-digest".to_owned(), digest)];
    added.extend(sealed(message, &components, &parameters, key)?);
    Ok(added)
}

/// `keyid` and `alg`.
pub(super) fn identity(app_key: &str, key: &SigningKey) -> Result<Parameters, SignatureError> {
    Ok(vec![
        ("keyid".to_owned(), Bare::Text(printable(app_key, "keyid")?)),
        ("alg".to_owned(), Bare::Text(key.algorithm().to_owned())),
    ])
}

/// Signature-Input and Signature.
pub(super) fn sealed(
    message: Message<'_>,
    components: &[Item],
    parameters: &Parameters,
    key: &SigningKey,
) -> Result<Vec<Header>, SignatureError> {
    let base = signature_base(message, components, parameters)?;
    let signature = super::field::show(&Bare::Bytes(key.sign(base.as_bytes())));
    let input = show_list(components, parameters);
    Ok(vec![
        ("signature-input".to_owned(), format!("{LABEL}={input}")),
        ("signature".to_owned(), format!("{LABEL}={signature}")),
    ])
}

fn printable(text: &str, what: &'static str) -> Result<String, SignatureError> {
    let is_printable = text.chars().all(|letter| (' '..='~').contains(&letter));
    if text.is_empty() || !is_printable {
        return Err(SignatureError::Parameter(what));
    }
    Ok(text.to_owned())
}

/// Who signed a request. Nothing else in the request says who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The signer's app key.
    pub app: String,
    /// Accepted once: store it before acting.
    pub nonce: String,
    /// Until when the nonce must be remembered: past expiry plus skew.
    pub keep_nonce_until: DateTime<Utc>,
}

/// Proves who signed a request. The nonce is still to be stored by the receiver.
///
/// # Errors
/// Whatever is not exactly as it must be.
pub fn verify_request(
    parts: RequestParts<'_>,
    keys: &Keyring,
    now: DateTime<Utc>,
    terms: Terms,
) -> Result<Verified, SignatureError> {
    let claim = Claim::read(parts.headers)?;
    for name in ["@method", "@target-uri", "content-digest"] {
        claim.require(name, false)?;
    }
    if !parts.body.is_empty() {
        claim.require("content-type", false)?;
    }
    let expires = claim.seconds("expires")?;
    let created = claim.seconds("created")?;
    let lasts = expires.saturating_sub(created);
    if !(0..=terms.lifetime.num_seconds()).contains(&lasts) {
        return Err(SignatureError::Parameter("expires"));
    }
    let nonce = claim.text("nonce")?;
    if nonce.len() > MAX_NONCE {
        return Err(SignatureError::Parameter("nonce"));
    }
    is_now(created, expires, now, terms.skew)?;
    let app = proved_by(Message { request: parts, response: None }, &claim, keys)?;
    check_digest(parts.headers, parts.body)?;
    let expiry =
        DateTime::from_timestamp(expires, 0).ok_or(SignatureError::Parameter("expires"))?;
    Ok(Verified {
        app,
        nonce: nonce.to_owned(),
        // One second more: fields hold whole seconds.
        keep_nonce_until: expiry + terms.skew + TimeDelta::seconds(1),
    })
}

pub(super) fn check_digest(headers: &[Header], body: &[u8]) -> Result<(), SignatureError> {
    let covered = || SignatureError::Coverage("\"content-digest\"".into());
    let mut fields = headers.iter().filter(|(name, _)| name == "content-digest");
    let (first, second) = (fields.next(), fields.next());
    if second.is_some() {
        return Err(SignatureError::Malformed("there are two content digests"));
    }
    let field = first.map(|(_, value)| value).ok_or_else(covered)?;
    digest::check(field, body)
}

pub(super) fn is_now(
    created: i64,
    expires: i64,
    now: DateTime<Utc>,
    skew: TimeDelta,
) -> Result<(), SignatureError> {
    let (now, skew) = (now.timestamp(), skew.num_seconds());
    if created.saturating_sub(skew) > now || expires.saturating_add(skew) < now {
        return Err(SignatureError::NotNow { created, now });
    }
    Ok(())
}

/// The app whose key proves the claim.
pub(super) fn proved_by(
    message: Message<'_>,
    claim: &Claim,
    keys: &Keyring,
) -> Result<String, SignatureError> {
    let app = claim.text("keyid")?;
    let algorithm = claim.text("alg")?;
    let is_key = |letter: char| ('!'..='~').contains(&letter);
    if app.len() > MAX_APP_KEY || !app.chars().all(is_key) {
        return Err(SignatureError::Parameter("keyid"));
    }
    let trusted = keys.keys_of(app);
    if trusted.is_empty() {
        return Err(SignatureError::UnknownApp(app.to_owned()));
    }
    let base = signature_base(message, &claim.components, &claim.parameters)?;
    let mut bound = trusted.iter().filter(|key| key.algorithm() == algorithm);
    if bound.any(|key| key.proves(base.as_bytes(), &claim.signature)) {
        return Ok(app.to_owned());
    }
    Err(SignatureError::Wrong)
}

/// The signature field of a request, which its response covers.
pub(super) fn signature_of<'a>(parts: &RequestParts<'a>) -> Result<&'a str, SignatureError> {
    header(parts.headers, "signature").ok_or(SignatureError::Missing)
}
