//! Limits on time and on what a body says of itself.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::MAX_REQUEST_BYTES;
use crate::api::problem::{Problem, RequestFault};

/// How long and how much a process takes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time; further ones wait to be accepted.
    pub connections: usize,
    /// Until a request's head is there, also of the next one on an idle connection.
    pub head: Duration,
    /// Between two parts of a body.
    pub body: Duration,
    /// Until a request is answered.
    pub request: Duration,
    /// For open requests to end once the process is to stop.
    pub drain: Duration,
}

/// Gives up on a request that takes too long. What it committed stands.
pub(super) async fn in_time(
    State(limits): State<Limits>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(limits.request, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            tracing::warn!("a request took too long and was given up");
            Problem::of_request(RequestFault::TimeOut).into_response()
        }
    }
}

/// Refuses a body that is too long before any of it is read, and puts a code on what a limit says
/// without one.
pub(super) async fn declared(request: Request, next: Next) -> Response {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > MAX_REQUEST_BYTES) {
        let most = MAX_REQUEST_BYTES;
        return Problem::of_request(RequestFault::TooLarge { most }).into_response();
    }
    let response = next.run(request).await;
    let is_bare = response.status() == StatusCode::PAYLOAD_TOO_LARGE && !is_problem(&response);
    if is_bare {
        let most = MAX_REQUEST_BYTES;
        return Problem::of_request(RequestFault::TooLarge { most }).into_response();
    }
    response
}

fn is_problem(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/"))
}
