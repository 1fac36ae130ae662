//! The publish boundary of S04 (payment-flow.md, "S04 lock activation", 1; seed 001, 4.3). P: the
//! order points to the version. V: the version says PUBLISHED.

use counterfoil_db::Side;
use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_payment::kinds::LOCK_RELEASE;
use counterfoil_protocol::TaskCode;

use super::hand::Hand;

const INCIDENT: &str = "INVALID_REVISE_SESSION_PUBLISHED_INCIDENT";

/// Makes the identity of the revision invalid, each in its own way.
const INVALID: [&str; 7] = [
    "UPDATE selection_session SET creator_user_id = 8 WHERE id = 12",
    "UPDATE fi_resident_income_payment_order SET create_user_id = 8",
    "UPDATE selection_session SET creator_user_id = 0 WHERE id = 12;
     \nUPDATE fi_resident_income_payment_order SET create_user_id = 0",
    "UPDATE selection_session SET creator_user_id = -7 WHERE id = 12;
     \nUPDATE fi_resident_income_payment_order SET create_user_id = -7",
    "UPDATE selection_session SET target_payment_order_id = 2 WHERE id = 12",
    "UPDATE selection_session SET target_payment_order_id = NULL WHERE id = 12",
    "UPDATE selection_session SET mode = 'NEW' WHERE id = 12",
];

/// P as said.
async fn pointer(app: &TestApp, published: bool) {
    let back = "UPDATE fi_resident_income_payment_order
        SET current_publish_version = current_publish_version - 1";
    if !published {
        app.execute(back).await;
    }
}

/// V as said.
async fn version(app: &TestApp, status: &str) {
    app.execute(&format!(
        "UPDATE fi_resident_income_payment_order_version SET version_build_status = '{status}'
         WHERE id = 22"
    ))
    .await;
}

async fn session(app: &TestApp) -> String {
    let query = "SELECT status, invalidated_flag, invalidated_reason, active_submit_id,
        active_scope_key, active_revise_key FROM selection_session WHERE id = 12";
    app.value(query).await
}

async fn incidents(app: &TestApp) -> Vec<String> {
    let query = "SELECT task_code, source_task_code, payment_order_id, payment_order_version_id
        FROM fi_resident_income_payment_async_operation_log WHERE action = 'INCIDENT'";
    app.lines(query).await
}

fn one_incident() -> [String; 1] {
    let code = TaskCode::of("RIPLA", "LOCK_ACTIVATE:22");
    [format!("{code}|{code}|1|22")]
}

async fn tasks(app: &TestApp) -> Vec<String> {
    app.lines("SELECT business_key, task_status, retry_count FROM fi_async_task ORDER BY id")
        .await
}

/// Brought into line, whatever the version's status says; it is not repaired.
async fn is_in_line(hand: Hand<'_>, status: &str) {
    assert_eq!(
        hand.lock(1001).await,
        "ACTIVE|S1:202609|201|2|PUBLISHED_REFRESH|NULL"
    );
    assert!(hand.lock(1002).await.starts_with("RELEASED|"));
    assert_eq!(
        hand.lock(1004).await,
        "ACTIVE|S4:202609|204|2|PUBLISHED_ACTIVE|NULL"
    );
    assert_eq!(hand.references(4).await, "30|1|204");
    let version = "SELECT version_build_status FROM fi_resident_income_payment_order_version
        WHERE id = 22";
    assert_eq!(hand.0.value(version).await, status);
    assert_eq!(
        tasks(hand.0).await,
        ["LOCK_ACTIVATE:22|2|0", "AUDIT_PLAN_CREATE:22|0|0"]
    );
}

/// The running example anew, with these changes.
async fn revision<'a>(app: &'a TestApp, p: bool, status: &str, change: &str) -> Hand<'a> {
    Hand(app).wipe().await;
    let hand = Hand::revision(app).await;
    pointer(app, p).await;
    version(app, status).await;
    app.execute(change).await;
    hand
}

