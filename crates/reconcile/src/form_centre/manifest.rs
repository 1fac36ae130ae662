//! The manifest: what the centre's set was at one moment, frozen for one task.
//!
//! All of it is read in one consistent read, by key and in batches, and written with the
//! checkpoint in one commit: a crash leaves nothing, and what is complete is never made again.

use counterfoil_db::{Bind, Db, Query, Read, Row, Tx, Value, sql, transact};
use counterfoil_protocol::canon::{AnswerContent, Json};

use super::CentreSettings;
use super::authorise::{authorise, holds};
use super::create::{count_rows, within_limits};
use super::task::{self, Task};
use crate::key::is_answer_uuid;
use crate::refusal::{Code, Refusal};
use crate::wire::{Coordinate, ManifestPage, ManifestRow};

/// Answers read, and manifest rows written, at once.
const BATCH: i64 = 200;
/// Rows of a page at most.
pub const MAX_PAGE: u32 = 500;

/// How making a manifest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Materialised {
    /// It is whole.
    Complete,
    /// It was made before, or the task has ended.
    NothingToDo,
    /// The task is FAILED or CANCELLED now, with its reason.
    Refused,
}

/// Makes the manifest of a task.
pub async fn materialise(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
) -> Result<Materialised, Refusal> {
    match transact!(try_materialise(db, settings, task_id)) {
        Err(Refusal::Coded { code, message }) => {
            transact!(refuse(db, task_id, code, &message))?;
            Ok(Materialised::Refused)
        }
        other => other,
    }
}

async fn try_materialise(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
) -> Result<Materialised, Refusal> {
    let mut tx = db.begin_snapshot().await?;
    let Some(task) = task::lock(&mut tx, task_id).await? else {
        return Ok(Materialised::NothingToDo);
    };
    if task.state != "QUEUED" || task.manifest_complete {
        tx.rollback().await?;
        return Ok(Materialised::NothingToDo);
    }
    holds(&tx, &task).await?;
    within_limits(settings, count_rows(&tx, &task.coordinate).await?)?;
    let (mut cursor, mut rows, mut pages) = (String::new(), 0_i64, 0);
    loop {
        let batch = read_batch(&tx, &task.coordinate, &cursor).await?;
        let Some(last) = batch.last() else { break };
        cursor.clone_from(&last.answer_uuid);
        rows += i64::try_from(batch.len()).unwrap_or(i64::MAX);
        // Rows may come in between the count and the read: counted again as they are read.
        pages = within_limits(settings, rows)?;
        let is_last = i64::try_from(batch.len()).is_ok_and(|count| count < BATCH);
        write_batch(&mut tx, task_id, batch).await?;
        if is_last {
            break;
        }
    }
    let done = sql!(
        "UPDATE answer_reconcile_task
         SET manifest_state = 'COMPLETE', manifest_complete = 1, total_rows = :rows,
             total_pages = :pages, update_time = :now
         WHERE id = :id AND state = 'QUEUED' AND manifest_complete = 0",
        rows = rows,
        pages = pages,
        now = tx.now(),
        id = task.id,
    );
    if tx.execute(done).await? != 1 {
        tx.rollback().await?;
        return Ok(Materialised::NothingToDo);
    }
    tx.commit("manifest.complete").await?;
    Ok(Materialised::Complete)
}

async fn refuse(db: &Db, task_id: &str, code: Code, message: &str) -> Result<(), Refusal> {
    let mut tx = db.begin().await?;
    let Some(task) = task::lock(&mut tx, task_id).await? else { return Ok(()) };
    let is_access =
        matches!(code, Code::GrantRevoked | Code::GrantEpochChanged | Code::ScopeMismatch);
    let state = if is_access { "CANCELLED" } else { "FAILED" };
    task::end(&mut tx, &task, state, Some(code.as_str()), Some(message)).await?;
    let failed = sql!(
        "UPDATE answer_reconcile_task SET manifest_state = 'FAILED'
         WHERE id = :id AND manifest_complete = 0",
        id = task.id,
    );
    tx.execute(failed).await?;
    Ok(tx.commit("manifest.refuse").await?)
}

/// The next answers of a coordinate after `cursor`, with their hashes.
async fn read_batch(tx: &Tx, at: &Coordinate, cursor: &str) -> Result<Vec<ManifestRow>, Refusal> {
    let query = sql!(
        "SELECT uuid, form_uuid, sch_id, revision, version, seq_no, is_deleted, values_json
         FROM answer
         WHERE form_uuid = :form AND sch_id = :school AND uuid > :cursor AND deleted = 0
           AND (:only = '' OR uuid = :only)
         ORDER BY uuid LIMIT :batch",
        form = at.form.as_str(),
        school = at.school.as_str(),
        cursor = cursor,
        only = at.answer.as_deref().unwrap_or_default(),
        batch = BATCH,
    );
    tx.rows(query).await?.iter().map(row_of).collect()
}

