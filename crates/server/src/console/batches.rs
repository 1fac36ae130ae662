//! Push batches: what is to be paid, what became of it, pushing one, and putting a payee right.

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_account::audit::{Deed, Outcome, record};
use counterfoil_db::{Db, Read, sql};
use counterfoil_payment::order_view::find;
use counterfoil_payment::treasury::data_fix::{PayeeFix, fix};
use counterfoil_payment::treasury::push::{Asked, Pushed, push_one};
use counterfoil_payment::treasury::view::{self, BatchQuery, BatchRow, BatchView, DetailRow};
use counterfoil_protocol::UserId;
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::orders::named;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, back_to, proof};
use super::tasks::{confirm, dry_run};
use super::texts::Lang;
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;
/// Details whose account numbers are shown in full at once.
const MAX_SHOWN_IN_FULL: u32 = 500;

/// Which batches.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    order: String,
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
    let (lang, after) = (visitor.lang(), place_of(&which.cursor));
    let order = match which.order.trim() {
        "" => None,
        named => Some(find(&console.db, named).await?.0),
    };
    let status = Some(which.status.clone()).filter(|status| !status.is_empty());
    let page =
        view::list(&console.db, &BatchQuery { order, status, after, limit: Some(PAGE) }).await?;
    let kept = [("order", which.order.clone()), ("status", which.status.clone())];
    let statuses = named(
        lang,
        &[
            "WAIT_PUSH",
            "PUSHING",
            "PUSH_SUCCESS",
            "PUSH_PARTIAL_SUCCESS",
            "WAIT_DATA_FIX",
            "PUSH_FAIL",
        ],
    );
    let body = html! {
        h1 { (lang.batches()) }
        form class="filter" method="get" action="/console/batches" {
            (parts::field("order", lang.order(), &which.order))
            (parts::choice("status", lang.status(), lang.all(), &statuses, &which.status))
            button type="submit" { (lang.filter()) }
        }
        @if page.batches.is_empty() {
            (parts::empty(lang.no_batches()))
        } @else {
            div class="card wide" { (table(lang, &page.batches)) }
            (parts::pager(lang, "/console/batches", &kept, page.next_after, after.is_none()))
        }
    };
    Ok(Page::new(Room::Batches, lang.batches(), body).live().shown_to(&visitor))
}

