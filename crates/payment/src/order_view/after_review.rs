//! The stages after the review, each told by its own records. Pure.

use super::aftermath::ProgressRow;
use super::facts::{OrderFacts, TaskFacts};
use super::shown::{at, count};
use super::stages::{Stage, StageState, not_yet, of_task};

const S07: &str = "S07 review callback";
const S08: &str = "S08 main business";
const S12: &str = "S12 status refresh";
const S13: &str = "S13 bill snapshots";
const S09: &str = "S09 side effects";

/// All of them, in order.
pub(super) fn after_review(facts: &OrderFacts) -> Vec<Stage> {
    vec![
        callback(facts),
        main_business(facts),
        status_refresh(facts),
        bill_snapshot(facts),
        side_effects(facts),
        payment(facts),
    ]
}

/// Whether the order says that its approval is in effect.
fn is_effective(facts: &OrderFacts) -> bool {
    matches!(facts.order.status, 40 | 50 | 55)
}

fn callback(facts: &OrderFacts) -> Stage {
    let key = "review_callback";
    let after = &facts.aftermath;
    let done = |why: String| {
        Stage::new(key, S07, StageState::Done, why).with_work(after.callback.as_ref(), None)
    };
    if is_effective(facts) || (facts.order.status == 30 && facts.is_pointed_to()) {
        return done(format!("the order is {}", facts.order.status_name));
    }
    match (&after.callback, &after.progress) {
        (Some(_), Some(progress)) => {
            done(format!("{S07} is prepared: progress {} goes on", progress.id))
        }
        (Some(task), None) => of_task(key, S07, Some(task), None, facts.now),
        (None, _) if decided(facts) => {
            let why = "the decision has not reached the order yet".into();
            Stage::new(key, S07, StageState::Waiting, why).blocked_by("the review callback")
        }
        (None, _) => not_yet(key, S07, "review"),
    }
}

fn decided(facts: &OrderFacts) -> bool {
    facts.order.status == 20
        && facts.approval.as_ref().is_some_and(|approval| approval.status != "IN_REVIEW")
}

fn main_business(facts: &OrderFacts) -> Stage {
    let key = "main_business";
    let Some(progress) = &facts.aftermath.progress else {
        if is_effective(facts) {
            let why = format!("the order is {}", facts.order.status_name);
            return Stage::new(key, S08, StageState::Done, why);
        }
        return not_yet(key, S08, "the review callback");
    };
    match progress.main_task_status.as_str() {
        "SUCCESS" => {
            let when = progress.finalize_time.map_or_else(String::new, |time| at(time).to_string());
            let why = format!("the order is effective since {when}");
            Stage::new(key, S08, StageState::Done, why)
        }
        "SUPERSEDED" => {
            let why = "the order moved on; this approval was given up".into();
            Stage::new(key, S08, StageState::NotYet, why)
        }
        _ if progress.is_parked() => {
            let reasons = count(facts.aftermath.violation_count, "reason");
            let why = format!("the pre-payment recheck found {reasons} not to pay");
            progressed(Stage::new(key, S08, StageState::Trouble, why), progress)
                .blocked_by("a person")
        }
        _ => of_progress(key, S08, progress, facts),
    }
}

/// A stage that stands where the progress row stands.
fn of_progress(
    key: &'static str,
    name: &'static str,
    progress: &ProgressRow,
    facts: &OrderFacts,
) -> Stage {
    let place = format!(
        "{} ({} of {} lines carry the decision)",
        progress.phase, progress.updated_count, progress.total_count
    );
    let lives = progress.lease_until.is_some_and(|until| until > facts.now);
    let (state, why, blocker) = match progress.phase_status.as_str() {
        "RUNNING" if lives => (StageState::Running, format!("{name} works at {place}"), None),
        "RUNNING" => (
            StageState::Waiting,
            format!("{name} lost its process at {place}"),
            Some("a round that takes it over"),
        ),
        "FAILED" => {
            let message = progress.last_error_message.as_deref().unwrap_or("no reason on record");
            let why = format!("{name} failed at {place}: {message}");
            (StageState::Waiting, why, Some("its next try"))
        }
        _ => (StageState::Waiting, format!("{name} waits at {place}"), Some("the next round")),
    };
    let stage = progressed(Stage::new(key, name, state, why), progress);
    match blocker {
        Some(blocker) => stage.blocked_by(blocker),
        None => stage,
    }
}

fn progressed(mut stage: Stage, progress: &ProgressRow) -> Stage {
    stage.batch_status = Some(progress.phase_status.clone());
    stage.processed_count = Some(progress.updated_count);
    stage.retry_count = Some(progress.retry_count);
    stage.next_try = progress.next_retry_time;
    stage.lease_until = progress.lease_until;
    if progress.phase_status == "RUNNING" {
        stage.owner.clone_from(&progress.worker);
    }
    stage
}

/// The progress of an approval that is in effect.
fn effective_progress(facts: &OrderFacts) -> Option<&ProgressRow> {
    let progress = facts.aftermath.progress.as_ref();
    progress.filter(|progress| progress.main_task_status == "SUCCESS")
}

