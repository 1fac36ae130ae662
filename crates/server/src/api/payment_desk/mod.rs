//! `/api/payment/…` for programs that read and act: what the commands do, over HTTP.
//!
//! A program signs its requests and acts as the one person that `payment.api-apps` gives it;
//! whoever is not named there is let in nowhere. Source: surface.md "HTTP".

mod acting;
mod payments;
mod reading;
pub(crate) mod refusal;
mod sessions;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Query};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use counterfoil_db::Db;
use counterfoil_payment::partner_push::PartnerInbox;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::treasury::port::Channels;
use counterfoil_protocol::UserId;
use counterfoil_task::{Engine, Kicker};

use super::fields::Fields;
use super::problem::{Problem, RequestFault};
use super::signed::{Caller, Gate, admit};

/// Bytes of a bank's report that is sent in; longer ones come in by the command, from a file.
const MAX_REPORT: usize = 8 * 1024 * 1024;

/// What the desk works with.
#[derive(Clone)]
pub struct Desk {
    /// The database.
    pub db: Db,
    /// Where hints go.
    pub kicker: Kicker,
    /// Who runs a round that a person asks for.
    pub engine: Arc<Engine>,
    /// The ways to push a batch.
    pub channels: Arc<Channels>,
    /// The partners.
    pub inbox: Arc<dyn PartnerInbox>,
    /// Whose rents are abnormal.
    pub tolerance: Tolerance,
    /// The programs that are let in, and whom each acts as.
    pub people: Arc<BTreeMap<String, i64>>,
}

impl Desk {
    /// The person that this program acts as.
    fn person(&self, Caller(app): &Caller) -> Result<UserId, Problem> {
        self.people.get(app).copied().map(UserId).ok_or_else(|| {
            let detail = "this program acts for nobody here: see payment.api-apps";
            Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
        })
    }
}

/// The desk's doors.
pub fn desk_router(desk: Desk, gate: Gate) -> Router {
    let reports = Router::new()
        .route("/api/payment/payment-reports", post(payments::report))
        // The gate has measured the body by then.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(gate.taking(MAX_REPORT), admit))
        .with_state(desk.clone());
    doors().layer(from_fn_with_state(gate, admit)).with_state(desk).merge(reports)
}

fn doors() -> Router<Desk> {
    Router::new()
        .route("/api/payment/sessions", post(sessions::create))
        .route("/api/payment/sessions/{session}", get(sessions::read))
        .route("/api/payment/sessions/{session}/bills", post(sessions::add))
        .route("/api/payment/sessions/{session}/removals", post(sessions::remove))
        .route("/api/payment/sessions/{session}/marks", post(sessions::mark))
        .route("/api/payment/sessions/{session}/submission", post(sessions::submit_it))
        .route("/api/payment/orders", get(reading::orders))
        .route("/api/payment/orders/{order}", get(reading::order))
        .route("/api/payment/orders/{order}/lines", get(reading::lines))
        .route("/api/payment/orders/{order}/timeline", get(reading::timeline))
        .route("/api/payment/orders/{order}/changes", get(reading::changes))
        .route("/api/payment/orders/{order}/cancellation", post(acting::cancel_order))
        .route("/api/payment/orders/{order}/publish-repair", post(acting::repair))
        .route("/api/payment/orders/{order}/payment-record", post(acting::record))
        .route("/api/payment/bills/{station}/{month}", get(reading::bill))
        .route("/api/payment/push-batches", get(reading::batches))
        .route("/api/payment/push-batches/{batch}", get(reading::batch))
        .route("/api/payment/push-batches/{batch}/pushes", post(payments::push))
        .route("/api/payment/push-details/{detail}/fixes", post(payments::put_right))
        .route("/api/payment/deliveries", get(payments::told))
        .route("/api/payment/deliveries/{delivery}", get(payments::told_one))
        .route("/api/payment/deliveries/{delivery}/redeliveries", post(payments::tell_again))
        .route("/api/payment/tasks", get(tasks::list))
        .route("/api/payment/tasks/{task}", get(tasks::one))
        .route("/api/payment/tasks/{task}/rerun-plan", get(tasks::rerun_plan))
        .route("/api/payment/tasks/{task}/reruns", post(tasks::run_again))
        .route("/api/payment/tasks/{task}/cancellation", post(tasks::give_up))
        .route("/api/payment/handlers", get(tasks::handlers))
        .route("/api/payment/handlers/{handler}/rounds", post(tasks::round))
        .route("/api/payment/rules", get(tasks::rules))
        .method_not_allowed_fallback(async || Problem::of_request(RequestFault::Method))
}

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// The parameters of a query string.
fn parameters(pairs: Pairs) -> Result<Fields, Problem> {
    let Query(pairs) = pairs.map_err(|_| Problem::of_request(RequestFault::Query))?;
    Ok(Fields::of_query(pairs))
}

/// Rows of a page, as far as a caller may ask.
fn limit(fields: &mut Fields) -> Option<u32> {
    fields.maybe_id("limit").map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}
