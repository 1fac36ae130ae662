//! `/api/payment/…` for programs: what is let in is signed.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use counterfoil_db::Db;
use counterfoil_payment::review_callback::{Callback, CallbackError, Conclusion, Evidence, accept};
use counterfoil_protocol::{ApprovalAttempt, DataVersion, OrderId, PlanId, SubmitRound};
use counterfoil_task::{Acceptance, Kicker, TaskStatus};
use serde::Serialize;

use super::fields::Fields;
use super::problem::{FieldFault, Problem, RequestFault};
use super::signed::{Caller, Gate, admit};

/// The routes of payment that programs call.
///
/// `callback_app` is the one app that may say what the reviewers decided.
pub fn payment_router(db: Db, kicker: Kicker, gate: Gate, callback_app: String) -> Router {
    Router::new()
        .route("/api/payment/review-callbacks", post(add_callback).fallback(other_method))
        .layer(from_fn_with_state(gate, admit))
        .with_state(Payment { db, kicker, callback_app })
}

#[derive(Clone)]
struct Payment {
    db: Db,
    kicker: Kicker,
    callback_app: String,
}

async fn other_method() -> Problem {
    Problem::of_request(RequestFault::Method)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedAnswer {
    task_code: String,
    business_key: String,
    /// `ACCEPTED`, or `REUSED` where the task was there.
    outcome: &'static str,
    status: String,
}

/// 202 for a new task, 200 for one that was there. Neither says that anything was applied.
async fn add_callback(
    State(payment): State<Payment>,
    Caller(app): Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    if app != payment.callback_app {
        let detail = "this app may not say what the reviewers decided";
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
    }
    let mut callback = read(&body)?;
    callback.evidence = Some(Evidence { app, body: body.to_vec() });
    let accepted = accept(&payment.db, &payment.kicker, &callback).await.map_err(problem)?;
    let (code, outcome, status) = match accepted.acceptance {
        Acceptance::New => (StatusCode::ACCEPTED, "ACCEPTED", TaskStatus::Pending),
        Acceptance::Reused { status, .. } => (StatusCode::OK, "REUSED", status),
    };
    let answer = AcceptedAnswer {
        task_code: accepted.task.to_string(),
        business_key: accepted.identity.business_key(),
        outcome,
        status: status.to_string(),
    };
    Ok((code, Json(answer)).into_response())
}

fn read(body: &[u8]) -> Result<Callback, Problem> {
    let mut fields = Fields::of_json(body)?;
    let order = OrderId(fields.id("paymentOrderId"));
    let plan = PlanId(fields.id("reviewPlanId"));
    let passed = fields.flag("reviewPassed");
    let remark = fields.maybe_text("reviewRemark");
    let time = fields.maybe_instant("reviewTime");
    let data_version = fields.maybe_id("dataVersion").map(DataVersion);
    let attempt = fields.maybe_id("approvalAttempt").map(ApprovalAttempt);
    let round = fields.maybe_id("submitRound").map(SubmitRound);
    if remark.as_deref().is_some_and(|text| text.contains('\0')) {
        fields.fault("reviewRemark", "must not contain NUL");
    }
    fields.finish()?;
    let conclusion = if passed { Conclusion::Pass } else { Conclusion::Reject };
    Ok(Callback {
        order,
        plan,
        conclusion,
        remark,
        time,
        data_version,
        attempt,
        round,
        evidence: None,
    })
}

fn problem(error: CallbackError) -> Problem {
    let status = match &error {
        CallbackError::OrderNotFound(_) | CallbackError::InstanceNotFound { .. } => {
            StatusCode::NOT_FOUND
        }
        CallbackError::Opposite { .. } | CallbackError::OrderState { .. } => StatusCode::CONFLICT,
        CallbackError::Lines { why, .. } => {
            let fault = FieldFault { field: "paymentOrderId".into(), detail: why.clone() };
            return Problem::of_fields(vec![fault]);
        }
        CallbackError::Task(_) | CallbackError::Db(_) => {
            tracing::error!(error = ?error, "a callback could not be accepted");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Problem::new(status, error.code(), "the database failed; try again later");
        }
    };
    Problem::new(status, error.code(), error.to_string())
}
