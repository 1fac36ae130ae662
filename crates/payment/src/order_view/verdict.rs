//! The first line of an order's page: where is it, what is it waiting for, what may I do. Pure.

use serde::Serialize;

use super::aftermath::{ProgressRow, ShownViolation};
use super::facts::{OrderFacts, TaskFacts};
use super::shown::{at, count};
use super::stages::{self, Stage, StageState};
use super::standing::{Standing, standing};
use crate::kinds::{
    AUDIT_PLAN_CREATE, LOCK_ACTIVATE, LOCK_RELEASE, REVIEW_CALLBACK, REVIEW_PROGRESS, SUBMIT_BUILD,
};

/// Conflicting bills named in the sentence.
const MAX_NAMED: usize = 3;

/// Something that may be done now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it does.
    pub what: String,
    /// The command, if there is one.
    pub command: Option<String>,
}

/// Where the order is, what it waits for, and what may be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The one sentence.
    pub sentence: String,
    /// What else must not be overlooked.
    pub notes: Vec<String>,
    /// What makes sense now, best first.
    pub actions: Vec<Step>,
}

fn step(what: &str, command: String) -> Step {
    Step { what: what.into(), command: Some(command) }
}

fn by_hand(what: &str) -> Step {
    Step { what: what.into(), command: None }
}

/// Judges an order.
pub fn verdict(facts: &OrderFacts) -> Verdict {
    let (sentence, actions) = place(facts);
    let called = facts.order.called();
    let mut notes = Vec::new();
    if facts.is_marked_incident() && facts.order.status != 90 {
        notes.push(format!(
            "a publish incident is on record for session {}",
            facts.version.as_ref().map_or(0, |version| version.session_id.0)
        ));
    }
    if let Some(failed) = &facts.failed_revision {
        let (data, why) = (failed.data_version, &failed.why);
        notes.push(format!("its last revision, data version {data}, failed: {why}"));
    }
    Verdict { sentence: format!("Order {called} {sentence}."), notes, actions }
}

fn place(facts: &OrderFacts) -> (String, Vec<Step>) {
    let order = &facts.order;
    if order.status == 90 {
        return cancelled(facts);
    }
    let Some(version) = &facts.version else {
        return unsubmitted(facts);
    };
    let (p, v) = (facts.is_pointed_to(), facts.says_published());
    match (p, v) {
        (true, false) => return pointer_without_record(facts),
        (false, true) if order.published_data_version < version.target_data => {
            return record_without_pointer(facts);
        }
        _ => {}
    }
    match order.status {
        50 => return ("is paid in full".into(), vec![]),
        55 => return ("was approved and there is nothing to pay".into(), vec![]),
        40 => return waits_for_payment(facts),
        _ => {}
    }
    if version.build_status == "BUILD_FAILED" {
        return failed_submission(facts);
    }
    if !p && !v {
        return at_task(facts, &stages::build(facts), facts.tasks.build.as_ref());
    }
    let activation = stages::activation(facts);
    if activation.state != StageState::Done {
        return at_task(facts, &activation, facts.tasks.activation.as_ref());
    }
    if order.status == 30 {
        return rejected(facts);
    }
    let audit_plan = stages::audit_plan(facts);
    if audit_plan.state != StageState::Done {
        return at_audit_plan(facts, &audit_plan);
    }
    under_review(facts)
}

fn unsubmitted(facts: &OrderFacts) -> (String, Vec<Step>) {
    if facts.order.status == 10 {
        return (
            "is a draft: nothing was submitted".into(),
            vec![by_hand("submit its selection session")],
        );
    }
    let status = facts.order.status_name;
    (
        format!("is {status}, but has no version record to tell how it came there"),
        vec![step("look at the rules", "counterfoil check".into())],
    )
}

