//! `/reviewBusinessPlan/…`: the review centre over HTTP.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use counterfoil_db::Db;
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound, UserId};
use counterfoil_review::decision::{Decision, Verdict, decide};
use counterfoil_review::inbox::{self, DEFAULT_PAGE, Item, MAX_PAGE};
use counterfoil_review::plan_opening::{How, PlanOpening, open};
use counterfoil_review::withdrawal::{Withdrawal, withdraw};
use counterfoil_review::{ReviewError, states::PlanStatus};
use counterfoil_task::Kicker;
use serde::Serialize;

use super::cursor::{self, cursor_of};
use super::fields::Fields;
use super::problem::{Problem, RequestFault};

/// Bytes of a request body: two full lists of managers and all texts fit several times.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

type Body = Result<Bytes, BytesRejection>;

#[derive(Clone)]
struct Centre {
    db: Db,
    kicker: Kicker,
}

/// The review centre's routes. Who calls is not looked at here: authentication stands before.
///
/// A final decision raises a kick of `kicker`: the task that tells whoever asked is ready.
pub fn review_router(db: Db, kicker: Kicker) -> Router {
    Router::new()
        .route("/reviewBusinessPlan/initInfo", post(init_info).fallback(other_method))
        .route("/reviewBusinessPlan/withdraw", post(withdraw_plans).fallback(other_method))
        .route("/reviewBusinessPlan/inbox", get(read_inbox).fallback(other_method))
        .route("/reviewBusinessPlan/{planId}/decisions", post(add_decision).fallback(other_method))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn(programs_only))
        .with_state(Centre { db, kicker })
}

