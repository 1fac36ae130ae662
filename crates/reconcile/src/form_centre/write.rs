//! Writing answers: each write raises the revision and puts its deliveries beside it, in one
//! commit. What has no content hash is refused, with its path.
//!
//! One batch is a handful of statements however many answers it has: an import of a hundred
//! thousand is not a hundred thousand conversations.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_db::{Bind, Db, Query, Read, Row, Tx, Value, sql};
use counterfoil_protocol::canon::{AnswerContent, Json, Unhashable};

use super::answer::{AnswerWrite, Written};
use super::grant;
use crate::key::{is_answer_uuid, new_uuid};
use crate::refusal::{Code, Refusal};

/// Revisions stay below 2^53: JSON numbers of any peer hold them.
const MAX_REVISION: i64 = 9_007_199_254_740_991;
/// Answers of one call at most. Eleven values a row stay far below SQLite's 32 766.
pub const MAX_BATCH: usize = 500;
/// Deliveries that one statement inserts.
const DELIVERIES_A_STATEMENT: usize = 500;
/// A form's versions fit the column.
const MAX_VERSION: i64 = i32::MAX as i64;

/// A uuid for an answer that has none yet.
pub fn new_answer_uuid() -> String {
    new_uuid().replace('-', "")
}

/// What becomes of an answer that is written as it is stored already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Same {
    /// It gets its next revision: a write is a write.
    IsWrittenAgain,
    /// It stays as it is: the same file twice changes nothing.
    IsLeft,
}

/// How an answer was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Put {
    /// The answer as it is now.
    #[serde(flatten)]
    pub written: Written,
    /// Whether it is new, changed, or as it was.
    pub outcome: Outcome,
}

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It came into being.
    Created,
    /// It has a new revision.
    Changed,
    /// It is as it was.
    Unchanged,
}

/// A transaction that writes answers.
#[derive(Debug)]
pub struct Batch {
    tx: Tx,
    actor: String,
    same: Same,
    /// By form and school, as they were first read: who is told.
    subscribers: BTreeMap<(String, String), Vec<String>>,
}

/// What is stored of an answer that is to be written.
struct Old {
    form: String,
    school: String,
    revision: i64,
    version: i64,
    content: Option<AnswerContent>,
}

/// A write that will be done.
struct Plan {
    content: AnswerContent,
    values: String,
    put: Put,
}

impl Batch {
    /// Begins.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(db: &Db, actor: &str, same: Same) -> Result<Batch, Refusal> {
        let tx = db.begin().await?;
        Ok(Batch { tx, actor: actor.to_owned(), same, subscribers: BTreeMap::new() })
    }

    /// Commits all of it.
    ///
    /// # Errors
    /// The database's.
    pub async fn commit(self, point: &'static str) -> Result<(), Refusal> {
        Ok(self.tx.commit(point).await?)
    }

    /// Writes at most [`MAX_BATCH`] answers of which none stands twice; answers what became of
    /// each. A refused one is not written, the others are.
    ///
    /// # Errors
    /// The database's, and REVISION_CONFLICT when an answer came into being meanwhile: then
    /// nothing of the transaction may stay.
    pub async fn write(
        &mut self,
        answers: &[AnswerWrite],
    ) -> Result<Vec<Result<Put, Refusal>>, Refusal> {
        let uuids: BTreeSet<&str> =
            answers.iter().filter_map(|answer| answer.uuid.as_deref()).collect();
        if answers.len() > MAX_BATCH || uuids.len() < answers.len() {
            let message = format!("write at most {MAX_BATCH} answers at once, each once");
            return Err(Refusal::of(Code::InvalidInput, message));
        }
        let stored = stored(&self.tx, &uuids).await?;
        let versions = form_versions(&self.tx, answers).await?;
        let (mut plans, mut outcomes) = (Vec::new(), Vec::new());
        for answer in answers {
            let uuid = answer.uuid.as_deref().unwrap_or_default();
            match decide(answer, stored.get(uuid), &versions, self.same) {
                Ok(plan) => {
                    outcomes.push(Ok(plan.put.clone()));
                    if plan.put.outcome != Outcome::Unchanged {
                        plans.push(plan);
                    }
                }
                Err(refusal) => outcomes.push(Err(refusal)),
            }
        }
        if !plans.is_empty() {
            let places = log(&mut self.tx, &plans, &self.actor).await?;
            insert(&mut self.tx, &plans, &places).await?;
            update(&mut self.tx, &plans, &places).await?;
            self.deliver(&plans).await?;
        }
        Ok(outcomes)
    }

    async fn deliver(&mut self, plans: &[Plan]) -> Result<(), Refusal> {
        let now = self.tx.now();
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for Plan { content, put, .. } in plans {
            let place = (content.form_uuid.clone(), content.sch_id.clone());
            if !self.subscribers.contains_key(&place) {
                let apps = grant::subscribers(&self.tx, &place.0, &place.1).await?;
                self.subscribers.insert(place.clone(), apps);
            }
            for app in self.subscribers.get(&place).into_iter().flatten() {
                rows.push(vec![
                    new_uuid().bind(),
                    content.answer_uuid.as_str().bind(),
                    put.written.revision.bind(),
                    app.as_str().bind(),
                    content.sch_id.as_str().bind(),
                    content.form_uuid.as_str().bind(),
                    now.bind(),
                    now.bind(),
                ]);
            }
        }
        for some in rows.chunks(DELIVERIES_A_STATEMENT) {
            let insert = Query::new(
                "INSERT INTO answer_delivery (delivery_id, answer_uuid, revision,
                   consumer_app_key, sch_id, form_uuid, create_time, update_time) VALUES :rows",
            );
            self.tx.execute(insert.bind_rows("rows", some.to_vec())).await?;
        }
        Ok(())
    }
}

