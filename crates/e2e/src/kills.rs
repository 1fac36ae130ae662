//! Real processes, really killed, in a loop; then the proof that nothing was lost or done twice.
//!
//! A `counterfoil serve` process works on orders that this process submits. After a seeded number
//! of commits it gets SIGKILL or SIGTERM; the next one starts eleven minutes later on its own
//! clock, so that a dead process's tasks are stale and its leases expired. No sleeping: the next
//! kill comes at the n-th commit that the process reports.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use counterfoil_db::{Read, sql};
use counterfoil_payment::session::submit;
use counterfoil_protocol::SessionId;
use counterfoil_task::Kicker;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::{Bill, CREATOR, Fixture, TestApp};

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

const ORDERS: i64 = 4;
const BILLS_AN_ORDER: i64 = 24;
/// Stations each order may use; the last one is contested by the next order.
const STATIONS_AN_ORDER: i64 = 30;
const BATCH_SIZE: i64 = 4;
const MAX_REVISIONS: i64 = 3;
/// Commits after which a process is killed, at most.
const MAX_COMMITS: u64 = 30;
/// Real time for a process to report its next commit, or for work to become quiet.
const MAX_SILENCE: Duration = Duration::from_secs(3);
/// Processes started after the last kill, until nothing is left to do.
const MAX_LAST_RUNS: u32 = 12;
const MINUTES_BETWEEN: i64 = 11;

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
    /// Versions published in the end.
    pub published: i64,
    /// Tasks that a person had to run again because they had been lost five times in a row.
    pub rerun: u32,
}

/// Kills processes on this app's database and proves the end. Panics when the proof fails.
pub async fn kill_loop(app: &TestApp, plan: &KillPlan) -> KillReport {
    let mut random = Random::new(plan.seed);
    let mut report = KillReport::default();
    let fixture = Fixture(app);
    fixture.records(ORDERS * STATIONS_AN_ORDER).await;
    for order in 0..ORDERS {
        open_first(app, order).await;
    }
    for _ in 0..plan.kills {
        act_as_user(app, &mut random).await;
        let mut process = Process::start(app, plan).await;
        let wanted = 1 + random.below(MAX_COMMITS);
        report.commits += process.wait_for_commits(wanted).await;
        if random.below(3) == 0 {
            process.terminate().await;
            report.terminated += 1;
        } else {
            process.kill().await;
            report.killed += 1;
        }
        app.pass_minutes(MINUTES_BETWEEN);
    }
    finish(app, plan, &mut random, &mut report).await;
    prove(app, plan, &mut report).await;
    report
}

fn own_bills(order: i64) -> impl Iterator<Item = i64> {
    let first = order * STATIONS_AN_ORDER + 1;
    first..first + BILLS_AN_ORDER
}

/// The first selection of an order also wants one bill of the next order: a conflict.
async fn open_first(app: &TestApp, order: i64) {
    let contested = (order + 1) % ORDERS * STATIONS_AN_ORDER + 1;
    let bills: Vec<Bill> = own_bills(order).chain([contested]).map(Bill::payable).collect();
    Fixture(app).new_session(&bills).await;
}

/// Submits what can be submitted and revises what can be revised.
async fn act_as_user(app: &TestApp, random: &mut Random) {
    for session in sessions(app, "status IN ('EDITING', 'SUBMIT_FAILED')").await {
        drop_conflicts(app, session).await;
        // Refused while S06 of the last attempt is not done: the next turn tries again.
        if let Ok(submission) = submit(&app.db, &Kicker::none(), session, CREATOR).await {
            Fixture(app).batch_size(&submission, BATCH_SIZE).await;
        }
    }
    for (order, version) in revisable(app).await {
        revise(app, order, version, random).await;
    }
}

async fn sessions(app: &TestApp, condition: &str) -> Vec<SessionId> {
    let query = format!("SELECT id FROM selection_session WHERE {condition} ORDER BY id");
    let lines = app.lines(&query).await;
    lines.iter().map(|id| SessionId(id.parse().expect("an id"))).collect()
}

async fn drop_conflicts(app: &TestApp, session: SessionId) {
    app.execute(&format!(
        "UPDATE selection_session_item SET deleted = 1
         WHERE session_id = {session} AND deleted = 0 AND EXISTS (
           SELECT 1 FROM selection_conflict c
           JOIN fi_resident_income_payment_order_version v ON v.id = c.payment_order_version_id
           WHERE v.session_id = {session}
             AND c.station_id = selection_session_item.station_id
             AND c.bill_yearmonth = selection_session_item.bill_yearmonth)"
    ))
    .await;
}

/// Orders under review whose published version is complete, with few revisions yet.
async fn revisable(app: &TestApp) -> Vec<(i64, i64)> {
    let rows = app
        .db
        .rows(sql!(
            "SELECT o.id, o.current_publish_version AS version
             FROM fi_resident_income_payment_order o
             JOIN fi_resident_income_payment_order_version v
               ON v.payment_order_id = o.id AND v.target_data_version = o.current_publish_version
             JOIN selection_session s ON s.id = v.session_id
             WHERE o.status = 20 AND s.status = 'COMPLETED' AND o.submit_round <= :most
               AND NOT EXISTS (SELECT 1 FROM selection_session r
                 WHERE r.target_payment_order_id = o.id AND r.status <> 'COMPLETED')
             ORDER BY o.id",
            most = MAX_REVISIONS,
        ))
        .await
        .expect("orders");
    rows.iter()
        .map(|row| (row.int("id").expect("an id"), row.int("version").expect("a version")))
        .collect()
}

