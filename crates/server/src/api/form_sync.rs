//! `/oapi/form-sync/…`: what the two sides say to each other, signed both ways.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use counterfoil_db::Db;
use counterfoil_reconcile::form_centre::{
    CentreSettings, authorise, authority, digest, manifest, report,
};
use counterfoil_reconcile::service_hall::{HallSettings, receive};
use counterfoil_reconcile::wire::{
    Ack, AskedRange, Authorities, Authority, Digests, Dispatch, GrantState, KeySpan, ManifestPage,
    Question, Questions, RangeRows, Ranges, Report,
};
use counterfoil_reconcile::{Refusal, is_answer_uuid};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::problem::{Problem, RequestFault};
use super::signed::{Caller, Gate, admit};

#[derive(Clone)]
struct Centre {
    db: Db,
    settings: CentreSettings,
}

/// The centre's doors for its consumers.
pub fn centre_router(db: Db, settings: CentreSettings, gate: Gate) -> Router {
    Router::new()
        .route("/oapi/form-sync/tasks/{task}/manifest", get(read_manifest))
        .route("/oapi/form-sync/tasks/{task}/digests", post(read_digests))
        .route("/oapi/form-sync/tasks/{task}/rows", post(read_rows))
        .route("/oapi/form-sync/tasks/{task}/grant", get(read_grant))
        .route("/oapi/form-sync/tasks/{task}/answers/{uuid}", get(read_answer))
        .route("/oapi/form-sync/tasks/{task}/answers", post(read_answers))
        .route("/oapi/form-sync/tasks/{task}/result", post(take_result))
        .layer(from_fn_with_state(gate, admit))
        .with_state(Centre { db, settings })
}

type Pairs<T> = Result<Query<T>, QueryRejection>;

fn query<T>(pairs: Pairs<T>) -> Result<T, Problem> {
    pairs.map(|Query(value)| value).map_err(|_| Problem::of_request(RequestFault::Query))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    cursor: Option<String>,
    size: Option<u32>,
}

async fn read_manifest(
    State(Centre { db, settings }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
    asked: Pairs<PageQuery>,
) -> Result<Json<ManifestPage>, Problem> {
    let PageQuery { cursor, size } = query(asked)?;
    let page = manifest::page(&db, &settings, &task, &app, cursor.as_deref(), size).await;
    page.map(Json).map_err(problem)
}

async fn read_digests(
    State(Centre { db, .. }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<Digests>, Problem> {
    let Ranges { ranges } = json::<Ranges<AskedRange>>(&body)?;
    digest::digests(&db, &task, &app, &ranges).await.map(Json).map_err(problem)
}

async fn read_rows(
    State(Centre { db, .. }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<RangeRows>, Problem> {
    let Ranges { ranges } = json::<Ranges<KeySpan>>(&body)?;
    digest::rows(&db, &task, &app, &ranges).await.map(Json).map_err(problem)
}

async fn read_grant(
    State(Centre { db, .. }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
) -> Result<Json<GrantState>, Problem> {
    let (_, grant) = authorise::authorise(&db, &task, &app).await.map_err(problem)?;
    Ok(Json(grant))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AnswerQuery {
    expected_revision: Option<i64>,
}

async fn read_answer(
    State(Centre { db, settings }): State<Centre>,
    Caller(app): Caller,
    Path((task, answer_uuid)): Path<(String, String)>,
    asked: Pairs<AnswerQuery>,
) -> Result<Json<Authority>, Problem> {
    let AnswerQuery { expected_revision } = query(asked)?;
    if !is_answer_uuid(&answer_uuid) {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let detail = "an answer's uuid is 32 lower-case hexadecimal digits";
        return Err(Problem::new(status, "INVALID_INPUT", detail));
    }
    let question = [Question { answer_uuid, expected_revision }];
    let said = authority::ask(&db, &settings, &task, &app, &question).await.map_err(problem)?;
    let one = said.into_iter().next();
    one.map(Json).ok_or_else(|| Problem::of_request(RequestFault::Unreadable))
}

async fn read_answers(
    State(Centre { db, settings }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<Authorities>, Problem> {
    let Questions { items } = json(&body)?;
    let items = authority::ask(&db, &settings, &task, &app, &items).await.map_err(problem)?;
    Ok(Json(Authorities { items }))
}

async fn take_result(
    State(Centre { db, settings }): State<Centre>,
    Caller(app): Caller,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<Ack>, Problem> {
    let said: Report = json(&body)?;
    report::receive(&db, &settings, &task, &app, &said).await.map(Json).map_err(problem)
}

#[derive(Clone)]
struct Hall {
    db: Db,
    settings: HallSettings,
}

/// The hall's door for its centre. `path` is where orders come in.
pub fn hall_router(db: Db, settings: HallSettings, gate: Gate, path: &str) -> Router {
    Router::new()
        .route(path, post(take_order))
        .layer(from_fn_with_state(gate, admit))
        .with_state(Hall { db, settings })
}

async fn take_order(
    State(Hall { db, settings }): State<Hall>,
    Caller(app): Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let order: Dispatch = json(&body)?;
    let received = receive::receive(&db, &settings, &app, &order).await.map_err(problem)?;
    let outcome = match received {
        receive::Received::Queued => "QUEUED",
        receive::Received::Known => "KNOWN",
    };
    let answer = serde_json::json!({ "taskId": order.task_id, "outcome": outcome });
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

/// A body as it must be. What is wrong with it is named by its place, never quoted.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        if error.is_data() {
            let detail = format!("a field is missing or wrong ({place})");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_INPUT", detail)
        } else {
            Problem::of_request(RequestFault::Malformed(place))
        }
    })
}

pub(super) fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Coded { code, message } => {
            let status = StatusCode::from_u16(code.status());
            let status = status.unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            Problem::new(status, code.as_str(), message)
        }
        Refusal::Db(cause) => {
            tracing::error!(error = ?cause, "the database failed");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "database-error", "the database failed; try again later")
        }
    }
}
