//! Ending a task at the hall: the result is committed, then reported, and only the centre's valid
//! acknowledgement ends the row.

use counterfoil_db::{Db, Instant, sql, transact};
use counterfoil_task::{Lease, LeaseTerms, Progress, Turn, TurnEnd, Unit, WorkError};

use super::HallSettings;
use super::advance::{Session, Stop};
use super::centre::{Answer, Centre};
use super::work::{WORK_LEASE, Work, lock};
use crate::refusal::backoff;
use crate::wire::{Ack, Decision, is_final};

/// Works on one task until it ends, waits or is lost.
pub(super) async fn work_on(
    settings: &HallSettings,
    centre: &dyn Centre,
    unit: &Unit,
    turn: &Turn<'_>,
) -> Result<TurnEnd, WorkError> {
    let Some((work, lease, now)) = transact!(claim(settings, unit, turn))? else {
        return Ok(TurnEnd::Skipped);
    };
    turn.count_claim();
    let mut session = Session {
        db: turn.db(),
        settings,
        centre,
        turn,
        lease,
        saved: work.clone(),
        // One answer is no range worth narrowing.
        narrows: settings.narrowing.enabled && work.coordinate.answer.is_none(),
        work,
        grant_seen: None,
        reported_at: now,
        rounds: 0,
        renewed_at: now,
    };
    let ended = match session.work_out().await {
        Ok(()) => session.deliver().await,
        Err(stop) => Err(stop),
    };
    match ended {
        Ok(end) => Ok(end),
        Err(stop) => session.stopped(stop).await,
    }
}

/// The right to work: the row is locked, and time and lease are looked at again.
async fn claim(
    settings: &HallSettings,
    unit: &Unit,
    turn: &Turn<'_>,
) -> Result<Option<(Work, Lease, Instant)>, counterfoil_db::Error> {
    let mut tx = turn.db().begin().await?;
    let Some((mut work, true)) = lock(&mut tx, unit.id).await? else { return Ok(None) };
    let terms = LeaseTerms { lasts: settings.lease };
    let worker = turn.worker();
    let lease = Lease::acquire(&mut tx, &WORK_LEASE, unit.id, unit.version, worker, terms).await?;
    let Ok(lease) = lease else { return Ok(None) };
    let is_resumed = work.cursor.is_some() || work.manifest_completed || work.local_completed;
    if is_resumed && work.result_state.is_none() {
        work.counts.resumed += 1;
        let resumed = sql!(
            "UPDATE answer_reconcile_work SET resumed_count = resumed_count + 1 WHERE id = :id",
            id = unit.id
        );
        tx.execute(resumed).await?;
    }
    if !work.save(&mut tx, &lease).await? {
        return Ok(None);
    }
    let now = tx.now();
    tx.commit("work.claim").await?;
    Ok(Some((work, lease, now)))
}

