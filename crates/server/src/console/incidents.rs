//! Publish incidents, and whatever else the trace calls an incident: nothing here goes away by
//! itself.

use axum::extract::{Query, State};
use counterfoil_db::{Instant, Read, sql};
use maud::html;
use serde::Deserialize;

use super::Console;
use super::door::Visitor;
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble};
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;

/// Where the page begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct From {
    #[serde(default)]
    cursor: String,
}

/// One session that is marked invalid.
struct Marked {
    id: i64,
    order: Option<i64>,
    mode: String,
    status: String,
    reason: String,
    time: Instant,
    is_incident: bool,
}

/// Sessions on an index by status, one walk each: there is none by the mark.
const STATUSES: [&str; 3] = ["COMPLETED", "PUBLISHED_LOCK_SYNCING", "SUBMIT_FAILED"];
/// Sessions of one status that are looked at, the newest.
const MAX_LOOKED_AT: u32 = 20_000;

async fn marked(console: &Console, before: i64) -> Result<Vec<Marked>, Trouble> {
    let mut found = Vec::new();
    for status in STATUSES {
        let query = sql!(
            "SELECT id, target_payment_order_id, mode, status, invalidated_reason, update_time
             FROM (SELECT * FROM selection_session WHERE status = :status AND id < :before
                   ORDER BY status, id DESC LIMIT :most) looked_at
             WHERE invalidated_flag = 1 AND deleted = 0 ORDER BY id DESC LIMIT :limit",
            status = status,
            before = before,
            most = MAX_LOOKED_AT,
            limit = PAGE + 1,
        );
        for row in console.db.rows(query).await? {
            let reason = row.maybe_text("invalidated_reason")?.unwrap_or_default();
            found.push(Marked {
                id: row.int("id")?,
                order: row.maybe_int("target_payment_order_id")?,
                mode: row.text("mode")?,
                status: row.text("status")?,
                is_incident: reason.contains("INCIDENT"),
                reason,
                time: row.instant("update_time")?,
            });
        }
    }
    found.sort_by_key(|marked| std::cmp::Reverse(marked.id));
    Ok(found)
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Query(From { cursor }): Query<From>,
) -> Answer {
    let (lang, before) = (visitor.lang(), place_of(&cursor));
    let mut found = marked(&console, before.unwrap_or(i64::MAX)).await?;
    let is_more = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    let next = found.last().map(|marked| marked.id).filter(|_| is_more);
    let body = html! {
        h1 { (lang.incidents()) }
        p class="lede" { (lang.incidents_lede()) }
        @if found.is_empty() {
            (parts::empty(lang.no_incidents()))
        } @else {
            div class="card wide" { table class="stack" {
                thead { tr {
                    th { (lang.pick("会话", "Session")) } th { (lang.order()) } th { (lang.kind()) }
                    th { (lang.status()) } th { (lang.reason()) } th { (lang.time()) }
                } }
                tbody { @for marked in &found {
                    tr {
                        td data-label=(lang.pick("会话", "Session")) class="mono" { (marked.id) }
                        td data-label=(lang.order()) {
                            @if let Some(order) = marked.order.filter(|order| *order > 0) {
                                (parts::order_link(order, None))
                            } @else { "—" }
                        }
                        td data-label=(lang.kind()) class="mono" { (marked.mode) }
                        td data-label=(lang.status()) { (parts::stored(lang, &marked.status)) }
                        td data-label=(lang.reason()) {
                            @if marked.is_incident { (parts::state(Look::Trouble, &marked.reason)) }
                            @else { (parts::state(Look::NotYet, &marked.reason)) }
                        }
                        td data-label=(lang.time()) { (parts::time(marked.time)) }
                    }
                } }
            } }
            (parts::pager(lang, "/console/incidents", &[], next, before.is_none()))
        }
    };
    Ok(Page::new(Room::Incidents, lang.incidents(), body).live().shown_to(&visitor))
}
