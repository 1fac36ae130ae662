//! Real processes, really killed, in a loop; then the proof that nothing was lost or done twice.
//!
//! A `counterfoil serve` process works on orders that people in this process submit, revise,
//! review and reject, and that a bank in this process pays. After a seeded number of commits it
//! gets SIGKILL or SIGTERM; the next one starts eleven minutes later on its own clock, so that a
//! dead process's tasks are stale and its leases expired. No sleeping: the next kill comes at the
//! n-th commit that the process reports.

mod large;
mod outside;
mod people;
mod process;
mod proof;

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::process::Command;

use crate::TestApp;
use outside::Outside;
use process::{Moment, Process};

pub use large::{LargeReport, large_order};

/// How to kill.
#[derive(Debug, Clone)]
pub struct KillPlan {
    /// The `counterfoil` binary.
    pub binary: PathBuf,
    /// How many processes are killed.
    pub kills: u32,
    /// What the random choices come from; printed with every failure.
    pub seed: u64,
}

/// Commits after which a process is killed, at most.
const MAX_COMMITS: u64 = 60;
/// New commit points after which a process is killed, at most.
const MAX_NEW_POINTS: u64 = 12;
/// Processes started after the last kill, until nothing is left to do.
const MAX_LAST_RUNS: u32 = 16;
const MINUTES_BETWEEN: i64 = 11;
/// After so many kills more orders come, so that there is always something to do.
const KILLS_A_SET: u32 = 10;

/// splitmix64: small, seeded, the same everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What a loop did.
#[derive(Debug, Default, Clone)]
pub struct KillReport {
    /// Processes ended by SIGKILL.
    pub killed: u32,
    /// Processes ended by SIGTERM.
    pub terminated: u32,
    /// Commits that the processes reported.
    pub commits: u64,
    /// The last commit point before each kill, and how often it was that.
    pub landed: BTreeMap<String, u32>,
    /// Versions published in the end.
    pub published: i64,
    /// Orders by the status in which they ended.
    pub ends: BTreeMap<String, u32>,
    /// What the pages say of orders that have not come to an end.
    pub blocked: Vec<String>,
    /// Lines that the bank paid.
    pub paid_lines: usize,
    /// Payments that it refused before.
    pub refused_payments: u32,
    /// Chunks that the partner was told.
    pub told: i64,
    /// Tasks that a person had to run again because they had been lost five times in a row.
    pub rerun: u32,
}

/// Kills processes on this app's database and proves the end. Panics when the proof fails.
pub async fn kill_loop(app: &TestApp, plan: &KillPlan) -> KillReport {
    let mut random = Random::new(plan.seed);
    let mut report = KillReport::default();
    let mut outside = Outside::new();
    migrate(app, plan).await;
    people::begin(app, plan.kills / KILLS_A_SET + 1).await;
    outside.partner(app).await;
    for kill in 0..plan.kills {
        if kill % KILLS_A_SET == 0 {
            people::open(app, kill / KILLS_A_SET).await;
        }
        turn(app, plan, &mut outside, &mut random, false).await;
        let mut process = Process::start(app, plan, &outside).await;
        report.commits += process.wait(moment(&mut random, &report)).await;
        let landed = process.last_commit.clone().unwrap_or_else(|| "nothing".into());
        *report.landed.entry(landed).or_default() += 1;
        if random.below(3) == 0 {
            process.terminate().await;
            report.terminated += 1;
        } else {
            process.kill().await;
            report.killed += 1;
        }
        app.pass_minutes(MINUTES_BETWEEN);
    }
    finish(app, plan, &mut outside, &mut random, &mut report).await;
    proof::prove(app, plan, &outside, &mut report).await;
    report
}

/// After so many commits, or after so many points that no kill has come to yet.
fn moment(random: &mut Random, report: &KillReport) -> Moment {
    if random.below(2) == 0 {
        return Moment::Commits(1 + random.below(MAX_COMMITS));
    }
    let left = usize::try_from(1 + random.below(MAX_NEW_POINTS)).unwrap_or(1);
    Moment::NewPoints { left, known: report.landed.keys().cloned().collect() }
}

/// The binary's own migrations: it has more than the domains.
async fn migrate(app: &TestApp, plan: &KillPlan) {
    let migrated =
        Command::new(&plan.binary).args(["--database", app.url(), "migrate"]).output().await;
    let migrated = migrated.expect("counterfoil migrate");
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
}

/// Everybody who is not a process has a turn.
async fn turn(
    app: &TestApp,
    plan: &KillPlan,
    outside: &mut Outside,
    random: &mut Random,
    calm: bool,
) {
    proof::projected_once(app, plan.seed).await;
    outside.answer(app, random, calm).await;
    outside::fix_failed(app, random, calm).await;
    people::act(app, random, calm).await;
}

/// Runs processes without killing them until nothing is left to do.
async fn finish(
    app: &TestApp,
    plan: &KillPlan,
    outside: &mut Outside,
    random: &mut Random,
    report: &mut KillReport,
) {
    for _ in 0..MAX_LAST_RUNS {
        let mut process = Process::start(app, plan, outside).await;
        let commits = process.wait(Moment::Quiet).await;
        report.commits += commits;
        process.terminate().await;
        app.pass_minutes(MINUTES_BETWEEN * 3);
        report.rerun += rerun_parked(app).await;
        let before = unfinished(app).await;
        turn(app, plan, outside, random, true).await;
        if before.is_empty() && unfinished(app).await.is_empty() {
            return;
        }
    }
    panic!("seed {}: work is left: {:#?}", plan.seed, unfinished(app).await);
}

/// Work that is not done: tasks, reviews, refreshes, pushes, and orders that are to be paid.
const UNFINISHED: [&str; 5] = [
    "SELECT task_code, business_key, task_status, retry_count, lost_attempts, error_message
     FROM fi_async_task WHERE task_status NOT IN (2, 4) ORDER BY id",
    "SELECT 'progress', id, phase, phase_status, last_error_code, last_error_message
     FROM fi_resident_income_payment_review_callback_progress
     WHERE phase <> 'DONE' AND main_task_status <> 'SUPERSEDED' ORDER BY id",
    "SELECT 'shard', id, source_type, task_status, error_message
     FROM fi_resident_income_payment_status_refresh_shard
     WHERE task_status <> 'SUCCESS' ORDER BY id",
    "SELECT 'batch', id, status, push_count, error_message
     FROM fi_resident_income_payment_push_batch
     WHERE deleted = 0 AND status <> 'PUSH_SUCCESS' ORDER BY id",
    "SELECT 'order', id, status, push_status, audit_plan_status
     FROM fi_resident_income_payment_order WHERE status IN (10, 20, 40) ORDER BY id",
];

async fn unfinished(app: &TestApp) -> Vec<String> {
    let mut found = Vec::new();
    for query in UNFINISHED {
        found.extend(app.lines(query).await);
    }
    found
}

/// What an operator does with a task that was lost five times in a row: look, and run it again.
async fn rerun_parked(app: &TestApp) -> u32 {
    let parked = app
        .lines("SELECT task_code FROM fi_async_task WHERE task_status = 1 AND lost_attempts >= 4")
        .await;
    for code in &parked {
        app.execute(&format!(
            "UPDATE fi_async_task SET lost_attempts = 0 WHERE task_code = '{code}'"
        ))
        .await;
    }
    u32::try_from(parked.len()).expect("few")
}
