//! One plan a round, whoever asks for it and how often.

use std::sync::Arc;

use counterfoil_db::{Settings, migrate};
use counterfoil_protocol::{PlanId, UserId};
use counterfoil_review::decision::approve;
use counterfoil_review::plan_opening::{How, PlanOpening, open};
use counterfoil_review::{MIGRATIONS, ReviewError};

use crate::database::TestDb;
use crate::review_centre;
use crate::{A, B, SUBMITTER, assert_rules_hold, by_hand, column, everywhere, opened, opening};

everywhere! {
    a_plan_is_built_from_the_configuration_and_started;
    the_same_round_gets_the_same_plan_however_often_it_asks;
    a_plan_made_by_hand_and_not_begun_is_started_with_nodes_and_key;
    a_plan_under_way_made_by_hand_is_reused;
    a_newer_round_withdraws_the_older_plan_and_builds_its_own;
    a_round_below_the_newest_plan_is_refused_and_changes_nothing;
    a_plan_opened_beforehand_in_another_name_is_not_the_submitters;
    other_orders_types_and_tenants_have_plans_of_their_own;
    many_concurrent_creations_make_one_plan;
    many_concurrent_creations_of_a_newer_round_replace_the_older_plan_once;
    a_late_old_round_never_replaces_a_newer_one_however_they_race;
    a_plan_that_nobody_could_decide_is_refused_and_leaves_nothing;
    wrong_input_is_refused_by_field_before_anything_is_written;
    a_type_without_configuration_is_refused;
}

async fn a_plan_is_built_from_the_configuration_and_started(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    let row = "SELECT CONCAT(from_id, '|', from_num, '|', type, '|', epctenantid, '|', status, '|',
                 active_key, '|', submit_round, '|', data_version, '|', submitter, '|',
                 organisation) AS line FROM review_business_plan";
    assert_eq!(
        column(&db, row).await,
        "100|PO20260901000001|RESIDENT_INCOME_PAYMENT_REVIEW|T1|DOING|\
         RESIDENT_INCOME_PAYMENT_REVIEW:T1:100|1|1|7|ORG1"
    );
    let nodes = "SELECT CONCAT(node_code, '=', status) AS line
                 FROM review_business_node ORDER BY sort";
    let expected = "OPERATION_MANAGER_A=DOING OPERATION_MANAGER_B=WAITING";
    assert_eq!(column(&db, nodes).await, expected);
    let users = "SELECT user_id FROM review_business_node_user ORDER BY node_id, user_id";
    assert_eq!(column(&db, users).await, "11 12 21 22");
    let log = "SELECT operation_remark FROM review_business_log";
    assert_eq!(column(&db, log).await, "发起审核");
    let links = "SELECT COUNT(*) AS links FROM review_business_link";
    assert_eq!(column(&db, links).await, "3");
    assert!(plan.0 >= 1);
    assert_rules_hold(&db).await;
}

async fn the_same_round_gets_the_same_plan_however_often_it_asks(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    approve(&db, plan, A, "").await.unwrap();
    let again = open(&db, &opening(1)).await.unwrap();
    assert_eq!((again.plan, again.how), (plan, How::Reused));
    let nodes = "SELECT status FROM review_business_node ORDER BY sort";
    assert_eq!(column(&db, nodes).await, "PASSED DOING", "a decision outlives the question");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "1");
}

async fn a_plan_made_by_hand_and_not_begun_is_started_with_nodes_and_key(test: TestDb) {
    let db = review_centre(&test).await;
    let row = "INSERT INTO review_business_plan (id, from_id, from_num, type, epctenantid, status)
               VALUES (5, 100, 'X', 'RESIDENT_INCOME_PAYMENT_REVIEW', 'T1', 'NO_START')";
    by_hand(&db, row).await.unwrap();
    let started = open(&db, &opening(1)).await.unwrap();
    assert_eq!((started.plan, started.how), (PlanId(5), How::Started));
    let plan = "SELECT CONCAT(status, '|', active_key, '|', submitter) AS line
                FROM review_business_plan";
    let expected = "DOING|RESIDENT_INCOME_PAYMENT_REVIEW:T1:100|7";
    assert_eq!(column(&db, plan).await, expected);
    approve(&db, PlanId(5), A, "").await.unwrap();
    approve(&db, PlanId(5), B, "").await.unwrap();
    assert_rules_hold(&db).await;
}

