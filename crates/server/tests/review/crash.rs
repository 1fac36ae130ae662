//! The process dies on either side of every commit of S05; the next one ends the work once.

use counterfoil_db::{Db, FaultAction, FaultPlan, Side};
use counterfoil_task::RoundError;

use crate::centre::{self, working};
use crate::database::TestDb;
use crate::everywhere;
use crate::house::{House, LONG, http, round};

everywhere! {
    s05_commits_where_these_tests_strike;
    a_crash_before_creating_ends_created_once;
    a_crash_after_creating_ends_created_once;
    a_crash_before_created_ends_created_once;
    a_crash_after_created_ends_created_once;
    a_crash_before_create_failed_ends_created_once;
    a_crash_after_create_failed_ends_created_once;
    a_crash_before_the_failure_is_counted_ends_created_once;
    a_crash_after_the_failure_is_counted_ends_created_once;
    a_crash_inside_the_centre_ends_created_once;
}

pub fn arm(db: &Db, point: &str, side: Side) {
    let action = FaultAction::Crash;
    db.faults().arm(FaultPlan { point: point.to_owned(), side, passage: 1, action });
}

/// Should S05 get another commit point, this test asks for its crashes.
async fn s05_commits_where_these_tests_strike(test: TestDb) {
    let house = House::build(test).await;
    let points = async |minutes: i64, centre: String| {
        let db = house.process(minutes).await;
        db.faults().record();
        round(&db, http(&centre, LONG)).await.unwrap();
        db.faults().passed().into_iter().filter(|point| *point != "task.claim").collect::<Vec<_>>()
    };
    let failing = points(1, centre::down().await).await;
    assert_eq!(failing, ["audit_plan.creating", "audit_plan.create_failed", "task.failure"]);
    let passing = points(12, working(&house.db).await).await;
    assert_eq!(passing, ["audit_plan.creating", "audit_plan.created"]);
}

/// Dies at the point in a first round with `centre`; a second process, later, has a working one.
async fn crash_and_rerun(test: TestDb, point: &str, side: Side, is_centre_down: bool) {
    let house = House::build(test).await;
    let good = working(&house.db).await;
    let first = if is_centre_down { centre::down().await } else { good.clone() };
    let db = house.process(1).await;
    arm(&db, point, side);
    let died = round(&db, http(&first, LONG)).await.unwrap_err();
    assert!(matches!(died, RoundError::Lost { .. }), "{died:?}");
    assert!(!db.faults().is_armed(), "{point} was passed");
    db.close().await;
    // Stale after ten minutes, or due again after a counted failure.
    house.round(12, &good).await;
    house.assert_created_once().await;
    let again = house.round(30, &good).await;
    assert_eq!((again.selected, again.succeeded), (0, 0), "nothing is left to do");
    house.assert_created_once().await;
}

async fn a_crash_before_creating_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.creating", Side::Before, false).await;
}

async fn a_crash_after_creating_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.creating", Side::After, false).await;
}

async fn a_crash_before_created_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.created", Side::Before, false).await;
}

async fn a_crash_after_created_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.created", Side::After, false).await;
}

async fn a_crash_before_create_failed_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.create_failed", Side::Before, true).await;
}

async fn a_crash_after_create_failed_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "audit_plan.create_failed", Side::After, true).await;
}

async fn a_crash_before_the_failure_is_counted_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "task.failure", Side::Before, true).await;
}

async fn a_crash_after_the_failure_is_counted_ends_created_once(test: TestDb) {
    crash_and_rerun(test, "task.failure", Side::After, true).await;
}

/// The centre dies around its own commit: S05 sees a 500, no verdict, and asks again.
async fn a_crash_inside_the_centre_ends_created_once(test: TestDb) {
    let house = House::build(test).await;
    for (side, minutes) in [(Side::Before, 1), (Side::After, 12)] {
        let centres_own = house.process(0).await;
        arm(&centres_own, "review.opening", side);
        let summary = house.round(minutes, &working(&centres_own).await).await;
        assert_eq!(summary.failed, 1, "{summary:?}");
        assert_eq!(house.audit_plan_status().await, "CREATE_FAILED CREATE_FAILED");
    }
    assert_eq!(house.plans().await, "DOING");
    house.round(40, &working(&house.db).await).await;
    house.assert_created_once().await;
}
