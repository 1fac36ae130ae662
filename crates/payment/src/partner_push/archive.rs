//! Bodies of settled deliveries of ended orders leave the external log for a table that nobody
//! scans. The row itself stays: its key must never be used again.

use counterfoil_db::{Db, Instant, Query, Read, Result, sql, transact};

/// Deliveries whose bodies leave in one transaction at most.
pub const MAX_ARCHIVED: u32 = 1000;

/// When the oldest delivery was settled whose bodies may leave.
///
/// # Errors
/// The database's.
pub async fn oldest_archivable(db: &Db, before: Instant) -> Result<Option<Instant>> {
    let row = db.row(archivable(before, 1)).await?;
    row.map(|row| row.instant("update_time")).transpose()
}

/// Moves the bodies of deliveries that were accepted before `before`, of orders that are PAID,
/// NO_NEED_PAY or CANCELLED, the oldest first. Answers how many.
///
/// # Errors
/// The database's; nothing is moved then.
pub async fn archive_bodies(db: &Db, before: Instant, most: u32) -> Result<u64> {
    transact!(try_archive(db, before, most))
}

fn archivable(before: Instant, most: u32) -> Query {
    sql!(
        "SELECT l.id, l.update_time
         FROM fi_resident_income_payment_external_log l
         JOIN fi_resident_income_payment_order o ON o.id = l.payment_order_id
         WHERE l.status = 'SUCCESS' AND l.deleted = 0 AND l.update_time < :before
           AND l.request_body IS NOT NULL AND o.status IN (50, 55, 90)
         ORDER BY l.id LIMIT :most",
        before = before,
        most = most.clamp(1, MAX_ARCHIVED),
    )
}

async fn try_archive(db: &Db, before: Instant, most: u32) -> Result<u64> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let rows = tx.rows(archivable(before, most)).await?;
    let ids = rows.iter().map(|row| row.int("id")).collect::<Result<Vec<_>>>()?;
    if ids.is_empty() {
        tx.rollback().await?;
        return Ok(0);
    }
    let kept = sql!(
        "{insert_ignore} INTO fi_resident_income_payment_external_log_archive
           (log_id, request_body, response_body, archived_time)
         SELECT id, request_body, response_body, :now
         FROM fi_resident_income_payment_external_log
         WHERE id IN :ids AND status = 'SUCCESS' AND request_body IS NOT NULL
         {or_ignore}",
        now = now,
    );
    tx.execute(kept.bind_list("ids", ids.iter().copied())).await?;
    // `update_time` stays: it says when the delivery was settled.
    let emptied = Query::new(
        "UPDATE fi_resident_income_payment_external_log
         SET request_body = NULL, response_body = NULL
         WHERE id IN :ids AND status = 'SUCCESS' AND request_body IS NOT NULL",
    );
    let moved = tx.execute(emptied.bind_list("ids", ids)).await?;
    tx.commit("partner_push.archive").await?;
    Ok(moved)
}
