//! The authoritative answer: the snapshot as it is now, or a proof that there is none.

use std::collections::BTreeMap;

use counterfoil_db::{Db, Read, Row, sql};
use serde_json::value::RawValue;

use super::CentreSettings;
use super::authorise::authorise;
use super::manifest::{content_of, is_complete};
use super::task::Task;
use crate::key::{is_answer_uuid, new_uuid};
use crate::refusal::{Code, Refusal};
use crate::wire::{Authority, Coordinate, Envelope, Proof, Question};

/// Answers asked for at once.
pub const MAX_QUESTIONS: usize = 200;

/// What is so of each answer now, in the order of the questions, for the task's target.
///
/// # Errors
/// As [`authorise`]; INVALID_INPUT for what is no question, MANIFEST_INCOMPLETE.
pub async fn ask(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
    caller: &str,
    questions: &[Question],
) -> Result<Vec<Authority>, Refusal> {
    let (task, grant) = authorise(db, task_id, caller).await?;
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        let message = format!("ask for 1 to {MAX_QUESTIONS} answers at once");
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    if let Some(wrong) = questions.iter().find(|asked| !is_answer_uuid(&asked.answer_uuid)) {
        let shown: String = wrong.answer_uuid.chars().take(40).collect();
        let message = format!("{shown} is no answer's uuid");
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    is_complete(&task)?;
    let source = &settings.source_app_key;
    let epoch = grant.grant_epoch;
    let about = About { source, at: &task.coordinate, task_id: Some(&task.task_id), epoch };
    let asked = questions.iter().map(|question| question.answer_uuid.as_str());
    let seen = asked.filter(|uuid| task.coordinate.sees(uuid));
    let present = snapshots(db, &about, seen).await?;
    let mut authorities = Vec::with_capacity(questions.len());
    for question in questions {
        // One may be asked for twice: its snapshot stays.
        authorities.push(match present.get(&question.answer_uuid) {
            Some(Ok(envelope)) => Authority::Present { envelope: Box::new(envelope.clone()) },
            Some(Err(why)) => return Err(Refusal::of(Code::AnswerUnhashable, why.clone())),
            None => absent(db, &task, question, epoch).await?,
        });
    }
    Ok(authorities)
}

/// The word on an answer that is not there: a proof, unless the manifest knows it.
async fn absent(
    db: &Db,
    task: &Task,
    question: &Question,
    epoch: i64,
) -> Result<Authority, Refusal> {
    let at = &task.coordinate;
    if !at.sees(&question.answer_uuid) {
        return Ok(Authority::Absent { proof: None });
    }
    let listed = sql!(
        "SELECT COUNT(*) AS n FROM answer_reconcile_manifest_row
         WHERE task_id = :task_id AND answer_uuid = :uuid",
        task_id = task.task_id.as_str(),
        uuid = question.answer_uuid.as_str(),
    );
    if db.count(listed).await? > 0 {
        return Ok(Authority::Absent { proof: None });
    }
    Ok(Authority::Absent {
        proof: Some(Proof {
            proof_id: new_uuid(),
            task_id: task.task_id.clone(),
            consumer_app_key: at.consumer.clone(),
            consumer_school_id: at.school.clone(),
            form_uuid: at.form.clone(),
            sch_id: at.school.clone(),
            answer_uuid: question.answer_uuid.clone(),
            expected_revision: question.expected_revision,
            grant_epoch: epoch,
            issued_at: db.now().await?,
        }),
    })
}

/// Under what an envelope is made.
pub(super) struct About<'a> {
    pub(super) source: &'a str,
    pub(super) at: &'a Coordinate,
    pub(super) task_id: Option<&'a str>,
    pub(super) epoch: i64,
}

/// The answers as they are now, those that are in the coordinate; or why one has no content hash.
/// It keeps none of the others from being sent.
pub(super) async fn snapshots<'u>(
    db: &impl Read,
    about: &About<'_>,
    uuids: impl IntoIterator<Item = &'u str>,
) -> Result<BTreeMap<String, Result<Envelope, String>>, Refusal> {
    let query = sql!(
        "SELECT uuid, form_uuid, sch_id, revision, version, is_deleted, values_json FROM answer
         WHERE uuid IN :uuids AND form_uuid = :form AND sch_id = :school AND deleted = 0",
        form = about.at.form.as_str(),
        school = about.at.school.as_str(),
    );
    let rows = db.rows(query.bind_list("uuids", uuids)).await?;
    let read = |row: &Row| match envelope(about, row) {
        Err(Refusal::Coded { message, .. }) => Ok((row.text("uuid")?, Err(message))),
        other => Ok((row.text("uuid")?, Ok(other?))),
    };
    rows.iter().map(read).collect()
}

fn envelope(about: &About<'_>, row: &Row) -> Result<Envelope, Refusal> {
    let content = content_of(row)?;
    let uuid = content.answer_uuid.clone();
    let unhashable = |fault: &dyn std::fmt::Display| {
        Refusal::of(Code::AnswerUnhashable, format!("answer {uuid}: {fault}"))
    };
    let hash = content.hash().map_err(|fault| unhashable(&fault))?;
    let values = content.canonical_values().map_err(|fault| unhashable(&fault))?;
    let values = RawValue::from_string(values).map_err(|error| unhashable(&error))?;
    Ok(Envelope {
        event_id: new_uuid(),
        task_id: about.task_id.map(str::to_owned),
        proof_id: about.task_id.map(|_| new_uuid()),
        source_app_key: about.source.to_owned(),
        consumer_app_key: about.at.consumer.clone(),
        consumer_school_id: about.at.school.clone(),
        sch_id: content.sch_id,
        form_uuid: content.form_uuid,
        form_version: content.form_version,
        answer_uuid: content.answer_uuid,
        revision: row.int("revision")?,
        content_hash: hash.0,
        is_deleted: content.is_deleted,
        values: Some(values),
        grant_epoch: about.epoch,
    })
}
