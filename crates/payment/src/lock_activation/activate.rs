//! Step 4: RESERVED becomes ACTIVE, in ranges of lock ids.

use counterfoil_db::{Read, Tx, sql, transact};
use counterfoil_task::{Progress, Run, WorkError};

use super::batch::Batch;
use crate::version::VersionContext;

/// Activates this attempt's reserved locks, batch by batch, from the stored cursor.
pub(super) async fn activate(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &mut Batch,
) -> Result<(), WorkError> {
    loop {
        run.checkpoint()?;
        match transact!(one_batch(run, context, batch))? {
            Some(last) => batch.cursor = last,
            None => return Ok(()),
        }
    }
}

async fn one_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = end_of_batch(&mut tx, context, batch).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    let activated = activate_range(&mut tx, context, batch.cursor, last).await?;
    let progress = Progress::none().set("last_item_id", last).add("processed_count", activated);
    batch.renew(&mut tx, progress).await?;
    tx.commit("lock_activation.activate").await?;
    Ok(Some(last))
}

async fn end_of_batch(
    tx: &mut Tx,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Option<i64>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM fi_resident_income_payment_bill_lock
           WHERE payment_order_id = :order AND session_id = :session
             AND submit_attempt = :attempt AND data_version = :data
             AND lock_status = 'RESERVED' AND id > :cursor
           ORDER BY id LIMIT :size) AS batch",
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        data = context.target_data.0,
        cursor = batch.cursor,
        size = batch.size,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

/// Guard: RESERVED, of this order, session, attempt and data version. Not by submit_round.
async fn activate_range(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'ACTIVE', lock_scene = 'PUBLISHED_ACTIVE', update_time = :now
         WHERE payment_order_id = :order AND session_id = :session
           AND submit_attempt = :attempt AND data_version = :data
           AND lock_status = 'RESERVED' AND id > :after AND id <= :last",
        now = now,
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        data = context.target_data.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(update).await?)
}
