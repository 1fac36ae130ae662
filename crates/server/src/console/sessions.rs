//! Selecting bills: opening a session, for a new order or to revise one; adding a month, taking
//! bills out, and submitting.

use axum::extract::{Path, State};
use counterfoil_account::Permission;
use counterfoil_account::audit::Deed;
use counterfoil_payment::order_view::find;
use counterfoil_payment::session::add::{BillKey, Selection, add_bills};
use counterfoil_payment::session::edit::{Editor, remove_bills};
use counterfoil_payment::session::open::{open_new, open_revise};
use counterfoil_payment::session::show::{Failure, SessionView, show as read};
use counterfoil_payment::session::submit;
use counterfoil_protocol::{BillMonth, SessionId, UserId};
use maud::{Markup, html};

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, back_to, proof};
use super::tasks::{confirm, dry_run};
use super::texts::Lang;

/// Bills that one form takes out at most.
const MAX_LISTED: usize = 500;

fn path_of(session: SessionId) -> String {
    format!("/console/sessions/{session}")
}

/// Opens a session for a new order.
pub(super) async fn open(
    State(console): State<Console>,
    visitor: Visitor,
    _posted: Posted,
) -> Answer {
    let deed = Deed { action: "session-open", subject: "", reason: "" };
    let work = async {
        let session = open_new(&console.db, UserId(visitor.account.id)).await?;
        Ok((session, format!("session {session}")))
    };
    let session = audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(session)))
}

pub(super) async fn ask_revise(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &named).await?;
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "打开一个修订会话，带着已发布版本的全部账单",
        "open a session that holds the bills of the published version",
    );
    let wont = text(
        "动这张单：到提交并发布为止，一切照旧",
        "touch the order: until the revision is submitted and published all stays as it is",
    );
    let cannot = text(
        "同时有两个修订；由别人修订建单人的单",
        "be two revisions at once, or another person's than the creator's",
    );
    let path = format!("/console/orders/{order}");
    let body = html! {
        h1 { (lang.revise_order()) " " (parts::order_link(order.0, None)) }
        (dry_run(lang, &will, &wont, &cannot))
        (confirm(&visitor, &format!("{path}/revise"), &path, lang.revise_order()))
    };
    Ok(Page::new(Room::Orders, lang.revise_order(), body).shown_to(&visitor))
}

pub(super) async fn revise(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let order = find(&console.db, &named).await?;
    let deed = Deed { action: "order-revise", subject: &order.to_string(), reason };
    let work = async {
        let session = open_revise(&console.db, UserId(visitor.account.id), order).await?;
        Ok((session, format!("session {session}")))
    };
    let session = audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(session)))
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
) -> Answer {
    let lang = visitor.lang();
    let view = read(&console.db, SessionId(id)).await?;
    let is_own = view.creator.0 == visitor.account.id && visitor.may(Permission::Operate);
    let may_edit = is_own
        && view.invalidated.is_none()
        && matches!(view.status.as_str(), "EDITING" | "SUBMIT_FAILED");
    let body = html! {
        h1 { (lang.session()) " " span class="mono" { (id) } }
        p class="lede" {
            (parts::stored(lang, &view.status)) " · " span class="mono" { (view.mode.as_str()) }
            " · " (lang.creator()) " " span class="mono" { (view.creator) }
            @if let Some(order) = view.order {
                " · " (parts::order_link(order.0, view.order_no.as_deref()))
            }
        }
        @if let Some(why) = &view.invalidated { p class="record" { (why) } }
        @if let Some(failure) = &view.failure { (failed(lang, failure)) }
        (holds(lang, &view))
        @if may_edit { (edit_forms(&visitor, &view)) }
        @else if !is_own { p class="quiet" { (lang.session_of_creator()) } }
    };
    Ok(Page::new(Room::Orders, format!("{} {id}", lang.session()), body).shown_to(&visitor))
}

fn failed(lang: Lang, failure: &Failure) -> Markup {
    html! {
        div class="verdict" {
            strong { (parts::stored(lang, "SUBMIT_FAILED")) }
            span { (failure.message.as_deref().or(failure.code.as_deref()).unwrap_or("—")) }
        }
        @if !failure.conflicts.is_empty() {
            h2 { (lang.held_by_others()) " · " (failure.conflict_count) }
            div class="card wide" { table class="stack" {
                thead { tr {
                    th { (lang.station()) " · " (lang.month()) } th { (lang.holder()) }
                    th { (lang.locks()) }
                } }
                tbody { @for conflict in &failure.conflicts {
                    tr {
                        td data-label=(lang.station()) {
                            (parts::bill_link(&conflict.bill.station,
                                &conflict.bill.month.to_string()))
                        }
                        td data-label=(lang.holder()) {
                            (parts::order_link(conflict.order.0, conflict.order_no.as_deref()))
                        }
                        td data-label=(lang.locks()) {
                            (parts::stored(lang, &conflict.lock_status))
                        }
                    }
                } }
            } }
        }
    }
}

