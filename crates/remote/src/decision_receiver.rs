//! Payment as the review centre's receiver of final decisions: a signed request, and an answer
//! that is believed only when it is signed too.

use chrono::{DateTime, Utc};
use counterfoil_review::decision_notice::{DecisionReceiver, FinalDecision, Told};
use serde::Serialize;
use serde_json::Value;

use crate::review_centre::{MAX_CODE, MAX_MESSAGE, cut};
use crate::signed::{SignedAnswer, SignedClient};

const CALLBACKS: &str = "/api/payment/review-callbacks";

/// Hands decisions over at payment's address.
#[derive(Debug, Clone)]
pub struct HttpDecisionReceiver {
    client: SignedClient,
}

impl HttpDecisionReceiver {
    /// A receiver behind `client`.
    pub fn new(client: SignedClient) -> HttpDecisionReceiver {
        HttpDecisionReceiver { client }
    }
}

/// `POST /api/payment/review-callbacks`. The approval attempt is payment's own number.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallbackBody<'a> {
    payment_order_id: i64,
    review_plan_id: i64,
    review_passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_remark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit_round: Option<i64>,
}

#[async_trait::async_trait]
impl DecisionReceiver for HttpDecisionReceiver {
    async fn tell(&self, decision: &FinalDecision, now: DateTime<Utc>) -> Told {
        let body = CallbackBody {
            payment_order_id: decision.from.0,
            review_plan_id: decision.plan.0,
            review_passed: decision.passed,
            review_remark: decision.remark.as_deref(),
            review_time: decision
                .time
                .map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)),
            data_version: decision.data_version.map(|data| data.0),
            submit_round: decision.round.map(|round| round.0),
        };
        let Ok(body) = serde_json::to_vec(&body) else {
            return Told::Unknown { message: "the decision cannot be written as JSON".into() };
        };
        match self.client.post(CALLBACKS, body, now).await {
            SignedAnswer::Proved { status, body } => read(status, &body),
            SignedAnswer::Unknown { message } => Told::Unknown { message },
        }
    }
}

/// Accepted only by a 2xx that names the task; refused only by a 4xx.
fn read(status: u16, bytes: &[u8]) -> Told {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let text = |name: &str| body.as_ref()?.get(name)?.as_str().map(str::to_owned);
    match status {
        200..=299 => match text("taskCode") {
            Some(_) => Told::Accepted,
            None => Told::Unknown { message: format!("it answered {status} without a taskCode") },
        },
        401 => Told::Refused {
            code: "http-401".into(),
            message: "our signature is not believed: see `apps` in its configuration".into(),
        },
        400..=499 => Told::Refused {
            code: cut(&text("code").unwrap_or_else(|| format!("http-{status}")), MAX_CODE),
            message: cut(&text("detail").unwrap_or_default(), MAX_MESSAGE),
        },
        _ => Told::Unknown { message: format!("it answered {status}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_named_task_is_acceptance_and_only_a_4xx_is_refusal() {
        assert_eq!(read(202, br#"{"taskCode":"RIPRC:1"}"#), Told::Accepted);
        assert_eq!(read(200, br#"{"taskCode":"RIPRC:1"}"#), Told::Accepted);
        assert!(matches!(read(200, b"hello"), Told::Unknown { .. }));
        assert!(matches!(read(500, b""), Told::Unknown { .. }));
        assert!(matches!(read(302, b""), Told::Unknown { .. }));
        let refused = read(409, br#"{"code":"review-callback-opposite","detail":"no"}"#);
        let expected =
            Told::Refused { code: "review-callback-opposite".into(), message: "no".into() };
        assert_eq!(refused, expected);
        assert!(matches!(read(401, b""), Told::Refused { .. }));
    }
}
