//! The console's one door: who is it, may he, and did this form come out of a page of ours.
//!
//! Every route names the permission that it takes ([`admit`]), so that a page or an action without
//! one cannot be written. A form's body is read here, bounded, and its proof compared before any
//! handler sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Form, FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use counterfoil_account::audit::{Actor, Entry};
use counterfoil_account::session::{self, Signed, is_same};
use counterfoil_account::{Account, Permission};

use super::Console;
use super::shell::{self, Trouble};
use super::texts::Lang;

/// The cookie of a session.
pub(super) const SESSION_COOKIE: &str = "counterfoil_session";
/// The cookie of the sign-in form, before there is a session.
pub(super) const DOOR_COOKIE: &str = "counterfoil_door";
/// The cookie of the language.
pub(super) const LANGUAGE_COOKIE: &str = "counterfoil_lang";
/// Bytes of a form.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Bytes of a path that a sign-in leads back to.
const MAX_NEXT_BYTES: usize = 1024;

/// A request before anybody is known.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The language.
    pub(super) lang: Lang,
    /// The request's id.
    pub(super) request_id: String,
    /// Where it came from.
    pub(super) address: String,
    /// Path and query.
    pub(super) path: String,
}

impl Asked {
    pub(super) fn of(console: &Console, parts: &request::Parts) -> Asked {
        let accepted = parts.headers.get(header::ACCEPT_LANGUAGE);
        let accepted = accepted.and_then(|value| value.to_str().ok());
        let cookie = cookie(&parts.headers, LANGUAGE_COOKIE);
        let path = parts.uri.path_and_query().map_or("/console", |path| path.as_str());
        Asked {
            lang: Lang::asked(cookie.as_deref(), accepted),
            request_id: session::token().chars().take(16).collect(),
            address: address(console, parts),
            path: path.to_owned(),
        }
    }
}

/// Where a request came from: the peer, or behind our own proxy the last one that it names.
fn address(console: &Console, parts: &request::Parts) -> String {
    let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back();
    let forwarded = forwarded.filter(|_| console.behind_proxy);
    if let Some(last) = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()) {
        return last.trim().to_owned();
    }
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or_else(|| "unknown".to_owned(), |ConnectInfo(peer)| peer.ip().to_string())
}

/// A cookie of a request.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then(|| value.to_owned())
    });
    pairs.next()
}

/// A cookie that scripts cannot read and other sites' forms do not send.
pub(super) fn set_cookie(console: &Console, name: &str, value: &str, seconds: i64) -> String {
    let secure = if console.secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/console; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// Adds a cookie to an answer.
pub(super) fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// Somebody who is let in, with his request.
#[derive(Debug, Clone)]
pub(super) struct Visitor(Arc<Inside>);

/// What is known of him.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) account: Account,
    pub(super) csrf: String,
    pub(super) asked: Asked,
    /// What came of what he did just now.
    pub(super) said: Option<Entry>,
}

impl std::ops::Deref for Visitor {
    type Target = Inside;

    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl Visitor {
    /// His language.
    pub(super) fn lang(&self) -> Lang {
        self.asked.lang
    }

    /// Whether he may.
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.account.role.may(permission)
    }

