//! S03 (payment-flow.md, "Submit and S03 build"): conflicts, resubmission, lost publications.

use counterfoil_db::Side;
use counterfoil_e2e::{Bill, CREATOR, Crash, Fixture, TestApp, on_every_database};
use counterfoil_payment::PaymentError;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::session::{Submission, submit};
use counterfoil_protocol::{SessionId, UserId};
use counterfoil_task::Kicker;

const STATE: &str = "SELECT v.version_build_status, v.error_code, s.status, s.failure_phase,
       s.submit_attempt, o.status AS order_status, o.current_publish_version
     FROM fi_resident_income_payment_order_version v
     JOIN selection_session s ON s.id = v.session_id
     JOIN fi_resident_income_payment_order o ON o.id = v.payment_order_id
     WHERE v.id = ";

async fn state(app: &TestApp, submission: &Submission) -> String {
    app.value(&format!("{STATE}{}", submission.version)).await
}

/// The code that a submission is refused with.
async fn refused(app: &TestApp, session: SessionId, user: UserId) -> &'static str {
    let refused = submit(&app.db, &Kicker::none(), session, user).await;
    refused.expect_err("a refusal").code()
}

async fn build(app: &TestApp) -> [u32; 3] {
    let summary = app.round(SUBMIT_BUILD.handler).await;
    [summary.succeeded, summary.cancelled, summary.failed]
}

/// A submission of these bills, published and activated.
async fn published(app: &TestApp, bills: &[Bill]) -> Submission {
    let fixture = Fixture(app);
    let session = fixture.new_session(bills).await;
    let submission = fixture.submit(session).await;
    assert_eq!(build(app).await, [1, 0, 0]);
    assert_eq!(app.round(LOCK_ACTIVATE.handler).await.succeeded, 1);
    submission
}

async fn order_number(app: &TestApp, submission: &Submission) -> String {
    app.value(&format!(
        "SELECT order_no FROM fi_resident_income_payment_order WHERE id = {}",
        submission.order
    ))
    .await
}

/// Order number, station and month of each conflict of a submission.
async fn conflicts(app: &TestApp, submission: &Submission) -> Vec<String> {
    app.lines(&format!(
        "SELECT station_id, bill_yearmonth, holder_order_no, holder_order_id
         FROM selection_conflict WHERE payment_order_version_id = {} ORDER BY id",
        submission.version
    ))
    .await
}

/// V1 published, then a revision of it submitted, not yet built.
async fn revision(app: &TestApp) -> (Submission, Submission) {
    let fixture = Fixture(app);
    fixture.records(4).await;
    let v1 = published(app, &[1, 2, 3].map(Bill::payable)).await;
    let session = fixture
        .revise_session(v1.order.0, &[1, 4].map(Bill::payable))
        .await;
    let v2 = fixture.submit(session).await;
    (v1, v2)
}

