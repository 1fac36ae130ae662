//! What goes wrong on purpose, and how much of it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use counterfoil_db::{Db, Query, Read, Tx, sql};
use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::form_centre::answer::AnswerWrite;
use counterfoil_reconcile::form_centre::write::{Batch, MAX_BATCH, Same};
use counterfoil_reconcile::service_hall::{HallSettings, inbox};
use counterfoil_reconcile::wire::Envelope;
use serde_json::value::RawValue;

use super::answers::{uuid, values};
use super::sides::{FORM, SCHOOL, Sides};
use crate::answer_delivery::carried;

/// What happens to an answer: of every thousand, so many each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its first delivery is lost.
    Lost,
    /// Its first delivery comes twice.
    Repeated,
    /// Its first delivery is corrupted on the way.
    Corrupted,
    /// Its first delivery is held back until after its second.
    Late,
    /// It is written again, and that delivery is lost.
    StaysOld,
    /// It is written again.
    Updated,
    /// It is deleted at the centre, and that delivery is lost.
    Deleted,
    /// Its row at the hall is edited.
    Edited,
    /// Its row at the hall is removed.
    Removed,
    /// Its revision at the hall is raised.
    Ahead,
    /// Its revision at the centre is taken away.
    Unrevised,
    /// Nothing.
    Plain,
}

fn fate(number: u32) -> Fate {
    match number % 1000 {
        0..25 => Fate::Lost,
        25..45 => Fate::Repeated,
        45..50 => Fate::Corrupted,
        50..60 => Fate::Late,
        60..68 => Fate::StaysOld,
        68..76 => Fate::Updated,
        76..80 => Fate::Deleted,
        80..84 => Fate::Edited,
        84..88 => Fate::Removed,
        88 => Fate::Ahead,
        89 => Fate::Unrevised,
        _ => Fate::Plain,
    }
}

/// How far the hall's revision is raised.
const AHEAD_BY: i64 = 5;
/// One row is added at the hall for so many answers, and one without a known age; at most so many.
const ADDED_ONE_OF: u32 = 500;
const UNDATED_ONE_OF: u32 = 2000;
const MAX_ADDED: u32 = 400;

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    pub lost: i64,
    pub repeated: i64,
    pub late: i64,
    pub corrupted: i64,
    /// Deliveries that the hall refused.
    pub refused: i64,
    pub missing: i64,
    pub stale: i64,
    pub edited: i64,
    pub deleted: i64,
    pub ahead: i64,
    pub unrevised: i64,
    pub added: i64,
    pub undated: i64,
}

/// Carries deliveries to the hall, badly.
pub struct Carrying {
    hall: Db,
    settings: HallSettings,
    numbers: BTreeMap<String, u32>,
    is_update: AtomicBool,
    state: Mutex<(Done, Vec<Envelope>)>,
}

