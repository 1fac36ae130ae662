//! A failed submission: exactly its RESERVED locks are released, old ACTIVE locks stay, and the
//! submission is closed unless a newer attempt has begun.

use counterfoil_db::{Read, Tx, sql, transact};
use counterfoil_protocol::VersionId;
use counterfoil_task::{Run, Verdict, WorkError};

use super::Reason;
use crate::submit_batch::DEFAULT_BATCH_SIZE;
use crate::version::VersionContext;

pub(super) async fn release(
    run: &Run<'_>,
    version: VersionId,
    reason: Reason,
) -> Result<Verdict, WorkError> {
    let context = VersionContext::read(run.db(), version).await?;
    let mut after = 0;
    loop {
        run.checkpoint()?;
        match transact!(one_batch(run, &context, reason, after))? {
            Some(last) => after = last,
            None => return transact!(close(run, &context)),
        }
    }
}

async fn one_batch(
    run: &Run<'_>,
    context: &VersionContext,
    reason: Reason,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = end_of_batch(&mut tx, context, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    release_range(&mut tx, context, reason, after, last).await?;
    tx.commit("lock_release.batch").await?;
    Ok(Some(last))
}

async fn end_of_batch(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM fi_resident_income_payment_bill_lock
           WHERE payment_order_id = :order AND session_id = :session
             AND submit_attempt = :attempt AND data_version = :data
             AND lock_status = 'RESERVED' AND id > :after
           ORDER BY id LIMIT :size) AS batch",
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        data = context.target_data.0,
        after = after,
        size = DEFAULT_BATCH_SIZE,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

/// Guard: RESERVED, of this order, session, attempt and data version.
async fn release_range(
    tx: &mut Tx,
    context: &VersionContext,
    reason: Reason,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_scene = 'BUILD_RELEASE', release_reason = :reason,
             release_time = :now, lock_key = lock_key || ':RELEASED:' || id, update_time = :now
         WHERE payment_order_id = :order AND session_id = :session
           AND submit_attempt = :attempt AND data_version = :data
           AND lock_status = 'RESERVED' AND id > :after AND id <= :last",
        reason = reason.as_str(),
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

async fn close(run: &Run<'_>, context: &VersionContext) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    if let Some(left) = end_of_batch(&mut tx, context, 0).await? {
        let message = format!("RESERVED locks are left, up to lock {left}");
        return Err(WorkError::failed("lock-release-incomplete", message));
    }
    close_session(&mut tx, context).await?;
    tx.succeed("lock_release.close").await
}

/// Guard: this version active, this attempt: a late S06 never closes a newer attempt. An
/// invalidated session gives up its keys: it is over.
async fn close_session(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET status = 'SUBMIT_FAILED', active_submit_id = NULL,
             active_scope_key = CASE WHEN invalidated_flag = 1 THEN NULL
                                     ELSE active_scope_key END,
             active_revise_key = CASE WHEN invalidated_flag = 1 THEN NULL
                                      ELSE active_revise_key END,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND active_submit_id = :version AND submit_attempt = :attempt
           AND status IN ('SUBMITTING', 'SUBMIT_FAILED')",
        now = now,
        session = context.session.0,
        version = context.version.0,
        attempt = context.attempt.0,
    );
    Ok(tx.execute(update).await? == 1)
}
