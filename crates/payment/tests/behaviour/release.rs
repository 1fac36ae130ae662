//! S06 (payment-flow.md, "S06 lock release"): exactly the RESERVED locks of one attempt.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::kinds::LOCK_RELEASE;
use counterfoil_protocol::TaskCode;

use super::hand::Hand;

/// The unpublished V2 of the running example, failed, and its S06.
async fn failed<'a>(app: &'a TestApp, reason: &str) -> Hand<'a> {
    let hand = Hand::revision(app).await;
    app.execute(
        "UPDATE fi_resident_income_payment_order SET current_publish_version = 1, submit_round = 1;
         \nUPDATE fi_resident_income_payment_order_version
           SET version_build_status = 'BUILD_FAILED' WHERE id = 22;
         \nUPDATE selection_session SET status = 'SUBMIT_FAILED' WHERE id = 12;
         \nDELETE FROM fi_async_task",
    )
    .await;
    s06(app, reason).await;
    hand
}

async fn s06(app: &TestApp, reason: &str) {
    let key = format!("LOCK_RELEASE:22:{reason}");
    app.execute(&format!(
        r#"INSERT INTO fi_async_task (task_code, task_type, business_key, task_data)
         VALUES ('{}', '{}', '{key}',
           '{{"paymentOrderVersionId":22,"taskScene":"LOCK_RELEASE",
              "releaseReason":"{reason}"}}')"#,
        TaskCode::of("RIPLR", &key),
        LOCK_RELEASE.task_type
    ))
    .await;
}

/// More RESERVED locks beside lock 1004, each of somebody or something else.
async fn others(app: &TestApp) -> Vec<String> {
    for (id, order, session, attempt, data, status) in [
        (1005, 2, 12, 1, 2, "RESERVED"),
        (1006, 1, 13, 1, 2, "RESERVED"),
        (1007, 1, 12, 2, 2, "RESERVED"),
        (1008, 1, 12, 1, 3, "RESERVED"),
        (1009, 1, 12, 1, 2, "ACTIVE"),
    ] {
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_bill_lock
               (id, lock_key, lock_status, payment_order_id, session_id, submit_attempt,
                data_version, station_id, bill_yearmonth)
             VALUES ({id}, 'S{id}:202609', '{status}', {order}, {session}, {attempt}, {data},
               'S{id}', '202609')"
        ))
        .await;
    }
    not_ours(app).await
}

async fn not_ours(app: &TestApp) -> Vec<String> {
    app.lines("SELECT * FROM fi_resident_income_payment_bill_lock WHERE id <> 1004 ORDER BY id")
        .await
}

const SESSION: &str = "SELECT status, active_submit_id, active_scope_key, active_revise_key,
    submit_attempt FROM selection_session WHERE id = 12";

