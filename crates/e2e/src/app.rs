//! The app under test: a migrated database, a clock that stands, the engine with all its work.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use counterfoil_db::{
    Clock, Db, Dialect, FaultAction, FaultPlan, Faults, Instant, LOCK_TIMEOUT, ManualClock, Query,
    Read, Settings, Side, migrate,
};
use counterfoil_payment::audit_plan::{AuditPlan, ReviewCentre};
use counterfoil_payment::bill_snapshot::BillSnapshot;
use counterfoil_payment::review_progress::ReviewProgress;
use counterfoil_payment::status_refresh::StatusRefresh;
use counterfoil_payment::{lock_activation, lock_release, review_callback, submit_build};
use counterfoil_remote::HttpReviewCentre;
use counterfoil_task::{Engine, EngineSettings, RoundError, Summary};

use crate::database::TestDatabase;

/// When every test begins.
pub const START: &str = "2026-09-08T02:00:00Z";

/// An app of its own for one test. Clones are the same app.
#[derive(Debug, Clone)]
pub struct TestApp {
    /// The database.
    pub db: Db,
    /// The clock, to be moved by hand.
    pub clock: ManualClock,
    url: Arc<str>,
}

/// Where a process dies: at this passage of this commit point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// The commit point.
    pub point: &'static str,
    /// Before or after it.
    pub side: Side,
    /// At which passage, from 1.
    pub passage: u32,
}

/// Runs one sentence on a fresh database and takes the database away, also when it panics.
pub async fn run<F, S>(dialect: Dialect, sentence: S)
where
    F: Future<Output = ()> + Send + 'static,
    S: FnOnce(TestApp) -> F,
{
    let database = TestDatabase::create(dialect).await;
    let app = TestApp::open(database.url()).await;
    let outcome = tokio::spawn(sentence(app.clone())).await;
    app.db.close().await;
    drop(app);
    database.remove().await;
    if let Err(failed) = outcome {
        std::panic::resume_unwind(failed.into_panic());
    }
}

impl TestApp {
    async fn open(url: &str) -> TestApp {
        let clock = ManualClock::at(START.parse().expect("an instant"));
        let app =
            TestApp { db: connect(url, &clock, LOCK_TIMEOUT).await, clock, url: Arc::from(url) };
        let steps = [
            counterfoil_task::MIGRATIONS,
            counterfoil_payment::MIGRATIONS,
            counterfoil_review::MIGRATIONS,
        ]
        .concat();
        migrate(&app.db, &steps).await.expect("migrations");
        app
    }

    /// The same database through another pool, as a second process has it; faults apart.
    pub async fn second_process(&self) -> TestApp {
        self.process_waiting(LOCK_TIMEOUT).await
    }

    /// A second process whose statements wait for a lock no longer than this.
    pub async fn process_waiting(&self, lock_timeout: Duration) -> TestApp {
        let db = connect(&self.url, &self.clock, lock_timeout).await;
        TestApp { db, clock: self.clock.clone(), url: self.url.clone() }
    }

    /// The database's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// An engine with all work, on this app's pool. Its review centre is real HTTP to a port where
    /// nobody listens: down, until a test starts one and says where.
    pub fn engine(&self) -> Engine {
        self.engine_with_centre("http://127.0.0.1:9")
    }

    /// An engine with all work whose review centre is at `url`.
    pub fn engine_with_centre(&self, url: &str) -> Engine {
        // Another test of this process may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let centre = HttpReviewCentre::new(url, Duration::from_secs(10)).expect("a client");
        let centre: Arc<dyn ReviewCentre> = Arc::new(centre);
        Engine::new(self.db.clone(), EngineSettings::default())
            .with(submit_build::SubmitBuild)
            .with(lock_activation::LockActivation)
            .with(AuditPlan::new(centre.clone()))
            .with(lock_release::LockRelease::new(centre))
            .with(review_callback::ReviewCallback)
            .with_turns(ReviewProgress::default())
            .with_turns(StatusRefresh::default())
            .with(BillSnapshot)
    }

    /// One round; panics unless it ran.
    pub async fn round(&self, handler: &str) -> Summary {
        self.round_with(handler, "").await
    }

    /// One round with a parameter; panics unless it ran.
    pub async fn round_with(&self, handler: &str, parameter: &str) -> Summary {
        self.try_round(handler, parameter).await.expect("a round")
    }

    /// One round.
    pub async fn try_round(&self, handler: &str, parameter: &str) -> Result<Summary, RoundError> {
        self.engine().round(handler, parameter).await
    }

    /// Lets time pass.
    pub fn pass_minutes(&self, minutes: i64) {
        self.clock.advance(TimeDelta::minutes(minutes));
    }

    /// What the clock shows.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Arms a crash in this process.
    pub fn arm(&self, crash: Crash) {
        self.faults().arm(FaultPlan {
            point: crash.point.to_owned(),
            side: crash.side,
            passage: crash.passage,
            action: FaultAction::Crash,
        });
    }

    /// The fault hooks of this process.
    pub fn faults(&self) -> &Faults {
        self.db.faults()
    }

    /// Runs SQL by hand, as an operator with a console would.
    pub async fn execute(&self, statement: &str) {
        let mut tx = self.db.begin().await.expect("a transaction");
        for statement in statement.split(";\n").filter(|text| !text.trim().is_empty()) {
            let query = Query::built(statement.to_owned());
            tx.execute(query).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
        tx.commit("test").await.expect("a commit");
    }

    /// The rows of a query as `a|b|NULL` lines.
    pub async fn lines(&self, query: &str) -> Vec<String> {
        let rows = self.db.rows(Query::built(query.to_owned())).await;
        let rows = rows.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let shown = |row: &counterfoil_db::Row| {
            let cells = row
                .columns()
                .into_iter()
                .map(|column| row.shown(&column).unwrap_or_else(|| "NULL".to_owned()));
            cells.collect::<Vec<_>>().join("|")
        };
        rows.iter().map(shown).collect()
    }

    /// The one value of a query as text.
    pub async fn value(&self, query: &str) -> String {
        let lines = self.lines(query).await;
        assert_eq!(lines.len(), 1, "{query}: {lines:?}");
        lines.into_iter().next().unwrap_or_default()
    }

    /// Every commit point passed by `work`, each passage on both sides: where a process may die.
    pub async fn crashes_of<F: Future>(&self, work: F) -> Vec<Crash> {
        self.faults().record();
        work.await;
        let mut crashes = Vec::new();
        let passed = self.faults().passed();
        for (at, point) in passed.iter().enumerate() {
            let passage = passed[..=at].iter().filter(|other| *other == point).count();
            let passage = u32::try_from(passage).expect("a small number");
            for side in [Side::Before, Side::After] {
                crashes.push(Crash { point, side, passage });
            }
        }
        crashes
    }
}

async fn connect(url: &str, clock: &ManualClock, lock_timeout: Duration) -> Db {
    let settings = Settings {
        max_connections: 8,
        lock_timeout,
        clock: Clock::Manual(clock.clone()),
        ..Settings::default()
    };
    Db::connect(url, settings).await.expect("the test's database")
}
