//! `bench reconcile`: a form centre and a service hall, each with a database of its own, over
//! signed HTTP on the loopback. The floor is one ordered read of both sides.

mod fill;
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use counterfoil_db::{Db, Query, Read, sql};
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::form_centre::create::{self, Wish, WishScope};
use counterfoil_reconcile::form_centre::dispatch::{Halls, Sent};
use counterfoil_reconcile::form_centre::turns::{DISPATCH, Dispatching};
use counterfoil_reconcile::form_centre::{CentreSettings, manifest};
use counterfoil_reconcile::service_hall::turns::{WORK, Working};
use counterfoil_reconcile::service_hall::{HallSettings, receive};
use counterfoil_reconcile::wire::Dispatch;
use counterfoil_task::{Engine, EngineSettings};

use super::scratch::Scratch;
use crate::config::Config;
use fill::{CENTRE, HALL, SCHOOL, Set};
use wire::{Line, Share};

/// Rows of the sets that are repaired whole: their repairs take the time, and grow with the rows.
const MAX_REPAIRED: u64 = 2000;
/// Rows read at once by the floor.
const FLOOR_PAGE: u32 = 10_000;

/// One run's figures.
#[derive(Debug, Clone)]
pub struct Figures {
    /// How the sets differed.
    pub shape: &'static str,
    /// Rows a side.
    pub rows: u64,
    /// Rows that differed.
    pub differing: u64,
    /// Freezing the manifest.
    pub manifest: Duration,
    /// Finding what differs: time, bytes on the wire in both directions, calls.
    pub compare: Share,
    /// Fetching and writing it.
    pub repair: Share,
    /// One ordered read of both sides.
    pub floor: Duration,
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Rows a side.
    pub rows: u64,
    /// Rows that differ.
    pub differing: u64,
    /// Whether equal sets are also compared row by row.
    pub walk: bool,
}

/// Both sides.
struct House {
    centre: Db,
    hall: Db,
    line: Line,
    centre_settings: CentreSettings,
    hall_settings: HallSettings,
}

/// Runs every shape in two scratch databases.
pub async fn run(config: &Config, url: &str, size: Size) -> Result<Vec<Figures>> {
    let centre = Scratch::named(url, config.max_connections, "_centre").await?;
    let hall = match Scratch::named(url, config.max_connections, "_hall").await {
        Ok(hall) => hall,
        Err(error) => {
            centre.remove().await?;
            return Err(error);
        }
    };
    let measured = measure(&centre, &hall, size).await;
    centre.remove().await?;
    hall.remove().await?;
    measured
}

async fn measure(centre: &Scratch, hall: &Scratch, size: Size) -> Result<Vec<Figures>> {
    let main = Set { form: "bench-1", rows: size.rows, is_here: true };
    let few = size.rows.min(MAX_REPAIRED);
    let everywhere = Set { form: "bench-2", rows: few, is_here: true };
    let nowhere = Set { form: "bench-3", rows: few, is_here: false };
    for set in [&main, &everywhere, &nowhere] {
        fill::fill(&centre.db, &hall.db, set).await?;
    }
    centre.analyze().await?;
    hall.analyze().await?;
    let mut house = House {
        centre: centre.db.clone(),
        hall: hall.db.clone(),
        line: Line::open(&centre.db).await?,
        centre_settings: CentreSettings {
            source_app_key: CENTRE.into(),
            dispatch_enabled: true,
            max_rows: i64::MAX,
            max_pages: i64::MAX,
            ..CentreSettings::default()
        },
        hall_settings: HallSettings {
            enabled: true,
            app_key: HALL.into(),
            source_app_key: CENTRE.into(),
            page_size: manifest::MAX_PAGE,
            ..HallSettings::default()
        },
    };
    let differing = size.differing.min(size.rows);
    let mut figures = Vec::new();
    fill::spread(&house.hall, &main, differing).await?;
    figures.push(house.reconcile("spread", &main, differing).await?);
    figures.push(house.reconcile("equal", &main, 0).await?);
    fill::hot(&house.hall, &main, differing).await?;
    figures.push(house.reconcile("one hot range", &main, differing).await?);
    fill::spread(&house.hall, &everywhere, few).await?;
    figures.push(house.reconcile("all different", &everywhere, few).await?);
    figures.push(house.reconcile("an empty side", &nowhere, few).await?);
    if size.walk {
        house.hall_settings.narrowing.enabled = false;
        figures.push(house.reconcile("equal, row by row", &main, 0).await?);
    }
    Ok(figures)
}

