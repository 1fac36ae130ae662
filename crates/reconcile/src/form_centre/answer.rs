//! Writing answers: each write raises the revision and puts its deliveries beside it, in one
//! commit. What has no content hash is refused, with its path.

use counterfoil_db::{Db, Read, Tx, sql, transact};
use counterfoil_protocol::canon::{AnswerContent, Json};

use super::grant;
use crate::key::{is_answer_uuid, new_uuid};
use crate::refusal::{Code, Refusal};

/// Revisions stay below 2^53: JSON numbers of any peer hold them.
const MAX_REVISION: i64 = 9_007_199_254_740_991;

/// An answer to be written.
#[derive(Debug, Clone)]
pub struct AnswerWrite {
    /// Which; `None` = a new one.
    pub uuid: Option<String>,
    /// The form.
    pub form: String,
    /// The answer's own school.
    pub school: String,
    /// The form's version that it is pinned to; `None` = the form's current one.
    pub version: Option<i64>,
    /// The values, as JSON; `None` = a tombstone.
    pub values: Option<String>,
    /// The revision that it must have now; `None` = whatever it has.
    pub expected: Option<i64>,
}

/// An answer as written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// Its uuid.
    pub answer_uuid: String,
    /// Its revision now.
    pub revision: i64,
    /// Its content hash now.
    pub content_hash: String,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
}

