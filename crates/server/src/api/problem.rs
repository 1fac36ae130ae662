//! Errors over HTTP: RFC 9457 problem+json with a stable code.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldFault {
    /// The field, as the caller spells it.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// An error answer.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    r#type: String,
    title: &'static str,
    #[serde(serialize_with = "number")]
    status: StatusCode,
    detail: String,
    code: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldFault>,
}

fn number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

impl Problem {
    /// A problem with its stable code; the title is the status's own.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            r#type: format!("urn:counterfoil:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: detail.into(),
            code,
            errors: Vec::new(),
        }
    }

    /// Its status, its stable code, and what it says.
    pub(crate) fn told(&self) -> (StatusCode, &'static str, &str) {
        (self.status, self.code, &self.detail)
    }

    /// A body that cannot be read at all.
    pub fn of_request(fault: RequestFault) -> Problem {
        Problem::new(fault.status(), fault.code(), fault.to_string())
    }

    /// Fields that are missing, unknown or wrong: all of them, by name.
    pub fn of_fields(errors: Vec<FieldFault>) -> Problem {
        let detail = errors.iter().map(|fault| format!("{}: {}", fault.field, fault.detail));
        let detail = detail.collect::<Vec<_>>().join("; ");
        let fault = RequestFault::Fields;
        Problem { errors, ..Problem::new(fault.status(), fault.code(), detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// What is wrong with a request before anybody looks at what it means.
#[derive(Debug, thiserror::Error)]
pub enum RequestFault {
    /// The body is no JSON object.
    #[error("the body is not a JSON object: {0}")]
    Malformed(String),
    /// The query string is none.
    #[error("the query string cannot be read")]
    Query,
    /// Some field is missing, unknown or wrong.
    #[error("some fields are missing, unknown or wrong")]
    Fields,
    /// The body is over the limit.
    #[error("the body is longer than {most} bytes")]
    TooLarge {
        /// The limit.
        most: usize,
    },
    /// The body broke off.
    #[error("the body could not be read to its end")]
    Unreadable,
    /// The body is not declared as JSON.
    #[error("the body must be application/json")]
    MediaType,
    /// A page in a browser sent it.
    #[error("requests with an Origin are refused: this is an interface for programs")]
    Origin,
    /// The path takes other methods only.
    #[error("this path does not take that method")]
    Method,
    /// No door has this path.
    #[error("there is nothing at this path")]
    Path,
    /// It took too long to be read or answered.
    #[error("the request took too long and was given up; what it committed stands")]
    TimeOut,
}

impl RequestFault {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            RequestFault::Malformed(_) => "malformed-json",
            RequestFault::Query => "malformed-query",
            RequestFault::Fields => "invalid-input",
            RequestFault::TooLarge { .. } => "body-too-large",
            RequestFault::Unreadable => "body-unreadable",
            RequestFault::MediaType => "unsupported-media-type",
            RequestFault::Origin => "foreign-origin",
            RequestFault::Method => "method-not-allowed",
            RequestFault::Path => "path-not-found",
            RequestFault::TimeOut => "request-timeout",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            RequestFault::Malformed(_) | RequestFault::Query | RequestFault::Unreadable => {
                StatusCode::BAD_REQUEST
            }
            RequestFault::Fields => StatusCode::UNPROCESSABLE_ENTITY,
            RequestFault::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            RequestFault::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            RequestFault::Origin => StatusCode::FORBIDDEN,
            RequestFault::Method => StatusCode::METHOD_NOT_ALLOWED,
            RequestFault::Path => StatusCode::NOT_FOUND,
            RequestFault::TimeOut => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The fault of a body that was not taken in, under a limit of `most` bytes.
    pub fn of_body(rejection: &BytesRejection, most: usize) -> RequestFault {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            RequestFault::TooLarge { most }
        } else {
            RequestFault::Unreadable
        }
    }
}
