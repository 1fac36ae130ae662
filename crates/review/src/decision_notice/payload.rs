//! `{"planId":…,"passed":…}`.

use counterfoil_protocol::PlanId;
use counterfoil_task::Payload;
use serde::Deserialize;

/// What a notice's task holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoticePayload {
    plan_id: i64,
    passed: bool,
}

impl NoticePayload {
    pub(super) fn new(plan: PlanId, passed: bool) -> NoticePayload {
        NoticePayload { plan_id: plan.0, passed }
    }

    pub(super) fn plan(&self) -> PlanId {
        PlanId(self.plan_id)
    }

    pub(super) fn passed(&self) -> bool {
        self.passed
    }

    /// The plan's status that the notice is about.
    pub(super) fn status(&self) -> &'static str {
        if self.passed { "PASSED" } else { "REJECTED" }
    }

    pub(super) fn key(&self) -> String {
        let word = if self.passed { "PASS" } else { "REJECT" };
        format!("REVIEW_DECISION:{}:{word}", self.plan_id)
    }

    pub(super) fn data(&self) -> String {
        format!(r#"{{"planId":{},"passed":{}}}"#, self.plan_id, self.passed)
    }
}

impl Payload for NoticePayload {
    fn business_key(&self) -> String {
        self.key()
    }

    fn defect(&self) -> Option<String> {
        (self.plan_id <= 0).then(|| "planId must be positive".to_owned())
    }

    fn subject_id(&self) -> i64 {
        self.plan_id
    }
}
