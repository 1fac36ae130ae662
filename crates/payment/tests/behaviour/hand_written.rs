//! S04 over rows written by hand: the running example, and the least that may be written.

use counterfoil_e2e::{Bill, Fixture, on_every_database};
use counterfoil_payment::kinds::LOCK_ACTIVATE;
use counterfoil_protocol::TaskCode;

use super::hand::{Hand, RECORDS, RENT_ABNORMAL};

/// What the running example comes to, by whatever batches.
async fn is_in_line(hand: Hand<'_>) {
    assert_eq!(hand.lock(1001).await, "ACTIVE|S1:202609|201|2|PUBLISHED_REFRESH|NULL");
    for id in [1002, 1003] {
        let station = id - 1000;
        let line = station + 100;
        let expected = format!(
            "RELEASED|S{station}:202609:RELEASED:{id}|{line}|1|PUBLISHED_RELEASE|REVISE_REMOVED"
        );
        assert_eq!(hand.lock(id).await, expected);
    }
    assert_eq!(hand.lock(1004).await, "ACTIVE|S4:202609|204|2|PUBLISHED_ACTIVE|NULL");
    assert_eq!(hand.references(1).await, "30|1|201");
    assert_eq!(hand.references(2).await, "20|NULL|NULL");
    assert_eq!(hand.references(3).await, "10|NULL|NULL");
    assert_eq!(hand.references(4).await, "30|1|204");
    let batch = "SELECT batch_status, lease_expire_time, last_item_id, processed_count, error_code
        FROM selection_submit_batch";
    assert_eq!(hand.0.value(batch).await, "DONE|NULL|1004|1|NULL");
}

