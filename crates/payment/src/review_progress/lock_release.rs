//! LOCK_RELEASE: ACTIVE locks of UNQUALIFIED lines are let go, by lock id; PAYABLE ones stay.
//!
//! Our own flow locks PAYABLE lines only, so there is normally nothing to release; imported and
//! historical data may hold such locks. Zero to release still passes through this phase.

use counterfoil_db::{Query, Read, Tx, sql};
use counterfoil_task::{Progress, Turn, TurnEnd, WorkError};

use super::facts::Progressed;
use crate::kinds::STATUS_REFRESH;
use crate::status_refresh::{Source, first_waiting};

pub(super) async fn one_batch(id: i64, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
    let mut tx = turn.begin().await?;
    let facts = Progressed::read(&*tx, id).await?;
    let locks = unqualified_locks(&tx, &facts).await?;
    if let Some(last) = locks.last().copied() {
        let released = release(&mut tx, &locks).await?;
        let progress = Progress::none()
            .set("lock_cursor_id", last)
            .add("lock_release_success", released)
            .set("phase_status", "INIT");
        return tx.let_go("review_progress.lock_release", progress, TurnEnd::Advanced).await;
    }
    if facts.locks_released != facts.locks_expected {
        let message = format!(
            "{} locks of UNQUALIFIED lines were to be released and {} were: somebody else \
             released or took one",
            facts.locks_expected, facts.locks_released
        );
        return Err(WorkError::failed("lock-release-count", message));
    }
    let source = Source::ReviewApproved;
    for shard in first_waiting(&*tx, source, facts.id.0, KICKED).await? {
        tx.kick(&STATUS_REFRESH, shard).await?;
    }
    let progress = Progress::none().set("phase", "REFRESH_SHARD").set("phase_status", "INIT");
    tx.let_go("review_progress.locks_released", progress, TurnEnd::Finished).await
}

/// Shards that are kicked at once; each one that ends kicks on, and the scan finds the rest.
const KICKED: u32 = 8;

async fn unqualified_locks(tx: &Tx, facts: &Progressed) -> Result<Vec<i64>, WorkError> {
    let query = sql!(
        "SELECT k.id
         FROM fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k ON k.order_bill_id = l.id
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 20 AND l.deleted = 0
           AND k.payment_order_id + 0 = :order AND k.data_version = :data
           AND k.lock_status = 'ACTIVE' AND k.id > :cursor
         ORDER BY k.id LIMIT :size",
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
        cursor = facts.lock_cursor,
        size = facts.batch,
    );
    tx.rows(query).await?.iter().map(|row| Ok(row.int("id")?)).collect()
}

/// Guard: ACTIVE.
async fn release(tx: &mut Tx, locks: &[i64]) -> Result<u64, WorkError> {
    let update = Query::new(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_scene = 'REVIEW_RELEASE',
             release_reason = 'REVIEW_APPROVED_UNQUALIFIED', release_time = :now,
             lock_key = station_id || ':' || bill_yearmonth || ':RELEASED:' || id,
             update_time = :now
         WHERE id IN :ids AND lock_status = 'ACTIVE'",
    )
    .bind("now", tx.now())
    .bind_list("ids", locks.iter().copied());
    Ok(tx.execute(update).await?)
}
