//! A centre and a hall with a clock each. They meet through the wire's own JSON, without sockets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use counterfoil_db::{Clock, Db, Instant, ManualClock, Settings, migrate};
use counterfoil_e2e::TestApp;
use counterfoil_reconcile::form_centre::dispatch::{Halls, Sent};
use counterfoil_reconcile::form_centre::turns::{Dispatching, Schedule};
use counterfoil_reconcile::form_centre::{CentreSettings, answer, authority, create, grant};
use counterfoil_reconcile::form_centre::{authorise, digest, manifest, report};
use counterfoil_reconcile::service_hall::centre::{Answer, Centre};
use counterfoil_reconcile::service_hall::turns::Working;
use counterfoil_reconcile::service_hall::{HallSettings, Narrowing, receive};
use counterfoil_reconcile::wire::{
    Ack, AskedRange, Authority, Coordinate, Digests, Dispatch, GrantState, KeySpan, ManifestPage,
    Question, RangeRows, Report,
};
use counterfoil_reconcile::{MIGRATIONS, Refusal};
use counterfoil_task::{Engine, EngineSettings, Summary};

pub const FORM: &str = "form-1";
pub const SCHOOL: &str = "school-1";
pub const HALL: &str = "100018";
pub const CENTRE: &str = "100021";

/// Both sides. Clones are the same.
#[derive(Clone)]
pub struct Pair {
    pub app: TestApp,
    pub hall: Db,
    pub hall_clock: ManualClock,
    pub centre_settings: CentreSettings,
    pub hall_settings: HallSettings,
    pub line: Arc<Line>,
}

/// A change to what the centre says, and what was asked.
type Bend = Box<dyn Fn(&str, serde_json::Value) -> Option<serde_json::Value> + Send + Sync>;

/// What a test does in between.
type Deed = Box<dyn Fn() -> Task + Send + Sync>;

