//! Kicks: hints after a commit that a task is ready. A lost kick never loses a task.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as RealInstant};

use counterfoil_db::{Db, Result, Tx};
use counterfoil_protocol::TaskCode;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::claim::ClaimMode;
use crate::engine::{Engine, own_name};
use crate::metric::{self, KickEnd};
use crate::round::{RoundError, Summary, count};
use crate::shutdown::Shutdown;
use crate::{Kind, select};

/// The channel on PostgreSQL.
const CHANNEL: &str = "counterfoil_kick";

/// What a kick pool is told.
#[derive(Debug, Clone)]
pub struct KickSettings {
    /// Workers that always wait.
    pub core_workers: usize,
    /// Workers at most, while hints wait.
    pub max_workers: usize,
    /// Hints that wait at most; one more is dropped and the scan finds its task.
    pub queue: usize,
    /// How long a worker stays with one stage while others wait. Looked at between two tasks only.
    pub slice: Duration,
    /// Stages switched off.
    pub disabled_stages: HashSet<String>,
    /// Which share of task codes is kicked, a stage: 0 to 100; 100 when not named.
    pub gray_percent: HashMap<String, u32>,
}

impl Default for KickSettings {
    fn default() -> KickSettings {
        KickSettings {
            core_workers: 2,
            max_workers: 4,
            queue: 128,
            slice: Duration::from_secs(5),
            disabled_stages: HashSet::new(),
            gray_percent: HashMap::new(),
        }
    }
}

/// Takes hints. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Kicker(Option<Arc<Pool>>);

#[derive(Debug)]
struct Pool {
    /// Who says so in a notification. No process id: every container's is 1.
    name: String,
    settings: KickSettings,
    state: Mutex<State>,
    wake: Notify,
    /// One permit an extra worker.
    extras: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    /// Stages in the order they take turns, each with its hints.
    stages: VecDeque<(&'static Kind, VecDeque<TaskCode>)>,
    waiting: HashSet<TaskCode>,
    closed: bool,
    dropped: u64,
}

impl Kicker {
    /// Drops every hint: `job run`, so that a step can be watched, and tests.
    pub fn none() -> Kicker {
        Kicker(None)
    }

    /// A pool; [`Engine::serve_kicks`] works it off.
    pub fn pool(settings: KickSettings) -> Kicker {
        let extras = settings.max_workers.saturating_sub(settings.core_workers);
        Kicker(Some(Arc::new(Pool {
            name: own_name(),
            settings,
            state: Mutex::new(State::default()),
            wake: Notify::new(),
            extras: Arc::new(Semaphore::new(extras)),
        })))
    }

    /// Registers a hint that fires once `tx` has committed; other processes hear of it too where
    /// the database can tell them.
    pub async fn kick_after_commit(
        &self,
        tx: &mut Tx,
        kind: &'static Kind,
        code: &TaskCode,
    ) -> Result<()> {
        let Some(pool) = self.0.clone() else {
            return Ok(());
        };
        let from = &pool.name;
        tx.notify(CHANNEL, &format!("{from} {} {code}", kind.handler)).await?;
        let code = code.clone();
        tx.after_commit(move || {
            pool.offer(kind, code);
        });
        Ok(())
    }

    /// Hints dropped so far because the pool was full or closed.
    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |pool| pool.state().dropped)
    }

    /// Hints that wait.
    pub fn waiting(&self) -> usize {
        self.0.as_ref().map_or(0, |pool| pool.state().waiting.len())
    }
}

impl Pool {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_admitted(&self, kind: &Kind, code: &TaskCode) -> bool {
        if self.settings.disabled_stages.contains(kind.stage) {
            return false;
        }
        let percent = self.settings.gray_percent.get(kind.stage).copied().unwrap_or(100);
        // The code ends in an MD5: its last bytes spread evenly and are the same in every process.
        let bucket = code
            .as_str()
            .bytes()
            .rev()
            .take(4)
            .fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        bucket % 100 < percent
    }

    /// Takes a hint unless one for the task waits already. False = dropped.
    fn offer(&self, kind: &'static Kind, code: TaskCode) -> bool {
        if !self.is_admitted(kind, &code) {
            return false;
        }
        let mut state = self.state();
        if state.waiting.contains(&code) {
            return true;
        }
        if state.closed || state.waiting.len() >= self.settings.queue {
            state.dropped += 1;
            metric::kick(kind, KickEnd::Dropped);
            return false;
        }
        state.waiting.insert(code.clone());
        match state.stages.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, codes)) => codes.push_back(code),
            None => state.stages.push_back((kind, VecDeque::from([code]))),
        }
        drop(state);
        self.wake.notify_one();
        true
    }

    /// The next hint: of `stay` while it has any, else of the stage whose turn it is.
    fn take(&self, stay: Option<&'static Kind>) -> Option<(&'static Kind, TaskCode)> {
        let mut state = self.state();
        let same = stay.and_then(|kind| state.stages.iter().position(|(known, _)| *known == kind));
        let at = same.unwrap_or(0);
        let (kind, mut codes) = state.stages.remove(at)?;
        let code = codes.pop_front()?;
        if !codes.is_empty() {
            state.stages.push_back((kind, codes));
        }
        state.waiting.remove(&code);
        Some((kind, code))
    }
}

