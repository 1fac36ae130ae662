//! `counterfoil reconcile`: the centre's tasks.

use anyhow::Result;
use counterfoil_db::Db;
use counterfoil_reconcile::form_centre::create::{self, Wish};
use counterfoil_reconcile::form_centre::list::{self, TaskFilter};
use counterfoil_reconcile::form_centre::{CentreSettings, dispatch};
use counterfoil_task::Summary;
use serde_json::{Value, json};

use super::output::{Failure, table};
use super::{Output, Session, reconcile_watch};
use crate::api::form_admin::scope_of;
use crate::findings;
use crate::reconcile_wiring::HANDLERS;

/// What to do with reconciliation.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Makes tasks; exits 1 when one was refused
    Create(Create),
    /// Lists tasks, newest first
    List {
        /// QUEUED, DISPATCHED, RUNNING, COMPLETED, PARTIAL, FAILED or CANCELLED
        #[arg(long)]
        state: Option<String>,
        /// Only of this consumer
        #[arg(long)]
        consumer: Option<String>,
        /// Only of this form
        #[arg(long)]
        form: Option<String>,
        /// Only tasks before this row (next of the page before)
        #[arg(long)]
        before: Option<i64>,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Shows one task and its reports
    Show {
        /// Its id
        task: String,
        /// Waits for its end and shows how far it has come; exits 1 unless it is COMPLETED
        #[arg(long)]
        follow: bool,
    },
    /// Cancels a task, once or again
    Cancel {
        /// Its id
        task: String,
        /// Why
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Runs one round each of schedule, dispatch and work, as far as they are enabled, and shows
    /// what was found of each task
    Run,
}

/// What is to be reconciled.
#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// ALL (everything the consumer has a grant on), FORM or ANSWER
    #[arg(long, default_value = "ALL")]
    scope: String,
    /// The consumer's app key
    #[arg(long)]
    consumer: String,
    /// The school
    #[arg(long)]
    school: Option<String>,
    /// The form
    #[arg(long)]
    form: Option<String>,
    /// The answer, with --scope ANSWER
    #[arg(long)]
    answer: Option<String>,
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    let own = session.config.signing.app_key.as_str();
    let settings = session.config.fc.answer.reconcile.settings(own);
    match command {
        Command::Create(order) => create(&db, &settings, order, &session.actor()).await,
        Command::List { state, consumer, form, before, limit } => {
            let filter = TaskFilter { state, consumer, form, before };
            tasks(&db, &filter, limit).await
        }
        Command::Show { task, follow } => {
            if follow {
                reconcile_watch::follow(session, &db, &task).await?;
            }
            let (output, state) = show(&db, &task).await?;
            Ok(output.failed(follow && state != "COMPLETED"))
        }
        Command::Cancel { task, reason } => {
            let done = dispatch::cancel(&db, &task, &session.actor(), &reason).await?;
            let (task, _) = list::one(&db, &task).await?;
            let json = json!({
                "taskId": task.task_id, "state": task.state, "cancelledNow": done,
            });
            Ok(Output::new(json, format!("task {} is {}", task.task_id, task.state)))
        }
        Command::Run => rounds(session, &db).await,
    }
}

async fn create(db: &Db, settings: &CentreSettings, order: Create, actor: &str) -> Result<Output> {
    let scope = scope_of(&order.scope.to_uppercase()).ok_or_else(|| {
        let message = format!("--scope {}: must be ALL, FORM or ANSWER", order.scope);
        Failure { code: "invalid-input", message }
    })?;
    let wish = Wish {
        scope,
        consumer: order.consumer,
        school: order.school,
        form: order.form,
        answer: order.answer,
    };
    let made = create::create(db, settings, &wish, actor).await?;
    let is_refused = made.iter().any(|task| task.reason_code.is_some());
    let rows: Vec<Vec<String>> = made
        .iter()
        .map(|task| {
            let reason = task.reason.clone().unwrap_or_default();
            vec![task.task_id.clone(), task.state.into(), reason]
        })
        .collect();
    let text = table(&["TASK", "STATE", "REASON"], &rows);
    Ok(Output::new(json!({ "tasks": made }), text).failed(is_refused))
}

async fn tasks(db: &Db, filter: &TaskFilter, limit: u32) -> Result<Output> {
    let (tasks, next) = list::tasks(db, filter, limit).await?;
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .map(|task| {
            vec![
                task.task_id.clone(),
                task.state.clone(),
                task.coordinate.consumer.clone(),
                task.coordinate.school.clone(),
                task.coordinate.form.clone(),
                task.attempt.to_string(),
                task.total_rows.to_string(),
                task.reason_code.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["TASK", "STATE", "CONSUMER", "SCHOOL", "FORM", "ATTEMPT", "ROWS", "REASON"];
    let items: Vec<Value> = tasks.iter().map(list::shown).collect();
    Ok(Output::new(json!({ "items": items, "next": next }), table(&header, &rows)))
}

async fn show(db: &Db, task: &str) -> Result<(Output, String)> {
    let (task, reports) = list::one(db, task).await?;
    let shown = list::shown(&task);
    let mut text = String::new();
    if let Value::Object(fields) = &shown {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "counts") {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{name}: {value}\n"));
        }
    }
    for report in &reports {
        let errors = report.errors.as_array().map_or(0, Vec::len);
        text.push_str(&format!(
            "attempt {}: {} at {}; {}; {errors} items\n",
            report.attempt,
            report.state,
            report.received_at,
            findings::line(&report.counts)
        ));
    }
    let kinds: Vec<Vec<String>> = findings::nonzero(&shown["counts"])
        .map(|(kind, count, meaning)| vec![kind.into(), count.to_string(), meaning.into()])
        .collect();
    if !kinds.is_empty() {
        text.push_str(&table(&["KIND", "COUNT", "WHAT IT MEANS"], &kinds));
    }
    Ok((Output::new(json!({ "task": shown, "results": reports }), text), task.state))
}

async fn rounds(session: &Session, db: &Db) -> Result<Output> {
    let engine = session.engine(db).await?;
    let began = db.now().await?;
    let mut summaries: Vec<Summary> = Vec::new();
    let running = async {
        for handler in HANDLERS {
            summaries.push(engine.round(handler, "").await?);
        }
        anyhow::Ok(())
    };
    reconcile_watch::watched(session, db, began, running).await?;
    let failed = summaries.iter().any(|summary| !summary.is_success());
    let (tasks, works) = reconcile_watch::since(db, began).await?;
    let mut text: Vec<String> = summaries.iter().map(super::job::describe).collect();
    text.extend(reconcile_watch::said(&tasks, &works));
    let tasks: Vec<Value> = tasks.iter().map(list::shown).collect();
    let json = json!({ "rounds": summaries, "tasks": tasks, "works": works });
    Ok(Output::new(json, text.join("\n")).failed(failed))
}
