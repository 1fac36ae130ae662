//! The ordinary delivery chain between the two sides: the path that reconciliation checks.

use crate::wire::Envelope;

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// The other side has it.
    Confirmed,
    /// Nobody was there to take it.
    Returned {
        /// Why.
        message: String,
    },
    /// It failed; it may have arrived.
    Unknown {
        /// Why.
        message: String,
    },
}

/// What carries snapshots to consumers.
#[async_trait::async_trait]
pub trait Carrier: Send + Sync {
    /// Carries one snapshot to its consumer.
    async fn carry(&self, envelope: &Envelope) -> Carried;

    /// Carries some; answers what became of each, in their order.
    async fn carry_all(&self, envelopes: &[Envelope]) -> Vec<Carried> {
        let mut carried = Vec::with_capacity(envelopes.len());
        for envelope in envelopes {
            carried.push(self.carry(envelope).await);
        }
        carried
    }
}
