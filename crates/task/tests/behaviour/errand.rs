//! A tiny kind of work for the engine's tests: an errand does what its test tells it to.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use counterfoil_db::{Dialect, Instant, Migration, Query, Read, migrate, sql};
use counterfoil_e2e::TestApp;
use counterfoil_protocol::TaskCode;
use counterfoil_task::{
    Acceptance, Engine, EngineSettings, Fenced, Kicker, Kind, LeaseTable, Payload, Run, Seed,
    Subject, Summary, Verdict, Work, WorkError, accept_or_reuse,
};
use serde::Deserialize;

pub const ERRAND: Kind = Kind {
    handler: "errandTask",
    task_type: "ERRAND",
    prefix: "ER",
    stage: "errand",
    default_round: 50,
    max_round: 200,
};

/// What an errand did, and a batch to lease.
const TABLES: Migration = Migration {
    number: 9_001,
    name: "errands",
    ddl: "CREATE TABLE errand_log (
  id {id},
  errand_id BIGINT NOT NULL,
  step BIGINT NOT NULL DEFAULT 0,
  attempt BIGINT NOT NULL DEFAULT 0
) {table_options};
CREATE TABLE errand_batch (
  id {id},
  status VARCHAR(16) NOT NULL DEFAULT 'INIT',
  worker_id VARCHAR(128) NULL,
  lease_version BIGINT NOT NULL DEFAULT 0,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  step BIGINT NOT NULL DEFAULT 0,
  done BIGINT NOT NULL DEFAULT 0,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
",
};

pub const BATCH: LeaseTable = LeaseTable {
    name: "errand_batch",
    status: "status",
    running: "RUNNING",
    open: &["INIT"],
    done: "DONE",
    failed: "FAILED",
    version: "lease_version",
    error_code: "error_code",
    error_message: "error_message",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrandData {
    errand_id: i64,
    task_scene: String,
}

impl Payload for ErrandData {
    fn business_key(&self) -> String {
        key(self.errand_id)
    }

    fn defect(&self) -> Option<String> {
        if self.errand_id <= 0 {
            return Some("errandId must be positive".into());
        }
        (self.task_scene != "ERRAND").then(|| "taskScene must be ERRAND".into())
    }

    fn subject_id(&self) -> i64 {
        self.errand_id
    }
}

pub type Ending<'r> = Pin<Box<dyn Future<Output = Result<Verdict, WorkError>> + Send + 'r>>;
type Doing = dyn for<'r> Fn(i64, &'r Run<'r>) -> Ending<'r> + Send + Sync;

/// The work: the closure gets the errand's id.
pub struct Errands(Arc<Doing>);

#[async_trait::async_trait]
impl Work for Errands {
    type Payload = ErrandData;

    fn kind(&self) -> &'static Kind {
        &ERRAND
    }

    async fn run(&self, payload: ErrandData, run: &Run<'_>) -> Result<Verdict, WorkError> {
        (self.0)(payload.errand_id, run).await
    }
}

impl Errands {
    pub fn doing(
        doing: impl for<'r> Fn(i64, &'r Run<'r>) -> Ending<'r> + Send + Sync + 'static,
    ) -> Errands {
        Errands(Arc::new(doing))
    }
}

/// An engine whose errands do this.
pub fn engine(
    app: &TestApp,
    doing: impl for<'r> Fn(i64, &'r Run<'r>) -> Ending<'r> + Send + Sync + 'static,
) -> Engine {
    named_engine(app, "worker", doing)
}

/// The same for a worker of this name.
pub fn named_engine(
    app: &TestApp,
    worker: &str,
    doing: impl for<'r> Fn(i64, &'r Run<'r>) -> Ending<'r> + Send + Sync + 'static,
) -> Engine {
    let settings = EngineSettings {
        worker: worker.to_owned(),
        ..EngineSettings::default()
    };
    Engine::new(app.db.clone(), settings).with(Errands::doing(doing))
}

/// Logs the errand and succeeds, in one transaction.
pub fn succeed<'r>(id: i64, run: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async move {
        let mut tx = run.begin().await?;
        log(&mut tx, id, 1).await?;
        tx.succeed("errand.done").await
    })
}

/// An engine whose errands succeed, and the ids it ran, in order.
pub fn observed(app: &TestApp) -> (Engine, Arc<Mutex<Vec<i64>>>) {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let seen = ran.clone();
    let engine = engine(app, move |id, run| {
        seen.lock().expect("no panic").push(id);
        succeed(id, run)
    });
    (engine, ran)
}

/// Fails with this message.
pub fn fail<'r>(message: &'static str) -> Ending<'r> {
    Box::pin(async move { Err(WorkError::failed("errand-failed", message)) })
}

/// A business write of an errand.
pub async fn log(tx: &mut Fenced<'_>, id: i64, step: i64) -> Result<(), WorkError> {
    tx.execute(sql!(
        "INSERT INTO errand_log (errand_id, step) VALUES (:id, :step)",
        id = id,
        step = step,
    ))
    .await?;
    Ok(())
}

pub fn key(id: i64) -> String {
    format!("ERRAND:{id}")
}

pub fn code(id: i64) -> TaskCode {
    TaskCode::of(ERRAND.prefix, &key(id))
}

