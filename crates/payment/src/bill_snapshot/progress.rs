//! The progress row of one snapshot task: found or made, leased, finished.

use counterfoil_db::{Read, Row, Tx, sql};
use counterfoil_task::{Lease, LeaseTable, Run, Verdict, WorkError};

const SNAPSHOT_PROGRESS: LeaseTable = LeaseTable {
    name: "fi_resident_income_payment_snapshot_refresh_progress",
    status: "status",
    running: "RUNNING",
    open: &["INIT"],
    done: "SUCCESS",
    failed: "FAILED",
    version: "running_attempt",
    error_code: "error_code",
    error_message: "error_message",
};

/// How a run finds its progress row.
#[derive(Debug)]
pub(super) enum Begun {
    /// It is ours; go on after this line.
    Leased { lease: Lease, cursor: i64 },
    /// Its snapshots are made already.
    Over,
}

/// Finds or makes the row and leases it.
pub(super) async fn begin(run: &Run<'_>, progress: i64, shard: i64) -> Result<Begun, WorkError> {
    let mut tx = run.begin().await?;
    let row = match stored(&*tx, progress, shard).await? {
        Some(row) => row,
        None => made(&mut tx, run, progress, shard).await?,
    };
    if row.text("status")? == SNAPSHOT_PROGRESS.done {
        tx.rollback().await?;
        return Ok(Begun::Over);
    }
    let (id, version) = (row.int("id")?, row.int("running_attempt")?);
    let cursor = row.int("cursor_order_bill_id")?;
    let lease = run.lease(&mut tx, &SNAPSHOT_PROGRESS, id, version).await?;
    tx.commit("bill_snapshot.lease").await?;
    Ok(Begun::Leased { lease, cursor })
}

async fn stored(from: &impl Read, progress: i64, shard: i64) -> Result<Option<Row>, WorkError> {
    let query = sql!(
        "SELECT id, status, running_attempt, cursor_order_bill_id
         FROM fi_resident_income_payment_snapshot_refresh_progress
         WHERE progress_id = :progress AND shard_id = :shard",
        progress = progress,
        shard = shard,
    );
    Ok(from.row(query).await?)
}

async fn made(tx: &mut Tx, run: &Run<'_>, progress: i64, shard: i64) -> Result<Row, WorkError> {
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO fi_resident_income_payment_snapshot_refresh_progress
           (async_task_id, progress_id, shard_id, create_time, update_time)
         VALUES ((SELECT id FROM fi_async_task WHERE task_code = :code), :progress, :shard, :now,
            :now)
         {or_ignore}",
        code = run.code().as_str(),
        progress = progress,
        shard = shard,
        now = now,
    );
    tx.execute(insert).await?;
    stored(&*tx, progress, shard).await?.ok_or_else(|| {
        let message = format!("the snapshot progress of {progress}:{shard} cannot be made");
        WorkError::failed("snapshot-source-missing", message)
    })
}

/// The row and the task end together.
pub(super) async fn finish(run: &Run<'_>, lease: &Lease) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    if !lease.finish(&mut tx).await? {
        tx.rollback().await?;
        return Err(WorkError::failed("lease-lost", "the snapshot progress was taken over"));
    }
    tx.succeed("bill_snapshot.finish").await
}

/// A task whose row is over already.
pub(super) async fn over(run: &Run<'_>) -> Result<Verdict, WorkError> {
    run.begin().await?.succeed("bill_snapshot.over").await
}