fn holds(lang: Lang, view: &SessionView) -> Markup {
    html! {
        h2 { (lang.what_it_holds()) }
        div class="card" { (parts::facts(&[
            (lang.lines(), html! { (view.lines) }),
            (lang.payable(), html! { (view.payable) }),
            (lang.unqualified(), html! { (view.unqualified) }),
            (lang.yuan(), html! { (view.payable_amount) }),
        ])) }
        @if view.groups.is_empty() {
            (parts::empty(lang.session_empty()))
        } @else {
            div class="card wide" { table {
                thead { tr {
                    th { (lang.month()) } th { (lang.reason()) } th class="num" { (lang.count()) }
                    th class="num" { (lang.yuan()) }
                } }
                tbody { @for group in &view.groups {
                    tr {
                        td { (parts::month_of(&group.month.to_string())) }
                        td { @if let Some(reason) = &group.reason { (reason) }
                            @else { (parts::stored(lang, "PAYABLE")) } }
                        td class="num" { (group.lines) }
                        td class="num" { (group.amount) }
                    }
                } }
            } }
        }
    }
}

fn edit_forms(visitor: &Visitor, view: &SessionView) -> Markup {
    let (lang, path) = (visitor.lang(), path_of(view.session));
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "构建明细、预占账单、发布，然后送审；被占的账单会列出来",
        "build the lines, reserve the bills, publish, and open a review; held bills are listed",
    );
    let wont = text("占用别的付款单占着的账单", "take a bill that another order holds");
    let cannot = text("一张账单进两张付款单", "put one bill into two orders");
    html! {
        h2 { (lang.add_month()) }
        form method="post" action={ (path) "/bills" } class="filter" {
            (proof(visitor))
            (parts::field("month", lang.month_hint(), ""))
            button type="submit" { (lang.add_month()) }
        }
        h2 { (lang.take_out()) }
        form method="post" action={ (path) "/removals" } class="confirm" {
            (proof(visitor))
            label { span { (lang.take_out_hint()) }
                textarea name="bills" rows="3" required maxlength="20000" {} }
            div class="actions" { button type="submit" { (lang.take_out()) } }
        }
        @if view.lines > 0 {
            h2 { (lang.submit_session()) }
            (dry_run(lang, &will, &wont, &cannot))
            form method="post" action={ (path) "/submission" } class="actions" {
                (proof(visitor))
                button class="primary" type="submit" { (lang.submit_session()) }
            }
        }
    }
}

fn editor(visitor: &Visitor, id: i64) -> Editor {
    Editor { session: SessionId(id), user: UserId(visitor.account.id) }
}

fn month(text: &str) -> Result<BillMonth, Trouble> {
    let month = text.trim().replace('-', "").parse();
    month.map_err(|error| Trouble::invalid(format!("{text}: {error}")))
}

pub(super) async fn add(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
    posted: Posted,
) -> Answer {
    let selection =
        Selection::Month { month: month(posted.field("month"))?, company: None, partner: None };
    let deed = Deed { action: "session-add", subject: &id.to_string(), reason: "" };
    let work = async {
        let (db, editor) = (&console.db, editor(&visitor, id));
        let added = add_bills(db, editor, &selection, &console.tolerance).await?;
        Ok((
            (),
            format!(
                "{} payable, {} unqualified, {} there already, {} cannot be selected",
                added.payable, added.unqualified, added.already, added.unselectable_count
            ),
        ))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(SessionId(id))))
}

/// Bills as people list them: a station and a month each, apart by line ends, commas or blanks.
fn listed(text: &str) -> Result<Vec<BillKey>, Trouble> {
    let mut bills = Vec::new();
    let parts = text.split(['\n', '\r', ',', ' ', ';']).filter(|part| !part.is_empty());
    for part in parts.take(MAX_LISTED + 1) {
        let (station, month_text) = part
            .rsplit_once(':')
            .ok_or_else(|| Trouble::invalid(format!("{part}: write STATION:MONTH")))?;
        bills.push(BillKey { station: station.to_owned(), month: month(month_text)? });
    }
    if bills.is_empty() || bills.len() > MAX_LISTED {
        return Err(Trouble::invalid(format!("bills: 1 to {MAX_LISTED} of STATION:MONTH")));
    }
    Ok(bills)
}

pub(super) async fn remove(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
    posted: Posted,
) -> Answer {
    let selection = Selection::Bills(listed(posted.field("bills"))?);
    let deed = Deed { action: "session-remove", subject: &id.to_string(), reason: "" };
    let work = async {
        let removed = remove_bills(&console.db, editor(&visitor, id), &selection).await?;
        Ok(((), format!("{removed} bills taken out")))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(SessionId(id))))
}

pub(super) async fn send(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
    _posted: Posted,
) -> Answer {
    let deed = Deed { action: "session-submit", subject: &id.to_string(), reason: "" };
    let work = async {
        let (kicker, user) = (console.engine.kicker(), UserId(visitor.account.id));
        let done = submit(&console.db, kicker, SessionId(id), user).await?;
        Ok((done.order, format!("accepted, not built yet: {}", done.task)))
    };
    let order = audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/orders/{order}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bills_are_listed_by_station_and_month_however_they_are_set_apart() {
        let bills = listed("JN01-000088:202609, S2:2026-08\r\nS:3:202607").unwrap();
        let shown: Vec<String> =
            bills.iter().map(|bill| format!("{} {}", bill.station, bill.month)).collect();
        assert_eq!(shown, ["JN01-000088 202609", "S2 202608", "S:3 202607"]);
        for bad in ["", "S1", "S1:2026-13", &"S1:202609 ".repeat(501)] {
            assert!(listed(bad).is_err(), "{bad}");
        }
    }
}
