//! The operator console: pages for people, rendered here, in Chinese and English.
//!
//! Handlers are thin: they read what the domains' read models say and put it into a page, or do
//! under the eyes of the audit what a command does. Every page is whole without a script. What a
//! person or a partner typed is escaped where it is put in, and the content security policy lets
//! nothing run or load that is not this binary's. Source: surface.md "Console", and the look by
//! example.

mod accounts;
mod act;
mod batches;
mod bills;
mod chart;
mod deliveries;
mod door;
mod find;
mod incidents;
mod jobs;
mod looks;
mod order;
mod order_acts;
mod order_history;
mod orders;
mod overview;
mod own;
mod parts;
mod reconciliation;
mod reviews;
mod rules;
mod sessions;
mod shell;
mod sign_in;
mod steps;
mod stuck;
mod subjects;
mod tasks;
mod texts;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use counterfoil_account::Permission::{self, Administer, Decide, Look, Operate};
use counterfoil_db::Db;
use counterfoil_payment::partner_push::PartnerInbox;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::treasury::port::Channels;
use counterfoil_reconcile::form_centre::CentreSettings;
use counterfoil_task::{Engine, Rule};

use door::{Door, admit};

/// What the console works with.
#[derive(Clone)]
pub struct Console(Arc<Inside>);

/// What all its pages share.
pub struct Inside {
    /// The database.
    pub db: Db,
    /// What works: for reruns and rounds that a person asks for.
    pub engine: Arc<Engine>,
    /// All rules, of all domains.
    pub rules: Vec<Rule>,
    /// Whose rents are abnormal.
    pub tolerance: Tolerance,
    /// Where partners are told things.
    pub inbox: Arc<dyn PartnerInbox>,
    /// How orders are paid.
    pub channels: Channels,
    /// The form centre's terms.
    pub centre: CentreSettings,
    /// Whether browsers come over TLS: cookies go nowhere else then.
    pub secure: bool,
    /// Whether our own proxy stands before us and says who called.
    pub behind_proxy: bool,
}

impl std::ops::Deref for Console {
    type Target = Inside;

    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

/// The rooms of the console, each behind the permission that it takes.
struct Rooms {
    router: Router<Console>,
    console: Console,
}

impl Rooms {
    fn with(mut self, path: &str, needs: Permission, room: MethodRouter<Console>) -> Rooms {
        let door = Door { console: self.console.clone(), needs };
        self.router = self.router.route(path, room.layer(from_fn_with_state(door, admit)));
        self
    }
}

/// The console's doors.
pub fn console_router(inside: Inside) -> Router {
    let console = Console(Arc::new(inside));
    let rooms = Rooms { router: Router::new(), console: console.clone() };
    let rooms = acting(looking(rooms));
    let open = Router::new()
        .route("/", get(async || Redirect::to("/console")))
        .route("/console/sign-in", get(sign_in::show).post(sign_in::enter))
        .route("/console/language/{code}", get(sign_in::language))
        .route("/console/assets/{name}", get(sign_in::asset));
    rooms.router.merge(open).layer(from_fn(guarded)).with_state(console)
}

fn looking(rooms: Rooms) -> Rooms {
    rooms
        .with("/console", Look, get(overview::show))
        .with("/console/stuck", Look, get(stuck::show))
        .with("/console/orders", Look, get(orders::list))
        .with("/console/orders/{order}", Look, get(order::show))
        .with("/console/orders/{order}/lines", Look, get(orders::lines))
        .with("/console/orders/{order}/changes", Look, get(orders::changes))
        .with("/console/sessions/{session}", Look, get(sessions::show))
        .with("/console/bills", Look, get(bills::ask))
        .with("/console/bills/{station}/{month}", Look, get(bills::show))
        .with("/console/tasks", Look, get(tasks::list))
        .with("/console/tasks/{task}", Look, get(tasks::show))
        .with("/console/reviews", Look, get(reviews::list))
        .with("/console/reviews/{plan}", Look, get(reviews::show))
        .with("/console/deliveries", Look, get(deliveries::list))
        .with("/console/deliveries/{delivery}", Look, get(deliveries::show))
        .with("/console/batches", Look, get(batches::list))
        .with("/console/batches/{batch}", Look, get(batches::show))
        .with("/console/reconciliation", Look, get(reconciliation::list))
        .with("/console/reconciliation/{task}", Look, get(reconciliation::show))
        .with("/console/rules", Look, get(rules::show))
        .with("/console/incidents", Look, get(incidents::show))
        .with("/console/find", Look, get(find::find))
        .with("/console/me", Look, get(own::show).post(own::password))
        .with("/console/sign-out", Look, post(sign_in::leave))
        .with("/console/accounts", Administer, get(accounts::list).post(accounts::add))
        .with("/console/accounts/{login}", Administer, post(accounts::change))
        .with("/console/audit", Administer, get(accounts::audit))
}

fn acting(rooms: Rooms) -> Rooms {
    use order_acts as acts;
    rooms
        .with("/console/orders/{order}/cancel", Operate, get(acts::ask_cancel).post(acts::cancel))
        .with("/console/orders/{order}/payment", Operate, get(acts::ask_paid).post(acts::paid))
        .with("/console/orders/{order}/repair", Operate, get(acts::ask_repair).post(acts::repair))
        .with(
            "/console/orders/{order}/revise",
            Operate,
            get(sessions::ask_revise).post(sessions::revise),
        )
        .with("/console/sessions", Operate, post(sessions::open))
        .with("/console/sessions/{session}/bills", Operate, post(sessions::add))
        .with("/console/sessions/{session}/removals", Operate, post(sessions::remove))
        .with("/console/sessions/{session}/submission", Operate, post(sessions::send))
        .with("/console/tasks/{task}/rerun", Operate, get(tasks::ask_rerun).post(tasks::rerun))
        .with("/console/tasks/{task}/cancel", Operate, get(tasks::ask_cancel).post(tasks::cancel))
        .with("/console/jobs/{handler}", Operate, get(jobs::ask).post(jobs::run))
        .with("/console/reviews/{plan}/decision", Decide, post(reviews::decide))
        .with("/console/deliveries/{delivery}/again", Operate, post(deliveries::again))
        .with("/console/batches/{batch}/push", Operate, post(batches::push))
        .with("/console/batches/{batch}/fix/{detail}", Operate, post(batches::fix_payee))
        .with("/console/reconciliation/new", Operate, post(reconciliation::create))
        .with("/console/reconciliation/{task}/cancel", Operate, post(reconciliation::cancel))
        .with("/console/rules/check", Look, post(rules::check))
}

/// What a browser may do with our pages: nothing that is not ours runs, loads, frames or is sent
/// elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every answer of the console.
async fn guarded(request: Request, next: Next) -> Response {
    let is_asset = request.uri().path().starts_with("/console/assets/");
    let mut response = next.run(request).await;
    if response.status() == StatusCode::UNAUTHORIZED {
        // No room without a door; should there ever be one, it stays shut.
        response = StatusCode::FORBIDDEN.into_response();
    }
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "same-origin");
    set(header::X_FRAME_OPTIONS, "DENY");
    if !is_asset {
        set(header::CACHE_CONTROL, "no-store");
    }
    response
}
