//! S06: releases the locks of a failed submission, or all locks of a cancelled order.
//!
//! Source: payment-flow.md "S06 lock release"; seed 001, chapter 8.4. It needs no lease: the set
//! of locks shrinks as it works, and the fence on its task is the only right it needs.

mod cancelled_order;
mod failed_submission;

use std::sync::Arc;

use counterfoil_protocol::{TaskCode, VersionId};
use counterfoil_task::{Kind, Payload, Run, Seed, Subject, Verdict, Work, WorkError};
use serde::Deserialize;

use crate::audit_plan::{PlanWithdrawal, ReviewCentre, WithdrawAnswer};
use crate::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD, business_key};

/// Why locks are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// S03 met bills that others hold.
    SubmitConflict,
    /// S03 lost the publish to somebody else.
    PublishLost,
    /// S04 met an invalid revision that was never published.
    InvalidReviseSession,
    /// The order was cancelled.
    OrderCancelled,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 4] = [
        Reason::SubmitConflict,
        Reason::PublishLost,
        Reason::InvalidReviseSession,
        Reason::OrderCancelled,
    ];

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::SubmitConflict => "SUBMIT_CONFLICT",
            Reason::PublishLost => "PUBLISH_LOST",
            Reason::InvalidReviseSession => "INVALID_REVISE_SESSION",
            Reason::OrderCancelled => "ORDER_CANCELLED",
        }
    }

    fn of(text: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// `task_data` of S06.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockReleasePayload {
    payment_order_version_id: i64,
    task_scene: String,
    release_reason: String,
}

impl Payload for LockReleasePayload {
    fn business_key(&self) -> String {
        business_key::lock_release(VersionId(self.payment_order_version_id), &self.release_reason)
    }

    fn defect(&self) -> Option<String> {
        if self.payment_order_version_id <= 0 {
            return Some("paymentOrderVersionId must be positive".into());
        }
        if self.task_scene != "LOCK_RELEASE" {
            return Some("taskScene must be LOCK_RELEASE".into());
        }
        let known = Reason::of(&self.release_reason).is_some();
        (!known).then(|| format!("releaseReason {} is unknown", self.release_reason))
    }

    fn subject_id(&self) -> i64 {
        self.payment_order_version_id
    }
}

/// The seed of an S06 task.
pub fn seed(
    version: VersionId,
    reason: Reason,
    subject: Subject,
    source: Option<TaskCode>,
) -> Seed {
    let data = serde_json::json!({
        "paymentOrderVersionId": version,
        "taskScene": "LOCK_RELEASE",
        "releaseReason": reason.as_str(),
    });
    Seed {
        kind: &LOCK_RELEASE,
        business_key: business_key::lock_release(version, reason.as_str()),
        data: data.to_string(),
        subject,
        source,
    }
}

/// The code of the S04 task that hands a version over to S06.
pub fn source_of_activation(version: VersionId) -> TaskCode {
    TaskCode::of(LOCK_ACTIVATE.prefix, &business_key::lock_activate(version))
}

/// The code of the S03 task that hands a version over to S06.
pub fn source_of_build(version: VersionId) -> TaskCode {
    TaskCode::of(SUBMIT_BUILD.prefix, &business_key::submit_build(version))
}

/// The work of S06. It reaches the review centre to withdraw the plan of a cancelled order.
pub struct LockRelease {
    centre: Arc<dyn ReviewCentre>,
}

impl std::fmt::Debug for LockRelease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockRelease").finish_non_exhaustive()
    }
}

impl LockRelease {
    /// S06 with its way to the review centre.
    pub fn new(centre: Arc<dyn ReviewCentre>) -> LockRelease {
        LockRelease { centre }
    }

    /// Locks first, then the plan, then the proof that nothing is left. Every part may be repeated.
    async fn let_go(&self, run: &Run<'_>, version: VersionId) -> Result<Verdict, WorkError> {
        let order = cancelled_order::release(run, version).await?;
        let withdrawal = PlanWithdrawal {
            order,
            through_round: None,
            operator: None,
            reason: Reason::OrderCancelled.as_str().to_owned(),
        };
        match self.centre.withdraw_plan(&withdrawal).await {
            WithdrawAnswer::Accepted { .. } => cancelled_order::close(run, order).await,
            WithdrawAnswer::Refused { code, message } => Err(WorkError::failed(
                "plan-not-withdrawn",
                format!("the review centre refused ({code}): {message}"),
            )),
            WithdrawAnswer::Unknown { message } => Err(WorkError::failed(
                "plan-not-withdrawn",
                format!("the review centre gave no verdict: {message}"),
            )),
        }
    }
}

#[async_trait::async_trait]
impl Work for LockRelease {
    type Payload = LockReleasePayload;

    fn kind(&self) -> &'static Kind {
        &LOCK_RELEASE
    }

    async fn run(&self, payload: LockReleasePayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let version = VersionId(payload.payment_order_version_id);
        match Reason::of(&payload.release_reason) {
            Some(Reason::OrderCancelled) => self.let_go(run, version).await,
            Some(reason) => failed_submission::release(run, version, reason).await,
            None => Err(WorkError::failed("task-identity", "releaseReason is unknown")),
        }
    }
}
