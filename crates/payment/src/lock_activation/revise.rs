//! Step 3: the source version's locks are kept for the target version, or released.
//!
//! A lock's target line is found by the source line it names: `+ 0` keeps the order's indexes out.
//! Statistics know nothing of lines that S03 wrote a moment ago; offered order and version,
//! PostgreSQL expected one line of the target version and walked all of them for every lock. And
//! it is counted: no planner turns a count into a join that reads the whole version, or the whole
//! table, for every batch.

use counterfoil_db::{Read, Text, Tx, sql, transact};
use counterfoil_task::{Progress, Run, WorkError};

use super::batch::Batch;
use super::clean_up;
use crate::version::VersionContext;

/// Moves the locks of bills that are still payable to their target lines. The lock row and its
/// lock_key stay the same.
pub(super) async fn keep(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<(), WorkError> {
    let mut after = 0;
    loop {
        run.checkpoint()?;
        match transact!(keep_batch(run, context, batch, after))? {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Releases the locks of bills that are no longer payable, each batch with the clean-up of its
/// bills in the same commit.
pub(super) async fn release(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<(), WorkError> {
    let mut after = 0;
    loop {
        run.checkpoint()?;
        match transact!(release_batch(run, context, batch, after))? {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

async fn keep_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = last_of(&mut tx, KEPT, context, batch, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    keep_range(&mut tx, context, after, last).await?;
    batch.renew(&mut tx, Progress::none()).await?;
    tx.commit("lock_activation.keep").await?;
    Ok(Some(last))
}

async fn release_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = last_of(&mut tx, REMOVED, context, batch, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    release_range(&mut tx, context, after, last).await?;
    clean_up::clean_range(&mut tx, context, after, last).await?;
    batch.renew(&mut tx, Progress::none()).await?;
    tx.commit("lock_activation.release").await?;
    Ok(Some(last))
}

/// Source locks whose line is PAYABLE and has a live PAYABLE line in the target version.
const KEPT: &str = "SELECT MAX(id) AS last FROM (
   SELECT k.id FROM fi_resident_income_payment_bill_lock k
   JOIN fi_resident_income_payment_order_bill s ON s.id = k.order_bill_id AND s.line_type = 10
   WHERE k.payment_order_id = :order AND k.data_version = :source_data
     AND k.submit_round = :source_round AND k.lock_status = 'ACTIVE' AND k.id > :after
     AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill t
       WHERE t.source_order_bill_id = k.order_bill_id AND t.payment_order_id + 0 = :order
         AND t.data_version + 0 = :target_data AND t.line_type = 10 AND t.deleted = 0) > 0
   ORDER BY k.id LIMIT :size) AS batch";

/// Source locks whose line is PAYABLE and has none, whatever the round of the target's lines.
const REMOVED: &str = "SELECT MAX(id) AS last FROM (
   SELECT k.id FROM fi_resident_income_payment_bill_lock k
   JOIN fi_resident_income_payment_order_bill s ON s.id = k.order_bill_id AND s.line_type = 10
   WHERE k.payment_order_id = :order AND k.data_version = :source_data
     AND k.submit_round = :source_round AND k.lock_status = 'ACTIVE' AND k.id > :after
     AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill t
       WHERE t.source_order_bill_id = k.order_bill_id AND t.payment_order_id + 0 = :order
         AND t.data_version + 0 = :target_data AND t.line_type = 10 AND t.deleted = 0) = 0
   ORDER BY k.id LIMIT :size) AS batch";

async fn last_of(
    tx: &mut Tx,
    text: &'static str,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let query = sql!(
        text,
        order = context.order.0,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        target_data = context.target_data.0,
        after = after,
        size = batch.size,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

const KEEP_RANGE: Text = Text::Forked {
    standard: "UPDATE fi_resident_income_payment_bill_lock AS k
         SET order_bill_id = t.id, submit_round = :target_round, session_id = :session,
             submit_attempt = :attempt, data_version = :target_data, diff_id = t.diff_id,
             small_bill_id = t.small_bill_id, partner_bill_id = t.partner_bill_id,
             source_payment_status = t.before_payment_status,
             source_partner_query_status = t.before_partner_query_status,
             release_time = NULL, release_reason = NULL, lock_origin = 'REVISE_KEEP_ACTIVE',
             lock_scene = 'PUBLISHED_REFRESH', update_time = :now
         FROM fi_resident_income_payment_order_bill s,
              fi_resident_income_payment_order_bill t
         WHERE k.payment_order_id = :order AND k.data_version = :source_data
           AND k.submit_round = :source_round AND k.lock_status = 'ACTIVE'
           AND k.id > :after AND k.id <= :last
           AND s.id = k.order_bill_id AND s.line_type = 10
           AND t.source_order_bill_id = k.order_bill_id AND t.payment_order_id + 0 = :order
           AND t.data_version + 0 = :target_data AND t.line_type = 10 AND t.deleted = 0",
    mariadb: "UPDATE fi_resident_income_payment_bill_lock k
         JOIN fi_resident_income_payment_order_bill s
           ON s.id = k.order_bill_id AND s.line_type = 10
         JOIN fi_resident_income_payment_order_bill t
           ON t.source_order_bill_id = k.order_bill_id AND t.payment_order_id + 0 = :order
          AND t.data_version + 0 = :target_data AND t.line_type = 10 AND t.deleted = 0
         SET k.order_bill_id = t.id, k.submit_round = :target_round, k.session_id = :session,
             k.submit_attempt = :attempt, k.data_version = :target_data, k.diff_id = t.diff_id,
             k.small_bill_id = t.small_bill_id, k.partner_bill_id = t.partner_bill_id,
             k.source_payment_status = t.before_payment_status,
             k.source_partner_query_status = t.before_partner_query_status,
             k.release_time = NULL, k.release_reason = NULL,
             k.lock_origin = 'REVISE_KEEP_ACTIVE', k.lock_scene = 'PUBLISHED_REFRESH',
             k.update_time = :now
         WHERE k.payment_order_id = :order AND k.data_version = :source_data
           AND k.submit_round = :source_round AND k.lock_status = 'ACTIVE'
           AND k.id > :after AND k.id <= :last",
};

/// Guard: ACTIVE, of the source version and round, and the lines as in `KEPT`.
async fn keep_range(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let update = sql!(
        KEEP_RANGE,
        now = now,
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        target_data = context.target_data.0,
        target_round = context.target_round.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(update).await?)
}

/// Guard: ACTIVE, of the source version and round, and the lines as in `REMOVED`.
async fn release_range(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_scene = 'PUBLISHED_RELEASE',
             release_reason = 'REVISE_REMOVED', release_time = :now,
             lock_key = lock_key || ':RELEASED:' || id, update_time = :now
         WHERE payment_order_id = :order AND data_version = :source_data
           AND submit_round = :source_round AND lock_status = 'ACTIVE'
           AND id > :after AND id <= :last
           AND EXISTS (SELECT 1 FROM fi_resident_income_payment_order_bill s
             WHERE s.id = order_bill_id AND s.line_type = 10)
           AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill t
             WHERE t.source_order_bill_id = order_bill_id AND t.payment_order_id + 0 = :order
               AND t.data_version + 0 = :target_data
               AND t.line_type = 10 AND t.deleted = 0) = 0",
        now = now,
        order = context.order.0,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        target_data = context.target_data.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(update).await?)
}
