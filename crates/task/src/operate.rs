//! What a person may do to a task.

use counterfoil_db::{Db, Read, sql};
use counterfoil_protocol::TaskCode;

use crate::trace::{Action, Subject, Trace, record};
use crate::{Takeover, TaskError, TaskStatus};

/// What cancelling found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The task is CANCELLED now.
    Cancelled,
    /// It was neither PENDING nor FAILED: untouched.
    Refused(TaskStatus),
    /// There is no such task.
    Unknown,
}

/// Cancels a task that is PENDING or FAILED; traced with the person and the reason.
pub async fn cancel(
    db: &Db,
    code: &TaskCode,
    operator: i64,
    reason: &str,
) -> Result<CancelOutcome, TaskError> {
    let mut tx = db.begin().await?;
    let row = tx
        .row(sql!(
            "SELECT id, task_type, business_key, task_status FROM fi_async_task
             WHERE task_code = :code AND deleted = 0 {for_update}",
            code = code.as_str(),
        ))
        .await?;
    let Some(row) = row else {
        return Ok(CancelOutcome::Unknown);
    };
    let status = TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed);
    if !status.may_become(TaskStatus::Cancelled) || status == TaskStatus::Running {
        return Ok(CancelOutcome::Refused(status));
    }
    let now = tx.now();
    let id = row.int("id")?;
    tx.execute(sql!(
        "UPDATE fi_async_task
         SET task_status = 4, error_message = :reason, next_execute_time = NULL,
             update_user_id = :operator, update_time = :now
         WHERE id = :id AND task_status IN (0, 3)",
        reason = crate::run::cut(reason),
        operator = operator,
        now = now,
        id = id,
    ))
    .await?;
    let (task_type, business_key) = (row.text("task_type")?, row.text("business_key")?);
    let trace = Trace {
        task_id: id,
        code,
        task_type: &task_type,
        business_key: &business_key,
        action: Action::Cancel,
        source: Some(code),
        result: TaskStatus::Cancelled.to_string(),
        detail: Some(
            serde_json::json!({ "reason": reason, "was": status.to_string() }).to_string(),
        ),
        operator: Some(operator),
    };
    record(&mut tx, &trace, &Subject::none()).await?;
    tx.commit("task.cancel").await?;
    Ok(CancelOutcome::Cancelled)
}

/// What a rerun will do, said before it is done.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RerunPlan {
    /// Whether a manual claim would win now.
    pub will_run: bool,
    /// What will happen.
    pub will: Vec<String>,
    /// What will not happen.
    pub will_not: Vec<String>,
    /// What cannot happen.
    pub cannot: Vec<String>,
}

impl RerunPlan {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let parts = [("will", &self.will), ("will not", &self.will_not), ("cannot", &self.cannot)];
        for (what, sentences) in parts {
            for sentence in sentences {
                text.push_str(&format!("{what:<9}{sentence}\n"));
            }
        }
        text
    }
}

/// The facts a rerun is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RerunFacts {
    /// The task's status.
    pub status: TaskStatus,
    /// Its attempt.
    pub attempt: i64,
    /// Its counted failures.
    pub retries: i64,
    /// Whether a RUNNING task is stale.
    pub stale: bool,
    /// Whether its kind passes work on and leaves the row RUNNING.
    pub hands_over: bool,
}

