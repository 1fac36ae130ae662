//! Either process, or both, killed at random while both sides are being written to.

use std::time::Duration;

use super::{TwoSides, TwoSidesPlan};
use crate::Random;

/// How to kill.
#[derive(Debug, Clone)]
pub struct SetKillPlan {
    /// The two sides.
    pub sides: TwoSidesPlan,
    /// How many processes are killed.
    pub kills: u32,
    /// What the random choices come from.
    pub seed: u64,
    /// Answers at the centre.
    pub answers: u32,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetKillReport {
    /// Kills of the centre.
    pub centre: u32,
    /// Kills of the hall.
    pub hall: u32,
    /// Kills that landed while a task was under way.
    pub under_way: u32,
    /// Tasks that were made.
    pub tasks: u32,
    /// Tasks that were taken up again from their cursor.
    pub resumed: i64,
}

/// Milliseconds between two kills, at most.
const MAX_PAUSE: u64 = 900;

/// Kills, and proves that the sets agree in the end. Panics when they do not.
pub async fn kill_both_sides(plan: &SetKillPlan) -> SetKillReport {
    let mut random = Random::new(plan.seed);
    let mut sides = TwoSides::make(&plan.sides, async |port| port).await;
    let mut report = SetKillReport::default();
    sides.put((0..plan.answers).map(|number| (number, format!("{{\"n\":{number}}}")))).await;
    sides.start().await;
    let mut task = sides.create().await;
    report.tasks = 1;
    let mut kills = 0;
    while kills < plan.kills {
        wait(Duration::from_millis(20 + random.below(MAX_PAUSE))).await;
        if sides.end_of(&task).await.is_some() {
            disturb(&sides, plan, &mut random).await;
            task = sides.create().await;
            report.tasks += 1;
            continue;
        }
        write_at_both(&sides, plan, &mut random).await;
        report.under_way += u32::from(sides.end_of(&task).await.is_none());
        let which = random.below(5);
        if which != 0 {
            let victim = if which.is_multiple_of(2) { &mut sides.centre } else { &mut sides.hall };
            let count = if which.is_multiple_of(2) { &mut report.centre } else { &mut report.hall };
            victim.kill().await;
            *count += 1;
            kills += 1;
            wait(Duration::from_millis(random.below(300))).await;
            victim.start().await;
        } else {
            sides.centre.kill().await;
            sides.hall.kill().await;
            report.centre += 1;
            report.hall += 1;
            kills += 2;
            sides.start().await;
        }
    }
    sides.ended(&task).await;
    // Nobody writes any more: two tasks later nothing can be left.
    let last = sides.create().await;
    sides.ended(&last).await;
    let proof = sides.create().await;
    assert_eq!(sides.ended(&proof).await, "COMPLETED", "seed {}: {report:?}", plan.seed);
    sides.assert_agree().await;
    let resumed = "SELECT COALESCE(SUM(resumed_count), 0) AS n FROM answer_reconcile_work";
    report.resumed = sides.hall.rows(resumed).await.concat().parse().unwrap_or(0);
    assert_nothing_newer_was_lost(&sides, plan).await;
    sides.remove().await;
    report
}

/// Lets real time pass: what is waited for is work of other processes.
async fn wait(pause: Duration) {
    tokio::time::sleep(pause).await;
}

/// Somebody removes and edits rows at the hall between two tasks.
async fn disturb(sides: &TwoSides, plan: &SetKillPlan, random: &mut Random) {
    let digit = random.below(16);
    sides
        .hall
        .execute(&format!("DELETE FROM fc_answer_projection WHERE answer_uuid LIKE '%{digit:x}'"))
        .await;
    let digit = random.below(16);
    sides
        .hall
        .execute(&format!(
            "UPDATE fc_answer_projection SET values_json = '[]',
               projection_version = projection_version + 1
             WHERE answer_uuid LIKE '%{digit:x}'"
        ))
        .await;
    write_at_both(sides, plan, random).await;
}

/// Writers at both sides: newer answers at the centre, and at the hall the business's own column.
async fn write_at_both(sides: &TwoSides, plan: &SetKillPlan, random: &mut Random) {
    let mut answers = std::collections::BTreeMap::new();
    for _ in 0..5 {
        let number = u32::try_from(random.below(u64::from(plan.answers) + 20)).unwrap_or(0);
        answers.insert(number, format!("{{\"again\":{}}}", random.below(1 << 40)));
    }
    sides.put(answers).await;
    let digit = random.below(16);
    sides
        .hall
        .execute(&format!(
            "UPDATE fc_answer_projection SET apply_id = 'kept',
               projection_version = projection_version + 1
             WHERE answer_uuid LIKE '%{digit:x}'"
        ))
        .await;
}

/// Every answer at the hall has its last content: its hash is its own, and it was never set back.
async fn assert_nothing_newer_was_lost(sides: &TwoSides, plan: &SetKillPlan) {
    let rules = counterfoil_reconcile::rules::RULES;
    for db in [&sides.centre.db, &sides.hall.db] {
        for rule in rules {
            let breach = counterfoil_task::check(db, rule).await.expect("the rule is read");
            assert_eq!(breach, None, "seed {}", plan.seed);
        }
        let lying = counterfoil_reconcile::rules::check_hashes(db).await.expect("rows are read");
        assert_eq!(lying, None, "seed {}", plan.seed);
    }
}
