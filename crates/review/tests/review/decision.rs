//! Who may decide, when, and what follows.

use std::sync::Arc;

use counterfoil_db::{FaultAction, FaultPlan, Settings, Side};
use counterfoil_protocol::{PlanId, UserId};
use counterfoil_review::decision::{Decision, Verdict, approve, decide, reject};
use counterfoil_review::plan_opening::{How, open};
use counterfoil_review::states::PlanStatus;
use counterfoil_task::Kicker;

use crate::database::TestDb;
use crate::{
    A, A_TOO, B, SUBMITTER, assert_rules_hold, by_hand, column, everywhere, opened, opening,
    review_centre,
};

everywhere! {
    the_last_approval_passes_the_plan_and_frees_its_key;
    a_rejection_ends_the_plan_at_once_with_its_remark;
    nobody_decides_twice;
    the_submitter_never_reviews_his_own_order;
    the_database_itself_keeps_the_submitter_from_deciding;
    only_an_assigned_reviewer_of_the_current_node_decides;
    a_plan_that_has_ended_takes_no_decision;
    a_decision_about_a_node_that_lost_the_turn_is_refused;
    two_reviewers_of_one_node_decide_it_once;
    a_reviewer_who_is_needed_later_leaves_the_node_to_his_colleague;
    a_crash_around_a_decision_leaves_all_of_it_or_nothing;
}

const PLANS: &str = "SELECT CONCAT(status, '|', COALESCE(active_key, '-'), '|',
    COALESCE(finish_user_id, 0), '|', COALESCE(finish_remark, '-')) AS line
  FROM review_business_plan ORDER BY id";

async fn the_last_approval_passes_the_plan_and_frees_its_key(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    let first = approve(&db, plan, A_TOO, "fine").await.unwrap();
    assert_eq!(first.status, PlanStatus::Doing);
    assert_eq!(first.next_node_code.as_deref(), Some("OPERATION_MANAGER_B"));
    let last = approve(&db, plan, B, "agreed").await.unwrap();
    assert_eq!((last.status, last.next_node_code), (PlanStatus::Passed, None));
    assert_eq!(column(&db, PLANS).await, "PASSED|-|21|agreed");
    let log = "SELECT CONCAT(action, '>', to_status) AS line FROM review_business_log ORDER BY id";
    assert_eq!(column(&db, log).await, "START>DOING APPROVE>DOING APPROVE>PASSED");
    let users = "SELECT CONCAT(user_id, '=', COALESCE(decision, '-')) AS line
                 FROM review_business_node_user ORDER BY user_id";
    assert_eq!(column(&db, users).await, "11=- 12=APPROVE 21=APPROVE 22=-");
    assert_rules_hold(&db).await;
}

async fn a_rejection_ends_the_plan_at_once_with_its_remark(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    let decided = reject(&db, plan, A, "金额不符").await.unwrap();
    assert_eq!((decided.status, decided.next_node_code), (PlanStatus::Rejected, None));
    assert_eq!(column(&db, PLANS).await, "REJECTED|-|11|金额不符");
    let nodes = "SELECT status FROM review_business_node ORDER BY sort";
    assert_eq!(column(&db, nodes).await, "REJECTED CLOSED");
    let next = open(&db, &opening(2)).await.unwrap();
    assert_eq!(next.how, How::Created);
    assert_rules_hold(&db).await;
}

async fn nobody_decides_twice(test: TestDb) {
    let db = review_centre(&test).await;
    let mut both = opening(1);
    both.managers_b.push(A);
    let plan = opened(&db, &both).await;
    approve(&db, plan, A, "").await.unwrap();
    for again in [approve(&db, plan, A, "").await, reject(&db, plan, A, "").await] {
        assert_eq!(again.unwrap_err().code(), "review-already-decided");
    }
    // The database holds it too: the second node of the plan by the same person.
    let second = "UPDATE review_business_node SET decided_by = 11 WHERE node_code LIKE '%_B'";
    let refused = by_hand(&db, second).await.unwrap_err();
    assert!(matches!(refused, counterfoil_db::Error::Duplicate(_)), "{refused:?}");
    assert_eq!(approve(&db, plan, B, "").await.unwrap().status, PlanStatus::Passed);
    assert_eq!(approve(&db, plan, B, "").await.unwrap_err().code(), "review-already-decided");
}

async fn the_submitter_never_reviews_his_own_order(test: TestDb) {
    let db = review_centre(&test).await;
    let mut own = opening(1);
    own.managers_a.push(SUBMITTER);
    let plan = opened(&db, &own).await;
    let users = "SELECT user_id FROM review_business_node_user ORDER BY user_id";
    assert_eq!(column(&db, users).await, "11 12 21 22", "he is not even assigned");
    // Nor when an administrator makes him a reviewer.
    let assign = "INSERT INTO review_business_node_user (node_id, user_id, has_turn)
                  SELECT id, 7, 1 FROM review_business_node WHERE node_code LIKE '%_A'";
    by_hand(&db, assign).await.unwrap();
    for own in [approve(&db, plan, SUBMITTER, "").await, reject(&db, plan, SUBMITTER, "").await] {
        assert_eq!(own.unwrap_err().code(), "review-own-order");
    }
    let nodes = "SELECT status FROM review_business_node ORDER BY sort";
    assert_eq!(column(&db, nodes).await, "DOING WAITING");
}

