//! The description of the HTTP interface: OpenAPI 3.1 at `/openapi.json`, and a page to browse at
//! `/openapi`. It is a table in the code; a test holds it equal to the routes, both ways.

mod desk;
mod document;
mod forms;
mod others;
mod page;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

pub use document::document;

/// What a field, a parameter or a part of a path holds.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// Any text.
    Text,
    /// A positive whole number.
    Id,
    /// A list of positive whole numbers.
    Ids,
    /// A whole number.
    Number,
    /// true or false.
    Flag,
    /// An RFC 3339 instant.
    Instant,
    /// `YYYYMM`.
    Month,
    /// Rows of a page.
    Limit,
    /// An opaque cursor, as `nextCursor` gave it.
    Cursor,
    /// `[{"stationId","billYearmonth"}]`.
    Bills,
    /// Any object.
    Object,
    /// A list of objects.
    Objects,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A field of a body, or a parameter of a query.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// Whether it must be there.
    pub needed: bool,
    /// What it means.
    pub means: &'static str,
}

/// A field that must be there.
pub const fn needed(name: &'static str, holds: Holds, means: &'static str) -> Field {
    Field { name, holds, needed: true, means }
}

/// A field that may be absent.
pub const fn maybe(name: &'static str, holds: Holds, means: &'static str) -> Field {
    Field { name, holds, needed: false, means }
}

/// What a request brings along.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// Nothing.
    None,
    /// A JSON object with these fields, and no others.
    Fields(&'static [Field]),
    /// A JSON object whose form is said in words.
    Json(&'static str),
    /// Something else than JSON: its media type, and what it is.
    Other(&'static str, &'static str),
}

/// How a caller shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    Open,
    /// An HTTP message signature (RFC 9421).
    Signed,
    /// The header `XXL-JOB-ACCESS-TOKEN`.
    Token,
    /// The message itself is sealed and signed.
    Sealed,
}

/// What is answered when all went well.
#[derive(Debug, Clone, Copy)]
pub struct Good {
    /// The status.
    pub status: u16,
    /// What it says.
    pub says: &'static str,
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// `get`, `post` or `put`.
    pub method: &'static str,
    /// As the router has it.
    pub path: &'static str,
    /// The room it is in.
    pub tag: &'static str,
    /// What it does.
    pub does: &'static str,
    /// Who is let in.
    pub access: Access,
    /// Query parameters.
    pub query: &'static [Field],
    /// The body.
    pub body: Body,
    /// Whether an `Idempotency-Key` is read.
    pub is_keyed: bool,
    /// The good answers.
    pub good: &'static [Good],
    /// Codes of problems that are this door's own.
    pub codes: &'static [&'static str],
}

const fn good(status: u16, says: &'static str) -> Good {
    Good { status, says }
}

const DONE: &[Good] = &[good(200, "done")];

impl Endpoint {
    const fn new(
        method: &'static str,
        path: &'static str,
        tag: &'static str,
        access: Access,
        does: &'static str,
    ) -> Endpoint {
        Endpoint {
            method,
            path,
            tag,
            does,
            access,
            query: &[],
            body: Body::None,
            is_keyed: false,
            good: DONE,
            codes: &[],
        }
    }

    const fn asks(mut self, query: &'static [Field]) -> Endpoint {
        self.query = query;
        self
    }

    const fn takes(mut self, body: Body) -> Endpoint {
        self.body = body;
        self
    }

    const fn says(mut self, good: &'static [Good]) -> Endpoint {
        self.good = good;
        self
    }

    const fn refuses(mut self, codes: &'static [&'static str]) -> Endpoint {
        self.codes = codes;
        self
    }

    const fn keyed(mut self) -> Endpoint {
        self.is_keyed = true;
        self
    }
}

/// Every method of every path that programs call.
pub fn endpoints() -> Vec<Endpoint> {
    [others::OPERATIONS, desk::ENDPOINTS, others::REVIEW, forms::ENDPOINTS, others::XXL_JOB]
        .concat()
}

/// `/openapi.json` and the page.
pub fn router() -> Router {
    Router::new()
        .route("/openapi.json", get(async || axum::Json(document())))
        .route("/openapi", get(browsable))
}

/// Nothing is loaded from anywhere, and nothing runs.
async fn browsable() -> impl IntoResponse {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let policy = HeaderValue::from_static(policy);
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(page::page()))
}
