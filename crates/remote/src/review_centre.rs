//! The review centre in another process, over HTTP.

use std::time::Duration;

use counterfoil_payment::audit_plan::{
    PlanAnswer, PlanRequest, PlanWithdrawal, REVIEW_TYPE, ReviewCentre, WithdrawAnswer,
};
use counterfoil_protocol::PlanId;
use reqwest::{Client, StatusCode, Url};
use serde::Serialize;
use serde_json::Value;

use crate::RemoteError;

/// How long one call may take from its start to the last byte of the answer, unless told otherwise.
pub const MAX_REVIEW_CENTRE_TIME: Duration = Duration::from_secs(10);
/// How long a connection may take to come up.
pub const MAX_CONNECT_TIME: Duration = Duration::from_secs(3);
/// Bytes of an answer; a longer one is no verdict.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Characters of the centre's code and message that are kept.
pub(crate) const MAX_CODE: usize = 64;
pub(crate) const MAX_MESSAGE: usize = 500;
/// Plan ids read from one answer.
const MAX_PLANS: usize = 1000;

const OPEN: &str = "reviewBusinessPlan/initInfo";
const WITHDRAW: &str = "reviewBusinessPlan/withdraw";

/// The review centre behind a base address. Bodies are never logged.
#[derive(Clone)]
pub struct HttpReviewCentre {
    client: Client,
    base: Url,
    max_time: Duration,
}

impl std::fmt::Debug for HttpReviewCentre {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The host only: an address may hold a password.
        let host = self.base.host_str().unwrap_or_default();
        f.debug_struct("HttpReviewCentre").field("host", &host).finish_non_exhaustive()
    }
}

impl HttpReviewCentre {
    /// A client for the centre at `base`, which may have a path of its own.
    ///
    /// # Errors
    /// When `base` is no http or https URL, or no client can be built.
    ///
    /// # Panics
    /// When no rustls provider is installed (see the crate's documentation).
    pub fn new(base: &str, max_time: Duration) -> Result<HttpReviewCentre, RemoteError> {
        const WHAT: &str = "review centre";
        let wrong = |why: String| RemoteError::Address { what: WHAT, why };
        // A last path segment without a slash would be replaced when joined.
        let text = format!("{}/", base.trim_end_matches('/'));
        let base = Url::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let builder = Client::builder()
            .timeout(max_time)
            .connect_timeout(MAX_CONNECT_TIME.min(max_time))
            // An answer from elsewhere is not the centre's.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let builder = match base.scheme() {
            "https" => builder.https_only(true),
            // Plain HTTP must work on a machine without any certificate too.
            "http" => builder.tls_certs_only([]),
            other => return Err(wrong(format!("its scheme is {other}"))),
        };
        let client = builder.build();
        let client = client.map_err(|source| RemoteError::Client { what: WHAT, source })?;
        Ok(HttpReviewCentre { client, base, max_time })
    }

    async fn post(&self, path: &str, body: &impl Serialize) -> Answer {
        let Ok(url) = self.base.join(path) else {
            return Answer::None(format!("{path} cannot be joined to the centre's address"));
        };
        let mut response = match self.client.post(url).json(body).send().await {
            Ok(response) => response,
            Err(error) => return Answer::None(self.no_answer(&error)),
        };
        let status = response.status();
        tracing::debug!(path, status = status.as_u16(), "the review centre answered");
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > MAX_ANSWER_BYTES => {
                    return Answer::None(format!(
                        "its answer ({status}) is longer than {MAX_ANSWER_BYTES} bytes"
                    ));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Answer::Full { status, bytes },
                Err(error) => return Answer::None(self.no_answer(&error)),
            }
        }
    }

    /// Says what happened without the address, which may hold a password.
    fn no_answer(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            let millis = self.max_time.as_millis();
            return format!("no answer within {millis} ms; the request may have arrived");
        }
        if error.is_connect() {
            return format!("no connection, nothing was sent: {}", innermost(error));
        }
        format!("the connection broke, the request may have arrived: {}", innermost(error))
    }
}

/// The deepest cause: reqwest's own text names the URL.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| "HTTP error".to_owned(), |cause| cut(&cause.to_string(), MAX_MESSAGE))
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// What came back.
enum Answer {
    Full { status: StatusCode, bytes: Vec<u8> },
    None(String),
}

/// `POST /reviewBusinessPlan/initInfo`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitInfo<'a> {
    from_id: i64,
    from_num: &'a str,
    r#type: &'static str,
    epctenantid: &'a str,
    organisation: &'a str,
    submitter: i64,
    submit_round: i64,
    data_version: i64,
    managers_a: Vec<i64>,
    managers_b: Vec<i64>,
}

/// `POST /reviewBusinessPlan/withdraw`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Withdraw<'a> {
    from_id: i64,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    through_round: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<i64>,
    reason: &'a str,
}

#[async_trait::async_trait]
impl ReviewCentre for HttpReviewCentre {
    async fn open_plan(&self, request: &PlanRequest) -> PlanAnswer {
        let body = InitInfo {
            from_id: request.order.0,
            from_num: &request.order_no,
            r#type: REVIEW_TYPE,
            epctenantid: &request.epctenantid,
            organisation: &request.organisation,
            submitter: request.submitter.0,
            submit_round: request.round.0,
            data_version: request.data_version.0,
            managers_a: request.managers_a.iter().map(|user| user.0).collect(),
            managers_b: request.managers_b.iter().map(|user| user.0).collect(),
        };
        match self.post(OPEN, &body).await {
            Answer::Full { status, bytes } => read_opening(status, &bytes),
            Answer::None(message) => PlanAnswer::Unknown { message },
        }
    }

