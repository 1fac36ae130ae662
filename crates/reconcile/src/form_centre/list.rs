//! Tasks and results for people.

use counterfoil_db::{Db, Instant, Read, sql};
use serde::Serialize;
use serde_json::{Value, json};

use super::task::{Task, find, task_columns};
use crate::refusal::{Code, Refusal};

/// Tasks of a page at most.
pub const MAX_PAGE: u32 = 200;

/// Which tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// In this state.
    pub state: Option<String>,
    /// Of this consumer.
    pub consumer: Option<String>,
    /// Of this form.
    pub form: Option<String>,
    /// Older than this row.
    pub before: Option<i64>,
}

/// A task as it is shown.
#[must_use]
pub fn shown(task: &Task) -> Value {
    json!({
        "taskId": task.task_id,
        "triggerType": task.trigger,
        "scope": task.coordinate.scope(),
        "answerUuid": task.coordinate.answer,
        "consumerAppKey": task.coordinate.consumer,
        "consumerSchoolId": task.coordinate.school,
        "formUuid": task.coordinate.form,
        "grantEpoch": task.grant_epoch,
        "windowStart": task.window_start,
        "state": task.state,
        "reasonCode": task.reason_code,
        "reason": task.reason,
        "attempt": task.attempt,
        "nextDispatchAt": task.next_dispatch_at,
        "leaseUntil": task.lease_until,
        "manifestComplete": task.manifest_complete,
        "totalRows": task.total_rows,
        "totalPages": task.total_pages,
        "counts": parsed(task.counts.as_deref()),
        "createTime": task.create_time,
        "finishedAt": task.finished_at,
    })
}

fn parsed(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
}

/// Tasks, newest first, and the row that the next page is before.
pub async fn tasks(
    db: &Db,
    filter: &TaskFilter,
    limit: u32,
) -> Result<(Vec<Task>, Option<i64>), Refusal> {
    const LIST: &str = concat!(
        "SELECT ",
        task_columns!(),
        " FROM answer_reconcile_task
          WHERE id < :before AND deleted = 0 AND (:state = '' OR state = :state)
            AND (:consumer = '' OR consumer_app_key = :consumer)
            AND (:form = '' OR form_uuid = :form)
          ORDER BY id DESC LIMIT :most"
    );
    let limit = limit.clamp(1, MAX_PAGE);
    let rows = db
        .rows(sql!(
            LIST,
            before = filter.before.unwrap_or(i64::MAX),
            state = filter.state.as_deref().unwrap_or_default(),
            consumer = filter.consumer.as_deref().unwrap_or_default(),
            form = filter.form.as_deref().unwrap_or_default(),
            most = i64::from(limit) + 1,
        ))
        .await?;
    let mut tasks = rows.iter().map(Task::of).collect::<Result<Vec<_>, _>>()?;
    let is_more = tasks.len() > limit as usize;
    tasks.truncate(limit as usize);
    let next = tasks.last().map(|task| task.id).filter(|_| is_more);
    Ok((tasks, next))
}

/// Tasks on which something happened since then, newest first.
pub async fn since(db: &Db, then: Instant) -> Result<Vec<Task>, Refusal> {
    const SINCE: &str = concat!(
        "SELECT ",
        task_columns!(),
        " FROM answer_reconcile_task
          WHERE update_time >= :then AND deleted = 0 ORDER BY id DESC LIMIT :most"
    );
    let rows = db.rows(sql!(SINCE, then = then, most = MAX_PAGE)).await?;
    Ok(rows.iter().map(Task::of).collect::<Result<_, _>>()?)
}

/// A report as it was kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredReport {
    /// Of which attempt.
    pub attempt: i64,
    /// Its state.
    pub state: String,
    /// By kind.
    pub counts: Value,
    /// Items that fitted.
    pub errors: Value,
    /// Whether the hall's set was read to its end.
    pub local_completed: bool,
    /// Whether the manifest was.
    pub manifest_complete: bool,
    /// When it came in.
    pub received_at: Instant,
}

/// A task and its reports, oldest first.
///
/// # Errors
/// TASK_NOT_FOUND.
pub async fn one(db: &Db, task_id: &str) -> Result<(Task, Vec<StoredReport>), Refusal> {
    let task = find(db, task_id).await?;
    let task = task.ok_or_else(|| Refusal::of(Code::TaskNotFound, "there is no such task"))?;
    let query = sql!(
        "SELECT attempt, state, counts, errors, local_completed, manifest_complete, received_at
         FROM answer_reconcile_result WHERE task_id = :task_id AND deleted = 0
         ORDER BY attempt LIMIT :most",
        task_id = task_id,
        most = i64::from(MAX_PAGE),
    );
    let mut reports = Vec::new();
    for row in db.rows(query).await? {
        reports.push(StoredReport {
            attempt: row.int("attempt")?,
            state: row.text("state")?,
            counts: parsed(row.maybe_text("counts")?.as_deref()),
            errors: parsed(row.maybe_text("errors")?.as_deref()),
            local_completed: row.int("local_completed")? == 1,
            manifest_complete: row.int("manifest_complete")? == 1,
            received_at: row.instant("received_at")?,
        });
    }
    Ok((task, reports))
}
