//! Which tasks a round takes.

use counterfoil_db::{Db, Instant, Query, Read, Result, Row, sql};
use counterfoil_protocol::TaskCode;

use crate::claim::STALE_AFTER;
use crate::parameter::Selector;
use crate::takeover::{self, Takeover};
use crate::{Kind, TaskStatus};

/// A task as it stood when it was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its row.
    pub id: i64,
    /// Its code.
    pub code: TaskCode,
    /// Its business key.
    pub business_key: String,
    /// Its payload, as stored: possibly broken.
    pub data: Option<String>,
    /// Its status.
    pub status: TaskStatus,
    /// `running_attempt`, NULL counted as 0.
    pub attempt: i64,
    /// When it is due; `None` = at once.
    pub due: Option<Instant>,
    /// `retry_count`, NULL counted as 0.
    pub retries: i64,
}

/// After so many lost attempts in a row without a verdict the scan leaves a task to a person.
pub const MAX_LOST_ATTEMPTS: i64 = 5;

/// The statuses the automatic scan looks at.
pub(crate) const SCANNED: [TaskStatus; 3] =
    [TaskStatus::Pending, TaskStatus::Failed, TaskStatus::Running];

/// The due tasks of a kind, at most `limit`, in the order of the contract: due time with NULL
/// first, retry count, id; of a kind with orphans the repairs follow, oldest first.
pub(crate) async fn due(
    db: &Db,
    kind: &Kind,
    takeover: Takeover,
    now: Instant,
    limit: u32,
) -> Result<Selected> {
    let Takeover::Orphans { orphan } = takeover else {
        return open(db, kind, &SCANNED, now, limit).await;
    };
    let mut selected =
        open(db, kind, &[TaskStatus::Pending, TaskStatus::Failed], now, limit).await?;
    let mut repairs = orphans(db, kind, orphan, now, limit).await?;
    let taken = takeover::split(limit as usize, selected.tasks.len(), repairs.tasks.len());
    selected.tasks.truncate(taken.0);
    repairs.tasks.truncate(taken.1);
    selected.tasks.append(&mut repairs.tasks);
    selected.unreadable.append(&mut repairs.unreadable);
    Ok(selected)
}

/// One query a status: each walks `ix_async_task_due` in order and stops at the limit, whatever
/// the backlog; a single query over several statuses would sort the whole backlog each time.
async fn open(
    db: &Db,
    kind: &Kind,
    statuses: &[TaskStatus],
    now: Instant,
    limit: u32,
) -> Result<Selected> {
    let mut selected = Selected::default();
    for status in statuses.iter().copied() {
        let query = sql!(
            "SELECT id, task_code, business_key, task_data, task_status,
                    COALESCE(running_attempt, 0) AS attempt, next_execute_time,
                    COALESCE(retry_count, 0) AS retries
             FROM fi_async_task
             WHERE deleted = 0 AND task_type = :task_type AND task_status = :status
               AND (next_execute_time IS NULL OR next_execute_time <= :now)
               AND COALESCE(retry_count, 0) < COALESCE(max_retry_count, 3)
               AND (task_status <> 1 OR lost_attempts + 1 < :max_lost OR update_time > :stale)
             ORDER BY next_execute_time {nulls_first}, retry_count {nulls_first}, id
             LIMIT :limit",
            task_type = kind.task_type,
            status = status.code(),
            now = now,
            max_lost = MAX_LOST_ATTEMPTS,
            stale = now - STALE_AFTER,
            limit = limit,
        );
        selected.read(&db.rows(query).await?);
    }
    selected.tasks.sort_by_key(|task| (task.due, task.retries, task.id));
    selected.tasks.truncate(limit as usize);
    Ok(selected)
}

/// RUNNING rows that left nothing behind and that an automatic claim would win, oldest first.
async fn orphans(db: &Db, kind: &Kind, orphan: &str, now: Instant, limit: u32) -> Result<Selected> {
    let text = format!(
        "SELECT id, task_code, business_key, task_data, task_status,
                COALESCE(running_attempt, 0) AS attempt, next_execute_time,
                COALESCE(retry_count, 0) AS retries
         FROM fi_async_task
         WHERE deleted = 0 AND task_type = :task_type AND task_status = 1
           AND update_time < :stale AND {orphan}
           AND (next_execute_time IS NULL OR next_execute_time <= :now)
           AND COALESCE(retry_count, 0) < COALESCE(max_retry_count, 3)
           AND lost_attempts + 1 < :max_lost
         ORDER BY update_time, id
         LIMIT :limit"
    );
    let query = Query::built(text)
        .bind("task_type", kind.task_type)
        .bind("stale", now - STALE_AFTER)
        .bind("now", now)
        .bind("max_lost", MAX_LOST_ATTEMPTS)
        .bind("limit", limit);
    let mut selected = Selected::default();
    selected.read(&db.rows(query).await?);
    Ok(selected)
}

/// What was selected. A row that cannot be read is that task's own trouble.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    pub(crate) tasks: Vec<TaskRow>,
    /// Task code, or row, with what is wrong.
    pub(crate) unreadable: Vec<(String, String)>,
}

impl Selected {
    fn read(&mut self, rows: &[Row]) {
        for row in rows {
            match read(row) {
                Ok(task) => self.tasks.push(task),
                Err(error) => {
                    let code = row.text("task_code").unwrap_or_else(|_| "?".to_owned());
                    self.unreadable.push((code, error.to_string()));
                }
            }
        }
    }
}

/// The tasks a person named, whatever their status, by id.
pub(crate) async fn named(
    db: &Db,
    kind: &Kind,
    selector: &Selector,
    limit: u32,
) -> Result<Selected> {
    let query = Query::new(
        "SELECT id, task_code, business_key, task_data, task_status,
                COALESCE(running_attempt, 0) AS attempt, next_execute_time,
                COALESCE(retry_count, 0) AS retries
         FROM fi_async_task
         WHERE deleted = 0 AND task_type = :task_type
           AND (task_code IN :codes OR business_key IN :keys)
         ORDER BY id
         LIMIT :limit",
    )
    .bind("task_type", kind.task_type)
    .bind_list("codes", selector.codes.iter().map(String::as_str))
    .bind_list("keys", selector.keys.iter().map(String::as_str))
    .bind("limit", limit);
    let mut selected = Selected::default();
    selected.read(&db.rows(query).await?);
    Ok(selected)
}

/// One task by its code, for a kick.
pub(crate) async fn by_code(db: &Db, kind: &Kind, code: &TaskCode) -> Result<Option<TaskRow>> {
    let selector = Selector { codes: vec![code.as_str().to_owned()], keys: vec![] };
    Ok(named(db, kind, &selector, 1).await?.tasks.pop())
}

fn read(row: &Row) -> Result<TaskRow> {
    Ok(TaskRow {
        id: row.int("id")?,
        code: TaskCode::stored(row.text("task_code")?),
        business_key: row.text("business_key")?,
        data: row.maybe_text("task_data")?,
        status: TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed),
        attempt: row.int("attempt")?,
        due: row.maybe_instant("next_execute_time")?,
        retries: row.int("retries")?,
    })
}
