//! The centre's two handlers: making tasks on schedule, and moving tasks on.

use std::sync::Arc;

use counterfoil_db::{Db, Instant, Read, sql};
use counterfoil_task::{Kind, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError};

use super::CentreSettings;
use super::create::{Filter, NewTask, business_day, insert, least_recent, schedule_key};
use super::dispatch::{Dispatched, Halls, dispatch, is_busy, recover};
use super::manifest::{Materialised, materialise};
use super::task::{Task, task_columns};
use crate::refusal::Refusal;
use crate::wire::Coordinate;

/// answerReconcileScheduleTask.
pub const SCHEDULE: Kind = Kind {
    handler: "answerReconcileScheduleTask",
    task_type: "ANSWER_RECONCILE_SCHEDULE",
    prefix: "ARS",
    stage: "reconcile-schedule",
    default_round: 20,
    max_round: 1000,
};

/// answerReconcileDispatchTask.
pub const DISPATCH: Kind = Kind {
    handler: "answerReconcileDispatchTask",
    task_type: "ANSWER_RECONCILE_DISPATCH",
    prefix: "ARD",
    stage: "reconcile-dispatch",
    default_round: 60,
    max_round: 1000,
};

fn failure(refusal: Refusal) -> WorkError {
    match refusal {
        Refusal::Db(error) => WorkError::Db(error),
        Refusal::Coded { code, message } => {
            WorkError::failed("refused", format!("{code}: {message}"))
        }
    }
}

/// Makes the day's tasks, one grant a turn, least recently reconciled first.
pub struct Schedule {
    settings: CentreSettings,
}

impl Schedule {
    /// As configured.
    pub fn new(settings: CentreSettings) -> Schedule {
        Schedule { settings }
    }
}

#[async_trait::async_trait]
impl Turns for Schedule {
    fn kind(&self) -> &'static Kind {
        &SCHEDULE
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        let made = taken.of("grant");
        if !self.settings.schedule_enabled || made >= self.settings.max_tasks_per_run {
            return Ok(None);
        }
        let prefix = format!("{}:", business_day(now));
        let filter = Filter { consumer: None, school: None, form: None, key_prefix: Some(&prefix) };
        let found = least_recent(db, &filter, 1).await.map_err(failure)?;
        Ok(found.into_iter().next().map(|(id, at)| Unit {
            id,
            version: 0,
            group: "grant",
            retries: 0,
            label: format!("{}:{}:{}", at.consumer, at.school, at.form),
        }))
    }

    async fn eligible(&self, _: &Db, _: Instant, _: i64) -> Result<Option<Unit>, WorkError> {
        Ok(None)
    }

    async fn named(&self, _: &Db, _: &Selector, _: u32) -> Result<Vec<Unit>, WorkError> {
        Ok(Vec::new())
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        let db = turn.db();
        let row = db
            .row(sql!(
                "SELECT app_key, sch_id, form_uuid FROM form_consumer_grant WHERE id = :id",
                id = unit.id
            ))
            .await?;
        let Some(row) = row else { return Ok(TurnEnd::Skipped) };
        let at = Coordinate {
            consumer: row.text("app_key")?,
            school: row.text("sch_id")?,
            form: row.text("form_uuid")?,
            answer: None,
        };
        let key = schedule_key(&business_day(db.now().await?), &at);
        let made = counterfoil_db::transact!(insert(
            db,
            &self.settings,
            NewTask {
                coordinate: &at,
                trigger: "SCHEDULED",
                key: Some(key.clone()),
                actor: "schedule",
            }
        ));
        match made.map_err(failure)? {
            Some(made) if made.state == "QUEUED" => Ok(TurnEnd::Finished),
            Some(_) => Ok(TurnEnd::GivenUp),
            None => Ok(TurnEnd::Skipped),
        }
    }
}

/// Takes expired leases back, makes manifests, and dispatches: one step of one task a turn.
pub struct Dispatching {
    settings: CentreSettings,
    halls: Arc<dyn Halls>,
}

impl Dispatching {
    /// As configured.
    pub fn new(settings: CentreSettings, halls: Arc<dyn Halls>) -> Dispatching {
        Dispatching { settings, halls }
    }

