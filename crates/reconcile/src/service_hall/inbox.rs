//! The inbox: the ordinary delivery path. An event is handled once, a newer revision wins, and the
//! same revision with another hash is recorded, never written over.

use std::collections::BTreeSet;

use counterfoil_db::{Bind, Db, Query, Read, Tx, Value, sql, transact};

use super::HallSettings;
use super::compare::Finding;
use super::projection::{self, Snapshot};
use super::repair::{conflict_of, values_of};
use crate::refusal::{Code, Refusal};
use crate::wire::{Coordinate, Envelope};

/// What a delivery came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The projection holds it now.
    Applied,
    /// It was handled before, or says nothing new.
    Duplicate,
    /// An older revision than the projection's.
    Older,
    /// The same revision with another hash: recorded.
    Conflict,
}

/// Takes a delivery in.
///
/// # Errors
/// IDENTITY_MISMATCH where source, target, school or hash is not what it must be: nothing is
/// written.
pub async fn take(db: &Db, settings: &HallSettings, envelope: &Envelope) -> Result<Taken, Refusal> {
    let values = checked(settings, envelope)?;
    transact!(try_take(db, envelope, values.as_deref()))
}

/// The values to store, if the delivery is ours and its hash is its content's.
fn checked(settings: &HallSettings, envelope: &Envelope) -> Result<Option<String>, Refusal> {
    let is_ours = !settings.source_app_key.is_empty()
        && envelope.source_app_key == settings.source_app_key
        && envelope.consumer_app_key == settings.app_key
        && envelope.sch_id == envelope.consumer_school_id
        && envelope.revision >= 1
        && !envelope.event_id.is_empty()
        && envelope.event_id.len() <= 64;
    values_of(envelope).filter(|_| is_ours).ok_or_else(not_ours)
}

fn not_ours() -> Refusal {
    let message = "the delivery's source, target or hash is not what it must be";
    Refusal::of(Code::IdentityMismatch, message)
}

async fn try_take(db: &Db, envelope: &Envelope, values: Option<&str>) -> Result<Taken, Refusal> {
    let mut tx = db.begin().await?;
    let taken = handle(&mut tx, envelope, values).await?;
    tx.commit("inbox.take").await?;
    Ok(taken)
}

/// Takes some in, in one commit where it can be one: what is not ours is refused alone, and where
/// another writer comes between, each is taken by itself. Answers each outcome in its order.
pub async fn take_all(
    db: &Db,
    settings: &HallSettings,
    envelopes: &[Envelope],
) -> Vec<Result<Taken, Refusal>> {
    let checked: Vec<Result<Option<String>, Refusal>> =
        envelopes.iter().map(|envelope| checked(settings, envelope)).collect();
    let good: Vec<(&Envelope, Option<&str>)> = envelopes
        .iter()
        .zip(&checked)
        .filter_map(|(envelope, values)| Some((envelope, values.as_ref().ok()?.as_deref())))
        .collect();
    let mut together = try_take_all(db, &good).await.ok().map(Vec::into_iter);
    let mut outcomes = Vec::with_capacity(envelopes.len());
    for (envelope, values) in envelopes.iter().zip(&checked) {
        outcomes.push(match (values, &mut together) {
            (Err(_), _) => Err(not_ours()),
            (Ok(_), Some(taken)) if taken.len() > 0 => Ok(taken.next().unwrap_or(Taken::Older)),
            (Ok(values), _) => transact!(try_take(db, envelope, values.as_deref())),
        });
    }
    outcomes
}

/// Answers that are new here are written by a handful of statements, the others one by one.
async fn try_take_all(
    db: &Db,
    envelopes: &[(&Envelope, Option<&str>)],
) -> Result<Vec<Taken>, Refusal> {
    let mut outcomes = Vec::with_capacity(envelopes.len());
    for chunk in envelopes.chunks(MAX_TOGETHER) {
        let mut tx = db.begin().await?;
        let known = projection::known(&tx, chunk.iter().map(|(envelope, _)| *envelope)).await?;
        let events = known_events(&tx, chunk).await?;
        let (mut new, mut seen) = (Vec::new(), BTreeSet::new());
        let is_new = chunk.iter().map(|(envelope, values)| {
            let place = projection::place(envelope);
            let is_first = seen.insert(place.clone());
            let is_new =
                is_first && !known.contains(&place) && !events.contains(envelope.event_id.as_str());
            if is_new {
                new.push(Snapshot { envelope, values: *values, conflict: None });
            }
            is_new
        });
        let is_new: Vec<bool> = is_new.collect();
        insert_new(&mut tx, &new).await?;
        for ((envelope, values), is_new) in chunk.iter().zip(is_new) {
            outcomes.push(match is_new {
                true => Taken::Applied,
                false => handle(&mut tx, envelope, *values).await?,
            });
        }
        tx.commit("inbox.take").await?;
    }
    Ok(outcomes)
}

/// Deliveries of one commit. Thirteen values a row stay far below SQLite's 32 766.
const MAX_TOGETHER: usize = 500;

