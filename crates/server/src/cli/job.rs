//! `counterfoil job`: one round of one handler, and nothing else. Kicks raised in it are dropped.

use anyhow::Result;
use counterfoil_task::{RoundError, Summary};
use serde_json::json;

use super::output::{Failure, table};
use super::watch::Watch;
use super::{Output, Session};

/// What to do with handlers.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Names the handlers
    List,
    /// Runs one round and prints its summary; exits 1 when a task failed
    Run {
        /// The handler
        handler: String,
        /// Its parameter, JSON; nothing = an automatic scan
        #[arg(long, default_value = "")]
        param: String,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    match command {
        Command::List => list(session).await,
        Command::Run { handler, param } => round(session, &handler, &param).await,
    }
}

async fn list(session: &Session) -> Result<Output> {
    let db = session.open_migrated().await?;
    let engine = session.engine(&db).await?;
    let json: Vec<_> = engine
        .kinds()
        .map(|kind| {
            json!({
                "handler": kind.handler, "stage": kind.stage, "taskType": kind.task_type,
                "defaultMaxTaskCount": kind.default_round, "maxTaskCountCap": kind.max_round,
            })
        })
        .collect();
    let rows: Vec<Vec<String>> =
        engine.kinds().map(|kind| vec![kind.handler.into(), kind.stage.into()]).collect();
    let text = table(&["HANDLER", "STAGE"], &rows);
    Ok(Output::new(json!({ "handlers": json }), text))
}

async fn round(session: &Session, handler: &str, parameter: &str) -> Result<Output> {
    let db = session.open_migrated().await?;
    let engine = session.engine(&db).await?;
    let watch = Watch::new(session, format!("a round of {handler}"), None);
    let round = engine.round(handler, parameter).await;
    drop(watch);
    match round {
        Ok(summary) => {
            let failed = !summary.is_success();
            Ok(Output::new(&summary, describe(&summary)).failed(failed))
        }
        Err(RoundError::Lost { done, source }) => {
            // The round has failed, but what it did by then stands and is shown.
            tracing::error!(%source, "the database was lost in the round");
            let text = format!("{}\nended early: {source}", describe(&done));
            let mut json = serde_json::to_value(&*done)?;
            json["endedEarly"] = json!(source.to_string());
            Ok(Output::new(json, text).failed(true))
        }
        Err(RoundError::UnknownHandler(name)) => {
            let message = format!("there is no handler {name}; `counterfoil job list` names them");
            Err(Failure { code: "unknown-handler", message }.into())
        }
        Err(RoundError::Parameter(error)) => {
            Err(Failure { code: "invalid-parameter", message: error.to_string() }.into())
        }
    }
}

pub(super) fn describe(summary: &Summary) -> String {
    let mut text = format!(
        "{}: selected {}, claimed {}, succeeded {}, handed over {}, skipped {}, failed {}, \
         cancelled {}",
        summary.handler,
        summary.selected,
        summary.claimed,
        summary.succeeded,
        summary.handed_over,
        summary.skipped,
        summary.failed,
        summary.cancelled
    );
    for trouble in &summary.errors {
        text.push_str(&format!("\n  {}: {}", trouble.task_code, trouble.message));
    }
    text
}