    async fn oldest(&self, db: &Db, now: Instant) -> Result<Vec<(i64, Unit)>, Refusal> {
        let mut oldest = Vec::new();
        let expired = db
            .row(sql!(
                "SELECT id, task_id FROM answer_reconcile_task
                 WHERE state IN ('DISPATCHED', 'RUNNING') AND deleted = 0
                   AND (lease_until IS NULL OR lease_until <= :now) ORDER BY id LIMIT 1",
                now = now
            ))
            .await?;
        let pending = db
            .row(sql!(
                "SELECT id, task_id FROM answer_reconcile_task
                 WHERE state = 'QUEUED' AND manifest_complete = 0 AND manifest_state = 'PENDING'
                   AND deleted = 0 ORDER BY id LIMIT 1"
            ))
            .await?;
        let due = db
            .row(sql!(
                "SELECT t.id, t.task_id FROM answer_reconcile_task t
                 WHERE t.state = 'QUEUED' AND t.manifest_complete = 1 AND t.deleted = 0
                   AND (t.next_dispatch_at IS NULL OR t.next_dispatch_at <= :now)
                   AND NOT EXISTS (SELECT 1 FROM answer_reconcile_task o
                     WHERE o.active_consumer_key = t.consumer_app_key AND o.id <> t.id)
                 ORDER BY t.id LIMIT 1",
                now = now
            ))
            .await?;
        for (group, row) in [("lease", expired), ("manifest", pending), ("dispatch", due)] {
            if let Some(row) = row {
                let (id, label) = (row.int("id")?, row.text("task_id")?);
                oldest.push((id, Unit { id, version: 0, group, retries: 0, label }));
            }
        }
        Ok(oldest)
    }

    /// The step that a task could take now.
    async fn step(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, Refusal> {
        const FIND: &str = concat!(
            "SELECT ",
            task_columns!(),
            " FROM answer_reconcile_task WHERE id = :id AND deleted = 0"
        );
        let Some(row) = db.row(sql!(FIND, id = id)).await? else { return Ok(None) };
        let task = Task::of(&row)?;
        let group = match task.state.as_str() {
            "QUEUED" if !task.manifest_complete => "manifest",
            "QUEUED" if task.next_dispatch_at.is_none_or(|due| due <= now) => {
                if is_busy(db, &task).await? {
                    return Ok(None);
                }
                "dispatch"
            }
            "DISPATCHED" | "RUNNING" if task.lease_until.is_none_or(|until| until <= now) => {
                "lease"
            }
            _ => return Ok(None),
        };
        Ok(Some(Unit { id, version: 0, group, retries: 0, label: task.task_id }))
    }
}

#[async_trait::async_trait]
impl Turns for Dispatching {
    fn kind(&self) -> &'static Kind {
        &DISPATCH
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        if !self.settings.dispatch_enabled {
            return Ok(None);
        }
        Ok(taken.fairest(self.oldest(db, now).await.map_err(failure)?))
    }

    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        if !self.settings.dispatch_enabled {
            return Ok(None);
        }
        self.step(db, now, id).await.map_err(failure)
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
            if let Some(task) = super::task::find(db, name).await? {
                units.extend(self.eligible(db, now, task.id).await?);
            }
        }
        Ok(units)
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        let (db, id) = (turn.db(), unit.label.as_str());
        let ended = match unit.group {
            "manifest" => {
                let made = materialise(db, &self.settings, id).await.map_err(failure)?;
                return Ok(match made {
                    Materialised::Complete => TurnEnd::Advanced,
                    Materialised::Refused => TurnEnd::GivenUp,
                    Materialised::NothingToDo => TurnEnd::Skipped,
                });
            }
            "lease" => recover(db, &self.settings, id).await,
            _ => dispatch(db, &self.settings, self.halls.as_ref(), id).await,
        };
        Ok(match ended.map_err(failure)? {
            Dispatched::Sent => TurnEnd::Finished,
            Dispatched::Later => TurnEnd::Finished,
            Dispatched::Ended => TurnEnd::GivenUp,
            Dispatched::Skipped => TurnEnd::Skipped,
        })
    }
}
