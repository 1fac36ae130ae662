//! Steps 2 to 5 and 8 of S04: lease, keep, release, activate, project, complete.

use counterfoil_db::{Dialect, Read};
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::kinds::LOCK_ACTIVATE;
use counterfoil_payment::rules::RULES;
use counterfoil_protocol::TaskCode;

use super::hand::Hand;

const BATCH: &str = "SELECT batch_status, lease_version, last_item_id, processed_count,
    error_code FROM selection_submit_batch";

/// A lock of the same bills' order that S04 must not touch: `columns` differ from lock 1004's.
async fn foreign_lock(app: &TestApp, id: i64, order: i64, session: i64, attempt: i64, data: i64) {
    app.execute(&format!(
        "INSERT INTO fi_resident_income_payment_bill_lock
           (id, lock_key, payment_order_id, order_bill_id, data_version, submit_round,
            session_id, submit_attempt, station_id, bill_yearmonth)
         VALUES ({id}, 'S{id}:202609', {order}, 900, {data}, 2, {session}, {attempt}, 'S{id}',
           '202609')"
    ))
    .await;
}

/// The moment a lock becomes ACTIVE the batch's lease is long over.
async fn lease_ends_in_the_middle(hand: Hand<'_>) {
    let past = hand.minutes(-1);
    let ends = format!("UPDATE selection_submit_batch SET lease_expire_time = {past}");
    let when = "OLD.lock_status = 'RESERVED' AND NEW.lock_status = 'ACTIVE'";
    let table = "fi_resident_income_payment_bill_lock";
    match hand.0.db.dialect() {
        Dialect::Sqlite => {
            hand.raw(&format!(
                "CREATE TRIGGER ending AFTER UPDATE ON {table} WHEN {when} BEGIN {ends}; END"
            ))
            .await;
        }
        Dialect::Postgres => {
            hand.raw(&format!(
                "CREATE FUNCTION ending() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF {when} THEN {ends}; END IF; RETURN NEW; END $$"
            ))
            .await;
            hand.raw(&format!(
                "CREATE TRIGGER ending AFTER UPDATE ON {table} FOR EACH ROW
                 EXECUTE FUNCTION ending()"
            ))
            .await;
        }
        Dialect::MariaDb => {
            hand.raw(&format!(
                "CREATE TRIGGER ending AFTER UPDATE ON {table} FOR EACH ROW
                 IF {when} THEN {ends}; END IF"
            ))
            .await;
        }
    }
}

/// Whether the rule says that an order's next task is blocked.
async fn is_blocked(app: &TestApp) -> bool {
    let rule = RULES
        .iter()
        .find(|rule| rule.name == "hand-over-is-not-blocked");
    let breach = counterfoil_task::check(&app.db, rule.expect("the rule")).await;
    breach.expect("a check").is_some()
}

