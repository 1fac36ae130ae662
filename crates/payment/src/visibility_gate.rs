//! The visibility gate: what shows or uses the refreshed state of an order waits until it is there.
//!
//! Source: payment-flow.md "Visibility gate".

use counterfoil_db::{Read, sql};
use counterfoil_protocol::OrderId;

use crate::PaymentError;

/// Passes unless the order's newest finalized progress is not `refresh_ready` yet. An order
/// without such a progress passes: nothing of it waits for a refresh.
///
/// # Errors
/// [`PaymentError::RefreshPending`], HTTP 409; the database's.
pub async fn check(from: &impl Read, order: OrderId) -> Result<(), PaymentError> {
    let newest = sql!(
        "SELECT refresh_ready, phase FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND main_task_status = 'SUCCESS' AND deleted = 0
         ORDER BY id DESC LIMIT 1",
        order = order.0,
    );
    match from.row(newest).await? {
        Some(row) if row.int("refresh_ready")? != 1 => {
            Err(PaymentError::RefreshPending { order, phase: row.text("phase")? })
        }
        Some(_) | None => Ok(()),
    }
}
