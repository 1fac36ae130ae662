//! Answers: written one by one, deleted, read and pulled. What a write comes to in the database is
//! [`super::write`]'s.

use counterfoil_db::{Db, Instant, Read, Row, sql, transact};
use counterfoil_protocol::canon::Unhashable;

use super::grant;
use super::write::{Batch, Put, Same, new_answer_uuid};
use crate::refusal::{Code, Refusal};

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
    // Named here, so that a transaction that is tried again makes the same answer.
    let uuid = answer.uuid.clone().unwrap_or_else(new_answer_uuid);
    let answer = AnswerWrite { uuid: Some(uuid), ..answer.clone() };
    transact!(try_write(db, &answer, actor))
}

async fn try_write(db: &Db, answer: &AnswerWrite, actor: &str) -> Result<Written, Refusal> {
    let mut batch = Batch::begin(db, actor, Same::IsWrittenAgain).await?;
    let mut outcomes = batch.write(std::slice::from_ref(answer)).await?;
    let missing = || Refusal::of(Code::InvalidInput, "there is no answer to write");
    let put = outcomes.pop().ok_or_else(missing)??;
    batch.commit("answer.write").await?;
    Ok(put.written)
}

/// Makes an answer a tombstone; one that is a tombstone stays as it is.
///
/// # Errors
/// ANSWER_NOT_FOUND, REVISION_CONFLICT.
pub async fn delete(
    db: &Db,
    uuid: &str,
    expected: Option<i64>,
    actor: &str,
) -> Result<Put, Refusal> {
    transact!(try_delete(db, uuid, expected, actor))
}

async fn try_delete(
    db: &Db,
    uuid: &str,
    expected: Option<i64>,
    actor: &str,
) -> Result<Put, Refusal> {
    let missing = || Refusal::of(Code::AnswerNotFound, "there is no such answer");
    let stored = find(db, uuid).await?.ok_or_else(missing)?;
    let answer = AnswerWrite {
        uuid: Some(uuid.to_owned()),
        form: stored.form_uuid,
        school: stored.sch_id,
        version: None,
        values: None,
        expected,
    };
    let mut batch = Batch::begin(db, actor, Same::IsLeft).await?;
    let put = batch.write(&[answer]).await?.pop().ok_or_else(missing)??;
    batch.commit("answer.write").await?;
    Ok(put)
}

/// An answer as it is stored.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Stored {
    pub form_uuid: String,
    pub sch_id: String,
    #[serde(flatten)]
    pub pulled: Pulled,
    pub create_time: Instant,
    pub update_time: Instant,
}

/// An answer by its uuid.
///
/// # Errors
/// ANSWER_UNHASHABLE where what is stored has no content hash.
pub async fn find(db: &impl Read, uuid: &str) -> Result<Option<Stored>, Refusal> {
    let query = sql!(
        "SELECT uuid, form_uuid, sch_id, revision, version, seq_no, is_deleted, values_json,
           create_time, update_time
         FROM answer WHERE uuid = :uuid AND deleted = 0",
        uuid = uuid
    );
    let Some(row) = db.row(query).await? else { return Ok(None) };
    Ok(Some(Stored {
        form_uuid: row.text("form_uuid")?,
        sch_id: row.text("sch_id")?,
        pulled: pulled_of(&row)?,
        create_time: row.instant("create_time")?,
        update_time: row.instant("update_time")?,
    }))
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
    db.rows(query).await?.iter().map(pulled_of).collect()
}

fn pulled_of(row: &Row) -> Result<Pulled, Refusal> {
    let content = super::manifest::content_of(row)?;
    let unhashable = |fault: Unhashable| {
        Refusal::of(Code::AnswerUnhashable, format!("answer {}: {fault}", content.answer_uuid))
    };
    let (hash, values) =
        (content.hash().map_err(unhashable)?, content.canonical_values().map_err(unhashable)?);
    Ok(Pulled {
        seq_no: row.int("seq_no")?,
        form_version: content.form_version,
        values: serde_json::value::RawValue::from_string(values).ok(),
        written: Written {
            answer_uuid: content.answer_uuid.clone(),
            revision: row.int("revision")?,
            content_hash: hash.0,
            is_deleted: content.is_deleted,
        },
    })
}
