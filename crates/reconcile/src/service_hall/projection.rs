//! The projection's rows. Every write raises `projection_version`; the business's own columns are
//! never written.

use std::collections::BTreeSet;

use counterfoil_db::{Bind, Instant, Query, Read, Result, Row, Tx, Value, sql};
use counterfoil_protocol::canon::{AnswerContent, Json};

use crate::wire::{Coordinate, Envelope};

/// An answer as the hall has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Its uuid.
    pub uuid: String,
    /// Its revision.
    pub revision: i64,
    /// The hash that is stored.
    pub stored_hash: String,
    /// The hash of what is stored; empty when it has none.
    pub hash: String,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
    /// The optimistic lock.
    pub version: i64,
    /// When it came into being; it may not be known.
    pub created: Option<Instant>,
}

fn local_of(row: &Row) -> Result<Local> {
    let content = AnswerContent {
        answer_uuid: row.text("answer_uuid")?,
        form_uuid: row.text("form_uuid")?,
        form_version: row.int("form_version")?,
        is_deleted: row.int("is_deleted")? == 1,
        sch_id: row.text("sch_id")?,
        values: Json::Null,
    };
    let (uuid, is_deleted) = (content.answer_uuid.clone(), content.is_deleted);
    let values = row.maybe_text("values_json")?;
    let hash = content.with_values(values.as_deref()).and_then(|content| content.hash());
    Ok(Local {
        uuid,
        revision: row.int("revision")?,
        stored_hash: row.text("content_hash")?,
        hash: hash.map(|hash| hash.0).unwrap_or_default(),
        is_deleted,
        version: row.int("projection_version")?,
        created: row.maybe_instant("create_time")?,
    })
}

/// The live rows of a coordinate after `cursor`, by uuid.
pub async fn page(db: &impl Read, at: &Coordinate, cursor: &str, size: u32) -> Result<Vec<Local>> {
    let query = sql!(
        "SELECT answer_uuid, form_uuid, sch_id, revision, content_hash, is_deleted, form_version,
           values_json, projection_version, create_time
         FROM fc_answer_projection
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid > :cursor AND deleted = 0
           AND (:only = '' OR answer_uuid = :only)
         ORDER BY answer_uuid LIMIT :size",
        school = at.school.as_str(),
        form = at.form.as_str(),
        cursor = cursor,
        only = at.answer.as_deref().unwrap_or_default(),
        size = size,
    );
    db.rows(query).await?.iter().map(local_of).collect()
}

/// The same, not above `last`. A statement of its own: an index must end the search there.
pub async fn page_to(
    db: &impl Read,
    at: &Coordinate,
    cursor: &str,
    last: &str,
    size: u32,
) -> Result<Vec<Local>> {
    let query = sql!(
        "SELECT answer_uuid, form_uuid, sch_id, revision, content_hash, is_deleted, form_version,
           values_json, projection_version, create_time
         FROM fc_answer_projection
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid > :cursor
           AND answer_uuid <= :last AND deleted = 0 AND (:only = '' OR answer_uuid = :only)
         ORDER BY answer_uuid LIMIT :size",
        school = at.school.as_str(),
        form = at.form.as_str(),
        cursor = cursor,
        last = last,
        only = at.answer.as_deref().unwrap_or_default(),
        size = size,
    );
    db.rows(query).await?.iter().map(local_of).collect()
}

/// One live row.
pub async fn find(db: &impl Read, at: &Coordinate, uuid: &str) -> Result<Option<Local>> {
    let query = sql!(
        "SELECT answer_uuid, form_uuid, sch_id, revision, content_hash, is_deleted, form_version,
           values_json, projection_version, create_time
         FROM fc_answer_projection
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid = :uuid AND deleted = 0",
        school = at.school.as_str(),
        form = at.form.as_str(),
        uuid = uuid,
    );
    db.row(query).await?.as_ref().map(local_of).transpose()
}

