//! Signing and proving responses: each is bound to the very request that it answers.

use chrono::{DateTime, Utc};

use super::base::{Claim, Message, component, of_request};
use super::field::Bare;
use super::request::{check_digest, identity, is_now, proved_by, sealed, signature_of};
use super::{
    Header, Keyring, RequestParts, ResponseParts, SignatureError, SigningKey, Terms, content_digest,
};

const OWN: [&str; 3] = ["@status", "content-digest", "content-type"];
const OF_REQUEST: [&str; 3] = ["@method", "@target-uri", "signature"];

/// Signs a response to a signed request as the app `app_key`. Answers the headers to add.
///
/// # Errors
/// A request without a signature, or a response without a Content-Type.
pub fn sign_response(
    response: ResponseParts<'_>,
    request: RequestParts<'_>,
    app_key: &str,
    key: &SigningKey,
    now: DateTime<Utc>,
    terms: Terms,
) -> Result<Vec<Header>, SignatureError> {
    signature_of(&request)?;
    let digest = ("content-digest".to_owned(), content_digest(response.body));
    let headers: Vec<Header> = response
        .headers
        .iter()
        .filter(|(name, _)| name != "content-digest")
        .cloned()
        .chain([digest.clone()])
        .collect();
    let own = OWN.map(component).into_iter();
    let components: Vec<_> = own.chain(OF_REQUEST.map(of_request)).collect();
    let created = now.timestamp();
    let mut parameters = vec![
        ("created".to_owned(), Bare::Integer(created)),
        ("expires".to_owned(), Bare::Integer(created + terms.lifetime.num_seconds())),
    ];
    parameters.extend(identity(app_key, key)?);
    let response = ResponseParts { headers: &headers, ..response };
    let message = Message { request, response: Some(response) };
    let mut added = vec![digest];
    added.extend(sealed(message, &components, &parameters, key)?);
    Ok(added)
}

/// Proves that a response was signed by `peer` and answers this very request. No nonce is needed:
/// the request's signature, which it covers, is accepted once.
///
/// # Errors
/// Whatever is not exactly as it must be.
pub fn verify_response(
    response: ResponseParts<'_>,
    request: RequestParts<'_>,
    peer: &str,
    keys: &Keyring,
    now: DateTime<Utc>,
    terms: Terms,
) -> Result<(), SignatureError> {
    let claim = Claim::read(response.headers)?;
    for name in OWN {
        claim.require(name, false)?;
    }
    for name in OF_REQUEST {
        claim.require(name, true)?;
    }
    let created = claim.seconds("created")?;
    let expires = match claim.seconds("expires") {
        Ok(expires) => expires.min(created.saturating_add(terms.lifetime.num_seconds())),
        Err(_) => created.saturating_add(terms.lifetime.num_seconds()),
    };
    is_now(created, expires, now, terms.skew)?;
    if claim.text("keyid")? != peer {
        return Err(SignatureError::UnknownApp(claim.text("keyid")?.to_owned()));
    }
    proved_by(Message { request, response: Some(response) }, &claim, keys)?;
    check_digest(response.headers, response.body)
}