impl Engine {
    /// Works off kicks until shutdown; then the pool is closed and hints are dropped.
    pub async fn serve_kicks(self: Arc<Engine>, shutdown: Shutdown) {
        let Some(pool) = self.kicker().0.clone() else {
            return;
        };
        let mut workers = JoinSet::new();
        for _ in 0..pool.settings.core_workers {
            workers.spawn(core_worker(self.clone(), pool.clone(), shutdown.clone()));
        }
        while workers.join_next().await.is_some() {}
        pool.state().closed = true;
        // All permits back = no extra worker is left. The semaphore is never closed.
        let extras = pool.settings.max_workers.saturating_sub(pool.settings.core_workers);
        let _ = pool.extras.acquire_many(u32::try_from(extras).unwrap_or(0)).await;
    }

    /// Runs one task now if an ordinary claim wins it: what a kick does.
    pub async fn run_task(&self, handler: &str, code: &TaskCode) -> Result<Summary, RoundError> {
        let done = self.try_task(handler, code).await;
        count(&done);
        done
    }

    async fn try_task(&self, handler: &str, code: &TaskCode) -> Result<Summary, RoundError> {
        if let Some(turns) = self.turns_of_handler(handler) {
            return self.one_turn(turns, code).await;
        }
        let work = self.work_of_handler(handler)?;
        let kind = work.kind();
        let mut summary = Summary { handler: kind.handler.to_owned(), ..Summary::default() };
        let ran = match select::by_code(self.db(), kind, code).await {
            Ok(Some(task)) => {
                summary.selected = 1;
                self.run_one(work, &task, ClaimMode::Automatic, &mut summary).await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match ran {
            Ok(()) => Ok(summary),
            Err(source) => Err(RoundError::Lost { done: Box::new(summary), source }),
        }
    }
}

/// Listens for kicks of other processes (PostgreSQL) until shutdown, however often the connection
/// is lost meanwhile.
pub async fn listen(engine: Arc<Engine>, db: Db, mut shutdown: Shutdown) {
    let Some(pool) = engine.kicker().0.clone() else {
        return;
    };
    let Some(mut notifications) = db.listen(CHANNEL) else {
        return;
    };
    loop {
        tokio::select! {
            () = shutdown.asked() => return,
            payload = notifications.next() => hear(&engine, &pool, &payload),
        }
    }
}

fn hear(engine: &Engine, pool: &Pool, payload: &str) {
    let mut parts = payload.splitn(3, ' ');
    let (Some(from), Some(handler), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    if from == pool.name {
        return; // our own hint: it is in the pool already
    }
    if let Some(kind) = engine.kinds().find(|kind| kind.handler == handler) {
        pool.offer(kind, TaskCode::stored(code));
    }
}

async fn core_worker(engine: Arc<Engine>, pool: Arc<Pool>, mut shutdown: Shutdown) {
    while !shutdown.is_asked() {
        work_off(&engine, &pool, &shutdown, true).await;
        tokio::select! {
            () = shutdown.asked() => return,
            () = pool.wake.notified() => {}
        }
    }
}

/// Works until no hint waits. A core worker that leaves hints waiting brings in an extra one.
async fn work_off(engine: &Arc<Engine>, pool: &Arc<Pool>, shutdown: &Shutdown, core: bool) {
    let mut stay: Option<(&'static Kind, RealInstant)> = None;
    while !shutdown.is_asked() {
        let within = stay.filter(|(_, since)| since.elapsed() < pool.settings.slice);
        let Some((kind, code)) = pool.take(within.map(|(kind, _)| kind)) else {
            return;
        };
        if within.is_none_or(|(current, _)| current != kind) {
            stay = Some((kind, RealInstant::now()));
        }
        if core && !pool.state().waiting.is_empty() {
            bring_in_extra(engine, pool, shutdown);
        }
        match engine.run_task(kind.handler, &code).await {
            Ok(summary) if summary.claimed > 0 => metric::kick(kind, KickEnd::Hit),
            Ok(_) => metric::kick(kind, KickEnd::Miss),
            Err(error) => {
                metric::kick(kind, KickEnd::Miss);
                let task = &code;
                tracing::warn!(%task, %error, "a kick came to nothing; the scan will find it");
            }
        }
    }
}

fn bring_in_extra(engine: &Arc<Engine>, pool: &Arc<Pool>, shutdown: &Shutdown) {
    let Ok(permit) = pool.extras.clone().try_acquire_owned() else {
        return;
    };
    let (engine, pool, shutdown) = (engine.clone(), pool.clone(), shutdown.clone());
    tokio::spawn(async move {
        // Boxed: an extra worker's future would otherwise contain itself.
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(async move { work_off(&engine, &pool, &shutdown, false).await });
        work.await;
        drop(permit);
    });
}
