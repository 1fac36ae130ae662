//! `bench tasks`: accept → claim → fenced success, tasks a second, against the same three commits
//! as plain SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use counterfoil_db::{Db, sql};
use counterfoil_protocol::TaskCode;
use counterfoil_task::{
    Engine, EngineSettings, Kicker, Kind, Payload, Run, Seed, Subject, Verdict, Work, WorkError,
    accept_or_reuse,
};
use serde::Deserialize;
use tokio::task::JoinSet;

use super::scratch::Scratch;
use crate::config::Config;

const KIND: Kind = Kind {
    handler: "benchTask",
    task_type: "BENCH",
    prefix: "BENCH",
    stage: "bench",
    default_round: 50,
    max_round: 200,
};

#[derive(Debug, Deserialize)]
struct Number {
    number: i64,
}

impl Payload for Number {
    fn business_key(&self) -> String {
        format!("BENCH:{}", self.number)
    }

    fn defect(&self) -> Option<String> {
        None
    }
}

#[derive(Debug)]
struct Nothing;

#[async_trait::async_trait]
impl Work for Nothing {
    type Payload = Number;

    fn kind(&self) -> &'static Kind {
        &KIND
    }

    async fn run(&self, _number: Number, run: &Run<'_>) -> Result<Verdict, WorkError> {
        run.begin().await?.succeed("bench.done").await
    }
}

/// One number of workers' figures.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Concurrent workers.
    pub workers: u64,
    /// Tasks in all.
    pub tasks: u64,
    /// By the engine.
    pub ours: Duration,
    /// The floor.
    pub floor: Duration,
}

/// Runs `tasks` tasks with each number of workers.
pub async fn run(config: &Config, url: &str, tasks: u64, workers: &[u64]) -> Result<Vec<Figures>> {
    let most = workers.iter().copied().max().unwrap_or(1);
    let connections = config.max_connections.max(u32::try_from(most)? + 2);
    let scratch = Scratch::create(url, connections).await?;
    let mut figures = Vec::new();
    for &count in workers {
        match measure(&scratch.db, count, tasks).await {
            Ok(measured) => figures.push(measured),
            Err(error) => {
                scratch.remove().await?;
                return Err(error);
            }
        }
    }
    scratch.remove().await?;
    Ok(figures)
}

async fn measure(db: &Db, workers: u64, tasks: u64) -> Result<Figures> {
    let engine = Arc::new(Engine::new(db.clone(), EngineSettings::default()).with(Nothing));
    let base = i64::try_from(workers)? * 1_000_000_000;
    let floor = timed(workers, tasks, {
        let db = db.clone();
        move |number| plain(db.clone(), base + number)
    })
    .await?;
    let ours =
        timed(workers, tasks, move |number| by_engine(engine.clone(), base + number)).await?;
    Ok(Figures { workers, tasks, ours, floor })
}

async fn timed<F, W>(workers: u64, tasks: u64, work: W) -> Result<Duration>
where
    F: Future<Output = Result<()>> + Send + 'static,
    W: Fn(i64) -> F + Clone + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(1));
    let began = Instant::now();
    let mut set = JoinSet::new();
    for _ in 0..workers {
        let (next, work) = (next.clone(), work.clone());
        set.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number > tasks {
                    return Ok::<(), anyhow::Error>(());
                }
                work(i64::try_from(number)?).await?;
            }
        });
    }
    while let Some(ended) = set.join_next().await {
        ended??;
    }
    Ok(began.elapsed())
}

async fn by_engine(engine: Arc<Engine>, number: i64) -> Result<()> {
    let seed = Seed {
        kind: &KIND,
        business_key: format!("BENCH:{number}"),
        data: format!(r#"{{"number":{number}}}"#),
        subject: Subject::none(),
        source: None,
    };
    let mut tx = engine.db().begin().await?;
    accept_or_reuse(&mut tx, &seed, &Kicker::none()).await?;
    tx.commit("bench.accept").await?;
    let summary = engine.run_task(KIND.handler, &seed.code()).await?;
    ensure!(summary.succeeded == 1, "a task did not succeed: {summary:?}");
    Ok(())
}

/// The same three commits without an engine: insert, RUNNING, SUCCESS.
async fn plain(db: Db, number: i64) -> Result<()> {
    let key = format!("PLAIN:{number}");
    let code = TaskCode::of("PLAIN", &key);
    let mut tx = db.begin().await?;
    tx.execute(sql!(
        "INSERT INTO fi_async_task (task_code, task_type, business_key, task_data)
         VALUES (:code, 'PLAIN', :key, '{\"number\":1}')",
        code = code.as_str(),
        key = &key,
    ))
    .await?;
    tx.commit("bench.plain_accept").await?;
    for status in [1, 2] {
        let mut tx = db.begin().await?;
        tx.execute(sql!(
            "UPDATE fi_async_task SET task_status = :status WHERE task_code = :code",
            status = status,
            code = code.as_str(),
        ))
        .await?;
        tx.commit("bench.plain_move").await?;
    }
    Ok(())
}