async fn stored(tx: &Tx, uuids: &BTreeSet<&str>) -> Result<BTreeMap<String, Old>, Refusal> {
    let query = Query::new(
        "SELECT uuid, form_uuid, sch_id, revision, version, is_deleted, values_json FROM answer
         WHERE uuid IN :uuids AND deleted = 0 ORDER BY uuid {for_update}",
    );
    let rows = tx.rows(query.bind_list("uuids", uuids.iter().copied())).await?;
    let read = |row: &Row| -> Result<(String, Old), Refusal> {
        let old = Old {
            form: row.text("form_uuid")?,
            school: row.text("sch_id")?,
            revision: row.int("revision")?,
            version: row.int("version")?,
            // What cannot be read is unlike whatever is written over it.
            content: super::manifest::content_of(row).ok(),
        };
        Ok((row.text("uuid")?, old))
    };
    rows.iter().map(read).collect()
}

async fn form_versions(tx: &Tx, answers: &[AnswerWrite]) -> Result<BTreeMap<String, i64>, Refusal> {
    let forms: BTreeSet<&str> = answers.iter().map(|answer| answer.form.as_str()).collect();
    let query = Query::new(
        "SELECT form_uuid, current_version FROM form WHERE form_uuid IN :forms AND deleted = 0",
    );
    let rows = tx.rows(query.bind_list("forms", forms)).await?;
    let read = |row: &Row| Ok((row.text("form_uuid")?, row.int("current_version")?));
    rows.iter().map(read).collect()
}

