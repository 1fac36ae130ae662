//! An order that goes on, or is given up, while its plan is being opened.

use std::sync::atomic::Ordering;

use crate::centre::{self, meanwhile, working};
use crate::database::TestDb;
use crate::everywhere;
use crate::house::{House, LONG, http, round};

everywhere! {
    a_version_that_was_overtaken_is_cancelled_and_nobody_is_asked;
    an_order_that_moves_on_during_the_call_is_left_alone_and_the_plan_withdrawn;
    an_order_cancelled_during_the_call_with_its_tasks_leaves_no_plan_behind;
    a_failure_of_a_version_that_was_overtaken_meanwhile_is_no_failure;
    a_plan_left_by_a_crash_is_withdrawn_when_the_order_has_moved_on;
}

const MOVE_ON: &str = "UPDATE fi_resident_income_payment_order
    SET current_publish_version = 2, submit_round = 2 WHERE id = 2";
const CANCEL: &str = "UPDATE fi_resident_income_payment_order SET status = 90 WHERE id = 2";
const CANCEL_TASKS: &str = "UPDATE fi_async_task SET task_status = 4";

async fn untouched(house: &House) {
    let order = "SELECT CONCAT(business_status, '|', COALESCE(review_plan_id, 0)) AS line
                 FROM fi_resident_income_payment_order";
    assert_eq!(house.column(order).await, "PENDING_AUDIT_PLAN|0");
    assert_eq!(house.instances().await, "");
    house.assert_rules_hold().await;
}

async fn a_version_that_was_overtaken_is_cancelled_and_nobody_is_asked(test: TestDb) {
    let house = House::build(test).await;
    house.by_hand(MOVE_ON).await;
    let (centre, asked) = centre::counting(&house.db).await;
    let summary = house.round(1, &centre).await;
    assert_eq!((summary.cancelled, summary.failed), (1, 0), "{summary:?}");
    assert_eq!(house.task().await, "4|0|order 2 moved on to data version 2, round 2");
    assert_eq!(house.audit_plan_status().await, "- -");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    untouched(&house).await;
}

async fn an_order_that_moves_on_during_the_call_is_left_alone_and_the_plan_withdrawn(test: TestDb) {
    let house = House::build(test).await;
    let summary = house.round(1, &meanwhile(&house.db, &[MOVE_ON]).await).await;
    assert_eq!((summary.cancelled, summary.failed), (1, 0), "{summary:?}");
    assert_eq!(house.plans().await, "WITHDRAWN");
    assert_eq!(house.audit_plan_status().await, "CREATING CREATING");
    untouched(&house).await;
}

async fn an_order_cancelled_during_the_call_with_its_tasks_leaves_no_plan_behind(test: TestDb) {
    let house = House::build(test).await;
    let centre = meanwhile(&house.db, &[CANCEL, CANCEL_TASKS]).await;
    let summary = house.round(1, &centre).await;
    assert_eq!((summary.skipped, summary.failed), (1, 0), "{summary:?}");
    assert_eq!(house.task().await, "4|0|-");
    assert_eq!(house.plans().await, "WITHDRAWN");
    untouched(&house).await;
}

async fn a_failure_of_a_version_that_was_overtaken_meanwhile_is_no_failure(test: TestDb) {
    let house = House::build(test).await;
    house.by_hand("UPDATE sys_partner SET manager_b_user_id = 7").await;
    let summary = house.round(1, &meanwhile(&house.db, &[MOVE_ON]).await).await;
    assert_eq!((summary.cancelled, summary.failed), (1, 0), "{summary:?}");
    untouched(&house).await;
}

async fn a_plan_left_by_a_crash_is_withdrawn_when_the_order_has_moved_on(test: TestDb) {
    let house = House::build(test).await;
    let centre = working(&house.db).await;
    let db = house.process(1).await;
    crate::crash::arm(&db, "audit_plan.created", counterfoil_db::Side::Before);
    round(&db, http(&centre, LONG)).await.unwrap_err();
    assert_eq!(house.plans().await, "DOING");
    house.by_hand(CANCEL).await;
    let summary = house.round(12, &centre).await;
    assert_eq!(summary.cancelled, 1, "{summary:?}");
    assert_eq!(house.task().await, "4|0|order 2 is cancelled");
    assert_eq!(house.plans().await, "WITHDRAWN");
    untouched(&house).await;
}
