//! One round of one handler, asked for by a person.

use std::time::Duration;

use axum::extract::{Path, State};
use counterfoil_account::audit::Deed;
use counterfoil_task::{RoundError, Summary};
use maud::html;

use super::Console;
use super::act::audited;
use super::door::{Posted, Visitor};
use super::shell::{Answer, Page, Room, Trouble, back_to};
use super::tasks::{confirm, dry_run};

/// How long a person waits for a round before he is told that it goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a round apart from the request, so that a browser that goes away ends nothing, and answers
/// what came of it, or that it goes on.
pub(super) async fn round_within(
    console: &Console,
    handler: &'static str,
    parameter: String,
    patience: Duration,
) -> Result<String, Trouble> {
    let engine = console.engine.clone();
    let round = tokio::spawn(async move { engine.round(handler, &parameter).await });
    match tokio::time::timeout(patience, round).await {
        Err(_) => Ok("it goes on; this page shows what comes of it".to_owned()),
        Ok(Err(error)) => {
            tracing::error!(%error, handler, "a round that a person asked for ended early");
            Err(Trouble::database_down())
        }
        Ok(Ok(Ok(summary))) => told(&summary),
        Ok(Ok(Err(RoundError::Parameter(error)))) => Err(Trouble::invalid(error.to_string())),
        Ok(Ok(Err(error))) => {
            tracing::error!(?error, handler, "a round that a person asked for failed");
            Err(Trouble::database_down())
        }
    }
}

/// A round in which something failed is no success of whoever asked for it.
fn told(summary: &Summary) -> Result<String, Trouble> {
    let mut text = format!(
        "selected {}, succeeded {}, handed over {}, skipped {}, failed {}",
        summary.selected, summary.succeeded, summary.handed_over, summary.skipped, summary.failed
    );
    for trouble in summary.errors.iter().take(3) {
        text.push_str(&format!("; {}: {}", trouble.task_code, trouble.message));
    }
    if summary.is_success() { Ok(text) } else { Err(Trouble::round_failed(text)) }
}

fn known(console: &Console, named: &str) -> Result<&'static str, Trouble> {
    let found = console.engine.kinds().find(|kind| kind.handler == named);
    found.map(|kind| kind.handler).ok_or_else(Trouble::not_there)
}

pub(super) async fn ask(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let handler = known(&console, &named)?;
    let will = [lang
        .pick("这个处理器现在扫一轮，做所有到期的", "scan once now and do what is due")
        .to_owned()];
    let will_not = [lang
        .pick(
            "动还没到期、正在执行或等人处理的",
            "touch what is not due, at work, or left to a person",
        )
        .to_owned()];
    let cannot = [lang.pick("把做过的再做一遍", "do again what was done").to_owned()];
    let path = format!("/console/jobs/{handler}");
    let body = html! {
        h1 { (lang.run_a_round()) }
        p class="lede mono" { (handler) }
        (dry_run(lang, &will, &will_not, &cannot))
        (confirm(&visitor, &path, "/console/stuck", lang.run_a_round()))
    };
    Ok(Page::new(Room::Tasks, lang.run_a_round(), body).shown_to(&visitor))
}

pub(super) async fn run(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let handler = known(&console, &named)?;
    let deed = Deed { action: "job-run", subject: handler, reason: posted.reason()? };
    let work = async {
        let told = round_within(&console, handler, String::new(), PATIENCE).await?;
        Ok(((), told))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, "/console/stuck"))
}
