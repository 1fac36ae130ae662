//! Every rule of payment can break and names its row, and holds after the normal journey.

use counterfoil_e2e::{Bill, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::rules::RULES;
use counterfoil_task::check;

use super::hand::Hand;

/// What breaks each rule, from the running example in line, and what the breach names.
const BREAKS: &[(&str, &str, &str)] = &[
    (
        "payable-lines-are-locked",
        "UPDATE fi_resident_income_payment_order_bill SET line_type = 20 WHERE id = 204",
        "version_id=22",
    ),
    (
        "ledger-refers-to-held-locks",
        "UPDATE fi_monthly_income_difference SET locked_order_bill_id = 999 WHERE id = 51",
        "id=51",
    ),
    (
        "small-bill-refers-to-held-locks",
        "UPDATE fi_customer_bill SET locked_order_bill_id = 999 WHERE id = 61",
        "id=61",
    ),
    (
        "partner-bill-refers-to-held-locks",
        "UPDATE fi_customer_bill_partner SET locked_order_bill_id = 999 WHERE id = 71",
        "id=71",
    ),
    (
        "ended-session-reserves-nothing",
        "INSERT INTO fi_resident_income_payment_bill_lock
           (id, lock_key, payment_order_id, data_version, session_id, submit_attempt, station_id,
            bill_yearmonth)
         VALUES (1005, 'S5:202609', 1, 2, 12, 1, 'S5', '202609')",
        "id=1005",
    ),
    (
        "pointer-and-version-agree",
        "UPDATE fi_resident_income_payment_order_version SET version_build_status = 'BUILT'
         WHERE id = 22",
        "version_id=22",
    ),
    (
        "pointer-and-version-agree",
        "UPDATE fi_resident_income_payment_order SET current_publish_version = 1",
        "version_id=22",
    ),
    (
        "hand-over-is-not-blocked",
        "UPDATE fi_async_task SET task_status = 4 WHERE business_key = 'AUDIT_PLAN_CREATE:22'",
        "version_id=22",
    ),
    (
        "hand-over-is-not-blocked",
        "DELETE FROM fi_async_task WHERE business_key = 'AUDIT_PLAN_CREATE:22'",
        "version_id=22",
    ),
    (
        "one-holder-a-bill",
        "INSERT INTO fi_resident_income_payment_bill_lock
           (id, lock_key, lock_status, payment_order_id, data_version, station_id, bill_yearmonth)
         VALUES (1005, 'S1:202609 ', 'ACTIVE', 9, 1, 'S1', '202609')",
        "station_id=S1",
    ),
    (
        "lock-key-tells-the-state",
        "UPDATE fi_resident_income_payment_bill_lock SET lock_key = 'S2:202609' WHERE id = 1002",
        "id=1002",
    ),
    (
        "lock-key-tells-the-state",
        "UPDATE fi_resident_income_payment_bill_lock SET lock_key = 'other' WHERE id = 1004",
        "id=1004",
    ),
    (
        "active-lock-is-of-the-published-version",
        "UPDATE fi_resident_income_payment_bill_lock SET data_version = 1 WHERE id = 1004",
        "id=1004",
    ),
    (
        "order-totals-are-those-of-its-lines",
        "INSERT INTO fi_resident_income_payment_order_project_payment
           (id, payment_order_id, data_version, submit_round, project_company_id, amount)
         VALUES (1, 1, 2, 2, 0, 20000);
         \nUPDATE fi_resident_income_payment_order SET payable_count = 7",
        "payment_order_id=1",
    ),
    (
        "lease-is-alive-or-taken-over",
        "UPDATE selection_submit_batch SET batch_status = 'RUNNING', lease_expire_time = {long}",
        "id=31",
    ),
    (
        "created-plan-has-its-approval-instance",
        "UPDATE fi_resident_income_payment_order SET audit_plan_status = 'CREATED',
           review_plan_id = 5",
        "payment_order_id=1",
    ),
    (
        "order-under-review-has-its-version",
        "DELETE FROM fi_resident_income_payment_order_version WHERE id = 22",
        "payment_order_id=1",
    ),
    (
        "cancelled-order-holds-nothing",
        "UPDATE fi_resident_income_payment_order SET status = 90",
        "id=1001",
    ),
];

on_every_database! {
    async fn every_rule_can_break_and_names_the_row(app: TestApp) {
        for (name, change, named) in BREAKS {
            Hand(&app).wipe().await;
            app.execute("DELETE FROM fi_resident_income_payment_order_project_payment").await;
            let hand = Hand::revision(&app).await;
            hand.activated().await;
            let rule = RULES.iter().find(|rule| rule.name == *name).expect(name);
            assert_eq!(check(&app.db, rule).await.expect(name), None, "{name} before");
            app.execute(&change.replace("{long}", &hand.minutes(-61))).await;
            let breach = check(&app.db, rule).await.expect(name);
            let breach = breach.unwrap_or_else(|| panic!("{name} holds after {change}"));
            let row = &breach.rows[0];
            assert!(row.split(' ').any(|cell| cell == *named), "{name}: {row}");
        }
    }

    async fn no_rule_is_left_out(app: TestApp) {
        let _ = app;
        for rule in RULES {
            assert!(BREAKS.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
        }
    }

    async fn every_rule_holds_after_each_step_of_a_normal_journey(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(5).await;
        let session = fixture.new_session(&[1, 2, 3].map(Bill::payable)).await;
        let v1 = fixture.submit(session).await;
        all_hold(&app, "submitted").await;
        for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler] {
            app.round(handler).await;
            all_hold(&app, handler).await;
        }
        let bills = [Bill::payable(1), Bill::unqualified(3, "内部原因", 5), Bill::payable(4)];
        let session = fixture.revise_session(v1.order.0, &bills).await;
        fixture.submit(session).await;
        let rival = fixture.new_session(&[2, 5].map(Bill::payable)).await;
        fixture.submit(rival).await;
        all_hold(&app, "a revision and a rival").await;
        for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler, LOCK_RELEASE.handler] {
            app.round(handler).await;
            all_hold(&app, handler).await;
        }
        assert_eq!(app.value("SELECT COUNT(*) FROM selection_conflict").await, "1");
    }
}

async fn all_hold(app: &TestApp, after: &str) {
    for rule in counterfoil_task::RULES.iter().chain(RULES) {
        let breach = check(&app.db, rule).await;
        assert_eq!(breach.expect(rule.name), None, "after {after}");
    }
}
