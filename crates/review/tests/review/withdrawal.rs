//! Plans whose order was given up.

use counterfoil_protocol::{OrderId, SubmitRound};
use counterfoil_review::decision::approve;
use counterfoil_review::plan_opening::{How, open};
use counterfoil_review::withdrawal::{Withdrawal, withdraw};

use crate::database::TestDb;
use crate::{A, B, assert_rules_hold, column, everywhere, opened, opening, review_centre};

everywhere! {
    a_withdrawn_plan_takes_no_decision_and_frees_its_key;
    a_plan_that_was_decided_is_not_withdrawn;
    a_withdrawal_through_an_older_round_leaves_the_newer_plan_alone;
}

fn withdrawal(through_round: Option<i64>) -> Withdrawal {
    Withdrawal {
        from_id: OrderId(100),
        type_name: opening(1).type_name,
        through_round: through_round.map(SubmitRound),
        operator: None,
        reason: "ORDER_CANCELLED".into(),
    }
}

async fn a_withdrawn_plan_takes_no_decision_and_frees_its_key(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    assert_eq!(withdraw(&db, &withdrawal(None)).await.unwrap(), [plan]);
    assert_eq!(withdraw(&db, &withdrawal(None)).await.unwrap(), []);
    assert_eq!(approve(&db, plan, A, "").await.unwrap_err().code(), "review-plan-state");
    let row = "SELECT CONCAT(status, '|', COALESCE(active_key, '-'), '|', finish_remark) AS line
               FROM review_business_plan";
    assert_eq!(column(&db, row).await, "WITHDRAWN|-|ORDER_CANCELLED");
    assert_eq!(open(&db, &opening(1)).await.unwrap().how, How::Created);
    assert_rules_hold(&db).await;
}

async fn a_plan_that_was_decided_is_not_withdrawn(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    approve(&db, plan, A, "").await.unwrap();
    approve(&db, plan, B, "").await.unwrap();
    assert_eq!(withdraw(&db, &withdrawal(None)).await.unwrap(), []);
    assert_eq!(column(&db, "SELECT status FROM review_business_plan").await, "PASSED");
}

async fn a_withdrawal_through_an_older_round_leaves_the_newer_plan_alone(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(2)).await;
    assert_eq!(withdraw(&db, &withdrawal(Some(1))).await.unwrap(), []);
    assert_eq!(withdraw(&db, &withdrawal(Some(2))).await.unwrap(), [plan]);
}
