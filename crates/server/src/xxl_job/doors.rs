//! `/xxl/…`: what admins call. Every answer is HTTP 200; its `code` says how it went.

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use counterfoil_remote::TOKEN_HEADER;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::executor::Executor;
use super::protocol::{FAILURE, LogQuery, OfJob, SUCCESS, Trigger, answer};

/// Bytes of a request: the protocol's own limit.
pub const MAX_BODY_BYTES: usize = 5 * 1024 * 1024;

/// Where the doors are.
pub const PREFIX: &str = "/xxl";

/// The executor's doors.
pub fn router(executor: Executor) -> Router {
    let doors = Router::new()
        .route("/beat", post(beat))
        .route("/idleBeat", post(idle_beat))
        .route("/run", post(run))
        .route("/trigger", post(run))
        .route("/kill", post(kill))
        .route("/log", post(log))
        .method_not_allowed_fallback(async |method: Method| {
            said(Err(format!("invalid request, HttpMethod {method} is not supported")))
        })
        .fallback(async |uri: axum::http::Uri| {
            said(Err(format!("invalid request, uri-mapping({}) not found", uri.path())))
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(executor);
    Router::new().nest(PREFIX, doors)
}

type Body = Result<Bytes, BytesRejection>;

async fn beat(State(executor): State<Executor>, headers: HeaderMap) -> Response {
    said(admitted(&executor, &headers).map(|()| Value::Null))
}

async fn idle_beat(State(executor): State<Executor>, headers: HeaderMap, body: Body) -> Response {
    let asked = read::<OfJob>(&executor, &headers, body);
    said(asked.and_then(|OfJob { job_id }| match executor.is_busy(job_id) {
        true => Err("job thread is running or has trigger queue".into()),
        false => Ok(Value::Null),
    }))
}

async fn run(State(executor): State<Executor>, headers: HeaderMap, body: Body) -> Response {
    match read::<Trigger>(&executor, &headers, body) {
        Ok(trigger) => said(executor.trigger(trigger).await.map(|()| Value::Null)),
        Err(refused) => said(Err(refused)),
    }
}

async fn kill(State(executor): State<Executor>, headers: HeaderMap, body: Body) -> Response {
    match read::<OfJob>(&executor, &headers, body) {
        Ok(OfJob { job_id }) => {
            executor.kill(job_id).await;
            said(Ok(Value::Null))
        }
        Err(refused) => said(Err(refused)),
    }
}

async fn log(State(executor): State<Executor>, headers: HeaderMap, body: Body) -> Response {
    match read::<LogQuery>(&executor, &headers, body) {
        Ok(query) => said(executor.log(&query).await.map(|part| json!(part))),
        Err(refused) => said(Err(refused)),
    }
}

fn said(outcome: Result<Value, String>) -> Response {
    let body = match outcome {
        Ok(payload) => answer(SUCCESS, None, &payload),
        Err(message) => answer(FAILURE, Some(&message), &Value::Null),
    };
    let kind = [(header::CONTENT_TYPE, "application/json;charset=UTF-8")];
    (StatusCode::OK, kind, body.to_string()).into_response()
}

/// The body of an admin that has shown the token.
fn read<T: DeserializeOwned>(
    executor: &Executor,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, String> {
    admitted(executor, headers)?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => format!("the body is longer than {MAX_BODY_BYTES} bytes"),
        _ => "the body could not be read to its end".to_owned(),
    })?;
    serde_json::from_slice(&body).map_err(|error| format!("the body cannot be read: {error}"))
}

fn admitted(executor: &Executor, headers: &HeaderMap) -> Result<(), String> {
    let shown = headers.get(TOKEN_HEADER).map(|value| value.as_bytes()).unwrap_or_default();
    match is_same(shown, executor.token().as_bytes()) {
        true => Ok(()),
        false => Err("The access token is wrong.".into()),
    }
}

/// Takes as long for a wrong token as for the right one.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |sum, (one, other)| sum | (one ^ other));
    shown.len() == token.len() && differences == 0
}
