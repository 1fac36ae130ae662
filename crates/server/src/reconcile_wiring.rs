//! Putting answer reconciliation together: its handlers, its doors, and when its roles run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use chrono::{FixedOffset, TimeDelta};
use counterfoil_db::{Db, Instant};
use counterfoil_reconcile::form_centre::turns::{DISPATCH, Dispatching, SCHEDULE, Schedule};
use counterfoil_reconcile::service_hall::turns::{WORK, Working};
use counterfoil_remote::{HttpFormCentre, HttpServiceHalls, SignedClient};
use counterfoil_task::{Engine, Shutdown};
use croner::Cron;

use crate::api::form_admin::admin_router;
use crate::api::form_answers::answers_router;
use crate::api::form_sync::{centre_router, hall_router};
use crate::api::signed::Gate;
use crate::config::Config;
use crate::scheduler;

/// The handlers of reconciliation.
pub const HANDLERS: [&str; 3] = [SCHEDULE.handler, DISPATCH.handler, WORK.handler];

/// Where nobody listens: a centre that is not configured cannot be reached.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Adds the three handlers.
///
/// # Errors
/// An address that is none, or a key that is none.
pub fn add(engine: Engine, config: &Config) -> Result<Engine> {
    let own = config.signing.app_key.as_str();
    let (centre, hall) = (&config.fc.answer.reconcile, &config.svchall.answer_reconcile);
    let ring = Arc::new(config.keyring()?);
    let terms = config.signing.terms();
    let mut clients = BTreeMap::new();
    for (app, url) in &centre.targets {
        let client = SignedClient::new(url, app, ring.clone(), terms)
            .with_context(|| format!("fc.answer.reconcile.targets.{app}"))?;
        clients.insert(app.clone(), client);
    }
    let halls = HttpServiceHalls::new(clients, &centre.dispatch_path);
    let url = if hall.centre_url.is_empty() { NOWHERE } else { hall.centre_url.as_str() };
    let client = SignedClient::new(url, &hall.source_app_key, ring, terms)
        .context("svchall.answer-reconcile.centre-url")?;
    let settings = centre.settings(own);
    Ok(engine
        .with_turns(Schedule::new(settings.clone()))
        .with_turns(Dispatching::new(settings, Arc::new(halls)))
        .with_turns(Working::new(hall.settings(own), Arc::new(HttpFormCentre::new(client)))))
}

/// The doors of the roles that run here.
///
/// # Errors
/// A key that is none.
pub fn router(db: &Db, config: &Config, is_centre: bool, is_hall: bool) -> Result<Router> {
    let own = config.signing.app_key.as_str();
    let mut router = Router::new();
    if is_centre {
        let centre = &config.fc.answer.reconcile;
        let settings = centre.settings(own);
        let gate = Gate::new(db, config)?;
        router = router.merge(centre_router(db.clone(), settings.clone(), gate.clone()));
        let apps = centre.admin_apps.clone();
        router = router.merge(answers_router(db.clone(), apps.clone(), gate.clone()));
        router = router.merge(admin_router(db.clone(), settings, apps, gate));
    }
    if is_hall {
        let settings = config.svchall.answer_reconcile.settings(own);
        let path = config.fc.answer.reconcile.dispatch_path.as_str();
        router = router.merge(hall_router(db.clone(), settings, Gate::new(db, config)?, path));
    }
    Ok(router)
}

/// A handler with its own interval or cron expression.
pub struct Job {
    handler: &'static str,
    when: When,
}

enum When {
    /// A pause at first, and one between two rounds.
    Every { first: TimeDelta, then: TimeDelta },
    /// A cron expression in a zone of fixed offset.
    Cron { cron: Box<Cron>, zone: FixedOffset },
}

/// The rounds that the roles run by themselves.
///
/// # Errors
/// A cron expression that is none.
pub fn jobs(config: &Config, is_centre: bool, is_hall: bool) -> Result<Vec<Job>> {
    let millis = |count: u64| TimeDelta::milliseconds(i64::try_from(count).unwrap_or(i64::MAX));
    let mut jobs = Vec::new();
    if is_centre {
        let centre = &config.fc.answer.reconcile;
        let offset = if centre.schedule_zone == "UTC" { 0 } else { 8 * 3600 };
        let zone = FixedOffset::east_opt(offset).context("fc.answer.reconcile.schedule-zone")?;
        let cron =
            scheduler::parse(&centre.schedule_cron).context("fc.answer.reconcile.schedule-cron")?;
        let cron = Box::new(cron);
        jobs.push(Job { handler: SCHEDULE.handler, when: When::Cron { cron, zone } });
        let (first, then) = (millis(centre.scan_initial_delay_ms), millis(centre.scan_interval_ms));
        jobs.push(Job { handler: DISPATCH.handler, when: When::Every { first, then } });
    }
    if is_hall {
        let hall = &config.svchall.answer_reconcile;
        let (first, then) = (millis(hall.scan_initial_delay_ms), millis(hall.scan_interval_ms));
        jobs.push(Job { handler: WORK.handler, when: When::Every { first, then } });
    }
    Ok(jobs)
}

impl Job {
    /// Runs rounds until shutdown.
    pub async fn run(self, engine: Arc<Engine>, mut shutdown: Shutdown) {
        match self.when {
            When::Every { first, then } => {
                let mut wait = first;
                loop {
                    scheduler::pause(wait, &mut shutdown).await;
                    if shutdown.is_asked() {
                        return;
                    }
                    scheduler::round(&engine, self.handler).await;
                    wait = then;
                }
            }
            When::Cron { cron, zone } => {
                let mut last = None;
                while wait_for(engine.db(), &cron, zone, &mut last, &mut shutdown).await {
                    scheduler::round(&engine, self.handler).await;
                }
            }
        }
    }
}

/// The longest wait before the clock is read again: it may have been set meanwhile.
const MAX_WAIT: TimeDelta = TimeDelta::seconds(60);

/// Waits for the next turn by the database's clock; false = asked to stop, or it never comes.
async fn wait_for(
    db: &Db,
    cron: &Cron,
    zone: FixedOffset,
    last: &mut Option<Instant>,
    shutdown: &mut Shutdown,
) -> bool {
    while !shutdown.is_asked() {
        let Ok(now) = db.now().await else {
            scheduler::pause(TimeDelta::seconds(1), shutdown).await;
            continue;
        };
        let from = *last.insert(last.filter(|last| *last <= now).unwrap_or(now));
        let Ok(next) = cron.find_next_occurrence(&from.with_timezone(&zone), false) else {
            return false;
        };
        let next = next.with_timezone(&chrono::Utc);
        if next <= now {
            *last = Some(now);
            return true;
        }
        scheduler::pause((next - now).min(MAX_WAIT), shutdown).await;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_tasks_are_made_at_two_in_shanghai_unless_told_otherwise() {
        let config = Config::default();
        let cron = scheduler::parse(&config.fc.answer.reconcile.schedule_cron).unwrap();
        let zone = FixedOffset::east_opt(8 * 3600).unwrap();
        let from: Instant = "2026-09-08T02:00:00Z".parse().unwrap();
        let next = cron.find_next_occurrence(&from.with_timezone(&zone), false).unwrap();
        assert_eq!(next.with_timezone(&chrono::Utc).to_rfc3339(), "2026-09-08T18:00:00+00:00");
    }
}
