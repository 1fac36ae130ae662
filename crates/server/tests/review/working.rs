//! S05 when nothing goes wrong.

use counterfoil_protocol::UserId;
use counterfoil_review::decision::approve;
use counterfoil_review::states::PlanStatus;

use crate::centre::{self, working};
use crate::database::TestDb;
use crate::everywhere;
use crate::house::House;

everywhere! {
    a_published_version_gets_its_audit_plan_over_http;
    all_managers_of_the_partners_are_asked_and_any_one_decides;
    a_newer_version_gets_a_plan_of_its_own_and_the_older_one_is_withdrawn;
    a_plan_that_has_an_instance_gets_no_second_one;
    another_plan_of_the_same_version_gets_the_next_approval_attempt;
    two_processes_running_s05_at_once_open_one_plan;
    a_created_plan_without_its_instance_breaks_the_rule;
}

async fn a_published_version_gets_its_audit_plan_over_http(test: TestDb) {
    let house = House::build(test).await;
    let summary = house.round(1, &working(&house.db).await).await;
    assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
    house.assert_created_once().await;
    let plan = "SELECT CONCAT(from_id, '|', from_num, '|', type, '|', epctenantid, '|',
                  organisation, '|', submitter, '|', submit_round, '|', data_version) AS line
                FROM review_business_plan";
    assert_eq!(
        house.column(plan).await,
        "2|PO20260901000001|RESIDENT_INCOME_PAYMENT_REVIEW|T1|ORG1|7|1|1"
    );
}

async fn all_managers_of_the_partners_are_asked_and_any_one_decides(test: TestDb) {
    let house = House::build(test).await;
    house.round(1, &working(&house.db).await).await;
    let users = "SELECT user_id FROM review_business_node_user ORDER BY node_id, user_id";
    assert_eq!(house.column(users).await, "11 12 21");
    let plan = house.column("SELECT review_plan_id FROM fi_resident_income_payment_order").await;
    let plan = plan.parse().unwrap();
    approve(&house.db, plan, UserId(12), "").await.unwrap();
    let last = approve(&house.db, plan, UserId(21), "").await.unwrap();
    assert_eq!(last.status, PlanStatus::Passed);
}

async fn a_newer_version_gets_a_plan_of_its_own_and_the_older_one_is_withdrawn(test: TestDb) {
    let house = House::build(test).await;
    let centre = working(&house.db).await;
    house.round(1, &centre).await;
    house.publish(2).await;
    let summary = house.round(2, &centre).await;
    assert_eq!((summary.selected, summary.succeeded), (1, 1));
    assert_eq!(house.plans().await, "WITHDRAWN DOING");
    assert_eq!(house.instances().await, "1/1/1/IN_REVIEW 2/2/1/IN_REVIEW");
    let current = "SELECT p.submit_round FROM fi_resident_income_payment_order o
                   JOIN review_business_plan p ON p.id = o.review_plan_id";
    assert_eq!(house.column(current).await, "2");
    house.assert_rules_hold().await;
}

async fn a_plan_that_has_an_instance_gets_no_second_one(test: TestDb) {
    let house = House::build(test).await;
    let rows = [
        "INSERT INTO review_business_plan (id, from_id, from_num, type, epctenantid, status)
         VALUES (5, 2, 'X', 'RESIDENT_INCOME_PAYMENT_REVIEW', 'T1', 'DOING')",
        "INSERT INTO fi_resident_income_payment_order_approval_instance
           (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
         VALUES (2, 1, 1, 5, 1)",
    ];
    for row in rows {
        house.by_hand(row).await;
    }
    house.round(1, &working(&house.db).await).await;
    house.assert_created_once().await;
}

async fn another_plan_of_the_same_version_gets_the_next_approval_attempt(test: TestDb) {
    let house = House::build(test).await;
    let row = "INSERT INTO fi_resident_income_payment_order_approval_instance
                 (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
               VALUES (2, 1, 3, 99, 1)";
    house.by_hand(row).await;
    house.round(1, &working(&house.db).await).await;
    assert_eq!(house.instances().await, "1/1/3/IN_REVIEW 1/1/4/IN_REVIEW");
}

async fn two_processes_running_s05_at_once_open_one_plan(test: TestDb) {
    let house = House::build(test).await;
    let (centre, asked) = centre::counting(&house.db).await;
    let (one, two) = tokio::join!(house.round(1, &centre), house.round(1, &centre));
    assert_eq!(one.succeeded + two.succeeded, 1, "{one:?} {two:?}");
    assert_eq!(one.failed + two.failed, 0, "{one:?} {two:?}");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1);
    house.assert_created_once().await;
}

async fn a_created_plan_without_its_instance_breaks_the_rule(test: TestDb) {
    let house = House::build(test).await;
    house.round(1, &working(&house.db).await).await;
    let instance = "UPDATE fi_resident_income_payment_order_approval_instance SET deleted = 1";
    house.by_hand(instance).await;
    for rule in counterfoil_payment::audit_plan::RULES {
        let breach = counterfoil_task::check(&house.db, rule).await.unwrap();
        assert_eq!(breach.map(|breach| breach.rows.len()), Some(1), "{}", rule.name);
    }
}
