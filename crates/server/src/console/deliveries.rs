//! What partners were told: the request, the answer, and telling one again.

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_account::audit::Deed;
use counterfoil_payment::order_view::find;
use counterfoil_payment::partner_push::{
    DeliveryRow, DeliverySearch, DeliveryStatus, deliveries, delivery, redeliver,
};
use counterfoil_protocol::{DeliveryId, UserId};
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::orders::named;
use super::parts;
use super::shell::{Answer, Page, Room, back_to};
use super::tasks::{confirm, dry_run};
use super::texts::Lang;
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;

/// Which deliveries.
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
    let (lang, before) = (visitor.lang(), place_of(&which.cursor));
    let order = match which.order.trim() {
        "" => None,
        named => Some(find(&console.db, named).await?),
    };
    let search = DeliverySearch {
        order,
        status: DeliveryStatus::of(&which.status),
        before: before.map(DeliveryId),
        limit: PAGE + 1,
    };
    let mut found = deliveries(&console.db, &search).await?;
    let is_more = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    let next = found.last().map(|row| row.id.0).filter(|_| is_more);
    let kept = [("order", which.order.clone()), ("status", which.status.clone())];
    let statuses = named(lang, &["WAIT_PROCESS", "SUCCESS", "FAIL", "UNKNOWN", "SKIPPED"]);
    let body = html! {
        h1 { (lang.deliveries()) }
        form class="filter" method="get" action="/console/deliveries" {
            (parts::field("order", lang.order(), &which.order))
            (parts::choice("status", lang.status(), lang.all(), &statuses, &which.status))
            button type="submit" { (lang.filter()) }
        }
        @if found.is_empty() {
            (parts::empty(lang.no_deliveries()))
        } @else {
            div class="card wide" { (table(lang, &found)) }
            (parts::pager(lang, "/console/deliveries", &kept, next, before.is_none()))
        }
    };
    Ok(Page::new(Room::Deliveries, lang.deliveries(), body).live().shown_to(&visitor))
}

