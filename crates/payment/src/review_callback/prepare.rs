//! An approval's PREPARE: the lines are counted, the order's target is decided, and the progress
//! row is made, or found again as it was. Cursors are never reset.

use counterfoil_db::{Read, Row, Tx, sql};
use counterfoil_protocol::ProgressId;
use counterfoil_task::WorkError;

use super::{CallbackError, CallbackPayload, Identity};

/// The lines of a version by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    total: i64,
    payable: i64,
    unqualified: i64,
    /// Lines of the version that another round wrote.
    of_other_rounds: i64,
}

impl Counts {
    /// WAIT_PAY(40), or NO_NEED_PAY(55) where there is nothing to pay.
    fn target(self) -> Result<i64, String> {
        if self.total == 0 {
            return Err("the published version has none".into());
        }
        if self.payable + self.unqualified != self.total {
            return Err(format!(
                "{} are PAYABLE and {} UNQUALIFIED, but there are {}",
                self.payable, self.unqualified, self.total
            ));
        }
        if self.of_other_rounds > 0 {
            return Err(format!("{} belong to another round", self.of_other_rounds));
        }
        Ok(if self.payable > 0 { 40 } else { 55 })
    }
}

/// Makes or finds the progress row of this approval.
pub(super) async fn prepare(
    tx: &mut Tx,
    identity: &Identity,
    payload: &CallbackPayload,
    task: i64,
) -> Result<ProgressId, WorkError> {
    let counts = count(tx, identity).await?;
    let wrong = |why| CallbackError::Lines { order: identity.order, why };
    let target = counts.target().map_err(wrong)?;
    insert_unless_known(tx, identity, payload, task, counts, target).await?;
    let stored = read_back(tx, identity).await?;
    let aims_at = stored.int("target_order_status")?;
    if aims_at != target {
        let id = stored.int("id")?;
        let why = format!("progress {id} aims at status {aims_at}, the lines at {target}");
        return Err(wrong(why).into());
    }
    let agrees = stored.int("total_count")? == counts.total
        && stored.int("payable_count")? == counts.payable
        && stored.int("unqualified_count")? == counts.unqualified;
    if !agrees {
        let why = format!(
            "progress {} was prepared for {} lines, {} PAYABLE and {} UNQUALIFIED; now there are \
             {}, {} and {}",
            stored.int("id")?,
            stored.int("total_count")?,
            stored.int("payable_count")?,
            stored.int("unqualified_count")?,
            counts.total,
            counts.payable,
            counts.unqualified,
        );
        return Err(wrong(why).into());
    }
    adopt(tx, &stored, task).await?;
    Ok(ProgressId(stored.int("id")?))
}

async fn count(tx: &Tx, identity: &Identity) -> Result<Counts, WorkError> {
    let query = sql!(
        "SELECT COUNT(*) AS total,
                COUNT(CASE WHEN line_type = 10 THEN 1 END) AS payable,
                COUNT(CASE WHEN line_type = 20 THEN 1 END) AS unqualified,
                COUNT(CASE WHEN submit_round <> :round THEN 1 END) AS of_other_rounds
         FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND deleted = 0",
        round = identity.round.0,
        order = identity.order.0,
        data = identity.data_version.0,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(Counts { total: 0, payable: 0, unqualified: 0, of_other_rounds: 0 });
    };
    Ok(Counts {
        total: row.int("total")?,
        payable: row.int("payable")?,
        unqualified: row.int("unqualified")?,
        of_other_rounds: row.int("of_other_rounds")?,
    })
}

async fn insert_unless_known(
    tx: &mut Tx,
    identity: &Identity,
    payload: &CallbackPayload,
    task: i64,
    counts: Counts,
    target: i64,
) -> Result<(), WorkError> {
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO fi_resident_income_payment_review_callback_progress
           (payment_order_id, data_version, review_plan_id, submit_round, approval_attempt,
            async_task_id, phase, phase_status, main_task_status, target_order_status,
            target_business_status, review_time, review_remark, total_count, payable_count,
            unqualified_count, create_time, update_time)
         VALUES (:order, :data, :plan, :round, :attempt, :task, 'PREPARE', 'SUCCESS', 'RUNNING',
            :target,
            (SELECT o.business_status FROM fi_resident_income_payment_order o
              WHERE o.id = :order),
            :time, :remark, :total, :payable, :unqualified, :now, :now)
         {or_ignore}",
        order = identity.order.0,
        data = identity.data_version.0,
        plan = identity.plan.0,
        round = identity.round.0,
        attempt = identity.attempt.0,
        task = task,
        target = target,
        time = payload.time(),
        remark = payload.remark(),
        total = counts.total,
        payable = counts.payable,
        unqualified = counts.unqualified,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}

async fn read_back(tx: &Tx, identity: &Identity) -> Result<Row, WorkError> {
    let query = sql!(
        "SELECT id, async_task_id, target_order_status, total_count, payable_count,
                unqualified_count
         FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND data_version = :data AND review_plan_id = :plan
           AND submit_round = :round AND approval_attempt = :attempt {for_update}",
        order = identity.order.0,
        data = identity.data_version.0,
        plan = identity.plan.0,
        round = identity.round.0,
        attempt = identity.attempt.0,
    );
    tx.row(query).await?.ok_or_else(|| {
        let message =
            format!("the progress of order {} was neither made nor found", identity.order);
        WorkError::failed("progress-missing", message)
    })
}

/// A row that an earlier task made, or that names none, is this task's: FINALIZE ends this one.
async fn adopt(tx: &mut Tx, stored: &Row, task: i64) -> Result<(), WorkError> {
    if stored.maybe_int("async_task_id")? == Some(task) {
        return Ok(());
    }
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET async_task_id = :task, update_time = :now
         WHERE id = :id AND main_task_status = 'RUNNING'",
        task = task,
        now = now,
        id = stored.int("id")?,
    );
    tx.execute(update).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_must_be_of_one_of_the_two_types_and_of_this_round() {
        let table = [
            ((3, 2, 1, 0), Some(40)),
            ((3, 3, 0, 0), Some(40)),
            ((3, 0, 3, 0), Some(55)),
            ((0, 0, 0, 0), None),
            ((3, 1, 1, 0), None),
            ((3, 2, 1, 1), None),
        ];
        for ((total, payable, unqualified, of_other_rounds), target) in table {
            let counts = Counts { total, payable, unqualified, of_other_rounds };
            assert_eq!(counts.target().ok(), target, "{counts:?}");
        }
    }
}