on_every_database! {
    async fn the_running_example_comes_into_line(app: TestApp) {
        let hand = Hand::revision(&app).await;
        hand.activated().await;
        is_in_line(hand).await;
        let kept = "SELECT submit_round, session_id, submit_attempt, lock_origin, release_time,
            source_payment_status, source_partner_query_status, diff_id, small_bill_id,
            partner_bill_id FROM fi_resident_income_payment_bill_lock WHERE id = 1001";
        let expected = "2|12|1|REVISE_KEEP_ACTIVE|NULL|20|10|51|61|71";
        assert_eq!(app.value(kept).await, expected);
        let released = "SELECT release_time FROM fi_resident_income_payment_bill_lock
            WHERE id IN (1002, 1003)";
        assert_eq!(app.lines(released).await, ["2026-09-08T02:00:00Z"; 2]);
        for (table, first) in RECORDS.into_iter().filter(|(_, first)| *first != 60) {
            let flags = format!("SELECT unqualified_flag, unqualified_reason, partner_query_status
                FROM {table} ORDER BY id");
            let expected = ["0|NULL|20".to_owned(), "0|NULL|20".to_owned(),
                format!("1|{RENT_ABNORMAL}|10"), "0|NULL|20".to_owned()];
            assert_eq!(app.lines(&flags).await, expected, "{first}");
        }
        let versions = "SELECT financial_version FROM fi_monthly_income_difference ORDER BY id";
        assert_eq!(app.lines(versions).await, ["1", "0", "0", "1"]);
        let session = "SELECT status, failure_phase, active_submit_id, active_scope_key,
            active_revise_key, state_version, submit_attempt, invalidated_flag
            FROM selection_session WHERE id = 12";
        assert_eq!(app.value(session).await, "COMPLETED|NULL|NULL|NULL|NULL|6|1|0");
    }

    async fn s04_ends_as_success_with_s05_accepted_and_traced(app: TestApp) {
        let hand = Hand::revision(&app).await;
        hand.activated().await;
        assert_eq!(hand.task_state("LOCK_ACTIVATE:22").await, "2|0|NULL");
        let code = TaskCode::of("RIPAP", "AUDIT_PLAN_CREATE:22");
        let next = "SELECT task_code, task_type, task_status, retry_count, max_retry_count,
            task_data FROM fi_async_task WHERE business_key = 'AUDIT_PLAN_CREATE:22'";
        let data = r#"{"paymentOrderVersionId":22,"taskScene":"AUDIT_PLAN_CREATE"}"#;
        let expected = format!("{code}|RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE|0|0|3|{data}");
        assert_eq!(app.value(next).await, expected);
        let trace = "SELECT action, task_code, source_task_code, payment_order_id,
            payment_order_version_id, data_version, submit_round
            FROM fi_resident_income_payment_async_operation_log";
        let source = TaskCode::of("RIPLA", "LOCK_ACTIVATE:22");
        assert_eq!(app.lines(trace).await, [format!("ACCEPT|{code}|{source}|1|22|2|2")]);
    }

    async fn a_new_order_comes_into_line(app: TestApp) {
        let hand = Hand::new_order(&app, 3).await;
        hand.activated().await;
        for n in 1..=3 {
            let lock = hand.lock(1000 + n).await;
            let line = 200 + n;
            assert_eq!(lock, format!("ACTIVE|S{n}:202609|{line}|1|PUBLISHED_ACTIVE|NULL"));
            assert_eq!(hand.references(n).await, format!("30|1|{line}"));
        }
        let session = "SELECT status, active_submit_id, state_version FROM selection_session";
        assert_eq!(app.value(session).await, "COMPLETED|NULL|1");
    }

    async fn stations_and_months_left_out_change_nothing(app: TestApp) {
        let hand = Hand::revision(&app).await;
        for table in ["fi_resident_income_payment_order_bill",
            "fi_resident_income_payment_bill_lock", "fi_monthly_income_difference",
            "fi_customer_bill", "fi_customer_bill_partner"] {
            app.execute(&format!("UPDATE {table} SET station_id = '', bill_yearmonth = ''")).await;
        }
        hand.activated().await;
        is_in_line(hand).await;
    }

    async fn generated_ids_start_at_a_million_million_and_explicit_ids_stay_below(app: TestApp) {
        let insert = |columns: &str, values: &str| format!("INSERT INTO selection_session
            (creator_user_id{columns}) VALUES (7{values})");
        for (columns, values) in [("", ""), (", id", ", 5"), ("", ""), (", id", ", 6"), ("", "")] {
            app.execute(&insert(columns, values)).await;
        }
        let ids = app.lines("SELECT id FROM selection_session ORDER BY id").await;
        let expected = ["5", "6", "1000000000000", "1000000000001", "1000000000002"];
        assert_eq!(ids, expected);
    }

    async fn every_batch_size_comes_to_the_same(app: TestApp) {
        let hand = Hand::revision(&app).await;
        for size in ["NULL", "0", "-1", "-2147483648", "1", "2", "2147483647"] {
            let set = format!("UPDATE selection_submit_batch SET batch_size = {size}");
            app.execute(&set).await;
            hand.activated().await;
            is_in_line(hand).await;
            hand.wipe().await;
            Hand::revision(&app).await;
        }
    }

    async fn zero_payable_lines_and_zero_locks_pass(app: TestApp) {
        let hand = Hand::new_order(&app, 0).await;
        hand.activated().await;
        let batch = "SELECT batch_status, last_item_id, processed_count
            FROM selection_submit_batch";
        assert_eq!(app.value(batch).await, "DONE|0|0");
    }

    async fn a_revision_that_removes_everything_passes(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("DELETE FROM fi_resident_income_payment_order_bill WHERE data_version = 2;
            \nDELETE FROM fi_resident_income_payment_bill_lock WHERE id = 1004").await;
        hand.activated().await;
        for n in 1..=3 {
            assert!(hand.lock(1000 + n).await.starts_with("RELEASED|"));
            assert_eq!(hand.references(n).await, "20|NULL|NULL");
        }
    }

    async fn broken_task_data_fails_s04_and_nothing_is_guessed(app: TestApp) {
        let hand = Hand::revision(&app).await;
        let all = hand.everything().await;
        for data in ["NULL", "''", "'{'", "'[]'", r#"'[22,"LOCK_ACTIVATE"]'"#, "'{}'",
            r#"'{"paymentOrderVersionId":22,"taskScene":"SUBMIT_BUILD"}'"#,
            r#"'{"paymentOrderVersionId":22}'"#,
            r#"'{"paymentOrderVersionId":"22","taskScene":"LOCK_ACTIVATE"}'"#,
            r#"'{"paymentOrderVersionId":0,"taskScene":"LOCK_ACTIVATE"}'"#,
            r#"'{"paymentOrderVersionId":-22,"taskScene":"LOCK_ACTIVATE"}'"#,
            r#"'{"paymentOrderVersionId":21,"taskScene":"LOCK_ACTIVATE"}'"#] {
            app.execute(&format!("UPDATE fi_async_task SET task_data = {data}, task_status = 0,
                retry_count = 0, next_execute_time = NULL")).await;
            let summary = hand.activate().await;
            assert_eq!((summary.claimed, summary.failed), (1, 1), "{data}: {summary:?}");
            assert!(hand.task_state("LOCK_ACTIVATE:22").await.starts_with("3|1|"), "{data}");
            assert_eq!(hand.everything().await, all, "{data}");
        }
    }

    async fn a_version_without_its_rows_fails_and_says_which(app: TestApp) {
        let hand = Hand::revision(&app).await;
        for (table, id) in [("fi_resident_income_payment_order_version", 22),
            ("fi_resident_income_payment_order", 1), ("selection_session", 12),
            ("selection_submit_batch", 31)] {
            app.execute(&format!("UPDATE {table} SET deleted = 1 WHERE id = {id}")).await;
            let all = hand.everything().await;
            app.execute("UPDATE fi_async_task SET task_status = 0, retry_count = 0,
                next_execute_time = NULL").await;
            let message = hand.refused().await;
            assert!(message.contains("22") && !message.ends_with("|NULL"), "{table}: {message}");
            assert_eq!(hand.everything().await, all, "{table}");
            app.execute(&format!("UPDATE {table} SET deleted = 0 WHERE id = {id}")).await;
        }
    }

    async fn two_processes_at_once_bring_one_version_into_line_once(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE selection_submit_batch SET batch_size = 1").await;
        let other = app.second_process().await;
        let (one, two) = tokio::join!(hand.activate(), other.round(LOCK_ACTIVATE.handler));
        other.db.close().await;
        assert_eq!(one.succeeded + two.succeeded, 1, "{one:?} {two:?}");
        assert_eq!(one.failed + two.failed, 0, "{one:?} {two:?}");
        is_in_line(hand).await;
        let versions = "SELECT financial_version FROM fi_monthly_income_difference ORDER BY id";
        assert_eq!(app.lines(versions).await, ["1", "0", "0", "1"]);
    }

    // From the test writer's report of the first session: the unique key made the submit fail.
    async fn an_order_written_by_hand_with_the_next_number_stops_no_submission(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(2).await;
        let first = fixture.new_session(&[Bill::payable(1)]).await;
        let first = fixture.submit(first).await;
        let number = |order: i64| {
            format!("SELECT order_no FROM fi_resident_income_payment_order WHERE id = {order}")
        };
        let taken = app.value(&number(first.order.0)).await;
        assert_eq!(taken, "PO20260908000001");
        app.execute("INSERT INTO fi_resident_income_payment_order
            (id, order_no, status, create_user_id) VALUES (7, 'PO20260908000002', 10, 1)").await;
        let second = fixture.new_session(&[Bill::payable(2)]).await;
        let second = fixture.submit(second).await;
        assert_eq!(app.value(&number(second.order.0)).await, "PO20260908000002-2");
    }
}