on_every_database! {
    async fn all_conflicts_are_listed_with_their_holder(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(8).await;
        let first = published(&app, &[1, 2].map(Bill::payable)).await;
        let second = published(&app, &[3].map(Bill::payable)).await;
        let mut bills = [1, 2, 3, 4, 5].map(Bill::payable).to_vec();
        bills.push(Bill::unqualified(6, "农户租金异常", 0));
        let session = fixture.new_session(&bills).await;
        let third = fixture.submit(session).await;
        fixture.batch_size(&third, 1).await;
        assert_eq!(build(&app).await, [0, 1, 0]);
        let (one, two) = (order_number(&app, &first).await, order_number(&app, &second).await);
        let expected = [format!("S1|202609|{one}|{}", first.order),
            format!("S2|202609|{one}|{}", first.order),
            format!("S3|202609|{two}|{}", second.order)];
        assert_eq!(conflicts(&app, &third).await, expected);
        let expected = "BUILD_FAILED|bill-lock-conflict|SUBMIT_FAILED|BUILD|1|10|0";
        assert_eq!(state(&app, &third).await, expected);
        let tasks = "SELECT task_status, business_key FROM fi_async_task ORDER BY id DESC LIMIT 2";
        let expected = [format!("0|LOCK_RELEASE:{}:SUBMIT_CONFLICT", third.version),
            format!("4|SUBMIT_BUILD:{}", third.version)];
        assert_eq!(app.lines(tasks).await, expected);
    }

    async fn an_unqualified_bill_needs_no_lock_and_conflicts_with_nobody(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(2).await;
        published(&app, &[1].map(Bill::payable)).await;
        let bills = [Bill::unqualified(1, "农户租金异常", 0), Bill::payable(2)];
        published(&app, &bills).await;
        let locks = "SELECT station_id, lock_status FROM fi_resident_income_payment_bill_lock
            ORDER BY id";
        assert_eq!(app.lines(locks).await, ["S1|ACTIVE", "S2|ACTIVE"]);
    }

    async fn a_failed_submission_is_submitted_again_once_its_s06_is_success(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(3).await;
        let holder = published(&app, &[1].map(Bill::payable)).await;
        let session = fixture.new_session(&[1, 2].map(Bill::payable)).await;
        let first = fixture.submit(session).await;
        assert_eq!(refused(&app, session, CREATOR).await, "session-state", "it is submitting");
        build(&app).await;
        assert_eq!(refused(&app, session, CREATOR).await, "session-state", "S06 is PENDING");
        app.arm(Crash { point: "lock_release.close", side: Side::Before, passage: 1 });
        app.try_round(LOCK_RELEASE.handler, "").await.expect_err("a crash");
        assert_eq!(refused(&app, session, CREATOR).await, "session-state", "S06 is RUNNING");
        app.pass_minutes(10);
        assert_eq!(app.round(LOCK_RELEASE.handler).await.succeeded, 1);
        app.execute(&format!("UPDATE fi_resident_income_payment_bill_lock
            SET lock_status = 'RELEASED', lock_key = lock_key || ':RELEASED:' || id
            WHERE payment_order_id = {}", holder.order)).await;
        let second = fixture.submit(session).await;
        assert_eq!((second.order, second.attempt.0), (first.order, 2), "the same order");
        assert_ne!(second.version, first.version);
        assert_eq!(build(&app).await, [1, 0, 0]);
        let data = format!("SELECT target_data_version, source_data_version, target_submit_round
            FROM fi_resident_income_payment_order_version WHERE payment_order_id = {}
            ORDER BY id", first.order);
        assert_eq!(app.lines(&data).await, ["1|0|1", "2|0|1"], "no data version is used twice");
        assert_eq!(app.round(LOCK_ACTIVATE.handler).await.succeeded, 1);
        assert_eq!(state(&app, &second).await, "PUBLISHED|NULL|COMPLETED|NULL|2|20|2");
    }

    async fn an_invalidated_session_gives_up_its_keys_and_is_over(app: TestApp) {
        let fixture = Fixture(&app);
        let session = fixture.new_session(&[1].map(Bill::payable)).await;
        app.execute("UPDATE selection_session SET status = 'SUBMIT_FAILED', invalidated_flag = 1,
            active_submit_id = 5, active_scope_key = 'scope:1', active_revise_key = 'revise:1'")
            .await;
        assert_eq!(refused(&app, session, CREATOR).await, "session-state");
        let keys = "SELECT status, active_submit_id, active_scope_key, active_revise_key
            FROM selection_session";
        assert_eq!(app.value(keys).await, "SUBMIT_FAILED|NULL|NULL|NULL");
        assert_eq!(refused(&app, session, CREATOR).await, "session-state");
        assert_eq!(fixture.count("fi_resident_income_payment_order").await, 0);
        assert_eq!(fixture.count("fi_async_task").await, 0);
    }

    async fn a_publication_is_lost_when_the_order_moved_meanwhile(app: TestApp) {
        for change in ["current_publish_version = 9", "submit_round = 9", "status = 20",
            "status = 40", "status = 90"] {
            let fixture = Fixture(&app);
            let session = fixture.new_session(&[Bill::payable(1)]).await;
            let lost = fixture.submit(session).await;
            app.execute(&format!("UPDATE fi_resident_income_payment_order SET {change}
                WHERE id = {}", lost.order)).await;
            let order = format!("SELECT status, business_status, current_publish_version,
                submit_round, payable_count FROM fi_resident_income_payment_order
                WHERE id = {}", lost.order);
            let before = app.value(&order).await;
            assert_eq!(build(&app).await, [0, 1, 0], "{change}");
            let found = state(&app, &lost).await;
            assert!(found.starts_with("BUILD_FAILED|publish-lost|SUBMIT_FAILED|BUILD|1|"),
                "{change}: {found}");
            assert_eq!(app.value(&order).await, before, "{change}");
            assert_eq!(app.round(LOCK_RELEASE.handler).await.succeeded, 1, "{change}");
            let held = "fi_resident_income_payment_bill_lock WHERE lock_status <> 'RELEASED'";
            assert_eq!(fixture.count(held).await, 0, "{change}");
            assert_eq!(fixture.count("fi_async_task WHERE task_status = 0").await, 0, "no S04");
        }
    }

    async fn a_revision_is_lost_when_its_order_was_approved_or_replaced_meanwhile(app: TestApp) {
        let (v1, v2) = revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order SET status = 40").await;
        assert_eq!(build(&app).await, [0, 1, 0]);
        let found = state(&app, &v2).await;
        assert_eq!(found, "BUILD_FAILED|publish-lost|SUBMIT_FAILED|BUILD|1|40|1");
        assert_eq!(app.round(LOCK_RELEASE.handler).await.succeeded, 1);
        let locks = "SELECT station_id, lock_status, data_version
            FROM fi_resident_income_payment_bill_lock ORDER BY id";
        let expected = ["S1|ACTIVE|1", "S2|ACTIVE|1", "S3|ACTIVE|1", "S4|RELEASED|2"];
        assert_eq!(app.lines(locks).await, expected);
        assert_eq!(state(&app, &v1).await, "PUBLISHED|NULL|COMPLETED|NULL|1|40|1");
    }

    async fn a_revision_is_checked_again_at_publish(app: TestApp) {
        let (v1, v2) = revision(&app).await;
        app.execute(&format!("UPDATE selection_session SET status = 'PUBLISHED_LOCK_SYNCING'
            WHERE id = (SELECT session_id FROM fi_resident_income_payment_order_version
              WHERE id = {})", v1.version)).await;
        assert_eq!(build(&app).await, [0, 1, 0]);
        let found = state(&app, &v2).await;
        assert_eq!(found, "BUILD_FAILED|publish-lost|SUBMIT_FAILED|BUILD|1|20|1");
    }

    async fn a_rejected_order_can_be_revised_and_others_are_refused_at_submit(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(2).await;
        let v1 = published(&app, &[Bill::payable(1)]).await;
        let session = fixture.revise_session(v1.order.0, &[1, 2].map(Bill::payable)).await;
        for status in [10, 40, 50, 55, 90] {
            app.execute(&format!("UPDATE fi_resident_income_payment_order
                SET status = {status}")).await;
            assert_eq!(refused(&app, session, CREATOR).await, "order-state", "{status}");
        }
        app.execute("UPDATE fi_resident_income_payment_order SET status = 30").await;
        for of_v1 in ["EDITING", "SUBMITTING", "PUBLISHED_LOCK_SYNCING", "SUBMIT_FAILED"] {
            app.execute(&format!("UPDATE selection_session SET status = '{of_v1}'
                WHERE mode = 'NEW'")).await;
            assert_eq!(refused(&app, session, CREATOR).await, "order-state", "{of_v1}");
        }
        app.execute("UPDATE selection_session SET status = 'COMPLETED' WHERE mode = 'NEW'").await;
        assert_eq!(refused(&app, session, UserId(8)).await, "forbidden");
        app.execute("UPDATE fi_resident_income_payment_order SET create_user_id = 8").await;
        assert_eq!(refused(&app, session, CREATOR).await, "forbidden", "not the first creator");
        app.execute("UPDATE fi_resident_income_payment_order SET create_user_id = 7").await;
        let v2 = fixture.submit(session).await;
        assert_eq!(build(&app).await, [1, 0, 0]);
        let expected = "PUBLISHED|NULL|PUBLISHED_LOCK_SYNCING|NULL|1|20|2";
        assert_eq!(state(&app, &v2).await, expected);
    }

    async fn a_kept_line_knows_its_source_and_what_was_before_the_first_version(app: TestApp) {
        let (v1, v2) = revision(&app).await;
        assert_eq!(build(&app).await, [1, 0, 0]);
        let lines = format!("SELECT t.station_id, s.station_id AS source, t.submit_round,
              t.before_payment_status, t.before_partner_query_status
            FROM fi_resident_income_payment_order_bill t
            LEFT JOIN fi_resident_income_payment_order_bill s ON s.id = t.source_order_bill_id
             AND s.data_version = 1
            WHERE t.payment_order_id = {} AND t.data_version = 2 ORDER BY t.id", v1.order);
        assert_eq!(app.lines(&lines).await, ["S1|S1|2|20|10", "S4|NULL|2|20|10"]);
        let locks = format!("SELECT station_id, lock_status, lock_scene, session_id
            FROM fi_resident_income_payment_bill_lock WHERE data_version = 2
             AND payment_order_id = {}", v2.order);
        let session = app.value(&format!("SELECT session_id
            FROM fi_resident_income_payment_order_version WHERE id = {}", v2.version)).await;
        let expected = [format!("S4|RESERVED|BUILD_RESERVE|{session}")];
        assert_eq!(app.lines(&locks).await, expected, "a carried lock is not reserved again");
    }

    async fn a_conflict_met_in_the_middle_leaves_no_lock_once_s06_has_run(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(6).await;
        let session = fixture.new_session(&[1, 2, 3, 4].map(Bill::payable)).await;
        let submission = fixture.submit(session).await;
        fixture.batch_size(&submission, 2).await;
        app.arm(Crash { point: "submit_build.batch", side: Side::After, passage: 1 });
        app.try_round(SUBMIT_BUILD.handler, "").await.expect_err("a crash");
        let reserved = "fi_resident_income_payment_bill_lock WHERE lock_status = 'RESERVED'";
        assert_eq!(fixture.count(reserved).await, 2);
        published(&app, &[Bill::payable(4)]).await;
        app.pass_minutes(10);
        assert_eq!(build(&app).await, [0, 1, 0]);
        assert_eq!(conflicts(&app, &submission).await.len(), 1);
        assert_eq!(app.round(LOCK_RELEASE.handler).await.succeeded, 1);
        assert_eq!(fixture.count(reserved).await, 0);
        let left = "SELECT station_id FROM fi_resident_income_payment_bill_lock
            WHERE lock_status <> 'RELEASED'";
        assert_eq!(app.lines(left).await, ["S4"]);
    }

    async fn what_cannot_be_submitted_is_refused_and_nothing_is_written(app: TestApp) {
        let fixture = Fixture(&app);
        let empty = fixture.new_session(&[]).await;
        assert_eq!(refused(&app, empty, CREATOR).await, "invalid-input");
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        assert_eq!(refused(&app, session, UserId(8)).await, "forbidden");
        assert_eq!(refused(&app, SessionId(404), CREATOR).await, "session-not-found");
        for status in ["SUBMITTING", "PUBLISHED_LOCK_SYNCING", "COMPLETED"] {
            app.execute(&format!("UPDATE selection_session SET status = '{status}'")).await;
            assert_eq!(refused(&app, session, CREATOR).await, "session-state", "{status}");
        }
        app.execute("UPDATE selection_session SET status = 'EDITING', mode = 'REVISE'").await;
        assert_eq!(refused(&app, session, CREATOR).await, "invalid-input", "no order named");
        assert_eq!(fixture.count("fi_resident_income_payment_order").await, 0);
        assert_eq!(fixture.count("selection_submit_batch").await, 0);
        let lost = submit(&app.db, &Kicker::none(), session, CREATOR).await;
        assert!(matches!(lost, Err(PaymentError::Invalid { .. })), "{lost:?}");
    }
}