/// Writes an answer, or its tombstone.
///
/// # Errors
/// ANSWER_UNHASHABLE with the path, REVISION_CONFLICT, SCOPE_MISMATCH where the uuid is another
/// form's or school's, ANSWER_NOT_FOUND for a tombstone of nothing.
pub async fn write(db: &Db, answer: &AnswerWrite, actor: &str) -> Result<Written, Refusal> {
    let uuid = answer.uuid.clone().unwrap_or_else(|| new_uuid().replace('-', ""));
    if !is_answer_uuid(&uuid) || answer.form.is_empty() || answer.school.is_empty() {
        let message = "an answer has a uuid of 32 lower-case hexadecimal digits, a form, a school";
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    transact!(try_write(db, answer, &uuid, actor))
}

async fn try_write(
    db: &Db,
    answer: &AnswerWrite,
    uuid: &str,
    actor: &str,
) -> Result<Written, Refusal> {
    let mut tx = db.begin().await?;
    let stored = tx
        .row(sql!(
            "SELECT id, form_uuid, sch_id, revision, version FROM answer
             WHERE uuid = :uuid AND deleted = 0 {for_update}",
            uuid = uuid
        ))
        .await?;
    let (revision, stored_version) = match &stored {
        Some(row) => {
            if row.text("form_uuid")? != answer.form || row.text("sch_id")? != answer.school {
                let message = "the answer is of another school or form";
                return Err(Refusal::of(Code::ScopeMismatch, message));
            }
            (row.int("revision")?, Some(row.int("version")?))
        }
        None => (0, None),
    };
    if stored.is_none() && answer.values.is_none() {
        return Err(Refusal::of(Code::AnswerNotFound, "there is no such answer"));
    }
    let is_expected = answer.expected.is_none_or(|expected| expected == revision);
    if !is_expected || revision >= MAX_REVISION {
        let message = format!("the answer's revision is {revision}");
        return Err(Refusal::of(Code::RevisionConflict, message));
    }
    let version = match answer.version.or(stored_version) {
        Some(version) => version,
        None => form_version(&tx, &answer.form).await?,
    };
    let content = content(answer, uuid, version)?;
    let unhashable = |fault: counterfoil_protocol::canon::Unhashable| {
        Refusal::of(Code::AnswerUnhashable, fault.to_string())
    };
    let hash = content.hash().map_err(unhashable)?;
    let values = content.canonical_values().map_err(unhashable)?;
    let written = Written {
        answer_uuid: uuid.to_owned(),
        revision: revision + 1,
        content_hash: hash.0,
        is_deleted: content.is_deleted,
    };
    put(&mut tx, &content, &written, values, stored.is_some(), actor).await?;
    deliver(&mut tx, &content, &written).await?;
    tx.commit("answer.write").await?;
    Ok(written)
}

async fn form_version(tx: &Tx, form: &str) -> Result<i64, Refusal> {
    let query = sql!(
        "SELECT current_version FROM form WHERE form_uuid = :form AND deleted = 0",
        form = form
    );
    Ok(tx.row(query).await?.map(|row| row.int("current_version")).transpose()?.unwrap_or(1))
}

fn content(answer: &AnswerWrite, uuid: &str, version: i64) -> Result<AnswerContent, Refusal> {
    let content = AnswerContent {
        answer_uuid: uuid.to_owned(),
        form_uuid: answer.form.clone(),
        form_version: version,
        is_deleted: answer.values.is_none(),
        sch_id: answer.school.clone(),
        values: Json::Null,
    };
    let content = content.with_values(answer.values.as_deref());
    content.map_err(|fault| Refusal::of(Code::AnswerUnhashable, fault.to_string()))
}

async fn put(
    tx: &mut Tx,
    content: &AnswerContent,
    written: &Written,
    values: String,
    is_known: bool,
    actor: &str,
) -> Result<(), Refusal> {
    let now = tx.now();
    let log = sql!(
        "INSERT INTO answer_op_log (action, answer_uuid, revision, form_uuid, sch_id, actor,
           create_time) VALUES (:action, :uuid, :revision, :form, :school, :actor, :now)",
        action = if content.is_deleted { "DELETE" } else { "PUT" },
        uuid = content.answer_uuid.as_str(),
        revision = written.revision,
        form = content.form_uuid.as_str(),
        school = content.sch_id.as_str(),
        actor = actor,
        now = now,
    );
    // The log's own sequence orders all writes.
    let seq_no = tx.insert(log).await?;
    const INSERT: &str = "INSERT INTO answer (uuid, form_uuid, sch_id, revision, version, seq_no,
         values_json, is_deleted, create_time, update_time)
       VALUES (:uuid, :form, :school, :revision, :version, :seq_no, :values, :is_deleted, :now,
         :now)";
    const UPDATE: &str = "UPDATE answer
       SET revision = :revision, version = :version, seq_no = :seq_no, values_json = :values,
           is_deleted = :is_deleted, update_time = :now
       WHERE uuid = :uuid AND form_uuid = :form AND sch_id = :school AND revision = :revision - 1";
    let text = if is_known { UPDATE } else { INSERT };
    let query = sql!(
        text,
        uuid = content.answer_uuid.as_str(),
        form = content.form_uuid.as_str(),
        school = content.sch_id.as_str(),
        revision = written.revision,
        version = content.form_version,
        seq_no = seq_no,
        values = (!content.is_deleted).then_some(values),
        is_deleted = content.is_deleted,
        now = now,
    );
    match tx.execute(query).await {
        Ok(1) => Ok(()),
        Ok(_) => Err(Refusal::of(Code::RevisionConflict, "the answer changed meanwhile")),
        Err(counterfoil_db::Error::Duplicate(_)) => {
            Err(Refusal::of(Code::RevisionConflict, "the answer came into being meanwhile"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn deliver(tx: &mut Tx, content: &AnswerContent, written: &Written) -> Result<(), Refusal> {
    let now = tx.now();
    for app in grant::subscribers(tx, &content.form_uuid, &content.sch_id).await? {
        let insert = sql!(
            "INSERT INTO answer_delivery (delivery_id, answer_uuid, revision, consumer_app_key,
               sch_id, form_uuid, create_time, update_time)
             VALUES (:delivery, :uuid, :revision, :app, :school, :form, :now, :now)",
            delivery = new_uuid(),
            uuid = content.answer_uuid.as_str(),
            revision = written.revision,
            app = app,
            school = content.sch_id.as_str(),
            form = content.form_uuid.as_str(),
            now = now,
        );
        tx.execute(insert).await?;
    }
    Ok(())
}

/// An answer as a consumer pulls it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Pulled {
    pub seq_no: i64,
    #[serde(flatten)]
    pub written: Written,
    pub form_version: i64,
    pub values: Option<Box<serde_json::value::RawValue>>,
}

/// What changed lately, in the order of the writes, for a consumer with a grant. It cannot say
/// whether two sets agree: reconciliation can.
///
/// # Errors
/// SCOPE_MISMATCH, GRANT_REVOKED, ANSWER_UNHASHABLE.
pub async fn pull(
    db: &Db,
    at: &crate::wire::Coordinate,
    after: i64,
    size: u32,
) -> Result<Vec<Pulled>, Refusal> {
    grant::effective(db, at).await?;
    let query = sql!(
        "SELECT uuid, form_uuid, sch_id, revision, version, seq_no, is_deleted, values_json
         FROM answer
         WHERE form_uuid = :form AND sch_id = :school AND seq_no > :after AND deleted = 0
         ORDER BY seq_no LIMIT :size",
        form = at.form.as_str(),
        school = at.school.as_str(),
        after = after,
        size = size.clamp(1, super::manifest::MAX_PAGE),
    );
    let mut pulled = Vec::new();
    for row in db.rows(query).await? {
        let content = super::manifest::content_of(&row)?;
        let unhashable = |fault: counterfoil_protocol::canon::Unhashable| {
            Refusal::of(Code::AnswerUnhashable, format!("answer {}: {fault}", content.answer_uuid))
        };
        let (hash, values) =
            (content.hash().map_err(unhashable)?, content.canonical_values().map_err(unhashable)?);
        pulled.push(Pulled {
            seq_no: row.int("seq_no")?,
            form_version: content.form_version,
            values: serde_json::value::RawValue::from_string(values).ok(),
            written: Written {
                answer_uuid: content.answer_uuid.clone(),
                revision: row.int("revision")?,
                content_hash: hash.0,
                is_deleted: content.is_deleted,
            },
        });
    }
    Ok(pulled)
}