/// Deliveries in a table.
pub(super) fn table(lang: Lang, rows: &[DeliveryRow]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.pick("编号", "Id")) } th { (lang.order()) } th { (lang.partner()) }
                th class="num" { (lang.chunk()) } th class="num" { (lang.count()) }
                th { (lang.status()) } th class="num" { (lang.attempts()) } th { (lang.sent_at()) }
                th { (lang.detail()) }
            } }
            tbody {
                @for row in rows {
                    tr {
                        td data-label=(lang.pick("编号", "Id")) {
                            (parts::link(&format!("/console/deliveries/{}", row.id),
                                &row.id.to_string()))
                        }
                        td data-label=(lang.order()) {
                            (parts::order_link(row.payment_order_id.0, None)) " · "
                            (row.data_version)
                        }
                        td data-label=(lang.partner()) class="mono" {
                            @if let Some(partner) = row.partner_id { (partner) } @else { "—" }
                        }
                        td data-label=(lang.chunk()) class="num" {
                            (row.chunk_no) " / " (row.chunk_count)
                        }
                        td data-label=(lang.count()) class="num" { (parts::number(row.line_count)) }
                        td data-label=(lang.status()) {
                            (parts::stored(lang, row.status.as_str()))
                        }
                        td data-label=(lang.attempts()) class="num" { (row.attempt_count) }
                        td data-label=(lang.sent_at()) { (parts::maybe_time(row.sent_time)) }
                        td data-label=(lang.detail()) class="words" {
                            (row.last_error.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

/// A body as text that can be read: JSON with its indents, account numbers hidden from those who
/// do not need them.
fn readable(visitor: &Visitor, body: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(body) else {
        // What is no JSON cannot be searched for account numbers.
        return match visitor.may(Permission::SeeAccountNumbers) {
            true => body.to_owned(),
            false => visitor.lang().hidden().to_owned(),
        };
    };
    if !visitor.may(Permission::SeeAccountNumbers) {
        hide_accounts(&mut value);
    }
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// Hides whatever is called an account.
fn hide_accounts(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    serde_json::Value::String(text) if name.to_lowercase().contains("account") => {
                        let shown: String = text.chars().rev().take(4).collect();
                        let shown: String = shown.chars().rev().collect();
                        *text = format!("****{}", if text.len() > 4 { &shown } else { "" });
                    }
                    other => hide_accounts(other),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(hide_accounts),
        _ => {}
    }
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
) -> Answer {
    let lang = visitor.lang();
    let row = delivery(&console.db, DeliveryId(id)).await?;
    let may_again = row.status != DeliveryStatus::Success && visitor.may(Permission::Operate);
    let body = html! {
        h1 { (lang.delivery()) " " span class="mono" { (id) } }
        div class="card" { (parts::facts(&[
            (lang.status(), parts::stored(lang, row.status.as_str())),
            (lang.order(), parts::order_link(row.payment_order_id.0, None)),
            (lang.version(), html! { (row.data_version) }),
            (lang.partner(), html! {
                span class="mono" {
                    @if let Some(partner) = row.partner_id { (partner) } @else { "—" }
                }
            }),
            (lang.chunk(), html! { (row.chunk_no) " / " (row.chunk_count) }),
            (lang.count(), html! { (parts::number(row.line_count)) }),
            (lang.attempts(), html! { (row.attempt_count) }),
            (lang.sent_at(), parts::maybe_time(row.sent_time)),
            ("HTTP", html! { @if let Some(status) = row.http_status { (status) } @else { "—" } }),
            ("Idempotency-Key", html! { span class="mono" { (row.idempotency_key) } }),
        ]))
        @if let Some(error) = &row.last_error { p class="record" { (error) } } }
        @if may_again { (again_form(&visitor, &row)) }
        h2 { (lang.request()) }
        pre class="card" { (readable(&visitor, row.request_body.as_deref().unwrap_or("—"))) }
        h2 { (lang.response()) }
        pre class="card" { (readable(&visitor, row.response_body.as_deref().unwrap_or("—"))) }
    };
    Ok(Page::new(Room::Deliveries, format!("{} {id}", lang.delivery()), body).shown_to(&visitor))
}

fn again_form(visitor: &Visitor, row: &DeliveryRow) -> Markup {
    let lang = visitor.lang();
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "用同一个幂等键、同样的内容再发一次",
        "send the same body once more under the same idempotency key",
    );
    let wont = text(
        "理会合作方的重试策略；对方若不认幂等键，可能收到两次",
        "heed the partner's retry policy; one that tells no keys apart may get it twice",
    );
    let cannot =
        text("换内容，或再发对方已接受的", "carry another body, or repeat what was accepted");
    let path = format!("/console/deliveries/{}", row.id);
    html! {
        h2 { (lang.send_again()) }
        (dry_run(lang, &will, &wont, &cannot))
        (confirm(visitor, &format!("{path}/again"), &path, lang.send_again()))
    }
}

pub(super) async fn again(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let deed = Deed { action: "delivery-again", subject: &id.to_string(), reason };
    let work = async {
        let (db, user) = (&console.db, UserId(visitor.account.id));
        let done = redeliver(db, &*console.inbox, DeliveryId(id), user, reason).await?;
        let mut told = format!("was {}, is {}", done.was.as_str(), done.status.as_str());
        if let Some(error) = done.error {
            told.push_str(&format!(": {error}"));
        }
        Ok(((), told))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/deliveries/{id}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_called_an_account_is_hidden_however_deep() {
        let mut value = serde_json::json!({
            "lines": [{ "payeeAccount": "6222020200112233", "amount": 5, "payee": "李伟" }],
            "account": "123", "note": "account 42",
        });
        hide_accounts(&mut value);
        let expected = serde_json::json!({
            "lines": [{ "payeeAccount": "****2233", "amount": 5, "payee": "李伟" }],
            "account": "****", "note": "account 42",
        });
        assert_eq!(value, expected);
    }
}
