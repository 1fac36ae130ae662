//! The invariant rules: what must hold, and whether it does.

use std::time::{Duration, Instant};

use axum::extract::State;
use counterfoil_task::{Breach, Rule};
use maud::{Markup, html};

use super::Console;
use super::door::{Posted, Visitor};
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, proof};
use super::texts::Lang;

/// No further rule is begun after so long: a page is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of one rule.
enum Verdict {
    Holds,
    Broken(Breach),
    NotRead,
}

pub(super) async fn show(State(console): State<Console>, visitor: Visitor) -> Answer {
    let lang = visitor.lang();
    let body = html! {
        h1 { (lang.rules()) }
        p class="lede" { (lang.rules_lede()) }
        (check_form(&visitor))
        div class="card wide" { table class="stack" {
            thead { tr { th { (lang.rules()) } th { (lang.must_hold()) } } }
            tbody { @for rule in &console.rules {
                tr {
                    td class="mono" { (rule.name) }
                    td class="words" lang="en" { (rule.holds) }
                }
            } }
        } }
    };
    Ok(Page::new(Room::Rules, lang.rules(), body).shown_to(&visitor))
}

fn check_form(visitor: &Visitor) -> Markup {
    let lang = visitor.lang();
    html! {
        form method="post" action="/console/rules/check" class="actions" {
            (proof(visitor))
            button class="primary" type="submit" { (lang.check_now()) }
        }
    }
}

pub(super) async fn check(
    State(console): State<Console>,
    visitor: Visitor,
    _posted: Posted,
) -> Answer {
    let lang = visitor.lang();
    let began = Instant::now();
    let mut verdicts = Vec::new();
    for rule in &console.rules {
        let verdict = match began.elapsed() < PATIENCE {
            false => Verdict::NotRead,
            true => match crate::wiring::check(&console.db, rule).await {
                Ok(None) => Verdict::Holds,
                Ok(Some(breach)) => Verdict::Broken(breach),
                Err(error) => {
                    tracing::error!(rule = rule.name, %error, "a rule cannot be read");
                    Verdict::NotRead
                }
            },
        };
        verdicts.push((rule, verdict));
    }
    let broken = verdicts.iter().filter(|(_, v)| matches!(v, Verdict::Broken(_))).count();
    let unread = verdicts.iter().filter(|(_, v)| matches!(v, Verdict::NotRead)).count();
    let now = console.db.now().await?;
    let body = html! {
        h1 { (lang.rules()) }
        div class=(if broken == 0 && unread == 0 { "verdict good" } else { "verdict" }) {
            strong {
                @if broken > 0 { (parts::state(Look::Trouble, lang.rules_broken())) }
                @else if unread > 0 { (parts::state(Look::Unknown, lang.rules_unread())) }
                @else { (parts::state(Look::Done, lang.rules_hold())) }
            }
            span {
                (verdicts.len()) " " (lang.rules()) " · " (broken) " " (lang.rules_broken())
                " · " (unread) " " (lang.rules_unread()) " · " (parts::time(now))
            }
        }
        (check_form(&visitor))
        div class="card wide" { table class="stack" {
            thead { tr {
                th { (lang.status()) } th { (lang.rules()) } th { (lang.must_hold()) }
            } }
            tbody { @for (rule, verdict) in &verdicts { (verdict_row(lang, rule, verdict)) } }
        } }
    };
    Ok(Page::new(Room::Rules, lang.rules(), body).shown_to(&visitor))
}

fn verdict_row(lang: Lang, rule: &Rule, verdict: &Verdict) -> Markup {
    html! {
        tr {
            td data-label=(lang.status()) {
                @match verdict {
                    Verdict::Holds => { (parts::state(Look::Done, lang.rules_hold())) }
                    Verdict::Broken(_) => { (parts::state(Look::Trouble, lang.rules_broken())) }
                    Verdict::NotRead => { (parts::state(Look::Unknown, lang.rules_unread())) }
                }
            }
            td data-label=(lang.rules()) class="mono" { (rule.name) }
            td data-label=(lang.must_hold()) class="words" lang="en" {
                (rule.holds)
                @if let Verdict::Broken(breach) = verdict {
                    ul class="rows" { @for row in &breach.rows { li class="mono" { (row) } } }
                }
            }
        }
    }
}
