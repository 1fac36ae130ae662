//! Counting requests, and telling Prometheus. Labels are routes as they are written here, never
//! paths as they come in.

use std::sync::OnceLock;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

const REQUESTS: &str = "counterfoil_http_requests_total";
const REQUEST_SECONDS: &str = "counterfoil_http_request_seconds";
/// The age of the oldest piece of work of each stage.
pub(super) const OLDEST: &str = "counterfoil_oldest_seconds";
/// In seconds.
const BUCKETS: [f64; 8] = [0.005, 0.02, 0.05, 0.2, 0.5, 2.0, 10.0, 60.0];
/// What no route takes.
const NO_ROUTE: &str = "none";

/// One recorder a process; `None` where somebody else has installed one.
static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Makes the process count.
pub(super) fn record() {
    RECORDER.get_or_init(|| {
        let matcher = Matcher::Full(REQUEST_SECONDS.to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(matcher, &BUCKETS);
        let recorder = builder.and_then(PrometheusBuilder::install_recorder);
        let recorder = recorder.inspect_err(|error| tracing::warn!(%error, "nothing is counted"));
        describe();
        recorder.ok()
    });
}

fn describe() {
    use counterfoil_task::{KICKS, OUTCOMES, RULE_VERDICTS, TAKEOVERS};
    describe_counter!(OUTCOMES, "Tasks and turns by handler and outcome");
    describe_counter!(KICKS, "Hints by stage: hit, miss, or dropped for the scan");
    describe_counter!(TAKEOVERS, "Tasks and leased rows taken over from a process that died");
    describe_counter!(RULE_VERDICTS, "Invariant rules by verdict: held, broken or unreadable");
    describe_counter!(REQUESTS, "HTTP requests by route, method and status");
    describe_histogram!(REQUEST_SECONDS, "Seconds until a request was answered, by route");
    describe_gauge!(OLDEST, "Age of the oldest unfinished work by stage; 0 = there is none");
}

/// Everything counted so far, as Prometheus reads it.
pub(super) fn rendered() -> String {
    match RECORDER.get() {
        Some(Some(recorder)) => {
            recorder.run_upkeep();
            recorder.render()
        }
        _ => String::new(),
    }
}

/// Counts a request.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = route.unwrap_or_else(|| NO_ROUTE.to_owned());
    let method = method(request.method());
    let began = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    let seconds = began.elapsed().as_secs_f64();
    histogram!(REQUEST_SECONDS, "route" => route.clone()).record(seconds);
    counter!(REQUESTS, "route" => route, "method" => method, "status" => status).increment(1);
    response
}

/// A method is a label only if it is a known one: a caller may make up any.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
