//! Running one task again on a person's word: planned, traced, then one round of its handler that
//! takes this task and no other. The same for commands, programs and pages.

use counterfoil_protocol::TaskCode;
use counterfoil_task::{
    CancelOutcome, Engine, RerunPlan, RoundError, Summary, TaskError, TaskStatus, cancel,
    rerun_plan, trace_rerun, view,
};
use serde::Serialize;
use serde_json::json;

/// Why nothing was done to a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskRefusal {
    /// No task has this code or business key.
    #[error("there is no task with the code or business key {0}")]
    NotFound(String),
    /// This build knows no handler for the task's type.
    #[error("no handler of this build works on {0}")]
    NoHandler(String),
    /// Its state does not allow it.
    #[error("{code} is {status}: only PENDING or FAILED can be cancelled")]
    State {
        /// The task.
        code: TaskCode,
        /// Its status.
        status: TaskStatus,
    },
    /// Nobody says why.
    #[error("the reason must say why")]
    NoReason,
    /// The engine refused or failed.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The round did not go to its end.
    #[error(transparent)]
    Round(#[from] RoundError),
}

impl TaskRefusal {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            TaskRefusal::NotFound(_) => "task-not-found",
            TaskRefusal::NoHandler(_) => "unknown-handler",
            TaskRefusal::State { .. } => "task-state",
            TaskRefusal::NoReason => "invalid-input",
            TaskRefusal::Task(_) | TaskRefusal::Round(_) => "database-error",
        }
    }
}

/// Who wants it, and why.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The person.
    pub user: i64,
    /// Why; kept in the trace.
    pub reason: &'a str,
}

/// What became of a rerun.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rerun {
    /// The task.
    pub task_code: String,
    /// Its handler.
    pub handler: &'static str,
    /// What was said to happen, before it did.
    pub plan: RerunPlan,
    /// What the round did; nothing = it was a dry run, or the plan says that it cannot run.
    pub summary: Option<Summary>,
}

/// What a rerun would do now; nothing is written.
///
/// # Errors
/// Names a task that is not there, or one without a handler.
pub async fn plan(engine: &Engine, named: &str) -> Result<Rerun, TaskRefusal> {
    let found = view::find(engine.db(), named).await?;
    let task = found.ok_or_else(|| TaskRefusal::NotFound(named.to_owned()))?;
    let kind = engine.kinds().find(|kind| kind.task_type == task.task_type);
    let handler = kind.ok_or(TaskRefusal::NoHandler(task.task_type))?.handler;
    let code = TaskCode::stored(task.task_code.clone());
    let plan = rerun_plan(engine.db(), &code, engine.takeover_of(handler)).await?;
    Ok(Rerun { task_code: task.task_code, handler, plan, summary: None })
}

/// Runs it again if a claim can win now. Otherwise nothing is written, and the plan says why.
///
/// # Errors
/// As [`plan`]; a blank reason; a round that the database ended.
pub async fn rerun(engine: &Engine, named: &str, wish: Wish<'_>) -> Result<Rerun, TaskRefusal> {
    require_reason(wish)?;
    let planned = plan(engine, named).await?;
    if !planned.plan.will_run {
        return Ok(planned);
    }
    let code = TaskCode::stored(planned.task_code.clone());
    trace_rerun(engine.db(), &code, wish.user, wish.reason).await?;
    let parameter = json!({ "taskCode": code.as_str() }).to_string();
    let summary = engine.round(planned.handler, &parameter).await?;
    Ok(Rerun { summary: Some(summary), ..planned })
}

/// Cancels a task that is PENDING or FAILED, for good; answers its code.
///
/// # Errors
/// Names a task that is not there, or its state; a blank reason.
pub async fn give_up(
    db: &counterfoil_db::Db,
    named: &str,
    wish: Wish<'_>,
) -> Result<TaskCode, TaskRefusal> {
    require_reason(wish)?;
    let unknown = || TaskRefusal::NotFound(named.to_owned());
    let task = view::find(db, named).await?.ok_or_else(unknown)?;
    let code = TaskCode::stored(task.task_code);
    match cancel(db, &code, wish.user, wish.reason).await? {
        CancelOutcome::Cancelled => Ok(code),
        CancelOutcome::Refused(status) => Err(TaskRefusal::State { code, status }),
        CancelOutcome::Unknown => Err(unknown()),
    }
}

fn require_reason(wish: Wish<'_>) -> Result<(), TaskRefusal> {
    if wish.reason.trim().is_empty() { Err(TaskRefusal::NoReason) } else { Ok(()) }
}
