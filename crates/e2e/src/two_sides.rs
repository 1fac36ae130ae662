//! A form centre and a service hall as real processes, each on a database of its own, with clocks
//! that may be apart, and whatever a test puts between them.

mod kill;
mod line;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chrono::TimeDelta;
use counterfoil_db::{Clock, Db, Instant, Query, Read, Settings};
use counterfoil_protocol::signing::SigningKey;
use counterfoil_reconcile::form_centre::answer::AnswerWrite;
use counterfoil_reconcile::form_centre::grant;
use counterfoil_reconcile::form_centre::write::{Batch, MAX_BATCH, Same};
use counterfoil_reconcile::wire::Coordinate;
use tokio::process::{Child, Command};

use crate::{Dialect, TestDatabase};
pub use kill::{SetKillPlan, SetKillReport, kill_both_sides};
pub use line::{BadLine, LineReport};

/// Base64 of 32 bytes, all ones and all twos: the private keys of the two sides.
const CENTRE_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const HALL_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// Looks at a task a second, and how many at most.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const MAX_LOOKS: u32 = 1800;

fn public(text: &str) -> String {
    let key = SigningKey::read("ed25519", text).expect("a key");
    key.public().expect("a public half")
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// The one coordinate.
pub fn coordinate() -> Coordinate {
    Coordinate {
        consumer: "hall".into(),
        school: "school-1".into(),
        form: "form-1".into(),
        answer: None,
    }
}

/// How the two sides are made.
#[derive(Debug, Clone)]
pub struct TwoSidesPlan {
    /// The `counterfoil` binary.
    pub binary: PathBuf,
    /// The centre's database.
    pub centre: Dialect,
    /// The hall's.
    pub hall: Dialect,
    /// How far each side's clock is from the database's.
    pub clocks: (TimeDelta, TimeDelta),
    /// Lines of configuration that both sides get.
    pub more: String,
}

/// One side: its database, its configuration, and its process.
pub struct Side {
    /// Its database, on its own clock.
    pub db: Db,
    /// Where it listens.
    pub port: u16,
    database: TestDatabase,
    binary: PathBuf,
    config: PathBuf,
    role: &'static str,
    shift: TimeDelta,
    process: Option<Child>,
    folder: tempfile::TempDir,
}

impl Side {
    async fn new(plan: &TwoSidesPlan, role: &'static str, port: u16, config: &str) -> Side {
        let (dialect, shift) = match role {
            "centre" => (plan.centre, plan.clocks.0),
            _ => (plan.hall, plan.clocks.1),
        };
        let database = TestDatabase::create(dialect).await;
        let clock = if shift.is_zero() { Clock::Database } else { Clock::Shifted(shift) };
        let settings = Settings { clock, ..Settings::default() };
        let db = Db::connect(database.url(), settings).await.expect("the database");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("counterfoil.toml");
        let text = format!(
            "database = \"{}\"\nserver.listen = \"127.0.0.1:{port}\"\n{config}\n{}",
            database.url(),
            plan.more
        );
        std::fs::write(&path, text).expect("the configuration");
        let binary = plan.binary.clone();
        let side =
            Side { db, port, database, binary, config: path, role, shift, process: None, folder };
        let migrated = side.command().await.arg("migrate").output().await.expect("migrate");
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        side
    }

    async fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(&self.config).current_dir(self.folder.path());
        if !self.shift.is_zero() {
            // The side's own time, by its own database.
            let now = self.db.now().await.expect("the time");
            command.args(["--now", &now.to_rfc3339()]);
        }
        command
    }

    /// Starts its process.
    pub async fn start(&mut self) {
        let child = self
            .command()
            .await
            .args(["serve", "--role", self.role])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.process = Some(child.expect("the process"));
    }

    /// Ends its process by SIGKILL.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            child.kill().await.expect("killed");
        }
    }

    /// What a command says with `--json`, whatever its end.
    pub async fn says(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.command().await.arg("--json").args(arguments).output().await;
        let output = output.expect("the command");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {output:?}"))
    }

    /// The rows of a query as `a|b` lines.
    pub async fn rows(&self, query: &str) -> Vec<String> {
        let rows = self.db.rows(Query::built(query.to_owned())).await.expect("rows");
        let shown = rows.iter().map(|row| {
            let cells = row.columns().into_iter().map(|name| row.shown(&name).unwrap_or_default());
            cells.collect::<Vec<_>>().join("|")
        });
        shown.collect()
    }

    /// Runs SQL by hand.
    pub async fn execute(&self, statement: &str) {
        let mut tx = self.db.begin().await.expect("a transaction");
        tx.execute(Query::built(statement.to_owned())).await.expect(statement);
        tx.commit("test").await.expect("a commit");
    }

    /// Its time.
    pub async fn now(&self) -> Instant {
        self.db.now().await.expect("the time")
    }

    async fn remove(mut self) {
        self.kill().await;
        self.db.close().await;
        self.database.remove().await;
    }
}

