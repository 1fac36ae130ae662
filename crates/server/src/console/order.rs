//! One order: where it is, what it waits for, what may be done; then the proof of all of it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect};
use counterfoil_account::Permission;
use counterfoil_payment::order_proof;
use counterfoil_payment::order_view::{
    self, OrderRow, OrderView, Stage, StageState, Timeline, find,
};
use counterfoil_payment::partner_push::{DeliveryRow, DeliverySearch, deliveries};
use counterfoil_payment::treasury::view::{BatchQuery, BatchRow, list as batches};
use maud::{Markup, html};

use super::Console;
use super::door::Visitor;
use super::looks::Look;
use super::order_history::{received, timeline, versions};
use super::overview::{answer, kinds_of_success};
use super::shell::{Answer, Page, Room, Trouble};
use super::texts::{Lang, blocker, stage_name, why};
use super::{parts, steps};

/// Entries of the timeline.
const TIMELINE_SHOWN: u32 = 200;
/// Rows of a list on this page; its own page has the rest.
const LISTED: u32 = 20;

/// What the page is made of.
struct Read {
    view: OrderView,
    timeline: Timeline,
    figures: Option<order_proof::Figures>,
    deliveries: Vec<DeliveryRow>,
    batches: Vec<BatchRow>,
    callbacks: Vec<super::tasks::TaskLine>,
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let order = find(&console.db, &named).await?;
    if named != order.to_string() {
        return Ok(Redirect::to(&format!("/console/orders/{order}")).into_response());
    }
    let read = read(&console, order).await?;
    let title = format!("{} {}", lang.order(), called(&read.view.order));
    let body = html! {
        h1 { (lang.order()) " " span class="mono" { (called(&read.view.order)) } }
        (lede(lang, &read.view))
        (verdict(&visitor, &read.view))
        h2 { (lang.where_is_it()) }
        div class="card" {
            (flow(lang, &read.view.stages))
            (six_kinds(lang, &read.view))
        }
        (figures(lang, read.figures.as_ref()))
        (violations(lang, &read.view))
        (conflicts(lang, &read.view))
        h2 { (lang.stages()) }
        div class="card wide" { (stages(lang, &read.view.stages)) }
        (sent(lang, &read))
        h2 { (lang.versions()) }
        div class="card wide" { (versions(lang, &read.view)) }
        h2 id="timeline" { (lang.timeline()) }
        div class="card" { (timeline(lang, &read.timeline)) }
    };
    Ok(Page::new(Room::Orders, title, body).live().shown_to(&visitor))
}

async fn read(console: &Console, order: counterfoil_protocol::OrderId) -> Result<Read, Trouble> {
    let db = &console.db;
    let view = order_view::one(db, order).await?;
    let has_version = view.order.published_data_version.0 > 0;
    let figures = match has_version {
        true => Some(order_proof::figures(db, &view.order).await?),
        false => None,
    };
    let search = DeliverySearch { order: Some(order), limit: LISTED, ..DeliverySearch::default() };
    let query = BatchQuery { order: Some(order.0), limit: Some(LISTED), ..BatchQuery::default() };
    Ok(Read {
        timeline: order_view::timeline(db, order, Some(TIMELINE_SHOWN)).await?,
        figures,
        deliveries: deliveries(db, &search).await?,
        batches: batches(db, &query).await?.batches,
        callbacks: super::tasks::callbacks_of(db, order, LISTED).await?,
        view,
    })
}

/// How an order is called.
pub(super) fn called(order: &OrderRow) -> String {
    order.order_no.clone().unwrap_or_else(|| order.id.to_string())
}

fn lede(lang: Lang, view: &OrderView) -> Markup {
    let order = &view.order;
    html! {
        p class="lede" {
            (parts::stored(lang, order.status_name)) " · "
            (lang.version()) " " (order.published_data_version) " · "
            (lang.round()) " " (order.submit_round) " · "
            a href={ "/console/orders/" (order.id) "/lines" } {
                (parts::number(order.payable_count + order.unqualified_count)) " " (lang.lines())
            } " · " (lang.payable()) " ¥ " (order.total_amount) " · "
            (lang.created()) " " (parts::time(order.create_time)) " · "
            (lang.creator()) " " span class="mono" { (order.create_user_id) }
            " (" (lang.creator_note()) ")"
        }
    }
}

/// The stage that says where the order is: the first in trouble, else the first that is not done.
fn present(stages: &[Stage]) -> Option<&Stage> {
    let troubled = stages
        .iter()
        .find(|stage| matches!(stage.state, StageState::Trouble | StageState::Unknown));
    troubled.or_else(|| {
        let open =
            |stage: &&Stage| matches!(stage.state, StageState::Running | StageState::Waiting);
        stages.iter().find(open)
    })
}

