//! A round: select, claim one by one, run, count honestly.

use std::panic::AssertUnwindSafe;

use counterfoil_db::{Error as DbError, transact};
use futures_util::FutureExt;
use serde::Serialize;
use thiserror::Error;
use tracing::Instrument;

use crate::WorkError;
use crate::claim::{ClaimMode, claim};
use crate::engine::{AnyWork, Engine};
use crate::lease::LeaseTerms;
use crate::metric;
use crate::parameter::{ParameterError, RoundParameter};
use crate::run::{Ending, Run, cut};
use crate::select::{self, TaskRow};

/// What a round did. `failed > 0` is not a success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The handler.
    pub handler: String,
    /// Tasks selected.
    pub selected: u32,
    /// Claims won.
    pub claimed: u32,
    /// Tasks that are SUCCESS now by this round.
    pub succeeded: u32,
    /// Tasks whose work was passed on; the row rightly stays RUNNING.
    pub handed_over: u32,
    /// Claims lost, fenced out, leased by another, handed back, or stale.
    pub skipped: u32,
    /// Counted failures.
    pub failed: u32,
    /// Tasks that are CANCELLED now by this round.
    pub cancelled: u32,
    /// One entry a task in trouble.
    pub errors: Vec<TaskTrouble>,
}

/// One task's trouble in a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskTrouble {
    /// The task.
    pub task_code: String,
    /// What happened, without secrets.
    pub message: String,
}

impl Summary {
    /// Whether the round may call itself a success.
    pub fn is_success(&self) -> bool {
        self.failed == 0
    }

    fn trouble(&mut self, task: &TaskRow, message: String) {
        self.errors.push(TaskTrouble { task_code: task.code.to_string(), message });
    }
}

/// Why a round as a whole did not happen or did not end.
#[derive(Debug, Error)]
pub enum RoundError {
    /// No handler has this name.
    #[error("there is no handler {0}; `counterfoil job list` names them")]
    UnknownHandler(String),
    /// The parameter was refused; nothing ran.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The database was lost; the summary tells what had been done by then.
    #[error("the round of {handler} ended early", handler = done.handler)]
    Lost {
        /// What had been done.
        done: Box<Summary>,
        /// Why.
        #[source]
        source: DbError,
    },
}

impl Engine {
    /// Runs one round of a handler with a textual parameter.
    pub async fn round(&self, handler: &str, parameter: &str) -> Result<Summary, RoundError> {
        let done = self.try_round(handler, parameter).await;
        count(&done);
        done
    }

    async fn try_round(&self, handler: &str, parameter: &str) -> Result<Summary, RoundError> {
        if let Some(turns) = self.turns_of_handler(handler) {
            let parameter = RoundParameter::parse(turns.kind(), parameter)?;
            return self.round_of_turns(turns, &parameter).await;
        }
        let work = self.work_of_handler(handler)?;
        let parameter = RoundParameter::parse(work.kind(), parameter)?;
        self.round_of(work, &parameter).await
    }

    async fn round_of(
        &self,
        work: &dyn AnyWork,
        parameter: &RoundParameter,
    ) -> Result<Summary, RoundError> {
        let kind = work.kind();
        let mut summary = Summary { handler: kind.handler.to_owned(), ..Summary::default() };
        let (select::Selected { tasks, unreadable }, mode) =
            match self.select(work, parameter).await {
                Ok(selected) => selected,
                Err(source) => {
                    return Err(RoundError::Lost { done: Box::new(summary), source });
                }
            };
        let selected = tasks.len() + unreadable.len();
        summary.selected = u32::try_from(selected).unwrap_or(u32::MAX);
        for (task_code, message) in unreadable {
            summary.failed += 1;
            summary.errors.push(TaskTrouble { task_code, message });
        }
        for task in &tasks {
            if self.shutdown().is_asked() {
                summary.skipped += 1;
                continue;
            }
            if let Err(source) = self.run_one(work, task, mode, &mut summary).await {
                return Err(RoundError::Lost { done: Box::new(summary), source });
            }
        }
        let ids: Vec<i64> = tasks.iter().filter_map(|task| work.subject_id(task)).collect();
        self.check_touched(kind, &ids).await;
        Ok(summary)
    }

    async fn select(
        &self,
        work: &dyn AnyWork,
        parameter: &RoundParameter,
    ) -> Result<(select::Selected, ClaimMode), DbError> {
        let (kind, limit) = (work.kind(), parameter.max_tasks);
        match &parameter.selector {
            Some(selector) => {
                let tasks = select::named(self.db(), kind, selector, limit).await?;
                Ok((tasks, ClaimMode::Manual))
            }
            None => {
                let now = self.db().now().await?;
                let tasks = select::due(self.db(), kind, work.takeover(), now, limit).await?;
                Ok((tasks, ClaimMode::Automatic))
            }
        }
    }

