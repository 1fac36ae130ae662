//! The engine: the registered kinds of work, and what they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::TimeDelta;
use counterfoil_db::Db;
use counterfoil_protocol::TaskCode;

use crate::kick::Kicker;
use crate::lease::LEASE_FOR;
use crate::rule::{self, Rule};
use crate::run::{Payload, Run, Verdict, Work};
use crate::select::TaskRow;
use crate::shutdown::Shutdown;
use crate::takeover::Takeover;
use crate::turn::Turns;
use crate::{Kind, RoundError, WorkError};

/// What an engine is told.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Who this process is, in leases.
    pub worker: String,
    /// How long a lease lasts between two batches.
    pub lease_for: TimeDelta,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings { worker: own_name(), lease_for: LEASE_FOR }
    }
}

/// Host, process, start and a number in it: no two share it, also not after a restart, nor two
/// engines of one process.
pub(crate) fn own_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "localhost" } else { host };
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let started = started.map_or(0, |since| since.as_micros());
    format!(
        "{}:{}:{started:x}:{}",
        host.chars().take(64).collect::<String>(),
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Work without its payload type, so that kinds can stand in one list.
#[async_trait::async_trait]
pub(crate) trait AnyWork: Send + Sync {
    fn kind(&self) -> &'static Kind;
    fn takeover(&self) -> Takeover;
    async fn run(&self, task: &TaskRow, run: &Run<'_>) -> Result<Verdict, WorkError>;
    fn subject_id(&self, task: &TaskRow) -> Option<i64>;
}

#[async_trait::async_trait]
impl<W: Work> AnyWork for W {
    fn kind(&self) -> &'static Kind {
        Work::kind(self)
    }

    fn takeover(&self) -> Takeover {
        Work::takeover(self)
    }

    async fn run(&self, task: &TaskRow, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let payload = identify::<W::Payload>(Work::kind(self), task)?;
        Work::run(self, payload, run).await
    }

    fn subject_id(&self, task: &TaskRow) -> Option<i64> {
        identify::<W::Payload>(Work::kind(self), task).ok().map(|payload| payload.subject_id())
    }
}

/// Rebuilds business key and code from `task_data` and compares them with the row, one by one.
fn identify<P: Payload>(kind: &Kind, task: &TaskRow) -> Result<P, WorkError> {
    let failed = |what: String| Err(WorkError::failed("task-identity", what));
    let Some(data) = task.data.as_deref().filter(|data| !data.trim().is_empty()) else {
        return failed("task_data is empty".into());
    };
    if !data.trim_start().starts_with('{') {
        // A list would be read as the fields in their order: guessed, not said.
        return failed("task_data is not a JSON object".into());
    }
    let payload: P = match serde_json::from_str(data) {
        Ok(payload) => payload,
        Err(error) => return failed(format!("task_data cannot be read: {error}")),
    };
    if let Some(defect) = payload.defect() {
        return failed(format!("task_data is wrong: {defect}"));
    }
    let key = payload.business_key();
    if key != task.business_key {
        return failed(format!("business_key is {}, task_data says {key}", task.business_key));
    }
    let code = TaskCode::of(kind.prefix, &key);
    if code != task.code {
        return failed(format!("task_code is {}, task_data says {code}", task.code));
    }
    Ok(payload)
}

/// The engine of one process on one database.
pub struct Engine {
    db: Db,
    works: Vec<Arc<dyn AnyWork>>,
    turns: Vec<Arc<dyn Turns>>,
    rules: Vec<Rule>,
    kicker: Kicker,
    shutdown: Shutdown,
    settings: EngineSettings,
    breaches: Arc<AtomicU64>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("handlers", &self.handlers()).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine without work yet. Kicks raised in it are dropped until a kicker is given.
    pub fn new(db: Db, settings: EngineSettings) -> Engine {
        Engine {
            db,
            works: Vec::new(),
            turns: Vec::new(),
            rules: Vec::new(),
            kicker: Kicker::none(),
            shutdown: Shutdown::never(),
            settings,
            breaches: Arc::default(),
        }
    }

    /// Adds a kind of work.
    #[must_use]
    pub fn with(mut self, work: impl Work) -> Engine {
        self.works.push(Arc::new(work));
        self
    }

    /// Adds a handler whose work is rows of a table of its own.
    #[must_use]
    pub fn with_turns(mut self, turns: impl Turns) -> Engine {
        self.turns.push(Arc::new(turns));
        self
    }

    /// Adds invariant rules, checked after the rounds of the handlers they name.
    #[must_use]
    pub fn with_rules(mut self, rules: &[Rule]) -> Engine {
        self.rules.extend_from_slice(rules);
        self
    }

    /// Where kicks go.
    #[must_use]
    pub fn with_kicker(mut self, kicker: Kicker) -> Engine {
        self.kicker = kicker;
        self
    }

    /// What asks the engine to stop.
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: Shutdown) -> Engine {
        self.shutdown = shutdown;
        self
    }

    /// The same engine for rounds that somebody else may stop, too: work, counters and hints are
    /// shared.
    #[must_use]
    pub fn under(&self, shutdown: Shutdown) -> Engine {
        Engine {
            db: self.db.clone(),
            works: self.works.clone(),
            turns: self.turns.clone(),
            rules: self.rules.clone(),
            kicker: self.kicker.clone(),
            shutdown,
            settings: self.settings.clone(),
            breaches: self.breaches.clone(),
        }
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Where kicks go.
    pub fn kicker(&self) -> &Kicker {
        &self.kicker
    }

    /// The kinds of work, in the order they were added.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> + '_ {
        let turns = self.turns.iter().map(|turns| turns.kind());
        self.works.iter().map(|work| work.kind()).chain(turns)
    }

    /// The handlers, in the order they were added.
    pub fn handlers(&self) -> Vec<&'static str> {
        self.kinds().map(|kind| kind.handler).collect()
    }

    /// Broken rules met after rounds, ever.
    pub fn breaches(&self) -> u64 {
        self.breaches.load(Ordering::Relaxed)
    }

    pub(crate) fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    pub(crate) fn worker(&self) -> &str {
        &self.settings.worker
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    pub(crate) fn work_of_handler(&self, handler: &str) -> Result<&dyn AnyWork, RoundError> {
        let found = self.works.iter().find(|work| work.kind().handler == handler);
        found.map(AsRef::as_ref).ok_or_else(|| RoundError::UnknownHandler(handler.to_owned()))
    }

    /// Which RUNNING rows of a handler's tasks may be claimed again.
    pub fn takeover_of(&self, handler: &str) -> Takeover {
        self.work_of_handler(handler).map_or(Takeover::Stale, |work| work.takeover())
    }

    pub(crate) fn turns_of_handler(&self, handler: &str) -> Option<&dyn Turns> {
        self.turns.iter().find(|turns| turns.kind().handler == handler).map(AsRef::as_ref)
    }

    /// Runs the handler's rules on what a round touched, by the ids that the rules take. A broken
    /// rule is logged and counted; it never undoes committed work nor turns the round's result.
    pub(crate) async fn check_touched(&self, kind: &Kind, ids: &[i64]) {
        if ids.is_empty() {
            return;
        }
        for rule in self.rules.iter().filter(|rule| rule.handlers.contains(&kind.handler)) {
            match rule::check_touched(&self.db, rule, ids).await {
                Ok(None) => {}
                Ok(Some(breach)) => {
                    self.breaches.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(rule = rule.name, rows = ?breach.rows, "a rule is broken");
                }
                Err(error) => tracing::error!(rule = rule.name, %error, "a rule cannot be read"),
            }
        }
    }
}
