//! A client whose requests are signed, and which believes signed answers only.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use counterfoil_protocol::signing::{
    Header, Keyring, RequestParts, ResponseParts, SignatureError, Terms, sign_request,
    verify_response,
};
use rand::Rng;
use reqwest::{Client, Method, Url};

use crate::RemoteError;
use crate::review_centre::{MAX_CONNECT_TIME, cut, innermost};

/// How long one call may take from its start to the last byte of the answer.
pub const MAX_SIGNED_TIME: Duration = Duration::from_secs(30);
/// Bytes of an answer; a longer one is no answer.
pub const MAX_SIGNED_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// One peer behind a base address, and the keys of both sides. Bodies are never logged.
#[derive(Clone)]
pub struct SignedClient {
    client: Client,
    base: Url,
    peer: String,
    ring: Arc<Keyring>,
    terms: Terms,
}

impl std::fmt::Debug for SignedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The host only: an address may hold a password.
        let host = self.base.host_str().unwrap_or_default();
        f.debug_struct("SignedClient").field("host", &host).field("peer", &self.peer).finish()
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedAnswer {
    /// The peer's own answer to this very request, as its signature proves; or a bare 401, which
    /// is never signed and says only that we were not believed.
    Proved {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// No answer that can be believed; the request may have arrived.
    Unknown {
        /// Why, without any address or body.
        message: String,
    },
}

impl SignedClient {
    /// A client of `peer` at `base`, which may have a path of its own.
    ///
    /// # Errors
    /// When `base` is no http or https URL, or no client can be built.
    pub fn new(
        base: &str,
        peer: &str,
        ring: Arc<Keyring>,
        terms: Terms,
    ) -> Result<SignedClient, RemoteError> {
        const WHAT: &str = "signed peer";
        let wrong = |why: String| RemoteError::Address { what: WHAT, why };
        let text = format!("{}/", base.trim_end_matches('/'));
        let base = Url::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let builder = Client::builder()
            .timeout(MAX_SIGNED_TIME)
            .connect_timeout(MAX_CONNECT_TIME)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let builder = match base.scheme() {
            "https" => builder.https_only(true),
            "http" => builder.tls_certs_only([]),
            other => return Err(wrong(format!("its scheme is {other}"))),
        };
        let client = builder.build();
        let client = client.map_err(|source| RemoteError::Client { what: WHAT, source })?;
        Ok(SignedClient { client, base, peer: peer.to_owned(), ring, terms })
    }

    /// Who is called.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Reads `path`, signed at `now` by the caller's clock.
    pub async fn get(&self, path: &str, now: DateTime<Utc>) -> SignedAnswer {
        self.call(Method::GET, path, Vec::new(), now).await
    }

    /// Sends a JSON body to `path`, signed at `now` by the caller's clock.
    pub async fn post(&self, path: &str, body: Vec<u8>, now: DateTime<Utc>) -> SignedAnswer {
        self.call(Method::POST, path, body, now).await
    }

    /// Sends a body of a kind to `path`, and says which other kind would be taken for an answer.
    pub async fn post_as(
        &self,
        path: &str,
        kind: &str,
        accept: &str,
        body: Vec<u8>,
        now: DateTime<Utc>,
    ) -> SignedAnswer {
        let headers = vec![
            ("content-type".to_owned(), kind.to_owned()),
            ("accept".to_owned(), accept.to_owned()),
        ];
        match self.try_call(Method::POST, path, headers, body, now).await {
            Ok(answer) => answer,
            Err(message) => SignedAnswer::Unknown { message },
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        now: DateTime<Utc>,
    ) -> SignedAnswer {
        let mut headers: Vec<Header> = Vec::new();
        if !body.is_empty() {
            headers.push(("content-type".into(), "application/json".into()));
        }
        match self.try_call(method, path, headers, body, now).await {
            Ok(answer) => answer,
            Err(message) => SignedAnswer::Unknown { message },
        }
    }

    async fn try_call(
        &self,
        method: Method,
        path: &str,
        mut headers: Vec<Header>,
        body: Vec<u8>,
        now: DateTime<Utc>,
    ) -> Result<SignedAnswer, String> {
        let url = self.base.join(path.trim_start_matches('/'));
        let url = url.map_err(|_| "the path cannot be joined to the peer's address".to_owned())?;
        let key = self.ring.key_for(&self.peer);
        let key = key.ok_or_else(|| "there is no key to sign with".to_owned())?;
        let (nonce, app) = (nonce(), self.ring.app_key());
        let unsigned = parts(&method, &url, &headers, &body);
        let added = sign_request(unsigned, app, &key, &nonce, now, self.terms);
        headers.extend(added.map_err(|error| error.to_string())?);
        let mut request = self.client.request(method.clone(), url.clone()).body(body.clone());
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| no_answer(&error))?;
        let status = response.status().as_u16();
        let answered = read_headers(&response);
        let answer = read_body(response).await?;
        let proof = ResponseParts { status, headers: &answered, body: &answer };
        let asked = parts(&method, &url, &headers, &body);
        match verify_response(proof, asked, &self.peer, &self.ring, now, self.terms) {
            Ok(()) => Ok(SignedAnswer::Proved { status, body: answer }),
            Err(SignatureError::Missing) if status == 401 => {
                Ok(SignedAnswer::Proved { status, body: Vec::new() })
            }
            Err(error) => Err(format!("its answer ({status}) is not believed: {error}")),
        }
    }
}

fn parts<'a>(
    method: &'a Method,
    url: &'a Url,
    headers: &'a [Header],
    body: &'a [u8],
) -> RequestParts<'a> {
    RequestParts { method: method.as_str(), target_uri: url.as_str(), headers, body }
}

fn read_headers(response: &reqwest::Response) -> Vec<Header> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let pairs = response.headers().iter();
    pairs.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(&error))? {
        if bytes.len() + chunk.len() > MAX_SIGNED_ANSWER_BYTES {
            return Err(format!("its answer is longer than {MAX_SIGNED_ANSWER_BYTES} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Says what happened without the address, which may hold a password.
fn no_answer(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time; the request may have arrived".into();
    }
    let what = if error.is_connect() { "no connection" } else { "the connection broke" };
    cut(&format!("{what}: {}", innermost(error)), 500)
}

/// 128 random bits in hexadecimal: a nonce never comes twice.
fn nonce() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}
