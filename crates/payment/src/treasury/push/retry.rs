//! paymentPushBatchPushRetry: pushes what is due, and asks about pushes without a verdict.
//!
//! A round counts what was not accepted as failed: it is no success, and its summary names the
//! batch.

use counterfoil_db::{Db, Instant};
use counterfoil_task::{Kind, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError};

use super::due::{self, Due};
use super::{Asked, Pushed, inquire_one, push_one};
use crate::treasury::port::Channels;

/// The handler of due batches.
pub const PUSH_RETRY: Kind = Kind {
    handler: "paymentPushBatchPushRetry",
    task_type: "PAYMENT_PUSH_BATCH_PUSH",
    prefix: "RIPPB",
    stage: "treasury-push",
    default_round: 50,
    max_round: 200,
};

const PUSH: &str = "push";
const INQUIRE: &str = "inquire";
const NAMED: &str = "named";

/// Pushes due batches through these channels.
#[derive(Debug, Clone)]
pub struct PushRetry {
    channels: Channels,
}

impl PushRetry {
    /// Pushes through these channels.
    pub fn new(channels: Channels) -> PushRetry {
        PushRetry { channels }
    }
}

fn unit(due: Due, group: &'static str) -> Unit {
    Unit { id: due.id, version: 0, group, retries: due.times, label: due.label }
}

#[async_trait::async_trait]
impl Turns for PushRetry {
    fn kind(&self) -> &'static Kind {
        &PUSH_RETRY
    }

    /// What is pushed or asked about is not due any more afterwards, whatever came of it.
    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        let batch = due::batch(db, now).await?.map(|due| (due.since, unit(due, PUSH)));
        let push = due::push(db, now).await?.map(|due| (due.since, unit(due, INQUIRE)));
        Ok(taken.fairest(batch.into_iter().chain(push).collect()))
    }

    /// Nobody kicks batches: the notice pushes them.
    async fn eligible(&self, _db: &Db, _now: Instant, _id: i64) -> Result<Option<Unit>, WorkError> {
        Ok(None)
    }

    /// A batch's number is both its code and its key.
    async fn named(
        &self,
        db: &Db,
        selector: &Selector,
        limit: u32,
    ) -> Result<Vec<Unit>, WorkError> {
        let numbers: Vec<String> = selector.codes.iter().chain(&selector.keys).cloned().collect();
        let found = due::named(db, &numbers, limit).await?;
        Ok(found.into_iter().map(|due| unit(due, NAMED)).collect())
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        let (db, channels) = (turn.db(), &self.channels);
        let pushed = match unit.group {
            INQUIRE => inquire_one(db, channels, unit.id).await?,
            NAMED => push_one(db, channels, unit.id, Asked::ByPerson).await?,
            _ => push_one(db, channels, unit.id, Asked::BySchedule).await?,
        };
        let failed = |code, what: &str| Err(WorkError::failed(code, format!("it was {what}")));
        match pushed {
            Pushed::Accepted => Ok(TurnEnd::Finished),
            Pushed::Lost => Ok(TurnEnd::Skipped),
            Pushed::Refused => failed("push-refused", "not accepted, and is tried again"),
            Pushed::Unknown => failed("push-without-verdict", "sent, and nobody knows yet"),
            Pushed::NeedsData => failed("push-needs-data", "not sent: a person must fix its data"),
        }
    }
}
