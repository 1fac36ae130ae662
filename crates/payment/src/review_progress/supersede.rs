//! An approval that the order left behind: its progress is SUPERSEDED, for good, and its S07 task
//! ends with the note of a stale decision.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_protocol::OrderId;
use counterfoil_task::{Held, Progress, TurnEnd, WorkError, end_handed_over};

use super::facts::Progressed;
use super::finalize::RECHECK_VIOLATED;
use crate::PaymentError;
use crate::kinds::REVIEW_CALLBACK;
use crate::review_callback::STALE_NOTE;

/// A turn that finds the order moved on.
pub(super) async fn give_up(mut tx: Held<'_>, facts: &Progressed) -> Result<TurnEnd, WorkError> {
    if let Some(task) = facts.task {
        end_handed_over(&mut tx, &REVIEW_CALLBACK, task, Some(STALE_NOTE)).await?;
    }
    let progress =
        Progress::none().set("main_task_status", "SUPERSEDED").set("phase_status", "INIT");
    tx.let_go("review_progress.superseded", progress, TurnEnd::GivenUp).await
}

/// Whether a decision is being applied to this order: its progress is main RUNNING and not parked.
/// Then the order can be neither revised nor cancelled.
pub(crate) async fn is_review_being_applied(
    from: &impl Read,
    order: OrderId,
) -> Result<bool, PaymentError> {
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_review_callback_progress p
         JOIN fi_resident_income_payment_order o
           ON o.id = p.payment_order_id AND o.current_publish_version = p.data_version
          AND o.submit_round = p.submit_round AND o.status = 20
         WHERE p.payment_order_id = :order AND p.deleted = 0 AND p.main_task_status = 'RUNNING'
           AND NOT (p.phase = 'FINALIZE' AND p.phase_status = 'FAILED'
                    AND COALESCE(p.last_error_code, '') = :parked)",
        order = order.0,
        parked = RECHECK_VIOLATED,
    );
    Ok(from.count(query).await? > 0)
}

/// Under the order's row lock, when it is revised or cancelled: whatever progress is parked is
/// superseded, and its task has ended.
pub(crate) async fn supersede_parked(tx: &mut Tx, order: OrderId) -> Result<(), PaymentError> {
    let running = sql!(
        "SELECT id, async_task_id FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND deleted = 0 AND main_task_status = 'RUNNING'
         ORDER BY id {for_update}",
        order = order.0,
    );
    let now = tx.now();
    for row in tx.rows(running).await? {
        if let Some(task) = row.maybe_int("async_task_id")? {
            end_handed_over(tx, &REVIEW_CALLBACK, task, Some(STALE_NOTE)).await?;
        }
        let update = sql!(
            "UPDATE fi_resident_income_payment_review_callback_progress
             SET main_task_status = 'SUPERSEDED',
                 lease_expire_time = NULL, update_time = :now
             WHERE id = :id AND main_task_status = 'RUNNING'",
            now = now,
            id = row.int("id")?,
        );
        tx.execute(update).await?;
    }
    Ok(())
}