fn row_of(row: &Row) -> Result<ManifestRow, Refusal> {
    let content = content_of(row)?;
    let hash = content.hash().map_err(|fault| {
        let message = format!("answer {}: {fault}", content.answer_uuid);
        Refusal::of(Code::AnswerUnhashable, message)
    })?;
    Ok(ManifestRow {
        revision: row.int("revision")?,
        content_hash: hash.0,
        is_deleted: content.is_deleted,
        form_uuid: content.form_uuid,
        form_version: content.form_version,
        seq_no: row.int("seq_no")?,
        answer_uuid: content.answer_uuid,
    })
}

/// What of an answer's row is hashed.
pub(super) fn content_of(row: &Row) -> Result<AnswerContent, Refusal> {
    let content = AnswerContent {
        answer_uuid: row.text("uuid")?,
        form_uuid: row.text("form_uuid")?,
        form_version: row.int("version")?,
        is_deleted: row.int("is_deleted")? == 1,
        sch_id: row.text("sch_id")?,
        values: Json::Null,
    };
    let uuid = content.answer_uuid.clone();
    content
        .with_values(row.maybe_text("values_json")?.as_deref())
        .map_err(|fault| Refusal::of(Code::AnswerUnhashable, format!("answer {uuid}: {fault}")))
}

async fn write_batch(tx: &mut Tx, task_id: &str, batch: Vec<ManifestRow>) -> Result<(), Refusal> {
    let now = tx.now();
    let values = |row: ManifestRow| -> Vec<Value> {
        vec![
            task_id.bind(),
            row.answer_uuid.bind(),
            row.revision.bind(),
            row.content_hash.bind(),
            row.is_deleted.bind(),
            row.form_uuid.bind(),
            row.form_version.bind(),
            row.seq_no.bind(),
            now.bind(),
        ]
    };
    let insert = Query::new(
        "INSERT INTO answer_reconcile_manifest_row (task_id, answer_uuid, revision, content_hash,
           is_deleted, form_uuid, form_version, seq_no, create_time) VALUES :rows",
    );
    tx.execute(insert.bind_rows("rows", batch.into_iter().map(values).collect())).await?;
    Ok(())
}

/// A page of a task's manifest, for its target.
///
/// # Errors
/// As [`authorise`]; CURSOR_INVALID, MANIFEST_INCOMPLETE.
pub async fn page(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
    caller: &str,
    cursor: Option<&str>,
    size: Option<u32>,
) -> Result<ManifestPage, Refusal> {
    let (task, _) = authorise(db, task_id, caller).await?;
    let cursor = cursor.unwrap_or_default();
    if !cursor.is_empty() && !is_answer_uuid(cursor) {
        let message = "a cursor is 32 lower-case hexadecimal digits";
        return Err(Refusal::of(Code::CursorInvalid, message));
    }
    is_complete(&task)?;
    let size = size.unwrap_or(settings.page_size).clamp(1, MAX_PAGE);
    let query = sql!(
        "SELECT answer_uuid, revision, content_hash, is_deleted, form_uuid, form_version, seq_no
         FROM answer_reconcile_manifest_row
         WHERE task_id = :task_id AND answer_uuid > :cursor AND deleted = 0
         ORDER BY answer_uuid LIMIT :most",
        task_id = task_id,
        cursor = cursor,
        most = i64::from(size) + 1,
    );
    let rows = db.rows(query).await?;
    let mut rows = rows.iter().map(stored).collect::<Result<Vec<_>, Refusal>>()?;
    let completed = rows.len() <= size as usize;
    rows.truncate(size as usize);
    let next_cursor = rows.last().map(|row| row.answer_uuid.clone()).filter(|_| !completed);
    Ok(ManifestPage {
        task_id: task.task_id,
        rows,
        next_cursor,
        completed,
        total_rows: task.total_rows,
        total_pages: task.total_pages,
        task_state: task.state,
    })
}

pub(super) fn is_complete(task: &Task) -> Result<(), Refusal> {
    if task.manifest_complete {
        return Ok(());
    }
    Err(Refusal::of(Code::ManifestIncomplete, "the manifest is not there yet"))
}

pub(super) fn stored(row: &Row) -> Result<ManifestRow, Refusal> {
    Ok(ManifestRow {
        answer_uuid: row.text("answer_uuid")?,
        revision: row.int("revision")?,
        content_hash: row.text("content_hash")?,
        is_deleted: row.int("is_deleted")? == 1,
        form_uuid: row.text("form_uuid")?,
        form_version: row.int("form_version")?,
        seq_no: row.int("seq_no")?,
    })
}