/// Some live rows from an id on.
pub(crate) async fn sample(db: &impl Read, from: i64, size: u32) -> Result<Vec<Local>> {
    let query = sql!(
        "SELECT answer_uuid, form_uuid, sch_id, revision, content_hash, is_deleted, form_version,
           values_json, projection_version, create_time
         FROM fc_answer_projection WHERE id >= :from AND deleted = 0 ORDER BY id LIMIT :size",
        from = from,
        size = size,
    );
    db.rows(query).await?.iter().map(local_of).collect()
}

/// A snapshot as it is stored: its envelope with its values' canonical text.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The snapshot.
    pub envelope: &'a Envelope,
    /// The canonical values; `None` for a tombstone.
    pub values: Option<&'a str>,
    /// What is noted of a conflict.
    pub conflict: Option<&'a str>,
}

/// Puts a snapshot where no live row is: revives a retired row, or inserts. False = a live row
/// came in meanwhile.
pub async fn insert(tx: &mut Tx, snapshot: Snapshot<'_>) -> Result<bool> {
    let Snapshot { envelope, values, conflict } = snapshot;
    let now = tx.now();
    const REVIVE: &str = "UPDATE fc_answer_projection
       SET revision = :revision, content_hash = :hash, is_deleted = :is_deleted,
           form_version = :form_version, values_json = :values, last_event_id = :event,
           conflict_detail = :conflict, projection_version = projection_version + 1, deleted = 0,
           create_time = :now, update_time = :now
       WHERE sch_id = :school AND form_uuid = :form AND answer_uuid = :uuid AND deleted = 1";
    const INSERT: &str = "{insert_ignore} INTO fc_answer_projection (answer_uuid, sch_id,
         form_uuid, revision, content_hash, is_deleted, form_version, values_json, last_event_id,
         conflict_detail, projection_version, create_time, update_time)
       VALUES (:uuid, :school, :form, :revision, :hash, :is_deleted, :form_version, :values,
         :event, :conflict, 1, :now, :now) {or_ignore}";
    for text in [REVIVE, INSERT] {
        let query = sql!(
            text,
            revision = envelope.revision,
            hash = envelope.content_hash.as_str(),
            is_deleted = envelope.is_deleted,
            form_version = envelope.form_version,
            values = values,
            event = envelope.event_id.as_str(),
            conflict = conflict,
            now = now,
            school = envelope.sch_id.as_str(),
            form = envelope.form_uuid.as_str(),
            uuid = envelope.answer_uuid.as_str(),
        );
        if tx.execute(query).await? == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where a snapshot's row stands: school, form and uuid.
pub type Place = (String, String, String);

/// Where a snapshot's row stands.
pub fn place(envelope: &Envelope) -> Place {
    (envelope.sch_id.clone(), envelope.form_uuid.clone(), envelope.answer_uuid.clone())
}

/// Which of the snapshots' answers have a row here, live or retired, under any school and form.
pub async fn known<'e>(
    db: &impl Read,
    envelopes: impl Iterator<Item = &'e Envelope>,
) -> Result<BTreeSet<Place>> {
    let (mut schools, mut forms, mut uuids) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for envelope in envelopes {
        schools.insert(envelope.sch_id.as_str());
        forms.insert(envelope.form_uuid.as_str());
        uuids.push(envelope.answer_uuid.as_str());
    }
    let query = Query::new(
        "SELECT sch_id, form_uuid, answer_uuid FROM fc_answer_projection
         WHERE sch_id IN :schools AND form_uuid IN :forms AND answer_uuid IN :uuids",
    );
    let query = query.bind_list("schools", schools).bind_list("forms", forms);
    let rows = db.rows(query.bind_list("uuids", uuids)).await?;
    let read =
        |row: &Row| Ok((row.text("sch_id")?, row.text("form_uuid")?, row.text("answer_uuid")?));
    rows.iter().map(read).collect()
}

