//! Tasks: which there are, what one went through, and running or cancelling one by hand after a
//! dry run that says what that will do.

mod acts;
mod rows;

pub(super) use acts::{ask_cancel, ask_rerun, cancel, confirm, dry_run, rerun};
pub(super) use rows::{TaskLine, callbacks_of, maybe_find};

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_db::{Read, sql};
use counterfoil_task::{TRACE_OF_TASK, TaskStatus};
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::door::Visitor;
use super::orders::named;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble};
use super::texts::Lang;
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;
/// Rows of a trace.
const MAX_TRACE: u32 = 200;

/// Which tasks.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn list(
    State(console): State<Console>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Answer {
    let (lang, before) = (visitor.lang(), place_of(&which.cursor));
    let status = TaskStatus::ALL.into_iter().find(|status| status.to_string() == which.status);
    let page = rows::page(&console.db, &which.r#type, status, before, PAGE).await?;
    let kept = [("type", which.r#type.clone()), ("status", which.status.clone())];
    let mut types: Vec<(String, String)> = console
        .engine
        .kinds()
        .map(|kind| (kind.task_type.to_owned(), kind.stage.to_owned()))
        .collect();
    types.sort();
    types.dedup_by(|a, b| a.0 == b.0);
    let statuses = named(lang, &["PENDING", "RUNNING", "SUCCESS", "FAILED", "CANCELLED"]);
    let body = html! {
        h1 { (lang.tasks()) }
        form class="filter" method="get" action="/console/tasks" {
            (parts::choice("type", lang.stage(), lang.all(), &types, &which.r#type))
            (parts::choice("status", lang.status(), lang.all(), &statuses, &which.status))
            button type="submit" { (lang.filter()) }
        }
        @if page.tasks.is_empty() {
            (parts::empty(lang.no_tasks()))
        } @else {
            div class="card wide" { (table(lang, &page.tasks)) }
        }
        @if page.is_cut { p class="quiet" { (lang.looked_at_some()) } }
        (parts::pager(lang, "/console/tasks", &kept, page.next, before.is_none()))
    };
    Ok(Page::new(Room::Tasks, lang.tasks(), body).live().shown_to(&visitor))
}

/// Tasks in a table.
pub(super) fn table(lang: Lang, tasks: &[TaskLine]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.tasks()) } th { (lang.order()) } th { (lang.status()) }
                th class="num" { (lang.tries()) } th { (lang.next_try()) } th { (lang.detail()) }
                th { (lang.pick("更新", "Updated")) }
            } }
            tbody {
                @for task in tasks {
                    tr {
                        td data-label=(lang.tasks()) {
                            (parts::task_link(&task.code)) br;
                            small class="mono" { (task.key) }
                        }
                        td data-label=(lang.order()) {
                            @if let Some(order) = task.order { (parts::order_link(order, None)) }
                            @else { "—" }
                        }
                        td data-label=(lang.status()) {
                            (parts::stored(lang, &task.status.to_string()))
                        }
                        td data-label=(lang.tries()) class="num" { (task.tries()) }
                        td data-label=(lang.next_try()) { (parts::maybe_time(task.due)) }
                        td data-label=(lang.detail()) class="words" {
                            (task.message.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.pick("更新", "Updated")) {
                            (parts::time(task.updated))
                        }
                    }
                }
            }
        }
    }
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let task = rows::find(&console.db, &named).await?;
    let trace = trace(&console, lang, &task.code).await?;
    let open = !task.status.is_final();
    let path = format!("/console/tasks/{}", parts::escaped(&task.code));
    let body = html! {
        h1 { (lang.task()) " " span class="mono" { (task.code) } }
        (head(lang, &task))
        @if open && visitor.may(Permission::Operate) {
            ul class="actions" {
                li { a class="button primary" href={ (path) "/rerun" } { (lang.ask_rerun()) } }
                @if matches!(task.status, TaskStatus::Pending | TaskStatus::Failed) {
                    li { a class="button" href={ (path) "/cancel" } { (lang.ask_cancel_task()) } }
                }
            }
        }
        h2 { (lang.trace()) }
        (trace)
        @if let Some(data) = &task.data {
            h2 { (lang.what_it_carries()) }
            pre class="card" { (data) }
        }
    };
    Ok(Page::new(Room::Tasks, task.code.clone(), body).live().shown_to(&visitor))
}

/// What a task is.
fn head(lang: Lang, task: &TaskLine) -> Markup {
    html! {
        div class="card" {
            (parts::facts(&[
                (lang.status(), parts::stored(lang, &task.status.to_string())),
                (lang.kind(), html! { span class="mono" { (task.task_type) } }),
                (lang.business_key(), html! { span class="mono" { (task.key) } }),
                (lang.order(), html! {
                    @if let Some(order) = task.order { (parts::order_link(order, None)) }
                    @else { "—" }
                }),
                (lang.tries(), html! { (task.tries()) }),
                (lang.attempts(), html! { (task.attempt) }),
                (lang.lost(), html! { (task.lost) }),
                (lang.next_try(), parts::maybe_time(task.due)),
                (lang.created(), parts::time(task.created)),
                (lang.pick("更新", "Updated"), parts::time(task.updated)),
            ]))
            @if let Some(message) = &task.message { p class="record" { (message) } }
        }
    }
}

async fn trace(console: &Console, lang: Lang, code: &str) -> Result<Markup, Trouble> {
    let query = sql!(TRACE_OF_TASK, code = code, limit = MAX_TRACE);
    let rows = console.db.rows(query).await?;
    let mut entries = Vec::new();
    for row in &rows {
        entries.push((
            row.instant("create_time")?,
            row.text("action")?,
            row.text("result")?,
            row.maybe_int("operator_user_id")?,
            row.maybe_text("source_task_code")?,
            row.maybe_text("detail")?,
        ));
    }
    Ok(html! {
        @if entries.is_empty() {
            (parts::empty(lang.no_trace()))
        } @else {
            div class="card" { ul class="timeline" {
                @for (time, action, result, user, source, detail) in &entries {
                    li {
                        (parts::time(*time)) span class="kind" { (action) } " " (result)
                        @if let Some(user) = user {
                            " · " (lang.who()) " " span class="mono" { (user) }
                        }
                        @if let Some(source) = source.as_ref().filter(|source| *source != code) {
                            " · " (parts::task_link(source))
                        }
                        @if let Some(detail) = detail { div class="record" { (detail) } }
                    }
                }
            } }
        }
    })
}
