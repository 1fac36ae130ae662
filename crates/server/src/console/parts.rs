//! The small parts that pages are made of. Whatever a person typed goes through `html!`, which
//! escapes it; nothing here is put into a page as it is.

use chrono::{FixedOffset, SecondsFormat};
use counterfoil_db::Instant;
use counterfoil_protocol::Fen;
use maud::{Markup, html};

use super::looks::Look;
use super::texts::{Lang, word};
use crate::api::cursor_of;

/// The zone that bills belong to: Asia/Shanghai, which has kept one offset since 1991.
const ZONE_SECONDS: i32 = 8 * 3600;

fn in_zone(instant: Instant) -> chrono::DateTime<FixedOffset> {
    let zone = FixedOffset::east_opt(ZONE_SECONDS);
    zone.map_or_else(|| instant.fixed_offset(), |zone| instant.with_timezone(&zone))
}

/// An instant as people there write it.
pub(super) fn local(instant: Instant) -> String {
    in_zone(instant).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// An instant, local, with the UTC instant on hover.
pub(super) fn time(instant: Instant) -> Markup {
    let utc = instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    html! { time datetime=(utc) title=(utc) { (local(instant)) } }
}

/// An instant that may be none.
pub(super) fn maybe_time(instant: Option<Instant>) -> Markup {
    html! { @if let Some(instant) = instant { (time(instant)) } @else { "—" } }
}

/// How long something has lasted, in its greatest unit and the next.
pub(super) fn span(lang: Lang, from: Instant, to: Instant) -> String {
    let seconds = (to - from).num_seconds().max(0);
    let (zh, en): ([&str; 4], [&str; 4]) = (["天", "小时", "分", "秒"], ["d", "h", "min", "s"]);
    let units = if lang == Lang::Zh { zh } else { en };
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let minutes = seconds / 60 % 60;
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} {}", units[3]),
        (0, 0, _) => format!("{minutes} {}", units[2]),
        (0, _, _) => format!("{hours} {} {minutes} {}", units[1], units[2]),
        _ => format!("{days} {} {hours} {}", units[0], units[1]),
    }
}

/// A state with its look and its words.
pub(super) fn state(look: Look, words: &str) -> Markup {
    html! { span class={ "state " (look.class()) } { (words) } }
}

/// A stored word; the word itself on hover, as logs and commands spell it.
pub(super) fn stored(lang: Lang, stored: &str) -> Markup {
    match word(stored) {
        Some(word) => html! {
            span class={ "state " (word.look.class()) } title=(stored) { (word.name(lang)) }
        },
        None => html! { span class="state unknown" { (stored) } },
    }
}

/// A stored word that may be none.
pub(super) fn maybe_stored(lang: Lang, word: Option<&str>) -> Markup {
    html! { @if let Some(word) = word { (stored(lang, word)) } @else { "—" } }
}

/// A whole number with separators.
pub(super) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    if number < 0 { format!("-{shown}") } else { shown }
}

/// An amount in yuan.
pub(super) fn yuan(fen: i64) -> String {
    Fen(fen).to_string()
}

/// An id that leads to its page.
pub(super) fn link(path: &str, text: &str) -> Markup {
    html! { a class="mono" href=(path) { (text) } }
}

/// A part of a path, whatever it holds.
pub(super) fn escaped(part: &str) -> String {
    let mut path = String::new();
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// The page of an order.
pub(super) fn order_link(id: i64, number: Option<&str>) -> Markup {
    let called = number.map_or_else(|| id.to_string(), str::to_owned);
    link(&format!("/console/orders/{id}"), &called)
}

/// The page of a task.
pub(super) fn task_link(code: &str) -> Markup {
    link(&format!("/console/tasks/{}", escaped(code)), code)
}

/// The page of a bill.
pub(super) fn bill_link(station: &str, month: &str) -> Markup {
    let path = format!("/console/bills/{}/{}", escaped(station), escaped(month));
    html! { a class="mono" href=(path) { (station) " · " (month_of(month)) } }
}

/// `202609` as `2026-09`; anything else as it is.
pub(super) fn month_of(month: &str) -> String {
    match (month.len(), month.get(..4), month.get(4..)) {
        (6, Some(year), Some(month)) => format!("{year}-{month}"),
        _ => month.to_owned(),
    }
}

/// Where the rest of a list is. `kept` are the filters that go with it.
pub(super) fn pager(
    lang: Lang,
    path: &str,
    kept: &[(&str, String)],
    next: Option<i64>,
    is_first: bool,
) -> Markup {
    let with = |cursor: Option<String>| {
        let mut pairs: Vec<String> = kept
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect();
        pairs.extend(cursor.map(|cursor| format!("cursor={}", escaped(&cursor))));
        if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
    };
    html! {
        @if next.is_some() || !is_first {
            nav class="pager" aria-label=(lang.next_page()) {
                @if !is_first { a class="button" href=(with(None)) { (lang.first_page()) } }
                @if let Some(next) = next {
                    a class="button" rel="next" href=(with(Some(cursor_of(next)))) {
                        (lang.next_page())
                    }
                }
            }
        }
    }
}

/// Why a list is empty, and what to do.
pub(super) fn empty(why: &str) -> Markup {
    html! { p class="empty" { (why) } }
}

/// A field of a form with its label.
pub(super) fn field(name: &str, label: &str, value: &str) -> Markup {
    html! {
        label { span { (label) } input type="text" name=(name) value=(value) maxlength="200"; }
    }
}

/// A choice of a filter: value and label.
pub(super) fn choice(
    name: &str,
    label: &str,
    any: &str,
    values: &[(String, String)],
    chosen: &str,
) -> Markup {
    html! {
        label {
            span { (label) }
            select name=(name) {
                option value="" { (any) }
                @for (value, text) in values {
                    option value=(value) selected[value == chosen] { (text) }
                }
            }
        }
    }
}

/// Terms and what they are.
pub(super) fn facts(rows: &[(&str, Markup)]) -> Markup {
    html! {
        dl class="facts" {
            @for (term, value) in rows { div { dt { (term) } dd { (value) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn times_are_local_to_the_billing_zone_and_utc_on_hover() {
        let shown = time(at("2026-08-31T16:30:00Z")).into_string();
        assert!(shown.contains(">2026-09-01 00:30:00<"), "{shown}");
        assert!(shown.contains("title=\"2026-08-31T16:30:00Z\""), "{shown}");
    }

    #[test]
    fn ages_are_in_their_greatest_unit_and_the_next() {
        let from = at("2026-09-01T00:00:00Z");
        let table = [
            ("2026-09-01T00:00:07Z", "7 s", "7 秒"),
            ("2026-09-01T00:14:59Z", "14 min", "14 分"),
            ("2026-09-01T14:05:00Z", "14 h 5 min", "14 小时 5 分"),
            ("2026-09-15T01:00:00Z", "14 d 1 h", "14 天 1 小时"),
            ("2026-08-01T00:00:00Z", "0 s", "0 秒"),
        ];
        for (to, en, zh) in table {
            assert_eq!(span(Lang::En, from, at(to)), en);
            assert_eq!(span(Lang::Zh, from, at(to)), zh);
        }
    }

    #[test]
    fn numbers_have_separators_and_months_a_dash() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(-11_482_300), "-11,482,300");
        assert_eq!(month_of("202609"), "2026-09");
        assert_eq!(month_of("账单月份"), "账单月份");
    }

    #[test]
    fn a_part_of_a_path_stays_one_part() {
        assert_eq!(escaped("S/1?a=b&c#d e账"), "S%2F1%3Fa%3Db%26c%23d%20e%E8%B4%A6");
    }
}
