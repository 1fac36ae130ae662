//! One decision of the reviewers, as it is sent, kept and identified.

use counterfoil_db::Instant;
use counterfoil_protocol::{ApprovalAttempt, DataVersion, OrderId, PlanId, SubmitRound};
use counterfoil_task::Payload;
use serde::{Deserialize, Serialize};

/// Characters of a remark that are kept.
pub const MAX_REMARK: usize = 1000;

/// What the reviewers concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Approved.
    Pass,
    /// Rejected.
    Reject,
}

impl Conclusion {
    /// The word in the business key.
    pub fn as_str(self) -> &'static str {
        match self {
            Conclusion::Pass => "PASS",
            Conclusion::Reject => "REJECT",
        }
    }

    /// The other one.
    pub fn opposite(self) -> Conclusion {
        match self {
            Conclusion::Pass => Conclusion::Reject,
            Conclusion::Reject => Conclusion::Pass,
        }
    }

    /// `approval_status` of an instance that was concluded so.
    pub fn approval_status(self) -> &'static str {
        match self {
            Conclusion::Pass => "APPROVED",
            Conclusion::Reject => "REJECTED",
        }
    }
}

/// Which decision it is: six parts. Remark and time are none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The order.
    pub order: OrderId,
    /// The audit plan.
    pub plan: PlanId,
    /// The version that was reviewed.
    pub data_version: DataVersion,
    /// Which approval of that version.
    pub attempt: ApprovalAttempt,
    /// The order's round at the time.
    pub round: SubmitRound,
    /// What was concluded.
    pub conclusion: Conclusion,
}

impl Identity {
    /// S07's business key.
    pub fn business_key(&self) -> String {
        let Identity { order, plan, data_version, attempt, round, conclusion } = self;
        let word = conclusion.as_str();
        format!("REVIEW_CALLBACK:{order}:{plan}:{data_version}:{attempt}:{round}:{word}")
    }
}

/// A decision as it arrives: the sender may not know the last three parts of its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// `paymentOrderId`.
    pub order: OrderId,
    /// `reviewPlanId`.
    pub plan: PlanId,
    /// `reviewPassed`.
    pub conclusion: Conclusion,
    /// `reviewRemark`.
    pub remark: Option<String>,
    /// `reviewTime`.
    pub time: Option<Instant>,
    /// `dataVersion`.
    pub data_version: Option<DataVersion>,
    /// `approvalAttempt`.
    pub attempt: Option<ApprovalAttempt>,
    /// `submitRound`.
    pub round: Option<SubmitRound>,
    /// How it came in, where it came in signed.
    pub evidence: Option<Evidence>,
}

/// How a decision came in: kept beside its task, as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The app whose signature was proved.
    pub app: String,
    /// The body as it was received, byte by byte.
    pub body: Vec<u8>,
}

/// S07's `task_data`: the callback's own fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallbackPayload {
    payment_order_id: i64,
    review_plan_id: i64,
    review_passed: bool,
    #[serde(default)]
    review_remark: Option<String>,
    #[serde(default)]
    review_time: Option<Instant>,
    data_version: i64,
    approval_attempt: i64,
    submit_round: i64,
}

impl CallbackPayload {
    /// `task_data` of the decision with this identity.
    pub fn data(identity: &Identity, remark: Option<&str>, time: Option<Instant>) -> String {
        let payload = CallbackPayload {
            payment_order_id: identity.order.0,
            review_plan_id: identity.plan.0,
            review_passed: identity.conclusion == Conclusion::Pass,
            review_remark: remark.map(|text| text.chars().take(MAX_REMARK).collect()),
            review_time: time,
            data_version: identity.data_version.0,
            approval_attempt: identity.attempt.0,
            submit_round: identity.round.0,
        };
        // Numbers, texts and an instant: there is no way to fail.
        serde_json::to_string(&payload).unwrap_or_default()
    }

    /// Which decision it is.
    pub fn identity(&self) -> Identity {
        Identity {
            order: OrderId(self.payment_order_id),
            plan: PlanId(self.review_plan_id),
            data_version: DataVersion(self.data_version),
            attempt: ApprovalAttempt(self.approval_attempt),
            round: SubmitRound(self.submit_round),
            conclusion: if self.review_passed { Conclusion::Pass } else { Conclusion::Reject },
        }
    }

    /// The reviewers' remark, as much of it as is kept.
    pub fn remark(&self) -> Option<String> {
        self.review_remark.as_ref().map(|text| text.chars().take(MAX_REMARK).collect())
    }

    /// When they decided, if the sender said.
    pub fn time(&self) -> Option<Instant> {
        self.review_time
    }
}

impl Payload for CallbackPayload {
    fn business_key(&self) -> String {
        self.identity().business_key()
    }

    fn defect(&self) -> Option<String> {
        let ids = [
            ("paymentOrderId", self.payment_order_id),
            ("reviewPlanId", self.review_plan_id),
            ("dataVersion", self.data_version),
            ("approvalAttempt", self.approval_attempt),
            ("submitRound", self.submit_round),
        ];
        let wrong = ids.into_iter().find(|(_, id)| *id <= 0);
        wrong.map(|(name, _)| format!("{name} must be positive"))
    }

    fn subject_id(&self) -> i64 {
        self.payment_order_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            order: OrderId(1),
            plan: PlanId(2),
            data_version: DataVersion(3),
            attempt: ApprovalAttempt(4),
            round: SubmitRound(5),
            conclusion: Conclusion::Pass,
        }
    }

    #[test]
    fn remark_and_time_are_no_part_of_the_identity() {
        let time = "2026-09-08T02:00:00Z".parse().ok();
        let said = [(None, None), (Some("fine"), time)];
        let keys = said.map(|(remark, time)| {
            let data = CallbackPayload::data(&identity(), remark, time);
            let payload: CallbackPayload = serde_json::from_str(&data).unwrap();
            (payload.business_key(), payload.defect())
        });
        assert_eq!(keys[0], ("REVIEW_CALLBACK:1:2:3:4:5:PASS".to_owned(), None));
        assert_eq!(keys[0], keys[1]);
    }

    #[test]
    fn no_part_of_the_identity_is_guessed() {
        let whole = CallbackPayload::data(&identity(), None, None);
        for field in ["dataVersion", "approvalAttempt", "submitRound", "reviewPassed"] {
            let mut data: serde_json::Value = serde_json::from_str(&whole).unwrap();
            data.as_object_mut().unwrap().remove(field);
            let read: Result<CallbackPayload, _> = serde_json::from_value(data);
            assert!(read.is_err(), "{field}");
        }
        let zero = whole.replace("\"submitRound\":5", "\"submitRound\":0");
        let payload: CallbackPayload = serde_json::from_str(&zero).unwrap();
        assert_eq!(payload.defect().as_deref(), Some("submitRound must be positive"));
    }
}
