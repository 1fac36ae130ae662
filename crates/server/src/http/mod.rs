//! What every request meets before its door: limits on time, bytes and connections, a request id,
//! and counting; and the doors of operations: `/healthz`, `/readyz`, `/metrics`.

mod age;
mod connections;
mod health;
mod limits;
mod measured;
mod request_id;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

pub use connections::serve;
pub use health::{Health, router as operations};
pub use limits::Limits;
pub use request_id::RequestId;

use crate::api::problem::{Problem, RequestFault};

/// Bytes of any request's body; doors have limits of their own below it.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;

/// The doors behind everything that is common to them. What no door takes is a problem with a
/// code.
pub fn dressed(doors: Router, limits: Limits) -> Router {
    measured::record();
    doors
        .fallback(async |uri: Uri| {
            tracing::debug!(path = uri.path(), "no such path");
            Problem::of_request(RequestFault::Path)
        })
        .method_not_allowed_fallback(async || Problem::of_request(RequestFault::Method))
        .layer(from_fn(without_nul))
        .layer(RequestBodyTimeoutLayer::new(limits.body))
        .layer(RequestBodyLimitLayer::new(MAX_REQUEST_BYTES))
        .layer(from_fn_with_state(limits, limits::in_time))
        .layer(from_fn(limits::declared))
        .layer(from_fn(measured::count))
        .layer(from_fn(request_id::named))
}

/// Nothing here is called by a name with U+0000 in it, and PostgreSQL takes none as a text.
async fn without_nul(request: Request, next: Next) -> Response {
    if request.uri().path_and_query().is_some_and(|path| path.as_str().contains("%00")) {
        return Problem::of_request(RequestFault::Path).into_response();
    }
    next.run(request).await
}
