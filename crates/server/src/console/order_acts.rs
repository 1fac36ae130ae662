//! What is done to an order by a person: first what that will do, then a reason, then the deed.

use axum::extract::{Path, State};
use counterfoil_account::audit::Deed;
use counterfoil_payment::order_cancel::cancel as cancel_order;
use counterfoil_payment::order_view::{self, OrderView, find};
use counterfoil_payment::publish_repair::repair_publish;
use counterfoil_payment::treasury::record_payment::record_payment;
use counterfoil_payment::visibility_gate;
use counterfoil_protocol::UserId;
use maud::html;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::order::called;
use super::parts;
use super::shell::{Answer, Page, Room, back_to, proof};
use super::tasks::{confirm, dry_run};
use super::texts::Lang;

/// Why an order cannot be cancelled by this person as it stands, as far as its page can tell; the
/// deed itself decides under the order's lock.
fn against_cancelling(lang: Lang, view: &OrderView, user: i64) -> Option<String> {
    let order = &view.order;
    if order.create_user_id.0 != user {
        let who = order.create_user_id;
        let zh = format!("取消：只有建单人 {who} 可以");
        let en = format!("cancel: only its creator, user {who}, may");
        return Some(lang.pick(&zh, &en).to_owned());
    }
    let is_treasury = order.payment_type.as_deref() == Some("TREASURY");
    let not_pushed = order.push_status.as_deref() == Some("NOT_PUSHED");
    let open = match order.status {
        10 | 20 | 30 => true,
        40 => is_treasury && not_pushed && view.push_batches.total() == 0,
        _ => false,
    };
    let zh = format!("取消：它已是 {}，或已有付款批次", order.status_name);
    let en = format!("cancel: it is {}, or has push batches already", order.status_name);
    (!open).then(|| lang.pick(&zh, &en).to_owned())
}

pub(super) async fn ask_cancel(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &named).await?;
    let view = order_view::one(&console.db, order).await?;
    let against = against_cancelling(lang, &view, visitor.account.id);
    let text = |zh: String, en: String| lang.pick(&zh, &en).to_owned();
    let held = view.locks.active + view.locks.reserved;
    let (will, will_not) = match &against {
        Some(why) => (vec![], vec![why.clone()]),
        None => (
            vec![
                text("付款单变为「已取消」".into(), "make the order CANCELLED".into()),
                text(
                    "未完成的任务和选单会话一并结束".into(),
                    "end its unfinished tasks and sessions".into(),
                ),
                text(
                    format!("分批释放它占着的 {held} 张账单，三张表改回"),
                    format!("let go of its {held} bills in batches, and set the three tables back"),
                ),
                text("撤回审核计划".into(), "withdraw its audit plan".into()),
            ],
            vec![text(
                "动别的付款单占着的账单".into(),
                "touch bills that other orders hold".into(),
            )],
        ),
    };
    let cannot = vec![text("再次打开这张单".into(), "open this order again".into())];
    let path = format!("/console/orders/{order}");
    let body = html! {
        h1 { (lang.cancel_order()) " " (parts::order_link(order.0, Some(&called(&view.order)))) }
        p class="lede" {
            (parts::stored(lang, view.order.status_name)) " · " (lang.payable()) " ¥ "
            (view.order.total_amount)
        }
        (dry_run(lang, &will, &will_not, &cannot))
        @if against.is_none() {
            (confirm(&visitor, &format!("{path}/cancel"), &path, lang.cancel_order_now()))
        } @else {
            p { a class="button" href=(path) { (lang.never_mind()) } }
        }
    };
    Ok(Page::new(Room::Orders, lang.cancel_order(), body).shown_to(&visitor))
}

