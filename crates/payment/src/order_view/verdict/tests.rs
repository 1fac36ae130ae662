//! The table of verdicts.

use counterfoil_protocol::DataVersion;
use counterfoil_task::TaskStatus::{Cancelled, Failed, Pending, Success};

use super::super::example::{
    activating, completed, conflicted, decided, handed_over, pointer_only, published, session,
    status, submitted, under_review_now, version,
};
use super::super::facts::{Conflicts, FailedRevision};
use super::super::standing::tests::{batch, minutes, task};
use super::*;

/// Name, facts, what the sentence contains in this order, and the commands in this order.
type Case = (&'static str, fn() -> OrderFacts, &'static str, &'static [&'static str]);

fn holds_for(table: &[Case]) {
    for (name, facts, sentence, commands) in table {
        let told = verdict(&facts());
        assert_eq!(told.sentence, *sentence, "{name}");
        let given: Vec<&str> = told
            .actions
            .iter()
            .map(|action| action.command.as_deref().unwrap_or("by hand"))
            .collect();
        assert_eq!(given.len(), commands.len(), "{name}: {given:?}");
        for (given, begins) in given.iter().zip(*commands) {
            assert!(given.starts_with(begins), "{name}: {given:?}");
        }
    }
}

const REVISE: &str = "counterfoil session create --revise 1";
const CANCEL: &str = "counterfoil order cancel 1";
const S04_ROUND: &str = "counterfoil job run residentIncomePaymentSelectionLockActivateAsyncTask";

fn leased() -> OrderFacts {
    let mut facts = activating(|_| {});
    facts.lock_batch = Some(batch("RUNNING", Some(9)));
    facts
}

fn abandoned() -> OrderFacts {
    let mut facts = activating(|t| t.status = Pending);
    facts.lock_batch = Some(batch("RUNNING", Some(9)));
    facts
}

fn released() -> OrderFacts {
    let mut facts = conflicted();
    facts.tasks.release = Some(task(Success));
    session(&mut facts).active_submit_id = None;
    facts
}

fn over() -> OrderFacts {
    let mut facts = released();
    session(&mut facts).invalidated = true;
    facts.conflicts = Conflicts::default();
    version(&mut facts).error_message = Some("it is a stranger's".into());
    facts
}

fn record_only() -> OrderFacts {
    let mut facts = published();
    facts.order.published_data_version = DataVersion(0);
    facts.tasks.activation = Some(task(Cancelled));
    facts
}

fn paying(kind: &str, push: Option<&str>) -> OrderFacts {
    let mut facts = decided("APPROVED", 40);
    facts.order.payment_type = Some(kind.into());
    facts.order.push_status = push.map(str::to_owned);
    facts
}

fn given_up(held: i64) -> OrderFacts {
    let mut facts = published();
    status(&mut facts, 90);
    facts.locks.reserved = held;
    facts.tasks.release = Some(task(Pending));
    facts
}

fn without_instance() -> OrderFacts {
    let mut facts = under_review_now();
    facts.approval = None;
    facts
}

fn draft() -> OrderFacts {
    OrderFacts { version: None, ..submitted() }
}

