//! An approved treasury order becomes push batches.
//!
//! Source: payment-flow.md "S09 side effects", seed 003 chapter 7.6. Three kinds of transactions:
//! open (proves locks and amounts, remembers the split rules), chunks of at most 1000 lines with a
//! cursor, and finish (proves the sums, shows the batches, accepts the notice). Until finish a
//! batch's row has `deleted = 1`: nobody pushes half a build. Each of them holds the order's row
//! lock and looks again whether the order may still be paid, so that an order cancelled meanwhile
//! is left alone. Whoever comes after a crash goes on from the cursor.

mod chunk;
mod finish;
mod open;
pub mod split;

use std::sync::Arc;

use counterfoil_db::{Db, transact};
use counterfoil_protocol::{DataVersion, OrderId, SubmitRound, TaskCode};
use counterfoil_task::{Kicker, Run, Verdict, WorkError, accept_or_reuse};

use super::guard::{CreationGuard, Guarded};
use super::{TreasuryError, notice};
use crate::side_effect::{BaseDataBuild, ProgressFacts};
use open::Opened;

/// What batches are to be created of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The order.
    pub order: OrderId,
    /// The data version that was approved.
    pub data: DataVersion,
    /// Its round.
    pub round: SubmitRound,
    /// Payable lines that the review approved, where the caller knows.
    pub payable_count: Option<i64>,
}

/// How creating batches ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The batches are there now.
    Now,
    /// They were there before.
    Before,
    /// The order is not to be pushed, and why.
    NotApplicable(String),
}

/// Creates batches for one strategy.
#[derive(Clone)]
pub struct BatchCreation {
    strategy: String,
    guard: Arc<dyn CreationGuard>,
}

impl std::fmt::Debug for BatchCreation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchCreation").field("strategy", &self.strategy).finish_non_exhaustive()
    }
}

impl BatchCreation {
    /// Batches to be pushed by `strategy`; `guard` keeps other processes out where it can.
    pub fn new(strategy: impl Into<String>, guard: Arc<dyn CreationGuard>) -> BatchCreation {
        BatchCreation { strategy: strategy.into(), guard }
    }

    /// PAYMENT_RESULT_BASE_DATA_BUILD: the work of a claimed side-effect task.
    ///
    /// An order that is not to be pushed (any more) is a success with a note: there is nothing to
    /// build.
    pub async fn build(&self, run: &Run<'_>, target: Target) -> Result<Verdict, WorkError> {
        let _guarded = self.enter(target.order).await?;
        match transact!(self.open_fenced(run, target))? {
            Opened::Building => {}
            Opened::Exists => return transact!(exists(run)),
            Opened::NotApplicable(why) => return transact!(not_applicable(run, &why)),
        }
        loop {
            run.checkpoint()?;
            match transact!(chunk_fenced(run, target))? {
                chunk::Step::Done => {}
                chunk::Step::Nothing => break,
                chunk::Step::Abandoned(why) => return transact!(not_applicable(run, &why)),
            }
        }
        transact!(finish_fenced(run, target))
    }

    /// The same for whoever has no task, such as tests and an operator's repair.
    ///
    /// # Errors
    /// As named in [`TreasuryError`]; nothing is shown to the pusher then.
    pub async fn create(
        &self,
        db: &Db,
        kicker: &Kicker,
        target: Target,
    ) -> Result<Created, TreasuryError> {
        let _guarded = self.enter(target.order).await?;
        match transact!(self.try_open(db, target))? {
            Opened::Building => {}
            Opened::Exists => return Ok(Created::Before),
            Opened::NotApplicable(why) => return Ok(Created::NotApplicable(why)),
        }
        loop {
            match transact!(try_chunk(db, target))? {
                chunk::Step::Done => {}
                chunk::Step::Nothing => break,
                chunk::Step::Abandoned(why) => return Ok(Created::NotApplicable(why)),
            }
        }
        transact!(try_finish(db, kicker, target))
    }

    async fn enter(&self, order: OrderId) -> Result<Guarded, TreasuryError> {
        let entered = self.guard.enter(order).await;
        entered.ok_or(TreasuryError::CreationBusy { order })
    }

    async fn open_fenced(&self, run: &Run<'_>, target: Target) -> Result<Opened, WorkError> {
        let mut tx = run.begin().await?;
        let opened = open::open(&mut tx, target, &self.strategy).await?;
        tx.commit("treasury.create.open").await?;
        Ok(opened)
    }

    async fn try_open(&self, db: &Db, target: Target) -> Result<Opened, TreasuryError> {
        let mut tx = db.begin().await?;
        let opened = open::open(&mut tx, target, &self.strategy).await?;
        tx.commit("treasury.create.open").await?;
        Ok(opened)
    }
}

/// What S09 builds for PAYMENT_RESULT_BASE_DATA_BUILD.
#[async_trait::async_trait]
impl BaseDataBuild for BatchCreation {
    async fn build(&self, run: &Run<'_>, progress: ProgressFacts) -> Result<Verdict, WorkError> {
        let target = Target {
            order: progress.order,
            data: progress.data_version,
            round: progress.round,
            payable_count: Some(progress.payable_count),
        };
        BatchCreation::build(self, run, target).await
    }
}

async fn chunk_fenced(run: &Run<'_>, target: Target) -> Result<chunk::Step, WorkError> {
    let mut tx = run.begin().await?;
    let step = chunk::one(&mut tx, target).await?;
    tx.commit("treasury.create.chunk").await?;
    Ok(step)
}

async fn try_chunk(db: &Db, target: Target) -> Result<chunk::Step, TreasuryError> {
    let mut tx = db.begin().await?;
    let step = chunk::one(&mut tx, target).await?;
    tx.commit("treasury.create.chunk").await?;
    Ok(step)
}

async fn finish_fenced(run: &Run<'_>, target: Target) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    match finish::finish(&mut tx, target).await? {
        finish::Finished::Shown => {
            let seed = notice::seed(target, Some(run.code().clone()));
            tx.accept(&seed).await?;
            tx.succeed("treasury.create.finish").await
        }
        finish::Finished::Abandoned(why) => {
            tx.succeed_as_stale("treasury.create.abandon", &why).await
        }
    }
}

async fn try_finish(db: &Db, kicker: &Kicker, target: Target) -> Result<Created, TreasuryError> {
    let mut tx = db.begin().await?;
    let created = match finish::finish(&mut tx, target).await? {
        finish::Finished::Shown => {
            let source: Option<TaskCode> = None;
            accept_or_reuse(&mut tx, &notice::seed(target, source), kicker).await?;
            Created::Now
        }
        finish::Finished::Abandoned(why) => Created::NotApplicable(why),
    };
    tx.commit("treasury.create.finish").await?;
    Ok(created)
}

async fn exists(run: &Run<'_>) -> Result<Verdict, WorkError> {
    run.begin().await?.succeed("treasury.create.exists").await
}

async fn not_applicable(run: &Run<'_>, why: &str) -> Result<Verdict, WorkError> {
    run.begin().await?.succeed_as_stale("treasury.create.not_applicable", why).await
}