pub(super) async fn cancel(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let order = find(&console.db, &named).await?;
    let deed = Deed { action: "order-cancel", subject: &order.to_string(), reason };
    let work = async {
        let (db, kicker) = (&console.db, console.engine.kicker());
        let done = cancel_order(db, kicker, order, UserId(visitor.account.id), reason).await?;
        Ok(((), format!("CANCELLED, {} tasks ended; {} lets go", done.tasks, done.release)))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/orders/{order}")))
}

pub(super) async fn ask_paid(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &named).await?;
    let view = order_view::one(&console.db, order).await?;
    let waits = view.order.status == 40 && view.order.payment_type.as_deref() == Some("OFFLINE");
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let (will, wont) = match waits {
        true => (
            text(
                "付款单变为「已付款」，每行应付明细记为已付；随后刷新账单状态",
                "make the order PAID and its payable lines with it; their bills are refreshed next",
            ),
            text("付任何钱", "pay anything"),
        ),
        false => (
            vec![],
            text(
                "登记：只有待付款的线下付款单可以登记",
                "record anything: only an OFFLINE order that waits for its payment can be",
            ),
        ),
    };
    let cannot = text("收回这次登记", "be taken back");
    let path = format!("/console/orders/{order}");
    let body = html! {
        h1 { (lang.record_payment()) " " (parts::order_link(order.0, Some(&called(&view.order)))) }
        p class="lede" { (lang.payable()) " ¥ " (view.order.total_amount) }
        (dry_run(lang, &will, &wont, &cannot))
        @if waits {
            form method="post" action={ (path) "/payment" } class="confirm" {
                (proof(&visitor))
                label {
                    span { (lang.evidence()) }
                    textarea name="evidence" required maxlength="500" rows="2"
                        placeholder=(lang.evidence_hint()) {}
                }
                div class="actions" {
                    button class="primary" type="submit" { (lang.record_payment()) }
                    a class="button" href=(path) { (lang.never_mind()) }
                }
            }
        } @else {
            p { a class="button" href=(path) { (lang.never_mind()) } }
        }
    };
    Ok(Page::new(Room::Orders, lang.record_payment(), body).shown_to(&visitor))
}

pub(super) async fn paid(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let order = find(&console.db, &named).await?;
    let evidence = posted.field("evidence");
    let subject = order.to_string();
    let deed = Deed { action: "order-record-payment", subject: &subject, reason: evidence };
    let work = async {
        visibility_gate::check(&console.db, order).await?;
        let user = UserId(visitor.account.id);
        let done = record_payment(&console.db, order, evidence, None, user).await?;
        Ok((
            (),
            if done.known { "known before".to_owned() } else { format!("{} lines", done.lines) },
        ))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/orders/{order}")))
}

pub(super) async fn ask_repair(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &named).await?;
    let view = order_view::one(&console.db, order).await?;
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "若付款单指向的版本记录说的不是「已发布」，把它改为「已发布」",
        "set the version that the order points to PUBLISHED, where its record says otherwise",
    );
    let wont = text(
        "改动明细、占用锁、指针或轮次；不该修的会被拒绝",
        "touch lines, locks, pointer or round; what is not to be repaired is refused",
    );
    let cannot = text("让别人的修订变成建单人的修订", "make a stranger's revision the creator's");
    let path = format!("/console/orders/{order}");
    let body = html! {
        h1 { (lang.repair_publish()) " " (parts::order_link(order.0, Some(&called(&view.order)))) }
        p class="record" lang="en" { (view.verdict.sentence) }
        (dry_run(lang, &will, &wont, &cannot))
        (confirm(&visitor, &format!("{path}/repair"), &path, lang.repair_publish()))
    };
    Ok(Page::new(Room::Orders, lang.repair_publish(), body).shown_to(&visitor))
}

pub(super) async fn repair(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let order = find(&console.db, &named).await?;
    let deed = Deed { action: "order-repair-publish", subject: &order.to_string(), reason };
    let work = async {
        let user = UserId(visitor.account.id);
        let done = repair_publish(&console.db, order, user, reason).await?;
        Ok(((), format!("data version {} said {}", done.data_version, done.was)))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/orders/{order}")))
}