fn cancelled(facts: &OrderFacts) -> (String, Vec<Step>) {
    let held = facts.locks.active + facts.locks.reserved;
    if held == 0 {
        return ("was cancelled and holds no bill".into(), vec![]);
    }
    let task = facts.tasks.release.as_ref();
    let standing = standing(task, None, facts.now);
    let why = standing.why(task);
    let sentence =
        format!("was cancelled and still holds {}: {} {why}", count(held, "bill"), stages::S06);
    (sentence, work_steps(&standing, task, LOCK_RELEASE.handler))
}

fn pointer_without_record(facts: &OrderFacts) -> (String, Vec<Step>) {
    let version = facts.version.as_ref();
    let (data, says) = version.map_or((0, ""), |v| (v.target_data.0, v.build_status.as_str()));
    let sentence = format!(
        "has a publish incident: it points to data version {data}, whose record says {says}; the \
         audit plan cannot be created until that is put right"
    );
    let id = facts.order.id;
    let repair = format!("counterfoil order repair-publish {id} --reason WHY --user ID");
    let mut steps = vec![step("put the publish record right", repair)];
    steps.push(timeline(facts));
    (sentence, steps)
}

fn record_without_pointer(facts: &OrderFacts) -> (String, Vec<Step>) {
    let data = facts.version.as_ref().map_or(0, |version| version.target_data.0);
    let sentence = format!(
        "has a publish incident: data version {data} says PUBLISHED, but the order points to {}; \
         nothing is activated or released, and a person must find out why",
        facts.order.published_data_version
    );
    (sentence, vec![timeline(facts)])
}

fn timeline(facts: &OrderFacts) -> Step {
    let id = facts.order.id;
    step("see what happened", format!("counterfoil order timeline {id}"))
}

fn waits_for_payment(facts: &OrderFacts) -> (String, Vec<Step>) {
    let order = &facts.order;
    let kind = order.payment_type.as_deref().unwrap_or("undecided");
    let push = order.push_status.as_deref().unwrap_or("NOT_PUSHED");
    let refresh = match &facts.aftermath.progress {
        Some(progress) if !progress.refresh_ready => "; its status refresh has not ended",
        _ => "",
    };
    match kind {
        "OFFLINE" => {
            let id = order.id;
            let record = format!("counterfoil order record-payment {id} --evidence TEXT --user ID");
            let sentence =
                format!("is approved and waits for its offline payment to be recorded{refresh}");
            (sentence, vec![step("record the payment", record)])
        }
        _ if facts.aftermath.details.at("PAY_FAILED") > 0 => {
            let failed = count(facts.aftermath.details.at("PAY_FAILED"), "payment");
            let sentence = format!("needs a person: {failed} failed and must be fixed");
            let list = format!("counterfoil push-batch list --order {}", order.id);
            let fix = "counterfoil push-batch fix DETAIL --reason WHY --user ID".to_owned();
            (
                sentence,
                vec![step("see which", list), step("fix one; it is pushed again alone", fix)],
            )
        }
        _ => {
            let sentence = format!("is approved and waits for payment ({kind}, {push}){refresh}");
            let list = format!("counterfoil push-batch list --order {}", order.id);
            (sentence, vec![step("see its push batches", list)])
        }
    }
}

fn failed_submission(facts: &OrderFacts) -> (String, Vec<Step>) {
    let why = match facts.conflicts.total {
        0 => facts.version.as_ref().map_or_else(String::new, stages::failure),
        n => {
            let named: Vec<String> =
                facts.conflicts.first.iter().take(MAX_NAMED).map(held).collect();
            let more = if n > MAX_NAMED as i64 { "; …" } else { "" };
            format!("other orders hold {}: {}{more}", count(n, "bill"), named.join("; "))
        }
    };
    let session = facts.session.as_ref();
    let id = session.map_or(0, |session| session.id.0);
    if session.is_some_and(|session| session.invalidated) {
        return (
            format!("was not published, and session {id} is over: {why}"),
            vec![reopen(facts)],
        );
    }
    let task = facts.tasks.release.as_ref();
    let standing = standing(task, None, facts.now);
    let is_closed = session.is_some_and(|session| session.active_submit_id.is_none());
    if is_closed && matches!(standing, Standing::Done | Standing::Missing) {
        let remove = format!("counterfoil session remove {id} --bill STATION:MONTH --user ID");
        let submit = format!("counterfoil session submit {id} --user ID");
        return (
            format!("was not published and may be submitted again: {why}"),
            vec![step("take the held bills out", remove), step("submit again", submit)],
        );
    }
    let sentence = format!(
        "was not published: {why}; before it is submitted again, {} {}",
        stages::S06,
        standing.why(task)
    );
    (sentence, work_steps(&standing, task, LOCK_RELEASE.handler))
}

