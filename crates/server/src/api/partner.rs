//! A partner to try the push against: it verifies, opens and stores what it gets, tells the same
//! message apart by its key, and gets into trouble when it is told to. A simulator: it keeps what
//! it got in this very database, in a table of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use counterfoil_db::{Db, Read, sql, transact};
use counterfoil_payment::partner_push::{KeyReference, receiving_keys};
use counterfoil_protocol::PartnerId;
use counterfoil_protocol::seal::{
    self, ID_HEADER, Message, NONCE_BYTES, Received, SIGNATURE_HEADER, SealError, SealKey, Sealed,
    Suite, TIMESTAMP_HEADER, suite,
};
use counterfoil_remote::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::problem::{Problem, RequestFault};

/// Bytes of a request body: a chunk of a thousand lines with the longest texts, sealed.
pub const MAX_SEALED_BYTES: usize = 8 * 1024 * 1024;

/// What the simulator does instead of its duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Says 422 and keeps nothing.
    Refuse,
    /// Says 500 and keeps nothing.
    ServerError,
    /// Keeps it and never answers.
    AcceptThenHang,
    /// Keeps it and signs its answer with a key that nobody knows.
    WrongSignature,
    /// Answers state 0, properly sealed, and keeps nothing.
    StateZero,
    /// Keeps it and answers what it last answered to something else.
    EarlierAnswer,
}

/// The order to get into trouble.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    /// None = do your duty.
    trouble: Option<Trouble>,
    /// For so many messages; without it, until told otherwise.
    times: Option<u32>,
}

/// The simulated partners, one path each.
#[derive(Clone)]
pub struct PartnerSimulator {
    db: Db,
    secrets: Arc<dyn Secrets>,
    keys: Option<Arc<[KeyReference]>>,
    state: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    order: Option<Order>,
    last_answer: Option<Sealed>,
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
enum PartnerFault {
    #[error("the message is not proved to be of this partner's peer: {0}")]
    Untrusted(SealError),
    #[error("the message cannot be read: {0}")]
    Unreadable(String),
    #[error("no key of this partner counts now")]
    Unknown,
    #[error("told to refuse")]
    Refuses,
    #[error("told to fail")]
    Fails,
}

impl PartnerFault {
    fn code(&self) -> &'static str {
        match self {
            PartnerFault::Untrusted(_) => "partner-message-untrusted",
            PartnerFault::Unreadable(_) => "partner-message-unreadable",
            PartnerFault::Unknown => "partner-unknown",
            PartnerFault::Refuses => "partner-refuses",
            PartnerFault::Fails => "partner-fails",
        }
    }

    fn problem(&self) -> Problem {
        let status = match self {
            PartnerFault::Untrusted(_) => StatusCode::UNAUTHORIZED,
            PartnerFault::Unreadable(_) => StatusCode::BAD_REQUEST,
            PartnerFault::Unknown => StatusCode::NOT_FOUND,
            PartnerFault::Refuses => StatusCode::UNPROCESSABLE_ENTITY,
            PartnerFault::Fails => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, self.code(), self.to_string())
    }
}

impl std::fmt::Debug for PartnerSimulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartnerSimulator").field("state", &self.state).finish_non_exhaustive()
    }
}

impl PartnerSimulator {
    /// Partners that hold the keys of this database's `partner_key`.
    pub fn new(db: Db, secrets: Arc<dyn Secrets>) -> PartnerSimulator {
        PartnerSimulator { db, secrets, keys: None, state: Arc::default() }
    }

