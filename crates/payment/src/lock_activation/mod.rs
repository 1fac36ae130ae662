//! S04: brings locks and business tables into line with a published version.
//!
//! Source: payment-flow.md "S04 lock activation"; seed 001, chapters 4 to 9. The order of work:
//! classify → lease → keep or release the source version's locks → activate → project onto the
//! three business tables → clean up old references → verify → complete. Every step commits in
//! batches; nothing shows COMPLETED before verification has passed in the completing transaction.

pub mod boundary;

mod activate;
mod batch;
mod clean_up;
mod complete;
mod incident;
mod project;
mod revise;
mod verify;

use counterfoil_task::{Kind, Run, Verdict, Work, WorkError};

use crate::kinds::LOCK_ACTIVATE;
use crate::version::{LockActivatePayload, Mode, VersionContext};
use batch::Batch;

/// The work of S04.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockActivation;

#[async_trait::async_trait]
impl Work for LockActivation {
    type Payload = LockActivatePayload;

    fn kind(&self) -> &'static Kind {
        &LOCK_ACTIVATE
    }

    async fn run(&self, payload: LockActivatePayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let version = payload.version();
        match counterfoil_db::transact!(incident::classify_and_lease(run, version))? {
            incident::Entry::Ended(verdict) => Ok(verdict),
            incident::Entry::HandOver(context) => complete::hand_over(run, &context).await,
            incident::Entry::Work(context, batch) => bring_into_line(run, &context, batch).await,
        }
    }
}

/// Steps 3 to 8. Without a lease (a re-entry) step 4 is left out: the batch is DONE already.
async fn bring_into_line(
    run: &Run<'_>,
    context: &VersionContext,
    mut batch: Batch,
) -> Result<Verdict, WorkError> {
    if context.mode == Mode::Revise {
        revise::keep(run, context, &batch).await?;
        revise::release(run, context, &batch).await?;
    }
    if batch.is_leased() {
        activate::activate(run, context, &mut batch).await?;
    }
    project::project(run, context, &batch).await?;
    if context.mode == Mode::Revise {
        clean_up::sweep(run, context, &batch).await?;
    }
    complete::complete(run, context, &batch).await
}