on_every_database! {
    async fn locks_of_other_orders_sessions_attempts_and_versions_stay_as_they_are(app: TestApp) {
        let hand = Hand::revision(&app).await;
        let others = [(1005, 2, 12, 1, 2), (1006, 1, 13, 1, 2), (1007, 1, 12, 2, 2),
            (1008, 1, 12, 0, 2), (1009, 1, 12, 1, 3)];
        for (id, order, session, attempt, data) in others {
            foreign_lock(&app, id, order, session, attempt, data).await;
        }
        let untouched = "SELECT * FROM fi_resident_income_payment_bill_lock WHERE id > 1004
            ORDER BY id";
        let before = app.lines(untouched).await;
        hand.activated().await;
        assert_eq!(app.lines(untouched).await, before);
        assert_eq!(app.value(BATCH).await, "DONE|1|1004|1|NULL");
    }

    async fn activation_goes_by_attempt_and_version_and_not_by_round(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_bill_lock SET submit_round = 9
            WHERE id = 1004").await;
        let message = hand.refused().await;
        assert!(message.contains("204"), "projection does go by round: {message}");
        assert!(hand.lock(1004).await.starts_with("ACTIVE|"));
        assert_eq!(app.value(BATCH).await, "FAILED|1|1004|1|lock-verification");
    }

    async fn locks_below_the_cursor_are_not_activated(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE selection_submit_batch SET last_item_id = 1004,
            processed_count = 5").await;
        hand.refused().await;
        assert!(hand.lock(1004).await.starts_with("RESERVED|"));
        assert_eq!(app.value(BATCH).await, "FAILED|1|1004|5|lock-verification");
        app.execute("UPDATE selection_submit_batch SET last_item_id = 1003;
            \nUPDATE fi_async_task SET next_execute_time = NULL").await;
        hand.activated_after(1).await;
        assert_eq!(app.value(BATCH).await, "DONE|2|1004|6|NULL");
    }

    async fn source_locks_of_another_round_or_version_are_not_the_source_s(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_bill_lock SET submit_round = 7
            WHERE id = 1002;
            \nUPDATE fi_resident_income_payment_bill_lock SET data_version = 7
            WHERE id = 1003").await;
        hand.activated().await;
        assert!(hand.lock(1002).await.starts_with("ACTIVE|"));
        assert!(hand.lock(1003).await.starts_with("ACTIVE|"));
        assert_eq!(hand.references(2).await, "30|1|102");
        assert_eq!(hand.references(3).await, "30|1|103");
    }

    async fn a_source_lock_on_an_unqualified_source_line_is_neither_kept_nor_released(
        app: TestApp
    ) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET line_type = 20
            WHERE id = 102").await;
        let before = hand.row("fi_resident_income_payment_bill_lock", 1002).await;
        hand.activated().await;
        assert_eq!(hand.row("fi_resident_income_payment_bill_lock", 1002).await, before);
        assert_eq!(hand.references(2).await, "30|1|102");
    }

    async fn a_lock_is_kept_whatever_the_round_of_its_target_line(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("INSERT INTO fi_resident_income_payment_order_bill
            (id, payment_order_id, data_version, submit_round, line_type, station_id,
             bill_yearmonth, source_order_bill_id)
            VALUES (202, 1, 2, 9, 10, 'S2', '202609', 102)").await;
        hand.activated().await;
        assert_eq!(hand.lock(1002).await, "ACTIVE|S2:202609|202|2|PUBLISHED_REFRESH|NULL");
        assert_eq!(hand.references(2).await, "30|1|102", "not a line of this round");
    }

    async fn a_deleted_target_line_keeps_nothing(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET deleted = 1
            WHERE id IN (201, 203)").await;
        hand.activated().await;
        assert!(hand.lock(1001).await.starts_with("RELEASED|"));
        assert_eq!(hand.references(1).await, "20|NULL|NULL");
        assert_eq!(hand.references(3).await, "20|NULL|NULL", "removed, not unqualified");
    }

    async fn a_null_business_id_is_no_reference_and_nothing_is_missing(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill
            SET diff_id = NULL, small_bill_id = NULL, partner_bill_id = NULL WHERE id = 204;
            \nUPDATE fi_resident_income_payment_order_bill SET small_bill_id = NULL
            WHERE id = 201").await;
        let small = hand.row("fi_customer_bill", 61).await;
        let all_of_d = async || {
            [hand.row("fi_monthly_income_difference", 54).await,
                hand.row("fi_customer_bill", 64).await,
                hand.row("fi_customer_bill_partner", 74).await]
        };
        let before = all_of_d().await;
        hand.activated().await;
        assert_eq!(all_of_d().await, before);
        assert_eq!(hand.row("fi_customer_bill", 61).await, small);
        assert_eq!(hand.reference("fi_customer_bill_partner", 1).await, "30|1|201");
        let ids = "SELECT diff_id, small_bill_id, partner_bill_id
            FROM fi_resident_income_payment_bill_lock WHERE id = 1001";
        assert_eq!(app.value(ids).await, "51|NULL|71", "the kept lock follows its line");
    }

    async fn only_records_that_differ_are_written(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_monthly_income_difference SET locked_order_bill_id = 201
            WHERE id = 51").await;
        let right = hand.row("fi_monthly_income_difference", 51).await;
        app.execute("UPDATE fi_monthly_income_difference SET payment_status = 30,
            locked_payment_order_id = 1, locked_order_bill_id = 204, unqualified_flag = 1,
            unqualified_reason = 'x', financial_version = 8 WHERE id = 54").await;
        app.pass_minutes(5);
        hand.activated().await;
        assert_eq!(hand.row("fi_monthly_income_difference", 51).await, right);
        let flagged = "SELECT unqualified_flag, unqualified_reason, financial_version,
            payment_status_update_time FROM fi_monthly_income_difference WHERE id = 54";
        assert_eq!(app.value(flagged).await, "0|NULL|9|2026-09-08T02:05:00Z");
    }

    async fn a_batch_held_by_a_live_worker_puts_the_task_back(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute(&format!("UPDATE selection_submit_batch SET batch_status = 'RUNNING',
            worker_id = 'other', lease_version = 3, lease_expire_time = {}",
            hand.minutes(7))).await;
        let before = hand.everything().await;
        let summary = hand.activate().await;
        assert_eq!((summary.claimed, summary.skipped, summary.failed), (1, 1, 0), "{summary:?}");
        assert_eq!(hand.everything().await, before);
        let task = "SELECT task_status, retry_count, running_attempt, next_execute_time,
            error_message FROM fi_async_task";
        assert_eq!(app.value(task).await, "0|0|1|2026-09-08T02:07:00Z|NULL");
        app.pass_minutes(7);
        hand.activated().await;
        assert_eq!(app.value(BATCH).await, "DONE|4|1004|1|NULL");
    }

    async fn an_expired_lease_and_a_failed_batch_are_taken_over(app: TestApp) {
        for set in ["batch_status = 'RUNNING', worker_id = 'dead', lease_expire_time = {now}",
            "batch_status = 'RUNNING', worker_id = 'dead'",
            "batch_status = 'FAILED', worker_id = 'dead', error_code = 'x', error_message = 'y'"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            let set = set.replace("{now}", &hand.minutes(0));
            app.execute(&format!("UPDATE selection_submit_batch SET lease_version = 6, {set}"))
                .await;
            hand.activated().await;
            assert_eq!(app.value(BATCH).await, "DONE|7|1004|1|NULL", "{set}");
            let owner = "SELECT worker_id, error_message FROM selection_submit_batch";
            assert!(!app.value(owner).await.starts_with("dead"), "{set}");
            assert!(app.value(owner).await.ends_with("|NULL"), "{set}");
        }
    }

    async fn a_lease_that_ends_in_the_middle_of_a_batch_takes_the_batch_back(app: TestApp) {
        let hand = Hand::revision(&app).await;
        lease_ends_in_the_middle(hand).await;
        hand.refused().await;
        assert!(hand.lock(1004).await.starts_with("RESERVED|"), "the batch was rolled back");
        assert!(hand.lock(1001).await.starts_with("ACTIVE|S1:202609|201|"), "the ones before stay");
        assert_eq!(app.value(BATCH).await, "FAILED|1|0|0|lease-lost");
    }

    async fn a_session_that_moved_on_is_not_completed(app: TestApp) {
        for change in ["active_submit_id = 23", "active_submit_id = NULL", "submit_attempt = 2",
            "status = 'SUBMITTING'", "status = 'SUBMIT_FAILED'", "status = 'COMPLETED'"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            app.execute(&format!("UPDATE selection_session SET {change} WHERE id = 12")).await;
            let before = hand.row("selection_session", 12).await;
            let message = hand.refused().await;
            assert!(message.contains("session 12"), "{change}: {message}");
            assert_eq!(hand.row("selection_session", 12).await, before, "{change}");
            assert!(app.value(BATCH).await.starts_with("FAILED|"), "{change}");
            assert_eq!(app.value("SELECT COUNT(*) FROM fi_async_task").await, "1", "{change}");
        }
    }

    async fn a_reused_s05_is_never_changed_and_a_dead_one_is_shown_as_blocked(app: TestApp) {
        for (status, retries, blocked) in [("0", "0", false), ("1", "0", false), ("2", "0", false),
            ("2", "3", false), ("3", "1", false), ("3", "3", true), ("0", "3", true),
            ("4", "0", true)] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            hand.task("AUDIT_PLAN_CREATE", 22).await;
            app.execute(&format!("UPDATE fi_async_task SET task_status = {status},
                retry_count = {retries}, running_attempt = 4, error_message = 'old'
                WHERE business_key = 'AUDIT_PLAN_CREATE:22'")).await;
            let next = "SELECT * FROM fi_async_task WHERE business_key = 'AUDIT_PLAN_CREATE:22'";
            let before = app.value(next).await;
            app.pass_minutes(3);
            hand.activated().await;
            assert_eq!(app.value(next).await, before, "{status} {retries}");
            let trace = "SELECT action, source_task_code
                FROM fi_resident_income_payment_async_operation_log";
            let source = TaskCode::of("RIPLA", "LOCK_ACTIVATE:22");
            assert_eq!(app.lines(trace).await, [format!("REUSE|{source}")]);
            assert_eq!(is_blocked(&app).await, blocked, "{status} {retries}");
        }
    }

    async fn an_s05_that_is_another_task_keeps_the_session_from_completing(app: TestApp) {
        let hand = Hand::revision(&app).await;
        hand.task("AUDIT_PLAN_CREATE", 22).await;
        app.execute("UPDATE fi_async_task SET business_key = 'AUDIT_PLAN_CREATE:23'
            WHERE business_key = 'AUDIT_PLAN_CREATE:22'").await;
        hand.refused().await;
        let session = "SELECT status FROM selection_session WHERE id = 12";
        assert_eq!(app.value(session).await, "PUBLISHED_LOCK_SYNCING");
        assert_eq!(app.value(BATCH).await, "FAILED|1|1004|1|task-identity");
    }

    async fn a_person_s_rerun_goes_on_from_what_was_committed(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_async_task SET task_status = 3, retry_count = 3").await;
        let parameter = r#"{"businessKey":"LOCK_ACTIVATE:22","maxTaskCount":1}"#;
        let summary = app.round_with(LOCK_ACTIVATE.handler, parameter).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(hand.task_state("LOCK_ACTIVATE:22").await, "2|3|NULL");
    }
}