/// What lies between the two.
#[derive(Default)]
pub struct Line {
    pub calls: Mutex<Vec<&'static str>>,
    /// Bytes of what was asked and said, as the wire's own JSON.
    pub bytes: AtomicUsize,
    bend: Mutex<Option<Bend>>,
    after: Mutex<Option<(&'static str, Deed)>>,
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

pub fn uuid(number: u32) -> String {
    format!("{number:032x}")
}

pub fn at(answer: Option<&str>) -> Coordinate {
    Coordinate {
        consumer: HALL.into(),
        school: SCHOOL.into(),
        form: FORM.into(),
        answer: answer.map(str::to_owned),
    }
}

impl Pair {
    pub async fn new(app: TestApp) -> Pair {
        migrate(&app.db, MIGRATIONS).await.unwrap();
        let hall_clock = ManualClock::at(app.now());
        let settings = Settings {
            max_connections: 8,
            clock: Clock::Manual(hall_clock.clone()),
            ..Settings::default()
        };
        let hall = Db::connect(app.url(), settings).await.unwrap();
        grant::scope(&app.db, HALL, SCHOOL, true).await.unwrap();
        grant::set(&app.db, &at(None), grant::Rights::ALL).await.unwrap();
        Pair {
            app,
            hall,
            hall_clock,
            centre_settings: CentreSettings {
                source_app_key: CENTRE.into(),
                schedule_enabled: true,
                dispatch_enabled: true,
                ..CentreSettings::default()
            },
            hall_settings: HallSettings {
                enabled: true,
                app_key: HALL.into(),
                source_app_key: CENTRE.into(),
                page_size: 3,
                ..HallSettings::default()
            },
            line: Arc::default(),
        }
    }

    /// The same two sides, with every row compared.
    pub fn by_rows(mut self) -> Pair {
        self.hall_settings.narrowing.enabled = false;
        self
    }

    /// The same two sides, with ranges so small that a few rows are many.
    pub fn by_ranges(mut self) -> Pair {
        self.hall_settings.narrowing =
            Narrowing { enabled: true, stretch_rows: 8, span_rows: 4, part_rows: 2, leaf_rows: 1 };
        self
    }

    pub fn pass(&self, seconds: i64) {
        self.app.clock.advance(TimeDelta::seconds(seconds));
        self.hall_clock.advance(TimeDelta::seconds(seconds));
    }

    /// Writes an answer at the centre; `None` = its tombstone.
    pub async fn answer(&self, number: u32, values: Option<&str>) {
        let write = answer::AnswerWrite {
            uuid: Some(uuid(number)),
            form: FORM.into(),
            school: SCHOOL.into(),
            version: None,
            values: values.map(str::to_owned),
            expected: None,
        };
        answer::write(&self.app.db, &write, "test").await.unwrap();
    }

    /// Copies the centre's set into the projection, as a perfect delivery would.
    pub async fn copy_all(&self) {
        let task = self.task().await;
        self.run().await;
        assert_eq!(self.state(&task).await, "COMPLETED");
        self.app.execute("DELETE FROM answer_reconcile_work").await;
        self.app.execute("DELETE FROM answer_reconcile_result").await;
        self.app.execute("DELETE FROM answer_reconcile_manifest_row").await;
        self.app.execute("DELETE FROM answer_reconcile_task").await;
        self.line.calls.lock().unwrap().clear();
    }

    pub fn wish(&self, scope: create::WishScope) -> create::Wish {
        create::Wish {
            scope,
            consumer: HALL.into(),
            school: Some(SCHOOL.into()),
            form: Some(FORM.into()),
            answer: None,
        }
    }

    /// Makes a task of the form.
    pub async fn task(&self) -> String {
        let wish = self.wish(create::WishScope::Form);
        let made = create::create(&self.app.db, &self.centre_settings, &wish, "test").await;
        made.unwrap().remove(0).task_id
    }

    pub fn centre_engine(&self) -> Engine {
        let halls = Arc::new(self.clone());
        Engine::new(self.app.db.clone(), EngineSettings::default())
            .with_turns(Schedule::new(self.centre_settings.clone()))
            .with_turns(Dispatching::new(self.centre_settings.clone(), halls))
    }

    pub fn hall_engine(&self) -> Engine {
        let centre = Arc::new(self.clone());
        Engine::new(self.hall.clone(), EngineSettings::default())
            .with_turns(Working::new(self.hall_settings.clone(), centre))
    }

    pub async fn dispatch(&self) -> Summary {
        self.centre_engine().round("answerReconcileDispatchTask", "").await.unwrap()
    }

    pub async fn work(&self) -> Summary {
        self.hall_engine().round("answerReconcileWorkTask", "").await.unwrap()
    }

    /// Manifest, dispatch and work.
    pub async fn run(&self) {
        self.dispatch().await;
        self.work().await;
    }

    pub async fn state(&self, task: &str) -> String {
        let query = format!("SELECT state FROM answer_reconcile_task WHERE task_id = '{task}'");
        self.app.value(&query).await
    }

    /// The counts that are not zero, as the task ended with them.
    pub async fn counts(&self, task: &str) -> String {
        let query = format!("SELECT counts FROM answer_reconcile_task WHERE task_id = '{task}'");
        nonzero(&self.app.value(&query).await)
    }

    /// The codes of the last report's items.
    pub async fn errors(&self, task: &str) -> Vec<String> {
        let query = format!(
            "SELECT errors FROM answer_reconcile_result WHERE task_id = '{task}'
             ORDER BY attempt DESC LIMIT 1"
        );
        let items: Vec<serde_json::Value> =
            serde_json::from_str(&self.app.value(&query).await).unwrap();
        items.iter().map(|item| item["code"].as_str().unwrap().to_owned()).collect()
    }

    /// What differs between the two sets, by the databases' own word.
    pub async fn differing(&self) -> Vec<String> {
        let centre = self
            .app
            .lines("SELECT uuid, revision, is_deleted FROM answer WHERE deleted = 0 ORDER BY uuid")
            .await;
        let hall = self
            .app
            .lines(
                "SELECT answer_uuid, revision, is_deleted FROM fc_answer_projection
                 WHERE deleted = 0 ORDER BY answer_uuid",
            )
            .await;
        let only = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|line| !b.contains(line)).cloned().collect()
        };
        [only(&centre, &hall), only(&hall, &centre)].concat()
    }

    pub fn bend(
        &self,
        bend: impl Fn(&str, serde_json::Value) -> Option<serde_json::Value> + Send + Sync + 'static,
    ) {
        *self.line.bend.lock().unwrap() = Some(Box::new(bend));
    }

    pub fn straighten(&self) {
        *self.line.bend.lock().unwrap() = None;
    }

    /// Does something each time after the centre answered such a call.
    pub fn after(&self, call: &'static str, what: impl Fn() -> Task + Send + Sync + 'static) {
        *self.line.after.lock().unwrap() = Some((call, Box::new(what)));
    }

    pub fn called(&self, call: &str) -> usize {
        self.line.calls.lock().unwrap().iter().filter(|known| **known == call).count()
    }

    fn asks(&self, question: &impl serde::Serialize) {
        let text = serde_json::to_string(question).unwrap();
        self.line.bytes.fetch_add(text.len(), Ordering::Relaxed);
    }

