//! Every rule of S12 and S13 can break and names its row, and holds after a refresh.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::status_refresh::RULES;
use counterfoil_task::check;

use super::hand::Approved;

/// What breaks each rule once an order is refreshed, and what the breach names.
const BREAKS: &[(&str, &str, &str)] = &[
    (
        "done-means-all-shards-succeeded",
        "UPDATE fi_resident_income_payment_status_refresh_shard SET task_status = 'FAILED'",
        "progress_id=5",
    ),
    (
        "done-means-all-shards-succeeded",
        "UPDATE fi_resident_income_payment_review_callback_progress SET shard_expected = 2",
        "progress_id=5",
    ),
    (
        "refresh-gets-on",
        "UPDATE fi_resident_income_payment_status_refresh_shard
         SET task_status = 'FAILED', retry_count = 5",
        "retry_count=5",
    ),
    (
        "refresh-gets-on",
        "UPDATE fi_resident_income_payment_status_refresh_shard
         SET task_status = 'RUNNING', lease_expire_time = {long}",
        "task_status=RUNNING",
    ),
    (
        "awaited-shards-are-there",
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET phase = 'REFRESH_SHARD', refresh_ready = 0, shard_expected = 0",
        "id=5",
    ),
    (
        "snapshot-is-of-a-payable-line",
        "UPDATE fi_resident_income_payment_order_bill SET line_type = 20 WHERE id = 4",
        "order_bill_id=4",
    ),
];

async fn refreshed(app: &TestApp) -> Approved<'_> {
    let order = Approved::planned(app, 10).await;
    order.refreshed().await;
    order.snapshot().await;
    order
}

async fn all_hold(app: &TestApp) {
    for rule in RULES {
        assert_eq!(check(&app.db, rule).await.expect(rule.name), None, "{}", rule.name);
    }
}

on_every_database! {
    async fn the_rules_hold_before_during_and_after_a_refresh(app: TestApp) {
        all_hold(&app).await;
        let order = Approved::planned(&app, 10).await;
        all_hold(&app).await;
        order.refreshed().await;
        all_hold(&app).await;
        order.snapshot().await;
        all_hold(&app).await;
    }

    async fn every_rule_of_a_refresh_can_break_and_names_the_row(app: TestApp) {
        let order = refreshed(&app).await;
        for rule in RULES {
            assert!(BREAKS.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
        }
        for (name, change, named) in BREAKS {
            let rule = RULES.iter().find(|rule| rule.name == *name).expect(name);
            app.execute("UPDATE fi_resident_income_payment_status_refresh_shard
                SET task_status = 'SUCCESS', retry_count = 0, lease_expire_time = NULL;
                UPDATE fi_resident_income_payment_review_callback_progress
                SET phase = 'DONE', refresh_ready = 1, shard_expected = 1"
                .replace(";\n                ", ";\n").as_str()).await;
            assert_eq!(check(&app.db, rule).await.expect(name), None, "{name} before");
            app.execute(&change.replace("{long}", &order.instant(-61))).await;
            let breach = check(&app.db, rule).await.expect(name);
            let breach = breach.unwrap_or_else(|| panic!("{name} holds after {change}"));
            let row = &breach.rows[0];
            assert!(row.split(' ').any(|cell| cell == *named), "{name}: {row}");
        }
    }
}
