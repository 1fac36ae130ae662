//! One batch: the snapshots of the next payable lines, by line id.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_task::{Lease, Progress, Run, WorkError};

use super::source::Source;

/// Payable lines of a batch.
const BATCH: u32 = 1000;

/// Makes a batch of snapshots and moves the cursor. `None` = no line is left.
pub(super) async fn batch(
    run: &Run<'_>,
    source: &Source,
    lease: &Lease,
    cursor: i64,
) -> Result<Option<i64>, WorkError> {
    let after = cursor.max(source.first.saturating_sub(1));
    let mut tx = run.begin().await?;
    let Some((last, lines)) = end_of_batch(&*tx, source, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    insert(&mut tx, source, after, last).await?;
    let progress = Progress::none().set("cursor_order_bill_id", last).add("processed_count", lines);
    if !lease.advance(&mut tx, progress).await? {
        tx.rollback().await?;
        return Err(WorkError::failed("lease-lost", "the snapshot progress was taken over"));
    }
    tx.commit("bill_snapshot.batch").await?;
    Ok(Some(last))
}

async fn end_of_batch(
    from: &impl Read,
    source: &Source,
    after: i64,
) -> Result<Option<(i64, u64)>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last, COUNT(*) AS line_count FROM (
           SELECT id FROM fi_resident_income_payment_order_bill
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
             AND line_type = 10 AND deleted = 0 AND id > :after AND id <= :end
           ORDER BY id LIMIT :size) AS batch",
        order = source.order.0,
        data = source.data.0,
        round = source.round.0,
        after = after,
        end = source.last,
        size = BATCH,
    );
    let Some(row) = from.row(query).await? else { return Ok(None) };
    let lines = u64::try_from(row.int("line_count")?).unwrap_or(0);
    Ok(row.maybe_int("last")?.map(|last| (last, lines)))
}

/// The payment status is what the bill's records say now, the ledger's first. A line that has its
/// snapshot keeps it.
async fn insert(tx: &mut Tx, source: &Source, after: i64, last: i64) -> Result<u64, WorkError> {
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO fi_resident_income_payment_bill_dimension_snapshot
           (payment_order_id, data_version, order_bill_id, station_id, bill_yearmonth, pay_amount,
            payee_name, payee_account, payee_bank, payment_status, finalize_time,
            source_progress_id, snapshot_version, create_time, update_time)
         SELECT l.payment_order_id, l.data_version, l.id, l.station_id, l.bill_yearmonth,
            l.pay_amount, l.payee_name, l.payee_account, l.payee_bank,
            COALESCE(d.payment_status, p.payment_status, s.payment_status),
            f.finalize_time, f.id, 1, :now, :now
         FROM fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_review_callback_progress f ON f.id = :progress
         LEFT JOIN fi_monthly_income_difference d ON d.id = l.diff_id AND d.deleted = 0
         LEFT JOIN fi_customer_bill s ON s.id = l.small_bill_id AND s.deleted = 0
         LEFT JOIN fi_customer_bill_partner p ON p.id = l.partner_bill_id AND p.deleted = 0
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
         ORDER BY l.id
         {or_ignore}",
        now = now,
        progress = source.progress,
        order = source.order.0,
        data = source.data.0,
        round = source.round.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(insert).await?)
}
