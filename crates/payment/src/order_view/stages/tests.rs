//! The table of looks.

use counterfoil_task::TaskStatus::{Cancelled, Success};

use super::super::example::{
    activating, completed, conflicted, decided, handed_over, pointer_only, published, session,
    status, submitted, under_review_now,
};
use super::super::facts::Tasks;
use super::super::standing::tests::{batch, minutes, task};
use super::*;

/// The states of the stages by key, in short.
fn looks(facts: &OrderFacts) -> String {
    let short = |state| match state {
        StageState::Done => 'D',
        StageState::Running => 'R',
        StageState::Waiting => 'W',
        StageState::Trouble => 'T',
        StageState::Unknown => '?',
        StageState::NotYet => '-',
    };
    stages(facts)
        .iter()
        .map(|stage| short(stage.state))
        .collect()
}

#[test]
fn every_stage_has_its_look() {
    let cancelled = || {
        let mut facts = published();
        status(&mut facts, 90);
        facts.tasks.release = Some(task(Success));
        facts
    };
    let contradiction = || {
        let mut facts = published();
        facts.tasks.activation = Some(task(Success));
        facts
    };
    let imported = || {
        let mut facts = decided("APPROVED", 40);
        session(&mut facts).status = "SUBMITTING".into();
        facts.tasks = Tasks::default();
        facts
    };
    let table = [
        // submission, S03, publication, S04, S05, review, S07, S08, S12, S13, S09, payment (S06)
        ("submitted", submitted(), "DW----------"),
        ("conflicts", conflicted(), "DT----------W"),
        ("published", published(), "DDDW--------"),
        ("at work", activating(|_| {}), "DDDR--------"),
        (
            "S04 SUCCESS, session syncing",
            contradiction(),
            "DDD?--------",
        ),
        ("completed", completed(), "DDDDW-------"),
        (
            "blocked",
            handed_over(|f| f.tasks.audit_plan = Some(task(Cancelled))),
            "DDDDT-------",
        ),
        ("P without V", pointer_only(), "DDTDW-------"),
        ("under review", under_review_now(), "DDDDDW------"),
        ("decided", decided("APPROVED", 20), "DDDDDDW-----"),
        ("rejected", decided("REJECTED", 30), "DDDDDDD-----"),
        ("approved", decided("APPROVED", 40), "DDDDDDDD???-"),
        ("imported at WAIT_PAY", imported(), "DDD?-DDD???-"),
        ("paid", decided("APPROVED", 50), "DDDDDDDD???D"),
        ("cancelled", cancelled(), "DDD---------D"),
    ];
    for (name, facts, expected) in table {
        assert_eq!(looks(&facts), expected, "{name}");
    }
}

#[test]
fn a_stage_tells_its_owner_its_lease_and_its_next_try() {
    let mut facts = activating(|t| t.due = Some(minutes(5)));
    facts.lock_batch = Some(batch("RUNNING", Some(9)));
    let stage = activation(&facts);
    assert_eq!(stage.state, StageState::Running);
    assert_eq!(stage.owner.as_deref(), Some("w1"));
    assert_eq!(stage.lease_until, Some(minutes(9)));
    assert_eq!(stage.next_try, Some(minutes(5)));
    assert_eq!(
        (stage.retry_count, stage.max_retry_count),
        (Some(0), Some(3))
    );
    assert_eq!((stage.cursor, stage.processed_count), (Some(7), Some(2)));
    let blocked = audit_plan(&pointer_only());
    assert_eq!(blocked.blocker.as_deref(), Some("the publish record"));
}
