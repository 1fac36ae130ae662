//! Orders, newest first; one order's lines; what one version changed against another.

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_payment::order_view::{
    self, ChangedLine, Diff, DiffKind, LineQuery, Money, OrderQuery, OrderRow, find,
    order_status_code,
};
use counterfoil_protocol::{DataVersion, LineId, OrderId, UserId};
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::door::Visitor;
use super::parts;
use super::shell::{Answer, Page, Room, proof};
use super::texts::{Lang, word};
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;
/// Bills shown of each kind of change.
const CHANGED_SHOWN: u32 = 50;
/// The statuses of an order, in the order of its life.
const STATUSES: [&str; 7] =
    ["DRAFT", "UNDER_REVIEW", "REVIEW_REJECTED", "WAIT_PAY", "PAID", "NO_NEED_PAY", "CANCELLED"];

/// Which orders.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    status: String,
    #[serde(default)]
    creator: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn list(
    State(console): State<Console>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Answer {
    let lang = visitor.lang();
    let before = place_of(&which.cursor);
    let query = OrderQuery {
        status: order_status_code(&which.status),
        creator: which.creator.trim().parse().ok().map(UserId),
        before: before.map(OrderId),
        limit: Some(PAGE),
    };
    let page = order_view::list(&console.db, &query).await?;
    let kept = [("status", which.status.clone()), ("creator", which.creator.clone())];
    let next = page.next_before.map(|order| order.0);
    let body = html! {
        h1 { (lang.orders()) }
        form class="filter" method="get" action="/console/orders" {
            (parts::choice("status", lang.status(), lang.all(), &statuses(lang), &which.status))
            (parts::field("creator", lang.creator(), &which.creator))
            button type="submit" { (lang.filter()) }
        }
        @if visitor.may(Permission::Operate) {
            form method="post" action="/console/sessions" class="actions" {
                (proof(&visitor))
                button type="submit" { (lang.new_session()) }
            }
        }
        @if page.orders.is_empty() {
            (parts::empty(lang.no_orders()))
        } @else {
            div class="card wide" { (table(lang, &page.orders)) }
            (parts::pager(lang, "/console/orders", &kept, next, before.is_none()))
        }
    };
    Ok(Page::new(Room::Orders, lang.orders(), body).live().shown_to(&visitor))
}

/// Stored words with their names, for a filter.
pub(super) fn named(lang: Lang, stored: &[&str]) -> Vec<(String, String)> {
    let name = |stored: &&str| {
        let name = word(stored).map_or(*stored, |word| word.name(lang));
        ((*stored).to_owned(), name.to_owned())
    };
    stored.iter().map(name).collect()
}

fn statuses(lang: Lang) -> Vec<(String, String)> {
    named(lang, &STATUSES)
}

fn table(lang: Lang, orders: &[OrderRow]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.order()) } th { (lang.status()) } th class="num" { (lang.version()) }
                th class="num" { (lang.payable()) } th class="num" { (lang.unqualified()) }
                th class="num" { (lang.yuan()) } th { (lang.creator()) } th { (lang.created()) }
            } }
            tbody {
                @for order in orders {
                    tr {
                        td data-label=(lang.order()) {
                            (parts::order_link(order.id.0, order.order_no.as_deref()))
                        }
                        td data-label=(lang.status()) { (parts::stored(lang, order.status_name)) }
                        td data-label=(lang.version()) class="num" {
                            (order.published_data_version)
                        }
                        td data-label=(lang.payable()) class="num" {
                            (parts::number(order.payable_count))
                        }
                        td data-label=(lang.unqualified()) class="num" {
                            (parts::number(order.unqualified_count))
                        }
                        td data-label=(lang.yuan()) class="num" { (order.total_amount) }
                        td data-label=(lang.creator()) class="mono" { (order.create_user_id) }
                        td data-label=(lang.created()) { (parts::time(order.create_time)) }
                    }
                }
            }
        }
    }
}

/// Which lines.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WhichLines {
    #[serde(default)]
    version: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn lines(
    State(console): State<Console>,
    visitor: Visitor,
    Path(order): Path<String>,
    Query(which): Query<WhichLines>,
) -> Answer {
    let (lang, after) = (visitor.lang(), place_of(&which.cursor));
    let order = find(&console.db, &order).await?;
    let query = LineQuery {
        data_version: which.version.parse().ok().map(DataVersion),
        after: after.map(LineId),
        limit: Some(PAGE),
    };
    let page = order_view::lines(&console.db, order, &query).await?;
    let path = format!("/console/orders/{order}/lines");
    let kept = [("version", which.version.clone())];
    let next = page.next_after.map(|line| line.0);
    let body = html! {
        h1 {
            (lang.order()) " " (parts::order_link(order.0, None)) " · "
            (lang.version()) " " (page.data_version)
        }
        @if page.lines.is_empty() {
            (parts::empty(lang.no_lines()))
        } @else {
            div class="card wide" { (line_table(lang, &page.lines)) }
            (parts::pager(lang, &path, &kept, next, after.is_none()))
        }
    };
    Ok(Page::new(Room::Orders, lang.see_lines(), body).shown_to(&visitor))
}

