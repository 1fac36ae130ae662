//! The built-in cron: one loop a handler, rounds of one handler never overlapping.

use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use counterfoil_db::{Db, Instant, Read};
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
    let job = |handler: &'static str| {
        let text = config.jobs.get(handler).unwrap_or(&config.default_cron);
        let cron = parse(text).with_context(|| format!("scheduler, {handler}"))?;
        Ok(Job { handler, cron })
    };
    // The roles centre and hall run their handlers themselves, on their own intervals.
    let own = |handler: &&'static str| {
        crate::reconcile_wiring::HANDLERS.contains(handler) && !config.jobs.contains_key(*handler)
    };
    handlers.into_iter().filter(|handler| !own(handler)).map(job).collect()
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
    let db = engine.db().clone();
    let mut turns = Turns::new(job.cron);
    while turns.wait(&db, job.handler, &mut shutdown).await {
        round(&engine, job.handler).await;
    }
}

/// The cron expression of the whole set of rules.
pub fn rules_cron(config: &crate::config::SchedulerConfig) -> Result<Cron> {
    parse(&config.rules_cron).context("scheduler.rules-cron")
}

/// Checks all rules whenever they are due. A broken one is logged; nothing is undone.
pub async fn check_rules(db: Db, cron: Cron, mut shutdown: Shutdown) {
    let mut turns = Turns::new(cron);
    while turns.wait(&db, "rules", &mut shutdown).await {
        for rule in crate::wiring::rules() {
            match crate::wiring::check(&db, &rule).await {
                Ok(None) => {}
                Ok(Some(breach)) => {
                    tracing::error!(rule = rule.name, rows = ?breach.rows, "a rule is broken");
                }
                Err(error) => tracing::warn!(rule = rule.name, %error, "a rule cannot be read"),
            }
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<Cron> {
    let parser = CronParser::builder().seconds(Seconds::Optional).build();
    parser.parse(text).with_context(|| format!("the cron expression {text}"))
}

/// When a cron expression is due, by the database's clock.
struct Turns {
    cron: Cron,
    last: Option<Instant>,
}

impl Turns {
    fn new(cron: Cron) -> Turns {
        Turns { cron, last: None }
    }

    /// Waits for the next turn; false = asked to stop, or it never comes.
    async fn wait(&mut self, db: &Db, what: &str, shutdown: &mut Shutdown) -> bool {
        while !shutdown.is_asked() {
            let now = match db.now().await {
                Ok(now) => now,
                Err(error) => {
                    tracing::warn!(what, %error, "the clock cannot be read");
                    pause(TimeDelta::seconds(1), shutdown).await;
                    continue;
                }
            };
            // After a clock that jumped back, what was last is no measure any more.
            let from = *self.last.insert(self.last.filter(|last| *last <= now).unwrap_or(now));
            let Ok(next) = self.cron.find_next_occurrence(&from, false) else {
                tracing::warn!(what, "its cron expression never comes again");
                return false;
            };
            if next <= now {
                self.last = Some(now);
                return true;
            }
            pause((next - now).min(MAX_WAIT), shutdown).await;
        }
        false
    }
}

/// Waits, or less when asked to stop meanwhile.
pub(crate) async fn pause(wait: TimeDelta, shutdown: &mut Shutdown) {
    let wait = wait.to_std().unwrap_or_default();
    tokio::select! {
        () = shutdown.asked() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

pub(crate) async fn round(engine: &Engine, handler: &'static str) {
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