    /// As the audit knows him.
    pub(super) fn actor(&self) -> Actor {
        Actor {
            account: self.account.clone(),
            address: self.asked.address.clone(),
            request_id: self.asked.request_id.clone(),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = StatusCode;

    async fn from_request_parts(
        parts: &mut request::Parts,
        _state: &S,
    ) -> Result<Visitor, StatusCode> {
        // Only where the door was forgotten: refuse, as if nobody.
        parts.extensions.get::<Visitor>().cloned().ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// A form whose proof was right.
#[derive(Debug, Clone, Default)]
pub(super) struct Posted(Arc<Vec<(String, String)>>);

impl Posted {
    /// A field, without blanks around it; empty when it is not there.
    pub(super) fn field(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// A field as it was typed.
    pub(super) fn as_typed(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Why something is done. Nothing is done without.
    pub(super) fn reason(&self) -> Result<&str, Trouble> {
        match self.field("reason") {
            "" => Err(Trouble::invalid("reason: say why")),
            reason => Ok(reason),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Posted {
    type Rejection = StatusCode;

    async fn from_request_parts(
        parts: &mut request::Parts,
        _state: &S,
    ) -> Result<Posted, StatusCode> {
        parts.extensions.get::<Posted>().cloned().ok_or(StatusCode::FORBIDDEN)
    }
}

/// What a route needs.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) console: Console,
    pub(super) needs: Permission,
}

/// Lets somebody in who may, and shows what went wrong inside as a page of his.
pub(super) async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let asked = Asked::of(&door.console, &parts);
    let signed = match known(&door.console, &parts.headers).await {
        Ok(Some(signed)) => signed,
        Ok(None) => return send_to_sign_in(&parts.method, &asked),
        Err(trouble) => return shell::trouble_outside(&asked, &trouble),
    };
    let said = said(&door.console, &signed.account, &parts).await;
    let inside = Inside { account: signed.account, csrf: signed.csrf, asked, said };
    let visitor = Visitor(Arc::new(inside));
    if !visitor.may(door.needs) {
        return shell::trouble(&visitor, &Trouble::not_allowed());
    }
    if parts.method != Method::GET && parts.method != Method::HEAD {
        match form(&parts, body, &visitor.csrf).await {
            Ok(posted) => parts.extensions.insert(posted),
            Err(trouble) => return shell::trouble(&visitor, &trouble),
        };
    }
    parts.extensions.insert(visitor.clone());
    let request = Request::from_parts(parts, axum::body::Body::empty());
    let mut response = next.run(request).await;
    if let Some(trouble) = response.extensions_mut().remove::<Trouble>() {
        return shell::trouble(&visitor, &trouble);
    }
    response
}

async fn known(console: &Console, headers: &HeaderMap) -> Result<Option<Signed>, Trouble> {
    match cookie(headers, SESSION_COOKIE) {
        Some(token) => Ok(session::of_token(&console.db, &token).await?),
        None => Ok(None),
    }
}

/// A page is asked for again after the sign-in; a form is lost, and that is said.
fn send_to_sign_in(method: &Method, asked: &Asked) -> Response {
    if *method == Method::GET {
        let path = format!("/console/sign-in?next={}", super::parts::escaped(&asked.path));
        return Redirect::to(&path).into_response();
    }
    Redirect::to("/console/sign-in?ended=1").into_response()
}

/// The outcome that a redirect after an action names by its request: only of the same person.
async fn said(console: &Console, account: &Account, parts: &request::Parts) -> Option<Entry> {
    let query = parts.uri.query()?;
    let request = query.split('&').find_map(|pair| pair.strip_prefix("said="))?;
    let found = counterfoil_account::audit::of_request(&console.db, account.id, request).await;
    found.ok().flatten()
}

/// Reads a form and compares its proof.
pub(super) async fn form(
    parts: &request::Parts,
    body: axum::body::Body,
    csrf: &str,
) -> Result<Posted, Trouble> {
    if is_foreign(&parts.headers) {
        return Err(Trouble::stale_form());
    }
    let Ok(bytes) = to_bytes(body, MAX_FORM_BYTES).await else {
        return Err(Trouble::too_large(MAX_FORM_BYTES));
    };
    let request = Request::from_parts(parts.clone(), axum::body::Body::from(bytes));
    let Ok(Form(pairs)) = Form::<Vec<(String, String)>>::from_request(request, &()).await else {
        return Err(Trouble::stale_form());
    };
    let posted = Posted(Arc::new(pairs));
    if !is_same(posted.field("csrf"), csrf) {
        return Err(Trouble::stale_form());
    }
    Ok(posted)
}

/// Whether the browser says that another site sent this. The proof is needed all the same.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
}

/// Where a sign-in may lead: into the console and nowhere else.
pub(super) fn safe_next(next: &str) -> &str {
    let inside =
        next == "/console" || next.starts_with("/console/") || next.starts_with("/console?");
    let plain = !next.contains(['\\', '\r', '\n', '\t']) && !next.contains("//");
    if inside && plain && next.len() <= MAX_NEXT_BYTES { next } else { "/console" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_into_the_console_and_nowhere_else() {
        for good in ["/console", "/console/orders/7?cursor=p1", "/console?span=day"] {
            assert_eq!(safe_next(good), good);
        }
        let bad = [
            "",
            "/",
            "https://evil.example",
            "//evil.example",
            "/console//evil.example",
            "/consolevil",
            "/console\\evil",
            "/console/\r\nset-cookie: a=b",
        ];
        for bad in bad {
            assert_eq!(safe_next(bad), "/console", "{bad}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("xcounterfoil_lang=en; a=b"));
        assert_eq!(cookie(&headers, LANGUAGE_COOKIE), None);
        headers.append(header::COOKIE, HeaderValue::from_static("counterfoil_lang=zh"));
        assert_eq!(cookie(&headers, LANGUAGE_COOKIE).as_deref(), Some("zh"));
    }
}
