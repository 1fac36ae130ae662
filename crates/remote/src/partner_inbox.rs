//! A partner in another house, over HTTP: encrypt, sign the exact bytes, POST; verify the answer,
//! then decrypt it, and believe it only when its state is 1.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use counterfoil_payment::partner_push::{Delivery, DeliveryAnswer, KeyReference, PartnerInbox};
use counterfoil_protocol::seal::{
    ID_HEADER, Message, NONCE_BYTES, Received, SIGNATURE_HEADER, SealKey, Sealed, Suite,
    TIMESTAMP_HEADER, suite,
};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;

use crate::review_centre::{MAX_ANSWER_BYTES, MAX_CONNECT_TIME, cut, innermost};
use crate::{RemoteError, Secrets};

/// How long one delivery may take from its start to the last byte of the answer, unless told
/// otherwise.
pub const MAX_PARTNER_TIME: Duration = Duration::from_secs(30);
/// Characters of a partner's code and message that are kept.
const MAX_CODE: usize = 64;
const MAX_MESSAGE: usize = 500;
/// The state of an answer that accepts.
const ACCEPTED: i64 = 1;

/// Partners' inboxes, each at its own address. Bodies, keys and addresses are never logged.
pub struct HttpPartnerInbox {
    plain: Client,
    secure: OnceLock<Option<Client>>,
    secrets: Arc<dyn Secrets>,
    max_time: Duration,
}

impl std::fmt::Debug for HttpPartnerInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpPartnerInbox").finish_non_exhaustive()
    }
}

/// The keys of one delivery, all of one suite.
struct Keys {
    suite: &'static dyn Suite,
    keys: Vec<SealKey>,
}

impl HttpPartnerInbox {
    /// An inbox for every partner; their keys are read from `secrets` at each delivery.
    ///
    /// # Errors
    /// When no client can be built.
    ///
    /// # Panics
    /// When no rustls provider is installed (see the crate's documentation).
    pub fn new(
        secrets: Arc<dyn Secrets>,
        max_time: Duration,
    ) -> Result<HttpPartnerInbox, RemoteError> {
        // Plain HTTP must work on a machine without any certificate too.
        let plain = builder(max_time).tls_certs_only([]).build();
        let plain = plain.map_err(|source| RemoteError::Client { what: "partner", source })?;
        Ok(HttpPartnerInbox { plain, secure: OnceLock::new(), secrets, max_time })
    }

    /// The client for an address; the certificates are looked for when they are needed first.
    fn client(&self, url: &Url) -> Result<&Client, DeliveryAnswer> {
        match url.scheme() {
            "http" => Ok(&self.plain),
            "https" => {
                let secure = self.secure.get_or_init(|| {
                    let client = builder(self.max_time).https_only(true).build();
                    client.inspect_err(|error| tracing::error!(%error, "no HTTPS client")).ok()
                });
                secure.as_ref().ok_or_else(|| {
                    unsent("partner-client", "no HTTPS client can be built in this process")
                })
            }
            _ => Err(unsent("partner-address", "its address is no http:// or https:// URL")),
        }
    }

    /// Reads the keys that are of the first one's suite.
    fn keys(&self, references: &[KeyReference]) -> Result<Keys, DeliveryAnswer> {
        let Some(first) = references.first() else {
            return Err(unsent("partner-key", "no key of the partner counts now"));
        };
        let Some(suite) = suite(&first.suite) else {
            return Err(unsent("partner-key", format!("{} is no known suite", first.suite)));
        };
        let mut keys = Vec::new();
        for reference in references.iter().filter(|one| one.suite == first.suite) {
            let wrong = |why: String| {
                unsent("partner-key", format!("key {} cannot be used: {why}", reference.key_id))
            };
            let signing = self.secrets.read(&reference.signing).map_err(wrong)?;
            let encryption = self.secrets.read(&reference.encryption).map_err(wrong)?;
            let key = SealKey::parse(reference.key_id.clone(), &signing, &encryption);
            keys.push(key.map_err(|error| wrong(error.to_string()))?);
        }
        Ok(Keys { suite, keys })
    }

    async fn post(&self, client: &Client, url: Url, sealed: Sealed) -> Result<Answer, Silence> {
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/jose")
            .header(ID_HEADER, sealed.id)
            .header(TIMESTAMP_HEADER, sealed.timestamp)
            .header(SIGNATURE_HEADER, sealed.signature)
            .body(sealed.body);
        let silent = |error: &reqwest::Error, status| self.silence(error, status);
        let mut response = request.send().await.map_err(|error| silent(&error, None))?;
        let status = response.status();
        let headers = response.headers().clone();
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > MAX_ANSWER_BYTES => {
                    return Err(Silence {
                        is_unsent: false,
                        message: format!("its answer is longer than {MAX_ANSWER_BYTES} bytes"),
                        status: Some(status),
                    });
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(Answer { status, headers, bytes }),
                Err(error) => return Err(silent(&error, Some(status))),
            }
        }
    }

    fn silence(&self, error: &reqwest::Error, status: Option<StatusCode>) -> Silence {
        let is_unsent = error.is_connect() || error.is_builder();
        let message = if is_unsent {
            format!("no connection, nothing was sent: {}", innermost(error))
        } else if error.is_timeout() {
            format!("no answer within {} ms", self.max_time.as_millis())
        } else {
            format!("the connection broke: {}", innermost(error))
        };
        Silence { is_unsent, message, status }
    }
}