    /// The centre's word through the wire's own JSON, bent if the test wants so.
    async fn say<T>(&self, call: &'static str, outcome: Result<T, Refusal>) -> Answer<T>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        self.line.calls.lock().unwrap().push(call);
        let answer = match outcome {
            Ok(word) => {
                // Text first: a parsed value would not keep how numbers are spelt.
                let text = serde_json::to_string(&word).unwrap();
                self.line.bytes.fetch_add(text.len(), Ordering::Relaxed);
                let bent = self
                    .line
                    .bend
                    .lock()
                    .unwrap()
                    .as_ref()
                    .map(|bend| bend(call, serde_json::from_str(&text).unwrap()));
                match bent {
                    None => Answer::Said(serde_json::from_str(&text).unwrap()),
                    Some(Some(value)) => match serde_json::from_str(&value.to_string()) {
                        Ok(word) => Answer::Said(word),
                        Err(error) => Answer::Unknown { message: error.to_string() },
                    },
                    Some(None) => Answer::Unknown { message: "cut".into() },
                }
            }
            Err(Refusal::Coded { code, message }) => {
                Answer::Refused { code: code.to_string(), message }
            }
            Err(Refusal::Db(error)) => Answer::Unknown { message: error.to_string() },
        };
        let task = match self.line.after.lock().unwrap().as_ref() {
            Some((known, what)) if *known == call => Some(what()),
            _ => None,
        };
        if let Some(task) = task {
            task.await;
        }
        answer
    }
}

#[async_trait::async_trait]
impl Centre for Pair {
    async fn manifest(
        &self,
        task: &str,
        cursor: Option<&str>,
        size: u32,
        _: Instant,
    ) -> Answer<ManifestPage> {
        let (db, settings) = (&self.app.db, &self.centre_settings);
        let page = manifest::page(db, settings, task, HALL, cursor, Some(size)).await;
        self.say("manifest", page).await
    }

    async fn digests(&self, task: &str, ranges: &[AskedRange], _: Instant) -> Answer<Digests> {
        self.asks(&ranges);
        let said = digest::digests(&self.app.db, task, HALL, ranges).await;
        self.say("digests", said).await
    }

    async fn rows(&self, task: &str, ranges: &[KeySpan], _: Instant) -> Answer<RangeRows> {
        self.asks(&ranges);
        let said = digest::rows(&self.app.db, task, HALL, ranges).await;
        self.say("rows", said).await
    }

    async fn grant(&self, task: &str, _: Instant) -> Answer<GrantState> {
        let grant = authorise::authorise(&self.app.db, task, HALL).await.map(|(_, grant)| grant);
        self.say("grant", grant).await
    }

    async fn answers(
        &self,
        task: &str,
        questions: &[Question],
        _: Instant,
    ) -> Answer<Vec<Authority>> {
        let (db, settings) = (&self.app.db, &self.centre_settings);
        let said = authority::ask(db, settings, task, HALL, questions).await;
        self.say("answers", said).await
    }

    async fn report(&self, report: &Report, _: Instant) -> Answer<Ack> {
        let (db, settings) = (&self.app.db, &self.centre_settings);
        let ack = report::receive(db, settings, &report.task_id, HALL, report).await;
        let call = if report.state == "RUNNING" { "running" } else { "result" };
        self.say(call, ack).await
    }
}

#[async_trait::async_trait]
impl Halls for Pair {
    async fn dispatch(&self, order: &Dispatch) -> Sent {
        match receive::receive(&self.hall, &self.hall_settings, CENTRE, order).await {
            Ok(_) => Sent::Accepted,
            Err(Refusal::Coded { code, message }) => {
                Sent::Refused { code: code.to_string(), message }
            }
            Err(Refusal::Db(error)) => Sent::Unknown { message: error.to_string() },
        }
    }
}

/// `{"scanned":3,"equal":0}` as `scanned 3`.
pub fn nonzero(counts: &str) -> String {
    let counts: serde_json::Map<String, serde_json::Value> = serde_json::from_str(counts).unwrap();
    let order = [
        "scanned",
        "equal",
        "missing",
        "stale",
        "hashConflict",
        "tombstone",
        "localAhead",
        "extra",
        "revisionZero",
        "repaired",
        "retired",
        "reported",
        "deferred",
        "resumed",
    ];
    let shown = order.iter().filter_map(|name| {
        let count = counts[*name].as_i64().unwrap();
        (count != 0).then(|| format!("{name} {count}"))
    });
    shown.collect::<Vec<_>>().join(", ")
}
