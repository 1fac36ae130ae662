//! Claim, lease and fence under random interleavings of workers, crashes and clock jumps, over the
//! real engine on SQLite. Each seed is one history; a failure prints its seed.

use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use counterfoil_db::{Read, Side, sql};
use counterfoil_e2e::{Crash, Dialect, TestApp};
use counterfoil_task::{Engine, Fenced, Progress, RoundError, Run, Summary, Verdict, WorkError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::errand::{BATCH, Desk, ERRAND, counts, key, named_engine};

const SEEDS: u64 = 120;
const MOVES: u32 = 45;
const WORKERS: usize = 3;
const ERRANDS: i64 = 3;
const STEPS: i64 = 3;
/// Rounds, an hour apart, after which everything must be done.
const MAX_LAST_ROUNDS: u32 = 12;

/// splitmix64: the same history for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What a worker that stands at its gate is told.
#[derive(Debug, Clone, Copy)]
enum Order {
    GoOn,
    Fail,
    HandBack,
}

/// Where workers stand before each of their transactions. Without one they never wait.
#[derive(Clone)]
struct Gate(Option<Arc<Post>>);

struct Post {
    standing: UnboundedSender<()>,
    orders: tokio::sync::Mutex<UnboundedReceiver<Order>>,
}

impl Gate {
    async fn pass(&self) -> Result<(), WorkError> {
        let Some(post) = &self.0 else {
            return Ok(());
        };
        // Nobody to report to, or nobody left to give orders: the test has ended.
        let _ = post.standing.send(());
        match post.orders.lock().await.recv().await {
            Some(Order::Fail) => Err(WorkError::failed("errand-failed", "by order")),
            Some(Order::HandBack) => Err(WorkError::Stopping),
            Some(Order::GoOn) | None => Ok(()),
        }
    }
}

/// The errand: a lease, steps under it, the end. It checks what the fence promises.
async fn errand(
    gate: &Gate,
    breaches: &Mutex<Vec<String>>,
    id: i64,
    run: &Run<'_>,
) -> Result<Verdict, WorkError> {
    let attempt = attempt(run.db(), id).await?;
    gate.pass().await?;
    let mut tx = run.begin().await?;
    let query = sql!(
        "SELECT lease_version FROM errand_batch WHERE id = :id",
        id = id
    );
    let version = tx
        .row(query)
        .await?
        .expect("a batch")
        .int("lease_version")?;
    let lease = run.lease(&mut tx, &BATCH, id, version).await?;
    tx.commit("model.lease").await?;
    loop {
        gate.pass().await?;
        let mut tx = run.begin().await?;
        let now = self::attempt(&*tx, id).await?;
        if now != attempt {
            let breach = format!("errand {id}: attempt {attempt} writes while {now} owns it");
            breaches.lock().expect("no panic").push(breach);
        }
        let query = sql!("SELECT step FROM errand_batch WHERE id = :id", id = id);
        let step = tx.row(query).await?.expect("a batch").int("step")?;
        if step == STEPS {
            record(&mut tx, id, 0, attempt).await?;
            if !lease.finish(&mut tx).await? {
                return Err(WorkError::failed("lease-lost", "at the end"));
            }
            return tx.succeed("model.end").await;
        }
        record(&mut tx, id, step + 1, attempt).await?;
        let progress = Progress::none().set("step", step + 1);
        if !lease.advance(&mut tx, progress).await? {
            return Err(WorkError::failed("lease-lost", "in a step"));
        }
        tx.commit("model.step").await?;
    }
}

async fn attempt(from: &impl Read, id: i64) -> Result<i64, WorkError> {
    let query = sql!(
        "SELECT running_attempt FROM fi_async_task WHERE business_key = :key",
        key = key(id),
    );
    Ok(from
        .row(query)
        .await?
        .expect("a task")
        .int("running_attempt")?)
}

async fn record(tx: &mut Fenced<'_>, id: i64, step: i64, attempt: i64) -> Result<(), WorkError> {
    tx.execute(sql!(
        "INSERT INTO errand_log (errand_id, step, attempt) VALUES (:id, :step, :attempt)",
        id = id,
        step = step,
        attempt = attempt,
    ))
    .await?;
    Ok(())
}

/// A process: a round under way, standing at its gate.
struct Process {
    round: JoinHandle<Result<Summary, RoundError>>,
    standing: UnboundedReceiver<()>,
    orders: UnboundedSender<Order>,
}

struct History<'a> {
    app: &'a TestApp,
    random: Random,
    processes: Vec<Option<Process>>,
    breaches: Arc<Mutex<Vec<String>>>,
    first: i64,
    /// The highest attempt seen, an errand.
    attempts: Vec<i64>,
    restarts: u32,
}

