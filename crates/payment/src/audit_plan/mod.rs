//! S05: has the review centre open the audit plan (审核计划) of a published version.
//!
//! The order of work: check and mark CREATING in one fenced transaction; ask the centre with no
//! transaction open; then, in one fenced transaction that locks the order and checks again, write
//! approval instance, plan id and states together with the task's SUCCESS. Asking is harmless to
//! repeat: the centre answers the same plan for the same round, so a crash anywhere is followed by
//! an ordinary rerun. An order that moved on is left alone. Source: payment-flow.md, S05; seed 001,
//! chapter 8.3.

mod error;
mod port;
mod record;
mod request;
mod rules;
mod standing;

use std::sync::Arc;

use counterfoil_db::{Db, transact};
use counterfoil_protocol::VersionId;
use counterfoil_task::{Kind, Run, Verdict, Work, WorkError};

use crate::kinds::AUDIT_PLAN_CREATE;
use crate::{AuditPlanPayload, PaymentError, VersionContext};

pub use error::AuditPlanError;
pub use port::{
    PlanAnswer, PlanRequest, PlanWithdrawal, REVIEW_TYPE, ReviewCentre, WithdrawAnswer,
};
pub use rules::RULES;

use record::{Begun, Recorded};
use standing::{Standing, standing};

/// S05's work.
pub struct AuditPlan {
    centre: Arc<dyn ReviewCentre>,
}

impl std::fmt::Debug for AuditPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditPlan").finish_non_exhaustive()
    }
}

impl AuditPlan {
    /// Work that asks this review centre.
    pub fn new(centre: Arc<dyn ReviewCentre>) -> AuditPlan {
        AuditPlan { centre }
    }
}

#[async_trait::async_trait]
impl Work for AuditPlan {
    type Payload = AuditPlanPayload;

    fn kind(&self) -> &'static Kind {
        &AUDIT_PLAN_CREATE
    }

    async fn run(&self, payload: AuditPlanPayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let version = payload.version();
        let facts = match transact!(record::begin(run, version))? {
            Begun::Marked(facts) => facts,
            Begun::MovedOn { facts, why, may_have_plan } => {
                if may_have_plan {
                    self.withdraw_leftover(&facts).await;
                }
                return transact!(record::cancel(run, &why));
            }
        };
        let recorded = match self.ask(run.db(), &facts).await? {
            Ok(plan) => transact!(record::created(run, version, plan)),
            Err(trouble) => transact!(record::create_failed(run, version, &trouble)),
        };
        match recorded {
            Ok(Recorded::Created(verdict)) => Ok(verdict),
            Ok(Recorded::Failed(trouble)) => Err(trouble),
            Ok(Recorded::MovedOn { why }) => {
                self.withdraw_leftover(&facts).await;
                transact!(record::cancel(run, &why))
            }
            Err(WorkError::FencedOut) => {
                self.withdraw_if_moved_on(run.db(), version).await?;
                Err(WorkError::FencedOut)
            }
            Err(error) => Err(error),
        }
    }
}

impl AuditPlan {
    /// Asks for the plan. The outer error is the database's; the inner one lasts as CREATE_FAILED.
    async fn ask(
        &self,
        db: &Db,
        facts: &VersionContext,
    ) -> Result<Result<counterfoil_protocol::PlanId, AuditPlanError>, WorkError> {
        let request = match request::assemble(db, facts).await? {
            Ok(request) => request,
            Err(trouble) => return Ok(Err(trouble)),
        };
        Ok(match self.centre.open_plan(&request).await {
            PlanAnswer::Accepted { plan_id } => Ok(plan_id),
            PlanAnswer::Refused { code, message } => Err(AuditPlanError::Refused { code, message }),
            PlanAnswer::Unknown { message } => Err(AuditPlanError::Unknown { message }),
        })
    }

    /// A plan that may have been opened for an order that moved on meanwhile would stand in the
    /// reviewers' inboxes for nothing. What cannot be withdrawn now decides nothing either: the
    /// next round's plan replaces it, and S07 skips the decision of a plan that is not the order's.
    async fn withdraw_leftover(&self, facts: &VersionContext) {
        let withdrawal = PlanWithdrawal {
            order: facts.order,
            through_round: Some(facts.target_round),
            operator: None,
            reason: format!("order {} moved on", facts.order),
        };
        match self.centre.withdraw_plan(&withdrawal).await {
            WithdrawAnswer::Accepted { .. } => {}
            WithdrawAnswer::Refused { code, message } => {
                tracing::warn!(order = %facts.order, code, message, "a leftover plan stays open");
            }
            WithdrawAnswer::Unknown { message } => {
                tracing::warn!(order = %facts.order, message, "a leftover plan may stay open");
            }
        }
    }

    /// Fenced out after the centre has answered: by another attempt, which needs the plan, or by
    /// the order's cancellation, which does not.
    async fn withdraw_if_moved_on(&self, db: &Db, version: VersionId) -> Result<(), PaymentError> {
        let facts = VersionContext::read(db, version).await?;
        if let Standing::MovedOn(_) = standing(&facts) {
            self.withdraw_leftover(&facts).await;
        }
        Ok(())
    }
}
