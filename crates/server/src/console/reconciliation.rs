//! Answer reconciliation: tasks, how far they are, differences by kind. Never an answer's values.

use axum::extract::{Path, Query, State};
use counterfoil_account::Permission;
use counterfoil_account::audit::Deed;
use counterfoil_reconcile::form_centre::create::{Wish, create as create_tasks};
use counterfoil_reconcile::form_centre::dispatch;
use counterfoil_reconcile::form_centre::list::{StoredReport, TaskFilter, one, tasks};
use counterfoil_reconcile::form_centre::task::Task;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::looks::Look;
use super::orders::named;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble, back_to, proof};
use super::tasks::{confirm, dry_run};
use super::texts::Lang;
use crate::api::form_admin::scope_of;
use crate::api::place_of;

/// Rows of a page.
const PAGE: u32 = 50;
/// Error items shown of one report.
const MAX_ITEMS: usize = 50;
const STATES: [&str; 7] =
    ["QUEUED", "DISPATCHED", "RUNNING", "COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];

/// Which tasks.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    state: String,
    #[serde(default)]
    consumer: String,
    #[serde(default)]
    form: String,
    #[serde(default)]
    cursor: String,
}

pub(super) async fn list(
    State(console): State<Console>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Answer {
    let (lang, before) = (visitor.lang(), place_of(&which.cursor));
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = TaskFilter {
        state: given(&which.state),
        consumer: given(&which.consumer),
        form: given(&which.form),
        before,
    };
    let (found, next) = tasks(&console.db, &filter, PAGE).await?;
    let kept = [
        ("state", which.state.clone()),
        ("consumer", which.consumer.clone()),
        ("form", which.form.clone()),
    ];
    let body = html! {
        h1 { (lang.reconciliation()) }
        form class="filter" method="get" action="/console/reconciliation" {
            (parts::choice("state", lang.status(), lang.all(), &named(lang, &STATES), &which.state))
            (parts::field("consumer", lang.consumer(), &which.consumer))
            (parts::field("form", lang.form(), &which.form))
            button type="submit" { (lang.filter()) }
        }
        @if found.is_empty() {
            (parts::empty(lang.no_reconciliation()))
        } @else {
            div class="card wide" { (table(lang, &found)) }
            (parts::pager(lang, "/console/reconciliation", &kept, next, before.is_none()))
        }
        @if visitor.may(Permission::Operate) { (new_form(&visitor)) }
    };
    Ok(Page::new(Room::Reconciliation, lang.reconciliation(), body).live().shown_to(&visitor))
}

fn table(lang: Lang, tasks: &[Task]) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.task()) } th { (lang.status()) } th { (lang.consumer()) }
                th { (lang.school()) } th { (lang.form()) } th class="num" { (lang.attempts()) }
                th class="num" { (lang.rows_of_manifest()) } th { (lang.created()) }
                th { (lang.detail()) }
            } }
            tbody {
                @for task in tasks {
                    tr {
                        td data-label=(lang.task()) {
                            (parts::link(&format!("/console/reconciliation/{}", task.task_id),
                                &task.task_id))
                        }
                        td data-label=(lang.status()) { (parts::stored(lang, &task.state)) }
                        td data-label=(lang.consumer()) class="mono" { (task.coordinate.consumer) }
                        td data-label=(lang.school()) class="mono" { (task.coordinate.school) }
                        td data-label=(lang.form()) class="mono" { (task.coordinate.form) }
                        td data-label=(lang.attempts()) class="num" { (task.attempt) }
                        td data-label=(lang.rows_of_manifest()) class="num" {
                            (parts::number(task.total_rows))
                        }
                        td data-label=(lang.created()) { (parts::time(task.create_time)) }
                        td data-label=(lang.detail()) class="words" {
                            (task.reason_code.as_deref().unwrap_or("—"))
                        }
                    }
                }
            }
        }
    }
}

fn new_form(visitor: &Visitor) -> Markup {
    let lang = visitor.lang();
    html! {
        h2 { (lang.new_reconciliation()) }
        form method="post" action="/console/reconciliation/new" class="confirm card" {
            (proof(visitor))
            label { span { (lang.scope()) } select name="scope" {
                option value="ALL" { "ALL" } option value="FORM" { "FORM" }
                option value="ANSWER" { "ANSWER" }
            } }
            (parts::field("consumer", lang.consumer(), ""))
            (parts::field("school", lang.school(), ""))
            (parts::field("form", lang.form(), ""))
            (parts::field("answer", lang.answer_uuid(), ""))
            label {
                span { (lang.reason()) }
                input type="text" name="reason" required maxlength="500";
            }
            div class="actions" {
                button class="primary" type="submit" { (lang.new_reconciliation()) }
            }
        }
    }
}