    /// Claims and runs one task. An error means that the database is lost; every other trouble is
    /// in the summary and the round goes on.
    pub(crate) async fn run_one(
        &self,
        work: &dyn AnyWork,
        task: &TaskRow,
        mode: ClaimMode,
        summary: &mut Summary,
    ) -> Result<(), DbError> {
        let kind = work.kind();
        let claimed = match claim(self.db(), kind, task, mode, work.takeover()).await {
            Ok(claimed) => claimed,
            Err(error) if error.is_lost() => return Err(error),
            Err(error) => {
                summary.failed += 1;
                summary.trouble(task, format!("the claim failed: {error}"));
                return Ok(());
            }
        };
        let Some(claimed) = claimed else {
            summary.skipped += 1;
            return Ok(());
        };
        summary.claimed += 1;
        let run = Run {
            db: self.db(),
            kind,
            task,
            attempt: claimed.attempt,
            worker: self.worker(),
            kicker: self.kicker(),
            shutdown: self.shutdown(),
            terms: LeaseTerms { lasts: self.settings().lease_for },
            lease: std::sync::Mutex::new(None),
        };
        let span = tracing::error_span!("task", code = %task.code, attempt = claimed.attempt);
        let ran = AssertUnwindSafe(work.run(task, &run)).catch_unwind().instrument(span).await;
        let Ok(outcome) = ran else {
            // As if its process had ended: a lost attempt, and no verdict. The others go on.
            summary.failed += 1;
            summary.trouble(task, "its work panicked; the row stays RUNNING until stale".into());
            tracing::error!(task = %task.code, "work panicked");
            return Ok(());
        };
        match outcome {
            Ok(verdict) => {
                match verdict.0 {
                    Ending::Succeeded => summary.succeeded += 1,
                    Ending::HandedOver => summary.handed_over += 1,
                    Ending::Cancelled => summary.cancelled += 1,
                    Ending::Skipped => summary.skipped += 1,
                }
                Ok(())
            }
            Err(error) => conclude(&run, error, summary).await,
        }
    }
}

/// Counts what was done, also by a round that ended early.
pub(crate) fn count(done: &Result<Summary, RoundError>) {
    match done {
        Ok(summary) => metric::outcomes(summary),
        Err(RoundError::Lost { done, .. }) => metric::outcomes(done),
        Err(RoundError::UnknownHandler(_) | RoundError::Parameter(_)) => {}
    }
}

/// Writes down how a run ended that did not succeed, and counts it by what could be written: who
/// was fenced out meanwhile has no say in how the task ended, and is skipped.
async fn conclude(run: &Run<'_>, error: WorkError, summary: &mut Summary) -> Result<(), DbError> {
    if error.is_lost() {
        return Err(lost(error));
    }
    let written = match &error {
        WorkError::FencedOut => Ok(End::FencedOut),
        WorkError::Busy { until } => transact!(put_back(run, Some(*until))),
        WorkError::Stopping => transact!(put_back(run, None)),
        _ => transact!(write_failure(run, &error)),
    };
    match written {
        Ok(End::FencedOut | End::PutBack) => summary.skipped += 1,
        Ok(End::Failed) => count_failure(run, &error, summary),
        Err(unwritten) if unwritten.is_lost() => return Err(lost(unwritten)),
        Err(unwritten) => {
            // The row stays RUNNING and becomes stale: the next claim takes it over.
            count_failure(run, &error, summary);
            let message = format!("its end could not be written: {unwritten}");
            summary.trouble(run.task, message);
        }
    }
    Ok(())
}

/// How a run that did not succeed was written down.
enum End {
    Failed,
    PutBack,
    FencedOut,
}

fn count_failure(run: &Run<'_>, error: &WorkError, summary: &mut Summary) {
    summary.failed += 1;
    summary.trouble(run.task, cut(&error.full_message()));
    tracing::warn!(task = %run.task.code, code = error.code(), %error, "task failed");
}

pub(crate) fn lost(error: WorkError) -> DbError {
    match error {
        WorkError::Db(error) | WorkError::Task(crate::TaskError::Db(error)) => error,
        other => DbError::Lost(counterfoil_db::driver_error(other.to_string())),
    }
}

/// `min(60, max(1, new_retry_count + 1) × 5)` minutes after the failure.
pub(crate) fn backoff(new_retry_count: i64) -> chrono::TimeDelta {
    chrono::TimeDelta::minutes(new_retry_count.saturating_add(1).max(1).saturating_mul(5).min(60))
}

async fn write_failure(run: &Run<'_>, error: &WorkError) -> Result<End, WorkError> {
    let Some(mut tx) = run.begin_for_verdict().await? else {
        return Ok(End::FencedOut);
    };
    let now = tx.now();
    let retries = run.task.retries + 1;
    let message = cut(&error.full_message());
    let update = counterfoil_db::sql!(
        "UPDATE fi_async_task
         SET task_status = 3, retry_count = COALESCE(retry_count, 0) + 1, lost_attempts = 0,
             error_message = :message, next_execute_time = :next, update_time = :now
         WHERE id = :id AND task_status = 1 AND running_attempt = :attempt",
        message = message.as_str(),
        next = now + backoff(retries),
        now = now,
        id = run.task.id,
        attempt = run.attempt,
    );
    tx.execute(update).await?;
    let lease = run.remembered().clone();
    if let Some(lease) = lease {
        lease.fail(&mut tx, error.code(), &message).await?;
    }
    tx.commit("task.failure").await?;
    Ok(End::Failed)
}

/// PENDING again, nothing counted: at once, or when the other's lease ends. It is no verdict: the
/// lost attempts before it still count.
async fn put_back(run: &Run<'_>, due: Option<counterfoil_db::Instant>) -> Result<End, WorkError> {
    let Some(mut tx) = run.begin_for_verdict().await? else {
        return Ok(End::FencedOut);
    };
    let now = tx.now();
    let update = counterfoil_db::sql!(
        "UPDATE fi_async_task
         SET task_status = 0, next_execute_time = :due, update_time = :now
         WHERE id = :id AND task_status = 1 AND running_attempt = :attempt",
        due = due,
        now = now,
        id = run.task.id,
        attempt = run.attempt,
    );
    tx.execute(update).await?;
    let lease = run.remembered().clone();
    if let Some(lease) = lease {
        lease.release(&mut tx).await?;
    }
    tx.commit("task.put_back").await?;
    Ok(End::PutBack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_back_off_ten_fifteen_twenty_minutes_up_to_an_hour() {
        let minutes: Vec<i64> = (1..=13).map(|n| backoff(n).num_minutes()).collect();
        assert_eq!(minutes, [10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 60, 60]);
    }
}
