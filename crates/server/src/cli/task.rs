//! `counterfoil task`: list, show, rerun, cancel, trace.

use anyhow::Result;
use counterfoil_db::{Db, Read, Row, sql};
use counterfoil_protocol::TaskCode;
use counterfoil_task::{CancelOutcome, TRACE_OF_TASK, TaskStatus, cancel};
use serde_json::{Value, json};

use super::output::{Failure, table, tries};
use super::{Output, Session};

/// Rows of a list.
const MAX_LISTED: u32 = 200;

/// What to do with tasks.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists tasks, newest first
    List {
        /// PENDING, RUNNING, SUCCESS, FAILED or CANCELLED
        #[arg(long)]
        status: Option<String>,
        /// Only this task type
        #[arg(long)]
        r#type: Option<String>,
        /// Only tasks before this id (the last one of the page before)
        #[arg(long)]
        before: Option<i64>,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Shows one task
    Show {
        /// Task code or business key
        task: String,
    },
    /// Runs one task again, past its due time and retry limit, and nothing else
    Rerun {
        /// Task code or business key
        task: String,
        /// Why; kept in the trace
        #[arg(long)]
        reason: String,
        /// Only say what would happen
        #[arg(long)]
        dry_run: bool,
    },
    /// Cancels a PENDING or FAILED task for good
    Cancel {
        /// Task code or business key
        task: String,
        /// Why; kept in the trace
        #[arg(long)]
        reason: String,
    },
    /// What happened to one task, oldest first
    Trace {
        /// Task code or business key
        task: String,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::List { status, r#type, before, limit } => {
            list(&db, status.as_deref(), r#type.as_deref(), before, limit).await
        }
        Command::Show { task } => show(&db, &task).await,
        Command::Rerun { task, reason, dry_run } => {
            rerun(session, &db, &task, &reason, dry_run).await
        }
        Command::Cancel { task, reason } => cancel_one(session, &db, &task, &reason).await,
        Command::Trace { task } => trace(&db, &task).await,
    }
}

const COLUMNS: &str = "id, task_code, task_type, business_key, task_data, task_status,
    COALESCE(retry_count, 0) AS retries, COALESCE(max_retry_count, 3) AS most,
    next_execute_time, COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
    create_time, update_time";

fn status_of(row: &Row) -> Result<TaskStatus> {
    let code = row.int("task_status")?;
    TaskStatus::of_code(code).ok_or_else(|| anyhow::anyhow!("task_status {code} is unknown"))
}

fn as_json(row: &Row) -> Result<Value> {
    Ok(json!({
        "id": row.int("id")?,
        "taskCode": row.text("task_code")?,
        "taskType": row.text("task_type")?,
        "businessKey": row.text("business_key")?,
        "status": status_of(row)?.to_string(),
        "taskStatus": row.int("task_status")?,
        "retryCount": row.int("retries")?,
        "maxRetryCount": row.int("most")?,
        "nextExecuteTime": row.maybe_instant("next_execute_time")?,
        "runningAttempt": row.int("attempt")?,
        "lostAttempts": row.int("lost_attempts")?,
        "errorMessage": row.maybe_text("error_message")?,
        "createTime": row.instant("create_time")?,
        "updateTime": row.instant("update_time")?,
    }))
}

async fn list(
    db: &Db,
    status: Option<&str>,
    task_type: Option<&str>,
    before: Option<i64>,
    limit: u32,
) -> Result<Output> {
    let status = status.map(parse_status).transpose()?;
    let query = counterfoil_db::Query::built(format!(
        "SELECT {COLUMNS} FROM fi_async_task
         WHERE deleted = 0 AND id < :before AND (:any_status = 1 OR task_status = :status)
           AND (:any_type = 1 OR task_type = :task_type)
         ORDER BY id DESC LIMIT :limit"
    ))
    .bind("before", before.unwrap_or(i64::MAX))
    .bind("any_status", status.is_none())
    .bind("status", status.map_or(0, TaskStatus::code))
    .bind("any_type", task_type.is_none())
    .bind("task_type", task_type.unwrap_or_default())
    .bind("limit", limit.clamp(1, MAX_LISTED));
    let rows = db.rows(query).await?;
    let json: Vec<Value> = rows.iter().map(as_json).collect::<Result<_>>()?;
    let mut shown = Vec::new();
    for row in &rows {
        let due = row.maybe_instant("next_execute_time")?;
        shown.push(vec![
            row.text("task_code")?,
            row.text("business_key")?,
            status_of(row)?.to_string(),
            tries(row.int("retries")?, row.int("most")?),
            due.map_or_else(String::new, |due| due.to_rfc3339()),
            row.maybe_text("error_message")?.unwrap_or_default().chars().take(60).collect(),
        ]);
    }
    let header = ["CODE", "KEY", "STATUS", "RETRIES", "NEXT", "ERROR"];
    let text = if shown.is_empty() { "no task matches".into() } else { table(&header, &shown) };
    Ok(Output::new(json!({ "tasks": json }), text))
}

fn parse_status(text: &str) -> Result<TaskStatus> {
    let upper = text.to_uppercase();
    let found = TaskStatus::ALL.into_iter().find(|status| status.to_string() == upper);
    found.ok_or_else(|| {
        let message =
            format!("--status {text}: must be PENDING, RUNNING, SUCCESS, FAILED or CANCELLED");
        Failure { code: "invalid-input", message }.into()
    })
}

async fn find(db: &Db, task: &str) -> Result<Row> {
    let query = counterfoil_db::Query::built(format!(
        "SELECT {COLUMNS} FROM fi_async_task
         WHERE deleted = 0 AND (task_code = :task OR business_key = :task)
         ORDER BY id LIMIT 1"
    ))
    .bind("task", task);
    let message = format!("there is no task with the code or business key {task}");
    db.row(query).await?.ok_or_else(|| Failure { code: "task-not-found", message }.into())
}

async fn show(db: &Db, task: &str) -> Result<Output> {
    let row = find(db, task).await?;
    let mut json = as_json(&row)?;
    json["taskData"] = json!(row.maybe_text("task_data")?);
    let mut text = String::new();
    if let Value::Object(fields) = &json {
        for (field, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{field:<16} {value}\n"));
        }
    }
    Ok(Output::new(json, text))
}

async fn trace(db: &Db, task: &str) -> Result<Output> {
    let row = find(db, task).await?;
    let code = row.text("task_code")?;
    let query = sql!(TRACE_OF_TASK, code = code.as_str(), limit = MAX_LISTED);
    let mut json = Vec::new();
    let mut shown = Vec::new();
    for row in db.rows(query).await? {
        let detail = row.maybe_text("detail")?;
        json.push(json!({
            "action": row.text("action")?,
            "sourceTaskCode": row.maybe_text("source_task_code")?,
            "result": row.text("result")?,
            "detail": detail,
            "operatorUserId": row.maybe_int("operator_user_id")?,
            "time": row.instant("create_time")?,
        }));
        shown.push(vec![
            row.instant("create_time")?.to_rfc3339(),
            row.text("action")?,
            row.text("result")?,
            row.maybe_int("operator_user_id")?.map_or_else(String::new, |id| id.to_string()),
            detail.unwrap_or_default(),
        ]);
    }
    let text = table(&["TIME", "ACTION", "RESULT", "USER", "DETAIL"], &shown);
    Ok(Output::new(json!({ "taskCode": code, "trace": json }), text))
}

async fn cancel_one(session: &Session, db: &Db, task: &str, reason: &str) -> Result<Output> {
    let user = session.user()?;
    anyhow::ensure!(!reason.trim().is_empty(), "--reason must say why");
    let code = TaskCode::stored(find(db, task).await?.text("task_code")?);
    match cancel(db, &code, user, reason).await? {
        CancelOutcome::Cancelled => Ok(Output::new(
            json!({ "taskCode": code.as_str(), "status": "CANCELLED" }),
            format!("{code} is CANCELLED, for good"),
        )),
        CancelOutcome::Refused(status) => {
            let message = format!("{code} is {status}: only PENDING or FAILED can be cancelled");
            Err(Failure { code: "task-state", message }.into())
        }
        CancelOutcome::Unknown => {
            let message = format!("there is no task {code}");
            Err(Failure { code: "task-not-found", message }.into())
        }
    }
}

async fn rerun(
    session: &Session,
    db: &Db,
    task: &str,
    reason: &str,
    dry_run: bool,
) -> Result<Output> {
    let user = session.user()?;
    anyhow::ensure!(!reason.trim().is_empty(), "--reason must say why");
    let row = find(db, task).await?;
    let code = TaskCode::stored(row.text("task_code")?);
    let task_type = row.text("task_type")?;
    let engine = session.engine(db).await?;
    let kind = engine.kinds().find(|kind| kind.task_type == task_type);
    let Some(kind) = kind else {
        let message = format!("no handler of this build works on {task_type}");
        return Err(Failure { code: "unknown-handler", message }.into());
    };
    let plan = counterfoil_task::rerun_plan(db, &code, engine.takeover_of(kind.handler)).await?;
    if dry_run || !plan.will_run {
        let json = json!({ "taskCode": code.as_str(), "handler": kind.handler, "plan": plan });
        return Ok(Output::new(json, plan.text()).failed(!dry_run));
    }
    counterfoil_task::trace_rerun(db, &code, user, reason).await?;
    let parameter = json!({ "taskCode": code.as_str() }).to_string();
    let summary = engine.round(kind.handler, &parameter).await?;
    let failed = !summary.is_success();
    let text = format!(
        "{code}: claimed {}, succeeded {}, skipped {}, failed {}",
        summary.claimed, summary.succeeded, summary.skipped, summary.failed
    );
    Ok(Output::new(&summary, text).failed(failed))
}
