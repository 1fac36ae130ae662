//! The inbox: the ordinary delivery path. An event is handled once, a newer revision wins, and the
//! same revision with another hash is recorded, never written over.

use counterfoil_db::{Db, Tx, sql, transact};

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
    let is_ours = !settings.source_app_key.is_empty()
        && envelope.source_app_key == settings.source_app_key
        && envelope.consumer_app_key == settings.app_key
        && envelope.sch_id == envelope.consumer_school_id
        && envelope.revision >= 1
        && !envelope.event_id.is_empty()
        && envelope.event_id.len() <= 64;
    let values = values_of(envelope).filter(|_| is_ours).ok_or_else(|| {
        let message = "the delivery's source, target or hash is not what it must be";
        Refusal::of(Code::IdentityMismatch, message)
    })?;
    transact!(try_take(db, envelope, values.as_deref()))
}

async fn try_take(db: &Db, envelope: &Envelope, values: Option<&str>) -> Result<Taken, Refusal> {
    let mut tx = db.begin().await?;
    let insert = sql!(
        "{insert_ignore} INTO fc_inbox (event_id, answer_uuid, revision, handled_at, create_time)
         VALUES (:event, :uuid, :revision, :now, :now) {or_ignore}",
        event = envelope.event_id.as_str(),
        uuid = envelope.answer_uuid.as_str(),
        revision = envelope.revision,
        now = tx.now(),
    );
    let is_new = tx.execute(insert).await? == 1;
    let taken = if is_new {
        apply(&mut tx, envelope, values).await?
    } else {
        projection::note(&mut tx, envelope, &envelope.event_id, None).await?;
        Taken::Duplicate
    };
    tx.commit("inbox.take").await?;
    Ok(taken)
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