async fn revise(app: &TestApp, order: i64, version: i64, random: &mut Random) {
    let first = app
        .value(&format!(
            "SELECT diff_id FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = {order} AND data_version = {version}
             ORDER BY id LIMIT 1"
        ))
        .await;
    let index = (first.parse::<i64>().expect("a record") - 1) / STATIONS_AN_ORDER;
    let start = index * STATIONS_AN_ORDER + 2; // the first one is contested
    let mut bills = Vec::new();
    for number in start..start + STATIONS_AN_ORDER - 1 {
        match random.below(6) {
            0 => {}
            1 => bills.push(Bill::unqualified(number, "农户租金异常", 0)),
            _ => bills.push(Bill::payable(number)),
        }
    }
    let fixture = Fixture(app);
    let session = fixture.revise_session(order, &bills).await;
    let submission = fixture.submit(session).await;
    fixture.batch_size(&submission, BATCH_SIZE).await;
}

/// Runs processes without killing them until nothing is left to do.
async fn finish(app: &TestApp, plan: &KillPlan, random: &mut Random, report: &mut KillReport) {
    for _ in 0..MAX_LAST_RUNS {
        let mut process = Process::start(app, plan).await;
        report.commits += process.wait_for_commits(u64::MAX).await;
        process.terminate().await;
        app.pass_minutes(MINUTES_BETWEEN * 3);
        report.rerun += rerun_parked(app).await;
        let before = unfinished(app).await;
        act_as_user(app, random).await;
        if before == 0 && unfinished(app).await == 0 {
            return;
        }
    }
    panic!("seed {}: work is left: {:?}", plan.seed, app.lines(UNFINISHED).await);
}

const UNFINISHED: &str = "SELECT task_code, business_key, task_status, retry_count, lost_attempts,
    error_message FROM fi_async_task WHERE task_status NOT IN (2, 4) ORDER BY id";

async fn unfinished(app: &TestApp) -> usize {
    app.lines(UNFINISHED).await.len()
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

async fn prove(app: &TestApp, plan: &KillPlan, report: &mut KillReport) {
    let seed = plan.seed;
    let checked = Command::new(&plan.binary)
        .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "check"])
        .output()
        .await
        .expect("counterfoil check");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "seed {seed}: {said}");
    let published = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_order_version
        WHERE version_build_status = 'PUBLISHED'";
    report.published = app.value(published).await.parse().expect("a count");
    let rounds =
        "SELECT CAST(SUM(submit_round) AS {bigint}) AS n FROM fi_resident_income_payment_order";
    assert_eq!(app.value(rounds).await, report.published.to_string(), "seed {seed}");
    // Each published version raised a bill's financial version exactly once if it was payable.
    let wrong = "SELECT d.station_id, d.financial_version, (
           SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
           JOIN fi_resident_income_payment_order_version v
             ON v.payment_order_id = l.payment_order_id
            AND v.target_data_version = l.data_version
           WHERE l.diff_id = d.id AND l.line_type = 10
             AND v.version_build_status = 'PUBLISHED') AS expected
         FROM fi_monthly_income_difference d";
    for line in app.lines(wrong).await {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells[1], cells[2], "seed {seed}: {line}: a projection was lost or repeated");
    }
    let activated = "SELECT CAST(COALESCE(SUM(processed_count), 0) AS {bigint}) AS n
        FROM selection_submit_batch
        WHERE batch_phase = 'LOCK_ACTIVATE'";
    let locks = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_bill_lock
        WHERE lock_scene <> 'BUILD_RELEASE'";
    assert_eq!(app.value(activated).await, app.value(locks).await, "seed {seed}");
}

struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    last_lines: Vec<String>,
}

impl Process {
    async fn start(app: &TestApp, plan: &KillPlan) -> Process {
        let mut child = Command::new(&plan.binary)
            .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "serve"])
            .args(["--listen", "127.0.0.1:0", "--cron", "* * * * * *"])
            .env("COUNTERFOIL_LOG", "warn,counterfoil_db::transaction=trace")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("counterfoil serve");
        let stderr = child.stderr.take().expect("a pipe");
        Process { child, log: BufReader::new(stderr).lines(), last_lines: Vec::new() }
    }

    /// Waits until the process has reported so many commits, or nothing more for a while.
    async fn wait_for_commits(&mut self, wanted: u64) -> u64 {
        let mut commits = 0;
        while commits < wanted {
            let line = match tokio::time::timeout(MAX_SILENCE, self.log.next_line()).await {
                Err(_) => return commits,
                Ok(line) => line.expect("its log"),
            };
            let Some(line) = line else {
                panic!("the process ended by itself: {:#?}", self.last_lines);
            };
            commits += u64::from(line.contains("committed"));
            if self.last_lines.len() == 20 {
                self.last_lines.remove(0);
            }
            self.last_lines.push(line);
        }
        commits
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("SIGKILL");
    }

    async fn terminate(mut self) {
        let id = self.child.id().expect("a living process").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill");
        assert!(sent.success());
        // Its log must be read on, or it would block on a full pipe.
        while let Ok(Some(_)) = self.log.next_line().await {}
        let status = self.child.wait().await.expect("its end");
        assert!(status.success(), "SIGTERM must end it cleanly: {status}");
    }
}