    /// Partners that hold these keys instead: the other house rotates at its own pace.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<KeyReference>) -> PartnerSimulator {
        self.keys = Some(keys.into());
        self
    }

    /// Gets into trouble, for so many messages or until told otherwise.
    pub fn set_trouble(&self, trouble: Option<Trouble>, times: Option<u32>) {
        self.memory().order = trouble.map(|_| Order { trouble, times });
    }

    /// Its routes. What may be told to misbehave is only there when it listens on the loopback.
    pub fn router(self, listens_on: SocketAddr) -> Router {
        let mut router =
            Router::new().route("/partner/{partnerId}/review-results", post(take_message));
        if listens_on.ip().is_loopback() {
            router = router.route("/partner/trouble", get(read_trouble).put(set_trouble));
        }
        router.layer(DefaultBodyLimit::max(MAX_SEALED_BYTES)).with_state(self)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trouble for the message at hand.
    fn next_trouble(&self) -> Option<Trouble> {
        let mut memory = self.memory();
        let order = memory.order.as_mut()?;
        let trouble = order.trouble;
        match &mut order.times {
            Some(0) => return None,
            Some(times) => *times -= 1,
            None => {}
        }
        trouble
    }

    async fn keys(&self, partner: PartnerId) -> Result<Vec<KeyReference>, Problem> {
        if let Some(keys) = &self.keys {
            return Ok(keys.to_vec());
        }
        let now = self.db.now().await.map_err(broken)?;
        receiving_keys(&self.db, partner, now).await.map_err(broken)
    }
}

fn broken(error: impl std::error::Error) -> Problem {
    tracing::error!(%error, "the partner simulator's database failed");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "database-error", "the database failed")
}

async fn read_trouble(State(partner): State<PartnerSimulator>) -> Json<Order> {
    Json(partner.memory().order.unwrap_or(Order { trouble: None, times: None }))
}

async fn set_trouble(
    State(partner): State<PartnerSimulator>,
    body: Bytes,
) -> Result<Json<Order>, Problem> {
    let order: Order = serde_json::from_slice(&body)
        .map_err(|error| Problem::of_request(RequestFault::Malformed(error.to_string())))?;
    partner.set_trouble(order.trouble, order.times);
    Ok(Json(order))
}

/// A message that was proved and opened.
struct Opened {
    suite: &'static dyn Suite,
    keys: Vec<SealKey>,
    plain: Vec<u8>,
}

async fn take_message(
    State(partner): State<PartnerSimulator>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|rejection| {
        Problem::of_request(RequestFault::of_body(&rejection, MAX_SEALED_BYTES))
    })?;
    let id = id.parse().map(PartnerId).map_err(|_| PartnerFault::Unknown.problem())?;
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let key = header(ID_HEADER).unwrap_or_default();
    let received = Received {
        id: key,
        timestamp: header(TIMESTAMP_HEADER).unwrap_or_default(),
        signature: header(SIGNATURE_HEADER).unwrap_or_default(),
        body: &body,
    };
    let trouble = partner.next_trouble();
    match trouble {
        Some(Trouble::Refuse) => return Err(PartnerFault::Refuses.problem()),
        Some(Trouble::ServerError) => return Err(PartnerFault::Fails.problem()),
        _ => {}
    }
    let now = partner.db.now().await.map_err(broken)?.timestamp();
    let opened = open(&partner, id, &received, now).await?;
    let named = serde_json::from_slice::<Value>(&opened.plain).ok();
    let named = named.as_ref().and_then(|body| body.get("idempotencyKey")).and_then(Value::as_str);
    if named != Some(key) {
        let why = "it does not name its own key".to_owned();
        return Err(PartnerFault::Unreadable(why).problem());
    }
    let (state, said) = match trouble {
        Some(Trouble::StateZero) => (0, "told to say state 0"),
        _ => transact!(keep(&partner.db, id, key, &opened.plain)).map_err(broken)?,
    };
    if trouble == Some(Trouble::AcceptThenHang) {
        return std::future::pending().await;
    }
    let answer = json!({ "idempotencyKey": key, "state": state, "message": said }).to_string();
    let message = Message {
        id: key,
        timestamp: now,
        nonce: rand::random::<[u8; NONCE_BYTES]>(),
        plain: answer.as_bytes(),
    };
    answer_sealed(&partner, &opened, &message, trouble)
}

