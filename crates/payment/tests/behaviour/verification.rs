//! Step 7 of S04: locks, lines and tables agree, or nothing shows COMPLETED.

use counterfoil_e2e::{TestApp, on_every_database};

use super::hand::{Hand, RECORDS};

/// S04 fails with a message that contains these, and nothing is completed.
async fn fails_naming(hand: Hand<'_>, named: &[&str]) {
    let message = hand.refused().await;
    for name in named {
        assert!(message.contains(name), "{name} is not in: {message}");
    }
    let batch = "SELECT batch_status, lease_expire_time, error_code FROM selection_submit_batch";
    assert_eq!(
        hand.0.value(batch).await,
        "FAILED|NULL|lock-verification",
        "{message}"
    );
    let kept = "SELECT error_message FROM selection_submit_batch";
    assert!(
        message.contains(&hand.0.value(kept).await),
        "the batch keeps the error"
    );
    let session = "SELECT status, active_submit_id FROM selection_session WHERE id = 12";
    assert_eq!(hand.0.value(session).await, "PUBLISHED_LOCK_SYNCING|22");
    assert_eq!(
        hand.0.value("SELECT COUNT(*) FROM fi_async_task").await,
        "1",
        "no S05"
    );
}

async fn revision_with<'a>(app: &'a TestApp, change: &str) -> Hand<'a> {
    Hand(app).wipe().await;
    let hand = Hand::revision(app).await;
    app.execute(change).await;
    hand
}

on_every_database! {
    async fn a_payable_line_without_its_lock_is_named(app: TestApp) {
        let change = "DELETE FROM fi_resident_income_payment_bill_lock WHERE id = 1004";
        let hand = revision_with(&app, change).await;
        fails_naming(hand, &["2 PAYABLE", "1 ACTIVE", "204"]).await;
    }

    async fn a_lock_without_its_payable_line_is_named(app: TestApp) {
        for change in [
            "UPDATE fi_resident_income_payment_order_bill SET deleted = 1 WHERE id = 204",
            "UPDATE fi_resident_income_payment_order_bill SET line_type = 20 WHERE id = 204",
            "DELETE FROM fi_resident_income_payment_order_bill WHERE id = 204",
        ] {
            let hand = revision_with(&app, change).await;
            fails_naming(hand, &["1 PAYABLE", "2 ACTIVE", "1004"]).await;
        }
    }

    async fn counts_take_live_lines_of_every_round(app: TestApp) {
        let line = |deleted: i64| format!("INSERT INTO fi_resident_income_payment_order_bill
            (id, payment_order_id, data_version, submit_round, line_type, deleted)
            VALUES (209, 1, 2, 9, 10, {deleted})");
        let hand = revision_with(&app, &line(0)).await;
        fails_naming(hand, &["3 PAYABLE", "2 ACTIVE", "209"]).await;
        let hand = revision_with(&app, &line(1)).await;
        hand.activated().await;
    }

    async fn a_set_id_without_a_live_row_is_wrong_in_each_of_the_three_tables(app: TestApp) {
        for (table, first) in RECORDS {
            for n in [1, 4] {
                let id = first + n;
                for change in [
                    format!("UPDATE {table} SET deleted = 1 WHERE id = {id}"),
                    format!("DELETE FROM {table} WHERE id = {id}"),
                ] {
                    let hand = revision_with(&app, &change).await;
                    fails_naming(hand, &[&format!("20{n}")]).await;
                }
            }
        }
    }

    async fn two_lines_that_claim_one_record_cannot_both_be_right(app: TestApp) {
        let change = "UPDATE fi_resident_income_payment_order_bill SET diff_id = 51
            WHERE id = 204";
        let hand = revision_with(&app, change).await;
        let message = hand.refused().await;
        assert!(message.contains("201") || message.contains("204"), "{message}");
    }

    async fn locks_and_lines_that_agree_in_number_only_are_found(app: TestApp) {
        // D's line has a lock of the right submission, but the lock is on another line.
        let change = "UPDATE fi_resident_income_payment_bill_lock SET order_bill_id = 999
            WHERE id = 1004";
        let hand = revision_with(&app, change).await;
        fails_naming(hand, &["204"]).await;
    }

    async fn a_message_names_the_first_rows_and_stays_short(app: TestApp) {
        let hand = Hand::revision(&app).await;
        for id in 300..340 {
            app.execute(&format!("INSERT INTO fi_resident_income_payment_order_bill
                (id, payment_order_id, data_version, submit_round, line_type)
                VALUES ({id}, 1, 2, 2, 10)")).await;
        }
        let message = hand.refused().await;
        assert!(message.contains("300, 301, 302"), "{message}");
        assert!(!message.contains("339"), "{message}");
    }

    async fn three_failures_exhaust_the_task_and_a_person_can_rerun_it(app: TestApp) {
        let change = "UPDATE fi_customer_bill SET deleted = 1 WHERE id = 64";
        let hand = revision_with(&app, change).await;
        for _ in 0..5 {
            hand.activate().await;
            app.pass_minutes(60);
        }
        assert!(hand.task_state("LOCK_ACTIVATE:22").await.starts_with("3|3|"));
        let attempts = "SELECT running_attempt FROM fi_async_task";
        assert_eq!(app.value(attempts).await, "3");
        app.execute("UPDATE fi_customer_bill SET deleted = 0 WHERE id = 64").await;
        let parameter = r#"{"data":"{\"businessKeys\":[\"LOCK_ACTIVATE:22\"]}"}"#;
        let handler = counterfoil_payment::kinds::LOCK_ACTIVATE.handler;
        let summary = app.round_with(handler, parameter).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(hand.references(4).await, "30|1|204");
    }
}