const WORK: &[Case] = &[
    (
        "pending S03",
        submitted,
        "Order PO1 is at S03 build, which waits for the next round of its handler.",
        &["counterfoil job run residentIncomePaymentSelectionSubmitBuildAsyncTask"],
    ),
    (
        "pending S04",
        published,
        "Order PO1 is at S04 lock activation, which waits for the next round of its handler.",
        &[S04_ROUND],
    ),
    (
        "running live",
        leased,
        "Order PO1 is at S04 lock activation, which is at work by w1: attempt 1, last seen at \
             2026-09-08T01:59:00Z.",
        &[],
    ),
    (
        "running stale",
        || activating(|t| t.touched = minutes(-11)),
        "Order PO1 is at S04 lock activation, which lost its process: attempt 1 was last seen \
             at 2026-09-08T01:49:00Z; the next round takes it over.",
        &[S04_ROUND],
    ),
    (
        "leased by another",
        abandoned,
        "Order PO1 is at S04 lock activation, which waits for the lease of w1, which ends at \
             2026-09-08T02:09:00Z.",
        &[],
    ),
    (
        "backed off",
        || {
            activating(|t| {
                (t.status, t.retries, t.due) = (Failed, 1, Some(minutes(10)));
                t.message = Some("no row".into());
            })
        },
        "Order PO1 is at S04 lock activation, which failed 1 of 3 times and is not due before \
             2026-09-08T02:10:00Z: no row.",
        &["counterfoil task trace RIPLA:1", "counterfoil task rerun RIPLA:1 --dry-run"],
    ),
    (
        "exhausted",
        || {
            activating(|t| {
                (t.status, t.retries, t.due) = (Failed, 3, Some(minutes(-10)));
                t.message = Some("no row".into());
            })
        },
        "Order PO1 is at S04 lock activation, which failed 3 of 3 times, has no tries left and \
             waits for a person: no row.",
        &["counterfoil task rerun RIPLA:1 --dry-run", "counterfoil task trace RIPLA:1"],
    ),
    (
        "parked",
        || activating(|t| (t.touched, t.lost, t.attempt) = (minutes(-11), 4, 5)),
        "Order PO1 is at S04 lock activation, which lost its process 5 times in a row, last \
             seen at 2026-09-08T01:49:00Z; the scan leaves it to a person.",
        &["counterfoil task rerun RIPLA:1 --dry-run", "counterfoil task trace RIPLA:1"],
    ),
];

const AUDIT_PLAN: &[Case] = &[
    (
        "S05 pending",
        completed,
        "Order PO1 is at S05 audit plan, which waits for the next round of its handler.",
        &["counterfoil job run residentIncomePaymentSelectionAuditPlanCreateAsyncTask"],
    ),
    (
        "S05 cancelled",
        || {
            handed_over(|f| {
                let cancelled = TaskFacts { message: Some("by hand".into()), ..task(Cancelled) };
                f.tasks.audit_plan = Some(cancelled);
            })
        },
        "Order PO1 is blocked at S05 audit plan, which was cancelled for good: by hand.",
        &["counterfoil task trace", REVISE, CANCEL],
    ),
    (
        "S05 missing",
        || handed_over(|f| f.tasks.audit_plan = None),
        "Order PO1 is blocked at S05 audit plan, which has no task on record, so nothing will \
             run it.",
        &["counterfoil check", REVISE, CANCEL],
    ),
    (
        "S05 exhausted",
        || {
            handed_over(|f| {
                f.tasks.audit_plan = Some(TaskFacts { retries: 3, ..task(Failed) });
            })
        },
        "Order PO1 is blocked at S05 audit plan, which failed 3 of 3 times, has no tries \
             left and waits for a person.",
        &["counterfoil task rerun", "counterfoil task trace"],
    ),
    (
        "S05 SUCCESS without a plan",
        || handed_over(|f| f.tasks.audit_plan = Some(task(Success))),
        "Order PO1 is at S05 audit plan, and its records contradict each other: S05 audit \
             plan is SUCCESS, but the version has no created plan.",
        &["counterfoil order timeline 1"],
    ),
];

const FAILED_SUBMISSION: &[Case] = &[
    (
        "conflicts, S06 pending",
        conflicted,
        "Order PO1 was not published: other orders hold 4 bills: S1 202609 by PO8; S2 \
             202609 by order 8; S3 202609 by PO8; …; before it is submitted again, S06 lock \
             release waits for the next round of its handler.",
        &["counterfoil job run residentIncomePaymentSelectionLockReleaseAsyncTask"],
    ),
    (
        "conflicts, S06 done",
        released,
        "Order PO1 was not published and may be submitted again: other orders hold 4 \
             bills: S1 202609 by PO8; S2 202609 by order 8; S3 202609 by PO8; ….",
        &["counterfoil session remove 3", "counterfoil session submit 3"],
    ),
    (
        "an invalid revision",
        over,
        "Order PO1 was not published, and session 3 is over: it is a stranger's.",
        &["counterfoil session create --user"],
    ),
];

