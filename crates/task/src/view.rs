//! What people and programs read of tasks: lists by id, one task, its trace. Reads only.

use counterfoil_db::{Db, Instant, Query, Read, Row, sql};
use counterfoil_protocol::TaskCode;
use serde::Serialize;

use crate::trace::TRACE_OF_TASK;
use crate::{TaskError, TaskStatus};

/// Rows of one page at most; a caller who asks for more gets this many.
pub const MAX_LISTED: u32 = 200;

/// Rows of a page when no number is asked for.
const LISTED: u32 = 50;

/// One task, as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Its row.
    pub id: i64,
    /// Its code.
    pub task_code: String,
    /// What kind of task it is.
    pub task_type: String,
    /// What it is about.
    pub business_key: String,
    /// PENDING, RUNNING, SUCCESS, FAILED or CANCELLED.
    pub status: String,
    /// The same as the table's number.
    pub task_status: i64,
    /// Counted failures.
    pub retry_count: i64,
    /// Failures of which the last one parks it.
    pub max_retry_count: i64,
    /// When it is due; nothing = no scan takes it by itself.
    pub next_execute_time: Option<Instant>,
    /// The attempt that owns it, or the last one that did.
    pub running_attempt: i64,
    /// Attempts in a row whose process was lost.
    pub lost_attempts: i64,
    /// What it failed of.
    pub error_message: Option<String>,
    /// When it was accepted.
    pub create_time: Instant,
    /// When it was touched last.
    pub update_time: Instant,
}

/// Which tasks are listed, newest first.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    /// Only in this status.
    pub status: Option<TaskStatus>,
    /// Only of this type.
    pub task_type: Option<String>,
    /// Only tasks before this id.
    pub before: Option<i64>,
    /// Rows at most.
    pub limit: Option<u32>,
}

/// A page of tasks.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// Newest first.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; nothing = this is the last one.
    pub next_before: Option<i64>,
}

/// One row of a task's trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceView {
    /// What happened.
    pub action: String,
    /// The task it came from.
    pub source_task_code: Option<String>,
    /// The outcome in a word.
    pub result: String,
    /// JSON for people.
    pub detail: Option<String>,
    /// Who did it, if a person did.
    pub operator_user_id: Option<i64>,
    /// When.
    pub time: Instant,
}

const COLUMNS: &str = "id, task_code, task_type, business_key, task_status,
    COALESCE(retry_count, 0) AS retries, COALESCE(max_retry_count, 3) AS most,
    next_execute_time, COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
    create_time, update_time";

/// A page of tasks. One row more than the page is read, so that nothing is ever counted.
pub async fn list(db: &Db, asked: &TaskQuery) -> Result<TaskPage, TaskError> {
    let limit = asked.limit.unwrap_or(LISTED).clamp(1, MAX_LISTED);
    let mut narrowed = String::new();
    if asked.status.is_some() {
        narrowed.push_str(" AND task_status = :status");
    }
    if asked.task_type.is_some() {
        narrowed.push_str(" AND task_type = :task_type");
    }
    let mut query = Query::built(format!(
        "SELECT {COLUMNS} FROM fi_async_task
         WHERE deleted = 0 AND id < :before{narrowed}
         ORDER BY id DESC LIMIT :limit"
    ))
    .bind("before", asked.before.unwrap_or(i64::MAX))
    .bind("limit", limit + 1);
    if let Some(status) = asked.status {
        query = query.bind("status", status.code());
    }
    if let Some(task_type) = &asked.task_type {
        query = query.bind("task_type", task_type.as_str());
    }
    let mut tasks = Vec::new();
    for row in db.rows(query).await? {
        tasks.push(of_row(&row)?);
    }
    let is_last = tasks.len() <= limit as usize;
    tasks.truncate(limit as usize);
    let next_before = tasks.last().filter(|_| !is_last).map(|task| task.id);
    Ok(TaskPage { tasks, next_before })
}

/// The task with this code or business key; the oldest of those that share a key.
pub async fn find(db: &Db, named: &str) -> Result<Option<TaskView>, TaskError> {
    let query = Query::built(format!(
        "SELECT {COLUMNS} FROM fi_async_task
         WHERE deleted = 0 AND (task_code = :task OR business_key = :task)
         ORDER BY id LIMIT 1"
    ))
    .bind("task", named);
    db.row(query).await?.map(|row| of_row(&row)).transpose()
}

/// What a task was accepted with: JSON, as it is stored.
pub async fn data_of(db: &Db, code: &TaskCode) -> Result<Option<String>, TaskError> {
    let query = sql!(
        "SELECT task_data FROM fi_async_task WHERE task_code = :code AND deleted = 0",
        code = code.as_str(),
    );
    let row = db.row(query).await?;
    Ok(row.map(|row| row.maybe_text("task_data")).transpose()?.flatten())
}

/// What happened to one task, oldest first, [`MAX_LISTED`] rows at most.
pub async fn trace_of(db: &Db, code: &TaskCode) -> Result<Vec<TraceView>, TaskError> {
    let query = sql!(TRACE_OF_TASK, code = code.as_str(), limit = MAX_LISTED);
    let mut trace = Vec::new();
    for row in db.rows(query).await? {
        trace.push(TraceView {
            action: row.text("action")?,
            source_task_code: row.maybe_text("source_task_code")?,
            result: row.text("result")?,
            detail: row.maybe_text("detail")?,
            operator_user_id: row.maybe_int("operator_user_id")?,
            time: row.instant("create_time")?,
        });
    }
    Ok(trace)
}

fn of_row(row: &Row) -> Result<TaskView, TaskError> {
    let code = row.int("task_status")?;
    // A number that the table's constraint would refuse is shown, so that a person can see it.
    let status = TaskStatus::of_code(code);
    Ok(TaskView {
        id: row.int("id")?,
        task_code: row.text("task_code")?,
        task_type: row.text("task_type")?,
        business_key: row.text("business_key")?,
        status: status.map_or_else(|| format!("UNKNOWN {code}"), |status| status.to_string()),
        task_status: code,
        retry_count: row.int("retries")?,
        max_retry_count: row.int("most")?,
        next_execute_time: row.maybe_instant("next_execute_time")?,
        running_attempt: row.int("attempt")?,
        lost_attempts: row.int("lost_attempts")?,
        error_message: row.maybe_text("error_message")?,
        create_time: row.instant("create_time")?,
        update_time: row.instant("update_time")?,
    })
}