/// Hands orders over without a socket: it is one call of a few hundred bytes.
struct Direct {
    hall: Db,
    settings: HallSettings,
}

#[async_trait::async_trait]
impl Halls for Direct {
    async fn dispatch(&self, order: &Dispatch) -> Sent {
        match receive::receive(&self.hall, &self.settings, CENTRE, order).await {
            Ok(_) => Sent::Accepted,
            Err(Refusal::Coded { code, message }) => {
                Sent::Refused { code: code.to_string(), message }
            }
            Err(Refusal::Db(error)) => Sent::Unknown { message: error.to_string() },
        }
    }
}

impl House {
    async fn reconcile(&self, shape: &'static str, set: &Set, differing: u64) -> Result<Figures> {
        let floor = self.floor(set).await?;
        let wish = Wish {
            scope: WishScope::Form,
            consumer: HALL.into(),
            school: Some(SCHOOL.into()),
            form: Some(set.form.into()),
            answer: None,
        };
        let made = create::create(&self.centre, &self.centre_settings, &wish, "bench").await?;
        let task = made.first().context("no task was made")?.task_id.clone();
        let began = Instant::now();
        let made = manifest::materialise(&self.centre, &self.centre_settings, &task).await?;
        let manifest = began.elapsed();
        ensure!(made == manifest::Materialised::Complete, "the manifest: {made:?}");
        let halls = Direct { hall: self.hall.clone(), settings: self.hall_settings.clone() };
        let dispatching = Dispatching::new(self.centre_settings.clone(), Arc::new(halls));
        let engine = Engine::new(self.centre.clone(), EngineSettings::default());
        engine.with_turns(dispatching).round(DISPATCH.handler, "").await?;
        let watched = self.line.watched();
        let working = Working::new(self.hall_settings.clone(), Arc::new(watched.clone()));
        let engine = Engine::new(self.hall.clone(), EngineSettings::default());
        let summary = engine.with_turns(working).round(WORK.handler, "").await?;
        let (compare, repair) = watched.shares();
        let row = self.centre.row(sql!(
            "SELECT state, counts FROM answer_reconcile_task WHERE task_id = :task",
            task = task.as_str(),
        ));
        let row = row.await?.context("the task is gone")?;
        let (state, counts) = (row.text("state")?, row.maybe_text("counts")?);
        let counts: serde_json::Value = serde_json::from_str(&counts.unwrap_or_default())
            .with_context(|| format!("{shape}: {state}, {summary:?}"))?;
        ensure!(
            state == "COMPLETED"
                && counts["scanned"].as_u64() == Some(set.rows)
                && counts["repaired"].as_u64() == Some(differing),
            "{shape}: {state} {counts}"
        );
        Ok(Figures { shape, rows: set.rows, differing, manifest, compare, repair, floor })
    }

    /// One ordered read of both sides.
    async fn floor(&self, set: &Set) -> Result<Duration> {
        const THERE: &str = "SELECT uuid, form_uuid, sch_id, revision, version, seq_no, is_deleted,
               values_json
             FROM answer
             WHERE form_uuid = :form AND sch_id = :school AND uuid > :cursor AND deleted = 0
             ORDER BY uuid LIMIT :page";
        const HERE: &str = "SELECT answer_uuid AS uuid, form_uuid, sch_id, revision, form_version,
               content_hash, is_deleted, values_json
             FROM fc_answer_projection
             WHERE sch_id = :school AND form_uuid = :form AND answer_uuid > :cursor
               AND deleted = 0
             ORDER BY answer_uuid LIMIT :page";
        let began = Instant::now();
        for (db, text) in [(&self.centre, THERE), (&self.hall, HERE)] {
            let mut cursor = String::new();
            loop {
                let query: Query = sql!(
                    text,
                    form = set.form,
                    school = SCHOOL,
                    cursor = cursor.as_str(),
                    page = FLOOR_PAGE,
                );
                let rows = db.rows(query).await?;
                let Some(last) = rows.last() else { break };
                cursor = last.text("uuid")?;
            }
        }
        Ok(began.elapsed())
    }
}
