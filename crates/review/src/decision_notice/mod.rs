//! Telling whoever asked what the reviewers decided: a durable task of its own, accepted with the
//! final decision and tried until it is accepted there.
//!
//! Acceptance says that the receiver has the decision on record, and nothing of what it makes of
//! it. Source: payment-flow.md, S05 "The final decision is sent to payment as a durable task".

mod payload;

use std::sync::Arc;

use counterfoil_db::{Instant, Read, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound};
use counterfoil_task::{
    Kicker, Kind, Run, Seed, Subject, Verdict, Work, WorkError, accept_until_done,
};

use crate::ReviewError;
pub use payload::NoticePayload;

/// The kind of task that tells.
pub const DECISION_NOTICE: Kind = Kind {
    handler: "reviewDecisionNoticeTask",
    task_type: "REVIEW_DECISION_NOTICE",
    prefix: "RVDN",
    stage: "review-decision",
    default_round: 50,
    max_round: 200,
};

/// Whoever had something reviewed. Never called while a transaction is open.
///
/// A call may be repeated: the receiver knows the decision by its plan.
#[async_trait::async_trait]
pub trait DecisionReceiver: Send + Sync {
    /// Hands a final decision over; `now` is the centre's clock, for signatures.
    async fn tell(&self, decision: &FinalDecision, now: Instant) -> Told;
}

/// What the reviewers decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalDecision {
    /// The plan.
    pub plan: PlanId,
    /// The type that it was reviewed under.
    pub type_name: String,
    /// What was reviewed.
    pub from: OrderId,
    /// Whether it passed.
    pub passed: bool,
    /// The last reviewer's remark.
    pub remark: Option<String>,
    /// When it was decided.
    pub time: Option<Instant>,
    /// The data version that was reviewed, where the plan knows it.
    pub data_version: Option<DataVersion>,
    /// The round that was reviewed, where the plan knows it.
    pub round: Option<SubmitRound>,
}

/// What the receiver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It has the decision on record.
    Accepted,
    /// It has not, and says why.
    Refused {
        /// Its own code.
        code: String,
        /// Its message.
        message: String,
    },
    /// No verdict.
    Unknown {
        /// What happened.
        message: String,
    },
}

/// The work that tells.
pub struct DecisionNotice {
    receiver: Arc<dyn DecisionReceiver>,
}

impl std::fmt::Debug for DecisionNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecisionNotice").finish_non_exhaustive()
    }
}

impl DecisionNotice {
    /// Work that tells this receiver.
    pub fn new(receiver: Arc<dyn DecisionReceiver>) -> DecisionNotice {
        DecisionNotice { receiver }
    }
}

#[async_trait::async_trait]
impl Work for DecisionNotice {
    type Payload = NoticePayload;

    fn kind(&self) -> &'static Kind {
        &DECISION_NOTICE
    }

    async fn run(&self, payload: NoticePayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let decision = read(run.db(), &payload).await?;
        let failed = |code, message: String| Err(WorkError::Failed { code, message });
        let now = run.db().now().await?;
        match self.receiver.tell(&decision, now).await {
            Told::Accepted => transact!(succeed(run)),
            Told::Refused { code, message } => {
                failed("decision-refused", format!("the receiver refused ({code}): {message}"))
            }
            Told::Unknown { message } => {
                failed("decision-unknown", format!("the receiver gave no verdict: {message}"))
            }
        }
    }
}

async fn succeed(run: &Run<'_>) -> Result<Verdict, WorkError> {
    run.begin().await?.succeed("review.decision_told").await
}

/// The decision as the plan has it: PASSED or REJECTED, as the task says.
async fn read(from: &impl Read, payload: &NoticePayload) -> Result<FinalDecision, WorkError> {
    let query = sql!(
        "SELECT type, from_id, status, finish_remark, finish_time, data_version, submit_round
         FROM review_business_plan WHERE id = :plan AND deleted = 0",
        plan = payload.plan().0,
    );
    let plan = payload.plan();
    let Some(row) = from.row(query).await? else {
        return Err(WorkError::failed("review-plan-not-found", format!("there is no plan {plan}")));
    };
    let status = row.text("status")?;
    if status != payload.status() {
        let message = format!("plan {plan} is {status}, not {}", payload.status());
        return Err(WorkError::failed("review-plan-state", message));
    }
    Ok(FinalDecision {
        plan,
        type_name: row.text("type")?,
        from: OrderId(row.int("from_id")?),
        passed: payload.passed(),
        remark: row.maybe_text("finish_remark")?.filter(|text| !text.is_empty()),
        time: row.maybe_instant("finish_time")?,
        data_version: row.maybe_int("data_version")?.map(DataVersion),
        round: row.maybe_int("submit_round")?.map(SubmitRound),
    })
}

/// Accepts the notice of a final decision, in the transaction that makes it final.
pub(crate) async fn accept(
    tx: &mut Tx,
    kicker: &Kicker,
    plan: PlanId,
    passed: bool,
) -> Result<(), ReviewError> {
    let payload = NoticePayload::new(plan, passed);
    let seed = Seed {
        kind: &DECISION_NOTICE,
        business_key: payload.key(),
        data: payload.data(),
        subject: Subject::none(),
        source: None,
    };
    accept_until_done(tx, &seed, kicker).await?;
    Ok(())
}