fn builder(max_time: Duration) -> reqwest::ClientBuilder {
    Client::builder()
        .timeout(max_time)
        .connect_timeout(MAX_CONNECT_TIME.min(max_time))
        // An answer from elsewhere is not the partner's.
        .redirect(reqwest::redirect::Policy::none())
        // A second request on a connection that the partner just closed would be sent twice.
        .retry(reqwest::retry::never())
        .no_proxy()
}

/// Nothing left the house.
fn unsent(code: &str, message: impl Into<String>) -> DeliveryAnswer {
    DeliveryAnswer::Refused { code: code.to_owned(), message: message.into(), http_status: None }
}

/// What came back, whole.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

/// No whole answer came back.
struct Silence {
    is_unsent: bool,
    message: String,
    status: Option<StatusCode>,
}

#[async_trait::async_trait]
impl PartnerInbox for HttpPartnerInbox {
    async fn deliver(&self, delivery: &Delivery) -> DeliveryAnswer {
        match self.try_deliver(delivery).await {
            Ok(answer) | Err(answer) => answer,
        }
    }
}

impl HttpPartnerInbox {
    async fn try_deliver(&self, delivery: &Delivery) -> Result<DeliveryAnswer, DeliveryAnswer> {
        let url = Url::parse(&delivery.endpoint)
            .map_err(|error| unsent("partner-address", format!("its address: {error}")))?;
        let client = self.client(&url)?;
        let Keys { suite, keys } = self.keys(&delivery.keys)?;
        let message = Message {
            id: &delivery.key,
            timestamp: delivery.sent.timestamp(),
            nonce: rand::random::<[u8; NONCE_BYTES]>(),
            plain: delivery.body.as_bytes(),
        };
        let sealed = suite.seal(&keys, &message);
        let sealed = sealed.map_err(|error| unsent("partner-seal", error.to_string()))?;
        let started = Instant::now();
        let answer = match self.post(client, url, sealed).await {
            Ok(answer) => answer,
            Err(Silence { is_unsent: true, message, .. }) => {
                return Ok(unsent("partner-unreachable", message));
            }
            Err(Silence { message, status, .. }) => {
                let http_status = status.map(|status| status.as_u16());
                return Ok(DeliveryAnswer::Unknown { message, http_status });
            }
        };
        // The partner's clock is compared with the one that stamped the request.
        let passed = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX);
        let now = delivery.sent.timestamp().saturating_add(passed);
        Ok(read_answer(suite, &keys, &delivery.key, &answer, now))
    }
}

/// A 4xx is the partner's refusal, except 408, behind which the request may have been taken in.
/// Everything else counts only when it is verified, opened, about this very message, and says so.
fn read_answer(
    suite: &dyn Suite,
    keys: &[SealKey],
    id: &str,
    answer: &Answer,
    now: i64,
) -> DeliveryAnswer {
    let status = answer.status;
    let http_status = Some(status.as_u16());
    let unknown = |message: String| DeliveryAnswer::Unknown { message, http_status };
    if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT {
        let (code, message) = refusal(status, &answer.bytes);
        return DeliveryAnswer::Refused { code, message, http_status };
    }
    if !status.is_success() {
        return unknown(format!("it answered {status}"));
    }
    let header = |name| answer.headers.get(name).and_then(|value| value.to_str().ok());
    let received = Received {
        id: header(ID_HEADER).unwrap_or_default(),
        timestamp: header(TIMESTAMP_HEADER).unwrap_or_default(),
        signature: header(SIGNATURE_HEADER).unwrap_or_default(),
        body: &answer.bytes,
    };
    let plain = match suite.open(keys, &received, now) {
        Ok(opened) => opened.plain,
        Err(error) => return unknown(format!("its answer cannot be trusted: {error}")),
    };
    if received.id != id {
        return unknown("its answer is about another message".into());
    }
    let said: Option<Value> = serde_json::from_slice(&plain).ok();
    let state = said.as_ref().and_then(|said| said.get("state")).and_then(Value::as_i64);
    let response = String::from_utf8_lossy(&plain).into_owned();
    match state {
        Some(ACCEPTED) => DeliveryAnswer::Accepted { response, http_status: status.as_u16() },
        Some(state) => DeliveryAnswer::Refused {
            code: format!("state-{state}"),
            message: cut(&response, MAX_MESSAGE),
            http_status,
        },
        None => unknown("its answer says no state".into()),
    }
}

/// The partner's own code and detail (RFC 9457), or the status where it does not say.
fn refusal(status: StatusCode, bytes: &[u8]) -> (String, String) {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let text = |name: &str| {
        let text = body.as_ref()?.get(name)?.as_str()?;
        Some(text).filter(|text| !text.is_empty())
    };
    let code = text("code").map_or_else(|| format!("http-{}", status.as_u16()), str::to_owned);
    let message = text("detail").or_else(|| text("title"));
    let message = message.map_or_else(|| format!("it answered {status}"), str::to_owned);
    (cut(&code, MAX_CODE), cut(&message, MAX_MESSAGE))
}