/// Verifies, then decrypts, under any suite of which there is a key.
async fn open(
    partner: &PartnerSimulator,
    id: PartnerId,
    received: &Received<'_>,
    now: i64,
) -> Result<Opened, Problem> {
    let references = partner.keys(id).await?;
    let mut fault = PartnerFault::Unknown;
    for suite in ["jose", "gm"].into_iter().filter_map(suite) {
        let mut keys = Vec::new();
        for one in references.iter().filter(|one| one.suite == suite.name()) {
            let secret = |reference: &str| {
                partner.secrets.read(reference).map_err(|_| PartnerFault::Unknown.problem())
            };
            let (signing, encryption) = (secret(&one.signing)?, secret(&one.encryption)?);
            let key = SealKey::parse(one.key_id.clone(), &signing, &encryption);
            keys.push(key.map_err(|_| PartnerFault::Unknown.problem())?);
        }
        match suite.open(&keys, received, now) {
            Ok(seal::Opened { plain, key }) => {
                // The sender has this key; it may not have our newest yet.
                keys.sort_by_key(|known| known.id != key);
                return Ok(Opened { suite, keys, plain });
            }
            Err(SealError::NoKey) => {}
            Err(error @ (SealError::Shape(_) | SealError::Decryption)) => {
                fault = PartnerFault::Unreadable(error.to_string());
            }
            Err(error) => fault = PartnerFault::Untrusted(error),
        }
    }
    Err(fault.problem())
}

/// Keeps a message once. The same again is accepted again; another one under its key is not.
async fn keep(
    db: &Db,
    partner: PartnerId,
    key: &str,
    plain: &[u8],
) -> Result<(i64, &'static str), counterfoil_db::Error> {
    let body = String::from_utf8_lossy(plain);
    let mut tx = db.begin().await?;
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO partner_received
           (idempotency_key, partner_id, body, received_count, create_time, update_time)
         VALUES (:key, :partner, :body, 1, :now, :now)
         {or_ignore}",
        key = key,
        partner = partner.0,
        body = &*body,
        now = now,
    );
    if tx.execute(insert).await? == 1 {
        tx.commit("partner.received").await?;
        return Ok((1, "kept"));
    }
    let query = sql!(
        "SELECT body FROM partner_received WHERE idempotency_key = :key {for_update}",
        key = key,
    );
    let kept = match tx.row(query).await? {
        Some(row) => row.maybe_text("body")?,
        None => None,
    };
    let update = sql!(
        "UPDATE partner_received SET received_count = received_count + 1, update_time = :now
         WHERE idempotency_key = :key",
        now = now,
        key = key,
    );
    tx.execute(update).await?;
    tx.commit("partner.received_again").await?;
    let is_same = kept.as_deref() == Some(&*body);
    Ok(if is_same { (1, "kept before") } else { (0, "another body under a known key") })
}

fn answer_sealed(
    partner: &PartnerSimulator,
    opened: &Opened,
    message: &Message<'_>,
    trouble: Option<Trouble>,
) -> Result<Response, Problem> {
    let sealed = opened.suite.seal(&opened.keys, message);
    let mut sealed =
        sealed.map_err(|error| PartnerFault::Unreadable(error.to_string()).problem())?;
    let earlier = partner.memory().last_answer.replace(sealed.clone());
    match trouble {
        Some(Trouble::WrongSignature) => {
            // The right form; 32 bytes that no secret of ours makes.
            sealed.signature = format!("v1,{}=", "A".repeat(43));
        }
        Some(Trouble::EarlierAnswer) => sealed = earlier.unwrap_or(sealed),
        _ => {}
    }
    let headers = [
        (header::CONTENT_TYPE, "application/jose".to_owned()),
        (HeaderName::from_static(ID_HEADER), sealed.id),
        (HeaderName::from_static(TIMESTAMP_HEADER), sealed.timestamp),
        (HeaderName::from_static(SIGNATURE_HEADER), sealed.signature),
    ];
    Ok((headers, sealed.body).into_response())
}
