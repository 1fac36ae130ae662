//! The gate before every side effect: the main business is effective.

use counterfoil_db::{Instant, Read, sql};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, ProgressId, SubmitRound};
use counterfoil_task::WorkError;

/// A finalized review callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressFacts {
    /// The progress row.
    pub progress: ProgressId,
    /// The approved order.
    pub order: OrderId,
    /// Its approved version.
    pub data_version: DataVersion,
    /// Its approved round.
    pub round: SubmitRound,
    /// The plan that approved it.
    pub plan: PlanId,
    /// PAYABLE lines.
    pub payable_count: i64,
    /// UNQUALIFIED lines.
    pub unqualified_count: i64,
    /// When the main business became effective.
    pub finalized: Instant,
}

/// The facts, or an ordinary failure while the main business is not effective. A refresh that is
/// still under way is no obstacle.
pub(super) async fn pass(
    from: &impl Read,
    progress: ProgressId,
) -> Result<ProgressFacts, WorkError> {
    let query = sql!(
        "SELECT payment_order_id, data_version, submit_round, review_plan_id, payable_count,
                unqualified_count, phase, main_task_status, finalize_time
         FROM fi_resident_income_payment_review_callback_progress
         WHERE id = :progress AND deleted = 0",
        progress = progress.0,
    );
    let Some(row) = from.row(query).await? else {
        return Err(WorkError::failed(
            "side-effect-progress-missing",
            format!("there is no live review callback progress {progress}"),
        ));
    };
    let main = row.text("main_task_status")?;
    let finalized = row.maybe_instant("finalize_time")?;
    let (true, Some(finalized)) = (main == "SUCCESS", finalized) else {
        let phase = row.text("phase")?;
        let when = if finalized.is_some() { "with" } else { "without" };
        return Err(WorkError::failed(
            "side-effect-not-open",
            format!(
                "progress {progress} is not effective yet: main business {main}, phase {phase}, \
                 {when} a finalize time"
            ),
        ));
    };
    Ok(ProgressFacts {
        progress,
        order: OrderId(row.int("payment_order_id")?),
        data_version: DataVersion(row.int("data_version")?),
        round: SubmitRound(row.int("submit_round")?),
        plan: PlanId(row.int("review_plan_id")?),
        payable_count: row.int("payable_count")?,
        unqualified_count: row.int("unqualified_count")?,
        finalized,
    })
}
