//! Two real processes, each with a database of its own, talking signed HTTP on the loopback.

use std::process::Stdio;
use std::time::Duration;

use counterfoil_db::{Db, Query, Read, Settings, migrate};
use counterfoil_e2e::{Dialect, TestDatabase};
use counterfoil_protocol::signing::SigningKey;
use counterfoil_reconcile::form_centre::{answer, grant};
use counterfoil_reconcile::wire::Coordinate;
use counterfoil_server::wiring;
use tokio::process::{Child, Command};

/// Base64 of 32 bytes, all ones and all twos: the private keys of the two sides.
const CENTRE_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const HALL_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

fn public(text: &str) -> String {
    SigningKey::read("ed25519", text).unwrap().public().unwrap()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn coordinate() -> Coordinate {
    Coordinate {
        consumer: "hall".into(),
        school: "school-1".into(),
        form: "form-1".into(),
        answer: None,
    }
}

/// One side: its database, its configuration, and its process.
struct Side {
    db: Db,
    database: TestDatabase,
    config: std::path::PathBuf,
    role: &'static str,
    process: Option<Child>,
    folder: tempfile::TempDir,
}

impl Side {
    async fn new(dialect: Dialect, role: &'static str, config: &str) -> Side {
        let database = TestDatabase::create(dialect).await;
        let db = Db::connect(database.url(), Settings::default()).await.unwrap();
        migrate(&db, &wiring::migrations()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counterfoil.toml");
        std::fs::write(&path, format!("database = \"{}\"\n{config}", database.url())).unwrap();
        Side { db, database, config: path, role, process: None, folder }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
        command.arg("--config").arg(&self.config).current_dir(self.folder.path());
        command
    }

    /// Starts its process.
    fn start(&mut self) {
        let child = self
            .command()
            .args(["serve", "--role", self.role])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.process = Some(child.unwrap());
    }

    /// Ends its process by SIGKILL.
    async fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            child.kill().await.unwrap();
        }
    }

    async fn says(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.command().arg("--json").args(arguments).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {output:?}"))
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        let rows = self.db.rows(Query::built(query.to_owned())).await.unwrap();
        let shown = rows.iter().map(|row| {
            let cells = row.columns().into_iter().map(|name| row.shown(&name).unwrap_or_default());
            cells.collect::<Vec<_>>().join("|")
        });
        shown.collect()
    }

    async fn execute(&self, statement: &str) {
        let mut tx = self.db.begin().await.unwrap();
        tx.execute(Query::built(statement.to_owned())).await.unwrap();
        tx.commit("test").await.unwrap();
    }

    async fn remove(mut self) {
        self.kill().await;
        self.db.close().await;
        self.database.remove().await;
    }
}

async fn two_sides(centre: Dialect, hall: Dialect) -> (Side, Side) {
    let (centre_port, hall_port) = (free_port(), free_port());
    let centre_config = format!(
        r#"
server.listen = "127.0.0.1:{centre_port}"
[signing]
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
max-dispatch-attempts = 40
backoff-base-seconds = 1
backoff-cap-seconds = 1
targets.hall = "http://127.0.0.1:{hall_port}"
"#,
        public(HALL_KEY)
    );
    let hall_config = format!(
        r#"
server.listen = "127.0.0.1:{hall_port}"
[signing]
app-key = "hall"
private-key = "{HALL_KEY}"
[apps.centre]
keys = [{{ key = "{}" }}]
[svchall.answer-reconcile]
enabled = true
centre-url = "http://127.0.0.1:{centre_port}"
source-app-key = "centre"
scan-interval-ms = 50
scan-initial-delay-ms = 0
lease-seconds = 2
backoff-base-seconds = 1
backoff-cap-seconds = 1
retry-limit = 100
"#,
        public(CENTRE_KEY)
    );
    let centre = Side::new(centre, "centre", &centre_config).await;
    let hall = Side::new(hall, "hall", &hall_config).await;
    grant::scope(&centre.db, "hall", "school-1", true).await.unwrap();
    grant::set(&centre.db, &coordinate(), grant::Rights::ALL).await.unwrap();
    (centre, hall)
}

async fn put(side: &Side, number: u32, values: &str) {
    let write = answer::AnswerWrite {
        uuid: Some(format!("{number:032x}")),
        form: "form-1".into(),
        school: "school-1".into(),
        version: None,
        values: Some(values.to_owned()),
        expected: None,
    };
    answer::write(&side.db, &write, "test").await.unwrap();
}