fn line_table(lang: Lang, lines: &[order_view::Line]) -> Markup {
    let yuan = |money: Option<Money>| money.map_or_else(|| "—".to_owned(), |m| m.to_string());
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.line()) } th { (lang.station()) " · " (lang.month()) }
                th { (lang.kind()) } th { (lang.line_state()) } th class="num" { (lang.yuan()) }
                th { (lang.locks()) } th { (lang.payee()) } th { (lang.account_number()) }
                th { (lang.reason()) }
            } }
            tbody {
                @for line in lines {
                    tr {
                        td data-label=(lang.line()) class="mono" { (line.order_bill_id) }
                        td data-label=(lang.station()) {
                            (parts::bill_link(&line.station_id, &line.bill_yearmonth))
                        }
                        td data-label=(lang.kind()) { (parts::stored(lang, line.line_type)) }
                        td data-label=(lang.line_state()) {
                            (parts::stored(lang, line.line_status))
                        }
                        td data-label=(lang.yuan()) class="num" { (yuan(line.pay_amount)) }
                        td data-label=(lang.locks()) {
                            (parts::maybe_stored(lang, line.lock_status.as_deref()))
                        }
                        td data-label=(lang.payee()) {
                            (line.payee_name.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.account_number()) class="mono" {
                            (line.payee_account.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.reason()) class="words" {
                            (line.unqualified_reason.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

/// Which two versions.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Between {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
}

pub(super) async fn changes(
    State(console): State<Console>,
    visitor: Visitor,
    Path(order): Path<String>,
    Query(between): Query<Between>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &order).await?;
    let version = |text: &str| DataVersion(text.trim().parse().unwrap_or(0));
    let (from, to) = (version(&between.from), version(&between.to));
    let diff = order_view::diff(&console.db, order, from, to, CHANGED_SHOWN).await?;
    let body = html! {
        h1 {
            (lang.order()) " " (parts::order_link(order.0, None)) " · "
            (lang.version()) " " (from) " → " (to)
        }
        (difference(lang, &diff))
    };
    Ok(Page::new(Room::Orders, lang.what_changed(), body).shown_to(&visitor))
}

/// The kinds of change: the domain's name, 中文.
const KINDS_OF_CHANGE: [(&str, &str); 8] = [
    ("kept", "保留"),
    ("removed", "移出"),
    ("added", "新增"),
    ("payable to unqualified", "应付变不合格"),
    ("unqualified to payable", "不合格变应付"),
    ("amount changed", "金额变了"),
    ("payee changed", "收款人变了"),
    ("amount and payee changed", "金额和收款人都变了"),
];

fn difference(lang: Lang, diff: &Diff) -> Markup {
    let name = |kind: &'static str| {
        let found = KINDS_OF_CHANGE.iter().find(|(en, _)| *en == kind);
        lang.pick(found.map_or(kind, |(_, zh)| zh), kind)
    };
    html! {
        @if diff.kinds.iter().all(|kind| kind.bills == 0 || kind.kind == DiffKind::Kept) {
            (parts::empty(lang.no_change()))
        }
        div class="card wide" { table {
            thead { tr {
                th { (lang.kind()) } th class="num" { (lang.bills_count()) }
                th class="num" { (lang.before()) " ¥" } th class="num" { (lang.after()) " ¥" }
            } }
            tbody {
                @for kind in &diff.kinds {
                    tr {
                        td { (name(kind.kind.name())) }
                        td class="num" { (parts::number(kind.bills)) }
                        td class="num" { (kind.amount_before) }
                        td class="num" { (kind.amount_after) }
                    }
                }
            }
        } }
        @for kind in diff.kinds.iter().filter(|kind| !kind.first.is_empty()) {
            h2 { (name(kind.kind.name())) " · " (kind.first.len()) " / " (kind.bills) }
            div class="card wide" { (changed(lang, &kind.first)) }
        }
    }
}

fn changed(lang: Lang, lines: &[ChangedLine]) -> Markup {
    let side = |kind: Option<&'static str>, amount: Option<Money>| {
        html! {
            (parts::maybe_stored(lang, kind)) " "
            @if let Some(amount) = amount { (amount) }
        }
    };
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.station()) " · " (lang.month()) } th { (lang.before()) }
                th { (lang.after()) } th { (lang.payee()) } th { (lang.reason()) }
            } }
            tbody {
                @for line in lines {
                    tr {
                        td data-label=(lang.station()) {
                            (parts::bill_link(&line.station_id, &line.bill_yearmonth))
                        }
                        td data-label=(lang.before()) {
                            (side(line.line_type_before, line.amount_before))
                        }
                        td data-label=(lang.after()) {
                            (side(line.line_type_after, line.amount_after))
                        }
                        td data-label=(lang.payee()) {
                            (line.payee_before.as_deref().unwrap_or("—")) " → "
                            (line.payee_after.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.reason()) class="words" {
                            (line.unqualified_reason.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}
