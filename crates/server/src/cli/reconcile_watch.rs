//! How far a reconciliation has come, while it runs.

use std::time::Duration;

use anyhow::Result;
use counterfoil_db::{Db, Instant};
use counterfoil_reconcile::form_centre::list;
use counterfoil_reconcile::form_centre::task::Task;
use counterfoil_reconcile::service_hall::list::{WorkRow, works};
use serde_json::Value;

use super::Session;
use super::watch::Watch;
use crate::findings;

/// How often running work is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Work rows shown.
const MAX_WORKS: u32 = 50;

/// Runs rounds and meanwhile shows how far the task in hand has come.
pub(super) async fn watched(
    session: &Session,
    db: &Db,
    began: Instant,
    running: impl Future<Output = Result<()>>,
) -> Result<()> {
    let watch = Watch::new(session, "reconciling".into(), None);
    tokio::pin!(running);
    loop {
        tokio::select! {
            outcome = &mut running => return outcome,
            () = tokio::time::sleep(LOOK_EVERY) => {
                // What is shown is a hint: an unreadable row shows nothing.
                let works = works(db, Some(began), 1).await.unwrap_or_default();
                if let Some(work) = works.first() {
                    watch.say(format!("{}: {}", work.task_id, findings::line(&work.counts)));
                }
            }
        }
    }
}

/// Waits for a task's end, which a person may stop waiting for, and shows its latest report.
pub(super) async fn follow(session: &Session, db: &Db, task: &str) -> Result<()> {
    let watch = Watch::new(session, format!("task {task}"), None);
    loop {
        let (task, reports) = list::one(db, task).await?;
        if task.is_over() {
            return Ok(());
        }
        let counts = reports.last().map(|report| findings::line(&report.counts));
        let Task { state, attempt, total_rows, .. } = task;
        let counts = counts.unwrap_or_default();
        watch.say(format!("{state}, attempt {attempt}, of {total_rows} rows: {counts}"));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What happened since then, at either side of this database.
pub(super) async fn since(db: &Db, then: Instant) -> Result<(Vec<Task>, Vec<WorkRow>)> {
    Ok((list::since(db, then).await?, works(db, Some(then), MAX_WORKS).await?))
}

/// A line a task.
pub(super) fn said(tasks: &[Task], works: &[WorkRow]) -> Vec<String> {
    let centre = tasks.iter().map(|task| {
        let counts = task.counts.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let counts = findings::line(&counts.unwrap_or(Value::Null));
        let reason = task.reason_code.as_deref().unwrap_or_default();
        let line = format!("centre: task {} is {} {reason} {counts}", task.task_id, task.state);
        line.trim_end().to_owned()
    });
    let hall = works.iter().map(|work| {
        let state = work.result_state.as_deref().unwrap_or(&work.state);
        let why = work.last_error_code.as_deref().unwrap_or_default();
        let counts = findings::line(&work.counts);
        format!("hall: task {} is {state} {why} {counts}", work.task_id).trim_end().to_owned()
    });
    centre.chain(hall).collect()
}
