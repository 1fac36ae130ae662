//! Coming in and going out.

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use counterfoil_account::audit::{Actor, Deed, Outcome, record};
use counterfoil_account::sign_in::{Attempt, sign_in};
use counterfoil_account::{AccountError, session};
use maud::html;
use serde::Deserialize;

use super::Console;
use super::door::{
    Asked, DOOR_COOKIE, LANGUAGE_COOKIE, Posted, SESSION_COOKIE, Visitor, cookie, form, safe_next,
    set_cookie, with_cookie,
};
use super::shell::{self, Answer};

/// How long a sign-in form may lie open.
const DOOR_SECONDS: i64 = 1800;
/// How long a language is remembered.
const LANGUAGE_SECONDS: i64 = 365 * 86_400;

/// Where from, and where to.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Coming {
    #[serde(default)]
    next: String,
    #[serde(default)]
    ended: String,
    #[serde(default)]
    out: String,
}

pub(super) async fn show(
    State(console): State<Console>,
    Query(coming): Query<Coming>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let asked = Asked::of(&console, &parts);
    let note = match (coming.ended.is_empty(), coming.out.is_empty()) {
        (false, _) => asked.lang.signed_out_by_time(),
        (_, false) => asked.lang.signed_out(),
        _ => "",
    };
    page(&console, &asked, StatusCode::OK, note, "", safe_next(&coming.next))
}

fn page(
    console: &Console,
    asked: &Asked,
    status: StatusCode,
    note: &str,
    login: &str,
    next: &str,
) -> Response {
    let (lang, token) = (asked.lang, session::token());
    let inner = html! {
        main class="door" id="content" {
            h1 { (lang.brand()) }
            @if !note.is_empty() { p class="told" role="alert" { (note) } }
            form method="post" action="/console/sign-in" class="card" {
                input type="hidden" name="csrf" value=(session::csrf_of(&token));
                input type="hidden" name="next" value=(next);
                label {
                    span { (lang.login()) }
                    input name="login" value=(login) autocomplete="username" required autofocus
                        maxlength="64" autocapitalize="none" spellcheck="false";
                }
                label {
                    span { (lang.password()) }
                    input type="password" name="password" autocomplete="current-password" required
                        maxlength="512";
                }
                button class="primary" type="submit" { (lang.sign_in()) }
            }
            p class="quiet" {
                a href={ "/console/language/" (lang.pick("en", "zh")) "?back=/console/sign-in" } {
                    (lang.other_language())
                }
            }
        }
    };
    let response = shell::document(status, lang, lang.sign_in(), inner);
    with_cookie(response, &set_cookie(console, DOOR_COOKIE, &token, DOOR_SECONDS))
}

pub(super) async fn enter(State(console): State<Console>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let asked = Asked::of(&console, &parts);
    let Some(token) = cookie(&parts.headers, DOOR_COOKIE) else {
        let note = asked.lang.stale_form();
        return page(&console, &asked, StatusCode::FORBIDDEN, note, "", "/console");
    };
    let posted = match form(&parts, body, &session::csrf_of(&token)).await {
        Ok(posted) => posted,
        Err(trouble) => {
            let note = trouble.text(asked.lang);
            return page(&console, &asked, StatusCode::FORBIDDEN, &note, "", "/console");
        }
    };
    try_to_enter(&console, &asked, &parts.headers, &posted).await
}

async fn try_to_enter(
    console: &Console,
    asked: &Asked,
    headers: &HeaderMap,
    posted: &Posted,
) -> Response {
    let (login, next) = (posted.field("login"), safe_next(posted.field("next")));
    let attempt = Attempt { login, password: posted.as_typed("password"), address: &asked.address };
    let refuse = |status: StatusCode, note: &str| page(console, asked, status, note, login, next);
    let opened = match sign_in(&console.db, attempt).await {
        Ok(opened) => opened,
        Err(AccountError::WrongPassword) => {
            return refuse(StatusCode::FORBIDDEN, asked.lang.refused_login());
        }
        Err(AccountError::Blocked { seconds }) => {
            let zh = format!("失败次数太多，请 {seconds} 秒后再试。");
            let en = format!("Too many failed attempts. Try again in {seconds} seconds.");
            let refused = refuse(StatusCode::TOO_MANY_REQUESTS, asked.lang.pick(&zh, &en));
            let after = [(header::RETRY_AFTER, seconds.to_string())];
            return (after, refused).into_response();
        }
        Err(error) => {
            tracing::error!(?error, "a sign-in failed");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, asked.lang.database_down());
        }
    };
    // Whoever was signed in here before is not any more.
    if let Some(old) = cookie(headers, SESSION_COOKIE) {
        let _ = session::close(&console.db, &old).await;
    }
    let actor = Actor {
        account: opened.account,
        address: asked.address.clone(),
        request_id: asked.request_id.clone(),
    };
    let deed = Deed { action: "sign-in", subject: "", reason: "" };
    if let Err(error) = record(&console.db, &actor, deed, Outcome::Done, "").await {
        tracing::error!(%error, "a sign-in is not on record");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, asked.lang.database_down());
    }
    let response = Redirect::to(next).into_response();
    let seconds = session::LASTS.num_seconds();
    let response =
        with_cookie(response, &set_cookie(console, SESSION_COOKIE, &opened.token, seconds));
    with_cookie(response, &set_cookie(console, DOOR_COOKIE, "", 0))
}

pub(super) async fn leave(
    State(console): State<Console>,
    headers: HeaderMap,
    _visitor: Visitor,
    _posted: Posted,
) -> Answer {
    if let Some(token) = cookie(&headers, SESSION_COOKIE) {
        session::close(&console.db, &token).await?;
    }
    let response = Redirect::to("/console/sign-in?out=1").into_response();
    Ok(with_cookie(response, &set_cookie(&console, SESSION_COOKIE, "", 0)))
}

/// Where a change of language leads back to.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Back {
    #[serde(default)]
    back: String,
}

pub(super) async fn language(
    State(console): State<Console>,
    Path(code): Path<String>,
    Query(Back { back }): Query<Back>,
) -> Response {
    let code = if code == "zh" { "zh" } else { "en" };
    let response = Redirect::to(safe_next(&back)).into_response();
    with_cookie(response, &set_cookie(&console, LANGUAGE_COOKIE, code, LANGUAGE_SECONDS))
}

/// The style sheet, the script and the icon: part of the binary.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "console.css" => ("text/css; charset=utf-8", include_str!("console.css")),
        "console.js" => ("text/javascript; charset=utf-8", include_str!("console.js")),
        "icon.svg" => ("image/svg+xml", include_str!("icon.svg")),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, Body::from(text)).into_response()
}
