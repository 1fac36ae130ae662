//! What an order went through: its versions, the decisions that came in, and the timeline.

use counterfoil_payment::kinds::REVIEW_CALLBACK;
use counterfoil_payment::order_view::{OrderView, Timeline, TimelineEntry};
use maud::{Markup, html};

use super::parts;
use super::texts::Lang;

/// Each time a decision came in: taken, taken before, or refused.
pub(super) fn received(told: &Timeline) -> Markup {
    let is_callback = |entry: &&TimelineEntry| {
        let prefix = format!("{}:", REVIEW_CALLBACK.prefix);
        let code = entry.task_code.as_deref();
        entry.kind == "trace" && code.is_some_and(|code| code.starts_with(&prefix))
    };
    let entries: Vec<&TimelineEntry> = told.entries.iter().filter(is_callback).collect();
    html! {
        @if !entries.is_empty() {
            ul class="timeline" {
                @for entry in entries.iter().rev() {
                    li class=(if entry.what.contains("REFUSE") { "bad" } else { "ok" }) {
                        (parts::time(entry.time)) (entry.what)
                        @if let Some(detail) = &entry.detail { div class="record" { (detail) } }
                    }
                }
            }
        }
    }
}

/// Its versions, newest first.
pub(super) fn versions(lang: Lang, view: &OrderView) -> Markup {
    let order = view.order.id;
    html! {
        table class="stack" {
            thead { tr {
                th class="num" { (lang.version()) } th { (lang.kind()) } th { (lang.status()) }
                th { (lang.created()) } th { (lang.pick("发布", "Published")) }
                th { (lang.detail()) } th {}
            } }
            tbody {
                @for version in &view.versions {
                    tr {
                        td data-label=(lang.version()) class="num" { (version.target_data) }
                        td data-label=(lang.kind()) class="mono" { (version.mode) }
                        td data-label=(lang.status()) {
                            (parts::stored(lang, &version.build_status))
                        }
                        td data-label=(lang.created()) { (parts::time(version.create_time)) }
                        td data-label=(lang.pick("发布", "Published")) {
                            (parts::maybe_time(version.publish_time))
                        }
                        td data-label=(lang.detail()) class="words" {
                            (version.error_message.as_deref().unwrap_or("—"))
                        }
                        td {
                            a href={ "/console/orders/" (order) "/lines?version="
                                (version.target_data) } { (lang.see_lines()) }
                            @if version.source_data_version.0 > 0 {
                                " · "
                                a href={ "/console/orders/" (order) "/changes?from="
                                    (version.source_data_version) "&to=" (version.target_data) } {
                                    (lang.compare()) " " (version.source_data_version) " → "
                                    (version.target_data)
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What an entry of the timeline is about.
fn kind_of_entry(lang: Lang, kind: &'static str) -> &'static str {
    let zh = match kind {
        "version" => "版本",
        "order" => "付款单",
        "trace" => "经过",
        "incident" => "事故",
        "approval" => "审核",
        "locks" => "占用",
        "task" => "任务",
        other => other,
    };
    lang.pick(zh, kind)
}

/// What happened, newest first.
pub(super) fn timeline(lang: Lang, told: &Timeline) -> Markup {
    let class = |entry: &TimelineEntry| match entry.kind {
        "incident" => "bad",
        "approval" | "order" => "ok",
        "trace" | "task" => "run",
        _ => "",
    };
    html! {
        ul class="timeline" {
            @for entry in told.entries.iter().rev() {
                li class=(class(entry)) {
                    (parts::time(entry.time))
                    span class="kind" { (kind_of_entry(lang, entry.kind)) } " " (entry.what)
                    @if let Some(user) = entry.operator_user_id {
                        " · " (lang.who()) " " span class="mono" { (user) }
                    }
                    @if let Some(code) = &entry.task_code { " · " (parts::task_link(code)) }
                    @if let Some(detail) = &entry.detail { div class="record" { (detail) } }
                }
            }
        }
        @if told.truncated { p class="quiet" { (lang.older_not_shown()) } }
    }
}
