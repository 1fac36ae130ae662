//! A rejection: the order goes to REVIEW_REJECTED(30). Its lines, locks and business records stay:
//! a revision takes them over.

use counterfoil_db::{Instant, Tx, sql};
use counterfoil_task::WorkError;

use super::{Identity, LogEntry, write_log};

/// Guard: 20, and still this version, plan and round. Under the order's lock it always wins.
pub(super) async fn reject(
    tx: &mut Tx,
    identity: &Identity,
    time: Instant,
    remark: Option<String>,
) -> Result<(), WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET status = 30, review_finish_time = :time, update_time = :now
         WHERE id = :order AND deleted = 0 AND status = 20 AND current_publish_version = :data
           AND review_plan_id = :plan AND submit_round = :round",
        time = time,
        now = now,
        order = identity.order.0,
        data = identity.data_version.0,
        plan = identity.plan.0,
        round = identity.round.0,
    );
    if tx.execute(update).await? != 1 {
        return Err(WorkError::failed("changed-meanwhile", format!("order {}", identity.order)));
    }
    let entry = LogEntry {
        order: identity.order,
        operation: "REVIEW_REJECTED",
        from: 20,
        to: 30,
        time,
        remark: remark.as_deref(),
        plan: identity.plan,
        data: identity.data_version,
        counts: None,
    };
    Ok(write_log(tx, &entry).await?)
}