/// Puts snapshots where no row is. One that is there is a duplicate, and nothing is put.
pub async fn insert_all(tx: &mut Tx, snapshots: &[Snapshot<'_>]) -> Result<()> {
    let now = tx.now();
    let row = |snapshot: &Snapshot<'_>| -> Vec<Value> {
        let Snapshot { envelope, values, conflict } = snapshot;
        vec![
            envelope.answer_uuid.as_str().bind(),
            envelope.sch_id.as_str().bind(),
            envelope.form_uuid.as_str().bind(),
            envelope.revision.bind(),
            envelope.content_hash.as_str().bind(),
            envelope.is_deleted.bind(),
            envelope.form_version.bind(),
            values.bind(),
            envelope.event_id.as_str().bind(),
            conflict.bind(),
            1_i64.bind(),
            now.bind(),
            now.bind(),
        ]
    };
    let insert = Query::new(
        "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision, content_hash,
           is_deleted, form_version, values_json, last_event_id, conflict_detail,
           projection_version, create_time, update_time) VALUES :rows",
    );
    tx.execute(insert.bind_rows("rows", snapshots.iter().map(row).collect())).await?;
    Ok(())
}

/// Puts a snapshot over the row as it was read. False = it changed meanwhile.
pub async fn replace(tx: &mut Tx, snapshot: Snapshot<'_>, read: &Local) -> Result<bool> {
    let Snapshot { envelope, values, conflict } = snapshot;
    let update = sql!(
        "UPDATE fc_answer_projection
         SET revision = :revision, content_hash = :hash, is_deleted = :is_deleted,
             form_version = :form_version, values_json = :values, last_event_id = :event,
             conflict_detail = :conflict, projection_version = projection_version + 1,
             update_time = :now
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid = :uuid AND deleted = 0
           AND revision = :old_revision AND content_hash = :old_hash
           AND is_deleted = :old_deleted AND projection_version = :old_version",
        revision = envelope.revision,
        hash = envelope.content_hash.as_str(),
        is_deleted = envelope.is_deleted,
        form_version = envelope.form_version,
        values = values,
        event = envelope.event_id.as_str(),
        conflict = conflict,
        now = tx.now(),
        school = envelope.sch_id.as_str(),
        form = envelope.form_uuid.as_str(),
        uuid = envelope.answer_uuid.as_str(),
        old_revision = read.revision,
        old_hash = read.stored_hash.as_str(),
        old_deleted = read.is_deleted,
        old_version = read.version,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Retires the row as it was scanned, and notes by which proof. False = it changed meanwhile.
pub async fn retire(
    tx: &mut Tx,
    at: &Coordinate,
    uuid: &str,
    scanned: Scanned<'_>,
    evidence: &str,
) -> Result<bool> {
    let update = sql!(
        "UPDATE fc_answer_projection
         SET deleted = 1, conflict_detail = :evidence,
             projection_version = projection_version + 1, update_time = :now
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid = :uuid AND deleted = 0
           AND revision = :revision AND content_hash = :hash AND is_deleted = :is_deleted
           AND projection_version = :version AND create_time IS NOT NULL",
        evidence = evidence,
        now = tx.now(),
        school = at.school.as_str(),
        form = at.form.as_str(),
        uuid = uuid,
        revision = scanned.revision,
        hash = scanned.stored_hash,
        is_deleted = scanned.is_deleted,
        version = scanned.version,
    );
    Ok(tx.execute(update).await? == 1)
}

/// A row as the scan saw it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Scanned<'a> {
    pub revision: i64,
    pub stored_hash: &'a str,
    pub is_deleted: bool,
    pub version: i64,
}

/// Notes something of a row beside what it holds, as every write raising its version.
pub async fn note(
    tx: &mut Tx,
    envelope: &Envelope,
    event: &str,
    conflict: Option<&str>,
) -> Result<()> {
    let update = sql!(
        "UPDATE fc_answer_projection
         SET last_event_id = :event, conflict_detail = COALESCE(:conflict, conflict_detail),
             projection_version = projection_version + 1, update_time = :now
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid = :uuid AND deleted = 0",
        event = event,
        conflict = conflict,
        now = tx.now(),
        school = envelope.sch_id.as_str(),
        form = envelope.form_uuid.as_str(),
        uuid = envelope.answer_uuid.as_str(),
    );
    tx.execute(update).await?;
    Ok(())
}
