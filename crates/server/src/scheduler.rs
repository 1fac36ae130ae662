//! The built-in cron: one loop a handler, rounds of one handler never overlapping.

use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use counterfoil_db::{Instant, Read};
use counterfoil_task::{Engine, RoundError, Shutdown};
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use tokio::task::JoinSet;

/// The longest wait before the clock is read again: it may have been set meanwhile.
const MAX_WAIT: TimeDelta = TimeDelta::seconds(60);

/// A handler with its parsed expression.
#[derive(Debug, Clone)]
pub struct Job {
    handler: &'static str,
    cron: Cron,
}

/// Reads the cron expression of every handler: its own, or the default.
pub fn jobs(engine: &Engine, config: &crate::config::SchedulerConfig) -> Result<Vec<Job>> {
    let handlers = engine.handlers();
    for named in config.jobs.keys() {
        let known = handlers.contains(&named.as_str());
        anyhow::ensure!(known, "scheduler.jobs names the unknown handler {named}");
    }
    let parse = |handler: &'static str| {
        let text = config.jobs.get(handler).unwrap_or(&config.default_cron);
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let cron = parser.parse(text);
        let cron = cron.with_context(|| format!("the cron expression {text} of {handler}"))?;
        Ok(Job { handler, cron })
    };
    handlers.into_iter().map(parse).collect()
}

/// Runs rounds until shutdown.
pub async fn run(engine: Arc<Engine>, jobs: Vec<Job>, shutdown: Shutdown) {
    let mut loops = JoinSet::new();
    for job in jobs {
        loops.spawn(run_job(engine.clone(), job, shutdown.clone()));
    }
    while loops.join_next().await.is_some() {}
}

async fn run_job(engine: Arc<Engine>, job: Job, mut shutdown: Shutdown) {
    let mut last: Option<Instant> = None;
    while !shutdown.is_asked() {
        let now = match engine.db().now().await {
            Ok(now) => now,
            Err(error) => {
                tracing::warn!(handler = job.handler, %error, "the clock cannot be read");
                if pause(TimeDelta::seconds(1), &mut shutdown).await {
                    return;
                }
                continue;
            }
        };
        // After a clock that jumped back, what was last is no measure any more.
        let from = last.filter(|last| *last <= now).unwrap_or(now);
        let Ok(next) = job.cron.find_next_occurrence(&from, false) else {
            tracing::warn!(handler = job.handler, "its cron expression never comes again");
            return;
        };
        if next > now {
            if pause((next - now).min(MAX_WAIT), &mut shutdown).await {
                return;
            }
            last = last.or(Some(from));
            continue;
        }
        last = Some(now);
        round(&engine, job.handler).await;
    }
}

/// Waits; true = asked to stop meanwhile.
async fn pause(wait: TimeDelta, shutdown: &mut Shutdown) -> bool {
    let wait = wait.to_std().unwrap_or_default();
    tokio::select! {
        () = shutdown.asked() => true,
        () = tokio::time::sleep(wait) => false,
    }
}

async fn round(engine: &Engine, handler: &'static str) {
    match engine.round(handler, "").await {
        Ok(summary) if summary.selected == 0 => {}
        Ok(summary) => tracing::info!(
            handler,
            dialect = engine.db().dialect().name(),
            selected = summary.selected,
            succeeded = summary.succeeded,
            skipped = summary.skipped,
            failed = summary.failed,
            cancelled = summary.cancelled,
            "round"
        ),
        Err(RoundError::Lost { done, source }) => {
            let error = anyhow::Error::new(source);
            tracing::warn!(handler, succeeded = done.succeeded, "the round ended early: {error:#}");
        }
        Err(error) => tracing::error!(handler, %error, "the round did not run"),
    }
}