const INCIDENT: &[Case] = &[
    (
        "P without V",
        pointer_only,
        "Order PO1 has a publish incident: it points to data version 1, whose record says \
             BUILT; the audit plan cannot be created until that is put right.",
        &["counterfoil order repair-publish 1 --reason", "counterfoil order timeline 1"],
    ),
    (
        "V without P",
        record_only,
        "Order PO1 has a publish incident: data version 1 says PUBLISHED, but the order points \
             to 0; nothing is activated or released, and a person must find out why.",
        &["counterfoil order timeline 1"],
    ),
];

const DECIDED: &[Case] = &[
    ("draft", draft, "Order PO1 is a draft: nothing was submitted.", &["by hand"]),
    (
        "under review",
        under_review_now,
        "Order PO1 is under review and waits for the reviewers of plan 9.",
        &["counterfoil review list"],
    ),
    (
        "decided, not called back",
        || decided("APPROVED", 20),
        "Order PO1 was approved by plan 9; the decision has not reached the order yet.",
        &["counterfoil review list", "counterfoil order timeline 1"],
    ),
    (
        "no instance",
        without_instance,
        "Order PO1 is under review, but its audit plan has no approval instance.",
        &["counterfoil check"],
    ),
    (
        "rejected",
        || decided("REJECTED", 30),
        "Order PO1 was rejected at 2026-09-08T01:58:00Z and waits for its creator to revise or \
             cancel it.",
        &[REVISE, CANCEL],
    ),
    (
        "waits for the treasury",
        || paying("TREASURY", Some("PUSHING")),
        "Order PO1 is approved and waits for payment (TREASURY, PUSHING).",
        &["counterfoil push-batch list --order 1"],
    ),
    (
        "waits offline",
        || paying("OFFLINE", None),
        "Order PO1 is approved and waits for its offline payment to be recorded.",
        &["counterfoil order record-payment 1"],
    ),
    ("paid", || decided("APPROVED", 50), "Order PO1 is paid in full.", &[]),
    (
        "nothing to pay",
        || decided("APPROVED", 55),
        "Order PO1 was approved and there is nothing to pay.",
        &[],
    ),
    (
        "cancelled, letting go",
        || given_up(3),
        "Order PO1 was cancelled and still holds 3 bills: S06 lock release waits for the next \
             round of its handler.",
        &["counterfoil job run residentIncomePaymentSelectionLockReleaseAsyncTask"],
    ),
    ("cancelled", || given_up(0), "Order PO1 was cancelled and holds no bill.", &[]),
];

#[test]
fn a_task_that_is_pending_at_work_stale_backed_off_or_used_up_is_told_apart() {
    holds_for(WORK);
}

#[test]
fn a_blocked_hand_over_is_not_mistaken_for_a_waiting_one() {
    holds_for(AUDIT_PLAN);
}

#[test]
fn a_failed_submission_lists_what_is_held_and_says_when_it_may_be_tried_again() {
    holds_for(FAILED_SUBMISSION);
}

#[test]
fn a_publish_incident_comes_before_everything_but_a_cancellation() {
    holds_for(INCIDENT);
    let told = verdict(&pointer_only());
    assert_eq!(told.notes, ["a publish incident is on record for session 3"]);
}

#[test]
fn review_rejection_payment_and_cancellation_have_their_own_words() {
    holds_for(DECIDED);
}

#[test]
fn a_failed_revision_is_a_note_on_the_published_version() {
    let mut facts = under_review_now();
    facts.failed_revision =
        Some(FailedRevision { data_version: DataVersion(2), why: "S1 202609 held by PO8".into() });
    let told = verdict(&facts);
    assert!(told.sentence.contains("under review"), "{told:?}");
    let note = "its last revision, data version 2, failed: S1 202609 held by PO8";
    assert_eq!(told.notes, [note]);
}
