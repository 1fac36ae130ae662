//! A name for each request: the caller's own, or one of ours. It is in the answer, and in every
//! line that is logged on the way.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use rand::Rng;
use tracing::Instrument;

/// The header, both ways.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of a request id.
const MAX_CHARACTERS: usize = 64;

/// The name of the request at hand; an extension of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub String);

impl RequestId {
    /// What a caller says, if it can stand in a log: letters, digits, `.`, `_` and `-`.
    fn read(value: &HeaderValue) -> Option<RequestId> {
        let text = value.to_str().ok()?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let is_good = (1..=MAX_CHARACTERS).contains(&text.len()) && text.chars().all(is_plain);
        is_good.then(|| RequestId(text.to_owned()))
    }

    fn fresh() -> RequestId {
        RequestId(format!("{:032x}", rand::rng().random::<u128>()))
    }
}

/// Names the request.
pub(super) async fn named(mut request: Request, next: Next) -> Response {
    let said = request.headers().get(HEADER).and_then(RequestId::read);
    let id = said.unwrap_or_else(RequestId::fresh);
    // A level that is never filtered out: whatever is logged within says whose it is.
    let span = tracing::error_span!(
        "request",
        id = id.0,
        method = %request.method(),
        path = request.uri().path(),
    );
    let value = HeaderValue::from_str(&id.0);
    request.extensions_mut().insert(id);
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = value {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_name_is_taken_only_if_it_can_stand_in_a_log() {
        let read = |text: &[u8]| RequestId::read(&HeaderValue::from_bytes(text).unwrap());
        let longest = "a".repeat(MAX_CHARACTERS);
        for good in ["abc-123_DEF.4", "x", longest.as_str()] {
            assert_eq!(read(good.as_bytes()), Some(RequestId(good.to_owned())));
        }
        let longer = "a".repeat(MAX_CHARACTERS + 1);
        let bad = ["", "two words", "a\tb", "{\"a\":1}", "请求", longer.as_str()];
        for bad in bad {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
        assert_ne!(RequestId::fresh(), RequestId::fresh());
    }
}
