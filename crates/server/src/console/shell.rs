//! What stands around every page, and the page of what went wrong.

use axum::Extension;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use counterfoil_account::{AccountError, Permission};
use counterfoil_payment::PaymentError;
use counterfoil_payment::treasury::TreasuryError;
use counterfoil_reconcile::refusal::Refusal;
use counterfoil_review::ReviewError;
use counterfoil_task::TaskError;
use maud::{DOCTYPE, Markup, html};

use super::door::{Asked, Visitor};
use super::parts;
use super::texts::{Lang, role};
use crate::api::payment_desk::refusal::{of_payment, of_treasury};
use crate::api::problem::{Problem, RequestFault};

/// The rooms of the console, in the order of the day's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Overview,
    Stuck,
    Orders,
    Bills,
    Tasks,
    Reviews,
    Deliveries,
    Batches,
    Reconciliation,
    Rules,
    Incidents,
    Accounts,
    Audit,
    Own,
}

impl Room {
    const LISTED: [Room; 13] = [
        Room::Overview,
        Room::Stuck,
        Room::Orders,
        Room::Bills,
        Room::Tasks,
        Room::Reviews,
        Room::Deliveries,
        Room::Batches,
        Room::Reconciliation,
        Room::Rules,
        Room::Incidents,
        Room::Accounts,
        Room::Audit,
    ];

    fn path(self) -> &'static str {
        match self {
            Room::Overview => "/console",
            Room::Stuck => "/console/stuck",
            Room::Orders => "/console/orders",
            Room::Bills => "/console/bills",
            Room::Tasks => "/console/tasks",
            Room::Reviews => "/console/reviews",
            Room::Deliveries => "/console/deliveries",
            Room::Batches => "/console/batches",
            Room::Reconciliation => "/console/reconciliation",
            Room::Rules => "/console/rules",
            Room::Incidents => "/console/incidents",
            Room::Accounts => "/console/accounts",
            Room::Audit => "/console/audit",
            Room::Own => "/console/me",
        }
    }

    fn name(self, lang: Lang) -> &'static str {
        match self {
            Room::Overview => lang.overview(),
            Room::Stuck => lang.stuck(),
            Room::Orders => lang.orders(),
            Room::Bills => lang.bills(),
            Room::Tasks => lang.tasks(),
            Room::Reviews => lang.reviews(),
            Room::Deliveries => lang.deliveries(),
            Room::Batches => lang.batches(),
            Room::Reconciliation => lang.reconciliation(),
            Room::Rules => lang.rules(),
            Room::Incidents => lang.incidents(),
            Room::Accounts => lang.accounts(),
            Room::Audit => lang.audit(),
            Room::Own => lang.own_account(),
        }
    }

    fn needs(self) -> Permission {
        match self {
            Room::Accounts | Room::Audit => Permission::Administer,
            _ => Permission::Look,
        }
    }
}

/// What a page is.
pub(super) struct Page {
    room: Room,
    title: String,
    body: Markup,
    is_live: bool,
}

impl Page {
    /// A page of a room.
    pub(super) fn new(room: Room, title: impl Into<String>, body: Markup) -> Page {
        Page { room, title: title.into(), body, is_live: false }
    }

    /// A page that shows what is new by itself, where a script may run.
    #[must_use]
    pub(super) fn live(mut self) -> Page {
        self.is_live = true;
        self
    }

    /// With all that stands around it.
    pub(super) fn shown_to(self, visitor: &Visitor) -> Response {
        let lang = visitor.lang();
        let inner = html! {
            (header(visitor, self.room))
            main id="content" tabindex="-1" {
                (told(visitor))
                div data-live[self.is_live] { (self.body) }
            }
            footer {
                span class="mono" title=(lang.reference()) { (visitor.asked.request_id) }
                @if self.is_live { span class="quiet" data-live-note { (lang.live()) } }
            }
        };
        document(StatusCode::OK, lang, &self.title, inner)
    }
}

/// What handlers answer.
pub(super) type Answer = Result<Response, Trouble>;

