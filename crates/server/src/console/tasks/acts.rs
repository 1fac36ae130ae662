//! Running one task again, or giving it up: first what that will do, then a reason, then the deed.

use std::time::Duration;

use axum::extract::{Path, State};
use counterfoil_account::audit::Deed;
use counterfoil_payment::kinds::REVIEW_PROGRESS;
use counterfoil_protocol::TaskCode;
use counterfoil_task::{
    CancelOutcome, RerunFacts, TaskStatus, plan_rerun, rerun_facts, trace_rerun,
};
use maud::{Markup, html};
use serde_json::json;

use super::rows::{TaskLine, find};
use crate::console::Console;
use crate::console::act::audited;
use crate::console::door::{Posted, Visitor};
use crate::console::jobs::round_within;
use crate::console::parts;
use crate::console::shell::{Answer, Page, Room, Trouble, back_to, proof};
use crate::console::texts::Lang;

/// How long a person waits for a round before he is told that it goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a rerun is judged by, and the handler that does it.
struct Rerun {
    facts: RerunFacts,
    handler: &'static str,
    /// The task's work was passed on: what runs is the next turn of that.
    is_passed_on: bool,
}

impl Rerun {
    fn will_run(&self) -> bool {
        self.is_passed_on || plan_rerun(self.facts).will_run
    }
}

async fn rerun_of(console: &Console, task: &TaskLine) -> Result<Rerun, Trouble> {
    let kind = console.engine.kinds().find(|kind| kind.task_type == task.task_type);
    let kind = kind.ok_or_else(|| {
        Trouble::invalid(format!("no handler of this build works on {}", task.task_type))
    })?;
    let code = TaskCode::stored(task.code.clone());
    let takeover = console.engine.takeover_of(kind.handler);
    let facts = rerun_facts(&console.db, &code, takeover).await?;
    let is_passed_on = facts.status == TaskStatus::Running
        && facts.hands_over
        && task.task_type == REVIEW_PROGRESS.task_type;
    let handler = if is_passed_on { REVIEW_PROGRESS.handler } else { kind.handler };
    Ok(Rerun { facts, handler, is_passed_on })
}

/// Three lists: what will, will not and cannot happen.
struct Plan {
    will: Vec<String>,
    will_not: Vec<String>,
    cannot: Vec<String>,
}

fn plan(lang: Lang, rerun: &Rerun) -> Plan {
    let text = |zh: &str, en: &str| lang.pick(zh, en).to_owned();
    let RerunFacts { status, attempt, retries, .. } = rerun.facts;
    let next = attempt + 1;
    if rerun.is_passed_on {
        return Plan {
            will: vec![
                text(
                    "让这次审批的推进立即可执行（停住等人的也算），并跑一轮",
                    "make the approval's progress due at once, a parked one too, and run one round",
                ),
                text("付款前复核重新做一遍", "make the pre-payment recheck anew"),
            ],
            will_not: vec![text(
                "跳过复核：仍不通过就还停在那里",
                "pass over the recheck: what still fails it stays where it is",
            )],
            cannot: vec![text("把已生效的明细再生效一次", "apply a line twice")],
        };
    }
    if !rerun.will_run() {
        let why = match status {
            TaskStatus::Success => text(
                "执行：它已成功，做完的事不再打开",
                "run: it is SUCCESS, and done work is never opened again",
            ),
            TaskStatus::Cancelled => {
                text("执行：它已取消，永远放弃了", "run: it is CANCELLED, given up for good")
            }
            _ => text(
                "执行：它正在执行，十分钟内还有动静",
                "run: it is RUNNING, and its process touched it within ten minutes",
            ),
        };
        return Plan {
            will: vec![],
            will_not: vec![why],
            cannot: vec![text("强行执行", "be forced")],
        };
    }
    let claim = format!("不管到期时间，立即执行第 {next} 次");
    let claim_en = format!("claim attempt {next} now, whatever the due time");
    let reset = format!("把已计的 {retries} 次失败清零；再失败会接着计");
    let reset_en = format!("reset the {retries} counted failures; a new one adds to them");
    Plan {
        will: vec![
            text(&claim, &claim_en),
            text("从以前各次已提交的地方接着做", "go on from what earlier attempts committed"),
        ],
        will_not: vec![text(&reset, &reset_en)],
        cannot: vec![text(
            "把做过的再做一遍：每次写入都先证明它仍然该做",
            "do again what was done: every write proves that it is still due",
        )],
    }
}

/// A dry run for people.
pub(in crate::console) fn dry_run(
    lang: Lang,
    will: &[String],
    will_not: &[String],
    cannot: &[String],
) -> Markup {
    let list = |title: &str, class: &str, sentences: &[String]| {
        html! {
            @if !sentences.is_empty() {
                div class={ "plan " (class) } {
                    h3 { (title) }
                    ul { @for sentence in sentences { li { (sentence) } } }
                }
            }
        }
    };
    html! {
        section class="card dry" aria-label=(lang.dry_run()) {
            p class="quiet" { (lang.dry_run()) }
            (list(lang.will(), "will", will))
            (list(lang.will_not(), "wont", will_not))
            (list(lang.cannot(), "cannot", cannot))
        }
    }
}