async fn a_plan_under_way_made_by_hand_is_reused(test: TestDb) {
    let db = review_centre(&test).await;
    let row = "INSERT INTO review_business_plan
                 (id, from_id, from_num, type, epctenantid, status, active_key)
               VALUES (5, 100, 'X', 'RESIDENT_INCOME_PAYMENT_REVIEW', 'T1', 'DOING', 'any key')";
    by_hand(&db, row).await.unwrap();
    let reused = open(&db, &opening(1)).await.unwrap();
    assert_eq!((reused.plan, reused.how), (PlanId(5), How::Reused));
    assert_rules_hold(&db).await;
    let newer = open(&db, &opening(2)).await.unwrap();
    assert_eq!(newer.how, How::Created);
    let plans = "SELECT status FROM review_business_plan ORDER BY id";
    assert_eq!(column(&db, plans).await, "WITHDRAWN DOING");
}

async fn a_newer_round_withdraws_the_older_plan_and_builds_its_own(test: TestDb) {
    let db = review_centre(&test).await;
    let old = opened(&db, &opening(1)).await;
    approve(&db, old, A, "").await.unwrap();
    let new = opened(&db, &opening(2)).await;
    assert_ne!(old, new);
    let plans = "SELECT CONCAT(status, '|', COALESCE(active_key, '-')) AS line
                 FROM review_business_plan ORDER BY id";
    let expected = "WITHDRAWN|- DOING|RESIDENT_INCOME_PAYMENT_REVIEW:T1:100";
    assert_eq!(column(&db, plans).await, expected);
    let nodes = "SELECT status FROM review_business_node ORDER BY plan_id, sort";
    assert_eq!(column(&db, nodes).await, "PASSED CLOSED DOING WAITING");
    let late = approve(&db, old, B, "").await.unwrap_err();
    assert_eq!(late.code(), "review-plan-state", "V1's reviews never decide V2");
    assert_rules_hold(&db).await;
}

async fn a_round_below_the_newest_plan_is_refused_and_changes_nothing(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(2)).await;
    for ended in [false, true] {
        if ended {
            approve(&db, plan, A, "").await.unwrap();
            approve(&db, plan, B, "").await.unwrap();
        }
        let refused = open(&db, &opening(1)).await.unwrap_err();
        assert_eq!(refused.code(), "review-round-stale");
        let older_data = PlanOpening { data_version: opening(1).data_version, ..opening(2) };
        assert_eq!(open(&db, &older_data).await.unwrap_err().code(), "review-round-stale");
        assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "1");
    }
}

// Found by a reviewer of the whole: a plan opened in another's name before the order existed let
// its submitter approve it.
async fn a_plan_opened_beforehand_in_another_name_is_not_the_submitters(test: TestDb) {
    let db = review_centre(&test).await;
    let stranger = PlanOpening { submitter: UserId(123_456), ..opening(1) };
    let plan = opened(&db, &stranger).await;
    let refused = open(&db, &opening(1)).await.unwrap_err();
    assert_eq!(refused.code(), "review-other-submitter");
    let plans = "SELECT CONCAT(status, '|', submitter) AS line FROM review_business_plan";
    assert_eq!(column(&db, plans).await, "DOING|123456");
    let again = open(&db, &stranger).await.unwrap();
    assert_eq!((again.plan, again.how), (plan, How::Reused));
}

async fn other_orders_types_and_tenants_have_plans_of_their_own(test: TestDb) {
    let db = review_centre(&test).await;
    let first = opened(&db, &opening(2)).await;
    let tenant = PlanOpening { epctenantid: "t1".into(), ..opening(1) };
    let second = opened(&db, &tenant).await;
    let order = PlanOpening { from_id: counterfoil_protocol::OrderId(101), ..opening(1) };
    let third = opened(&db, &order).await;
    assert!(first != second && second != third);
    let plans = "SELECT status FROM review_business_plan ORDER BY id";
    assert_eq!(column(&db, plans).await, "DOING DOING DOING");
}

/// How many connections race.
const RACERS: usize = 12;

