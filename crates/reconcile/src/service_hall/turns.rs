//! The hall's handler: works on tasks, one whole task a turn.

use std::sync::Arc;

use counterfoil_db::{Db, Instant, Read, sql};
use counterfoil_task::{Kind, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError};

use super::HallSettings;
use super::centre::Centre;
use super::finish::{next, work_on};

/// answerReconcileWorkTask.
pub const WORK: Kind = Kind {
    handler: "answerReconcileWorkTask",
    task_type: "ANSWER_RECONCILE_WORK",
    prefix: "ARW",
    stage: "reconcile-work",
    default_round: 20,
    max_round: 1000,
};

/// Works on tasks.
pub struct Working {
    settings: HallSettings,
    centre: Arc<dyn Centre>,
}

impl Working {
    /// As configured.
    pub fn new(settings: HallSettings, centre: Arc<dyn Centre>) -> Working {
        Working { settings, centre }
    }
}

#[async_trait::async_trait]
impl Turns for Working {
    fn kind(&self) -> &'static Kind {
        &WORK
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        if !self.settings.enabled || taken.of("work") >= self.settings.max_work_per_scan {
            return Ok(None);
        }
        Ok(next(db, now, None).await?)
    }

    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        if !self.settings.enabled {
            return Ok(None);
        }
        Ok(next(db, now, Some(id)).await?)
    }

    async fn named(
        &self,
        db: &Db,
        selector: &Selector,
        limit: u32,
    ) -> Result<Vec<Unit>, WorkError> {
        let now = db.now().await?;
        let mut units = Vec::new();
        let names = selector.codes.iter().chain(&selector.keys).take(limit as usize);
        for name in names {
            let row = db
                .row(sql!(
                    "SELECT id FROM answer_reconcile_work WHERE task_id = :task_id",
                    task_id = name
                ))
                .await?;
            if let Some(row) = row {
                units.extend(self.eligible(db, now, row.int("id")?).await?);
            }
        }
        Ok(units)
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        work_on(&self.settings, self.centre.as_ref(), unit, turn).await
    }
}