impl Session<'_> {
    /// Works until there is a result to report, and commits it. A result that is there already is
    /// only reported: nothing is scanned again.
    async fn work_out(&mut self) -> Result<(), Stop> {
        if self.work.result_state.is_some() {
            return Ok(());
        }
        let state = match self.run().await {
            Ok(()) if self.work.unresolved == 0 && self.work.counts.deferred == 0 => "COMPLETED",
            Ok(()) | Err(Stop::Deferred | Stop::CentreEnded) => "PARTIAL",
            Err(stop) => return Err(stop),
        };
        if self.work.counts.deferred > 0 {
            self.work.unresolved = self.work.unresolved.max(1);
        }
        self.work.result_state = Some(state.to_owned());
        self.commit("work.result").await
    }

    /// Reports the result, and ends the row by the centre's word.
    async fn deliver(&mut self) -> Result<TurnEnd, Stop> {
        let state = self.work.result_state.clone().unwrap_or_default();
        let report = self.report_of(&state);
        let now = self.now().await?;
        let ack = match self.centre.report(&report, now).await {
            Answer::Said(ack) => ack,
            Answer::Refused { code, message } => {
                return Err(Stop::Later(format!("{code}: {message}")));
            }
            Answer::Unknown { message } => return Err(Stop::Later(message)),
        };
        if !self.is_valid(&ack) {
            return Err(Stop::Later("the centre's acknowledgement is of another report".into()));
        }
        let (end, row_state) = match ack.decision {
            Decision::StaleRetry => (TurnEnd::GivenUp, "STALLED"),
            Decision::CurrentAccepted | Decision::CurrentDuplicate | Decision::CenterTerminal => {
                self.work.result_state = ack.result_state;
                (TurnEnd::Finished, "DONE")
            }
        };
        let progress = Progress::none()
            .set("state", row_state)
            .set("retry_count", 0)
            .set("next_attempt_time", None::<Instant>)
            .set("last_error", None::<&str>)
            .set("last_error_code", None::<&str>);
        self.let_go(progress, "work.done").await?;
        Ok(end)
    }

    fn is_valid(&self, ack: &Ack) -> bool {
        let is_ours = ack.task_id == self.work.task_id
            && ack.consumer_app_key == self.work.coordinate.consumer
            && ack.report_attempt == self.work.attempt;
        let ends = ack.result_state.as_deref().is_some_and(is_final);
        is_ours && (ends || ack.decision == Decision::StaleRetry)
    }

    async fn let_go(&self, progress: Progress, point: &'static str) -> Result<(), Stop> {
        let mut tx = self.db.begin().await?;
        if !self.work.let_go(&mut tx, &self.lease, progress).await? {
            return Err(Stop::Fenced);
        }
        tx.commit(point).await?;
        Ok(())
    }

    /// Leaves the row so that it goes on later, or not by itself.
    async fn stopped(&mut self, stop: Stop) -> Result<TurnEnd, WorkError> {
        let (code, message) = match stop {
            Stop::Fenced => return Ok(TurnEnd::Skipped),
            Stop::Db(error) => return self.database_failed(error).await,
            Stop::Stopping => {
                let progress = Progress::none().set("state", "QUEUED");
                return self.leave(progress, TurnEnd::Skipped).await;
            }
            Stop::Stalled { code, message } => {
                let progress = failure("STALLED", code, &message, self.work.retries, None);
                self.work = self.saved.clone();
                return self.leave(progress, TurnEnd::GivenUp).await;
            }
            Stop::Later(message) => ("CENTRE_UNREACHABLE", message),
            Stop::Deferred | Stop::CentreEnded => ("DEFERRED", "repairs were put off".to_owned()),
        };
        self.later(code, &message).await
    }

    async fn later(&mut self, code: &'static str, message: &str) -> Result<TurnEnd, WorkError> {
        self.work = self.saved.clone();
        let retries = self.work.retries + 1;
        let settings = self.settings;
        let state = if retries > settings.retry_limit { "STALLED" } else { "QUEUED" };
        let now = self.db.now().await?;
        let pause = backoff(settings.backoff_base, settings.backoff_cap, retries - 1);
        let next = (state == "QUEUED").then(|| now + pause);
        let progress = failure(state, code, message, retries, next);
        self.leave(progress, TurnEnd::Skipped).await?;
        Err(WorkError::failed("reconcile-later", format!("{code}: {message}")))
    }

    async fn database_failed(
        &mut self,
        error: counterfoil_db::Error,
    ) -> Result<TurnEnd, WorkError> {
        if error.is_lost() {
            return Err(WorkError::Db(error));
        }
        let message = error.to_string();
        tracing::warn!(task = %self.work.task_id, %error, "work was broken off");
        self.later("DATABASE", &message).await
    }

    async fn leave(&self, progress: Progress, end: TurnEnd) -> Result<TurnEnd, WorkError> {
        match self.let_go(progress, "work.leave").await {
            Ok(()) => Ok(end),
            Err(Stop::Db(error)) => Err(WorkError::Db(error)),
            Err(_) => Ok(TurnEnd::Skipped),
        }
    }
}

fn failure(
    state: &'static str,
    code: &'static str,
    message: &str,
    retries: i64,
    next: Option<Instant>,
) -> Progress {
    Progress::none()
        .set("state", state)
        .set("retry_count", retries)
        .set("next_attempt_time", next)
        .set("last_error", message.chars().take(1000).collect::<String>())
        .set("last_error_code", code)
}

/// Whether a row may be worked on: what a scan looks for.
pub(super) async fn next(
    db: &Db,
    now: Instant,
    only: Option<i64>,
) -> Result<Option<Unit>, counterfoil_db::Error> {
    use counterfoil_db::Read;
    let row = db
        .row(sql!(
            "SELECT id, task_id, work_version, retry_count FROM answer_reconcile_work
             WHERE deleted = 0 AND (:only = 0 OR id = :only)
               AND ((state = 'QUEUED' AND (next_attempt_time IS NULL OR next_attempt_time <= :now))
                    OR (state = 'RUNNING'
                        AND (lease_expire_time IS NULL OR lease_expire_time <= :now)))
             ORDER BY id LIMIT 1",
            only = only.unwrap_or(0),
            now = now,
        ))
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Unit {
        id: row.int("id")?,
        version: row.int("work_version")?,
        group: "work",
        retries: row.int("retry_count")?,
        label: row.text("task_id")?,
    }))
}