/// Both sides.
pub struct TwoSides {
    /// The form centre.
    pub centre: Side,
    /// The service hall.
    pub hall: Side,
}

impl TwoSides {
    /// Makes both; nothing runs yet. `between` gets the centre's port and answers the one that the
    /// hall is to call.
    pub async fn make(plan: &TwoSidesPlan, between: impl AsyncFnOnce(u16) -> u16) -> TwoSides {
        let (centre_port, hall_port) = (free_port(), free_port());
        let called = between(centre_port).await;
        let centre = format!(
            r#"[signing]
app-key = "centre"
private-key = "{CENTRE_KEY}"
[apps.hall]
keys = [{{ key = "{}" }}]
[fc.answer.reconcile]
dispatch-enabled = true
page-size = 50
scan-interval-ms = 50
scan-initial-delay-ms = 0
lease-seconds = 2
max-dispatch-attempts = 400
backoff-base-seconds = 1
backoff-cap-seconds = 1
targets.hall = "http://127.0.0.1:{hall_port}"
"#,
            public(HALL_KEY)
        );
        let hall = format!(
            r#"[signing]
app-key = "hall"
private-key = "{HALL_KEY}"
[apps.centre]
keys = [{{ key = "{}" }}]
[svchall.answer-reconcile]
enabled = true
centre-url = "http://127.0.0.1:{called}"
source-app-key = "centre"
scan-interval-ms = 50
scan-initial-delay-ms = 0
lease-seconds = 2
backoff-base-seconds = 1
backoff-cap-seconds = 1
retry-limit = 1000
"#,
            public(CENTRE_KEY)
        );
        let centre = Side::new(plan, "centre", centre_port, &centre).await;
        let hall = Side::new(plan, "hall", hall_port, &hall).await;
        grant::scope(&centre.db, "hall", "school-1", true).await.expect("the school");
        grant::set(&centre.db, &coordinate(), grant::Rights::ALL).await.expect("the grant");
        TwoSides { centre, hall }
    }

    /// Starts both processes.
    pub async fn start(&mut self) {
        self.centre.start().await;
        self.hall.start().await;
    }

    /// Writes answers at the centre.
    pub async fn put(&self, answers: impl IntoIterator<Item = (u32, String)>) {
        let write = |(number, values): (u32, String)| AnswerWrite {
            uuid: Some(format!("{number:032x}")),
            form: "form-1".into(),
            school: "school-1".into(),
            version: None,
            values: Some(values),
            expected: None,
        };
        let answers: Vec<AnswerWrite> = answers.into_iter().map(write).collect();
        for chunk in answers.chunks(MAX_BATCH) {
            let written = async {
                let mut batch = Batch::begin(&self.centre.db, "test", Same::IsLeft).await?;
                batch.write(chunk).await?;
                batch.commit("answer.write").await
            };
            written.await.expect("answers are written");
        }
    }

    /// Makes a task of the form.
    pub async fn create(&self) -> String {
        let arguments =
            ["reconcile", "create", "--scope", "FORM", "--consumer", "hall", "--form", "form-1"];
        let said = self.centre.says(&arguments).await;
        let task = said["tasks"][0]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    /// The state of a task, if it has ended.
    pub async fn end_of(&self, task: &str) -> Option<String> {
        let query = format!("SELECT state FROM answer_reconcile_task WHERE task_id = '{task}'");
        let state = self.centre.rows(&query).await.concat();
        let ends = ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];
        ends.contains(&state.as_str()).then_some(state)
    }

    /// Waits for a task's end.
    pub async fn ended(&self, task: &str) -> String {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        for _ in 0..MAX_LOOKS {
            looks.tick().await;
            if let Some(state) = self.end_of(task).await {
                return state;
            }
        }
        let tasks = "SELECT state, attempt, reason_code, reason FROM answer_reconcile_task";
        let works = "SELECT state, attempt, retry_count, last_error FROM answer_reconcile_work";
        panic!("no end: {:?} {:?}", self.centre.rows(tasks).await, self.hall.rows(works).await)
    }

    /// Panics unless both sets are the same, by the databases' own word.
    pub async fn assert_agree(&self) {
        let centre = "SELECT uuid, revision, is_deleted FROM answer ORDER BY uuid";
        let hall = "SELECT answer_uuid, revision, is_deleted FROM fc_answer_projection
                    WHERE deleted = 0 ORDER BY answer_uuid";
        assert_eq!(self.centre.rows(centre).await, self.hall.rows(hall).await);
    }

    /// Ends both processes and takes both databases away.
    pub async fn remove(self) {
        self.centre.remove().await;
        self.hall.remove().await;
    }
}

/// The binary beside this program, where a command has to find it.
pub fn binary_beside(program: &Path) -> PathBuf {
    let binary = program.with_file_name("counterfoil");
    assert!(binary.exists(), "build it first: cargo build --bin counterfoil");
    binary
}