/// The way of a task, with the place in it where it is.
fn flow(lang: Lang, task: &Task) -> Markup {
    let over = task.is_over();
    let at = match task.state.as_str() {
        "QUEUED" if !task.manifest_complete => 0,
        "QUEUED" => 1,
        "DISPATCHED" => 2,
        "RUNNING" => 3,
        _ => 4,
    };
    let steps = [
        lang.pick("清单", "Manifest"),
        lang.pick("派发", "Dispatch"),
        lang.pick("对方受理", "Accepted"),
        lang.pick("比对和修复", "Compare, repair"),
        lang.pick("结果", "Result"),
    ];
    html! {
        ol class="flow" aria-label=(lang.where_is_it()) {
            @for (place, step) in steps.iter().enumerate() {
                @let here = place == at;
                li class=(match (here, over, task.state.as_str()) {
                    (true, true, "COMPLETED") => "done",
                    (true, true, "CANCELLED") => "later",
                    (true, true, _) => "stuck",
                    (true, false, _) => "now",
                    (false, ..) if place < at => "done",
                    _ => "later",
                }) {
                    (step)
                    @if here { small { (parts::stored(lang, &task.state)) } }
                    @if place == 0 {
                        small { (parts::number(task.total_rows)) " " (lang.lines()) }
                    }
                    @if place == 1 && task.attempt > 0 {
                        small { (lang.attempts()) " " (task.attempt) }
                    }
                }
            }
        }
    }
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let (task, reports) = one(&console.db, &id).await?;
    let path = format!("/console/reconciliation/{}", parts::escaped(&task.task_id));
    let body = html! {
        h1 { (lang.reconciliation()) " " span class="mono" { (task.task_id) } }
        p class="lede" {
            (parts::stored(lang, &task.state)) " · " span class="mono" {
                (task.coordinate.consumer) " · " (task.coordinate.school) " · "
                (task.coordinate.form)
            }
        }
        @if let Some(reason) = &task.reason {
            div class="verdict" {
                strong { (parts::state(Look::Trouble, task.reason_code.as_deref().unwrap_or(""))) }
                span { (reason) }
            }
        }
        h2 { (lang.where_is_it()) }
        div class="card" { (flow(lang, &task)) (facts(lang, &task)) }
        h2 { (lang.differences()) }
        @match reports.last() {
            Some(last) => { (differences(lang, last)) }
            None => { (parts::empty(lang.no_report())) }
        }
        @if reports.len() > 1 {
            h2 { (lang.reports()) }
            div class="card" { ul class="timeline" {
                @for report in reports.iter().rev() {
                    li {
                        (parts::time(report.received_at)) (lang.attempts()) " " (report.attempt)
                        " " (parts::stored(lang, &report.state))
                    }
                }
            } }
        }
        @if !task.is_over() && visitor.may(Permission::Operate) {
            h2 { (lang.cancel_reconciliation()) }
            (cancel_form(&visitor, &path))
        }
    };
    let title = format!("{} {}", lang.reconciliation(), task.task_id);
    Ok(Page::new(Room::Reconciliation, title, body).live().shown_to(&visitor))
}

fn facts(lang: Lang, task: &Task) -> Markup {
    parts::facts(&[
        (lang.scope(), html! { (task.coordinate.scope()) }),
        (lang.kind(), html! { (task.trigger) }),
        (lang.pick("授权纪元", "Grant epoch"), html! { (task.grant_epoch) }),
        (lang.rows_of_manifest(), html! { (parts::number(task.total_rows)) }),
        (lang.pick("窗口起点", "Window start"), parts::time(task.window_start)),
        (lang.lease(), parts::maybe_time(task.lease_until)),
        (lang.next_try(), parts::maybe_time(task.next_dispatch_at)),
        (lang.created(), parts::time(task.create_time)),
        (lang.pick("结束", "Ended"), parts::maybe_time(task.finished_at)),
    ])
}

