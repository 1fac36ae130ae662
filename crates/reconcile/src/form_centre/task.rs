//! A task's row.

use counterfoil_db::{Instant, Query, Read, Result, Row, Tx, sql};

use crate::wire::{Coordinate, is_final};

/// A task as stored.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its row.
    pub id: i64,
    /// Its id on the wire.
    pub task_id: String,
    /// SCHEDULED or MANUAL.
    pub trigger: String,
    /// What it is about.
    pub coordinate: Coordinate,
    /// The grant's epoch when it was made.
    pub grant_epoch: i64,
    /// Nothing that came into being later is ever retired.
    pub window_start: Instant,
    /// QUEUED, DISPATCHED, RUNNING, COMPLETED, PARTIAL, FAILED, CANCELLED.
    pub state: String,
    /// Why it is as it is.
    pub reason_code: Option<String>,
    /// The same for people.
    pub reason: Option<String>,
    /// Dispatches so far.
    pub attempt: i64,
    /// When it is due.
    pub next_dispatch_at: Option<Instant>,
    /// Until when the hall is left alone.
    pub lease_until: Option<Instant>,
    /// Whether its manifest is whole.
    pub manifest_complete: bool,
    /// Rows of the manifest.
    pub total_rows: i64,
    /// Pages of the manifest.
    pub total_pages: i64,
    /// What was found, as last reported at its end.
    pub counts: Option<String>,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// When it was made.
    pub create_time: Instant,
}

/// The columns of [`Task`], for every statement that reads one.
macro_rules! task_columns {
    () => {
        "id, task_id, trigger_type, scope, answer_uuid, consumer_app_key, consumer_school_id,
         form_uuid, grant_epoch, window_start, state, reason_code, reason, attempt,
         next_dispatch_at, lease_until, manifest_complete, total_rows, total_pages, counts,
         finished_at, create_time"
    };
}
pub(crate) use task_columns;

impl Task {
    /// Reads a row of [`task_columns`].
    pub(crate) fn of(row: &Row) -> Result<Task> {
        let answer = row.maybe_text("answer_uuid")?;
        let is_answer = row.text("scope")? == "ANSWER";
        Ok(Task {
            id: row.int("id")?,
            task_id: row.text("task_id")?,
            trigger: row.text("trigger_type")?,
            coordinate: Coordinate {
                consumer: row.text("consumer_app_key")?,
                school: row.text("consumer_school_id")?,
                form: row.text("form_uuid")?,
                answer: answer.filter(|_| is_answer),
            },
            grant_epoch: row.int("grant_epoch")?,
            window_start: row.instant("window_start")?,
            state: row.text("state")?,
            reason_code: row.maybe_text("reason_code")?,
            reason: row.maybe_text("reason")?,
            attempt: row.int("attempt")?,
            next_dispatch_at: row.maybe_instant("next_dispatch_at")?,
            lease_until: row.maybe_instant("lease_until")?,
            manifest_complete: row.int("manifest_complete")? == 1,
            total_rows: row.int("total_rows")?,
            total_pages: row.int("total_pages")?,
            counts: row.maybe_text("counts")?,
            finished_at: row.maybe_instant("finished_at")?,
            create_time: row.instant("create_time")?,
        })
    }

    /// Whether nothing follows.
    pub fn is_over(&self) -> bool {
        is_final(&self.state)
    }
}

/// A task by its id on the wire.
pub async fn find(db: &impl Read, task_id: &str) -> Result<Option<Task>> {
    const FIND: &str = concat!(
        "SELECT ",
        task_columns!(),
        " FROM answer_reconcile_task WHERE task_id = :task_id AND deleted = 0"
    );
    let row = db.row(sql!(FIND, task_id = task_id)).await?;
    row.as_ref().map(Task::of).transpose()
}

/// A task, its row locked.
pub async fn lock(tx: &mut Tx, task_id: &str) -> Result<Option<Task>> {
    const LOCK: &str = concat!(
        "SELECT ",
        task_columns!(),
        " FROM answer_reconcile_task WHERE task_id = :task_id AND deleted = 0 {for_update}"
    );
    let row = tx.row(Query::new(LOCK).bind("task_id", task_id)).await?;
    row.as_ref().map(Task::of).transpose()
}

/// Ends a task that has not ended. False = it had.
pub async fn end(
    tx: &mut Tx,
    task: &Task,
    state: &str,
    code: Option<&str>,
    reason: Option<&str>,
) -> Result<bool> {
    let now = tx.now();
    let reason = reason.map(|reason| reason.chars().take(1000).collect::<String>());
    let update = sql!(
        "UPDATE answer_reconcile_task
         SET state = :state, reason_code = :code, reason = :reason, active_consumer_key = NULL,
             lease_until = NULL, next_dispatch_at = NULL, finished_at = :now, update_time = :now
         WHERE id = :id AND state IN ('QUEUED', 'DISPATCHED', 'RUNNING')",
        state = state,
        code = code,
        reason = reason,
        now = now,
        id = task.id,
    );
    Ok(tx.execute(update).await? == 1)
}
