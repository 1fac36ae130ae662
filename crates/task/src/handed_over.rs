//! Ending a task whose work was handed over and left RUNNING.

use counterfoil_db::{Read, Tx, sql};

use crate::run::cut;
use crate::{Kind, TaskError};

/// Marks a task SUCCESS that its own work left RUNNING, in the transaction that completes what was
/// handed over. The attempt is read under the row's lock, and exactly one row is changed.
/// `note` is kept in `error_message`.
///
/// Guard: this id and type, RUNNING, the attempt that was read. False = it is not RUNNING.
///
/// # Errors
/// The database's.
pub async fn end_handed_over(
    tx: &mut Tx,
    kind: &Kind,
    task: i64,
    note: Option<&str>,
) -> Result<bool, TaskError> {
    let locked = sql!(
        "SELECT COALESCE(running_attempt, 0) AS attempt FROM fi_async_task
         WHERE id = :id AND task_type = :task_type AND task_status = 1 AND deleted = 0
         {for_update}",
        id = task,
        task_type = kind.task_type,
    );
    let Some(row) = tx.row(locked).await? else {
        return Ok(false);
    };
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_async_task
         SET task_status = 2, error_message = :note, next_execute_time = NULL,
             lost_attempts = 0, update_time = :now
         WHERE id = :id AND task_type = :task_type AND task_status = 1
           AND COALESCE(running_attempt, 0) = :attempt",
        note = note.map(cut),
        now = now,
        id = task,
        task_type = kind.task_type,
        attempt = row.int("attempt")?,
    );
    Ok(tx.execute(update).await? == 1)
}