/// Kinds of difference: key in the counts, 中文, English.
const KINDS: [(&str, &str, &str); 14] = [
    ("scanned", "已扫描", "Scanned"),
    ("equal", "一致", "Equal"),
    ("missing", "本地缺失", "Missing"),
    ("stale", "本地过旧", "Stale"),
    ("hashConflict", "同版本内容不同", "Same revision, other content"),
    ("tombstone", "删除状态不同", "Deleted on one side"),
    ("localAhead", "本地更新", "Local ahead"),
    ("extra", "本地多出", "Local only"),
    ("revisionZero", "中心版本为 0", "Revision zero"),
    ("repaired", "已修复", "Repaired"),
    ("retired", "已退役", "Retired, each by an absence proof"),
    ("reported", "只报告", "Reported only"),
    ("deferred", "推迟", "Deferred"),
    ("resumed", "续跑", "Resumed"),
];

fn differences(lang: Lang, report: &StoredReport) -> Markup {
    let count = |key: &str| report.counts.get(key).and_then(Value::as_i64).unwrap_or(0);
    let items: &[Value] = report.errors.as_array().map_or(&[], Vec::as_slice);
    let text = |item: &Value, key: &str| match item.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "—".to_owned(),
        Some(other) => other.to_string(),
    };
    html! {
        div class="card wide" { table {
            tbody {
                @for (key, zh, en) in KINDS {
                    tr {
                        td { (lang.pick(zh, en)) }
                        td class="num" { (parts::number(count(key))) }
                        td class="mono quiet" { (key) }
                    }
                }
            }
        } }
        @if !items.is_empty() {
            h2 { (lang.left_over()) " · " (items.len()) }
            div class="card wide" { table class="stack" {
                thead { tr {
                    th { (lang.reason()) } th { (lang.answer_uuid()) }
                    th class="num" { (lang.pick("版本", "Revision")) }
                } }
                tbody {
                    @for item in items.iter().take(MAX_ITEMS) {
                        tr {
                            td data-label=(lang.reason()) class="mono" { (text(item, "code")) }
                            td data-label=(lang.answer_uuid()) class="mono" {
                                (text(item, "answerUuid"))
                            }
                            td data-label=(lang.pick("版本", "Revision")) class="num" {
                                (text(item, "revision"))
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn cancel_form(visitor: &Visitor, path: &str) -> Markup {
    let lang = visitor.lang();
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let will = text(
        "任务停在「已取消」；对方在下一次调用时停下",
        "make the task CANCELLED; the consumer stops at its next call",
    );
    let wont = text("撤回已经修复的行", "take back what was repaired");
    let cannot = text("再次打开", "be opened again");
    html! {
        (dry_run(lang, &will, &wont, &cannot))
        (confirm(visitor, &format!("{path}/cancel"), path, lang.cancel_reconciliation()))
    }
}

pub(super) async fn create(
    State(console): State<Console>,
    visitor: Visitor,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let given = |name: &str| Some(posted.field(name).to_owned()).filter(|text| !text.is_empty());
    let scope = scope_of(posted.field("scope"))
        .ok_or_else(|| Trouble::invalid("scope: ALL, FORM or ANSWER"))?;
    let consumer = given("consumer").ok_or_else(|| Trouble::invalid("consumer: name one"))?;
    let wish = Wish {
        scope,
        consumer: consumer.clone(),
        school: given("school"),
        form: given("form"),
        answer: given("answer"),
    };
    let deed = Deed { action: "reconcile-create", subject: &consumer, reason };
    let work = async {
        let actor = visitor.account.id.to_string();
        let made = create_tasks(&console.db, &console.centre, &wish, &actor).await?;
        let refused = made.iter().filter(|task| task.reason_code.is_some()).count();
        Ok(((), format!("{} tasks, {refused} of them refused", made.len())))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, "/console/reconciliation"))
}

pub(super) async fn cancel(
    State(console): State<Console>,
    visitor: Visitor,
    Path(id): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let deed = Deed { action: "reconcile-cancel", subject: &id, reason };
    let work = async {
        let actor = visitor.account.id.to_string();
        let now = dispatch::cancel(&console.db, &id, &actor, reason).await?;
        Ok(((), if now { "CANCELLED" } else { "it had ended before" }.to_owned()))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &format!("/console/reconciliation/{}", parts::escaped(&id))))
}
