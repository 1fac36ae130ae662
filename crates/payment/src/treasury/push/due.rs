//! What is due: batches that wait, and pushes whose verdict is missing.

use counterfoil_db::{Db, Instant, Query, Read, sql};

use crate::treasury::batch_creation::Target;
use crate::treasury::{MAX_PUSH_COUNT, TreasuryError};

/// Batches of an order read at a time.
const ORDER_PAGE: u32 = 200;

/// A row that is due, with since when it stands as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) id: i64,
    pub(super) since: Instant,
    pub(super) label: String,
    pub(super) times: i64,
}

/// The batch whose turn it is. No next_handle_time is due at once. The order must still be at 40:
/// nothing is paid for another one.
pub(super) async fn batch(db: &Db, now: Instant) -> Result<Option<Due>, TreasuryError> {
    let query = sql!(
        "SELECT b.id, b.update_time, b.batch_no AS label, b.push_count AS times
         FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_order o
           ON o.id = b.payment_order_id AND o.deleted = 0 AND o.status = 40
         WHERE b.deleted = 0 AND b.status IN ('WAIT_PUSH', 'PUSH_FAIL') AND b.push_count < :most
           AND (b.next_handle_time IS NULL OR b.next_handle_time <= :now)
         ORDER BY b.update_time, b.id LIMIT 1",
        most = MAX_PUSH_COUNT,
        now = now,
    );
    one(db, query).await
}

/// The push without a verdict whose turn it is to be asked about.
pub(super) async fn push(db: &Db, now: Instant) -> Result<Option<Due>, TreasuryError> {
    let query = sql!(
        "SELECT id, update_time, message_id AS label, send_count AS times
         FROM fi_resident_income_payment_push
         WHERE push_state IN ('SENDING', 'UNKNOWN')
           AND (lease_expire_time IS NULL OR lease_expire_time <= :now)
         ORDER BY update_time, id LIMIT 1",
        now = now,
    );
    one(db, query).await
}

/// The batches that a person named by their numbers, waiting or failed.
pub(super) async fn named(
    db: &Db,
    numbers: &[String],
    limit: u32,
) -> Result<Vec<Due>, TreasuryError> {
    let query = sql!(
        "SELECT id, update_time, batch_no AS label, push_count AS times
         FROM fi_resident_income_payment_push_batch
         WHERE batch_no IN :numbers AND deleted = 0 AND status IN ('WAIT_PUSH', 'PUSH_FAIL')
         ORDER BY id LIMIT :limit",
        limit = limit,
    );
    let rows = db.rows(query.bind_list("numbers", numbers.iter().map(String::as_str))).await?;
    rows.iter().map(read).collect()
}

fn read(row: &counterfoil_db::Row) -> Result<Due, TreasuryError> {
    Ok(Due {
        id: row.int("id")?,
        since: row.instant("update_time")?,
        label: row.text("label")?,
        times: row.int("times")?,
    })
}

async fn one(db: &Db, query: Query) -> Result<Option<Due>, TreasuryError> {
    db.row(query).await?.as_ref().map(read).transpose()
}

/// Batches of an order that wait to be pushed, after `after`.
///
/// # Errors
/// When the database fails.
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
    let rows = db.rows(query).await?;
    Ok(rows.iter().map(|row| row.int("id")).collect::<Result<_, _>>()?)
}