/// Opens `openings` at the same moment, each over a connection of its own.
async fn race(
    test: &TestDb,
    openings: Vec<PlanOpening>,
) -> Vec<Result<(PlanId, How), ReviewError>> {
    let start = Arc::new(tokio::sync::Barrier::new(openings.len()));
    let mut racers = Vec::new();
    for opening in openings {
        let db = test.open(Settings { max_connections: 1, ..Settings::default() }).await;
        let start = Arc::clone(&start);
        racers.push(tokio::spawn(async move {
            start.wait().await;
            let opened = open(&db, &opening).await;
            db.close().await;
            opened.map(|opened| (opened.plan, opened.how))
        }));
    }
    let mut outcomes = Vec::new();
    for racer in racers {
        outcomes.push(racer.await.unwrap());
    }
    outcomes
}

async fn many_concurrent_creations_make_one_plan(test: TestDb) {
    let db = review_centre(&test).await;
    let outcomes = race(&test, vec![opening(1); RACERS]).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert!(outcomes.iter().all(|(plan, _)| *plan == outcomes[0].0), "{outcomes:?}");
    let created = outcomes.iter().filter(|(_, how)| *how == How::Created).count();
    assert_eq!(created, 1, "{outcomes:?}");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "1");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_node").await, "2");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_log").await, "1");
    assert_rules_hold(&db).await;
}

async fn many_concurrent_creations_of_a_newer_round_replace_the_older_plan_once(test: TestDb) {
    let db = review_centre(&test).await;
    opened(&db, &opening(1)).await;
    let outcomes = race(&test, vec![opening(2); RACERS]).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert!(outcomes.iter().all(|(plan, _)| *plan == outcomes[0].0), "{outcomes:?}");
    let plans = "SELECT status FROM review_business_plan ORDER BY id";
    assert_eq!(column(&db, plans).await, "WITHDRAWN DOING");
    assert_rules_hold(&db).await;
}

async fn a_late_old_round_never_replaces_a_newer_one_however_they_race(test: TestDb) {
    let db = review_centre(&test).await;
    let openings = (0..RACERS).map(|at| opening(1 + i64::from(at % 2 == 0))).collect();
    for outcome in race(&test, openings).await {
        match outcome {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), "review-round-stale", "{error:?}"),
        }
    }
    let active = "SELECT submit_round FROM review_business_plan WHERE status = 'DOING'";
    assert_eq!(column(&db, active).await, "2");
    assert_rules_hold(&db).await;
}

async fn a_plan_that_nobody_could_decide_is_refused_and_leaves_nothing(test: TestDb) {
    let db = review_centre(&test).await;
    let staffed = |a: &[UserId], b: &[UserId]| PlanOpening {
        managers_a: a.to_vec(),
        managers_b: b.to_vec(),
        ..opening(1)
    };
    let table = [
        (staffed(&[], &[B]), "OPERATION_MANAGER_A has no reviewer other than the submitter"),
        (staffed(&[A], &[SUBMITTER]), "OPERATION_MANAGER_B has no reviewer other than"),
        (staffed(&[A], &[A]), "OPERATION_MANAGER_B has no reviewer of its own: user 11"),
    ];
    for (opening, message) in table {
        let refused = open(&db, &opening).await.unwrap_err();
        assert_eq!(refused.code(), "review-nobody-left");
        assert!(refused.to_string().contains(message), "{refused}");
    }
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "0");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_node").await, "0");
}

async fn wrong_input_is_refused_by_field_before_anything_is_written(test: TestDb) {
    let db = review_centre(&test).await;
    let long = "x".repeat(65);
    let table = [
        ("fromId", PlanOpening { from_id: counterfoil_protocol::OrderId(0), ..opening(1) }),
        ("submitter", PlanOpening { submitter: UserId(0), ..opening(1) }),
        ("submitRound", opening(0)),
        ("type", PlanOpening { type_name: String::new(), ..opening(1) }),
        ("epctenantid", PlanOpening { epctenantid: long.clone(), ..opening(1) }),
        ("fromNum", PlanOpening { from_num: long, ..opening(1) }),
        ("managersA", PlanOpening { managers_a: vec![UserId(-1)], ..opening(1) }),
        ("managersB", PlanOpening { managers_b: vec![B; 201], ..opening(1) }),
    ];
    for (name, opening) in table {
        match open(&db, &opening).await.unwrap_err() {
            ReviewError::Invalid { field, .. } => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "0");
}

async fn a_type_without_configuration_is_refused(test: TestDb) {
    let db = test.open(Settings::default()).await;
    migrate(&db, MIGRATIONS).await.unwrap();
    let refused = open(&db, &opening(1)).await.unwrap_err();
    assert_eq!(refused.code(), "review-not-configured");
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "0");
}
