//! What waits for a decision, and deciding. A submitter never decides on his own order, whatever
//! his role: the page says so, and the review centre and its database refuse it.

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_account::audit::Deed;
use counterfoil_db::{Db, Instant, Read, sql};
use counterfoil_protocol::{OrderId, PlanId, UserId};
use counterfoil_review::decision::{Decision, Verdict, decide as write_decision};
use counterfoil_review::inbox::{self, Item};
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, back_to, proof};
use super::texts::Lang;
use crate::api::place_of;

/// Items of a page.
const PAGE: u32 = 50;
/// Nodes of a plan at most: as many as a configuration has.
const MAX_NODES: u32 = 32;
/// Entries of a plan's log.
const MAX_LOG: u32 = 100;

/// Whose inbox.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Whose {
    #[serde(default)]
    of: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn list(
    State(console): State<Console>,
    visitor: Visitor,
    Query(whose): Query<Whose>,
) -> Answer {
    let (lang, after) = (visitor.lang(), place_of(&whose.cursor));
    let is_own = whose.of != "all" && visitor.may(Permission::Decide);
    let page = match is_own {
        true => inbox::of_user(&console.db, UserId(visitor.account.id), after, PAGE).await?,
        false => inbox::of_everybody(&console.db, after, PAGE).await?,
    };
    let now = console.db.now().await?;
    let kept = [("of", whose.of.clone())];
    let body = html! {
        h1 { (lang.reviews()) }
        p class="lede" {
            @if is_own { (lang.your_turn()) } @else { (lang.everybodys_turn()) } " · "
            @if is_own { a href="/console/reviews?of=all" { (lang.everybodys_turn()) } }
            @else if visitor.may(Permission::Decide) {
                a href="/console/reviews" { (lang.your_turn()) }
            }
        }
        @if page.items.is_empty() {
            (parts::empty(lang.nothing_to_decide()))
        } @else {
            div class="card wide" { (items(lang, &page.items, now)) }
            (parts::pager(lang, "/console/reviews", &kept, page.next, after.is_none()))
        }
    };
    Ok(Page::new(Room::Reviews, lang.reviews(), body).live().shown_to(&visitor))
}

fn items(lang: Lang, items: &[Item], now: Instant) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.plan()) } th { (lang.order()) } th class="num" { (lang.round()) }
                th { (lang.node()) } th { (lang.submitter()) } th class="num" { (lang.age()) } th {}
            } }
            tbody {
                @for item in items {
                    @let path = format!("/console/reviews/{}", item.plan);
                    tr {
                        td data-label=(lang.plan()) {
                            (parts::link(&path, &item.plan.to_string()))
                        }
                        td data-label=(lang.order()) {
                            (parts::order_link(item.from_id.0, Some(&item.from_num)))
                        }
                        td data-label=(lang.round()) class="num" {
                            @if let Some(round) = item.round { (round) }
                        }
                        td data-label=(lang.node()) {
                            (item.node_name) " " small class="mono" { (item.node_code) }
                        }
                        td data-label=(lang.submitter()) class="mono" {
                            @if let Some(user) = item.submitter { (user) } @else { "—" }
                        }
                        td data-label=(lang.age()) class="num" {
                            (parts::span(lang, item.since, now))
                        }
                        td { a class="button" href=(path) { (lang.look_and_decide()) } }
                    }
                }
            }
        }
    }
}

/// A plan with its nodes.
struct Plan {
    order: OrderId,
    number: String,
    status: String,
    submitter: Option<i64>,
    nodes: Vec<Node>,
}

struct Node {
    id: i64,
    code: String,
    name: String,
    status: String,
    by: Option<i64>,
    when: Option<Instant>,
    remark: Option<String>,
    reviewers: Vec<UserId>,
}

async fn plan(db: &Db, plan: PlanId) -> Result<Plan, Trouble> {
    let query = sql!(
        "SELECT from_id, from_num, status, submitter FROM review_business_plan
         WHERE id = :plan AND deleted = 0",
        plan = plan.0,
    );
    let row = db.row(query).await?.ok_or_else(Trouble::not_there)?;
    let nodes = sql!(
        "SELECT id, node_code, node_name, status, decided_by, decide_time, remark
         FROM review_business_node WHERE plan_id = :plan AND deleted = 0
         ORDER BY sort, id LIMIT :limit",
        plan = plan.0,
        limit = MAX_NODES,
    );
    let mut read = Vec::new();
    for row in db.rows(nodes).await? {
        let id = row.int("id")?;
        read.push(Node {
            id,
            code: row.text("node_code")?,
            name: row.text("node_name")?,
            status: row.text("status")?,
            by: row.maybe_int("decided_by")?,
            when: row.maybe_instant("decide_time")?,
            remark: row.maybe_text("remark")?,
            reviewers: inbox::reviewers_of(db, id).await?,
        });
    }
    Ok(Plan {
        order: OrderId(row.int("from_id")?),
        number: row.text("from_num")?,
        status: row.text("status")?,
        submitter: row.maybe_int("submitter")?,
        nodes: read,
    })
}

