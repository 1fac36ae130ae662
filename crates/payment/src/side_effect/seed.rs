//! Which side effects an approval has, and the tasks of them.

use counterfoil_protocol::{ProgressId, TaskCode};
use counterfoil_task::{Payload, Seed, Subject};
use serde::{Deserialize, Serialize};

use crate::kinds::{SIDE_EFFECT, business_key};

/// A sort of side effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Effect {
    /// The partners are told the result of the review.
    PartnerBillReviewResultPush,
    /// The push batches of a treasury payment are built.
    PaymentResultBaseDataBuild,
}

impl Effect {
    /// All of them.
    pub const ALL: [Effect; 2] =
        [Effect::PartnerBillReviewResultPush, Effect::PaymentResultBaseDataBuild];

    /// The value in key and `task_data`.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::PartnerBillReviewResultPush => "PARTNER_BILL_REVIEW_RESULT_PUSH",
            Effect::PaymentResultBaseDataBuild => "PAYMENT_RESULT_BASE_DATA_BUILD",
        }
    }

    /// Whether an approval with these facts has it.
    pub fn applies(self, facts: SeedFacts) -> bool {
        match self {
            Effect::PartnerBillReviewResultPush => {
                facts.payable_count > 0 || facts.unqualified_count > 0
            }
            Effect::PaymentResultBaseDataBuild => facts.is_treasury && facts.payable_count > 0,
        }
    }
}

/// What decides which side effects an approval has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedFacts {
    /// PAYABLE lines.
    pub payable_count: i64,
    /// UNQUALIFIED lines.
    pub unqualified_count: i64,
    /// Whether the order is paid through the treasury.
    pub is_treasury: bool,
}

/// `{"progressId":…,"type":"…"}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SideEffectPayload {
    progress_id: i64,
    r#type: Effect,
}

impl SideEffectPayload {
    /// The finalized review callback.
    pub fn progress(&self) -> ProgressId {
        ProgressId(self.progress_id)
    }

    /// The sort of side effect.
    pub fn effect(&self) -> Effect {
        self.r#type
    }
}

impl Payload for SideEffectPayload {
    fn business_key(&self) -> String {
        business_key::side_effect(self.progress(), self.r#type.as_str())
    }

    fn defect(&self) -> Option<String> {
        (self.progress_id <= 0).then(|| "progressId must be positive".into())
    }

    fn subject_id(&self) -> i64 {
        self.progress_id
    }
}

/// The seeds that FINALIZE accepts in its own transaction.
pub fn seeds(
    progress: ProgressId,
    facts: SeedFacts,
    subject: &Subject,
    source: Option<&TaskCode>,
) -> Vec<Seed> {
    let applying = Effect::ALL.into_iter().filter(|effect| effect.applies(facts));
    applying.map(|effect| seed(progress, effect, subject.clone(), source.cloned())).collect()
}

/// The code of a side effect's task.
pub(crate) fn code(progress: ProgressId, effect: Effect) -> TaskCode {
    let key = business_key::side_effect(progress, effect.as_str());
    TaskCode::of(SIDE_EFFECT.prefix, &key)
}

pub(super) fn seed(
    progress: ProgressId,
    effect: Effect,
    subject: Subject,
    source: Option<TaskCode>,
) -> Seed {
    Seed {
        kind: &SIDE_EFFECT,
        business_key: business_key::side_effect(progress, effect.as_str()),
        data: format!(r#"{{"progressId":{progress},"type":"{}"}}"#, effect.as_str()),
        subject,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(payable_count: i64, unqualified_count: i64, is_treasury: bool) -> Vec<String> {
        let facts = SeedFacts { payable_count, unqualified_count, is_treasury };
        let seeds = seeds(ProgressId(7), facts, &Subject::none(), None);
        seeds.into_iter().map(|seed| seed.business_key).collect()
    }

    #[test]
    fn an_approval_has_the_side_effects_that_its_lines_and_its_payment_ask_for() {
        let push = "SIDE_EFFECT:7:PARTNER_BILL_REVIEW_RESULT_PUSH";
        let build = "SIDE_EFFECT:7:PAYMENT_RESULT_BASE_DATA_BUILD";
        assert_eq!(types(2, 1, true), [push, build]);
        assert_eq!(types(2, 0, false), [push]);
        assert_eq!(types(0, 3, true), [push]);
        assert!(types(0, 0, true).is_empty());
    }

    #[test]
    fn the_payload_rebuilds_the_key_of_its_seed() {
        for effect in Effect::ALL {
            let seed = seed(ProgressId(7), effect, Subject::none(), None);
            let payload: SideEffectPayload = serde_json::from_str(&seed.data).unwrap();
            assert_eq!((payload.business_key(), payload.defect()), (seed.business_key, None));
            assert_eq!(payload.effect(), effect);
        }
        let zero = r#"{"progressId":0,"type":"PARTNER_BILL_REVIEW_RESULT_PUSH"}"#;
        let zero: SideEffectPayload = serde_json::from_str(zero).unwrap();
        assert!(zero.defect().is_some());
        let old = r#"{"progressId":7,"type":"UNQUALIFIED_PARTNER_BILL_PUSH"}"#;
        assert!(serde_json::from_str::<SideEffectPayload>(old).is_err());
    }
}
