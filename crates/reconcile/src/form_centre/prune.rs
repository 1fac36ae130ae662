//! Manifests of tasks that have ended long ago are deleted, page by page. What came of the task
//! stays: its row and its results. Nobody is answered from a manifest whose task has ended
//! ([`authorise`](super::authorise)), so no absence can be proved by rows that are gone.

use counterfoil_db::{Db, Instant, Query, Read, Result, sql, transact};

/// Rows deleted in one transaction at most.
pub const MAX_PRUNED: u32 = 1000;

/// When the oldest task ended before `before` that still has a manifest.
///
/// # Errors
/// The database's.
pub async fn oldest_prunable(db: &Db, before: Instant) -> Result<Option<Instant>> {
    let row = db.row(prunable(before)).await?;
    row.map(|row| row.instant("finished_at")).transpose()
}

/// Deletes rows of the oldest such task's manifest, `most` at most. Answers how many.
///
/// # Errors
/// The database's; nothing is deleted then.
pub async fn prune_manifest(db: &Db, before: Instant, most: u32) -> Result<u64> {
    transact!(try_prune(db, before, most))
}

fn prunable(before: Instant) -> Query {
    sql!(
        "SELECT t.task_id, t.finished_at FROM answer_reconcile_task t
         WHERE t.state IN ('COMPLETED', 'PARTIAL', 'FAILED', 'CANCELLED')
           AND t.finished_at < :before
           AND EXISTS (SELECT 1 FROM answer_reconcile_manifest_row m WHERE m.task_id = t.task_id)
         ORDER BY t.id LIMIT 1",
        before = before,
    )
}

async fn try_prune(db: &Db, before: Instant, most: u32) -> Result<u64> {
    let mut tx = db.begin().await?;
    let Some(task) = tx.row(prunable(before)).await? else {
        tx.rollback().await?;
        return Ok(0);
    };
    let rows = sql!(
        "SELECT id FROM answer_reconcile_manifest_row WHERE task_id = :task_id
         ORDER BY answer_uuid LIMIT :most",
        task_id = task.text("task_id")?,
        most = most.clamp(1, MAX_PRUNED),
    );
    let rows = tx.rows(rows).await?;
    let ids = rows.iter().map(|row| row.int("id")).collect::<Result<Vec<_>>>()?;
    let delete = Query::new("DELETE FROM answer_reconcile_manifest_row WHERE id IN :ids");
    let pruned = tx.execute(delete.bind_list("ids", ids)).await?;
    tx.commit("manifest.prune").await?;
    Ok(pruned)
}