    async fn withdraw_plan(&self, withdrawal: &PlanWithdrawal) -> WithdrawAnswer {
        let body = Withdraw {
            from_id: withdrawal.order.0,
            r#type: REVIEW_TYPE,
            through_round: withdrawal.through_round.map(|round| round.0),
            operator: withdrawal.operator.map(|user| user.0),
            reason: &withdrawal.reason,
        };
        match self.post(WITHDRAW, &body).await {
            Answer::Full { status, bytes } => read_withdrawal(status, &bytes),
            Answer::None(message) => WithdrawAnswer::Unknown { message },
        }
    }
}

/// Accepted only with a plan id that can be one.
fn read_opening(status: StatusCode, bytes: &[u8]) -> PlanAnswer {
    if status.is_client_error() {
        let (code, message) = refusal(status, bytes);
        return PlanAnswer::Refused { code, message };
    }
    if !status.is_success() {
        return PlanAnswer::Unknown { message: format!("it answered {status}") };
    }
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let plan = body.as_ref().and_then(|body| body.get("planId")).and_then(Value::as_i64);
    match plan.filter(|plan| *plan > 0) {
        Some(plan) => PlanAnswer::Accepted { plan_id: PlanId(plan) },
        None => PlanAnswer::Unknown { message: format!("it answered {status} without a planId") },
    }
}

fn read_withdrawal(status: StatusCode, bytes: &[u8]) -> WithdrawAnswer {
    if status.is_client_error() {
        let (code, message) = refusal(status, bytes);
        return WithdrawAnswer::Refused { code, message };
    }
    if !status.is_success() {
        return WithdrawAnswer::Unknown { message: format!("it answered {status}") };
    }
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let plans = body.as_ref().and_then(|body| body.get("planIds")).and_then(Value::as_array);
    let Some(plans) = plans else {
        return WithdrawAnswer::Unknown {
            message: format!("it answered {status} without planIds"),
        };
    };
    let ids = plans.iter().take(MAX_PLANS).filter_map(Value::as_i64);
    WithdrawAnswer::Accepted { plan_ids: ids.map(PlanId).collect() }
}

/// The centre's own code and detail (RFC 9457), or the status where it does not say.
fn refusal(status: StatusCode, bytes: &[u8]) -> (String, String) {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let text = |name: &str| {
        let text = body.as_ref()?.get(name)?.as_str()?;
        Some(text).filter(|text| !text.is_empty())
    };
    let code = text("code").map_or_else(|| format!("http-{}", status.as_u16()), str::to_owned);
    let message = text("detail").or_else(|| text("title"));
    let message = message.map_or_else(|| format!("it answered {status}"), str::to_owned);
    (cut(&code, MAX_CODE), cut(&message, MAX_MESSAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plan_id_is_acceptance_and_only_a_4xx_is_refusal() {
        let accepted = |id| PlanAnswer::Accepted { plan_id: PlanId(id) };
        let refused = |code: &str, message: &str| PlanAnswer::Refused {
            code: code.into(),
            message: message.into(),
        };
        let unknown = |message: &str| PlanAnswer::Unknown { message: message.into() };
        let without_id = |status: &str| unknown(&format!("it answered {status} without a planId"));
        let table = [
            (200, r#"{"planId":7}"#, accepted(7)),
            (201, r#"{"planId":1000000000001,"more":1}"#, accepted(1_000_000_000_001)),
            (200, "", without_id("200 OK")),
            (200, "<html>hello</html>", without_id("200 OK")),
            (200, "{}", without_id("200 OK")),
            (200, "[]", without_id("200 OK")),
            (200, r#"{"planId":"7"}"#, without_id("200 OK")),
            (200, r#"{"planId":7.5}"#, without_id("200 OK")),
            (200, r#"{"planId":0}"#, without_id("200 OK")),
            (200, r#"{"planId":-7}"#, without_id("200 OK")),
            (200, r#"{"planId":7"#, without_id("200 OK")),
            (204, "", without_id("204 No Content")),
            (302, "", unknown("it answered 302 Found")),
            (500, r#"{"planId":7}"#, unknown("it answered 500 Internal Server Error")),
            (503, "", unknown("it answered 503 Service Unavailable")),
            (
                409,
                r#"{"code":"review-round-stale","detail":"old"}"#,
                refused("review-round-stale", "old"),
            ),
            (404, "not here", refused("http-404", "it answered 404 Not Found")),
            (422, r#"{"code":"","title":"T"}"#, refused("http-422", "T")),
        ];
        for (status, body, expected) in table {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(read_opening(status, body.as_bytes()), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_withdrawal_is_accepted_with_a_list_only() {
        let read = |status: u16, body: &str| {
            read_withdrawal(StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        let accepted = |ids: &[i64]| WithdrawAnswer::Accepted {
            plan_ids: ids.iter().copied().map(PlanId).collect(),
        };
        assert_eq!(read(200, r#"{"planIds":[]}"#), accepted(&[]));
        assert_eq!(read(200, r#"{"planIds":[7,8]}"#), accepted(&[7, 8]));
        assert!(matches!(read(200, "{}"), WithdrawAnswer::Unknown { .. }));
        assert!(matches!(read(500, ""), WithdrawAnswer::Unknown { .. }));
        assert!(matches!(read(404, ""), WithdrawAnswer::Refused { .. }));
    }

    #[test]
    fn what_the_centre_says_is_cut_before_it_is_kept() {
        let long = format!(r#"{{"code":"{}","detail":"{}"}}"#, "c".repeat(999), "账".repeat(999));
        let (code, message) = refusal(StatusCode::CONFLICT, long.as_bytes());
        assert_eq!((code.chars().count(), message.chars().count()), (MAX_CODE, MAX_MESSAGE));
    }
}