on_every_database! {
    async fn exactly_the_reserved_locks_of_this_attempt_are_released(app: TestApp) {
        let hand = failed(&app, "SUBMIT_CONFLICT").await;
        let before = others(&app).await;
        let records = hand.rows("fi_monthly_income_difference").await;
        app.pass_minutes(5);
        let summary = hand.release().await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(not_ours(&app).await, before);
        let lock = "SELECT lock_status, lock_key, release_reason, release_time, order_bill_id
            FROM fi_resident_income_payment_bill_lock WHERE id = 1004";
        let expected = "RELEASED|S4:202609:RELEASED:1004|SUBMIT_CONFLICT|2026-09-08T02:05:00Z|204";
        assert_eq!(app.value(lock).await, expected);
        assert_eq!(hand.rows("fi_monthly_income_difference").await, records);
        assert_eq!(app.value(SESSION).await, "SUBMIT_FAILED|NULL|scope:12|revise:1|1");
        let task = hand.task_state("LOCK_RELEASE:22:SUBMIT_CONFLICT").await;
        assert_eq!(task, "2|0|NULL");
    }

    async fn an_invalidated_session_gives_its_keys_back_with_its_locks(app: TestApp) {
        let hand = failed(&app, "INVALID_REVISE_SESSION").await;
        app.execute("UPDATE selection_session SET invalidated_flag = 1,
            invalidated_reason = 'INVALID_REVISE_SESSION' WHERE id = 12").await;
        hand.release().await;
        assert_eq!(app.value(SESSION).await, "SUBMIT_FAILED|NULL|NULL|NULL|1");
    }

    async fn a_late_s06_never_closes_a_newer_attempt(app: TestApp) {
        for newer in ["active_submit_id = 23, submit_attempt = 2, status = 'SUBMITTING'",
            "active_submit_id = 23, status = 'SUBMIT_FAILED'",
            "submit_attempt = 2, status = 'SUBMIT_FAILED'",
            "active_submit_id = NULL, status = 'SUBMIT_FAILED'",
            "active_submit_id = 23, submit_attempt = 2, status = 'COMPLETED'"] {
            Hand(&app).wipe().await;
            let hand = failed(&app, "PUBLISH_LOST").await;
            app.execute(&format!("UPDATE selection_session SET {newer} WHERE id = 12")).await;
            let session = hand.row("selection_session", 12).await;
            let before = others(&app).await;
            let summary = hand.release().await;
            assert_eq!((summary.succeeded, summary.failed), (1, 0), "{newer}: {summary:?}");
            assert_eq!(hand.row("selection_session", 12).await, session, "{newer}");
            assert_eq!(not_ours(&app).await, before, "{newer}");
            assert!(hand.lock(1004).await.starts_with("RELEASED|"), "{newer}");
        }
    }

    async fn nothing_to_release_is_a_success_and_a_second_s06_changes_nothing(app: TestApp) {
        let hand = failed(&app, "SUBMIT_CONFLICT").await;
        hand.release().await;
        let before = hand.everything().await;
        s06(&app, "PUBLISH_LOST").await;
        app.pass_minutes(5);
        let summary = hand.release().await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(hand.everything().await, before);
    }

    async fn a_reason_nobody_knows_or_another_scene_releases_nothing(app: TestApp) {
        for data in [
            r#"{"paymentOrderVersionId":22,"taskScene":"LOCK_RELEASE","releaseReason":"OTHER"}"#,
            r#"{"paymentOrderVersionId":22,"taskScene":"LOCK_RELEASE"}"#,
            r#"{"paymentOrderVersionId":22,"releaseReason":"PUBLISH_LOST"}"#,
            r#"{"paymentOrderVersionId":22,"taskScene":"LOCK_ACTIVATE",
               "releaseReason":"PUBLISH_LOST"}"#,
            r#"{"paymentOrderVersionId":21,"taskScene":"LOCK_RELEASE",
               "releaseReason":"PUBLISH_LOST"}"#,
            r#"{"paymentOrderVersionId":22,"taskScene":"LOCK_RELEASE",
               "releaseReason":"SUBMIT_CONFLICT"}"#,
        ] {
            Hand(&app).wipe().await;
            let hand = failed(&app, "PUBLISH_LOST").await;
            app.execute(&format!("UPDATE fi_async_task SET task_data = '{data}'")).await;
            let before = hand.everything().await;
            let summary = hand.release().await;
            assert_eq!((summary.succeeded, summary.failed), (0, 1), "{data}: {summary:?}");
            assert_eq!(hand.everything().await, before, "{data}");
        }
    }

    async fn more_locks_than_a_batch_are_all_released(app: TestApp) {
        let hand = failed(&app, "SUBMIT_CONFLICT").await;
        let rows: Vec<String> = (5_000..7_100).map(|id| format!(
            "({id}, 'S{id}:202609', 1, 12, 1, 2, 'S{id}', '202609')")).collect();
        app.execute(&format!("INSERT INTO fi_resident_income_payment_bill_lock
            (id, lock_key, payment_order_id, session_id, submit_attempt, data_version,
             station_id, bill_yearmonth) VALUES {}", rows.join(", "))).await;
        hand.release().await;
        let left = "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
            WHERE lock_status = 'RESERVED'";
        assert_eq!(app.value(left).await, "0");
        let keys = "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
            WHERE id >= 5000 AND lock_key = station_id || ':202609:RELEASED:' || id";
        assert_eq!(app.value(keys).await, "2100");
    }
}
