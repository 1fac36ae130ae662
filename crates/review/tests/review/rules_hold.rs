//! Each rule notices what it is there for.

use counterfoil_review::decision::approve;
use counterfoil_review::rules::RULES;

use crate::database::TestDb;
use crate::{A, assert_rules_hold, by_hand, column, everywhere, opened, opening, review_centre};

everywhere! {
    each_rule_names_the_rows_that_break_it;
}

async fn each_rule_names_the_rows_that_break_it(test: TestDb) {
    let db = review_centre(&test).await;
    let plan = opened(&db, &opening(1)).await;
    approve(&db, plan, A, "").await.unwrap();
    assert_rules_hold(&db).await;
    // (the rule, what breaks it, what mends it)
    let table = [
        (
            "review-active-key",
            "UPDATE review_business_plan SET active_key = NULL",
            "UPDATE review_business_plan SET active_key = 'k'",
        ),
        (
            "review-one-turn",
            "UPDATE review_business_node SET status = 'DOING' WHERE status = 'PASSED'",
            "UPDATE review_business_node SET status = 'PASSED' WHERE decided_by IS NOT NULL",
        ),
        (
            "review-four-eyes",
            "UPDATE review_business_plan SET submitter = 11",
            "UPDATE review_business_plan SET submitter = 7",
        ),
    ];
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names, table.map(|(name, _, _)| name), "every rule is broken here once");
    for (rule, (name, breaking, mending)) in RULES.iter().zip(table) {
        by_hand(&db, breaking).await.unwrap();
        let breach = counterfoil_task::check(&db, rule).await.unwrap();
        assert_eq!(breach.map(|breach| breach.rows.len()), Some(1), "{name}");
        by_hand(&db, mending).await.unwrap();
        assert_rules_hold(&db).await;
    }
    assert_eq!(column(&db, "SELECT COUNT(*) AS n FROM review_business_plan").await, "1");
}
