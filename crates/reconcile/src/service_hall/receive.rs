//! Receiving an order stores it; running it is another matter.

use chrono::TimeDelta;
use counterfoil_db::{Db, Instant, Read, sql, transact};

use super::HallSettings;
use crate::key::is_answer_uuid;
use crate::refusal::{Code, Refusal};
use crate::wire::Dispatch;

/// What was made of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It is queued.
    Queued,
    /// It was known; nothing changed.
    Known,
}

/// Stores an order that `signer` signed.
///
/// # Errors
/// IDENTITY_MISMATCH where signer, source, target or coordinates are not what they must be;
/// INVALID_INPUT.
pub async fn receive(
    db: &Db,
    settings: &HallSettings,
    signer: &str,
    order: &Dispatch,
) -> Result<Received, Refusal> {
    let mismatch = |what: &str| Err(Refusal::of(Code::IdentityMismatch, what));
    let source = settings.source_app_key.as_str();
    if source.is_empty() || signer != source || order.source_app_key != source {
        return mismatch("orders are taken from the configured centre only");
    }
    if settings.app_key.is_empty() || order.consumer_app_key != settings.app_key {
        return mismatch("the order is for another consumer");
    }
    let is_scoped = match (order.scope.as_str(), &order.answer_uuid) {
        ("FORM", None) => true,
        ("ANSWER", Some(uuid)) => is_answer_uuid(uuid),
        _ => false,
    };
    let is_whole = order.attempt >= 1
        && (1..=36).contains(&order.task_id.len())
        && (1..=64).contains(&order.consumer_school_id.len())
        && (1..=64).contains(&order.form_uuid.len());
    if !is_scoped || !is_whole {
        let message = "task, attempt, school, form, scope or answer is missing or wrong";
        return Err(Refusal::of(Code::InvalidInput, message));
    }
    transact!(try_receive(db, order))
}

async fn try_receive(db: &Db, order: &Dispatch) -> Result<Received, Refusal> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO answer_reconcile_work (task_id, attempt, consumer_app_key,
           consumer_school_id, form_uuid, scope, answer_uuid, grant_epoch, window_start, state,
           create_time, update_time)
         VALUES (:task_id, :attempt, :consumer, :school, :form, :scope, :answer, :epoch, :window,
           'QUEUED', :now, :now) {or_ignore}",
        task_id = order.task_id.as_str(),
        attempt = order.attempt,
        consumer = order.consumer_app_key.as_str(),
        school = order.consumer_school_id.as_str(),
        form = order.form_uuid.as_str(),
        scope = order.scope.as_str(),
        answer = order.answer_uuid.as_deref(),
        epoch = order.grant_epoch,
        window = on_our_clock(order.window_start, order.sent_at, now),
        now = now,
    );
    if tx.execute(insert).await? == 1 {
        tx.commit("receive.new").await?;
        return Ok(Received::Queued);
    }
    let row = tx
        .row(sql!(
            "SELECT id, attempt, consumer_app_key, consumer_school_id, form_uuid, scope,
               answer_uuid, state, lease_expire_time
             FROM answer_reconcile_work WHERE task_id = :task_id {for_update}",
            task_id = order.task_id.as_str()
        ))
        .await?;
    let Some(row) = row else {
        return Err(Refusal::of(Code::InvalidInput, "the order could not be stored"));
    };
    let is_same = row.text("consumer_app_key")? == order.consumer_app_key
        && row.text("consumer_school_id")? == order.consumer_school_id
        && row.text("form_uuid")? == order.form_uuid
        && row.text("scope")? == order.scope
        && row.maybe_text("answer_uuid")? == order.answer_uuid;
    if !is_same {
        let message = "the task is known with other coordinates";
        return Err(Refusal::of(Code::IdentityMismatch, message));
    }
    let is_alive = row.text("state")? == "RUNNING"
        && row.maybe_instant("lease_expire_time")?.is_some_and(|until| until > now);
    if order.attempt <= row.int("attempt")? || is_alive {
        return Ok(Received::Known);
    }
    // From its cursor: what was compared stays compared, under a new right to write.
    let requeue = sql!(
        "UPDATE answer_reconcile_work
         SET state = 'QUEUED', attempt = :attempt, work_version = work_version + 1,
             retry_count = 0, result_state = NULL, next_attempt_time = NULL, worker_id = NULL,
             lease_expire_time = NULL, last_error = NULL, last_error_code = NULL,
             update_time = :now
         WHERE id = :id",
        attempt = order.attempt,
        now = now,
        id = row.int("id")?,
    );
    tx.execute(requeue).await?;
    tx.commit("receive.again").await?;
    Ok(Received::Queued)
}

/// The window's start on our clock. A clock ahead of ours would let newer rows count as older:
/// its lead is taken off. A clock behind ours errs on the safe side by itself.
fn on_our_clock(window_start: Instant, sent_at: Instant, now: Instant) -> Instant {
    window_start - (sent_at - now).max(TimeDelta::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_centre_whose_clock_is_ahead_has_its_lead_taken_off() {
        let at = |seconds: i64| chrono::DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap();
        assert_eq!(on_our_clock(at(0), at(10), at(10)), at(0));
        assert_eq!(on_our_clock(at(0), at(310), at(10)), at(-300));
        assert_eq!(on_our_clock(at(0), at(10), at(310)), at(0));
    }
}