async fn known_events(
    tx: &Tx,
    chunk: &[(&Envelope, Option<&str>)],
) -> Result<BTreeSet<String>, Refusal> {
    let query = Query::new("SELECT event_id FROM fc_inbox WHERE event_id IN :events");
    let events = chunk.iter().map(|(envelope, _)| envelope.event_id.as_str());
    let rows = tx.rows(query.bind_list("events", events)).await?;
    Ok(rows.iter().map(|row| row.text("event_id")).collect::<Result<_, _>>()?)
}

/// Events, rows and intents of answers that are new here. A key that is taken meanwhile is a
/// duplicate: the whole commit is given up.
async fn insert_new(tx: &mut Tx, new: &[Snapshot<'_>]) -> Result<(), Refusal> {
    if new.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let event = |snapshot: &Snapshot<'_>| -> Vec<Value> {
        let Envelope { event_id, answer_uuid, revision, .. } = snapshot.envelope;
        vec![event_id.bind(), answer_uuid.bind(), revision.bind(), now.bind(), now.bind()]
    };
    let insert = Query::new(
        "INSERT INTO fc_inbox (event_id, answer_uuid, revision, handled_at, create_time)
         VALUES :rows",
    );
    tx.execute(insert.bind_rows("rows", new.iter().map(event).collect())).await?;
    projection::insert_all(tx, new).await?;
    let intent = |snapshot: &Snapshot<'_>| -> Vec<Value> {
        let Envelope { answer_uuid, revision, .. } = snapshot.envelope;
        vec![answer_uuid.bind(), revision.bind(), now.bind()]
    };
    let insert = Query::new(
        "{insert_ignore} INTO fc_apply_intent (answer_uuid, revision, create_time)
         VALUES :rows {or_ignore}",
    );
    tx.execute(insert.bind_rows("rows", new.iter().map(intent).collect())).await?;
    Ok(())
}

/// Handles one delivery: its event counts once.
async fn handle(tx: &mut Tx, envelope: &Envelope, values: Option<&str>) -> Result<Taken, Refusal> {
    let insert = sql!(
        "{insert_ignore} INTO fc_inbox (event_id, answer_uuid, revision, handled_at, create_time)
         VALUES (:event, :uuid, :revision, :now, :now) {or_ignore}",
        event = envelope.event_id.as_str(),
        uuid = envelope.answer_uuid.as_str(),
        revision = envelope.revision,
        now = tx.now(),
    );
    if tx.execute(insert).await? == 1 {
        return apply(tx, envelope, values).await;
    }
    projection::note(tx, envelope, &envelope.event_id, None).await?;
    Ok(Taken::Duplicate)
}

async fn apply(tx: &mut Tx, envelope: &Envelope, values: Option<&str>) -> Result<Taken, Refusal> {
    let at = Coordinate {
        consumer: envelope.consumer_app_key.clone(),
        school: envelope.sch_id.clone(),
        form: envelope.form_uuid.clone(),
        answer: None,
    };
    let snapshot = Snapshot { envelope, values, conflict: None };
    if projection::insert(tx, snapshot).await? {
        intend(tx, envelope).await?;
        return Ok(Taken::Applied);
    }
    let Some(local) = projection::find(tx, &at, &envelope.answer_uuid).await? else {
        return Ok(Taken::Older);
    };
    if envelope.revision > local.revision {
        if !projection::replace(tx, snapshot, &local).await? {
            // Another writer was faster: its word is looked at when this is delivered again.
            let error = counterfoil_db::driver_error("the projection changed meanwhile".into());
            return Err(Refusal::Db(counterfoil_db::Error::Contention(error)));
        }
        intend(tx, envelope).await?;
        return Ok(Taken::Applied);
    }
    if envelope.revision < local.revision {
        projection::note(tx, envelope, &envelope.event_id, None).await?;
        return Ok(Taken::Older);
    }
    let is_same = local.hash == envelope.content_hash && local.is_deleted == envelope.is_deleted;
    let conflict = (!is_same).then(|| conflict_of(envelope, Some(&local)));
    if let Some(conflict) = &conflict {
        tracing::warn!(answer = %envelope.answer_uuid, "{}", Finding::HashConflict.code());
        projection::note(tx, envelope, &envelope.event_id, Some(conflict)).await?;
        return Ok(Taken::Conflict);
    }
    projection::note(tx, envelope, &envelope.event_id, None).await?;
    Ok(Taken::Duplicate)
}

/// What the business does with it is its own affair.
async fn intend(tx: &mut Tx, envelope: &Envelope) -> Result<(), Refusal> {
    let insert = sql!(
        "{insert_ignore} INTO fc_apply_intent (answer_uuid, revision, create_time)
         VALUES (:uuid, :revision, :now) {or_ignore}",
        uuid = envelope.answer_uuid.as_str(),
        revision = envelope.revision,
        now = tx.now(),
    );
    tx.execute(insert).await?;
    Ok(())
}
