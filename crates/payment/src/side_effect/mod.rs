//! S09: what an approval sets off outside the main business.
//!
//! Two sorts: the partners are told the result (合作方校核结果推送), and for a treasury payment the
//! push batches are built. A side effect waits until the main business is effective, which is
//! FINALIZE's commit, and for nothing later: not for the release of locks, not for the refresh.
//! Source: payment-flow.md, S09; seed 003, chapter 7.4.

mod gate;
mod rebuild;
mod seed;

use std::sync::Arc;

use counterfoil_task::{Kind, Run, Verdict, Work, WorkError};

use crate::kinds::SIDE_EFFECT;
use crate::partner_push::{self, PartnerInbox};

pub use gate::ProgressFacts;
pub use rebuild::{MAX_REBUILT, Rebuild, RebuildSummary, rebuild_missing_seeds};
pub(crate) use seed::code;
pub use seed::{Effect, SeedFacts, SideEffectPayload, seeds};

/// Builds the push batches of a treasury payment.
#[async_trait::async_trait]
pub trait BaseDataBuild: Send + Sync {
    /// Builds them under the task's fence and ends the task.
    async fn build(&self, run: &Run<'_>, progress: ProgressFacts) -> Result<Verdict, WorkError>;
}

/// S09's work.
pub struct SideEffect {
    inbox: Arc<dyn PartnerInbox>,
    base_data: Option<Arc<dyn BaseDataBuild>>,
}

impl std::fmt::Debug for SideEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SideEffect").finish_non_exhaustive()
    }
}

impl SideEffect {
    /// Work that tells partners through this inbox, and builds no base data yet.
    pub fn new(inbox: Arc<dyn PartnerInbox>) -> SideEffect {
        SideEffect { inbox, base_data: None }
    }

    /// Work that also builds base data.
    #[must_use]
    pub fn with_base_data(mut self, base_data: Arc<dyn BaseDataBuild>) -> SideEffect {
        self.base_data = Some(base_data);
        self
    }
}

#[async_trait::async_trait]
impl Work for SideEffect {
    type Payload = SideEffectPayload;

    fn kind(&self) -> &'static Kind {
        &SIDE_EFFECT
    }

    async fn run(&self, payload: SideEffectPayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let progress = gate::pass(run.db(), payload.progress()).await?;
        match payload.effect() {
            Effect::PartnerBillReviewResultPush => {
                partner_push::push(run, &*self.inbox, &progress).await
            }
            Effect::PaymentResultBaseDataBuild => match &self.base_data {
                Some(base_data) => base_data.build(run, progress).await,
                None => Err(WorkError::failed(
                    "side-effect-unavailable",
                    "this process builds no treasury batches",
                )),
            },
        }
    }
}