/// What becomes of one answer: pure.
fn decide(
    answer: &AnswerWrite,
    old: Option<&Old>,
    versions: &BTreeMap<String, i64>,
    same: Same,
) -> Result<Plan, Refusal> {
    let uuid = answer.uuid.as_deref().unwrap_or_default();
    // U+0000 is no text on every database.
    let is_named = |text: &str| (1..=64).contains(&text.len()) && !text.contains('\0');
    if !is_answer_uuid(uuid) || !is_named(&answer.form) || !is_named(&answer.school) {
        let message = "an answer has a uuid of 32 lower-case hexadecimal digits, a form, a school";
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    if old.is_some_and(|old| old.form != answer.form || old.school != answer.school) {
        let message = "the answer is of another school or form";
        return Err(Refusal::of(Code::ScopeMismatch, message));
    }
    if old.is_none() && answer.values.is_none() {
        return Err(Refusal::of(Code::AnswerNotFound, "there is no such answer"));
    }
    let revision = old.map_or(0, |old| old.revision);
    let is_expected = answer.expected.is_none_or(|expected| expected == revision);
    if !is_expected || revision >= MAX_REVISION {
        let message = format!("the answer's revision is {revision}");
        return Err(Refusal::of(Code::RevisionConflict, message));
    }
    let current = versions.get(&answer.form).copied().unwrap_or(1);
    let version = answer.version.or(old.map(|old| old.version)).unwrap_or(current);
    if !(0..=MAX_VERSION).contains(&version) {
        let message = format!("a form's version is from 0 to {MAX_VERSION}");
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    let unhashable = |fault: Unhashable| Refusal::of(Code::AnswerUnhashable, fault.to_string());
    let content = content(answer, uuid, version).map_err(unhashable)?;
    let hash = content.hash().map_err(unhashable)?;
    let values = content.canonical_values().map_err(unhashable)?;
    let stored = old.and_then(|old| old.content.as_ref()).and_then(|old| old.hash().ok());
    let is_same = same == Same::IsLeft && stored.as_ref() == Some(&hash);
    let written = Written {
        answer_uuid: uuid.to_owned(),
        revision: if is_same { revision } else { revision + 1 },
        content_hash: hash.0,
        is_deleted: content.is_deleted,
    };
    let outcome = match old {
        _ if is_same => Outcome::Unchanged,
        None => Outcome::Created,
        Some(_) => Outcome::Changed,
    };
    Ok(Plan { content, values, put: Put { written, outcome } })
}

fn content(answer: &AnswerWrite, uuid: &str, version: i64) -> Result<AnswerContent, Unhashable> {
    let content = AnswerContent {
        answer_uuid: uuid.to_owned(),
        form_uuid: answer.form.clone(),
        form_version: version,
        is_deleted: answer.values.is_none(),
        sch_id: answer.school.clone(),
        values: Json::Null,
    };
    content.with_values(answer.values.as_deref())
}

/// Proves that an answer's values can be hashed, whatever else may stand against them.
///
/// # Errors
/// The place, and why.
pub fn hashable(answer: &AnswerWrite) -> Result<(), Unhashable> {
    content(answer, "", 1)?.canonical().map(|_| ())
}

/// Logs the writes; answers each answer's place in the log, which orders all writes.
async fn log(tx: &mut Tx, plans: &[Plan], actor: &str) -> Result<BTreeMap<String, i64>, Refusal> {
    let now = tx.now();
    let row = |Plan { content, put, .. }: &Plan| -> Vec<Value> {
        vec![
            if content.is_deleted { "DELETE" } else { "PUT" }.bind(),
            content.answer_uuid.as_str().bind(),
            put.written.revision.bind(),
            content.form_uuid.as_str().bind(),
            content.sch_id.as_str().bind(),
            actor.bind(),
            now.bind(),
        ]
    };
    let insert = Query::new(
        "INSERT INTO answer_op_log (action, answer_uuid, revision, form_uuid, sch_id, actor,
           create_time) VALUES :rows",
    );
    tx.execute(insert.bind_rows("rows", plans.iter().map(row).collect())).await?;
    // Nobody else logs a write of these answers now: they are locked, or not there yet.
    let places = Query::new(
        "SELECT answer_uuid, MAX(id) AS place FROM answer_op_log WHERE answer_uuid IN :uuids
         GROUP BY answer_uuid",
    );
    let uuids = plans.iter().map(|plan| plan.content.answer_uuid.as_str());
    let rows = tx.rows(places.bind_list("uuids", uuids)).await?;
    let read = |row: &Row| Ok((row.text("answer_uuid")?, row.int("place")?));
    rows.iter().map(read).collect()
}

fn place_of(places: &BTreeMap<String, i64>, plan: &Plan) -> i64 {
    places.get(&plan.content.answer_uuid).copied().unwrap_or(0)
}

async fn insert(
    tx: &mut Tx,
    plans: &[Plan],
    places: &BTreeMap<String, i64>,
) -> Result<(), Refusal> {
    let now = tx.now();
    let row = |plan: &Plan| -> Vec<Value> {
        let Plan { content, values, put } = plan;
        vec![
            content.answer_uuid.as_str().bind(),
            content.form_uuid.as_str().bind(),
            content.sch_id.as_str().bind(),
            put.written.revision.bind(),
            content.form_version.bind(),
            place_of(places, plan).bind(),
            (!content.is_deleted).then_some(values.as_str()).bind(),
            content.is_deleted.bind(),
            now.bind(),
            now.bind(),
        ]
    };
    let new = plans.iter().filter(|plan| plan.put.outcome == Outcome::Created);
    let rows: Vec<Vec<Value>> = new.map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let insert = Query::new(
        "INSERT INTO answer (uuid, form_uuid, sch_id, revision, version, seq_no, values_json,
           is_deleted, create_time, update_time) VALUES :rows",
    );
    match tx.execute(insert.bind_rows("rows", rows)).await {
        Ok(_) => Ok(()),
        Err(counterfoil_db::Error::Duplicate(_)) => {
            Err(Refusal::of(Code::RevisionConflict, "the answer came into being meanwhile"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn update(
    tx: &mut Tx,
    plans: &[Plan],
    places: &BTreeMap<String, i64>,
) -> Result<(), Refusal> {
    let now = tx.now();
    for plan in plans.iter().filter(|plan| plan.put.outcome == Outcome::Changed) {
        let Plan { content, values, put } = plan;
        let query = sql!(
            "UPDATE answer
             SET revision = :revision, version = :version, seq_no = :seq_no,
                 values_json = :values, is_deleted = :is_deleted, update_time = :now
             WHERE uuid = :uuid AND form_uuid = :form AND sch_id = :school
               AND revision = :revision - 1",
            uuid = content.answer_uuid.as_str(),
            form = content.form_uuid.as_str(),
            school = content.sch_id.as_str(),
            revision = put.written.revision,
            version = content.form_version,
            seq_no = place_of(places, plan),
            values = (!content.is_deleted).then_some(values.as_str()),
            is_deleted = content.is_deleted,
            now = now,
        );
        if tx.execute(query).await? != 1 {
            return Err(Refusal::of(Code::RevisionConflict, "the answer changed meanwhile"));
        }
    }
    Ok(())
}
