//! Tasks, handlers and rules: what waits, why, and making one go on.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use counterfoil_protocol::TaskCode;
use counterfoil_task::view::{self, TaskQuery};
use counterfoil_task::{RoundError, TaskStatus};
use serde_json::{Value, json};

use super::{Caller, Desk, Pairs, limit, parameters};
use crate::api::cursor::{self, cursor_of};
use crate::api::problem::Problem;
use crate::rerun::{self, TaskRefusal, Wish};

/// How long an answer waits for a round. The round goes on all the same; 202 says so.
const MAX_ROUND_WAIT: Duration = Duration::from_secs(20);

pub(super) async fn list(
    State(desk): State<Desk>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let status = fields.maybe_text("status").and_then(|name| {
        let status = TaskStatus::named(&name);
        if status.is_none() {
            fields.fault("status", "must be PENDING, RUNNING, SUCCESS, FAILED or CANCELLED");
        }
        status
    });
    let query = TaskQuery {
        status,
        task_type: fields.maybe_text("taskType"),
        before: cursor::asked(&mut fields),
        limit: limit(&mut fields),
    };
    fields.finish()?;
    let page = view::list(&desk.db, &query).await.map_err(|error| refused(error.into()))?;
    let next = page.next_before.map(cursor_of);
    Ok(Json(json!({ "tasks": page.tasks, "nextCursor": next })))
}

pub(super) async fn one(
    State(desk): State<Desk>,
    caller: Caller,
    Path(named): Path<String>,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let (task, code) = found(&desk, &named).await?;
    let data = view::data_of(&desk.db, &code).await.map_err(|error| refused(error.into()))?;
    let trace = view::trace_of(&desk.db, &code).await.map_err(|error| refused(error.into()))?;
    let mut told = json!(task);
    told["taskData"] = json!(data);
    told["trace"] = json!(trace);
    Ok(Json(told))
}

async fn found(desk: &Desk, named: &str) -> Result<(view::TaskView, TaskCode), Problem> {
    let task = view::find(&desk.db, named).await.map_err(|error| refused(error.into()))?;
    let task = task.ok_or_else(|| refused(TaskRefusal::NotFound(named.to_owned())))?;
    let code = TaskCode::stored(task.task_code.clone());
    Ok((task, code))
}

/// What a rerun would do now.
pub(super) async fn rerun_plan(
    State(desk): State<Desk>,
    caller: Caller,
    Path(named): Path<String>,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let planned = rerun::plan(&desk.engine, &named).await.map_err(refused)?;
    Ok(Json(json!(planned)))
}

/// 200 with the summary; 202 while the round still runs; 409 with the plan if it cannot run.
pub(super) async fn run_again(
    State(desk): State<Desk>,
    caller: Caller,
    Path(named): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let user = desk.person(&caller)?;
    let reason = super::acting::reason(&body)?;
    let (task, _) = found(&desk, &named).await?;
    let (engine, code) = (Arc::clone(&desk.engine), task.task_code.clone());
    let round = tokio::spawn(async move {
        rerun::rerun(&engine, &code, Wish { user: user.0, reason: &reason }).await
    });
    let Ok(ended) = tokio::time::timeout(MAX_ROUND_WAIT, round).await else {
        return Ok((StatusCode::ACCEPTED, Json(json!({ "taskCode": task.task_code }))));
    };
    let done = ended.map_err(|error| broken(&error))?.map_err(refused)?;
    if done.summary.is_none() {
        let detail = done.plan.will_not.join("; ");
        return Err(Problem::new(StatusCode::CONFLICT, "task-state", format!("not run: {detail}")));
    }
    Ok((StatusCode::OK, Json(json!(done))))
}

pub(super) async fn give_up(
    State(desk): State<Desk>,
    caller: Caller,
    Path(named): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let user = desk.person(&caller)?;
    let reason = super::acting::reason(&body)?;
    let wish = Wish { user: user.0, reason: &reason };
    let code = rerun::give_up(&desk.db, &named, wish).await.map_err(refused)?;
    Ok(Json(json!({ "taskCode": code.as_str(), "status": "CANCELLED" })))
}

pub(super) async fn handlers(
    State(desk): State<Desk>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let kinds = desk.engine.kinds().map(|kind| {
        json!({
            "handler": kind.handler, "stage": kind.stage, "taskType": kind.task_type,
            "defaultMaxTaskCount": kind.default_round, "maxTaskCountCap": kind.max_round,
        })
    });
    Ok(Json(json!({ "handlers": kinds.collect::<Vec<_>>() })))
}

/// One round of a handler. The body is the round's parameter; `{}` is an automatic scan.
pub(super) async fn round(
    State(desk): State<Desk>,
    caller: Caller,
    Path(handler): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    desk.person(&caller)?;
    let parameter = String::from_utf8_lossy(&body).into_owned();
    let (engine, named) = (Arc::clone(&desk.engine), handler.clone());
    let round = tokio::spawn(async move { engine.round(&named, &parameter).await });
    let Ok(ended) = tokio::time::timeout(MAX_ROUND_WAIT, round).await else {
        return Ok((StatusCode::ACCEPTED, Json(json!({ "handler": handler }))));
    };
    match ended.map_err(|error| broken(&error))? {
        Ok(summary) => Ok((StatusCode::OK, Json(json!(summary)))),
        Err(error) => Err(refused(error.into())),
    }
}

/// Checks every rule, each by itself.
pub(super) async fn rules(
    State(desk): State<Desk>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let rules = crate::wiring::rules();
    let mut broken = Vec::new();
    for rule in &rules {
        let breach = crate::wiring::check(&desk.db, rule).await;
        broken.extend(breach.map_err(|error| unread(&error))?);
    }
    Ok(Json(json!({ "checked": rules.len(), "broken": broken })))
}

fn refused(error: TaskRefusal) -> Problem {
    let status = match &error {
        TaskRefusal::NotFound(_) | TaskRefusal::NoHandler(_) => StatusCode::NOT_FOUND,
        TaskRefusal::State { .. } => StatusCode::CONFLICT,
        TaskRefusal::NoReason => StatusCode::UNPROCESSABLE_ENTITY,
        TaskRefusal::Round(RoundError::UnknownHandler(_)) => {
            return Problem::new(StatusCode::NOT_FOUND, "unknown-handler", error.to_string());
        }
        TaskRefusal::Round(RoundError::Parameter(_)) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Problem::new(status, "invalid-parameter", error.to_string());
        }
        TaskRefusal::Task(_) | TaskRefusal::Round(RoundError::Lost { .. }) => {
            return super::refusal::failed(&error, error.code());
        }
    };
    Problem::new(status, error.code(), error.to_string())
}

/// A round that panicked; what it had committed stands.
fn broken(error: &tokio::task::JoinError) -> Problem {
    super::refusal::failed(error, "database-error")
}

fn unread(error: &anyhow::Error) -> Problem {
    super::refusal::failed(error.as_ref(), "database-error")
}