async fn other_method() -> Problem {
    Problem::of_request(RequestFault::Method)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenedAnswer {
    plan_id: i64,
    status: &'static str,
    outcome: &'static str,
}

async fn init_info(
    State(Centre { db, .. }): State<Centre>,
    body: Body,
) -> Result<Response, Problem> {
    let mut fields = object(body)?;
    let opening = PlanOpening {
        from_id: OrderId(fields.id("fromId")),
        from_num: fields.text("fromNum"),
        type_name: fields.text("type"),
        epctenantid: fields.text("epctenantid"),
        organisation: fields.text("organisation"),
        submitter: UserId(fields.id("submitter")),
        round: SubmitRound(fields.id("submitRound")),
        data_version: DataVersion(fields.id("dataVersion")),
        managers_a: fields.ids("managersA").into_iter().map(UserId).collect(),
        managers_b: fields.ids("managersB").into_iter().map(UserId).collect(),
    };
    fields.finish()?;
    let opened = open(&db, &opening).await.map_err(problem)?;
    let (status, outcome) = match opened.how {
        How::Created => (StatusCode::CREATED, "CREATED"),
        How::Started => (StatusCode::OK, "STARTED"),
        How::Reused => (StatusCode::OK, "REUSED"),
    };
    let plan_status = PlanStatus::Doing.as_str();
    let answer = OpenedAnswer { plan_id: opened.plan.0, status: plan_status, outcome };
    Ok((status, Json(answer)).into_response())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WithdrawnAnswer {
    plan_ids: Vec<i64>,
}

async fn withdraw_plans(
    State(Centre { db, .. }): State<Centre>,
    body: Body,
) -> Result<Json<WithdrawnAnswer>, Problem> {
    let mut fields = object(body)?;
    let withdrawal = Withdrawal {
        from_id: OrderId(fields.id("fromId")),
        type_name: fields.text("type"),
        through_round: fields.maybe_id("throughRound").map(SubmitRound),
        operator: fields.maybe_id("operator").map(UserId),
        reason: fields.text("reason"),
    };
    fields.finish()?;
    let plans = withdraw(&db, &withdrawal).await.map_err(problem)?;
    Ok(Json(WithdrawnAnswer { plan_ids: plans.into_iter().map(|plan| plan.0).collect() }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidedAnswer {
    plan_id: i64,
    status: &'static str,
    node_code: String,
    next_node_code: Option<String>,
}

async fn add_decision(
    State(Centre { db, kicker }): State<Centre>,
    Path(plan): Path<String>,
    body: Body,
) -> Result<Json<DecidedAnswer>, Problem> {
    let mut fields = object(body)?;
    let plan = plan.parse().ok().filter(|id| *id > 0).unwrap_or_else(|| {
        fields.fault("planId", "must be a positive whole number");
        0
    });
    let user = UserId(fields.id("userId"));
    let words = [("APPROVE", Verdict::Approve), ("REJECT", Verdict::Reject)];
    let verdict = fields.choice("decision", &words);
    let remark = fields.maybe_text("remark").unwrap_or_default();
    let node = fields.maybe_id("nodeId");
    fields.finish()?;
    let decision = Decision { plan: PlanId(plan), user, verdict, remark, node };
    let decided = decide(&db, &kicker, &decision).await.map_err(problem)?;
    Ok(Json(DecidedAnswer {
        plan_id: decided.plan.0,
        status: decided.status.as_str(),
        node_code: decided.node_code,
        next_node_code: decided.next_node_code,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InboxAnswer {
    items: Vec<InboxItem>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InboxItem {
    plan_id: i64,
    node_id: i64,
    node_code: String,
    node_name: String,
    from_id: i64,
    from_num: String,
    r#type: String,
    epctenantid: String,
    organisation: String,
    submitter: Option<i64>,
    submit_round: Option<i64>,
    data_version: Option<i64>,
    since: String,
}

impl From<Item> for InboxItem {
    fn from(item: Item) -> InboxItem {
        InboxItem {
            plan_id: item.plan.0,
            node_id: item.node,
            node_code: item.node_code,
            node_name: item.node_name,
            from_id: item.from_id.0,
            from_num: item.from_num,
            r#type: item.type_name,
            epctenantid: item.epctenantid,
            organisation: item.organisation,
            submitter: item.submitter.map(|user| user.0),
            submit_round: item.round.map(|round| round.0),
            data_version: item.data_version.map(|version| version.0),
            since: item.since.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        }
    }
}

async fn read_inbox(
    State(Centre { db, .. }): State<Centre>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<InboxAnswer>, Problem> {
    let Query(pairs) = query.map_err(|_| Problem::of_request(RequestFault::Query))?;
    let mut fields = Fields::of_query(pairs);
    let user = UserId(fields.id("userId"));
    let limit = fields
        .maybe_id("limit")
        .map_or(DEFAULT_PAGE, |limit| u32::try_from(limit).unwrap_or(MAX_PAGE));
    let after = cursor::asked(&mut fields);
    fields.finish()?;
    let page = inbox::of_user(&db, user, after, limit).await.map_err(problem)?;
    Ok(Json(InboxAnswer {
        items: page.items.into_iter().map(InboxItem::from).collect(),
        next_cursor: page.next.map(cursor_of),
    }))
}

/// Lets programs in and browsers not: what a page of another site can send to this address without
/// asking first either has an Origin or is no JSON.
async fn programs_only(request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        return Problem::of_request(RequestFault::Origin).into_response();
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if request.method() == Method::POST && !kind.eq_ignore_ascii_case("application/json") {
        return Problem::of_request(RequestFault::MediaType).into_response();
    }
    next.run(request).await
}

fn object(body: Body) -> Result<Fields, Problem> {
    let body = body.map_err(|rejection| {
        Problem::of_request(RequestFault::of_body(&rejection, MAX_BODY_BYTES))
    })?;
    Fields::of_json(&body)
}

pub(crate) fn problem(error: ReviewError) -> Problem {
    let status = match &error {
        ReviewError::Invalid { field, why } => {
            let fault =
                super::problem::FieldFault { field: (*field).to_owned(), detail: why.clone() };
            return Problem::of_fields(vec![fault]);
        }
        ReviewError::NotConfigured { .. } | ReviewError::NobodyLeft(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ReviewError::PlanNotFound(_) => StatusCode::NOT_FOUND,
        ReviewError::OwnOrder { .. } | ReviewError::NotAssigned { .. } => StatusCode::FORBIDDEN,
        ReviewError::Stale { .. }
        | ReviewError::OtherSubmitter { .. }
        | ReviewError::PlanState { .. }
        | ReviewError::NotYourTurn { .. }
        | ReviewError::NodeNotCurrent { .. }
        | ReviewError::AlreadyDecided { .. }
        | ReviewError::NeededLater { .. } => StatusCode::CONFLICT,
        ReviewError::Contended => StatusCode::SERVICE_UNAVAILABLE,
        ReviewError::Db(_) | ReviewError::Task(_) => {
            // The cause may name tables and values: it is for the log, not for the caller.
            tracing::error!(error = ?error, "the review centre's database failed");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Problem::new(status, error.code(), "the database failed; try again later");
        }
    };
    Problem::new(status, error.code(), error.to_string())
}
