//! Six kinds of success, kept apart: none of them proves the next. Pure.

use serde::Serialize;

use super::facts::{OrderFacts, TaskFacts};
use super::shown::at;

/// Whether one kind of success has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It has.
    Yes,
    /// It has not and, as things stand, will not.
    No,
    /// It has not come yet, or nothing proves it.
    NotYet,
}

/// One kind of success with what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Success {
    /// Whether it has come.
    pub answer: Answer,
    /// What the answer rests on.
    pub evidence: String,
}

/// The six, of the version in view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SixKinds {
    /// The submission is durably accepted.
    pub accepted: Success,
    /// A round has worked on the furthest task. That it ran is not that it succeeded.
    pub round_ran: Success,
    /// Locks are in line and the audit plan's task is accepted.
    pub handed_over: Success,
    /// The order itself says that the decision is in effect.
    pub main_business_effective: Success,
    /// The business tables and snapshots follow.
    pub refresh_done: Success,
    /// Partners and the treasury have answered.
    pub outside_world_answered: Success,
}

impl SixKinds {
    /// The six with their names, in order.
    pub fn all(&self) -> [(&'static str, &Success); 6] {
        [
            ("accepted", &self.accepted),
            ("round ran", &self.round_ran),
            ("handed over", &self.handed_over),
            ("main business effective", &self.main_business_effective),
            ("refresh done", &self.refresh_done),
            ("outside world answered", &self.outside_world_answered),
        ]
    }
}

fn says(answer: Answer, evidence: impl Into<String>) -> Success {
    Success { answer, evidence: evidence.into() }
}

/// Judges all six, each by its own evidence.
pub fn six_kinds(facts: &OrderFacts) -> SixKinds {
    SixKinds {
        accepted: accepted(facts),
        round_ran: round_ran(facts),
        handed_over: handed_over(facts),
        main_business_effective: effective(facts),
        refresh_done: refreshed(facts),
        outside_world_answered: answered(facts),
    }
}

fn accepted(facts: &OrderFacts) -> Success {
    match (&facts.version, &facts.tasks.build) {
        (None, _) => says(Answer::NotYet, "nothing was submitted"),
        (Some(version), Some(task)) => {
            says(Answer::Yes, format!("task {} of {}", task.code, at(version.create_time)))
        }
        (Some(version), None) => {
            let record = version.id;
            says(Answer::No, format!("version record {record} has no S03 task"))
        }
    }
}

/// The furthest task that was accepted.
fn furthest(facts: &OrderFacts) -> Option<(&'static str, &TaskFacts)> {
    let tasks = &facts.tasks;
    let in_order = [
        ("S07", &facts.aftermath.callback),
        ("S05", &tasks.audit_plan),
        ("S04", &tasks.activation),
        ("S03", &tasks.build),
    ];
    in_order.into_iter().find_map(|(stage, task)| task.as_ref().map(|task| (stage, task)))
}

fn round_ran(facts: &OrderFacts) -> Success {
    match furthest(facts) {
        None => says(Answer::NotYet, "no task was accepted"),
        Some((stage, task)) if task.attempt == 0 => {
            says(Answer::NotYet, format!("{stage} is accepted, no round has taken it"))
        }
        Some((stage, task)) => {
            says(Answer::Yes, format!("{stage} is {} after attempt {}", task.status, task.attempt))
        }
    }
}

fn handed_over(facts: &OrderFacts) -> Success {
    let failed =
        facts.version.as_ref().is_some_and(|version| version.build_status == "BUILD_FAILED");
    if let (Some(task), true) = (&facts.tasks.audit_plan, facts.session_is("COMPLETED")) {
        let locks = facts.locks.active;
        return says(Answer::Yes, format!("{locks} locks ACTIVE, S05 accepted as {}", task.code));
    }
    if failed && !facts.is_pointed_to() {
        return says(Answer::No, "the version is BUILD_FAILED");
    }
    if facts.order.status == 90 {
        return says(Answer::No, "the order was cancelled before");
    }
    says(Answer::NotYet, "S05 is not accepted")
}

fn effective(facts: &OrderFacts) -> Success {
    let order = &facts.order;
    let evidence = format!("the order is {}", order.status_name);
    let since = order.review_finish_time;
    let since = since.map_or_else(String::new, |time| format!(" since {}", at(time)));
    match order.status {
        40 | 50 | 55 => says(Answer::Yes, format!("in effect{since}; {evidence}")),
        30 | 90 => says(Answer::No, evidence),
        _ => says(Answer::NotYet, evidence),
    }
}

fn refreshed(facts: &OrderFacts) -> Success {
    let progress = facts.aftermath.progress.as_ref();
    if let Some(progress) = progress.filter(|progress| progress.refresh_ready) {
        let when = progress.done_time.map_or_else(String::new, |time| format!(" at {}", at(time)));
        let shards = facts.aftermath.shards.total();
        return says(Answer::Yes, format!("{shards} shards ended{when}"));
    }
    match facts.order.status {
        30 | 90 => says(Answer::No, "there is nothing to refresh"),
        40 | 50 | 55 => says(Answer::NotYet, "no finished refresh is on record"),
        _ => says(Answer::NotYet, "main business is not effective"),
    }
}

fn answered(facts: &OrderFacts) -> Success {
    let push = facts.order.push_status.as_deref().unwrap_or("NOT_PUSHED");
    match facts.order.status {
        50 if facts.aftermath.is_untold() => {
            let told = facts.aftermath.deliveries.shown();
            says(
                Answer::NotYet,
                format!("the order is PAID, but not every partner answered: {told}"),
            )
        }
        50 => says(Answer::Yes, "the order is PAID"),
        55 if facts.aftermath.is_told() => {
            let told = facts.aftermath.deliveries.shown();
            says(Answer::Yes, format!("there is nothing to pay; partners: {told}"))
        }
        55 => says(Answer::NotYet, "there is nothing to pay; no answer of a partner is on record"),
        40 => {
            let paid = facts.aftermath.details.shown();
            let paid = if paid.is_empty() { "nothing is on its way".to_owned() } else { paid };
            says(Answer::NotYet, format!("the push is {push}: {paid}"))
        }
        30 | 90 => says(Answer::No, "nothing was sent"),
        _ => says(Answer::NotYet, "nothing was sent"),
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_task::TaskStatus::Failed;

    use super::super::example::{
        activating, completed, conflicted, decided, published, status, submitted, under_review_now,
    };
    use super::*;

    #[test]
    fn six_kinds_of_success_stay_apart() {
        let ran_and_failed = || {
            let mut facts = activating(|t| (t.status, t.retries) = (Failed, 1));
            facts.locks.active = 1;
            facts
        };
        let cancelled = || {
            let mut facts = published();
            status(&mut facts, 90);
            facts
        };
        let table = [
            // accepted, round ran, handed over, effective, refreshed, answered
            ("accepted only", submitted(), "y....."),
            ("published, S04 not run", published(), "y....."),
            ("a round that failed has run", ran_and_failed(), "yy...."),
            ("handed over, S05 not run", completed(), "y.y..."),
            ("under review", under_review_now(), "yyy..."),
            ("rejected", decided("REJECTED", 30), "yyynnn"),
            ("approved is neither refreshed nor answered", decided("APPROVED", 40), "yyyy.."),
            ("paid says nothing of the refresh", decided("APPROVED", 50), "yyyy.y"),
            ("not published", conflicted(), "yyn..."),
            ("cancelled", cancelled(), "y.nnnn"),
        ];
        for (name, facts, expected) in table {
            let kinds = six_kinds(&facts);
            let short = |answer| match answer {
                Answer::Yes => 'y',
                Answer::No => 'n',
                Answer::NotYet => '.',
            };
            let given: String = kinds.all().iter().map(|(_, kind)| short(kind.answer)).collect();
            assert_eq!(given, expected, "{name}: {kinds:?}");
            assert!(kinds.all().iter().all(|(_, kind)| !kind.evidence.is_empty()), "{name}");
        }
    }
}