/// Decides what a rerun would do. Pure.
pub fn plan_rerun(facts: RerunFacts) -> RerunPlan {
    let RerunFacts { status, attempt, retries, stale, hands_over } = facts;
    let will_run = match status {
        TaskStatus::Pending | TaskStatus::Failed => true,
        TaskStatus::Running => stale && !hands_over,
        TaskStatus::Success | TaskStatus::Cancelled => false,
    };
    let mut plan = RerunPlan { will_run, will: vec![], will_not: vec![], cannot: vec![] };
    if will_run {
        plan.will.push(format!("claim attempt {} now, whatever the due time", attempt + 1));
        plan.will.push("go on from what earlier attempts committed".into());
        plan.will_not.push(format!("reset the {retries} counted failures; a new one adds to them"));
        plan.cannot.push("do again what was done: every write proves that it is still due".into());
    } else {
        let why = match status {
            TaskStatus::Running if hands_over => {
                "it is RUNNING and its work was passed on: that goes on by its own handler"
            }
            TaskStatus::Running => "it is RUNNING and its process touched it within 10 minutes",
            TaskStatus::Success => "it is SUCCESS: done work is never opened again",
            _ => "it is CANCELLED: given up for good",
        };
        plan.will_not.push(format!("run: {why}"));
        plan.cannot.push("be forced".into());
    }
    plan
}

/// Reads one task and says what a rerun would do.
pub async fn rerun_plan(
    db: &Db,
    code: &TaskCode,
    takeover: Takeover,
) -> Result<RerunPlan, TaskError> {
    Ok(plan_rerun(rerun_facts(db, code, takeover).await?))
}

/// Reads what a rerun of one task is judged by.
pub async fn rerun_facts(
    db: &Db,
    code: &TaskCode,
    takeover: Takeover,
) -> Result<RerunFacts, TaskError> {
    let now = db.now().await?;
    let row = db
        .row(sql!(
            "SELECT task_status, COALESCE(running_attempt, 0) AS attempt,
                    COALESCE(retry_count, 0) AS retries, update_time
             FROM fi_async_task WHERE task_code = :code AND deleted = 0",
            code = code.as_str(),
        ))
        .await?
        .ok_or_else(|| TaskError::Vanished { code: code.clone() })?;
    Ok(RerunFacts {
        status: TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed),
        attempt: row.int("attempt")?,
        retries: row.int("retries")?,
        stale: row.instant("update_time")? <= now - crate::claim::STALE_AFTER,
        hands_over: takeover != Takeover::Stale,
    })
}

/// Writes down who runs a task again, and why, before it is run.
pub async fn trace_rerun(
    db: &Db,
    code: &TaskCode,
    operator: i64,
    reason: &str,
) -> Result<(), TaskError> {
    let mut tx = db.begin().await?;
    let row = tx
        .row(sql!(
            "SELECT id, task_type, business_key, task_status FROM fi_async_task
             WHERE task_code = :code AND deleted = 0",
            code = code.as_str(),
        ))
        .await?
        .ok_or_else(|| TaskError::Vanished { code: code.clone() })?;
    let (task_type, business_key) = (row.text("task_type")?, row.text("business_key")?);
    let status = TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed);
    let trace = Trace {
        task_id: row.int("id")?,
        code,
        task_type: &task_type,
        business_key: &business_key,
        action: Action::Rerun,
        source: None,
        result: status.to_string(),
        detail: Some(serde_json::json!({ "reason": reason }).to_string()),
        operator: Some(operator),
    };
    record(&mut tx, &trace, &Subject::none()).await?;
    tx.commit("task.rerun").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rerun_claims_what_is_open_or_stale_and_nothing_else() {
        let table = [
            (TaskStatus::Pending, false, true),
            (TaskStatus::Failed, false, true),
            (TaskStatus::Running, false, false),
            (TaskStatus::Running, true, true),
            (TaskStatus::Success, true, false),
            (TaskStatus::Cancelled, true, false),
        ];
        for (status, stale, will_run) in table {
            let facts = RerunFacts { status, attempt: 1, retries: 3, stale, hands_over: false };
            assert_eq!(plan_rerun(facts).will_run, will_run, "{facts:?}");
            let passed_on = RerunFacts { hands_over: true, ..facts };
            let claimable = will_run && status != TaskStatus::Running;
            assert_eq!(plan_rerun(passed_on).will_run, claimable, "{passed_on:?}");
        }
    }
}
