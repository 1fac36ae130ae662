//! What payment asks of a partner, wherever that runs.

use counterfoil_db::Instant;

/// A partner's inbox. Never called while a transaction is open.
#[async_trait::async_trait]
pub trait PartnerInbox: Send + Sync {
    /// Seals, signs and sends one chunk; verifies and opens the answer.
    async fn deliver(&self, delivery: &Delivery) -> DeliveryAnswer;
}

/// One chunk on its way. The same key always carries the same body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The idempotency key, which is also the message's id.
    pub key: String,
    /// Where the partner takes it.
    pub endpoint: String,
    /// The keys that count now, the one to seal with first.
    pub keys: Vec<KeyReference>,
    /// When it is sent.
    pub sent: Instant,
    /// The plain body.
    pub body: String,
}

/// Where a key's secrets are kept. The database holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    /// The key's name, which both parties know.
    pub key_id: String,
    /// The suite's name.
    pub suite: String,
    /// Where the signing secret is.
    pub signing: String,
    /// Where the encryption key is.
    pub encryption: String,
}

/// What is known after a delivery. Unknown is not failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryAnswer {
    /// Verified, decrypted, and its state is 1.
    Accepted {
        /// The plain answer.
        response: String,
        /// The HTTP status.
        http_status: u16,
    },
    /// Certainly not accepted: nothing was sent, or the partner says so.
    Refused {
        /// A stable code, the partner's own where it gave one.
        code: String,
        /// What it said.
        message: String,
        /// The HTTP status; none when nothing was sent.
        http_status: Option<u16>,
    },
    /// Sent, and nobody knows what became of it.
    Unknown {
        /// What happened.
        message: String,
        /// The HTTP status; none when no answer came.
        http_status: Option<u16>,
    },
}

impl DeliveryAnswer {
    /// Whether the partner was there at all. One that is not is left in peace for this run.
    pub fn was_answered(&self) -> bool {
        match self {
            DeliveryAnswer::Accepted { .. } => true,
            DeliveryAnswer::Refused { http_status, .. }
            | DeliveryAnswer::Unknown { http_status, .. } => http_status.is_some(),
        }
    }
}
