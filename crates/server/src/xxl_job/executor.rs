//! The executor: takes triggers in, runs one round a job at a time, and tells admins what came of
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use chrono::TimeDelta;
use counterfoil_db::Instant;
use counterfoil_remote::{TriggerResult, XxlAdmins};
use counterfoil_task::{Engine, Shutdown};
use tokio::sync::Notify;

use super::protocol::{FAILURE, LogPart, LogQuery, Trigger};
use super::queue::{Admission, Queues};
use super::round::{self, Outcome, Stop, StopReason};
use super::store::Store;
use super::waits::{BEAT_EVERY, TELL_EVERY, Wait, Waits};

/// Results that are told at a time: even all of the longest stay far below an admin's 5 MiB.
const MAX_TOLD: usize = 20;

/// What an executor works with.
pub struct Parts {
    /// Whose handlers are called.
    pub engine: Arc<Engine>,
    /// What is kept on disk.
    pub store: Store,
    /// Where it registers.
    pub admins: Arc<XxlAdmins>,
    /// The address that it registers.
    pub address: String,
    /// The token that admins show.
    pub token: String,
    /// Days that logs are kept.
    pub log_days: u32,
    /// How time passes.
    pub waits: Arc<dyn Waits>,
}

/// An executor. Cheap to clone.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    parts: Parts,
    state: Mutex<State>,
    /// One trigger is taken in at a time: its file is written before it counts.
    admitting: tokio::sync::Mutex<()>,
    settled: Notify,
    idle: Notify,
}

#[derive(Default)]
struct State {
    queues: Queues,
    stops: HashMap<i64, Stop>,
    is_stopping: bool,
}

