//! Having the hall reconcile: one task in flight a consumer, a bounded number of attempts.

use counterfoil_db::{Db, Error as DbError, Read, sql, transact};

use super::CentreSettings;
use super::authorise::holds;
use super::task::{self, Task};
use crate::refusal::{Code, Refusal};
use crate::wire::Dispatch;

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The hall has it stored. It says nothing of any repair.
    Accepted,
    /// The hall said no, or there is no address registered for it.
    Refused {
        /// Its code.
        code: String,
        /// What it said.
        message: String,
    },
    /// Nobody knows; it may have arrived.
    Unknown {
        /// Why.
        message: String,
    },
}

/// The halls: where each is, is registered with the program, never told by a message.
#[async_trait::async_trait]
pub trait Halls: Send + Sync {
    /// Hands an order to its consumer's hall.
    async fn dispatch(&self, order: &Dispatch) -> Sent;
}

/// How a turn of dispatch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// The hall has it.
    Sent,
    /// Not this time; it is due again later.
    Later,
    /// The task is FAILED or CANCELLED now.
    Ended,
    /// Another was faster, or another task of the consumer is in flight.
    Skipped,
}

/// Claims a due task and hands it to its hall. The claim comes first, also when the hall turns out
/// not to be reachable: each try is an attempt.
pub async fn dispatch(
    db: &Db,
    settings: &CentreSettings,
    halls: &dyn Halls,
    task_id: &str,
) -> Result<Dispatched, Refusal> {
    let claimed = match transact!(claim(db, settings, task_id)) {
        // The consumer's one place in flight was taken between our look and our claim.
        Err(Refusal::Db(DbError::Duplicate(_))) => return Ok(Dispatched::Skipped),
        other => other?,
    };
    let (task, order) = match claimed {
        Claim::Won(task, order) => (task, order),
        Claim::Ended => return Ok(Dispatched::Ended),
        Claim::Lost => return Ok(Dispatched::Skipped),
    };
    let sent = halls.dispatch(&order).await;
    transact!(settle(db, settings, &task, &sent))
}

enum Claim {
    Won(Box<Task>, Box<Dispatch>),
    Ended,
    Lost,
}

async fn claim(db: &Db, settings: &CentreSettings, task_id: &str) -> Result<Claim, Refusal> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let Some(task) = task::lock(&mut tx, task_id).await? else { return Ok(Claim::Lost) };
    let is_due = task.next_dispatch_at.is_none_or(|due| due <= now);
    if task.state != "QUEUED" || !task.manifest_complete || !is_due {
        return Ok(Claim::Lost);
    }
    if let Err(refusal) = holds(&tx, &task).await {
        let Refusal::Coded { code, message } = refusal else { return Err(refusal) };
        task::end(&mut tx, &task, "CANCELLED", Some(code.as_str()), Some(&message)).await?;
        tx.commit("dispatch.cancel").await?;
        return Ok(Claim::Ended);
    }
    if task.attempt >= settings.max_dispatch_attempts {
        let code = task.reason_code.as_deref().unwrap_or("DISPATCH_EXHAUSTED");
        let reason = format!("{} attempts came to nothing", task.attempt);
        task::end(&mut tx, &task, "FAILED", Some(code), Some(&reason)).await?;
        tx.commit("dispatch.exhausted").await?;
        return Ok(Claim::Ended);
    }
    let update = sql!(
        "UPDATE answer_reconcile_task
         SET attempt = :attempt + 1, next_dispatch_at = :until, active_consumer_key = :consumer,
             update_time = :now
         WHERE id = :id AND state = 'QUEUED' AND manifest_complete = 1 AND attempt = :attempt
           AND (next_dispatch_at IS NULL OR next_dispatch_at <= :now)",
        attempt = task.attempt,
        until = now + settings.lease,
        consumer = task.coordinate.consumer.as_str(),
        now = now,
        id = task.id,
    );
    if tx.execute(update).await? != 1 {
        return Ok(Claim::Lost);
    }
    tx.commit("dispatch.claim").await?;
    let task = Task { attempt: task.attempt + 1, ..task };
    let order = order(settings, &task, now);
    Ok(Claim::Won(Box::new(task), Box::new(order)))
}

fn order(settings: &CentreSettings, task: &Task, now: counterfoil_db::Instant) -> Dispatch {
    let at = &task.coordinate;
    Dispatch {
        task_id: task.task_id.clone(),
        attempt: task.attempt,
        source_app_key: settings.source_app_key.clone(),
        consumer_app_key: at.consumer.clone(),
        consumer_school_id: at.school.clone(),
        form_uuid: at.form.clone(),
        scope: at.scope().to_owned(),
        answer_uuid: at.answer.clone(),
        grant_epoch: task.grant_epoch,
        window_start: task.window_start,
        sent_at: now,
    }
}

