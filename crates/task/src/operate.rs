//! What a person may do to a task.

use counterfoil_db::{Db, Read, sql};
use counterfoil_protocol::TaskCode;

use crate::trace::{Action, Subject, Trace, record};
use crate::{TaskError, TaskStatus};

/// What cancelling found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The task is CANCELLED now.
    Cancelled,
    /// It was neither PENDING nor FAILED: untouched.
    Refused(TaskStatus),
    /// There is no such task.
    Unknown,
}

/// Cancels a task that is PENDING or FAILED; traced with the person and the reason.
pub async fn cancel(
    db: &Db,
    code: &TaskCode,
    operator: i64,
    reason: &str,
) -> Result<CancelOutcome, TaskError> {
    let mut tx = db.begin().await?;
    let row = tx
        .row(sql!(
            "SELECT id, task_type, business_key, task_status FROM fi_async_task
             WHERE task_code = :code AND deleted = 0 {for_update}",
            code = code.as_str(),
        ))
        .await?;
    let Some(row) = row else {
        return Ok(CancelOutcome::Unknown);
    };
    let status = TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed);
    if !status.may_become(TaskStatus::Cancelled) || status == TaskStatus::Running {
        return Ok(CancelOutcome::Refused(status));
    }
    let now = tx.now();
    let id = row.int("id")?;
    tx.execute(sql!(
        "UPDATE fi_async_task
         SET task_status = 4, error_message = :reason, next_execute_time = NULL,
             update_user_id = :operator, update_time = :now
         WHERE id = :id AND task_status IN (0, 3)",
        reason = crate::run::cut(reason),
        operator = operator,
        now = now,
        id = id,
    ))
    .await?;
    let (task_type, business_key) = (row.text("task_type")?, row.text("business_key")?);
    let trace = Trace {
        task_id: id,
        code,
        task_type: &task_type,
        business_key: &business_key,
        action: Action::Cancel,
        source: Some(code),
        result: TaskStatus::Cancelled.to_string(),
        detail: Some(
            serde_json::json!({ "reason": reason, "was": status.to_string() }).to_string(),
        ),
        operator: Some(operator),
    };
    record(&mut tx, &trace, &Subject::none()).await?;
    tx.commit("task.cancel").await?;
    Ok(CancelOutcome::Cancelled)
}
