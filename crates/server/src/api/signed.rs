//! Programs that call us sign their requests, and we sign what we answer.
//!
//! [`admit`] is a middleware: behind it, [`Caller`] says whose signature was proved, and nothing
//! else in a request says who sent it. Its nonce was stored by then. What is not believed gets 401
//! and nothing else; every other answer goes out signed, refusals too.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use counterfoil_db::Db;
use counterfoil_protocol::signing::{
    Header, Keyring, NonceStore, RequestParts, ResponseParts, SignatureError, Terms, Verified,
    sign_response, verify_request,
};

use super::nonce::NonceTable;
use super::problem::{Problem, RequestFault};
use crate::config::Config;

/// Bytes of a signed request's body unless a door says otherwise.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Bytes of an answer: it is held whole to be signed. The longest is 200 answers with their
/// values.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// The app whose signature was proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = StatusCode;

    async fn from_request_parts(
        parts: &mut request::Parts,
        _state: &S,
    ) -> Result<Caller, StatusCode> {
        // Only where the middleware was forgotten: refuse, as if unsigned.
        parts.extensions.get::<Caller>().cloned().ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// What a door needs to know to let programs in.
#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
    max_body: usize,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    nonces: NonceTable,
    ring: Keyring,
    terms: Terms,
    public_url: String,
}

impl Gate {
    /// A door as configured.
    ///
    /// # Errors
    /// A key that is none.
    pub fn new(db: &Db, config: &Config) -> Result<Gate> {
        let inner = Inner {
            db: db.clone(),
            nonces: NonceTable::new(db.clone()),
            ring: config.keyring()?,
            terms: config.signing.terms(),
            public_url: config.signing.public_url.trim_end_matches('/').to_owned(),
        };
        Ok(Gate { inner: Arc::new(inner), max_body: MAX_BODY_BYTES })
    }

    /// The same door for longer bodies.
    pub fn taking(&self, max_body: usize) -> Gate {
        Gate { inner: Arc::clone(&self.inner), max_body }
    }

    /// Our own app key.
    pub fn app_key(&self) -> &str {
        self.inner.ring.app_key()
    }

    /// The URI that a request was signed for, as far as we can know.
    fn target_uri(&self, parts: &request::Parts) -> String {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        if !self.inner.public_url.is_empty() {
            return format!("{}{path}", self.inner.public_url);
        }
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        format!("http://{}{path}", host.unwrap_or_default())
    }
}

/// A request as it came in.
struct Received {
    method: String,
    uri: String,
    headers: Vec<Header>,
    body: Bytes,
}

impl Received {
    fn parts(&self) -> RequestParts<'_> {
        RequestParts {
            method: &self.method,
            target_uri: &self.uri,
            headers: &self.headers,
            body: &self.body,
        }
    }
}

/// Lets a request in whose signature is proved and whose nonce is new, and signs the answer.
pub async fn admit(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut received = Received {
        method: parts.method.to_string(),
        uri: gate.target_uri(&parts),
        headers: listed(&parts.headers),
        body: Bytes::new(),
    };
    let Ok(now) = gate.inner.db.now().await else {
        return unavailable();
    };
    let most = gate.max_body;
    let declared = parts.headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    let is_long = declared.and_then(|v| v.parse().ok()).is_some_and(|length: usize| length > most);
    match if is_long { None } else { to_bytes(body, most).await.ok() } {
        Some(body) => received.body = body,
        // Nobody is named yet: the answer is signed with our own key, or not at all.
        None => {
            let problem = Problem::of_request(RequestFault::TooLarge { most });
            return answer(&gate, &received, "", now, problem.into_response()).await;
        }
    }
    let verified = match verify_request(received.parts(), &gate.inner.ring, now, gate.inner.terms) {
        Ok(verified) => verified,
        Err(error) => return refuse(&error, &received),
    };
    match remember(&gate, &verified).await {
        Ok(true) => {}
        Ok(false) => return refuse(&SignatureError::NonceReused, &received),
        Err(error) => {
            tracing::error!(%error, "a nonce cannot be stored");
            return unavailable();
        }
    }
    let app = verified.app;
    parts.extensions.insert(Caller(app.clone()));
    let request = Request::from_parts(parts, Body::from(received.body.clone()));
    let response = next.run(request).await;
    answer(&gate, &received, &app, now, response).await
}

async fn remember(gate: &Gate, verified: &Verified) -> Result<bool, counterfoil_db::Error> {
    let Verified { app, nonce, keep_nonce_until } = verified;
    gate.inner.nonces.remember(app, nonce, *keep_nonce_until).await
}

/// 401 and nothing else: why is for our own log.
fn refuse(error: &SignatureError, received: &Received) -> Response {
    let path = received.uri.split('?').next().unwrap_or_default();
    tracing::warn!(code = error.code(), path, "a request was not believed: {error}");
    StatusCode::UNAUTHORIZED.into_response()
}

fn unavailable() -> Response {
    StatusCode::SERVICE_UNAVAILABLE.into_response()
}

/// Signs an answer for `peer`; an empty peer is one that nobody proved.
async fn answer(
    gate: &Gate,
    received: &Received,
    peer: &str,
    now: DateTime<Utc>,
    response: Response,
) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MAX_ANSWER_BYTES).await else {
        tracing::error!("an answer is too long to be signed");
        return unavailable();
    };
    let kind = HeaderValue::from_static("application/octet-stream");
    parts.headers.entry(header::CONTENT_TYPE).or_insert(kind);
    let signed = gate.inner.ring.key_for(peer).map(|key| {
        let headers = listed(&parts.headers);
        let answered =
            ResponseParts { status: parts.status.as_u16(), headers: &headers, body: &body };
        let app = gate.app_key();
        sign_response(answered, received.parts(), app, &key, now, gate.inner.terms)
    });
    match signed {
        Some(Ok(added)) => {
            for (name, value) in added {
                let name = HeaderName::from_bytes(name.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                    parts.headers.insert(name, value);
                }
            }
        }
        Some(Err(error)) => tracing::warn!(code = error.code(), "an answer cannot be signed"),
        None => tracing::debug!("no key to sign answers with"),
    }
    Response::from_parts(parts, Body::from(body))
}

fn listed(headers: &HeaderMap) -> Vec<Header> {
    let pairs = headers.iter();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    pairs.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

impl Config {
    /// Who we are and whom we trust, as configured.
    ///
    /// # Errors
    /// A key that is none, or one secret for two apps.
    pub fn keyring(&self) -> Result<Keyring> {
        self.signing.keyring(&self.apps).context("the keys of apps")
    }
}
