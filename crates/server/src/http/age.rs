//! How long the oldest unfinished work of each stage has waited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use counterfoil_db::{Db, Read, Result, sql};
use counterfoil_payment::kinds::{REVIEW_PROGRESS, STATUS_REFRESH};
use counterfoil_payment::treasury::push::PUSH_RETRY;
use counterfoil_reconcile::form_centre::turns::DISPATCH;
use counterfoil_reconcile::service_hall::turns::WORK;
use metrics::gauge;

use super::measured::OLDEST;

/// However often somebody asks, the database is asked once in this time.
const AT_MOST_EVERY: Duration = Duration::from_secs(10);

/// A stage whose work is rows of a table of its own.
const TABLES: [(&str, &str); 5] = [
    (
        REVIEW_PROGRESS.stage,
        "SELECT create_time AS since FROM fi_resident_income_payment_review_callback_progress
         WHERE deleted = 0 AND main_task_status = 'RUNNING' ORDER BY id LIMIT 1",
    ),
    (
        STATUS_REFRESH.stage,
        "SELECT create_time AS since FROM fi_resident_income_payment_status_refresh_shard
         WHERE deleted = 0 AND task_status <> 'SUCCESS' ORDER BY id LIMIT 1",
    ),
    (
        PUSH_RETRY.stage,
        "SELECT create_time AS since FROM fi_resident_income_payment_push_batch
         WHERE deleted = 0 AND status <> 'PUSH_SUCCESS' ORDER BY id LIMIT 1",
    ),
    (
        DISPATCH.stage,
        "SELECT create_time AS since FROM answer_reconcile_task
         WHERE state IN ('QUEUED', 'DISPATCHED', 'RUNNING') ORDER BY id LIMIT 1",
    ),
    (
        WORK.stage,
        "SELECT create_time AS since FROM answer_reconcile_work
         WHERE state IN ('QUEUED', 'RUNNING', 'STALLED') ORDER BY id LIMIT 1",
    ),
];

/// Tells the gauges, unless they were told just now.
#[derive(Debug, Default)]
pub struct Ages(tokio::sync::Mutex<Option<Instant>>);

impl Ages {
    /// Looks, unless somebody has within the last seconds.
    pub async fn look(&self, db: &Db, stages: &BTreeMap<&'static str, &'static str>) {
        let mut last = self.0.lock().await;
        if last.is_some_and(|last| last.elapsed() < AT_MOST_EVERY) {
            return;
        }
        if let Err(error) = tell(db, stages).await {
            tracing::warn!(%error, "the age of waiting work cannot be read");
        }
        *last = Some(Instant::now());
    }
}

async fn tell(db: &Db, stages: &BTreeMap<&'static str, &'static str>) -> Result<()> {
    let now = db.now().await?;
    let told = |stage: &'static str, since: Option<counterfoil_db::Instant>| {
        let seconds = since.map_or(0, |since| (now - since).num_seconds().max(0));
        gauge!(OLDEST, "stage" => stage).set(seconds as f64);
    };
    for (task_type, stage) in stages {
        // The index by type and status finds the unfinished ones; finished ones are never read.
        let oldest = sql!(
            "SELECT id, create_time AS since FROM fi_async_task
             WHERE deleted = 0 AND task_type = :task_type AND task_status IN (0, 1, 3)
             ORDER BY create_time, id LIMIT 1",
            task_type = *task_type,
        );
        let row = db.row(oldest).await?;
        told(stage, row.map(|row| row.instant("since")).transpose()?);
    }
    for (stage, text) in TABLES {
        let row = db.row(sql!(text)).await?;
        told(stage, row.map(|row| row.instant("since")).transpose()?);
    }
    Ok(())
}