async fn the_database_itself_keeps_the_submitter_from_deciding(test: TestDb) {
    let db = review_centre(&test).await;
    opened(&db, &opening(1)).await;
    let assign = "UPDATE review_business_node_user SET user_id = 7 WHERE user_id = 11";
    by_hand(&db, assign).await.unwrap();
    let statements = [
        "UPDATE review_business_node SET decided_by = 7 WHERE node_code LIKE '%_A'",
        "UPDATE review_business_node_user SET decision = 'APPROVE' WHERE user_id = 7",
    ];
    for statement in statements {
        assert!(by_hand(&db, statement).await.is_err(), "{statement}");
    }
    let other = "UPDATE review_business_node_user SET decision = 'APPROVE' WHERE user_id = 12";
    assert_eq!(by_hand(&db, other).await.unwrap(), 1);
}

async fn only_an_assigned_reviewer_of_the_current_node_decides(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    assert_eq!(approve(&db, plan, B, "").await.unwrap_err().code(), "review-not-your-turn");
    let stranger = approve(&db, plan, UserId(99), "").await.unwrap_err();
    assert_eq!(stranger.code(), "review-not-assigned");
    let nowhere = approve(&db, PlanId(424_242), A, "").await.unwrap_err();
    assert_eq!(nowhere.code(), "review-plan-not-found");
    approve(&db, plan, A, "").await.unwrap();
    assert_eq!(approve(&db, plan, A_TOO, "").await.unwrap_err().code(), "review-not-your-turn");
    let long = "x".repeat(1001);
    assert_eq!(approve(&db, plan, B, &long).await.unwrap_err().code(), "invalid-input");
}

async fn a_plan_that_has_ended_takes_no_decision(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    reject(&db, plan, A, "").await.unwrap();
    for user in [A_TOO, B] {
        let late = approve(&db, plan, user, "").await.unwrap_err();
        assert_eq!(late.code(), "review-plan-state");
    }
    assert_eq!(column(&db, PLANS).await, "REJECTED|-|11|");
}

async fn a_decision_about_a_node_that_lost_the_turn_is_refused(test: TestDb) {
    let db = review_centre(&test).await;
    let mut both = opening(1);
    both.managers_b.push(A_TOO);
    let plan = opened(&db, &both).await;
    let seen = column(&db, "SELECT id FROM review_business_node WHERE status = 'DOING'").await;
    let seen: i64 = seen.parse().unwrap();
    approve(&db, plan, A, "").await.unwrap();
    let mut late = Decision {
        plan,
        user: A_TOO,
        verdict: Verdict::Approve,
        remark: String::new(),
        node: Some(seen),
    };
    // He looked at node A, which his colleague has decided by now: his click must not decide B.
    assert_eq!(
        decide(&db, &Kicker::none(), &late).await.unwrap_err().code(),
        "review-node-not-current"
    );
    late.node = None;
    assert_eq!(decide(&db, &Kicker::none(), &late).await.unwrap().status, PlanStatus::Passed);
}

async fn two_reviewers_of_one_node_decide_it_once(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    let start = Arc::new(tokio::sync::Barrier::new(8));
    let mut racers = Vec::new();
    for at in 0..8 {
        let db = test.open(Settings { max_connections: 1, ..Settings::default() }).await;
        let start = Arc::clone(&start);
        racers.push(tokio::spawn(async move {
            start.wait().await;
            let user = if at % 2 == 0 { A } else { A_TOO };
            if at % 3 == 0 {
                reject(&db, plan, user, "").await
            } else {
                approve(&db, plan, user, "").await
            }
        }));
    }
    let mut won = 0;
    for racer in racers {
        match racer.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert!(error.is_refusal(), "{error:?}"),
        }
    }
    assert_eq!(won, 1);
    let decided = "SELECT COUNT(*) AS n FROM review_business_node_user WHERE decision IS NOT NULL";
    assert_eq!(column(&db, decided).await, "1");
    assert_rules_hold(&db).await;
}

async fn a_reviewer_who_is_needed_later_leaves_the_node_to_his_colleague(test: TestDb) {
    let db = review_centre(&test).await;
    let mut tight = opening(1);
    tight.managers_b = vec![A];
    let plan = opened(&db, &tight).await;
    assert_eq!(approve(&db, plan, A, "").await.unwrap_err().code(), "review-needed-later");
    approve(&db, plan, A_TOO, "").await.unwrap();
    assert_eq!(approve(&db, plan, A, "").await.unwrap().status, PlanStatus::Passed);
}

async fn a_crash_around_a_decision_leaves_all_of_it_or_nothing(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    let arm = |side| {
        let point = "review.decision".into();
        db.faults().arm(FaultPlan { point, side, passage: 1, action: FaultAction::Crash });
    };
    arm(Side::Before);
    assert_eq!(approve(&db, plan, A, "").await.unwrap_err().code(), "database-error");
    let nodes = "SELECT status FROM review_business_node ORDER BY sort";
    assert_eq!(column(&db, nodes).await, "DOING WAITING");
    arm(Side::After);
    assert_eq!(approve(&db, plan, A, "").await.unwrap_err().code(), "database-error");
    assert_eq!(column(&db, nodes).await, "PASSED DOING");
    assert_eq!(approve(&db, plan, A, "").await.unwrap_err().code(), "review-already-decided");
    assert_rules_hold(&db).await;
}
