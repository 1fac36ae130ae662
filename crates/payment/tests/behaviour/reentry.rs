//! Re-entry of S04 (payment-flow.md: fenced, no lease) and replays: the same again changes nothing.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_protocol::TaskCode;

use super::hand::Hand;

/// The same task again, as if its SUCCESS had been lost; an hour later.
async fn again(hand: Hand<'_>) {
    hand.0
        .execute(
            "UPDATE fi_async_task SET task_status = 0, next_execute_time = NULL
             WHERE business_key = 'LOCK_ACTIVATE:22'",
        )
        .await;
    hand.0.pass_minutes(60);
}

/// The session as it was before it was completed.
async fn syncing_again(app: &TestApp) {
    app.execute(
        "UPDATE selection_session SET status = 'PUBLISHED_LOCK_SYNCING', active_submit_id = 22
         WHERE id = 12",
    )
    .await;
}

on_every_database! {
    async fn done_and_completed_goes_straight_to_the_hand_over(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE selection_submit_batch SET batch_status = 'DONE';
            \nUPDATE selection_session SET status = 'COMPLETED', active_submit_id = NULL").await;
        let before = hand.everything().await;
        hand.activated().await;
        assert_eq!(hand.everything().await, before, "nothing but the hand-over");
        let tasks = "SELECT business_key, task_status FROM fi_async_task ORDER BY id";
        assert_eq!(app.lines(tasks).await, ["LOCK_ACTIVATE:22|2", "AUDIT_PLAN_CREATE:22|0"]);
        let trace = "SELECT action, source_task_code
            FROM fi_resident_income_payment_async_operation_log";
        let source = TaskCode::of("RIPLA", "LOCK_ACTIVATE:22");
        assert_eq!(app.lines(trace).await, [format!("ACCEPT|{source}")]);
    }

    async fn done_and_syncing_does_the_matrix_again_and_completes(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute(&format!("UPDATE selection_submit_batch SET batch_status = 'DONE',
            worker_id = 'gone', lease_version = 4, last_item_id = 1004, processed_count = 1;
            \nUPDATE fi_resident_income_payment_bill_lock SET lock_status = 'ACTIVE',
            lock_scene = 'PUBLISHED_ACTIVE' WHERE id = 1004;
            \nUPDATE fi_resident_income_payment_bill_lock SET lock_status = 'RELEASED',
            lock_key = 'S2:202609:RELEASED:1002', release_reason = 'REVISE_REMOVED',
            release_time = {} WHERE id = 1002", hand.minutes(-5))).await;
        let batch = hand.row("selection_submit_batch", 31).await;
        hand.activated().await;
        assert_eq!(hand.lock(1001).await, "ACTIVE|S1:202609|201|2|PUBLISHED_REFRESH|NULL");
        assert!(hand.lock(1003).await.starts_with("RELEASED|S3:202609:RELEASED:1003|"));
        assert_eq!(hand.references(1).await, "30|1|201");
        assert_eq!(hand.references(2).await, "20|NULL|NULL", "the clean-up was still missing");
        assert_eq!(hand.references(3).await, "10|NULL|NULL");
        assert_eq!(hand.references(4).await, "30|1|204");
        assert_eq!(hand.row("selection_submit_batch", 31).await, batch, "no lease was taken");
        let session = "SELECT status FROM selection_session WHERE id = 12";
        assert_eq!(app.value(session).await, "COMPLETED");
    }

    async fn done_and_syncing_activates_nothing(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE selection_submit_batch SET batch_status = 'DONE'").await;
        let batch = hand.row("selection_submit_batch", 31).await;
        let message = hand.refused().await;
        assert!(message.contains("204"), "{message}");
        assert!(hand.lock(1004).await.starts_with("RESERVED|"));
        assert_eq!(hand.row("selection_submit_batch", 31).await, batch, "DONE stays DONE");
    }

    async fn done_with_any_other_session_is_an_error(app: TestApp) {
        for status in ["EDITING", "SUBMITTING", "SUBMIT_FAILED"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            app.execute(&format!("UPDATE selection_submit_batch SET batch_status = 'DONE';
                \nUPDATE selection_session SET status = '{status}' WHERE id = 12")).await;
            let before = hand.everything().await;
            hand.refused().await;
            assert_eq!(hand.everything().await, before, "{status}");
        }
    }

    async fn a_replay_changes_no_row_no_time_and_no_version_number(app: TestApp) {
        let hand = Hand::revision(&app).await;
        hand.activated().await;
        let tables = ["fi_resident_income_payment_bill_lock", "fi_monthly_income_difference",
            "fi_customer_bill", "fi_customer_bill_partner", "selection_submit_batch",
            "fi_resident_income_payment_order", "fi_resident_income_payment_order_version",
            "fi_resident_income_payment_order_bill"];
        let all = async || {
            let mut rows = Vec::new();
            for table in tables {
                rows.extend(hand.rows(table).await);
            }
            rows
        };
        let before = all().await;
        for times in 1..=3 {
            syncing_again(&app).await;
            again(hand).await;
            hand.activated().await;
            assert_eq!(all().await, before, "replay {times}");
        }
        let trace = "SELECT action FROM fi_resident_income_payment_async_operation_log ORDER BY id";
        assert_eq!(app.lines(trace).await, ["ACCEPT", "REUSE"], "no second row for a replay");
    }

    async fn a_replay_from_the_start_changes_no_record_either(app: TestApp) {
        let hand = Hand::revision(&app).await;
        hand.activated().await;
        let tables = ["fi_resident_income_payment_bill_lock", "fi_monthly_income_difference",
            "fi_customer_bill", "fi_customer_bill_partner"];
        let mut before = Vec::new();
        for table in tables {
            before.push(hand.rows(table).await);
        }
        app.execute("UPDATE selection_submit_batch SET batch_status = 'INIT', last_item_id = 0")
            .await;
        syncing_again(&app).await;
        again(hand).await;
        hand.activated().await;
        for (table, before) in tables.into_iter().zip(before) {
            assert_eq!(hand.rows(table).await, before, "{table}");
        }
        let count = "SELECT processed_count FROM selection_submit_batch";
        assert_eq!(app.value(count).await, "1", "nothing was RESERVED any more");
    }

    async fn a_failure_half_way_goes_on_where_it_stopped(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_monthly_income_difference SET deleted = 1 WHERE id = 54;
            \nUPDATE selection_submit_batch SET batch_size = 1").await;
        hand.refused().await;
        let locks = hand.rows("fi_resident_income_payment_bill_lock").await;
        let small = hand.rows("fi_customer_bill").await;
        app.execute("UPDATE fi_monthly_income_difference SET deleted = 0 WHERE id = 54").await;
        app.pass_minutes(10);
        hand.activated_after(1).await;
        assert_eq!(hand.rows("fi_resident_income_payment_bill_lock").await, locks);
        assert_eq!(hand.rows("fi_customer_bill").await, small);
        assert_eq!(hand.references(4).await, "30|1|204");
        let batch = "SELECT batch_status, lease_version, last_item_id, processed_count, error_code,
            error_message FROM selection_submit_batch";
        assert_eq!(app.value(batch).await, "DONE|2|1004|1|NULL|NULL");
    }
}
