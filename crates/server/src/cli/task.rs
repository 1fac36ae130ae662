//! `counterfoil task`: list, show, rerun, cancel, trace.

use anyhow::Result;
use counterfoil_db::Db;
use counterfoil_protocol::TaskCode;
use counterfoil_task::TaskStatus;
use counterfoil_task::view::{self, TaskQuery, TaskView};
use serde_json::{Value, json};

use super::output::{Failure, table, tries};
use super::{Output, Session};
use crate::rerun::{self, TaskRefusal, Wish};

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
        /// Only tasks before this id (nextBefore of the page before)
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
        #[arg(long, required_unless_present = "dry_run")]
        reason: Option<String>,
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
            let status = status.as_deref().map(parse_status).transpose()?;
            let limit = Some(limit);
            list(&db, &TaskQuery { status, task_type: r#type, before, limit }).await
        }
        Command::Show { task } => show(&db, &task).await,
        Command::Rerun { task, reason, dry_run } => {
            let reason = reason.unwrap_or_default();
            let wish = Wish { user: session.user()?, reason: &reason };
            rerun_one(session, &db, &task, wish, dry_run).await
        }
        Command::Cancel { task, reason } => {
            let wish = Wish { user: session.user()?, reason: &reason };
            let code = rerun::give_up(&db, &task, wish).await?;
            let json = json!({ "taskCode": code.as_str(), "status": "CANCELLED" });
            Ok(Output::new(json, format!("{code} is CANCELLED, for good")))
        }
        Command::Trace { task } => trace(&db, &task).await,
    }
}

async fn list(db: &Db, query: &TaskQuery) -> Result<Output> {
    let page = view::list(db, query).await?;
    let row = |task: &TaskView| {
        let due = task.next_execute_time;
        vec![
            task.task_code.clone(),
            task.business_key.clone(),
            task.status.clone(),
            tries(task.retry_count, task.max_retry_count),
            due.map_or_else(String::new, |due| due.to_rfc3339()),
            task.error_message.iter().flat_map(|message| message.chars()).take(60).collect(),
        ]
    };
    let shown: Vec<_> = page.tasks.iter().map(row).collect();
    let header = ["CODE", "KEY", "STATUS", "RETRIES", "NEXT", "ERROR"];
    let text = if shown.is_empty() { "no task matches".into() } else { table(&header, &shown) };
    Ok(Output::new(page, text))
}

fn parse_status(text: &str) -> Result<TaskStatus> {
    TaskStatus::named(text).ok_or_else(|| {
        let message =
            format!("--status {text}: must be PENDING, RUNNING, SUCCESS, FAILED or CANCELLED");
        Failure { code: "invalid-input", message }.into()
    })
}

async fn find(db: &Db, named: &str) -> Result<TaskView> {
    let found = view::find(db, named).await?;
    Ok(found.ok_or_else(|| TaskRefusal::NotFound(named.to_owned()))?)
}

async fn show(db: &Db, named: &str) -> Result<Output> {
    let task = find(db, named).await?;
    let data = view::data_of(db, &TaskCode::stored(task.task_code.clone())).await?;
    let mut json = serde_json::to_value(&task)?;
    json["taskData"] = json!(data);
    let mut text = String::new();
    if let Value::Object(fields) = &json {
        for (field, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{field:<16} {value}\n"));
        }
    }
    Ok(Output::new(json, text))
}

async fn trace(db: &Db, named: &str) -> Result<Output> {
    let code = TaskCode::stored(find(db, named).await?.task_code);
    let trace = view::trace_of(db, &code).await?;
    let row = |one: &view::TraceView| {
        vec![
            one.time.to_rfc3339(),
            one.action.clone(),
            one.result.clone(),
            one.operator_user_id.map_or_else(String::new, |id| id.to_string()),
            one.detail.clone().unwrap_or_default(),
        ]
    };
    let shown: Vec<_> = trace.iter().map(row).collect();
    let text = table(&["TIME", "ACTION", "RESULT", "USER", "DETAIL"], &shown);
    Ok(Output::new(json!({ "taskCode": code.as_str(), "trace": trace }), text))
}

async fn rerun_one(
    session: &Session,
    db: &Db,
    named: &str,
    wish: Wish<'_>,
    dry_run: bool,
) -> Result<Output> {
    let engine = session.engine(db).await?;
    let done = match dry_run {
        true => rerun::plan(&engine, named).await?,
        false => rerun::rerun(&engine, named, wish).await?,
    };
    let Some(summary) = done.summary else {
        let text = done.plan.text();
        let json = json!({
            "taskCode": done.task_code, "handler": done.handler, "plan": done.plan,
        });
        return Ok(Output::new(json, text).failed(!dry_run));
    };
    let text = format!(
        "{}: claimed {}, succeeded {}, skipped {}, failed {}",
        done.task_code, summary.claimed, summary.succeeded, summary.skipped, summary.failed
    );
    let failed = !summary.is_success();
    Ok(Output::new(&summary, text).failed(failed))
}
