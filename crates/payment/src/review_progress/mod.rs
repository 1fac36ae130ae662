//! S08: moves an approval through BILL_UPDATE, FINALIZE and LOCK_RELEASE, one batch a turn.
//!
//! The row that moves is the progress row that S07 made. Each turn leases it, commits one batch
//! with its cursor and counters, and lets go, so that many orders advance side by side. The order
//! itself is effective once FINALIZE has committed, and not a moment earlier; what is proved
//! before the lock is proved again under it.
//!
//! Source: payment-flow.md "S08 progress"; seed 003, chapters 3.5 to 3.7, 8.2 and 9.1.

mod bill_update;
mod facts;
mod finalize;
mod lock_release;
mod rules;
mod select;
mod supersede;

use counterfoil_db::{Db, Instant, transact};
use counterfoil_task::{Kind, LeaseTable, Selector, Taken, Turn, TurnEnd, Turns, Unit, WorkError};

use crate::kinds::REVIEW_PROGRESS;

pub use finalize::{RECHECK_VIOLATED, RecheckSettings, Violation, violations};
pub use rules::RULES;

pub(crate) use supersede::{is_review_being_applied, supersede_parked};

/// The lease of a progress row.
pub(crate) const LEASE: LeaseTable = LeaseTable {
    name: "fi_resident_income_payment_review_callback_progress",
    status: "phase_status",
    running: "RUNNING",
    open: &["INIT"],
    done: "SUCCESS",
    failed: "FAILED",
    version: "running_attempt",
    error_code: "last_error_code",
    error_message: "last_error_message",
};

/// S08's turns.
#[derive(Debug, Clone, Default)]
pub struct ReviewProgress {
    recheck: RecheckSettings,
}

impl ReviewProgress {
    /// Turns with these rules of the pre-payment recheck.
    pub fn new(recheck: RecheckSettings) -> ReviewProgress {
        ReviewProgress { recheck }
    }
}

#[async_trait::async_trait]
impl Turns for ReviewProgress {
    fn kind(&self) -> &'static Kind {
        &REVIEW_PROGRESS
    }

    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        Ok(taken.fairest(select::oldest(db, now).await?))
    }

    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        select::one(db, now, id).await
    }

    async fn named(
        &self,
        db: &Db,
        selector: &Selector,
        limit: u32,
    ) -> Result<Vec<Unit>, WorkError> {
        select::named(db, selector, limit).await
    }

    fn is_left_to_a_person(&self, code: &str) -> bool {
        code == RECHECK_VIOLATED
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        if !transact!(lease(unit, turn))? {
            return Ok(TurnEnd::Skipped);
        }
        match unit.group {
            select::BILL_UPDATE => transact!(bill_update::one_batch(unit.id, turn)),
            select::FINALIZE => finalize::finalize(unit.id, turn, &self.recheck).await,
            _ => transact!(lock_release::one_batch(unit.id, turn)),
        }
    }
}

/// Takes the row's lease; a row fresh from PREPARE enters BILL_UPDATE with it.
async fn lease(unit: &Unit, turn: &Turn<'_>) -> Result<bool, WorkError> {
    let mut tx = turn.db().begin().await?;
    bill_update::enter(&mut tx, unit).await?;
    if !turn.lease(&mut tx, &LEASE, unit).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    tx.commit("review_progress.lease").await?;
    Ok(true)
}
