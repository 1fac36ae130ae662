//! What a hall reports of an attempt, and what the centre makes of it.

use counterfoil_db::{Db, Instant, Query, Read, Tx, sql, transact};

use super::CentreSettings;
use super::authorise::{holds, is_target, not_found};
use super::task::{self, Task};
use crate::refusal::{Code, Refusal};
use crate::wire::{Ack, Decision, ErrorItem, Report, is_final};

/// States that a report may claim.
const REPORTED: [&str; 5] = ["RUNNING", "COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];
/// Characters of an item's code and range.
const MAX_WORD: usize = 64;

/// Takes a report of `caller` in.
///
/// # Errors
/// TASK_NOT_FOUND, IDENTITY_MISMATCH (nothing changes), ATTEMPT_AHEAD, RESULT_STATE_INVALID.
pub async fn receive(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
    caller: &str,
    report: &Report,
) -> Result<Ack, Refusal> {
    match transact!(try_receive(db, settings, task_id, caller, report)) {
        // Another task of the consumer took the one place in flight meanwhile: judged anew.
        Err(Refusal::Db(counterfoil_db::Error::Duplicate(_))) => {
            transact!(try_receive(db, settings, task_id, caller, report))
        }
        other => other,
    }
}

async fn try_receive(
    db: &Db,
    settings: &CentreSettings,
    task_id: &str,
    caller: &str,
    report: &Report,
) -> Result<Ack, Refusal> {
    let mut tx = db.begin().await?;
    let task = task::lock(&mut tx, task_id).await?.ok_or_else(|| not_found(task_id))?;
    is_target(&task, caller)?;
    let claimed = report.consumer_app_key.as_str();
    if !(claimed.is_empty() || claimed == caller) || report.task_id != task.task_id {
        let message = "the report names another consumer or task";
        return Err(Refusal::of(Code::IdentityMismatch, message));
    }
    if !REPORTED.contains(&report.state.as_str()) {
        let message = "the reported state is none";
        return Err(Refusal::of(Code::ResultStateInvalid, message));
    }
    if report.attempt > task.attempt {
        let message = format!("attempt {} was never dispatched", report.attempt);
        return Err(Refusal::of(Code::AttemptAhead, message));
    }
    let saved = saved_state(&tx, &task, report.attempt).await?;
    let is_current = report.attempt == task.attempt;
    if let Some(saved) = saved.filter(|saved| is_current && is_final(saved)) {
        return Ok(ack(&task, report, Decision::CurrentDuplicate, Some(saved)));
    }
    if task.is_over() {
        let state = Some(task.state.clone());
        return Ok(ack(&task, report, Decision::CenterTerminal, state));
    }
    match holds(&tx, &task).await {
        Ok(_) => {}
        Err(Refusal::Coded { code, message }) => {
            let (code, message) = (Some(code.as_str()), Some(message.as_str()));
            task::end(&mut tx, &task, "CANCELLED", code, message).await?;
            tx.commit("report.cancel").await?;
            let state = Some("CANCELLED".to_owned());
            return Ok(ack(&task, report, Decision::CenterTerminal, state));
        }
        Err(error) => return Err(error),
    }
    if !is_current {
        return Ok(ack(&task, report, Decision::StaleRetry, None));
    }
    accept(tx, settings, &task, report).await?;
    Ok(ack(&task, report, Decision::CurrentAccepted, Some(report.state.clone())))
}

fn ack(task: &Task, report: &Report, decision: Decision, state: Option<String>) -> Ack {
    Ack {
        task_id: task.task_id.clone(),
        consumer_app_key: task.coordinate.consumer.clone(),
        decision,
        report_attempt: report.attempt,
        attempt: task.attempt,
        result_state: state,
        stale: report.attempt < task.attempt,
    }
}

async fn saved_state(tx: &Tx, task: &Task, attempt: i64) -> Result<Option<String>, Refusal> {
    let query = sql!(
        "SELECT state FROM answer_reconcile_result
         WHERE task_id = :task_id AND attempt = :attempt AND deleted = 0",
        task_id = task.task_id.as_str(),
        attempt = attempt,
    );
    Ok(tx.row(query).await?.map(|row| row.text("state")).transpose()?)
}

async fn accept(
    mut tx: Tx,
    settings: &CentreSettings,
    task: &Task,
    report: &Report,
) -> Result<(), Refusal> {
    let is_whole = task.manifest_complete && report.manifest_complete && report.local_completed;
    if report.state == "COMPLETED" && !(is_whole && report.unresolved == 0) {
        let message = "COMPLETED needs both sets read to their ends and nothing unresolved";
        return Err(Refusal::of(Code::ResultStateInvalid, message));
    }
    save(&mut tx, settings, task, report).await?;
    if report.state == "RUNNING" {
        keep_running(&mut tx, settings, task).await?;
        tx.commit("report.running").await?;
        return Ok(());
    }
    let now = tx.now();
    let counts = serde_json::to_string(&report.counts).unwrap_or_default();
    task::end(&mut tx, task, &report.state, None, None).await?;
    let update = sql!(
        "UPDATE answer_reconcile_task SET counts = :counts, update_time = :now WHERE id = :id",
        counts = counts,
        now = now,
        id = task.id,
    );
    tx.execute(update).await?;
    tx.commit("report.final").await?;
    Ok(())
}

/// A sign of life renews the lease and changes no counts. After the lease expired the task may
/// stand QUEUED: it runs on, unless another task of the consumer is in flight by now.
async fn keep_running(tx: &mut Tx, settings: &CentreSettings, task: &Task) -> Result<(), Refusal> {
    let consumer = task.coordinate.consumer.as_str();
    let others = sql!(
        "SELECT COUNT(*) AS n FROM answer_reconcile_task
         WHERE active_consumer_key = :consumer AND id <> :id",
        consumer = consumer,
        id = task.id,
    );
    if tx.count(others).await? > 0 {
        return Ok(());
    }
    let now = tx.now();
    let until: Instant = now + settings.lease;
    let update = sql!(
        "UPDATE answer_reconcile_task
         SET state = 'RUNNING', active_consumer_key = :consumer, lease_until = :until,
             next_dispatch_at = :until, update_time = :now
         WHERE id = :id AND state IN ('QUEUED', 'DISPATCHED', 'RUNNING')",
        consumer = consumer,
        until = until,
        now = now,
        id = task.id,
    );
    tx.execute(update).await?;
    Ok(())
}

/// One row an attempt: what was RUNNING may become final, what is final stays.
async fn save(
    tx: &mut Tx,
    settings: &CentreSettings,
    task: &Task,
    report: &Report,
) -> Result<(), Refusal> {
    let now = tx.now();
    let counts = serde_json::to_string(&report.counts).unwrap_or_default();
    let errors = cut(&report.errors, settings.max_error_items, settings.max_error_chars);
    let bound = |query: Query| {
        query
            .bind("task_id", task.task_id.as_str())
            .bind("attempt", report.attempt)
            .bind("state", report.state.as_str())
            .bind("counts", counts.as_str())
            .bind("errors", errors.as_str())
            .bind("local", report.local_completed)
            .bind("manifest", report.manifest_complete)
            .bind("now", now)
    };
    let insert = bound(Query::new(
        "{insert_ignore} INTO answer_reconcile_result (task_id, attempt, state, counts, errors,
           local_completed, manifest_complete, received_at, create_time)
         VALUES (:task_id, :attempt, :state, :counts, :errors, :local, :manifest, :now, :now)
         {or_ignore}",
    ));
    if tx.execute(insert).await? == 1 {
        return Ok(());
    }
    let update = bound(Query::new(
        "UPDATE answer_reconcile_result
         SET state = :state, counts = :counts, errors = :errors, local_completed = :local,
             manifest_complete = :manifest, received_at = :now, update_time = :now
         WHERE task_id = :task_id AND attempt = :attempt AND state = 'RUNNING'",
    ));
    tx.execute(update).await?;
    Ok(())
}

