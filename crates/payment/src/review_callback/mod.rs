//! S07: applies a decision of the reviewers (审核回调).
//!
//! A rejection is applied here: order, approval instance and the task's SUCCESS in one commit;
//! lines, locks and the three tables stay as they are. An approval is only prepared here: its
//! progress row is made or found again, the task stays RUNNING, and S08 goes on. A decision about
//! what the order is no more is skipped and says so.
//!
//! Source: payment-flow.md "S07 review callback"; seed 003, chapters 3 and 8, table 8.3.

mod accept;
mod callback;
mod error;
mod log;
mod prepare;
mod reject;
mod standing;

use counterfoil_db::{Read, transact};
use counterfoil_task::{Kind, Run, Takeover, Verdict, Work, WorkError};

use crate::kinds::REVIEW_CALLBACK;

pub use accept::{AcceptedCallback, accept};
pub use callback::{Callback, CallbackPayload, Conclusion, Evidence, Identity, MAX_REMARK};
pub use error::CallbackError;

pub(crate) use log::{LogEntry, write as write_log};
pub(crate) use standing::OrderFacts;
use standing::{Instance, Standing, judge};

/// The note of a decision about a plan or a version that the order left behind.
pub const STALE_NOTE: &str = "旧审核计划或旧发布版本回调已跳过";

/// S07's work.
#[derive(Debug, Clone, Copy)]
pub struct ReviewCallback;

#[async_trait::async_trait]
impl Work for ReviewCallback {
    type Payload = CallbackPayload;

    fn kind(&self) -> &'static Kind {
        &REVIEW_CALLBACK
    }

    /// An approval rightly stays RUNNING while S08 works on its progress row. One without such a
    /// row was left behind by a process that died.
    fn takeover(&self) -> Takeover {
        Takeover::Orphans {
            orphan: "NOT EXISTS (
               SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
               WHERE p.deleted = 0 AND p.async_task_id = fi_async_task.id)",
        }
    }

    async fn run(&self, payload: CallbackPayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        transact!(apply(run, &payload))
    }
}

async fn apply(run: &Run<'_>, payload: &CallbackPayload) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    let identity = payload.identity();
    let order = OrderFacts::lock(&*tx, identity.order).await?;
    let instance = Instance::lock(&*tx, &identity).await?;
    let standing = judge(&identity, order.as_ref(), instance.as_ref())?;
    let Some(instance) = instance else {
        return Err(standing::instance_missing(&identity).into());
    };
    let time = payload.time().unwrap_or(tx.now());
    match standing {
        Standing::Stale => tx.succeed_as_stale("review_callback.stale", STALE_NOTE).await,
        Standing::Applied { instance_lags } => {
            if instance_lags {
                conclude_instance(&mut tx, &identity, &instance, time).await?;
            }
            tx.succeed("review_callback.already_applied").await
        }
        Standing::Due if identity.conclusion == Conclusion::Reject => {
            refuse_over_approval(&tx, &identity).await?;
            reject::reject(&mut tx, &identity, time, payload.remark()).await?;
            if instance.concluded.is_none() {
                conclude_instance(&mut tx, &identity, &instance, time).await?;
            }
            tx.succeed("review_callback.reject").await
        }
        Standing::Due => {
            let progress = prepare::prepare(&mut tx, &identity, payload, run.task_id()).await?;
            tx.kick_row(&crate::kinds::REVIEW_PROGRESS, progress.0).await?;
            tx.hand_over("review_callback.prepare").await
        }
    }
}

/// An approval of the same version, plan and round that is being applied keeps a rejection out:
/// acceptance refuses it, and rows written by hand do not get past the run either.
async fn refuse_over_approval(
    tx: &counterfoil_db::Tx,
    identity: &Identity,
) -> Result<(), WorkError> {
    let query = counterfoil_db::sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND data_version = :data AND review_plan_id = :plan
           AND submit_round = :round AND main_task_status = 'RUNNING' AND deleted = 0",
        order = identity.order.0,
        data = identity.data_version.0,
        plan = identity.plan.0,
        round = identity.round.0,
    );
    if tx.count(query).await? == 0 {
        return Ok(());
    }
    let said = Conclusion::Pass;
    Err(CallbackError::Opposite { order: identity.order, plan: identity.plan, said }.into())
}

/// Guard: IN_REVIEW. Under the instance's lock it always wins.
async fn conclude_instance(
    tx: &mut counterfoil_db::Tx,
    identity: &Identity,
    instance: &Instance,
    time: counterfoil_db::Instant,
) -> Result<(), WorkError> {
    let now = tx.now();
    let update = counterfoil_db::sql!(
        "UPDATE fi_resident_income_payment_order_approval_instance
         SET approval_status = :status, finish_time = :time, update_time = :now
         WHERE id = :id AND approval_status = 'IN_REVIEW'",
        status = identity.conclusion.approval_status(),
        time = time,
        now = now,
        id = instance.id,
    );
    if tx.execute(update).await? == 1 {
        return Ok(());
    }
    Err(WorkError::failed("changed-meanwhile", format!("approval instance {}", instance.id)))
}
