//! The proof pack of an order: what each stage proves, in counts and sums that can be compared, and
//! the evidence it rests on. Reads only.
//!
//! selected = locked = approved = pushed = confirmed is stated, never assumed: each figure is
//! counted from its own table, and a stage that has not come is empty, not equal.
//! Source: issue 3, "Commands"; payment-flow.md "Visibility gate".

mod evidence;
mod figures;

use counterfoil_db::{Db, Instant};
use counterfoil_protocol::OrderId;
use serde::Serialize;

use crate::PaymentError;
use crate::order_view::{self, OrderRow, SixKinds};

pub use evidence::{BatchEvidence, DecisionEvidence, DeliveryEvidence, PushEvidence};
pub use figures::{Figure, Figures};

/// Rows of one kind of evidence at most; what is left out is counted.
pub const MAX_ROWS: u32 = 10_000;

/// Everything that an order's end rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProofPack {
    /// When it was read.
    pub read_at: Instant,
    /// The order.
    pub order: OrderRow,
    /// Six kinds of success, each with its evidence.
    pub success: SixKinds,
    /// The stages in counts and sums.
    pub figures: Figures,
    /// The reviewers' decisions as they came in.
    pub decisions: Vec<DecisionEvidence>,
    /// What was sent to partners and what they answered.
    pub deliveries: Vec<DeliveryEvidence>,
    /// Push batches.
    pub batches: Vec<BatchEvidence>,
    /// Files and messages that were pushed, with their hashes.
    pub pushes: Vec<PushEvidence>,
    /// Whether some list above was cut at its limit.
    pub is_cut: bool,
}

/// The figures of an order alone, for a page that shows them.
///
/// # Errors
/// The database failed.
pub async fn figures(db: &Db, order: &OrderRow) -> Result<Figures, PaymentError> {
    Ok(figures::read(db, order).await?)
}

/// Reads the pack of one order.
///
/// # Errors
/// [`PaymentError::OrderNotFound`].
pub async fn read(db: &Db, order: OrderId) -> Result<ProofPack, PaymentError> {
    let view = order_view::one(db, order).await?;
    let figures = figures::read(db, &view.order).await?;
    let decisions = evidence::decisions(db, order).await?;
    let deliveries = evidence::deliveries(db, order).await?;
    let batches = evidence::batches(db, order).await?;
    let pushes = evidence::pushes(db, order).await?;
    let longest = [decisions.len(), deliveries.len(), batches.len(), pushes.len()];
    Ok(ProofPack {
        read_at: db.now().await?,
        order: view.order,
        success: view.success,
        figures,
        decisions,
        deliveries,
        batches,
        pushes,
        is_cut: longest.into_iter().any(|rows| rows >= MAX_ROWS as usize),
    })
}