/// Batches in a table.
pub(super) fn table(lang: Lang, batches: &[BatchRow]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.batch()) } th { (lang.order()) } th { (lang.status()) }
                th class="num" { (lang.count()) } th class="num" { (lang.yuan()) }
                th class="num" { (lang.pushes()) } th { (lang.next_try()) } th { (lang.detail()) }
            } }
            tbody {
                @for batch in batches {
                    tr {
                        td data-label=(lang.batch()) {
                            (parts::link(&format!("/console/batches/{}", batch.id),
                                &batch.batch_no))
                        }
                        td data-label=(lang.order()) {
                            (parts::order_link(batch.payment_order_id, None))
                        }
                        td data-label=(lang.status()) { (parts::stored(lang, &batch.status)) }
                        td data-label=(lang.count()) class="num" {
                            (parts::number(batch.detail_count))
                        }
                        td data-label=(lang.yuan()) class="num" {
                            (parts::yuan(batch.total_amount))
                        }
                        td data-label=(lang.pushes()) class="num" { (batch.push_count) }
                        td data-label=(lang.next_try()) {
                            (parts::maybe_time(batch.next_handle_time))
                        }
                        td data-label=(lang.detail()) class="words" {
                            (batch.error_message.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

/// Whether account numbers are asked for in full.
#[derive(Debug, Default, Deserialize)]
pub(super) struct InFull {
    #[serde(default)]
    full: String,
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    Query(InFull { full }): Query<InFull>,
) -> Answer {
    let lang = visitor.lang();
    let mut batch = view::show(&console.db, &named).await?;
    let may_see = visitor.may(Permission::SeeAccountNumbers);
    if !full.is_empty() && may_see {
        in_full(&console, &visitor, &mut batch).await?;
    }
    let id = batch.batch.id;
    let path = format!("/console/batches/{id}");
    let may_push = matches!(batch.batch.status.as_str(), "WAIT_PUSH" | "PUSH_FAIL");
    let body = html! {
        h1 { (lang.batch()) " " span class="mono" { (batch.batch.batch_no) } }
        p class="lede" {
            (parts::stored(lang, &batch.batch.status)) " · "
            (parts::order_link(batch.batch.payment_order_id, None)) " · "
            (parts::number(batch.batch.detail_count)) " " (lang.lines()) " · ¥ "
            (parts::yuan(batch.batch.total_amount)) " · " span class="mono" {
                (batch.batch.strategy)
            }
        }
        @if let Some(error) = &batch.batch.error_message { p class="record" { (error) } }
        @if may_push && visitor.may(Permission::Operate) { (push_form(&visitor, &path)) }
        h2 { (lang.pushes()) }
        @if batch.pushes.is_empty() { (parts::empty(lang.no_pushes())) }
        @else { div class="card wide" { (pushes(lang, &batch)) } }
        h2 { (lang.details()) }
        @if may_see && full.is_empty() {
            p class="quiet" { a href={ (path) "?full=1" } { (lang.show_accounts()) } }
        }
        div class="card wide" { (details(&visitor, &batch)) }
        @if batch.details_not_shown > 0 {
            p class="quiet" { (parts::number(batch.details_not_shown)) " " (lang.more_details()) }
        }
    };
    let title = format!("{} {}", lang.batch(), batch.batch.batch_no);
    Ok(Page::new(Room::Batches, title, body).shown_to(&visitor))
}

/// Puts the account numbers in, and on record that this person saw them.
async fn in_full(
    console: &Console,
    visitor: &Visitor,
    batch: &mut BatchView,
) -> Result<(), Trouble> {
    let subject = batch.batch.id.to_string();
    let deed = Deed { action: "account-numbers-seen", subject: &subject, reason: "" };
    record(&console.db, &visitor.actor(), deed, Outcome::Done, "").await?;
    let numbers = account_numbers(&console.db, batch.batch.id).await?;
    for detail in &mut batch.details {
        let found = numbers.iter().find(|(id, _)| *id == detail.id);
        if let Some((_, number)) = found {
            detail.payee_account.clone_from(number);
        }
    }
    Ok(())
}

async fn account_numbers(db: &Db, batch: i64) -> Result<Vec<(i64, Option<String>)>, Trouble> {
    let query = sql!(
        "SELECT id, payee_account FROM fi_resident_income_payment_push_batch_detail
         WHERE push_batch_id = :batch AND deleted = 0
         ORDER BY CASE WHEN push_status IN ('WAIT_DATA_FIX', 'REJECTED')
                         OR pay_status = 'PAY_FAILED' THEN 0 ELSE 1 END, id
         LIMIT :limit",
        batch = batch,
        limit = MAX_SHOWN_IN_FULL,
    );
    let rows = db.rows(query).await?;
    rows.iter().map(|row| Ok((row.int("id")?, row.maybe_text("payee_account")?))).collect()
}

fn push_form(visitor: &Visitor, path: &str) -> Markup {
    let lang = visitor.lang();
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "把这个批次里等推送的行作为一个报文发给付款方",
        "send what waits in this batch to the payer, as one message",
    );
    let wont = text(
        "发已经在路上、已付款或等改数据的行",
        "send what is on its way, paid, or waits for a data fix",
    );
    let cannot = text(
        "把同一行付两次：报文号和行号都是唯一的",
        "pay a line twice: message and line carry unique numbers",
    );
    html! {
        h2 { (lang.push_now()) }
        (dry_run(lang, &will, &wont, &cannot))
        (confirm(visitor, &format!("{path}/push"), path, lang.push_now()))
    }
}

fn pushes(lang: Lang, batch: &BatchView) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.message()) } th { (lang.status()) } th class="num" { (lang.count()) }
                th class="num" { (lang.yuan()) } th class="num" { (lang.attempts()) }
                th { (lang.time()) } th { (lang.detail()) }
            } }
            tbody {
                @for push in &batch.pushes {
                    tr {
                        td data-label=(lang.message()) class="mono" title=(push.body_sha256) {
                            (push.message_id)
                        }
                        td data-label=(lang.status()) { (parts::stored(lang, &push.state)) }
                        td data-label=(lang.count()) class="num" {
                            (parts::number(push.detail_count))
                        }
                        td data-label=(lang.yuan()) class="num" { (parts::yuan(push.total_amount)) }
                        td data-label=(lang.attempts()) class="num" { (push.send_count) }
                        td data-label=(lang.time()) { (parts::time(push.create_time)) }
                        td data-label=(lang.detail()) class="words" {
                            (push.error_message.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

fn needs_fix(detail: &DetailRow) -> bool {
    matches!(detail.push_status.as_str(), "WAIT_DATA_FIX" | "REJECTED")
        || detail.pay_status.as_deref() == Some("PAY_FAILED")
}

fn details(visitor: &Visitor, batch: &BatchView) -> Markup {
    let lang = visitor.lang();
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.details()) } th { (lang.line()) } th class="num" { (lang.yuan()) }
                th { (lang.payee()) } th { (lang.account_number()) } th { (lang.pushes()) }
                th { (lang.paying()) } th { (lang.detail()) }
            } }
            tbody {
                @for detail in &batch.details {
                    tr {
                        td data-label=(lang.details()) class="mono" { (detail.id) }
                        td data-label=(lang.line()) class="mono" { (detail.order_bill_id) }
                        td data-label=(lang.yuan()) class="num" { (parts::yuan(detail.amount)) }
                        td data-label=(lang.payee()) {
                            (detail.payee_name.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.account_number()) class="mono" {
                            (detail.payee_account.as_deref().unwrap_or("—"))
                        }
                        td data-label=(lang.pushes()) { (parts::stored(lang, &detail.push_status)) }
                        td data-label=(lang.paying()) {
                            (parts::maybe_stored(lang, detail.pay_status.as_deref()))
                        }
                        td data-label=(lang.detail()) class="words" {
                            (detail.error_code.as_deref().unwrap_or("")) " "
                            (detail.error_message.as_deref().unwrap_or("—"))
                            @if needs_fix(detail) && visitor.may(Permission::Operate) {
                                (fix_form(visitor, batch.batch.id, detail))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn fix_form(visitor: &Visitor, batch: i64, detail: &DetailRow) -> Markup {
    let lang = visitor.lang();
    html! {
        details id={ "fix-" (detail.id) } {
            summary { (lang.fix_payee()) }
            form method="post" action={ "/console/batches/" (batch) "/fix/" (detail.id) }
                class="confirm" {
                (proof(visitor))
                p class="quiet" { (lang.fix_payee_lede()) }
                (parts::field("name", lang.payee(), ""))
                (parts::field("account", lang.account_number(), ""))
                (parts::field("bank", lang.bank(), ""))
                label {
                    span { (lang.reason()) }
                    input type="text" name="reason" required maxlength="500";
                }
                div class="actions" {
                    button class="primary" type="submit" { (lang.fix_payee()) }
                }
            }
        }
    }
}

pub(super) async fn push(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let batch = view::show(&console.db, &named).await?.batch;
    let deed = Deed { action: "batch-push", subject: &batch.batch_no, reason };
    let work = async {
        let pushed = push_one(&console.db, &console.channels, batch.id, Asked::ByPerson).await?;
        let told = match pushed {
            Pushed::Accepted => "the receiver accepted it",
            Pushed::Unknown => "no verdict: a status query or a result decides",
            Pushed::Refused => {
                let why = "certainly not accepted; it is tried again when due";
                return Err(Trouble::conflict("push-refused", why));
            }
            Pushed::NeedsData => {
                let why = "nothing in it can be sent before a person's fix";
                return Err(Trouble::conflict("push-needs-data", why));
            }
            Pushed::Lost => {
                let why = "only a batch that waits or failed, of an order at 40, can be pushed";
                return Err(Trouble::conflict("push-batch-state", why));
            }
        };
        Ok(((), told.to_owned()))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/batches/{}", batch.id)))
}

pub(super) async fn fix_payee(
    State(console): State<Console>,
    visitor: Visitor,
    Path((batch, detail)): Path<(i64, i64)>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let given = |name: &str| Some(posted.field(name).to_owned()).filter(|text| !text.is_empty());
    let payee = PayeeFix { name: given("name"), account: given("account"), bank: given("bank") };
    let deed = Deed { action: "payee-fix", subject: &detail.to_string(), reason };
    let work = async {
        let user = UserId(visitor.account.id);
        let fixed = fix(&console.db, detail, &payee, reason, user).await?;
        Ok(((), format!("it waits to be pushed again; the batch is {}", fixed.batch_status)))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/batches/{batch}")))
}
