//! What is due: batches that wait, and pushes whose verdict is missing.

use counterfoil_db::{Db, Instant, Read, sql};

use crate::treasury::batch_creation::Target;
use crate::treasury::{MAX_PUSH_COUNT, TreasuryError};

/// Batches of an order read at a time.
const ORDER_PAGE: u32 = 200;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// A batch to be pushed.
    Batch(i64),
    /// A push to be asked about.
    Push(i64),
}

/// What is due now, at most `limit`. Half of the places are kept for pushes without a verdict, and
/// what either side leaves goes to the other.
///
/// # Errors
/// When the database fails.
pub async fn due(db: &Db, limit: u32) -> Result<Vec<Due>, TreasuryError> {
    let now = db.now().await?;
    let mut batches = waiting(db, now, limit).await?;
    let mut pushes = unsettled(db, now, limit).await?;
    let limit = limit as usize;
    let for_pushes = pushes.len().min((limit / 2).max(limit.saturating_sub(batches.len())));
    pushes.truncate(for_pushes);
    batches.truncate(limit - for_pushes);
    let pushes = pushes.into_iter().map(Due::Push);
    Ok(pushes.chain(batches.into_iter().map(Due::Batch)).collect())
}

/// NULL is due. The order must still be at 40: nothing is paid for another one.
async fn waiting(db: &Db, now: Instant, limit: u32) -> Result<Vec<i64>, TreasuryError> {
    let query = sql!(
        "SELECT b.id FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_order o
           ON o.id = b.payment_order_id AND o.deleted = 0 AND o.status = 40
         WHERE b.deleted = 0 AND b.status IN ('WAIT_PUSH', 'PUSH_FAIL') AND b.push_count < :most
           AND (b.next_handle_time IS NULL OR b.next_handle_time <= :now)
         ORDER BY b.push_count, b.id LIMIT :limit",
        most = MAX_PUSH_COUNT,
        now = now,
        limit = limit,
    );
    ids(db, query).await
}

async fn unsettled(db: &Db, now: Instant, limit: u32) -> Result<Vec<i64>, TreasuryError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_push
         WHERE push_state IN ('SENDING', 'UNKNOWN')
           AND (lease_expire_time IS NULL OR lease_expire_time <= :now)
         ORDER BY send_count, id LIMIT :limit",
        now = now,
        limit = limit,
    );
    ids(db, query).await
}

/// Batches of an order that wait to be pushed, after `after`.
pub async fn of_order(db: &Db, target: Target, after: i64) -> Result<Vec<i64>, TreasuryError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND deleted = 0 AND status = 'WAIT_PUSH' AND id > :after
         ORDER BY id LIMIT :limit",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        after = after,
        limit = ORDER_PAGE,
    );
    ids(db, query).await
}

async fn ids(db: &Db, query: counterfoil_db::Query) -> Result<Vec<i64>, TreasuryError> {
    let rows = db.rows(query).await?;
    Ok(rows.iter().map(|row| row.int("id")).collect::<Result<_, _>>()?)
}