fn header(visitor: &Visitor, here: Room) -> Markup {
    let lang = visitor.lang();
    let (code, back) = (lang.pick("en", "zh"), &visitor.asked.path);
    html! {
        a class="skip" href="#content" { (lang.to_content()) }
        header {
            a class="brand" href="/console" { b { (lang.brand()) } }
            nav aria-label=(lang.nav()) {
                @for room in Room::LISTED.into_iter().filter(|room| visitor.may(room.needs())) {
                    a href=(room.path()) aria-current=[(room == here).then_some("page")] {
                        (room.name(lang))
                    }
                }
            }
            form class="find" role="search" action="/console/find" method="get" {
                input type="search" name="q" placeholder=(lang.find_hint())
                    aria-label=(lang.find()) maxlength="200";
            }
            div class="who" {
                a href="/console/me" {
                    (visitor.account.name) " · " (role(lang, visitor.account.role))
                }
                a href={ "/console/language/" (code) "?back=" (parts::escaped(back)) }
                    lang=(code) { (lang.other_language()) }
                form method="post" action="/console/sign-out" {
                    (proof(visitor))
                    button class="plain" type="submit" { (lang.sign_out()) }
                }
            }
        }
    }
}

/// What came of the action that led here, from the audit.
fn told(visitor: &Visitor) -> Markup {
    let lang = visitor.lang();
    html! {
        @if let Some(entry) = &visitor.said {
            p class="told" role="status" {
                (parts::stored(lang, &entry.outcome)) " " strong { (entry.action) } " "
                span class="mono" { (entry.subject) } " " (entry.detail)
            }
        }
    }
}

/// The proof that a form came out of a page of ours.
pub(super) fn proof(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="csrf" value=(visitor.csrf); }
}

/// A whole page.
pub(super) fn document(status: StatusCode, lang: Lang, title: &str, inner: Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang=(lang.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) " · " (lang.pick("存根", "Counterfoil")) }
                link rel="stylesheet" href="/console/assets/console.css";
                link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml";
                script src="/console/assets/console.js" defer {}
            }
            body { (inner) }
        }
    };
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    (status, [(header::CONTENT_TYPE, kind)], page.into_string()).into_response()
}

/// Something that was refused or failed.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    status: StatusCode,
    code: &'static str,
    what: What,
}

/// In our own words of both languages, or in the domain's.
#[derive(Debug, Clone)]
enum What {
    Ours(fn(Lang) -> &'static str),
    Theirs(String),
}

/// What only the console refuses.
#[derive(Debug, Clone, Copy)]
enum Cause {
    NotAllowed,
    NotThere,
    StaleForm,
    RoundFailed,
}

impl Cause {
    /// The stable code; its page is `docs/errors/<code>.md`.
    fn code(self) -> &'static str {
        match self {
            Cause::NotAllowed => "forbidden",
            Cause::NotThere => "page-not-found",
            Cause::StaleForm => "stale-form",
            Cause::RoundFailed => "round-failed",
        }
    }
}

impl Trouble {
    fn ours(status: StatusCode, code: &'static str, say: fn(Lang) -> &'static str) -> Trouble {
        Trouble { status, code, what: What::Ours(say) }
    }

    pub(super) fn not_allowed() -> Trouble {
        Trouble::ours(StatusCode::FORBIDDEN, Cause::NotAllowed.code(), Lang::not_allowed)
    }

    pub(super) fn not_there() -> Trouble {
        Trouble::ours(StatusCode::NOT_FOUND, Cause::NotThere.code(), Lang::not_there)
    }

    pub(super) fn stale_form() -> Trouble {
        Trouble::ours(StatusCode::FORBIDDEN, Cause::StaleForm.code(), Lang::stale_form)
    }

    pub(super) fn round_failed(what: impl Into<String>) -> Trouble {
        Trouble::conflict(Cause::RoundFailed.code(), what)
    }

    pub(super) fn too_large(most: usize) -> Trouble {
        let fault = RequestFault::TooLarge { most };
        let what = What::Theirs(fault.to_string());
        Trouble { status: StatusCode::PAYLOAD_TOO_LARGE, code: fault.code(), what }
    }

    pub(super) fn invalid(why: impl Into<String>) -> Trouble {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Trouble { status, code: RequestFault::Fields.code(), what: What::Theirs(why.into()) }
    }