fn held(conflict: &super::facts::BillConflict) -> String {
    let holder = match &conflict.holder_order_no {
        Some(number) => number.clone(),
        None => format!("order {}", conflict.holder_order_id),
    };
    format!("{} {} by {holder}", conflict.station_id, conflict.bill_yearmonth)
}

fn at_task(facts: &OrderFacts, stage: &Stage, task: Option<&TaskFacts>) -> (String, Vec<Step>) {
    let (batch, handler) = match stage.stage {
        "build" => (facts.build_batch.as_ref(), SUBMIT_BUILD.handler),
        _ => (facts.lock_batch.as_ref(), LOCK_ACTIVATE.handler),
    };
    let standing = standing(task, batch, facts.now);
    if stage.state == StageState::Unknown {
        let look = step("look at the rules", "counterfoil check".into());
        return (contradiction(stage), vec![look, timeline(facts)]);
    }
    let sentence = format!("is at {}, which {}", stage.name, standing.why(task));
    (sentence, work_steps(&standing, task, handler))
}

fn contradiction(stage: &Stage) -> String {
    format!("is at {}, and its records contradict each other: {}", stage.name, stage.why)
}

fn at_audit_plan(facts: &OrderFacts, stage: &Stage) -> (String, Vec<Step>) {
    let task = facts.tasks.audit_plan.as_ref();
    let standing = standing(task, None, facts.now);
    let blocked = matches!(
        standing,
        Standing::Cancelled | Standing::Exhausted | Standing::Missing | Standing::Parked
    );
    if stage.state == StageState::Unknown {
        return (contradiction(stage), vec![timeline(facts)]);
    }
    let head = if blocked { "is blocked at" } else { "is at" };
    let sentence = format!("{head} {}, which {}", stage.name, standing.why(task));
    let mut steps = work_steps(&standing, task, AUDIT_PLAN_CREATE.handler);
    if matches!(standing, Standing::Cancelled | Standing::Missing) {
        steps.push(revise(facts, "revise the order: a new version gets a task of its own"));
        steps.push(cancel(facts));
    }
    (sentence, steps)
}

fn revise(facts: &OrderFacts, what: &str) -> Step {
    let id = facts.order.id;
    step(what, format!("counterfoil session create --revise {id} --user ID"))
}

/// A session that is over is followed by a new one: of the order, if that was ever published.
fn reopen(facts: &OrderFacts) -> Step {
    if facts.order.published_data_version.0 > 0 {
        return revise(facts, "open a new session");
    }
    step("open a new session", "counterfoil session create --user ID".into())
}

fn cancel(facts: &OrderFacts) -> Step {
    let id = facts.order.id;
    let command = format!("counterfoil order cancel {id} --reason WHY --user ID");
    step("cancel the order", command)
}

fn rejected(facts: &OrderFacts) -> (String, Vec<Step>) {
    let when = facts.order.review_finish_time;
    let when = when.map_or_else(String::new, |time| format!(" at {}", at(time)));
    (
        format!("was rejected{when} and waits for its creator to revise or cancel it"),
        vec![revise(facts, "revise the order"), cancel(facts)],
    )
}

