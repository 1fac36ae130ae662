//! `counterfoil bench`.

use anyhow::Result;
use serde_json::json;

use super::output::table;
use super::{Output, Session};
use crate::bench::activate::{self, Shape, Statistics};
use crate::bench::{self, callback, reconcile, tasks};

/// What to measure. A scratch database is made beside the configured one and removed again.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Accept → claim → fenced success, tasks a second, beside the same commits as plain SQL
    Tasks {
        /// Tasks for each number of workers
        #[arg(long, default_value_t = 2000)]
        rows: u64,
        /// Numbers of concurrent workers
        #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
        workers: Vec<u64>,
    },
    /// The whole of S04, beside the same final rows by plain set-based SQL
    Activate {
        /// Payable lines; several sizes show how time grows
        #[arg(long, value_delimiter = ',', default_value = "100000")]
        rows: Vec<u64>,
        /// A revision that keeps eight lines in ten, drops one, makes one unqualified, adds one;
        /// the floor beside it is that of the version it revises
        #[arg(long)]
        revise: bool,
        /// What the planner's statistics know when S04 begins
        #[arg(long, value_enum, default_value_t = Statistics::Fresh)]
        statistics: Statistics,
    },
    /// From the accepted decision to DONE (S07, S08, S12), beside the same final rows by plain
    /// set-based SQL
    Callback {
        /// Payable lines; several sizes show how time grows
        #[arg(long, value_delimiter = ',', default_value = "100000")]
        rows: Vec<u64>,
    },
    /// Form centre and service hall over signed HTTP, beside one ordered read of both sides
    Reconcile {
        /// Rows a side
        #[arg(long, default_value_t = 100_000)]
        rows: u64,
        /// Rows that differ
        #[arg(long, default_value_t = 1000)]
        differing: u64,
        /// Compare equal sets row by row as well
        #[arg(long)]
        walk: bool,
    },
}

/// Rows of one benchmark at most.
const MAX_ROWS: u64 = 5_000_000;

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let url = session.config.database.clone();
    match command {
        Command::Tasks { rows, workers } => run_tasks(session, &url, rows, &workers).await,
        Command::Activate { rows, revise, statistics } => {
            let shape = Shape { revise, statistics };
            run_activate(session, &url, &rows, shape).await
        }
        Command::Callback { rows } => run_callback(session, &url, &rows).await,
        Command::Reconcile { rows, differing, walk } => {
            run_reconcile(session, &url, reconcile::Size { rows, differing, walk }).await
        }
    }
}

fn check_rows(rows: u64) -> Result<()> {
    anyhow::ensure!((1..=MAX_ROWS).contains(&rows), "--rows must be from 1 to {MAX_ROWS}");
    Ok(())
}

async fn run_tasks(session: &Session, url: &str, rows: u64, workers: &[u64]) -> Result<Output> {
    check_rows(rows)?;
    anyhow::ensure!(workers.iter().all(|n| (1..=64).contains(n)), "--workers: from 1 to 64 each");
    let figures = tasks::run(&session.config, url, rows, workers).await?;
    let a_second = |tasks: u64, took: std::time::Duration| {
        u128::from(tasks) * 1_000_000 / took.as_micros().max(1)
    };
    let mut shown = Vec::new();
    let mut json = Vec::new();
    for f in &figures {
        let (ours, floor) = (a_second(f.tasks, f.ours), a_second(f.tasks, f.floor));
        let ratio = bench::ratio(f.ours, f.floor);
        json.push(json!({
            "workers": f.workers, "tasks": f.tasks, "tasksPerSecond": ours,
            "floorPerSecond": floor, "ratio": ratio,
        }));
        shown.push(vec![f.workers.to_string(), ours.to_string(), floor.to_string(), ratio]);
    }
    let header = ["WORKERS", "TASKS/S", "FLOOR/S", "TIME RATIO"];
    Ok(Output::new(json!({ "bench": "tasks", "figures": json }), table(&header, &shown)))
}

/// Linear growth shows as a figure that stays.
fn micros_per_row(figures: &activate::Figures) -> u64 {
    u64::try_from(figures.ours.as_micros()).unwrap_or(u64::MAX) / figures.rows.max(1)
}