/// The items that fit, field by field. Counts are never cut.
fn cut(errors: &[ErrorItem], most_items: usize, most_chars: usize) -> String {
    let mut kept = Vec::new();
    let mut length = 2;
    for item in errors.iter().take(most_items) {
        let word = |text: &str| text.chars().take(MAX_WORD).collect::<String>();
        let item = ErrorItem {
            code: word(&item.code),
            answer_uuid: item.answer_uuid.as_deref().map(word),
            revision: item.revision,
            range: item.range.as_deref().map(word),
        };
        let text = serde_json::to_string(&item).unwrap_or_default();
        length += text.chars().count() + 1;
        if length > most_chars {
            break;
        }
        kept.push(text);
    }
    format!("[{}]", kept.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_items_are_cut_in_number_in_characters_and_in_each_word() {
        let item = |code: &str| ErrorItem { code: code.into(), ..ErrorItem::default() };
        let many = vec![item("MISSING"); 100];
        let count = |text: &str| serde_json::from_str::<Vec<ErrorItem>>(text).unwrap().len();
        assert_eq!(count(&cut(&many, 50, 100_000)), 50);
        let short = cut(&many, 50, 300);
        assert!(short.chars().count() <= 300 && count(&short) > 0, "{short}");
        let long = cut(&[item(&"字".repeat(999))], 50, 8000);
        assert!(long.chars().count() < 200, "{long}");
    }
}
