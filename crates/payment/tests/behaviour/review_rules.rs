//! Every rule of decisions and approvals can break and names its row, and holds on the way.

use counterfoil_e2e::{Bill, TestApp, on_every_database};
use counterfoil_payment::review_progress::RULES;
use counterfoil_task::check;

use super::approval::{advance, prepared, under_review};
use super::hand::Hand;

/// What breaks each rule while an approval is being applied, and what the breach names.
const BREAKS_UNDER_WAY: &[(&str, &str, &str)] = &[
    (
        "running-approval-is-of-its-order",
        "UPDATE fi_resident_income_payment_order SET status = 40, update_time = {half_an_hour}",
        "status=40",
    ),
    (
        "running-approval-is-of-its-order",
        "UPDATE fi_resident_income_payment_order SET status = 20, review_plan_id = 1",
        "status=20",
    ),
    (
        "running-callback-has-its-progress",
        "UPDATE fi_resident_income_payment_review_callback_progress SET async_task_id = NULL;
         \nUPDATE fi_async_task SET create_time = {long}
         WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        "task_status=1",
    ),
    (
        "running-task-is-alive",
        "UPDATE fi_resident_income_payment_review_callback_progress SET async_task_id = NULL;
         \nUPDATE fi_async_task SET update_time = {long}
         WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        "running_attempt=1",
    ),
    (
        "approval-gets-on",
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET phase_status = 'FAILED', retry_count = 10",
        "retry_count=10",
    ),
];

/// The same once it has taken effect.
const BREAKS_AFTERWARDS: &[(&str, &str, &str)] = &[
    (
        "effective-approval-is-on-its-order",
        "UPDATE fi_resident_income_payment_order SET status = 20",
        "status=20",
    ),
    (
        "effective-approval-is-on-its-order",
        "UPDATE fi_resident_income_payment_order SET status = 40, current_publish_version = 2",
        "current_publish_version=2",
    ),
];

async fn all_hold(app: &TestApp) {
    for rule in RULES {
        assert_eq!(check(&app.db, rule).await.expect(rule.name), None, "{}", rule.name);
    }
}

async fn each_breaks(app: &TestApp, breaks: &[(&str, &str, &str)]) {
    for (name, change, named) in breaks {
        let rule = RULES.iter().find(|rule| rule.name == *name).expect(name);
        let change = change.replace("{half_an_hour}", &Hand(app).minutes(-31));
        app.execute(&change.replace("{long}", &Hand(app).minutes(-61))).await;
        let breach = check(&app.db, rule).await.expect(name);
        let breach = breach.unwrap_or_else(|| panic!("{name} holds after {change}"));
        let row = &breach.rows[0];
        assert!(row.split(' ').any(|cell| cell == *named), "{name}: {row}");
    }
}

on_every_database! {
    async fn every_rule_of_an_approval_can_break_and_names_the_row(app: TestApp) {
        for rule in RULES {
            let mut all = BREAKS_UNDER_WAY.iter().chain(BREAKS_AFTERWARDS);
            assert!(all.any(|(name, ..)| *name == rule.name), "{}", rule.name);
        }
        let order = under_review(&app, &[1, 2].map(Bill::payable)).await;
        all_hold(&app).await;
        prepared(&app, order).await;
        all_hold(&app).await;
        each_breaks(&app, BREAKS_UNDER_WAY).await;
    }

    async fn every_rule_of_an_effective_approval_can_break_and_names_the_row(app: TestApp) {
        let order = under_review(&app, &[1, 2].map(Bill::payable)).await;
        prepared(&app, order).await;
        advance(&app).await;
        all_hold(&app).await;
        each_breaks(&app, BREAKS_AFTERWARDS).await;
    }

    async fn an_order_that_moved_on_just_now_may_still_have_a_running_approval(app: TestApp) {
        let order = under_review(&app, &[1, 2].map(Bill::payable)).await;
        prepared(&app, order).await;
        let now = Hand(&app).minutes(0);
        app.execute(&format!(
            "UPDATE fi_resident_income_payment_order SET status = 90, update_time = {now}"
        ))
        .await;
        all_hold(&app).await;
        app.pass_minutes(31);
        let rule = RULES.iter().find(|rule| rule.name == "running-approval-is-of-its-order");
        let breach = check(&app.db, rule.expect("the rule")).await.expect("a check");
        assert!(breach.is_some());
    }

    // From a person who followed the README: `check` called every long approval a dead process.
    async fn a_decision_that_takes_hours_to_apply_is_alive_in_its_progress(app: TestApp) {
        let order = under_review(&app, &[1, 2].map(Bill::payable)).await;
        prepared(&app, order).await;
        let earlier = Hand(&app).minutes(-180);
        app.execute(&format!(
            "UPDATE fi_async_task SET update_time = {earlier}
             WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'"
        ))
        .await;
        all_hold(&app).await;
    }

    async fn released_records_may_be_referred_to_until_the_refresh_is_done(app: TestApp) {
        let order = under_review(&app, &[1, 2].map(Bill::payable)).await;
        prepared(&app, order).await;
        advance(&app).await;
        let broken = async || {
            let mut names = Vec::new();
            for rule in counterfoil_payment::rules::RULES {
                let is_one = rule.name.ends_with("-refers-to-held-locks");
                if is_one && check(&app.db, rule).await.expect(rule.name).is_some() {
                    names.push(rule.name);
                }
            }
            names
        };
        app.execute("UPDATE fi_resident_income_payment_bill_lock SET lock_status = 'RELEASED'")
            .await;
        assert!(broken().await.is_empty());
        app.execute(
            "UPDATE fi_resident_income_payment_review_callback_progress SET phase = 'DONE'",
        )
        .await;
        assert_eq!(broken().await.len(), 3);
    }
}