async fn run_activate(session: &Session, url: &str, sizes: &[u64], shape: Shape) -> Result<Output> {
    let mut shown = Vec::new();
    let mut json = Vec::new();
    for &rows in sizes {
        check_rows(rows)?;
        let f = activate::run(&session.config, url, rows, shape).await?;
        let ratio = bench::ratio(f.ours, f.floor);
        let peak = bench::peak_memory_kib();
        json.push(json!({
            "rows": f.rows, "oursMs": u64::try_from(f.ours.as_millis())?,
            "floorMs": u64::try_from(f.floor.as_millis())?, "ratio": ratio, "peakKib": peak,
            "revise": shape.revise, "microsPerRow": micros_per_row(&f),
        }));
        let ms = |took: std::time::Duration| took.as_millis().to_string();
        shown.push(vec![
            f.rows.to_string(),
            ms(f.ours),
            ms(f.floor),
            ratio,
            micros_per_row(&f).to_string(),
            (peak / 1024).to_string(),
        ]);
    }
    let header = ["ROWS", "S04 MS", "FLOOR MS", "RATIO", "US/ROW", "PEAK MIB"];
    Ok(Output::new(json!({ "bench": "activate", "figures": json }), table(&header, &shown)))
}

async fn run_callback(session: &Session, url: &str, sizes: &[u64]) -> Result<Output> {
    let mut shown = Vec::new();
    let mut json = Vec::new();
    for &rows in sizes {
        check_rows(rows)?;
        let f = callback::run(&session.config, url, rows).await?;
        let ratio = bench::ratio(f.ours, f.floor);
        let peak = bench::peak_memory_kib();
        let micros = u64::try_from(f.ours.as_micros())? / f.rows.max(1);
        json.push(json!({
            "rows": f.rows, "oursMs": u64::try_from(f.ours.as_millis())?,
            "floorMs": u64::try_from(f.floor.as_millis())?, "ratio": ratio, "peakKib": peak,
            "finalizeMs": u64::try_from(f.finalize.as_millis())?, "microsPerRow": micros,
            "finalizeTransactionMs": u64::try_from(f.effective.as_millis())?,
            "longestBatchMs": u64::try_from(f.batch.as_millis())?,
        }));
        let ms = |took: std::time::Duration| took.as_millis().to_string();
        shown.push(vec![
            f.rows.to_string(),
            ms(f.ours),
            ms(f.floor),
            ratio,
            micros.to_string(),
            ms(f.finalize),
            ms(f.effective),
            ms(f.batch),
            (peak / 1024).to_string(),
        ]);
    }
    let header = [
        "ROWS",
        "S07-S12 MS",
        "FLOOR MS",
        "RATIO",
        "US/ROW",
        "FINALIZE MS",
        "ITS TX MS",
        "BATCH TX MS",
        "PEAK MIB",
    ];
    Ok(Output::new(json!({ "bench": "callback", "figures": json }), table(&header, &shown)))
}

async fn run_reconcile(session: &Session, url: &str, size: reconcile::Size) -> Result<Output> {
    check_rows(size.rows)?;
    anyhow::ensure!(size.differing >= 1, "--differing must be 1 or more");
    let (mut shown, mut json) = (Vec::new(), Vec::new());
    for f in reconcile::run(&session.config, url, size).await? {
        let ratio = bench::ratio(f.manifest + f.compare.took, f.floor);
        let ms = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        json.push(json!({
            "shape": f.shape, "rows": f.rows, "differing": f.differing,
            "manifestMs": ms(f.manifest), "compareMs": ms(f.compare.took),
            "floorMs": ms(f.floor), "ratio": ratio, "compareBytes": f.compare.bytes,
            "compareCalls": f.compare.calls, "repairMs": ms(f.repair.took),
            "repairBytes": f.repair.bytes, "repairCalls": f.repair.calls,
        }));
        let figures = [ms(f.manifest), ms(f.compare.took), ms(f.floor)];
        let mut cells = vec![f.shape.to_owned(), f.rows.to_string(), f.differing.to_string()];
        cells.extend(figures.iter().map(ToString::to_string));
        cells.extend([ratio, f.compare.bytes.to_string(), f.compare.calls.to_string()]);
        cells.extend([ms(f.repair.took).to_string(), f.repair.bytes.to_string()]);
        shown.push(cells);
    }
    let header = [
        "SHAPE",
        "ROWS",
        "DIFFER",
        "MANIFEST MS",
        "COMPARE MS",
        "FLOOR MS",
        "RATIO",
        "BYTES",
        "CALLS",
        "REPAIR MS",
        "REPAIR BYTES",
    ];
    let peak = bench::peak_memory_kib();
    let text =
        format!("{}\npeak memory of both sides: {} MiB", table(&header, &shown), peak / 1024);
    Ok(Output::new(json!({ "bench": "reconcile", "figures": json, "peakKib": peak }), text))
}
