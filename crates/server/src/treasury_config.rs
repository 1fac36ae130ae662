//! How the treasury is configured.

use serde::{Deserialize, Serialize};

/// How orders are paid.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TreasuryConfig {
    /// How new batches are pushed: `iso20022-pain001` or `http-treasury`.
    pub strategy: String,
    /// The folder that payment files are written to.
    pub outbox: String,
    /// Which characters the bank takes: `printable` or `sepa`.
    pub characters: String,
    /// Where the HTTP treasury takes pushes; empty = there is none.
    pub url: String,
    /// Whether it takes identical bytes under a known Idempotency-Key for the same push. Only then
    /// is a push without a verdict sent again.
    pub idempotent: bool,
    /// How long a call to it may take, in milliseconds.
    pub timeout_ms: u64,
    /// A Redis that keeps two processes from creating one order's batches at the same time; empty =
    /// the database alone does.
    pub redis_url: String,
    /// Kafka's brokers, to which notices are posted; empty = the notice pushes in this process.
    pub kafka_brokers: String,
    /// The notices' topic.
    pub kafka_topic: String,
    /// The group that whoever listens belongs to.
    pub kafka_group: String,
}

impl Default for TreasuryConfig {
    fn default() -> TreasuryConfig {
        TreasuryConfig {
            strategy: "iso20022-pain001".into(),
            outbox: "treasury-outbox".into(),
            characters: "printable".into(),
            url: String::new(),
            idempotent: false,
            timeout_ms: 60_000,
            redis_url: String::new(),
            kafka_brokers: String::new(),
            kafka_topic: "resident-income-payment".into(),
            kafka_group: "counterfoil".into(),
        }
    }
}