/// Writes down what became of the order. A report of the hall may have come in meanwhile: what it
/// made of the task stands.
async fn settle(
    db: &Db,
    settings: &CentreSettings,
    task: &Task,
    sent: &Sent,
) -> Result<Dispatched, Refusal> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let (code, message, is_known) = match sent {
        Sent::Accepted => {
            let update = sql!(
                "UPDATE answer_reconcile_task
                 SET state = 'DISPATCHED', lease_until = :until, next_dispatch_at = :until,
                     reason_code = NULL, reason = NULL, update_time = :now
                 WHERE id = :id AND state = 'QUEUED' AND attempt = :attempt",
                until = now + settings.lease,
                now = now,
                id = task.id,
                attempt = task.attempt,
            );
            tx.execute(update).await?;
            tx.commit("dispatch.sent").await?;
            return Ok(Dispatched::Sent);
        }
        Sent::Refused { code, message } => (code.as_str(), message, true),
        Sent::Unknown { message } => ("DISPATCH_UNKNOWN", message, false),
    };
    let message: String = message.chars().take(1000).collect();
    let code: String = code.chars().take(64).collect();
    // A try of which nobody knows may still be answered: it keeps its time.
    if is_known && task.attempt >= settings.max_dispatch_attempts {
        let code = Some(code.as_str());
        let now_ended = tx.row(sql!(
            "SELECT id FROM answer_reconcile_task
             WHERE id = :id AND state = 'QUEUED' AND attempt = :attempt {for_update}",
            id = task.id,
            attempt = task.attempt,
        ));
        if now_ended.await?.is_some() {
            task::end(&mut tx, task, "FAILED", code, Some(&message)).await?;
        }
        tx.commit("dispatch.failed").await?;
        return Ok(Dispatched::Ended);
    }
    let update = sql!(
        "UPDATE answer_reconcile_task
         SET next_dispatch_at = :due, active_consumer_key = NULL, reason_code = :code,
             reason = :message, update_time = :now
         WHERE id = :id AND state = 'QUEUED' AND attempt = :attempt",
        due = now + settings.backoff(task.attempt),
        code = code,
        message = message,
        now = now,
        id = task.id,
        attempt = task.attempt,
    );
    tx.execute(update).await?;
    tx.commit("dispatch.later").await?;
    Ok(Dispatched::Later)
}

/// Takes a task back whose hall gave no sign of life: QUEUED again after a pause, or FAILED when
/// its attempts are used up.
pub async fn recover(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
) -> Result<Dispatched, Refusal> {
    transact!(try_recover(db, settings, task_id))
}

async fn try_recover(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
) -> Result<Dispatched, Refusal> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let Some(task) = task::lock(&mut tx, task_id).await? else { return Ok(Dispatched::Skipped) };
    let is_out = matches!(task.state.as_str(), "DISPATCHED" | "RUNNING");
    if !is_out || task.lease_until.is_some_and(|until| until > now) {
        return Ok(Dispatched::Skipped);
    }
    if task.attempt >= settings.max_dispatch_attempts {
        let reason = format!("no sign of life in the last of {} attempts", task.attempt);
        task::end(&mut tx, &task, "FAILED", Some("LEASE_EXPIRED"), Some(&reason)).await?;
        tx.commit("dispatch.expired").await?;
        return Ok(Dispatched::Ended);
    }
    let update = sql!(
        "UPDATE answer_reconcile_task
         SET state = 'QUEUED', next_dispatch_at = :due, active_consumer_key = NULL,
             lease_until = NULL, reason_code = 'LEASE_EXPIRED',
             reason = 'the hall gave no sign of life in time', update_time = :now
         WHERE id = :id AND state IN ('DISPATCHED', 'RUNNING')",
        due = now + settings.backoff(task.attempt),
        now = now,
        id = task.id,
    );
    tx.execute(update).await?;
    tx.commit("dispatch.recover").await?;
    Ok(Dispatched::Later)
}

/// Cancels a task, once or again. False = it had ended before.
///
/// # Errors
/// TASK_NOT_FOUND.
pub async fn cancel(db: &Db, task_id: &str, actor: &str, reason: &str) -> Result<bool, Refusal> {
    transact!(try_cancel(db, task_id, actor, reason))
}

async fn try_cancel(db: &Db, task_id: &str, actor: &str, reason: &str) -> Result<bool, Refusal> {
    let mut tx = db.begin().await?;
    let found = task::lock(&mut tx, task_id).await?;
    let task = found.ok_or_else(|| super::authorise::not_found(task_id))?;
    let code = Some(Code::TaskCancelled.as_str());
    let is_cancelled = task::end(&mut tx, &task, "CANCELLED", code, Some(reason)).await?;
    if is_cancelled {
        let log = sql!(
            "INSERT INTO answer_op_log (action, form_uuid, sch_id, actor, detail, create_time)
             VALUES ('RECONCILE_CANCEL', :form, :school, :actor, :detail, :now)",
            form = task.coordinate.form.as_str(),
            school = task.coordinate.school.as_str(),
            actor = actor,
            detail = task_id,
            now = tx.now(),
        );
        tx.execute(log).await?;
    }
    tx.commit("centre.cancel").await?;
    Ok(is_cancelled)
}

/// Whether some other task of the consumer is in flight.
pub(super) async fn is_busy(db: &impl Read, task: &Task) -> Result<bool, Refusal> {
    let query = sql!(
        "SELECT COUNT(*) AS n FROM answer_reconcile_task
         WHERE active_consumer_key = :consumer AND id <> :id",
        consumer = task.coordinate.consumer.as_str(),
        id = task.id,
    );
    Ok(db.count(query).await? > 0)
}
