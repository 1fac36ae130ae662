//! Claiming: one conditional update, won or lost.

use chrono::TimeDelta;
use counterfoil_db::{Db, Result, transact};

use crate::select::{MAX_LOST_ATTEMPTS, TaskRow};
use crate::takeover::{self, Takeover};
use crate::{Kind, TaskStatus};

/// RUNNING rows untouched for so long are stale: their process is taken for dead. Live work
/// touches its row at the start of every transaction.
pub const STALE_AFTER: TimeDelta = TimeDelta::minutes(10);

/// Who claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimMode {
    /// The scan or a kick: due time and retry limit are checked again.
    Automatic,
    /// A person named the task: those two are skipped, and nothing else.
    Manual,
}

/// A won claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) attempt: i64,
}

/// Claims a task as it stood at selection. `None` = lost: nothing was changed or counted.
pub(crate) async fn claim(
    db: &Db,
    kind: &Kind,
    task: &TaskRow,
    mode: ClaimMode,
    takeover: Takeover,
) -> Result<Option<Claim>> {
    transact!(try_claim(db, kind, task, mode, takeover))
}

async fn try_claim(
    db: &Db,
    kind: &Kind,
    task: &TaskRow,
    mode: ClaimMode,
    takeover: Takeover,
) -> Result<Option<Claim>> {
    if task.status.is_final() {
        return Ok(None);
    }
    let mut tx = db.begin().await?;
    let now = tx.now();
    let text = "UPDATE fi_async_task
         SET task_status = 1, running_attempt = COALESCE(running_attempt, 0) + 1,
             lost_attempts = CASE WHEN task_status = 1 THEN lost_attempts + 1
                                  ELSE lost_attempts END,
             update_time = :now
         WHERE id = :id AND deleted = 0 AND task_type = :task_type
           AND COALESCE(running_attempt, 0) = :attempt
           AND (task_status IN (0, 3) OR (task_status = 1 AND [takeover]))
           AND (:manual = 1 OR
                ((next_execute_time IS NULL OR next_execute_time <= :now)
                 AND COALESCE(retry_count, 0) < COALESCE(max_retry_count, 3)
                 AND (task_status <> 1 OR lost_attempts + 1 < :max_lost)))";
    let update = takeover::completed(text, takeover)
        .bind("now", now)
        .bind("id", task.id)
        .bind("task_type", kind.task_type)
        .bind("attempt", task.attempt)
        .bind("stale", now - STALE_AFTER)
        .bind("manual", mode == ClaimMode::Manual)
        .bind("max_lost", MAX_LOST_ATTEMPTS);
    let won = tx.execute(update).await? == 1;
    if !won {
        tx.rollback().await?;
        return Ok(None);
    }
    tx.commit("task.claim").await?;
    if task.status == TaskStatus::Running {
        crate::metric::takeover(kind.handler);
        tracing::warn!(task = %task.code, attempt = task.attempt, "took over a lost attempt");
    }
    Ok(Some(Claim { attempt: task.attempt + 1 }))
}