/// The reason, and the button.
pub(in crate::console) fn confirm(
    visitor: &Visitor,
    path: &str,
    back: &str,
    label: &str,
) -> Markup {
    let lang = visitor.lang();
    html! {
        form method="post" action=(path) class="confirm" {
            (proof(visitor))
            label {
                span { (lang.reason()) }
                textarea name="reason" required maxlength="500" rows="2"
                    placeholder=(lang.reason_hint()) {}
            }
            div class="actions" {
                button class="primary" type="submit" { (label) }
                a class="button" href=(back) { (lang.never_mind()) }
            }
        }
    }
}

fn path_of(task: &TaskLine) -> String {
    format!("/console/tasks/{}", parts::escaped(&task.code))
}

pub(in crate::console) async fn ask_rerun(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let task = find(&console.db, &named).await?;
    let rerun = rerun_of(&console, &task).await?;
    let (path, said) = (path_of(&task), plan(lang, &rerun));
    let body = html! {
        h1 { (lang.ask_rerun()) " " span class="mono" { (task.code) } }
        (super::head(lang, &task))
        (dry_run(lang, &said.will, &said.will_not, &said.cannot))
        @if rerun.will_run() {
            (confirm(&visitor, &format!("{path}/rerun"), &path, lang.rerun_now()))
        } @else {
            p { a class="button" href=(path) { (lang.never_mind()) } }
        }
    };
    Ok(Page::new(Room::Tasks, lang.ask_rerun(), body).shown_to(&visitor))
}

pub(in crate::console) async fn rerun(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let task = find(&console.db, &named).await?;
    let deed = Deed { action: "task-rerun", subject: &task.code, reason };
    let work = async {
        let rerun = rerun_of(&console, &task).await?;
        if !rerun.will_run() {
            return Err(Trouble::conflict(
                "task-state",
                format!("{} is {}", task.code, task.status),
            ));
        }
        let code = TaskCode::stored(task.code.clone());
        trace_rerun(&console.db, &code, visitor.account.id, reason).await?;
        let parameter = json!({ "taskCode": task.code }).to_string();
        let told = round_within(&console, rerun.handler, parameter, PATIENCE).await?;
        Ok(((), told))
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(&task)))
}

pub(in crate::console) async fn ask_cancel(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
) -> Answer {
    let lang = visitor.lang();
    let task = find(&console.db, &named).await?;
    let open = matches!(task.status, TaskStatus::Pending | TaskStatus::Failed);
    let text = |zh: &str, en: &str| vec![lang.pick(zh, en).to_owned()];
    let (will, wont) = match open {
        true => (
            text("任务永远停在「已取消」", "make the task CANCELLED, for good"),
            text(
                "撤回它已经提交的部分，释放占用，或取消付款单",
                "take back what it committed, release locks, or cancel the order",
            ),
        ),
        false => (
            vec![],
            text(
                "取消：只有待执行或失败的任务可以取消",
                "cancel: only PENDING or FAILED tasks can be",
            ),
        ),
    };
    let cannot = text("再次打开", "be opened again");
    let path = path_of(&task);
    let body = html! {
        h1 { (lang.ask_cancel_task()) " " span class="mono" { (task.code) } }
        (super::head(lang, &task))
        (dry_run(lang, &will, &wont, &cannot))
        @if open { (confirm(&visitor, &format!("{path}/cancel"), &path, lang.cancel_task_now())) }
        @else { p { a class="button" href=(path) { (lang.never_mind()) } } }
    };
    Ok(Page::new(Room::Tasks, lang.ask_cancel_task(), body).shown_to(&visitor))
}

pub(in crate::console) async fn cancel(
    State(console): State<Console>,
    visitor: Visitor,
    Path(named): Path<String>,
    posted: Posted,
) -> Answer {
    let reason = posted.reason()?;
    let task = find(&console.db, &named).await?;
    let deed = Deed { action: "task-cancel", subject: &task.code, reason };
    let work = async {
        let code = TaskCode::stored(task.code.clone());
        match counterfoil_task::cancel(&console.db, &code, visitor.account.id, reason).await? {
            CancelOutcome::Cancelled => Ok(((), "CANCELLED".to_owned())),
            CancelOutcome::Refused(status) => {
                let why = format!("{code} is {status}: only PENDING or FAILED can be cancelled");
                Err(Trouble::conflict("task-state", why))
            }
            CancelOutcome::Unknown => Err(Trouble::not_there()),
        }
    };
    audited(&console, &visitor, deed, work).await?;
    Ok(back_to(&visitor, &path_of(&task)))
}
