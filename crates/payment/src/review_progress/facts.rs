//! The progress row as its phases read it.

use counterfoil_db::{Instant, Read, sql};
use counterfoil_protocol::{
    ApprovalAttempt, DataVersion, OrderId, PlanId, ProgressId, SubmitRound,
};
use counterfoil_task::WorkError;

use crate::review_callback::OrderFacts;

/// Lines or locks a batch at most.
const MAX_BATCH: i64 = 1000;

/// What the phases need of a progress row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Progressed {
    pub(super) id: ProgressId,
    pub(super) order: OrderId,
    pub(super) data: DataVersion,
    pub(super) plan: PlanId,
    pub(super) round: SubmitRound,
    pub(super) attempt: ApprovalAttempt,
    pub(super) task: Option<i64>,
    pub(super) target: i64,
    pub(super) time: Option<Instant>,
    pub(super) remark: Option<String>,
    pub(super) total: i64,
    pub(super) payable: i64,
    pub(super) unqualified: i64,
    pub(super) payable_updated: i64,
    pub(super) unqualified_updated: i64,
    pub(super) payable_cursor: i64,
    pub(super) unqualified_cursor: i64,
    pub(super) lock_cursor: i64,
    pub(super) locks_expected: i64,
    pub(super) locks_released: i64,
    pub(super) batch: i64,
}

impl Progressed {
    pub(super) async fn read(from: &impl Read, id: i64) -> Result<Progressed, WorkError> {
        let query = sql!(
            "SELECT id, payment_order_id, data_version, review_plan_id, submit_round,
                    approval_attempt, async_task_id, target_order_status, review_time,
                    review_remark, total_count, payable_count, unqualified_count,
                    payable_updated_count, unqualified_updated_count, payable_cursor_id,
                    unqualified_cursor_id, lock_cursor_id, lock_release_expected,
                    lock_release_success, COALESCE(batch_size, 0) AS batch_size
             FROM fi_resident_income_payment_review_callback_progress
             WHERE id = :id AND deleted = 0",
            id = id,
        );
        let Some(row) = from.row(query).await? else {
            return Err(WorkError::failed("progress-missing", format!("progress {id} is gone")));
        };
        let batch = row.int("batch_size")?;
        Ok(Progressed {
            id: ProgressId(row.int("id")?),
            order: OrderId(row.int("payment_order_id")?),
            data: DataVersion(row.int("data_version")?),
            plan: PlanId(row.int("review_plan_id")?),
            round: SubmitRound(row.int("submit_round")?),
            attempt: ApprovalAttempt(row.int("approval_attempt")?),
            task: row.maybe_int("async_task_id")?,
            target: row.int("target_order_status")?,
            time: row.maybe_instant("review_time")?,
            remark: row.maybe_text("review_remark")?,
            total: row.int("total_count")?,
            payable: row.int("payable_count")?,
            unqualified: row.int("unqualified_count")?,
            payable_updated: row.int("payable_updated_count")?,
            unqualified_updated: row.int("unqualified_updated_count")?,
            payable_cursor: row.int("payable_cursor_id")?,
            unqualified_cursor: row.int("unqualified_cursor_id")?,
            lock_cursor: row.int("lock_cursor_id")?,
            locks_expected: row.int("lock_release_expected")?,
            locks_released: row.int("lock_release_success")?,
            batch: if batch <= 0 { MAX_BATCH } else { batch.min(MAX_BATCH) },
        })
    }

    /// Whether the approval is still about what the order is.
    pub(super) fn is_of(&self, order: Option<&OrderFacts>) -> bool {
        order.is_some_and(|order| order.is_at(self.data, self.plan, self.round))
    }
}