pub fn data(id: i64) -> String {
    format!(r#"{{"errandId":{id},"taskScene":"ERRAND"}}"#)
}

pub fn seed(id: i64) -> Seed {
    Seed {
        kind: &ERRAND,
        business_key: key(id),
        data: data(id),
        subject: Subject::none(),
        source: None,
    }
}

/// What tests do with errands in an app's database.
#[derive(Clone, Copy)]
pub struct Desk<'a>(pub &'a TestApp);

impl<'a> Desk<'a> {
    /// With the errands' own tables.
    pub async fn open(app: &'a TestApp) -> Desk<'a> {
        migrate(&app.db, &[TABLES])
            .await
            .expect("the errands' tables");
        Desk(app)
    }

    /// Accepts an errand.
    pub async fn accept(self, id: i64) -> Acceptance {
        let mut tx = self.0.db.begin().await.expect("a transaction");
        let accepted = accept_or_reuse(&mut tx, &seed(id), &Kicker::none()).await;
        let accepted = accepted.expect("an acceptance");
        tx.commit("test.accept").await.expect("a commit");
        accepted
    }

    /// A row written by hand: `columns` and `values` besides id, code, type, key and data.
    pub async fn by_hand(self, id: i64, columns: &str, values: &str) {
        let comma = if columns.is_empty() { "" } else { ", " };
        let text = format!(
            "INSERT INTO fi_async_task
               (id, task_code, task_type, business_key, task_data{comma}{columns})
             VALUES ({id}, '{}', 'ERRAND', '{}', '{}'{comma}{values})",
            code(id),
            key(id),
            data(id)
        );
        // Not by `TestApp::execute`: JSON holds colons, which are no parameters.
        self.raw(&text).await;
    }

    /// One statement as it stands.
    pub async fn raw(self, text: &str) {
        let query = Query::built(text.to_owned());
        let done = self.0.db.execute_outside_transaction(query).await;
        done.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }

    /// Every column of the errand's row.
    pub async fn row(self, id: i64) -> String {
        self.0
            .value(&format!(
                "SELECT * FROM fi_async_task WHERE id = {}",
                self.id(id).await
            ))
            .await
    }

    /// The row's id.
    pub async fn id(self, id: i64) -> String {
        self.0
            .value(&format!(
                "SELECT id FROM fi_async_task WHERE business_key = '{}'",
                key(id)
            ))
            .await
    }

    /// `status|retries|attempt|message` of the errand's row.
    pub async fn state(self, id: i64) -> String {
        self.0
            .value(&format!(
                "SELECT task_status, retry_count, running_attempt, error_message
                 FROM fi_async_task WHERE business_key = '{}'",
                key(id)
            ))
            .await
    }

    /// Minutes until the errand is due; `None` = NULL.
    pub async fn due_in(self, id: i64) -> Option<i64> {
        let row = self.0.db.row(sql!(
            "SELECT next_execute_time FROM fi_async_task WHERE business_key = :key",
            key = key(id),
        ));
        let row = row.await.expect("a query").expect("a row");
        let due = row.maybe_instant("next_execute_time").expect("an instant");
        due.map(|due| (due - self.0.now()).num_minutes())
    }

    /// How often errands were logged.
    pub async fn logged(self, condition: &str) -> i64 {
        let text = format!("SELECT COUNT(*) FROM errand_log WHERE {condition}");
        self.0.db.count(Query::built(text)).await.expect("a count")
    }

    /// An instant this far from the clock's now, as a literal.
    pub fn at(self, from_now: TimeDelta) -> String {
        literal(self.0.db.dialect(), self.0.now() + from_now)
    }

    /// The same in minutes.
    pub fn minutes(self, minutes: i64) -> String {
        self.at(TimeDelta::minutes(minutes))
    }
}

fn literal(dialect: Dialect, instant: Instant) -> String {
    let format = match dialect {
        Dialect::MariaDb => "'%Y-%m-%d %H:%M:%S%.6f'",
        _ if instant.timestamp_subsec_micros() == 0 => "'%Y-%m-%dT%H:%M:%S+00:00'",
        _ => "'%Y-%m-%dT%H:%M:%S%.6f+00:00'",
    };
    instant.format(format).to_string()
}

/// The counts of a summary: selected, claimed, succeeded, skipped, failed.
pub fn counts(summary: &Summary) -> [u32; 5] {
    [
        summary.selected,
        summary.claimed,
        summary.succeeded,
        summary.skipped,
        summary.failed,
    ]
}

/// Real seconds for another connection to get somewhere.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Looks again until `holds`, without sleeping; panics when it never does.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Until another connection of this database waits for a lock; at once on SQLite, which shows
/// nobody who waits.
pub async fn until_somebody_waits(app: &TestApp) {
    let query = match app.db.dialect() {
        Dialect::Sqlite => return,
        Dialect::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'"
        }
        Dialect::MariaDb => {
            // Not innodb_trx: it shows what it showed last to whoever asks again within 100 ms.
            "SELECT COUNT(*) FROM information_schema.processlist
             WHERE db = DATABASE() AND command <> 'Sleep' AND time_ms > 100
               AND id <> CONNECTION_ID()"
        }
    };
    until("somebody waits for a lock", || async {
        let waiting = app.db.count(Query::built(query.to_owned())).await;
        waiting.expect("a count") > 0
    })
    .await;
}