/// An effective order of which this stage keeps no record is never called done.
fn unrecorded(key: &'static str, name: &'static str, facts: &OrderFacts) -> Stage {
    if is_effective(facts) {
        let why = "nothing about it is on record".into();
        return Stage::new(key, name, StageState::Unknown, why);
    }
    not_yet(key, name, "main business")
}

fn status_refresh(facts: &OrderFacts) -> Stage {
    let key = "status_refresh";
    let Some(progress) = effective_progress(facts) else {
        return unrecorded(key, S12, facts);
    };
    let shards = &facts.aftermath.shards;
    if progress.refresh_ready {
        let when = progress.done_time.map_or_else(String::new, |time| format!(" at {}", at(time)));
        let why = format!("{} ended{when}", count(shards.total(), "shard"));
        return Stage::new(key, S12, StageState::Done, why);
    }
    if progress.phase == "LOCK_RELEASE" {
        return of_progress(key, S12, progress, facts);
    }
    let why =
        format!("{} of {} shards: {}", shards.total(), progress.shard_expected, shards.shown());
    let state = if shards.at("RUNNING") > 0 { StageState::Running } else { StageState::Waiting };
    let stage = Stage::new(key, S12, state, why);
    match shards.at("FAILED") {
        0 => stage.blocked_by("the next round"),
        failed => stage.blocked_by(format!("{} to be tried again", count(failed, "shard"))),
    }
}

fn bill_snapshot(facts: &OrderFacts) -> Stage {
    let key = "bill_snapshot";
    let Some(progress) = effective_progress(facts) else {
        return unrecorded(key, S13, facts);
    };
    let tasks = &facts.aftermath.snapshots;
    let why = format!("{} of {} queued: {}", tasks.total(), progress.shard_expected, tasks.shown());
    let made = tasks.at("SUCCESS");
    match () {
        () if made > 0 && made == progress.shard_expected => {
            Stage::new(key, S13, StageState::Done, format!("{} made", count(made, "shard")))
        }
        () if tasks.at("CANCELLED") > 0 => {
            Stage::new(key, S13, StageState::Trouble, why).blocked_by("a cancelled task")
        }
        () if tasks.total() == 0 => not_yet(key, S13, S12),
        () => Stage::new(key, S13, StageState::Waiting, why).blocked_by("the next round"),
    }
}

fn side_effects(facts: &OrderFacts) -> Stage {
    let key = "side_effects";
    if effective_progress(facts).is_none() {
        return unrecorded(key, S09, facts);
    }
    let after = &facts.aftermath;
    let told = &after.deliveries;
    let tasks: Vec<&TaskFacts> =
        [&after.partner_push, &after.base_data].into_iter().filter_map(Option::as_ref).collect();
    if tasks.is_empty() {
        let why = "its tasks are missing; the rebuild handler adds them".to_owned();
        return Stage::new(key, S09, StageState::Trouble, why).blocked_by("its tasks");
    }
    let open = tasks.iter().find(|task| task.status != counterfoil_task::TaskStatus::Success);
    let mut stage = match open {
        Some(task) => of_task(key, S09, Some(task), None, facts.now),
        None => {
            let why = "every side effect of this approval has ended".to_owned();
            Stage::new(key, S09, StageState::Done, why)
        }
    };
    if told.total() > 0 {
        stage.why.push_str(&format!("; partners: {}", told.shown()));
    }
    stage
}

fn payment(facts: &OrderFacts) -> Stage {
    let (key, name) = ("payment", "payment");
    let push = facts.order.push_status.as_deref();
    let details = facts.aftermath.details.shown();
    let told = |why: &str| {
        if details.is_empty() { why.to_owned() } else { format!("{why}: {details}") }
    };
    let (state, why) = match (facts.order.status, push) {
        (50, _) => (StageState::Done, told("every payable line is paid")),
        (55, _) => (StageState::Done, "there is nothing to pay".to_owned()),
        (40, _) if facts.aftermath.details.at("PAY_FAILED") > 0 => {
            let failed = count(facts.aftermath.details.at("PAY_FAILED"), "payment");
            let why = told(&format!("{failed} failed and must be fixed and pushed again"));
            return Stage::new(key, name, StageState::Trouble, why).blocked_by("a person");
        }
        (40, Some("PUSHING")) => (StageState::Running, told("payments are being pushed")),
        (40, Some("PUSHED")) => {
            let why = told("everything is pushed; the results are not all in yet");
            return Stage::new(key, name, StageState::Waiting, why)
                .blocked_by("the payer's results");
        }
        (40, Some(push @ ("PUSH_PARTIAL" | "PUSH_FAILED"))) => {
            (StageState::Trouble, told(&format!("the push ended {push}")))
        }
        (40, _) if facts.order.payment_type.as_deref() == Some("OFFLINE") => {
            let why = "its offline payment is not recorded yet".to_owned();
            return Stage::new(key, name, StageState::Waiting, why)
                .blocked_by("whoever pays it offline");
        }
        (40, _) => (StageState::NotYet, "nothing was pushed".to_owned()),
        _ => return not_yet(key, name, "main business"),
    };
    Stage::new(key, name, state, why)
}