impl Executor {
    /// An executor; triggers that an earlier process left behind are settled as failed.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub async fn new(parts: Parts) -> Result<Executor> {
        let executor = Executor(Arc::new(Inner {
            parts,
            state: Mutex::default(),
            admitting: tokio::sync::Mutex::default(),
            settled: Notify::new(),
            idle: Notify::new(),
        }));
        let left = executor.disk(Store::left_over).await.context("xxl-job.data-dir")?;
        for trigger in left {
            let message = "the executor ended before the round did; what was committed stands";
            let outcome = Outcome { code: FAILURE, message: message.into() };
            executor.settle(&trigger, outcome).await;
        }
        Ok(executor)
    }

    /// The token that admins must show.
    pub fn token(&self) -> &str {
        &self.0.parts.token
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database's clock; the machine's while the database does not answer.
    async fn now(&self) -> Instant {
        self.0.parts.engine.db().now().await.unwrap_or_else(|_| chrono::Utc::now())
    }

    /// Works on the folder without keeping other work waiting.
    async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> std::io::Result<T> + Send + 'static,
    ) -> std::io::Result<T> {
        let inner = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner.parts.store)).await;
        done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Whether a job runs or waits.
    pub fn is_busy(&self, job: i64) -> bool {
        self.state().queues.is_busy(job)
    }

    /// Takes a trigger in.
    ///
    /// # Errors
    /// Why not; nothing runs then.
    pub async fn trigger(&self, trigger: Trigger) -> Result<(), String> {
        if !trigger.is_bean() {
            return Err("only glueType BEAN is run, never code that was sent".into());
        }
        let handler = trigger.handler();
        if !self.0.parts.engine.handlers().contains(&handler) {
            return Err(format!("job handler [{handler}] not found"));
        }
        let _one_at_a_time = self.0.admitting.lock().await;
        let (is_stopping, is_known) = {
            let state = self.state();
            (state.is_stopping, state.queues.knows(trigger.log_id))
        };
        if is_stopping {
            return Err("the executor is stopping".into());
        }
        if is_known {
            return Err(format!("repeat trigger job, logId:{}", trigger.log_id));
        }
        let kept = trigger.clone();
        if let Err(error) = self.disk(move |store| store.accept(&kept)).await {
            tracing::error!(%error, "a trigger cannot be kept");
            return Err("the executor cannot write its folder".into());
        }
        self.note(&trigger, &described(&trigger)).await;
        let refused = match self.admit(&trigger) {
            Admission::Starts | Admission::Waits => return Ok(()),
            Admission::Covers(covered) => {
                self.settle_all(covered, StopReason::Covered).await;
                return Ok(());
            }
            Admission::Busy => "block strategy effect: DISCARD_LATER".to_owned(),
            Admission::Known => format!("repeat trigger job, logId:{}", trigger.log_id),
            Admission::Full => "too many triggers wait".to_owned(),
        };
        self.note(&trigger, &format!("refused: {refused}")).await;
        let log = trigger.log_id;
        if let Err(error) = self.disk(move |store| store.forget(log)).await {
            tracing::error!(%error, "a refused trigger cannot be forgotten");
        }
        Err(refused)
    }

    fn admit(&self, trigger: &Trigger) -> Admission {
        let mut state = self.state();
        let admission = state.queues.admit(trigger);
        match &admission {
            Admission::Starts => {
                let (stop, shutdown) = Stop::new();
                state.stops.insert(trigger.job_id, stop.clone());
                tokio::spawn(self.clone().work(trigger.clone(), stop, shutdown));
            }
            Admission::Covers(_) => {
                if let Some(running) = state.stops.get(&trigger.job_id) {
                    running.ask(StopReason::Covered);
                }
            }
            _ => {}
        }
        admission
    }

    /// Runs a job's triggers one after the other until none waits.
    async fn work(self, mut trigger: Trigger, mut stop: Stop, mut shutdown: Shutdown) {
        loop {
            self.note(&trigger, "the round begins").await;
            let parts = self.clone();
            let (this, its_stop) = (trigger.clone(), stop.clone());
            let ran = tokio::spawn(async move {
                let Parts { engine, waits, .. } = &parts.0.parts;
                round::run(engine, &this, &its_stop, shutdown, &**waits).await
            });
            let outcome = ran.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a round broke");
                Outcome { code: FAILURE, message: "the round broke; see the service's log".into() }
            });
            self.settle(&trigger, outcome).await;
            let mut state = self.state();
            let Some(next) = state.queues.next(trigger.job_id) else {
                state.stops.remove(&trigger.job_id);
                self.0.idle.notify_waiters();
                return;
            };
            (stop, shutdown) = Stop::new();
            state.stops.insert(next.job_id, stop.clone());
            trigger = next;
        }
    }

    /// Stops what a job runs, and all that waits.
    pub async fn kill(&self, job: i64) {
        let waiting = {
            let mut state = self.state();
            if let Some(running) = state.stops.get(&job) {
                running.ask(StopReason::Killed);
            }
            state.queues.empty(job)
        };
        self.settle_all(waiting, StopReason::Killed).await;
    }

    async fn settle_all(&self, triggers: Vec<Trigger>, reason: StopReason) {
        for trigger in triggers {
            let message = format!("not executed: {}", reason.told());
            self.settle(&trigger, Outcome { code: FAILURE, message }).await;
        }
    }

    /// Writes down how a trigger ended; admins are told of it soon.
    async fn settle(&self, trigger: &Trigger, outcome: Outcome) {
        let Outcome { code, message } = outcome;
        self.note(trigger, &format!("ended with code {code}: {message}")).await;
        let (log_id, log_date_time) = (trigger.log_id, trigger.triggered());
        let result = TriggerResult { log_id, log_date_time, code, message };
        let now = self.now().await;
        if let Err(error) = self.disk(move |store| store.settle(&result, now)).await {
            tracing::error!(log_id, code, %error, "a trigger's result cannot be kept");
        }
        self.0.settled.notify_one();
    }

    /// A line in the trigger's log.
    async fn note(&self, trigger: &Trigger, text: &str) {
        tracing::info!(log_id = trigger.log_id, job_id = trigger.job_id, "{text}");
        let (log, now, text) = (trigger.log_id, self.now().await, text.to_owned());
        if let Err(error) = self.disk(move |store| store.log(log, now, &text)).await {
            tracing::warn!(log, %error, "a trigger's log cannot be written");
        }
    }

    /// A part of a trigger's log.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn log(&self, query: &LogQuery) -> Result<LogPart, String> {
        let (log, from) = (query.log_id, query.from_line_num);
        let is_over = !self.state().queues.knows(log);
        let part = self.disk(move |store| store.read_log(log, from, is_over)).await;
        let part = part.map_err(|error| {
            tracing::warn!(log, %error, "a trigger's log cannot be read");
            "the executor cannot read its folder".to_owned()
        })?;
        Ok(part.unwrap_or_else(|| LogPart {
            from_line_num: from,
            to_line_num: 0,
            log_content: format!("there is no log of trigger {log} here\n"),
            is_end: true,
        }))
    }

    /// Registers and tells results until shutdown; then leaves the registry, stops its rounds and
    /// tells what can still be told.
    pub async fn serve(self, shutdown: Shutdown) {
        tokio::join!(self.beat(shutdown.clone()), self.keep_telling(shutdown));
        tokio::join!(self.leave(), self.drain());
        self.tell().await;
    }

    async fn beat(&self, mut shutdown: Shutdown) {
        let Parts { admins, address, waits, .. } = &self.0.parts;
        let mut was_there = true;
        while !shutdown.is_asked() {
            let registered = admins.register(address).await;
            match &registered {
                Ok(()) if !was_there => tracing::warn!("registered with an XXL-Job admin again"),
                Ok(()) => {}
                Err(error) if was_there => tracing::warn!(error, "no XXL-Job admin registers us"),
                Err(error) => tracing::debug!(error, "no XXL-Job admin registers us"),
            }
            was_there = registered.is_ok();
            self.prune_logs().await;
            tokio::select! {
                () = shutdown.asked() => {}
                () = waits.wait(Wait::Beat, BEAT_EVERY) => {}
            }
        }
    }

    async fn prune_logs(&self) {
        let first = self.now().await - TimeDelta::days(self.0.parts.log_days.into());
        match self.disk(move |store| store.prune_logs(first)).await {
            Ok(0) => {}
            Ok(days) => tracing::info!(days, "old logs of triggers were removed"),
            Err(error) => tracing::warn!(%error, "old logs of triggers cannot be removed"),
        }
    }

    async fn keep_telling(&self, mut shutdown: Shutdown) {
        while !shutdown.is_asked() {
            self.tell().await;
            tokio::select! {
                () = shutdown.asked() => {}
                () = self.0.settled.notified() => {}
                () = self.0.parts.waits.wait(Wait::Tell, TELL_EVERY) => {}
            }
        }
    }

    /// Tells every result that is kept, until one cannot be told.
    async fn tell(&self) {
        loop {
            let untold = match self.disk(|store| store.untold(MAX_TOLD)).await {
                Ok(untold) => untold,
                Err(error) => {
                    tracing::error!(%error, "kept results cannot be read");
                    return;
                }
            };
            if untold.is_empty() || !self.tell_some(untold).await {
                return;
            }
        }
    }

    /// False = no admin takes results now. One that is refused alone goes behind the others.
    async fn tell_some(&self, untold: Vec<(std::path::PathBuf, TriggerResult)>) -> bool {
        let results: Vec<TriggerResult> = untold.iter().map(|(_, result)| result.clone()).collect();
        let Err(untaken) = self.0.parts.admins.tell(&results).await else {
            let paths: Vec<_> = untold.into_iter().map(|(path, _)| path).collect();
            return self.forget_told(paths).await;
        };
        tracing::warn!(count = results.len(), "results were not taken: {}", untaken.message);
        if !untaken.is_answered {
            return false;
        }
        let mut is_any_taken = false;
        for (path, result) in untold {
            match self.0.parts.admins.tell(std::slice::from_ref(&result)).await {
                Ok(()) => is_any_taken |= self.forget_told(vec![path]).await,
                Err(_) => {
                    let (log, now) = (result.log_id, self.now().await);
                    let behind = self.disk(move |store| store.postpone(&path, log, now)).await;
                    if let Err(error) = behind {
                        tracing::warn!(log, %error, "a refused result keeps its place");
                    }
                }
            }
        }
        is_any_taken
    }

    async fn forget_told(&self, paths: Vec<std::path::PathBuf>) -> bool {
        let forgotten = self.disk(move |store| paths.iter().try_for_each(|path| store.told(path)));
        let forgotten = forgotten.await;
        if let Err(error) = &forgotten {
            tracing::error!(%error, "a result that was told cannot be removed");
        }
        forgotten.is_ok()
    }

    async fn leave(&self) {
        let Parts { admins, address, .. } = &self.0.parts;
        if let Err(error) = admins.deregister(address).await {
            tracing::warn!(error, "no XXL-Job admin takes us out of its registry");
        }
    }

    async fn drain(&self) {
        let waiting: Vec<Trigger> = {
            let _one_at_a_time = self.0.admitting.lock().await;
            let mut state = self.state();
            state.is_stopping = true;
            for stop in state.stops.values() {
                stop.ask(StopReason::Stopping);
            }
            let jobs = state.queues.jobs();
            jobs.into_iter().flat_map(|job| state.queues.empty(job)).collect()
        };
        self.settle_all(waiting, StopReason::Stopping).await;
        loop {
            let idle = self.0.idle.notified();
            if self.state().queues.jobs().is_empty() {
                return;
            }
            idle.await;
        }
    }
}

fn described(trigger: &Trigger) -> String {
    let handler = trigger.handler();
    let mut text = format!("job {}, trigger {}: {handler}", trigger.job_id, trigger.log_id);
    if !trigger.parameter().trim().is_empty() {
        text.push_str(&format!(", parameter {}", trigger.parameter()));
    }
    if let Some(total) = trigger.broadcast_total.filter(|total| *total > 1) {
        let index = trigger.broadcast_index.unwrap_or_default();
        text.push_str(&format!(", broadcast {index} of {total}"));
    }
    text
}