/// The one sentence with its look: in Chinese from the stage, in English the domain's own.
fn sentence(lang: Lang, view: &OrderView) -> (Look, String, String) {
    let is_over = matches!(view.order.status, 50 | 55 | 90);
    match present(&view.stages) {
        Some(stage)
            if !(is_over && view.locks.reserved == 0 && stage.state != StageState::Trouble) =>
        {
            let look = Look::from(stage.state);
            let (zh, _) = look.words();
            let head = match lang {
                Lang::Zh => format!("{zh}：{}", stage_name(lang, stage)),
                Lang::En => {
                    format!("{}: {}", steps::capital(look.words().1), stage_name(lang, stage))
                }
            };
            (look, head, why(lang, stage))
        }
        _ => {
            let word = super::texts::word(view.order.status_name);
            let name = word.map_or(view.order.status_name, |word| word.name(lang));
            let look = word.map_or(Look::Unknown, |word| word.look);
            (look, name.to_owned(), String::new())
        }
    }
}

fn verdict(visitor: &Visitor, view: &OrderView) -> Markup {
    let lang = visitor.lang();
    let (look, head, zh_why) = sentence(lang, view);
    let class = match look {
        Look::Trouble | Look::Unknown => "verdict",
        Look::Done | Look::NotYet => "verdict good",
        Look::Waiting | Look::Running => "verdict no",
    };
    html! {
        div class=(class) {
            strong { (parts::state(look, &head)) }
            @if lang == Lang::Zh && !zh_why.is_empty() { span { (zh_why) } }
            @if lang == Lang::Zh { p class="record" lang="en" { (view.verdict.sentence) } }
            @else { span { (view.verdict.sentence) } }
            @for note in &view.verdict.notes { p class="record" lang="en" { "⚑ " (note) } }
            (actions(visitor, view))
        }
    }
}

fn actions(visitor: &Visitor, view: &OrderView) -> Markup {
    let lang = visitor.lang();
    let all: Vec<steps::Shown> =
        view.verdict.actions.iter().map(|step| steps::shown(lang, step)).collect();
    html! {
        @if !all.is_empty() {
            ul class="actions" {
                @for (at, step) in all.iter().enumerate() {
                    li {
                        @if let Some(path) = &step.path {
                            a class={ "button" @if at == 0 { " primary" } } href=(path) {
                                (step.label)
                            }
                        } @else {
                            span { (step.label) }
                            @if let Some(command) = &step.command {
                                code { (command) }
                            }
                        }
                    }
                }
            }
        }
        @if !visitor.may(Permission::Operate) && !all.is_empty() {
            p class="quiet" {
                (lang.pick("你的角色只能看；请找操作员。", "Your role may look; ask an operator."))
            }
        }
    }
}

fn flow(lang: Lang, stages: &[Stage]) -> Markup {
    html! {
        ol class="flow" aria-label=(lang.where_is_it()) {
            @for stage in stages {
                @let look = Look::from(stage.state);
                li class=(match look {
                    Look::Done => "done",
                    Look::Running => "now",
                    Look::Waiting => "waits",
                    Look::Trouble => "stuck",
                    Look::Unknown => "unclear",
                    Look::NotYet => "later",
                }) title=(stage.why) {
                    (stage_name(lang, stage))
                    @let (zh, en) = look.words();
                    small { (parts::state(look, lang.pick(zh, en))) }
                    @if let Some(said) = &stage.blocker {
                        small { (lang.waits_for()) " " (blocker(lang, said)) }
                    }
                }
            }
        }
    }
}

fn six_kinds(lang: Lang, view: &OrderView) -> Markup {
    let all = view.success.all();
    html! {
        h3 { (lang.six_kinds()) }
        dl class="six" {
            @for (name, (_, kind)) in kinds_of_success(lang).iter().zip(all) {
                div title=(kind.evidence) {
                    dt { (name) }
                    dd { (answer(lang, kind.answer)) small class="record" lang="en" {
                        (kind.evidence)
                    } }
                }
            }
        }
    }
}