impl Carrying {
    /// Deliveries of answers that are new, and of their updates.
    pub fn new(sides: &Sides, count: u32) -> Carrying {
        Carrying {
            hall: sides.hall.clone(),
            settings: sides.hall_settings(),
            numbers: (0..count).map(|number| (uuid(number), number)).collect(),
            is_update: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Carries everything as it is.
    pub fn honest(sides: &Sides) -> Carrying {
        Carrying::new(sides, 0)
    }

    /// From now on every delivery is of an update.
    pub fn begin_updates(&self) {
        self.is_update.store(true, Ordering::Relaxed);
    }

    /// Delivers what was held back.
    pub async fn end(self) -> Result<Done> {
        let state = self.state.into_inner().ok().context("nobody panicked here")?;
        let (mut done, late) = state;
        for outcome in inbox::take_all(&self.hall, &self.settings, &late).await {
            done.late += i64::from(outcome.is_ok());
        }
        Ok(done)
    }

    /// What becomes of one delivery: the copies that arrive.
    fn bend(&self, envelope: &Envelope, state: &mut (Done, Vec<Envelope>)) -> Vec<Envelope> {
        let fate = self.numbers.get(&envelope.answer_uuid).map_or(Fate::Plain, |n| fate(*n));
        let (done, late) = state;
        let is_update = self.is_update.load(Ordering::Relaxed);
        match (fate, is_update) {
            (Fate::Lost, false) => {
                done.lost += 1;
                done.missing += 1;
                Vec::new()
            }
            (Fate::StaysOld, true) => {
                done.lost += 1;
                done.stale += 1;
                Vec::new()
            }
            (Fate::Deleted, true) => {
                done.lost += 1;
                done.deleted += 1;
                Vec::new()
            }
            (Fate::Late, false) => {
                late.push(envelope.clone());
                Vec::new()
            }
            (Fate::Repeated, false) => {
                done.repeated += 1;
                vec![envelope.clone(), envelope.clone()]
            }
            (Fate::Corrupted, false) => {
                done.corrupted += 1;
                done.missing += 1;
                let values = RawValue::from_string("[\"corrupted\"]".into()).ok();
                vec![Envelope { values, ..envelope.clone() }]
            }
            _ => vec![envelope.clone()],
        }
    }
}

#[async_trait::async_trait]
impl Carrier for Carrying {
    async fn carry(&self, envelope: &Envelope) -> Carried {
        let mut carried = self.carry_all(std::slice::from_ref(envelope)).await;
        carried.pop().unwrap_or(Carried::Unknown { message: "nothing was carried".into() })
    }

    async fn carry_all(&self, envelopes: &[Envelope]) -> Vec<Carried> {
        let (mut copies, mut counts) = (Vec::new(), Vec::new());
        if let Ok(mut state) = self.state.lock() {
            for envelope in envelopes {
                let arriving = self.bend(envelope, &mut state);
                counts.push(arriving.len());
                copies.extend(arriving);
            }
        }
        let mut taken = inbox::take_all(&self.hall, &self.settings, &copies).await.into_iter();
        let mut outcomes = Vec::with_capacity(envelopes.len());
        for count in counts {
            // What nobody took although it was sent is what "lost" means: the sender knows nothing.
            let mut last = Carried::Confirmed;
            for outcome in taken.by_ref().take(count) {
                last = carried(outcome);
            }
            if let (Carried::Returned { .. }, Ok(mut state)) = (&last, self.state.lock()) {
                state.0.refused += 1;
            }
            outcomes.push(last);
        }
        outcomes
    }
}

fn numbers(count: u32, wanted: &'static [Fate]) -> impl Iterator<Item = u32> {
    (0..count).filter(|number| wanted.contains(&fate(*number)))
}

fn written(number: u32, values: Option<String>) -> AnswerWrite {
    AnswerWrite {
        uuid: Some(uuid(number)),
        form: FORM.into(),
        school: SCHOOL.into(),
        version: None,
        values,
        expected: None,
    }
}

async fn write(centre: &Db, answers: &[AnswerWrite]) -> Result<()> {
    for chunk in answers.chunks(MAX_BATCH) {
        let mut batch = Batch::begin(centre, "demo", Same::IsWrittenAgain).await?;
        for outcome in batch.write(chunk).await? {
            outcome?;
        }
        batch.commit("answer.write").await?;
    }
    Ok(())
}

/// Updates and deletes answers at the centre.
pub async fn change_at_centre(sides: &Sides, count: u32) -> Result<()> {
    let updated = numbers(count, &[Fate::Late, Fate::StaysOld, Fate::Updated]);
    let updates = updated.map(|number| written(number, Some(values(number, 2))));
    let deleted = numbers(count, &[Fate::Deleted]).map(|number| written(number, None));
    let changes: Vec<AnswerWrite> = updates.chain(deleted).collect();
    write(&sides.centre, &changes).await
}

/// Uuids of one statement.
const CHUNK: usize = 500;

/// Runs one statement for the answers of a fate; answers the rows that it changed.
async fn change(
    tx: &mut Tx,
    statement: &'static str,
    count: u32,
    wanted: &'static [Fate],
) -> Result<i64> {
    let uuids: Vec<String> = numbers(count, wanted).map(uuid).collect();
    let mut changed = 0;
    for chunk in uuids.chunks(CHUNK) {
        let query = Query::new(statement).bind_list("uuids", chunk.iter());
        changed += i64::try_from(tx.execute(query).await?)?;
    }
    Ok(changed)
}

/// Somebody edits, removes and adds rows at the hall, and takes revisions away at the centre.
pub async fn change_at_hall(sides: &Sides, count: u32, done: &mut Done) -> Result<()> {
    let mut tx = sides.hall.begin().await?;
    let edit = "UPDATE fc_answer_projection SET values_json = '[\"edited\"]'
                WHERE answer_uuid IN :uuids";
    done.edited = change(&mut tx, edit, count, &[Fate::Edited]).await?;
    let remove = "DELETE FROM fc_answer_projection WHERE answer_uuid IN :uuids";
    done.missing += change(&mut tx, remove, count, &[Fate::Removed]).await?;
    let raise = "UPDATE fc_answer_projection SET revision = revision + 5
                 WHERE answer_uuid IN :uuids";
    done.ahead = change(&mut tx, raise, count, &[Fate::Ahead]).await?;
    done.added = i64::from((count / ADDED_ONE_OF).min(MAX_ADDED));
    done.undated = i64::from((count / UNDATED_ONE_OF).min(MAX_ADDED));
    for number in 0..done.added + done.undated {
        let is_dated = number < done.added;
        let created = is_dated.then_some(tx.now());
        let number = count.saturating_add(u32::try_from(number)?);
        let add = sql!(
            "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
               content_hash, form_version, values_json, projection_version, create_time)
             VALUES (:uuid, :school, :form, 1, 'by hand', 1, '{}', 1, :created)",
            uuid = uuid(number),
            school = SCHOOL,
            form = FORM,
            created = created,
        );
        tx.execute(add).await?;
    }
    tx.commit("demo.hall").await?;
    let mut tx = sides.centre.begin().await?;
    let take = "UPDATE answer SET revision = 0 WHERE uuid IN :uuids";
    done.unrevised = change(&mut tx, take, count, &[Fate::Unrevised]).await?;
    Ok(tx.commit("demo.centre").await?)
}

/// What a person does with what was only reported: puts back what was raised, removes what nobody
/// knows, and writes again what had lost its revision. Answers how many there were.
pub async fn settle(sides: &Sides) -> Result<i64> {
    let unrevised = sql!("SELECT uuid, values_json FROM answer WHERE revision = 0");
    let mut again = Vec::new();
    for row in sides.centre.rows(unrevised).await? {
        let uuid = Some(row.text("uuid")?);
        again.push(AnswerWrite { uuid, ..written(0, row.maybe_text("values_json")?) });
    }
    write(&sides.centre, &again).await?;
    let mut tx = sides.hall.begin().await?;
    let lower = sql!(
        "UPDATE fc_answer_projection SET revision = revision - :by WHERE revision > :by",
        by = AHEAD_BY
    );
    let lowered = tx.execute(lower).await?;
    let remove = sql!("DELETE FROM fc_answer_projection WHERE create_time IS NULL");
    let removed = tx.execute(remove).await?;
    tx.commit("demo.settle").await?;
    Ok(i64::try_from(lowered + removed)? + i64::try_from(again.len())?)
}