/// Why this person does not decide here, if he does not.
fn against(lang: Lang, plan: &Plan, visitor: &Visitor) -> Option<String> {
    let me = visitor.account.id;
    let say = |zh: &str, en: &str| Some(lang.pick(zh, en).to_owned());
    if !visitor.may(Permission::Decide) {
        return say("你的角色不审核。", "Your role does not decide.");
    }
    if plan.submitter == Some(me) {
        return say(
            "这张单是你提交的：提交人不可审核自己的单，管理员也不行。",
            "You submitted this order: nobody decides on his own, admins included.",
        );
    }
    if plan.nodes.iter().any(|node| node.by == Some(me)) {
        return say("你已经在这个计划上决定过。", "You have decided on this plan already.");
    }
    let turn = plan.nodes.iter().find(|node| node.status == "DOING");
    match turn {
        None => say("没有等待决定的节点。", "No node waits for a decision."),
        Some(node) if !node.reviewers.contains(&UserId(me)) => {
            say("现在轮到的节点不由你审核。", "You are no reviewer of the node whose turn it is.")
        }
        Some(_) => None,
    }
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
) -> Answer {
    let lang = visitor.lang();
    let plan = plan(&console.db, PlanId(id)).await?;
    let log = log(&console.db, lang, id).await?;
    let why_not = against(lang, &plan, &visitor);
    let body = html! {
        h1 { (lang.plan()) " " span class="mono" { (id) } }
        p class="lede" {
            (parts::stored(lang, &plan.status)) " · "
            (parts::order_link(plan.order.0, Some(&plan.number))) " · " (lang.submitter()) " "
            span class="mono" { @if let Some(user) = plan.submitter { (user) } @else { "—" } }
        }
        @match &why_not {
            Some(why) => {
                div class="verdict no" {
                    strong { (parts::state(Look::Waiting, lang.not_yours())) } span { (why) }
                }
            }
            None => { (decision_form(&visitor, id, &plan)) }
        }
        h2 { (lang.nodes()) }
        div class="card wide" { (nodes(lang, &plan.nodes)) }
        h2 { (lang.timeline()) }
        (log)
    };
    Ok(Page::new(Room::Reviews, format!("{} {id}", lang.plan()), body).shown_to(&visitor))
}

fn decision_form(visitor: &Visitor, id: i64, plan: &Plan) -> Markup {
    let lang = visitor.lang();
    let turn = plan.nodes.iter().find(|node| node.status == "DOING");
    html! {
        form method="post" action={ "/console/reviews/" (id) "/decision" } class="confirm card" {
            (proof(visitor))
            @if let Some(node) = turn {
                input type="hidden" name="node" value=(node.id);
                p { (lang.node()) " " strong { (node.name) } " "
                    a href={ "/console/orders/" (plan.order) } { (lang.see_the_order()) } }
            }
            label {
                span { (lang.reason()) }
                textarea name="reason" required maxlength="500" rows="2"
                    placeholder=(lang.reason_hint()) {}
            }
            div class="actions" {
                button class="primary" type="submit" name="verdict" value="approve" {
                    (lang.approve())
                }
                button class="danger" type="submit" name="verdict" value="reject" {
                    (lang.reject())
                }
            }
        }
    }
}

fn nodes(lang: Lang, nodes: &[Node]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.node()) } th { (lang.status()) } th { (lang.reviewers()) }
                th { (lang.decided_by()) } th { (lang.time()) } th { (lang.reason()) }
            } }
            tbody {
                @for node in nodes {
                    tr {
                        td data-label=(lang.node()) {
                            (node.name) " " small class="mono" { (node.code) }
                        }
                        td data-label=(lang.status()) { (parts::stored(lang, &node.status)) }
                        td data-label=(lang.reviewers()) class="mono" {
                            @for (at, user) in node.reviewers.iter().enumerate() {
                                @if at > 0 { ", " } (user)
                            }
                        }
                        td data-label=(lang.decided_by()) class="mono" {
                            @if let Some(user) = node.by { (user) } @else { "—" }
                        }
                        td data-label=(lang.time()) { (parts::maybe_time(node.when)) }
                        td data-label=(lang.reason()) class="words" {
                            (node.remark.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

async fn log(db: &Db, lang: Lang, plan: i64) -> Result<Markup, Trouble> {
    let query = sql!(
        "SELECT action, to_status, operator_user_id, operation_remark, create_time
         FROM review_business_log
         WHERE plan_id = :plan AND deleted = 0 ORDER BY id LIMIT :limit",
        plan = plan,
        limit = MAX_LOG,
    );
    let rows = db.rows(query).await?;
    let mut entries = Vec::new();
    for row in &rows {
        entries.push((
            row.instant("create_time")?,
            row.text("action")?,
            row.maybe_text("to_status")?.unwrap_or_default(),
            row.maybe_int("operator_user_id")?,
            row.maybe_text("operation_remark")?,
        ));
    }
    Ok(html! {
        div class="card" { ul class="timeline" {
            @for (time, action, to, user, remark) in &entries {
                li {
                    (parts::time(*time)) span class="kind" { (action) } " " (to)
                    @if let Some(user) = user {
                        " · " (lang.who()) " " span class="mono" { (user) }
                    }
                    @if let Some(remark) = remark { div class="record" { (remark) } }
                }
            }
        } }
    })
}

pub(super) async fn decide(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<i64>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let (verdict, action) = match posted.field("verdict") {
        "approve" => (Verdict::Approve, "review-approve"),
        "reject" => (Verdict::Reject, "review-reject"),
        _ => return Err(Trouble::invalid("verdict: approve or reject")),
    };
    let decision = Decision {
        plan: PlanId(id),
        user: UserId(visitor.account.id),
        verdict,
        remark: reason.to_owned(),
        node: posted.field("node").parse().ok(),
    };
    let deed = Deed { action, subject: &id.to_string(), reason };
    let work = async {
        let done = write_decision(&console.db, console.engine.kicker(), &decision).await?;
        let next = done.next_node_code.unwrap_or_default();
        Ok(((), format!("{} decided, the plan is {} {next}", done.node_code, done.status.as_str())))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/reviews/{id}")))
}
