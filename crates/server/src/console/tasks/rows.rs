//! Tasks as they are read for pages. A filter never walks the whole table: it looks at so many rows
//! and says where it stopped.

use counterfoil_db::{Db, Instant, Query, Read, Row, sql};
use counterfoil_payment::kinds::REVIEW_CALLBACK;
use counterfoil_protocol::OrderId;
use counterfoil_task::TaskStatus;

use crate::console::shell::Trouble;
use crate::console::subjects::orders_of;

/// Rows that one page looks at, at most, however few match.
const MAX_LOOKED_AT: u32 = 20_000;

/// A task for people.
#[derive(Debug, Clone)]
pub(in crate::console) struct TaskLine {
    pub(super) id: i64,
    pub(super) code: String,
    pub(super) task_type: String,
    pub(super) key: String,
    pub(super) data: Option<String>,
    pub(super) status: TaskStatus,
    pub(super) retries: i64,
    pub(super) most: i64,
    pub(super) attempt: i64,
    pub(super) lost: i64,
    pub(super) due: Option<Instant>,
    pub(super) message: Option<String>,
    pub(super) created: Instant,
    pub(super) updated: Instant,
    pub(super) order: Option<i64>,
}

impl TaskLine {
    fn read(row: &Row) -> Result<TaskLine, Trouble> {
        Ok(TaskLine {
            id: row.int("id")?,
            code: row.text("task_code")?,
            task_type: row.text("task_type")?,
            key: row.text("business_key")?,
            data: row.maybe_text("task_data")?,
            status: TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed),
            retries: row.int("retries")?,
            most: row.int("most")?,
            attempt: row.int("attempt")?,
            lost: row.int("lost_attempts")?,
            due: row.maybe_instant("next_execute_time")?,
            message: row.maybe_text("error_message")?,
            created: row.instant("create_time")?,
            updated: row.instant("update_time")?,
            order: None,
        })
    }

    /// Failures of the failures that are allowed.
    pub(super) fn tries(&self) -> String {
        match self.most >= i64::from(i32::MAX) {
            true => self.retries.to_string(),
            false => format!("{} / {}", self.retries, self.most),
        }
    }
}

const COLUMNS: &str = "id, task_code, task_type, business_key, task_data, task_status,
    COALESCE(retry_count, 0) AS retries, COALESCE(max_retry_count, 3) AS most,
    next_execute_time, COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
    create_time, update_time";

/// A page of tasks.
pub(super) struct TaskPage {
    pub(super) tasks: Vec<TaskLine>,
    pub(super) next: Option<i64>,
    /// Whether it stopped looking before the page was full.
    pub(super) is_cut: bool,
}

/// Tasks, newest first.
pub(super) async fn page(
    db: &Db,
    task_type: &str,
    status: Option<TaskStatus>,
    before: Option<i64>,
    limit: u32,
) -> Result<TaskPage, Trouble> {
    let before = before.unwrap_or(i64::MAX);
    let query = Query::built(format!(
        "SELECT {COLUMNS} FROM (
           SELECT * FROM fi_async_task WHERE deleted = 0 AND id < :before
           ORDER BY id DESC LIMIT :most) looked_at
         WHERE (:any_type = 1 OR task_type = :task_type)
           AND (:any_status = 1 OR task_status = :status)
         ORDER BY id DESC LIMIT :limit"
    ))
    .bind("before", before)
    .bind("most", MAX_LOOKED_AT)
    .bind("any_type", task_type.is_empty())
    .bind("task_type", task_type)
    .bind("any_status", status.is_none())
    .bind("status", status.map_or(0, TaskStatus::code))
    .bind("limit", limit + 1);
    let rows = db.rows(query).await?;
    let mut tasks: Vec<TaskLine> = rows.iter().map(TaskLine::read).collect::<Result<_, _>>()?;
    let is_full = tasks.len() > limit as usize;
    tasks.truncate(limit as usize);
    let stopped_at = if is_full { None } else { stopped_at(db, before).await? };
    let last = tasks.last().map(|task| task.id).filter(|_| is_full);
    with_orders(db, &mut tasks).await?;
    Ok(TaskPage { tasks, next: last.or(stopped_at), is_cut: stopped_at.is_some() })
}

/// The last row that a page looked at, if there may be more behind it.
async fn stopped_at(db: &Db, before: i64) -> Result<Option<i64>, Trouble> {
    let query = sql!(
        "SELECT MIN(id) AS last, COUNT(*) AS n FROM (
           SELECT id FROM fi_async_task WHERE deleted = 0 AND id < :before
           ORDER BY id DESC LIMIT :most) looked_at",
        before = before,
        most = MAX_LOOKED_AT,
    );
    let Some(row) = db.row(query).await? else {
        return Ok(None);
    };
    let is_window_full = row.int("n")? >= i64::from(MAX_LOOKED_AT);
    Ok(row.maybe_int("last")?.filter(|_| is_window_full))
}

async fn with_orders(db: &Db, tasks: &mut [TaskLine]) -> Result<(), Trouble> {
    let data: Vec<Option<String>> = tasks.iter().map(|task| task.data.clone()).collect();
    for (task, order) in tasks.iter_mut().zip(orders_of(db, &data).await?) {
        task.order = order;
    }
    Ok(())
}

/// One task, by its code or its business key.
pub(super) async fn find(db: &Db, named: &str) -> Result<TaskLine, Trouble> {
    maybe_find(db, named).await?.ok_or_else(Trouble::not_there)
}

/// The same, where there may be none.
pub(in crate::console) async fn maybe_find(
    db: &Db,
    named: &str,
) -> Result<Option<TaskLine>, Trouble> {
    for column in ["task_code", "business_key"] {
        let query = Query::built(format!(
            "SELECT {COLUMNS} FROM fi_async_task WHERE {column} = :named AND deleted = 0
             ORDER BY id LIMIT 1"
        ));
        if let Some(row) = db.row(query.bind("named", named)).await? {
            let mut found = [TaskLine::read(&row)?];
            with_orders(db, &mut found).await?;
            let [task] = found;
            return Ok(Some(task));
        }
    }
    Ok(None)
}

/// The S07 tasks of an order's callbacks, newest first.
pub(in crate::console) async fn callbacks_of(
    db: &Db,
    order: OrderId,
    limit: u32,
) -> Result<Vec<TaskLine>, Trouble> {
    let query = sql!(
        "SELECT task_code, MAX(id) AS last
         FROM fi_resident_income_payment_async_operation_log
         WHERE payment_order_id = :order AND task_type = :task_type
         GROUP BY task_code ORDER BY MAX(id) DESC LIMIT :limit",
        order = order.0,
        task_type = REVIEW_CALLBACK.task_type,
        limit = limit,
    );
    let mut codes = Vec::new();
    for row in db.rows(query).await? {
        codes.push(row.text("task_code")?);
    }
    let query = Query::built(format!(
        "SELECT {COLUMNS} FROM fi_async_task WHERE task_code IN :codes AND deleted = 0
         ORDER BY id DESC"
    ));
    let rows = db.rows(query.bind_list("codes", codes)).await?;
    let mut tasks: Vec<TaskLine> = rows.iter().map(TaskLine::read).collect::<Result<_, _>>()?;
    for task in &mut tasks {
        task.order = Some(order.0);
    }
    Ok(tasks)
}
