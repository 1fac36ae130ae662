//! One bill: can it be paid again, why not, and everything it went through.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect};
use counterfoil_payment::order_view::{self, BillView, Money, Paying};
use counterfoil_payment::{PaymentError, visibility_gate};
use counterfoil_protocol::BillMonth;
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::door::Visitor;
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble};
use super::texts::Lang;

/// Which bill.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    station: String,
    #[serde(default)]
    month: String,
}

/// `2026-09` and `202609` alike.
fn compact(month: &str) -> String {
    month.trim().replace('-', "")
}

pub(super) async fn ask(
    State(_console): State<Console>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Answer {
    let lang = visitor.lang();
    if !which.station.trim().is_empty() && !which.month.trim().is_empty() {
        let (station, month) = (parts::escaped(which.station.trim()), compact(&which.month));
        let path = format!("/console/bills/{station}/{}", parts::escaped(&month));
        return Ok(Redirect::to(&path).into_response());
    }
    let body = html! {
        h1 { (lang.bills()) }
        p class="lede" { (lang.bills_lede()) }
        form class="filter" method="get" action="/console/bills" {
            (parts::field("station", lang.station(), &which.station))
            (parts::field("month", lang.month_hint(), &which.month))
            button class="primary" type="submit" { (lang.find()) }
        }
    };
    Ok(Page::new(Room::Bills, lang.bills(), body).shown_to(&visitor))
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path((station, month)): Path<(String, String)>,
) -> Answer {
    let lang = visitor.lang();
    let month: BillMonth =
        compact(&month).parse().map_err(|error| Trouble::invalid(format!("{error}")))?;
    let bill = order_view::bill(&console.db, &station, &month, &console.tolerance).await?;
    let shown = month.to_string();
    let is_refreshed = is_refreshed(&console, &bill).await?;
    let body = html! {
        h1 {
            (lang.station()) " " span class="mono" { (station) } " · "
            (parts::month_of(&shown))
        }
        @if !is_refreshed {
            p class="told" role="status" {
                (parts::state(Look::Running, lang.not_refreshed()))
            }
        }
        (verdict(lang, &bill))
        h2 { (lang.three_tables()) }
        div class="card wide" { (records(lang, &bill)) }
        h2 { (lang.lines_and_orders()) }
        @if bill.lines.is_empty() { (parts::empty(lang.no_line_ever())) }
        @else { div class="card wide" { (lines(lang, &bill)) } }
        h2 { (lang.locks()) }
        @if bill.locks.is_empty() { (parts::empty(lang.no_lock_ever())) }
        @else { div class="card wide" { (locks(lang, &bill)) } }
        @if !bill.notes.is_empty() {
            h2 { (lang.went_through()) }
            div class="card" { ul class="timeline" {
                @for note in &bill.notes {
                    li {
                        (parts::time(note.time)) span class="kind" { (note.note) } " " (note.what)
                        " · " (parts::task_link(&note.task_code))
                        @if let Some(user) = note.operator_user_id {
                            " · " (lang.who()) " " span class="mono" { (user) }
                        }
                    }
                }
            } }
        }
        @if bill.truncated { p class="quiet" { (lang.older_not_shown()) } }
    };
    let title = format!("{station} · {}", parts::month_of(&shown));
    Ok(Page::new(Room::Bills, title, body).live().shown_to(&visitor))
}

/// Whether the records may be relied on: programs are refused until then, people are told.
async fn is_refreshed(console: &Console, bill: &BillView) -> Result<bool, Trouble> {
    for order in bill.orders() {
        match visibility_gate::check(&console.db, order).await {
            Ok(()) => {}
            Err(PaymentError::RefreshPending { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Reason code, 中文.
const REASONS: [(&str, &str); 12] = [
    ("nothing-due", "拟付租金为零，没有要付的"),
    ("free", "没有人占着，也没有付过"),
    ("two-holders", "两把锁同时占着它：先查清楚"),
    ("paid-in-full", "已经付清"),
    ("month-closed", "月份已关账"),
    ("held", "有付款单占着它；释放只能由该单修订、取消或付完"),
    ("no-ledger", "差异台账里没有它"),
    ("reference-without-lock", "三表指着一张付款单，却没有锁"),
    ("partly-paid", "付过一部分，剩下的可以付"),
    ("unqualified", "现在不合格"),
    ("unqualified-before", "以前判过不合格"),
    ("payment-failed", "上次付款失败"),
];

fn verdict(lang: Lang, bill: &BillView) -> Markup {
    let (class, look, zh, en) = match bill.can_be_paid_again.verdict {
        Paying::Yes => ("verdict good", Look::Done, "可以付", "It can be paid"),
        Paying::OnlyTheRest => ("verdict good", Look::Done, "只能付剩下的", "The rest can be paid"),
        Paying::No => ("verdict no", Look::Waiting, "现在不能再付", "It cannot be paid again now"),
        Paying::NothingDue => ("verdict good", Look::NotYet, "不用付", "It needs no payment"),
        Paying::Unclear => {
            ("verdict", Look::Unknown, "说不清，先查再付", "Unclear: look before you pay")
        }
    };
    let zh_reason = |code: &str| REASONS.iter().find(|(known, _)| *known == code).map(|r| r.1);
    html! {
        div class=(class) {
            strong { (parts::state(look, lang.pick(zh, en))) }
            ul class="because" {
                @for because in &bill.can_be_paid_again.because {
                    li {
                        @match (lang, zh_reason(because.reason)) {
                            (Lang::Zh, Some(zh)) => {
                                (zh) " " small class="record" lang="en" { (because.sentence) }
                            }
                            _ => { (because.sentence) }
                        }
                        " " small class="mono" { (because.reason) }
                    }
                }
            }
        }
    }
}

fn yuan(money: Option<Money>) -> String {
    money.map_or_else(|| "—".to_owned(), |money| money.to_string())
}

fn records(lang: Lang, bill: &BillView) -> Markup {
    let name = |record: &'static str| match record {
        "ledger" | "difference ledger" => lang.pick("差异台账", "Difference ledger"),
        "small bill" => lang.pick("小单账单", "Small bill"),
        "partner bill" => lang.pick("合作方账单", "Partner bill"),
        other => other,
    };
    html! {
        table class="stack" {
            thead { tr {
                th {} th { (lang.status()) } th class="num" { (lang.yuan()) }
                th class="num" { (lang.confirmed_paid()) } th { (lang.holder()) }
                th { (lang.line()) } th { (lang.reason()) }
            } }
            tbody {
                @for record in &bill.records {
                    tr {
                        td { (name(record.record)) }
                        td data-label=(lang.status()) {
                            (parts::stored(lang, record.payment_status))
                        }
                        td data-label=(lang.yuan()) class="num" {
                            (yuan(record.pre_rent.or(record.amount)))
                        }
                        td data-label=(lang.confirmed_paid()) class="num" {
                            (record.cumulative_paid_amount)
                        }
                        td data-label=(lang.holder()) {
                            @if let Some(order) = record.locked_payment_order_id {
                                (parts::order_link(order.0, None))
                            } @else { "—" }
                        }
                        td data-label=(lang.line()) class="mono" {
                            @if let Some(line) = record.locked_order_bill_id { "→ " (line) }
                            @else { "—" }
                        }
                        td data-label=(lang.reason()) class="words" {
                            (record.unqualified_reason.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

fn lines(lang: Lang, bill: &BillView) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.time()) } th { (lang.order()) " · " (lang.version()) }
                th { (lang.line()) } th { (lang.kind()) } th { (lang.line_state()) }
                th class="num" { (lang.yuan()) } th { (lang.payee()) }
                th { (lang.account_number()) }
            } }
            tbody {
                @for line in &bill.lines {
                    tr {
                        td data-label=(lang.time()) { (parts::time(line.create_time)) }
                        td data-label=(lang.order()) {
                            (parts::order_link(line.payment_order_id.0, line.order_no.as_deref()))
                            " · " (line.data_version)
                            @if line.is_published { " " (lang.pick("（当前）", "(current)")) }
                        }
                        td data-label=(lang.line()) class="mono" { (line.order_bill_id) }
                        td data-label=(lang.kind()) { (parts::stored(lang, line.line_type)) }
                        td data-label=(lang.line_state()) {
                            (parts::stored(lang, line.line_status))
                        }
                        td data-label=(lang.yuan()) class="num" { (yuan(line.pay_amount)) }
                        td data-label=(lang.payee()) { (line.payee_name.as_deref().unwrap_or("—")) }
                        td data-label=(lang.account_number()) class="mono" {
                            (line.payee_account.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

fn locks(lang: Lang, bill: &BillView) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.locks()) } th { (lang.status()) }
                th { (lang.order()) " · " (lang.version()) } th { (lang.line()) }
                th { (lang.since()) } th { (lang.released()) } th { (lang.reason()) }
            } }
            tbody {
                @for lock in &bill.locks {
                    tr {
                        td data-label=(lang.locks()) class="mono" { (lock.lock_id) }
                        td data-label=(lang.status()) { (parts::stored(lang, &lock.lock_status)) }
                        td data-label=(lang.order()) {
                            (parts::order_link(lock.payment_order_id.0, lock.order_no.as_deref()))
                            " · " (lock.data_version)
                        }
                        td data-label=(lang.line()) class="mono" { (lock.order_bill_id) }
                        td data-label=(lang.since()) { (parts::time(lock.create_time)) }
                        td data-label=(lang.released()) { (parts::maybe_time(lock.release_time)) }
                        td data-label=(lang.reason()) class="mono" {
                            (lock.release_reason.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}