    pub(super) fn conflict(code: &'static str, why: impl Into<String>) -> Trouble {
        Trouble { status: StatusCode::CONFLICT, code, what: What::Theirs(why.into()) }
    }

    pub(super) fn database_down() -> Trouble {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Trouble::ours(status, "database-error", Lang::database_down)
    }

    pub(super) fn of(problem: &Problem) -> Trouble {
        let (status, code, detail) = problem.told();
        if status.is_server_error() {
            return Trouble::ours(status, code, Lang::database_down);
        }
        Trouble { status, code, what: What::Theirs(detail.to_owned()) }
    }

    /// Whether nothing was done, for certain.
    pub(super) fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// What it says.
    pub(super) fn text(&self, lang: Lang) -> String {
        match &self.what {
            What::Ours(say) => say(lang).to_owned(),
            What::Theirs(text) => text.clone(),
        }
    }

    fn body(&self, lang: Lang, request_id: &str) -> Markup {
        html! {
            h1 { (lang.failed()) }
            div class="verdict" {
                strong { (self.status.as_u16()) } span { (self.text(lang)) }
            }
            p class="lede" {
                span class="mono" { (self.code) } " · " (lang.reference()) " "
                span class="mono" { (request_id) }
            }
            p { a class="button" href="/console" { (lang.back_home()) } }
        }
    }
}

/// Shown by the door, which knows who asked.
impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        (self.status, Extension(self)).into_response()
    }
}

impl From<AccountError> for Trouble {
    fn from(error: AccountError) -> Trouble {
        let status = match &error {
            AccountError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            AccountError::NotFound(_) => StatusCode::NOT_FOUND,
            AccountError::Exists(_) | AccountError::LastAdmin(_) => StatusCode::CONFLICT,
            AccountError::WrongPassword => StatusCode::FORBIDDEN,
            AccountError::Blocked { .. } => StatusCode::TOO_MANY_REQUESTS,
            AccountError::Hash(_) | AccountError::Db(_) => return failed(&error, error.code()),
        };
        Trouble { status, code: error.code(), what: What::Theirs(error.to_string()) }
    }
}

impl From<counterfoil_db::Error> for Trouble {
    fn from(error: counterfoil_db::Error) -> Trouble {
        failed(&error, "database-error")
    }
}

impl From<TaskError> for Trouble {
    fn from(error: TaskError) -> Trouble {
        failed(&error, "database-error")
    }
}

impl From<PaymentError> for Trouble {
    fn from(error: PaymentError) -> Trouble {
        Trouble::of(&of_payment(error))
    }
}

impl From<TreasuryError> for Trouble {
    fn from(error: TreasuryError) -> Trouble {
        Trouble::of(&of_treasury(error))
    }
}

impl From<ReviewError> for Trouble {
    fn from(error: ReviewError) -> Trouble {
        Trouble::of(&crate::api::review::problem(error))
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        let Some(code) = refusal.refused() else {
            return failed(&refusal, "database-error");
        };
        let status = StatusCode::from_u16(code.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Trouble { status, code: code.as_str(), what: What::Theirs(refusal.to_string()) }
    }
}

/// The cause is for our own log.
fn failed(error: &dyn std::error::Error, code: &'static str) -> Trouble {
    tracing::error!(?error, "a page or an action of the console failed");
    Trouble::ours(StatusCode::SERVICE_UNAVAILABLE, code, Lang::database_down)
}

/// The page of what went wrong.
pub(super) fn trouble(visitor: &Visitor, trouble: &Trouble) -> Response {
    let lang = visitor.lang();
    let inner = html! {
        (header(visitor, Room::Own))
        main id="content" tabindex="-1" { (trouble.body(lang, &visitor.asked.request_id)) }
    };
    document(trouble.status, lang, lang.failed(), inner)
}

/// The same for somebody who is not known.
pub(super) fn trouble_outside(asked: &Asked, trouble: &Trouble) -> Response {
    let body = html! { main { (trouble.body(asked.lang, &asked.request_id)) } };
    document(trouble.status, asked.lang, asked.lang.failed(), body)
}

/// To a page, which tells what came of this request.
pub(super) fn back_to(visitor: &Visitor, path: &str) -> Response {
    let joint = if path.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{path}{joint}said={}", visitor.asked.request_id)).into_response()
}