/// An approval that is being applied, or that must not be applied as the lines stand.
fn being_applied(facts: &OrderFacts, progress: &ProgressRow) -> (String, Vec<Step>) {
    let after = &facts.aftermath;
    let task = after.callback.as_ref().map_or_else(|| "TASK".to_owned(), |t| t.code.to_string());
    let rerun = |what: &str| {
        let handler = REVIEW_PROGRESS.handler;
        let command =
            format!("counterfoil job run {handler} --param '{{\"taskCode\":\"{task}\"}}'");
        step(what, command)
    };
    if progress.is_parked() {
        let shown = |violation: &ShownViolation| {
            let ShownViolation { station_id, bill_yearmonth, message, code, .. } = violation;
            match station_id.as_str() {
                "" => format!("{message} ({code})"),
                station => format!("{station} {bill_yearmonth}: {message} ({code})"),
            }
        };
        let named: Vec<String> = after.violations.iter().take(MAX_NAMED).map(shown).collect();
        let more = if after.violation_count > MAX_NAMED as i64 { "; …" } else { "" };
        let sentence = format!(
            "was approved but must not be paid as it stands, and needs a person: {} by the \
             pre-payment recheck: {}{more}",
            count(after.violation_count, "reason"),
            named.join("; ")
        );
        let revise = revise(facts, "revise the order instead");
        return (sentence, vec![rerun("recheck, once that is mended"), revise]);
    }
    let sentence = match progress.phase_status.as_str() {
        "FAILED" => format!(
            "was approved, and applying that failed at {}: {}",
            progress.phase,
            progress.last_error_message.as_deref().unwrap_or("no reason is on record")
        ),
        _ => format!(
            "was approved, and that is being applied: {} of {} lines carry it ({})",
            progress.updated_count, progress.total_count, progress.phase
        ),
    };
    (sentence, vec![rerun("run a round now")])
}

fn under_review(facts: &OrderFacts) -> (String, Vec<Step>) {
    let running = facts.aftermath.progress.as_ref().filter(|p| p.main_task_status == "RUNNING");
    if let Some(progress) = running {
        return being_applied(facts, progress);
    }
    if let Some(task) = &facts.aftermath.callback {
        let standing = standing(Some(task), None, facts.now);
        let sentence =
            format!("was decided; {} {}", "S07 review callback", standing.why(Some(task)));
        return (sentence, work_steps(&standing, Some(task), REVIEW_CALLBACK.handler));
    }
    let look = step("see who has to decide", "counterfoil review list".into());
    match &facts.approval {
        None => (
            "is under review, but its audit plan has no approval instance".into(),
            vec![step("look at the rules", "counterfoil check".into())],
        ),
        Some(approval) if approval.status == "IN_REVIEW" => (
            format!(
                "is under review and waits for the reviewers of plan {}",
                approval.review_plan_id
            ),
            vec![look],
        ),
        Some(approval) => (
            format!(
                "was {} by plan {}; the decision has not reached the order yet",
                approval.status.to_lowercase(),
                approval.review_plan_id
            ),
            vec![look, timeline(facts)],
        ),
    }
}

/// What may be done about a task.
fn work_steps(standing: &Standing, task: Option<&TaskFacts>, handler: &str) -> Vec<Step> {
    let Some(task) = task else {
        return vec![step("look at the rules", "counterfoil check".into())];
    };
    let code = &task.code;
    let round = || step("run a round now", format!("counterfoil job run {handler}"));
    let trace = || step("see why", format!("counterfoil task trace {code}"));
    let dry = || {
        let command = format!("counterfoil task rerun {code} --dry-run --reason WHY --user ID");
        step("see what a rerun would do", command)
    };
    match standing {
        Standing::Due => vec![round()],
        Standing::Stale { until: None } => vec![round()],
        Standing::Stale { .. } | Standing::LeaseHeld { .. } | Standing::Live { .. } => vec![],
        Standing::BackedOff { .. } => vec![trace(), dry()],
        Standing::Parked | Standing::Exhausted => vec![dry(), trace()],
        Standing::Cancelled => vec![trace()],
        Standing::Missing | Standing::Done => vec![],
    }
}

#[cfg(test)]
mod tests;
