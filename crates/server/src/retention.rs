//! Work and logs that nobody needs any more leave the tables that rounds scan, batch by batch, as a
//! handler like any other: on its cron expression, by an XXL-Job admin, or by `job run`.
//!
//! What leaves is what no rule, no open order and no proof looks for. Tasks of S03 to S07 and S09
//! stay: a few a version, and orders' pages, rules and the rebuild of side effects look for them.

use chrono::TimeDelta;
use counterfoil_db::{Db, Instant};
use counterfoil_payment::kinds::BILL_SNAPSHOT;
use counterfoil_payment::partner_push::{archive_bodies, oldest_archivable};
use counterfoil_payment::treasury::notice::PUSH_BATCH_NOTIFY;
use counterfoil_reconcile::form_centre::prune::{oldest_prunable, prune_manifest};
use counterfoil_review::decision_notice::DECISION_NOTICE;
use counterfoil_task::{
    Kind, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError, archive_finished, oldest_finished,
};
use serde::{Deserialize, Serialize};

/// The handler. A turn moves one batch.
pub const RETENTION: Kind = Kind {
    handler: "retentionTask",
    task_type: "RETENTION",
    prefix: "retention",
    stage: "retention",
    default_round: 100,
    max_round: 1000,
};

/// Kinds whose finished tasks are archived: the many, and those that nobody asks for again.
pub const ARCHIVED: [&Kind; 3] = [&BILL_SNAPSHOT, &DECISION_NOTICE, &PUSH_BATCH_NOTIFY];

/// Rows of a batch at most.
const MAX_BATCH: u32 = 1000;
/// Days that anything can be told to be kept.
const MAX_DAYS: u32 = 36_500;

/// `[retention]`: how long what is kept. 0 days = for ever.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RetentionConfig {
    /// Days until a finished task is archived with its traces.
    pub task_days: u32,
    /// Days until the bodies of an accepted delivery of an ended order are archived.
    pub delivery_days: u32,
    /// Days until the manifest of an ended reconciliation is deleted.
    pub manifest_days: u32,
    /// Rows of one transaction.
    pub batch_rows: u32,
}

impl Default for RetentionConfig {
    fn default() -> RetentionConfig {
        RetentionConfig { task_days: 400, delivery_days: 400, manifest_days: 90, batch_rows: 1000 }
    }
}

impl RetentionConfig {
    /// What is wrong with it.
    ///
    /// # Errors
    /// A limit out of its range.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            (1..=MAX_BATCH).contains(&self.batch_rows),
            "retention.batch-rows must be from 1 to {MAX_BATCH}"
        );
        let days = [self.task_days, self.delivery_days, self.manifest_days];
        anyhow::ensure!(
            days.into_iter().all(|days| days <= MAX_DAYS),
            "retention: at most {MAX_DAYS} days; 0 = for ever"
        );
        Ok(())
    }
}

/// What leaves, each with its own age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Tasks(&'static Kind),
    Deliveries,
    Manifests,
}

/// In the order of [`Unit::id`].
const SORTS: [Sort; 5] = [
    Sort::Tasks(ARCHIVED[0]),
    Sort::Tasks(ARCHIVED[1]),
    Sort::Tasks(ARCHIVED[2]),
    Sort::Deliveries,
    Sort::Manifests,
];

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::Tasks(kind) => kind.stage,
            Sort::Deliveries => "deliveries",
            Sort::Manifests => "manifests",
        }
    }

    fn unit(self, id: i64) -> Unit {
        let label = self.name().to_owned();
        Unit { id, version: 0, group: self.name(), retries: 0, label }
    }
}

/// The handler's work.
#[derive(Debug, Clone, Copy)]
pub struct Retention(pub RetentionConfig);

impl Retention {
    /// What ended before this leaves; `None` = nothing does.
    fn before(self, sort: Sort, now: Instant) -> Option<Instant> {
        let days = match sort {
            Sort::Tasks(_) => self.0.task_days,
            Sort::Deliveries => self.0.delivery_days,
            Sort::Manifests => self.0.manifest_days,
        };
        (days > 0).then(|| now - TimeDelta::days(days.into()))
    }

    async fn oldest(self, db: &Db, sort: Sort, now: Instant) -> Result<Option<Instant>, WorkError> {
        let Some(before) = self.before(sort, now) else {
            return Ok(None);
        };
        Ok(match sort {
            Sort::Tasks(kind) => oldest_finished(db, kind.task_type, before).await?,
            Sort::Deliveries => oldest_archivable(db, before).await?,
            Sort::Manifests => oldest_prunable(db, before).await?,
        })
    }
}

fn sort_of(id: i64) -> Option<Sort> {
    usize::try_from(id).ok().and_then(|id| SORTS.get(id)).copied()
}

#[async_trait::async_trait]
impl Turns for Retention {
    fn kind(&self) -> &'static Kind {
        &RETENTION
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        let mut waiting = Vec::new();
        for (id, sort) in (0..).zip(SORTS) {
            if let Some(since) = self.oldest(db, sort, now).await? {
                waiting.push((since, sort.unit(id)));
            }
        }
        Ok(taken.fairest(waiting))
    }

    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        let Some(sort) = sort_of(id) else {
            return Ok(None);
        };
        Ok(self.oldest(db, sort, now).await?.map(|_| sort.unit(id)))
    }

    async fn named(&self, _: &Db, _: &Selector, _: u32) -> Result<Vec<Unit>, WorkError> {
        // No task is behind a batch: there is nothing to be named.
        Ok(Vec::new())
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        let (db, most) = (turn.db(), self.0.batch_rows);
        let Some(sort) = sort_of(unit.id) else {
            return Ok(TurnEnd::Skipped);
        };
        let now = counterfoil_db::Db::now(db).await?;
        let Some(before) = self.before(sort, now) else {
            return Ok(TurnEnd::Skipped);
        };
        let moved = match sort {
            Sort::Tasks(kind) => archive_finished(db, kind.task_type, before, most).await?,
            Sort::Deliveries => archive_bodies(db, before, most).await?,
            Sort::Manifests => prune_manifest(db, before, most).await?,
        };
        tracing::info!(what = sort.name(), moved, "left the tables that rounds scan");
        Ok(if moved == 0 { TurnEnd::Skipped } else { TurnEnd::Finished })
    }
}
