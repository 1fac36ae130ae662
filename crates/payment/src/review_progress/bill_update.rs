//! BILL_UPDATE: what was decided is written onto the lines, PAYABLE first, then UNQUALIFIED, each
//! type with its own cursor, a batch a turn.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_task::{Progress, Turn, TurnEnd, Unit, WorkError};

use super::facts::Progressed;
use super::supersede;
use crate::review_callback::OrderFacts;

/// A row that S07 has just prepared enters the phase with its first lease.
/// Guard: PREPARE/SUCCESS, and the attempt as it was selected.
pub(super) async fn enter(tx: &mut Tx, unit: &Unit) -> Result<(), WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET phase = 'BILL_UPDATE', phase_status = 'INIT', update_time = :now
         WHERE id = :id AND phase = 'PREPARE' AND phase_status = 'SUCCESS'
           AND main_task_status = 'RUNNING' AND running_attempt = :version",
        now = now,
        id = unit.id,
        version = unit.version,
    );
    tx.execute(update).await?;
    Ok(())
}

/// What one batch covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineType {
    Payable,
    Unqualified,
}

pub(super) async fn one_batch(id: i64, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
    let mut tx = turn.begin().await?;
    let facts = Progressed::read(&*tx, id).await?;
    let order = OrderFacts::read(&*tx, facts.order).await?;
    if !facts.is_of(order.as_ref()) {
        return supersede::give_up(tx, &facts).await;
    }
    if let Some(order) = order.filter(|order| order.status != 20) {
        let message =
            format!("order {} is at {}, not under review (20)", facts.order, order.status);
        return Err(WorkError::failed("order-state", message));
    }
    let (mut payable, mut unqualified) = (facts.payable_updated, facts.unqualified_updated);
    let mut progress = Progress::none();
    for line_type in [LineType::Payable, LineType::Unqualified] {
        let Some(last) = last_of_batch(&tx, &facts, line_type).await? else {
            continue; // nothing left of this type: it takes no turn
        };
        let updated = update(&mut tx, &facts, line_type, last).await?;
        let count = i64::try_from(updated).unwrap_or(i64::MAX);
        (progress, payable, unqualified) = match line_type {
            LineType::Payable => (
                progress.set("payable_cursor_id", last).add("payable_updated_count", updated),
                payable + count,
                unqualified,
            ),
            LineType::Unqualified => (
                progress
                    .set("unqualified_cursor_id", last)
                    .add("unqualified_updated_count", updated),
                payable,
                unqualified + count,
            ),
        };
        let all = payable >= facts.payable && unqualified >= facts.unqualified;
        let phase = if all { "FINALIZE" } else { "BILL_UPDATE" };
        let progress = progress.set("phase", phase).set("phase_status", "INIT");
        return tx.let_go("review_progress.bill_update", progress, TurnEnd::Advanced).await;
    }
    // Counters that fell short are FINALIZE's to refuse: it names them.
    let progress = progress.set("phase", "FINALIZE").set("phase_status", "INIT");
    tx.let_go("review_progress.bills_updated", progress, TurnEnd::Advanced).await
}

async fn last_of_batch(
    tx: &Tx,
    facts: &Progressed,
    line_type: LineType,
) -> Result<Option<i64>, WorkError> {
    let (code, cursor) = match line_type {
        LineType::Payable => (10, facts.payable_cursor),
        LineType::Unqualified => (20, facts.unqualified_cursor),
    };
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM fi_resident_income_payment_order_bill
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
             AND line_type = :line_type AND deleted = 0 AND id > :cursor
           ORDER BY id LIMIT :size) AS batch",
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
        line_type = code,
        cursor = cursor,
        size = facts.batch,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

/// The range (cursor, last] of one type. Guard: a line that is paid, or concluded otherwise, is
/// left alone; FINALIZE then misses it in the counters.
async fn update(
    tx: &mut Tx,
    facts: &Progressed,
    line_type: LineType,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let text = match line_type {
        LineType::Payable => {
            "UPDATE fi_resident_income_payment_order_bill
             SET line_status = 20, update_time = :now
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 10 AND line_status IN (10, 20) AND deleted = 0
               AND id > :cursor AND id <= :last"
        }
        LineType::Unqualified => {
            "UPDATE fi_resident_income_payment_order_bill
             SET line_status = 50, unqualified_effective_time = :time, update_time = :now
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 20 AND line_status IN (10, 50) AND deleted = 0
               AND id > :cursor AND id <= :last"
        }
    };
    let cursor = match line_type {
        LineType::Payable => facts.payable_cursor,
        LineType::Unqualified => facts.unqualified_cursor,
    };
    let update = sql!(
        text,
        now = now,
        time = facts.time.unwrap_or(now),
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
        cursor = cursor,
        last = last,
    );
    Ok(tx.execute(update).await?)
}