async fn create(centre: &Side) -> String {
    let arguments =
        ["reconcile", "create", "--scope", "FORM", "--consumer", "hall", "--form", "form-1"];
    let said = centre.says(&arguments).await;
    said["tasks"][0]["taskId"].as_str().unwrap().to_owned()
}

/// Watches a task until it is over, at most a minute and a half; does something at every look.
async fn ended(centre: &Side, task: &str, mut at_each: impl AsyncFnMut(u32)) -> String {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    for look in 0..900 {
        looks.tick().await;
        let query = format!("SELECT state FROM answer_reconcile_task WHERE task_id = '{task}'");
        let state = centre.rows(&query).await.concat();
        if ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"].contains(&state.as_str()) {
            return state;
        }
        at_each(look).await;
    }
    let row = centre.rows("SELECT state, attempt, reason_code, reason FROM answer_reconcile_task");
    panic!("the task does not end: {:?}", row.await)
}

const CENTRE_SET: &str = "SELECT uuid, revision, is_deleted FROM answer ORDER BY uuid";
const HALL_SET: &str = "SELECT answer_uuid, revision, is_deleted FROM fc_answer_projection
                        WHERE deleted = 0 ORDER BY answer_uuid";

async fn reconciles(centre: Dialect, hall: Dialect) {
    let (mut centre, mut hall) = two_sides(centre, hall).await;
    for number in 1..=120 {
        put(&centre, number, &format!("{{\"n\":{number},\"名\":\"值 0.10\",\"x\":0.10}}")).await;
    }
    centre.start();
    hall.start();
    let task = create(&centre).await;
    assert_eq!(ended(&centre, &task, async |_| ()).await, "COMPLETED");
    assert_eq!(centre.rows(CENTRE_SET).await, hall.rows(HALL_SET).await);
    put(&centre, 7, "{\"n\":\"newer\"}").await;
    let forged = format!(
        "UPDATE fc_answer_projection SET values_json = '[]' WHERE answer_uuid = '{:032x}'",
        9
    );
    hall.execute(&forged).await;
    let task = create(&centre).await;
    assert_eq!(ended(&centre, &task, async |_| ()).await, "COMPLETED");
    let shown = centre.says(&["reconcile", "show", &task]).await;
    let counts = &shown["task"]["counts"];
    for (name, count) in
        [("scanned", 120), ("equal", 118), ("stale", 1), ("hashConflict", 1), ("repaired", 2)]
    {
        assert_eq!(counts[name], count, "{name}: {counts}");
    }
    assert_eq!(centre.rows(CENTRE_SET).await, hall.rows(HALL_SET).await);
    let listed = centre.says(&["reconcile", "list"]).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    centre.remove().await;
    hall.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_with_databases_of_different_kinds_agree_in_the_end() {
    reconciles(Dialect::MariaDb, Dialect::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_embedded_databases_agree_in_the_end() {
    reconciles(Dialect::Sqlite, Dialect::Sqlite).await;
}

/// Ten kills, at either process in turn, while the hall's whole set is missing and being repaired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_kills_of_either_process_end_with_equal_sets() {
    let (mut centre, mut hall) = two_sides(Dialect::Postgres, Dialect::Postgres).await;
    for number in 1..=600 {
        put(&centre, number, &format!("{{\"n\":{number}}}")).await;
    }
    centre.start();
    hall.start();
    let task = create(&centre).await;
    let mut kills = 0;
    let (one, other) = (&mut centre, &mut hall);
    let query = format!("SELECT state FROM answer_reconcile_task WHERE task_id = '{task}'");
    let mut looks = tokio::time::interval(Duration::from_millis(170));
    for look in 0.. {
        assert!(look < 900, "the task does not end");
        looks.tick().await;
        let state = one.rows(&query).await.concat();
        if ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"].contains(&state.as_str()) {
            assert_eq!(state, "COMPLETED");
            break;
        }
        if kills < 10 {
            let victim = if kills % 2 == 0 { &mut *other } else { &mut *one };
            victim.kill().await;
            victim.start();
            kills += 1;
        }
    }
    assert_eq!(centre.rows(CENTRE_SET).await, hall.rows(HALL_SET).await);
    let again = create(&centre).await;
    assert_eq!(ended(&centre, &again, async |_| ()).await, "COMPLETED");
    centre.remove().await;
    hall.remove().await;
}