fn figures(lang: Lang, figures: Option<&order_proof::Figures>) -> Markup {
    let name = |stage: &'static str| match stage {
        "selected" => lang.selected_payable(),
        "locked" => lang.locks_active(),
        "approved" => lang.review_approved(),
        "pushed" => lang.in_batches(),
        "confirmed" => lang.confirmed_paid(),
        other => other,
    };
    html! {
        @if let Some(figures) = figures {
            h2 { (lang.agree()) }
            div class="card wide" { table class="stack" {
                thead { tr {
                    th {} th class="num" { (lang.count()) } th class="num" { (lang.amount()) }
                    th { (lang.evidence()) }
                } }
                tbody {
                    @for figure in &figures.stages {
                        tr {
                            td { (name(figure.stage)) }
                            td data-label=(lang.count()) class="num" {
                                (parts::number(figure.count))
                            }
                            td data-label=(lang.amount()) class="num" { (figure.sum) }
                            td data-label=(lang.evidence()) class="record" lang="en" {
                                (figure.counted)
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn violations(lang: Lang, view: &OrderView) -> Markup {
    html! {
        @if !view.recheck_violations.is_empty() {
            h2 { (lang.must_not_be_paid()) " · " (view.recheck_violation_count) }
            div class="card wide" { table class="stack" {
                thead { tr {
                    th { (lang.line()) } th { (lang.station()) " · " (lang.month()) }
                    th { (lang.reason()) } th {}
                } }
                tbody {
                    @for violation in &view.recheck_violations {
                        tr {
                            td data-label=(lang.line()) class="mono" { (violation.order_bill_id) }
                            td data-label=(lang.station()) {
                                (parts::bill_link(&violation.station_id, &violation.bill_yearmonth))
                            }
                            td data-label=(lang.reason()) class="mono" { (violation.code) }
                            td class="words" { (violation.message) }
                        }
                    }
                }
            } }
        }
    }
}

fn conflicts(lang: Lang, view: &OrderView) -> Markup {
    html! {
        @if !view.conflicts.first.is_empty() {
            h2 { (lang.held_by_others()) " · " (view.conflicts.total) }
            div class="card wide" { table class="stack" {
                thead { tr {
                    th { (lang.station()) " · " (lang.month()) } th { (lang.holder()) }
                    th { (lang.locks()) }
                } }
                tbody {
                    @for conflict in &view.conflicts.first {
                        tr {
                            td data-label=(lang.station()) {
                                (parts::bill_link(&conflict.station_id, &conflict.bill_yearmonth))
                            }
                            td data-label=(lang.holder()) {
                                (parts::order_link(conflict.holder_order_id.0,
                                    conflict.holder_order_no.as_deref()))
                            }
                            td data-label=(lang.locks()) {
                                (parts::stored(lang, &conflict.holder_lock_status))
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn stages(lang: Lang, stages: &[Stage]) -> Markup {
    let tries = |stage: &Stage| match (stage.retry_count, stage.max_retry_count) {
        (Some(tried), Some(most)) if most >= i64::from(i32::MAX) => tried.to_string(),
        (Some(tried), Some(most)) => format!("{tried} / {most}"),
        _ => "—".to_owned(),
    };
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.stage()) } th { (lang.status()) } th { (lang.why_so()) }
                th { (lang.owner()) } th { (lang.next_try()) } th class="num" { (lang.tries()) }
                th { (lang.tasks()) }
            } }
            tbody {
                @for stage in stages {
                    @let (zh, en) = Look::from(stage.state).words();
                    tr {
                        td data-label=(lang.stage()) { (stage_name(lang, stage)) }
                        td data-label=(lang.status()) {
                            (parts::state(Look::from(stage.state), lang.pick(zh, en)))
                        }
                        td data-label=(lang.why_so()) class="words" {
                            @if lang == Lang::Zh { (why(lang, stage)) br; }
                            small class="record" lang="en" { (stage.why) }
                        }
                        td data-label=(lang.owner()) class="mono" {
                            (stage.owner.as_deref().unwrap_or("—"))
                            @if let Some(lease) = stage.lease_until {
                                br; (lang.lease()) " " (parts::time(lease))
                            }
                        }
                        td data-label=(lang.next_try()) { (parts::maybe_time(stage.next_try)) }
                        td data-label=(lang.tries()) class="num" { (tries(stage)) }
                        td data-label=(lang.tasks()) {
                            @if let Some(code) = &stage.task_code { (parts::task_link(code)) }
                            @else { "—" }
                        }
                    }
                }
            }
        }
    }
}

/// Callbacks, notices and batches: what came in and what went out.
fn sent(lang: Lang, read: &Read) -> Markup {
    let order = read.view.order.id;
    html! {
        h2 { (lang.callbacks()) }
        p class="lede" { (lang.callbacks_lede()) }
        @if read.callbacks.is_empty() {
            (parts::empty(lang.no_callbacks()))
        } @else {
            div class="card wide" { (super::tasks::table(lang, &read.callbacks)) }
        }
        (received(&read.timeline))
        @if !read.deliveries.is_empty() {
            h2 { (lang.deliveries_of_order()) }
            div class="card wide" { (super::deliveries::table(lang, &read.deliveries)) }
            p class="quiet" {
                a href={ "/console/deliveries?order=" (order) } { (lang.all()) }
            }
        }
        @if !read.batches.is_empty() {
            h2 { (lang.batches_of_order()) }
            div class="card wide" { (super::batches::table(lang, &read.batches)) }
            p class="quiet" { a href={ "/console/batches?order=" (order) } { (lang.all()) } }
        }
        h2 { (lang.locks()) }
        p class="facts-line" {
            (parts::stored(lang, "ACTIVE")) " " (parts::number(read.view.locks.active)) " · "
            (parts::stored(lang, "RESERVED")) " " (parts::number(read.view.locks.reserved)) " · "
            (parts::stored(lang, "RELEASED")) " " (parts::number(read.view.locks.released))
        }
    }
}
