//! What the last sub-batch of a shard commits with it: the S13 seed, the count of ended shards, and
//! with the last shard DONE.

use counterfoil_db::{Db, Read, Result, Tx, sql, transact};
use counterfoil_protocol::TaskCode;
use counterfoil_task::{Held, Seed, Subject, WorkError};

use super::Source;
use super::shard::Shard;
use crate::kinds::{BILL_SNAPSHOT, business_key};

/// What follows a shard.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Finished {
    /// The next shard of the same source that has not begun, for a kick.
    pub(super) next: Option<i64>,
}

/// Call before the shard itself is marked: it counts as ended already.
pub(super) async fn finish(held: &mut Held<'_>, shard: &Shard) -> Result<Finished, WorkError> {
    if shard.source_type == Source::ReviewApproved.as_str() {
        let source = lock_progress(held, shard.source_id).await?;
        held.accept(&snapshot_seed(shard, source)).await?;
        count_ended(held, shard).await?;
        done_if_all_ended(held, shard).await?;
    }
    Ok(Finished { next: next_waiting(held, shard).await? })
}

/// Locks the progress row, so that of two shards that end at once the later one sees the other.
/// Answers the code of its S07 task.
async fn lock_progress(tx: &mut Tx, progress: i64) -> Result<Option<TaskCode>, WorkError> {
    let lock = sql!(
        "SELECT async_task_id FROM fi_resident_income_payment_review_callback_progress
         WHERE id = :progress {for_update}",
        progress = progress,
    );
    let Some(row) = tx.row(lock).await? else { return Ok(None) };
    let Some(task) = row.maybe_int("async_task_id")? else { return Ok(None) };
    let code = sql!("SELECT task_code FROM fi_async_task WHERE id = :task", task = task);
    let code = tx.row(code).await?.map(|row| row.text("task_code")).transpose()?;
    Ok(code.map(TaskCode::stored))
}

/// S13's seed: one a shard, also when it has no payable line.
fn snapshot_seed(shard: &Shard, source: Option<TaskCode>) -> Seed {
    let data = serde_json::json!({ "progressId": shard.source_id, "shardId": shard.id });
    Seed {
        kind: &BILL_SNAPSHOT,
        business_key: business_key::bill_snapshot(shard.source_id, shard.id),
        data: data.to_string(),
        subject: Subject::none()
            .with("payment_order_id", shard.lines.order.0)
            .with("data_version", shard.lines.data.0)
            .with("submit_round", shard.lines.round.0),
        source,
    }
}

async fn count_ended(tx: &mut Tx, shard: &Shard) -> Result<()> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET shard_success = 1 + (
               SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
               WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = :progress
                 AND s.task_status = 'SUCCESS' AND s.id <> :shard AND s.deleted = 0),
             update_time = :now
         WHERE id = :progress",
        progress = shard.source_id,
        shard = shard.id,
        now = now,
    );
    tx.execute(update).await?;
    Ok(())
}

/// Guard: still REFRESH_SHARD, main SUCCESS, lock counts equal, shards expected, as many there as
/// expected, and none that has not ended. Not won = not the last shard.
async fn done_if_all_ended(tx: &mut Tx, shard: &Shard) -> Result<bool> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET refresh_ready = 1, phase = 'DONE', phase_status = 'SUCCESS', done_time = :now,
             update_time = :now
         WHERE id = :progress AND main_task_status = 'SUCCESS' AND phase = 'REFRESH_SHARD'
           AND lock_release_success = lock_release_expected AND shard_expected > 0
           AND shard_expected = (
             SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
             WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = :progress
               AND s.deleted = 0)
           AND NOT EXISTS (
             SELECT 1 FROM fi_resident_income_payment_status_refresh_shard s
             WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = :progress
               AND s.task_status <> 'SUCCESS' AND s.id <> :shard AND s.deleted = 0)",
        progress = shard.source_id,
        shard = shard.id,
        now = now,
    );
    Ok(tx.execute(update).await? == 1)
}

async fn next_waiting(tx: &Tx, shard: &Shard) -> Result<Option<i64>> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_status_refresh_shard
         WHERE source_type = :source AND source_id = :id AND task_status = 'PENDING'
           AND cursor_order_bill_id < start_order_bill_id AND id <> :shard AND deleted = 0
         ORDER BY source_type, source_id, start_order_bill_id LIMIT 1",
        source = shard.source_type.as_str(),
        id = shard.source_id,
        shard = shard.id,
    );
    tx.row(query).await?.map(|row| row.int("id")).transpose()
}

/// A progress whose last shard ended while its counts did not agree yet, and do now, becomes DONE:
/// no shard is left that would say so.
pub(super) async fn settle(db: &Db) -> Result<(), WorkError> {
    if db.row(sql!(SETTLED, limit = 1)).await?.is_some() {
        transact!(try_settle(db))?;
    }
    Ok(())
}

/// Progress rows of one statement; a next round takes what is left.
const SETTLE_AT_ONCE: u32 = 100;

async fn try_settle(db: &Db) -> Result<(), WorkError> {
    let mut tx = db.begin().await?;
    let rows = tx.rows(sql!(SETTLED, limit = SETTLE_AT_ONCE)).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.int("id")).collect::<Result<_>>()?;
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET refresh_ready = 1, phase = 'DONE', phase_status = 'SUCCESS', done_time = :now,
             shard_success = shard_expected, update_time = :now
         WHERE id IN :ids AND main_task_status = 'SUCCESS' AND phase = 'REFRESH_SHARD'
           AND lock_release_success = lock_release_expected AND shard_expected > 0",
        now = now,
    );
    tx.execute(update.bind_list("ids", ids)).await?;
    tx.commit("status_refresh.settle").await?;
    Ok(())
}

/// Shards that have ended stay ended, so that what is true of them here stays true.
const SETTLED: &str = "SELECT p.id FROM fi_resident_income_payment_review_callback_progress p
     WHERE p.main_task_status = 'SUCCESS' AND p.phase = 'REFRESH_SHARD' AND p.deleted = 0
       AND p.lock_release_success = p.lock_release_expected AND p.shard_expected > 0
       AND p.shard_expected = (
         SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
         WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = p.id AND s.deleted = 0)
       AND NOT EXISTS (
         SELECT 1 FROM fi_resident_income_payment_status_refresh_shard s
         WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = p.id
           AND s.task_status <> 'SUCCESS' AND s.deleted = 0)
     ORDER BY p.id LIMIT :limit";