impl History<'_> {
    fn engine(&self, worker: &str, gate: Gate) -> Engine {
        let breaches = self.breaches.clone();
        named_engine(self.app, worker, move |id, run| {
            let (gate, breaches) = (gate.clone(), breaches.clone());
            Box::pin(async move { errand(&gate, &breaches, id, run).await })
        })
    }

    /// By hand, so that neither due times nor limits nor lost attempts keep a history short.
    fn parameter(&self) -> String {
        let keys: Vec<String> = self.ids().map(|id| format!("\"{}\"", key(id))).collect();
        format!(r#"{{"businessKeys":[{}]}}"#, keys.join(","))
    }

    fn ids(&self) -> std::ops::Range<i64> {
        self.first..self.first + ERRANDS
    }

    async fn step(&mut self) {
        let worker = usize::try_from(self.random.below(WORKERS as u64)).expect("small");
        match self.random.below(20) {
            0 => self.jump(15),
            1 => self.jump(-15),
            2 | 3 => self.jump(5),
            4 => self.kill(worker),
            5 => self.arm(),
            6 => self.order(worker, Order::Fail).await,
            7 => self.order(worker, Order::HandBack).await,
            _ => self.order(worker, Order::GoOn).await,
        }
        self.check().await;
    }

    fn jump(&mut self, within: i64) {
        let minutes = 1 + self.random.below(within.unsigned_abs()).cast_signed();
        self.app
            .clock
            .advance(TimeDelta::minutes(minutes * within.signum()));
    }

    fn kill(&mut self, worker: usize) {
        if let Some(process) = self.processes[worker].take() {
            process.round.abort();
        }
    }

    /// The next commit of this sort is somebody's last.
    fn arm(&mut self) {
        let points = [
            "task.claim",
            "model.lease",
            "model.step",
            "model.end",
            "task.failure",
        ];
        let point = points[usize::try_from(self.random.below(5)).expect("small")];
        let side = [Side::Before, Side::After][usize::from(self.random.below(2) == 1)];
        self.app.arm(Crash {
            point,
            side,
            passage: 1,
        });
    }

    /// Lets one process do one transaction, alone; starts it if it does not live.
    async fn order(&mut self, worker: usize, order: Order) {
        let mut process = match self.processes[worker].take() {
            Some(process) => {
                process.orders.send(order).expect("a worker at its gate");
                process
            }
            None => self.start(worker),
        };
        tokio::select! {
            biased;
            ended = &mut process.round => {
                let ended = ended.expect("no panic in a worker");
                assert!(!matches!(ended, Err(RoundError::Parameter(_))), "{ended:?}");
            }
            Some(()) = process.standing.recv() => self.processes[worker] = Some(process),
        }
    }

    fn start(&mut self, worker: usize) -> Process {
        self.restarts += 1;
        let (standing, stands) = unbounded_channel();
        let (orders, ordered) = unbounded_channel();
        let post = Post {
            standing,
            orders: tokio::sync::Mutex::new(ordered),
        };
        let name = format!("worker-{worker}-{}", self.restarts);
        let engine = self.engine(&name, Gate(Some(Arc::new(post))));
        let parameter = self.parameter();
        let round = async move { engine.round(ERRAND.handler, &parameter).await };
        Process {
            round: tokio::spawn(round),
            standing: stands,
            orders,
        }
    }

    /// What must hold at every moment.
    async fn check(&mut self) {
        for (at, id) in self.ids().enumerate() {
            let now = attempt(&self.app.db, id).await.expect("an attempt");
            assert!(
                now >= self.attempts[at],
                "errand {id}: the attempt was lowered to {now}"
            );
            self.attempts[at] = now;
        }
        let breaches = self.breaches.lock().expect("no panic");
        assert!(breaches.is_empty(), "{breaches:?}");
    }

    /// All die; one last process works everything off.
    async fn end(&mut self) {
        for worker in 0..WORKERS {
            self.kill(worker);
        }
        self.app.faults().arm(counterfoil_db::FaultPlan {
            point: "never".into(),
            side: Side::Before,
            passage: 1,
            action: counterfoil_db::FaultAction::Crash,
        });
        for round in 0..=MAX_LAST_ROUNDS {
            self.app.pass_minutes(60);
            let engine = self.engine("last", Gate(None));
            let summary = engine.round(ERRAND.handler, &self.parameter()).await;
            let [.., skipped, failed] = counts(&summary.expect("a round"));
            if i64::from(skipped) == ERRANDS && failed == 0 && round > 0 {
                break;
            }
            assert!(round < MAX_LAST_ROUNDS, "an errand is lost");
        }
        self.check().await;
        for id in self.ids() {
            let done = format!("SELECT step FROM errand_log WHERE errand_id = {id} ORDER BY id");
            let expected = ["1", "2", "3", "0"];
            assert_eq!(
                self.app.lines(&done).await,
                expected,
                "each step once, in order"
            );
            let attempts = format!(
                "SELECT COUNT(*) FROM errand_log a JOIN errand_log b
                   ON b.errand_id = a.errand_id AND b.id > a.id AND b.attempt < a.attempt
                 WHERE a.errand_id = {id}"
            );
            assert_eq!(
                self.app.value(&attempts).await,
                "0",
                "no write after a newer attempt's"
            );
            let state = Desk(self.app).state(id).await;
            assert!(
                state.starts_with("2|") && state.ends_with("|NULL"),
                "{state}"
            );
        }
    }
}

async fn history(app: &TestApp, seed: u64) {
    let first = i64::try_from(seed).expect("small") * 100 + 1;
    for id in first..first + ERRANDS {
        let desk = Desk(app);
        desk.accept(id).await;
        desk.raw(&format!("INSERT INTO errand_batch (id) VALUES ({id})"))
            .await;
    }
    let mut history = History {
        app,
        random: Random(seed),
        processes: (0..WORKERS).map(|_| None).collect(),
        breaches: Arc::default(),
        first,
        attempts: vec![0; usize::try_from(ERRANDS).expect("small")],
        restarts: 0,
    };
    for _ in 0..MOVES {
        history.step().await;
    }
    history.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_interleaving_of_workers_crashes_and_clock_jumps_loses_or_repeats_work() {
    counterfoil_e2e::run(Dialect::Sqlite, async |app: TestApp| {
        Desk::open(&app).await;
        for seed in 1..=SEEDS {
            let one = app.clone();
            let ended = tokio::spawn(async move { history(&one, seed).await }).await;
            assert!(
                ended.is_ok(),
                "the history of seed {seed} broke a promise, see above"
            );
        }
    })
    .await;
}