on_every_database! {
    async fn a_valid_revision_with_pointer_and_version_is_brought_into_line(app: TestApp) {
        let hand = revision(&app, true, "PUBLISHED", "").await;
        hand.activated().await;
        is_in_line(hand, "PUBLISHED").await;
        assert_eq!(session(&app).await, "COMPLETED|0|NULL|NULL|NULL|NULL");
        assert_eq!(incidents(&app).await, [""; 0]);
    }

    async fn an_unpublished_valid_revision_is_an_ordinary_failure(app: TestApp) {
        for status in ["BUILDING", "BUILT", "BUILD_FAILED"] {
            let hand = revision(&app, false, status, "").await;
            let before = hand.everything().await;
            hand.refused().await;
            assert_eq!(hand.everything().await, before, "{status}");
            assert_eq!(tasks(&app).await, ["LOCK_ACTIVATE:22|3|1"], "{status}");
            assert_eq!(incidents(&app).await, [""; 0]);
        }
    }

    async fn an_unpublished_invalid_revision_is_closed_in_one_commit(app: TestApp) {
        for invalid in INVALID {
            for status in ["BUILDING", "BUILT"] {
                let hand = revision(&app, false, status, invalid).await;
                let locks = hand.rows("fi_resident_income_payment_bill_lock").await;
                let ledger = hand.rows("fi_monthly_income_difference").await;
                let summary = hand.activate().await;
                assert_eq!((summary.cancelled, summary.failed), (1, 0), "{invalid}: {summary:?}");
                let version = "SELECT version_build_status FROM
                    fi_resident_income_payment_order_version WHERE id = 22";
                assert_eq!(app.value(version).await, "BUILD_FAILED", "{invalid}");
                let expected =
                    "SUBMIT_FAILED|1|INVALID_REVISE_SESSION|22|scope:12|revise:1";
                assert_eq!(session(&app).await, expected, "{invalid}");
                let key = "LOCK_RELEASE:22:INVALID_REVISE_SESSION";
                let expected = ["LOCK_ACTIVATE:22|4|0".to_owned(), format!("{key}|0|0")];
                assert_eq!(tasks(&app).await, expected, "{invalid}");
                let code = "SELECT task_code FROM fi_async_task WHERE task_status = 0";
                assert_eq!(app.value(code).await, TaskCode::of("RIPLR", key).to_string());
                let after = hand.rows("fi_resident_income_payment_bill_lock").await;
                assert_eq!(after, locks, "S04 itself releases nothing");
                assert_eq!(hand.rows("fi_monthly_income_difference").await, ledger);
                assert_eq!(incidents(&app).await, [""; 0]);
            }
        }
    }

    async fn s06_then_releases_exactly_the_reserved_lock_and_keeps_the_old_ones(app: TestApp) {
        let hand = revision(&app, false, "BUILT", INVALID[0]).await;
        hand.activate().await;
        let old = "SELECT * FROM fi_resident_income_payment_bill_lock WHERE id < 1004 ORDER BY id";
        let before = app.lines(old).await;
        let ledger = hand.rows("fi_monthly_income_difference").await;
        let summary = app.round(LOCK_RELEASE.handler).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(app.lines(old).await, before);
        let lock = hand.lock(1004).await;
        assert!(lock.starts_with("RELEASED|S4:202609:RELEASED:1004|204|2|"), "{lock}");
        assert!(lock.ends_with("|INVALID_REVISE_SESSION"), "{lock}");
        assert_eq!(session(&app).await, "SUBMIT_FAILED|1|INVALID_REVISE_SESSION|NULL|NULL|NULL");
        assert_eq!(hand.rows("fi_monthly_income_difference").await, ledger);
    }

    async fn closing_an_invalid_revision_is_all_or_nothing(app: TestApp) {
        let hand = revision(&app, false, "BUILT", INVALID[0]).await;
        let before = hand.everything().await;
        app.arm(Crash { point: "lock_activation.close_invalid", side: Side::Before, passage: 1 });
        app.try_round(counterfoil_payment::kinds::LOCK_ACTIVATE.handler, "").await
            .expect_err("a crash");
        assert_eq!(hand.everything().await, before);
        assert_eq!(tasks(&app).await, ["LOCK_ACTIVATE:22|1|0"]);
        app.pass_minutes(10);
        assert_eq!(hand.activate().await.cancelled, 1);
        let expected = ["LOCK_ACTIVATE:22|4|0", "LOCK_RELEASE:22:INVALID_REVISE_SESSION|0|0"];
        assert_eq!(tasks(&app).await, expected);
    }

    async fn a_version_published_without_the_pointer_is_an_incident_and_nothing_moves(
        app: TestApp
    ) {
        // Judged before identity: it does not matter whether the revision is valid.
        for change in [&[""], INVALID.as_slice()].concat() {
            let hand = revision(&app, false, "PUBLISHED", change).await;
            let untouched = |lines: Vec<String>| -> Vec<String> {
                lines.into_iter().filter(|line| !line.starts_with("selection_session: 12|"))
                    .collect()
            };
            let before = untouched(hand.everything().await);
            let summary = hand.activate().await;
            assert_eq!((summary.cancelled, summary.failed), (1, 0), "{change}: {summary:?}");
            assert_eq!(untouched(hand.everything().await), before, "{change}");
            assert_eq!(tasks(&app).await, ["LOCK_ACTIVATE:22|4|0"], "{change}");
            let expected =
                format!("PUBLISHED_LOCK_SYNCING|1|{INCIDENT}|22|scope:12|revise:1");
            assert_eq!(session(&app).await, expected, "{change}");
            assert_eq!(incidents(&app).await, one_incident(), "{change}");
        }
    }

    async fn the_pointer_without_a_published_version_is_an_incident_brought_into_line(
        app: TestApp
    ) {
        for change in ["", INVALID[0], INVALID[4]] {
            for status in ["BUILT", "BUILD_FAILED"] {
                let hand = revision(&app, true, status, change).await;
                hand.activated().await;
                is_in_line(hand, status).await;
                let expected = format!("COMPLETED|1|{INCIDENT}|NULL|NULL|revise:1");
                assert_eq!(session(&app).await, expected, "{change} {status}");
                assert_eq!(incidents(&app).await, one_incident(), "{change} {status}");
            }
        }
    }

    async fn an_invalid_revision_that_is_published_is_an_incident_brought_into_line(app: TestApp) {
        for invalid in INVALID {
            let hand = revision(&app, true, "PUBLISHED", invalid).await;
            hand.activated().await;
            is_in_line(hand, "PUBLISHED").await;
            let expected = format!("COMPLETED|1|{INCIDENT}|NULL|NULL|revise:1");
            assert_eq!(session(&app).await, expected, "{invalid}");
            assert_eq!(incidents(&app).await, one_incident(), "{invalid}");
        }
    }

    async fn an_incident_is_recorded_once_whatever_fails_after_it(app: TestApp) {
        let hand = revision(&app, true, "BUILT", "").await;
        app.execute("UPDATE fi_customer_bill SET deleted = 1 WHERE id = 64").await;
        for _ in 0..2 {
            let summary = hand.activate().await;
            assert_eq!(summary.failed, 1, "{summary:?}");
            assert_eq!(incidents(&app).await, one_incident());
            let expected =
                format!("PUBLISHED_LOCK_SYNCING|1|{INCIDENT}|22|scope:12|revise:1");
            assert_eq!(session(&app).await, expected);
            let version = "SELECT state_version FROM selection_session WHERE id = 12";
            assert_eq!(app.value(version).await, "6");
            app.pass_minutes(30);
        }
        app.execute("UPDATE fi_customer_bill SET deleted = 0 WHERE id = 64").await;
        hand.activated_after(2).await;
        assert_eq!(incidents(&app).await, one_incident());
        let expected = format!("COMPLETED|1|{INCIDENT}|NULL|NULL|revise:1");
        assert_eq!(session(&app).await, expected);
    }

    async fn an_incident_is_recorded_also_while_another_holds_the_batch_or_it_is_missing(
        app: TestApp
    ) {
        let hand = revision(&app, true, "BUILT", "").await;
        app.execute(&format!("UPDATE selection_submit_batch SET batch_status = 'RUNNING',
            worker_id = 'other', lease_expire_time = {}", hand.minutes(5))).await;
        let summary = hand.activate().await;
        assert_eq!((summary.skipped, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(incidents(&app).await, one_incident());
        let hand = revision(&app, true, "BUILT", "DELETE FROM selection_submit_batch").await;
        hand.refused().await;
        assert_eq!(incidents(&app).await, one_incident());
    }

    async fn a_new_order_passes_by_pointer_or_by_version(app: TestApp) {
        for (p, status) in [(true, "PUBLISHED"), (true, "BUILT"), (false, "PUBLISHED")] {
            Hand(&app).wipe().await;
            let hand = Hand::new_order(&app, 2).await;
            pointer(&app, p).await;
            version(&app, status).await;
            hand.activated().await;
            assert_eq!(hand.references(2).await, "30|1|202", "{p} {status}");
            let version = "SELECT version_build_status FROM
                fi_resident_income_payment_order_version";
            assert_eq!(app.value(version).await, status);
            assert_eq!(incidents(&app).await, [""; 0], "{p} {status}");
        }
        Hand(&app).wipe().await;
        let hand = Hand::new_order(&app, 2).await;
        pointer(&app, false).await;
        version(&app, "BUILT").await;
        let before = hand.everything().await;
        hand.refused().await;
        assert_eq!(hand.everything().await, before);
    }
}
