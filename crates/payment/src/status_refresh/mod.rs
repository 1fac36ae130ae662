//! S12 (底层状态刷新): the three business tables say of each bill what the facts decide.
//!
//! A shard is a range of about a thousand formal lines. A turn takes the next scopes of one shard
//! (a scope is a station and a month): guard them, lock their records, read facts, decide, write
//! what differs, move the cursor, in one transaction under the shard's lease. The last turn of the
//! last shard makes the review's progress DONE: then, and not before, the order's new state may be
//! shown. Source: payment-flow.md "S12 status refresh → DONE"; seed 003, chapter 7.2.

mod finish;
mod plan;
mod record;
mod record_update;
mod refresh;
mod rules;
mod scope;
mod select;
mod shard;

use counterfoil_db::{Db, Instant, Read, sql, transact};
use counterfoil_task::{Kind, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError};

use crate::kinds::STATUS_REFRESH;

pub use plan::{
    BUILDER_VERSION, PlannedShard, SHARD_LINES, Source, insert_shards, plan_shards,
    plan_shards_between,
};
pub use rules::RULES;
pub use scope::LinesOf;
pub use select::RefreshCaps;

pub(crate) use refresh::{NamedBy, SUB_BATCH, refresh};
pub(crate) use scope::Scope;

/// S12's work.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusRefresh {
    /// How many shards may be RUNNING at once.
    pub caps: RefreshCaps,
}

/// The first shards of a source that wait, by their lines: what to kick once they are inserted.
/// Each that ends kicks the next one.
///
/// # Errors
/// The database's.
pub async fn first_waiting(
    from: &impl Read,
    source: Source,
    source_id: i64,
    limit: u32,
) -> Result<Vec<i64>, counterfoil_db::Error> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_status_refresh_shard
         WHERE source_type = :source AND source_id = :id AND task_status = 'PENDING'
           AND deleted = 0
         ORDER BY source_type, source_id, start_order_bill_id LIMIT :limit",
        source = source.as_str(),
        id = source_id,
        limit = limit,
    );
    from.rows(query).await?.iter().map(|row| row.int("id")).collect()
}

#[async_trait::async_trait]
impl Turns for StatusRefresh {
    fn kind(&self) -> &'static Kind {
        &STATUS_REFRESH
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        let next = select::next(db, now, taken, self.caps).await?;
        if next.is_none() {
            finish::settle(db).await?;
        }
        Ok(next)
    }

    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        select::eligible(db, now, id, self.caps).await
    }

    async fn named(
        &self,
        db: &Db,
        selector: &Selector,
        limit: u32,
    ) -> Result<Vec<Unit>, WorkError> {
        select::named(db, selector, limit).await
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        if transact!(shard::lease(unit, turn, self.caps))? {
            shard::sub_batch(unit, turn).await
        } else {
            Ok(TurnEnd::Skipped)
        }
    }
}
