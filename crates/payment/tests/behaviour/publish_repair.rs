//! An operator puts the record of a publication right, and nothing else.

use counterfoil_e2e::{Bill, Fixture, TestApp, on_every_database};
use counterfoil_payment::PaymentError;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::publish_repair::repair_publish;
use counterfoil_payment::session::Submission;
use counterfoil_protocol::{OrderId, UserId};

const OPERATOR: UserId = UserId(42);

/// V1 in line; V2 built and published, S04 not run.
async fn revision(app: &TestApp) -> Submission {
    let fixture = Fixture(app);
    fixture.records(3).await;
    let session = fixture.new_session(&[1, 2].map(Bill::payable)).await;
    let first = fixture.submit(session).await;
    app.round(SUBMIT_BUILD.handler).await;
    app.round(LOCK_ACTIVATE.handler).await;
    let bills = [1, 3].map(Bill::payable);
    let session = fixture.revise_session(first.order.0, &bills).await;
    app.execute(&format!(
        "UPDATE selection_session SET active_revise_key = 'revise:{}' WHERE id = {session}",
        first.order
    ))
    .await;
    let second = fixture.submit(session).await;
    app.round(SUBMIT_BUILD.handler).await;
    second
}

async fn unpublish(app: &TestApp, submission: &Submission) {
    app.execute(&format!(
        "UPDATE fi_resident_income_payment_order_version
         SET version_build_status = 'BUILT', publish_time = NULL WHERE id = {}",
        submission.version
    ))
    .await;
}

async fn record(app: &TestApp, submission: &Submission) -> String {
    app.value(&format!(
        "SELECT v.version_build_status, CASE WHEN v.publish_time IS NULL THEN 0 ELSE 1 END AS at,
            s.status, s.invalidated_flag, s.invalidated_reason, s.active_revise_key
         FROM fi_resident_income_payment_order_version v
         JOIN selection_session s ON s.id = v.session_id WHERE v.id = {}",
        submission.version
    ))
    .await
}

/// Everything that a refused repair must leave as it is.
async fn everything(app: &TestApp) -> Vec<String> {
    let mut all = Vec::new();
    for table in [
        "fi_resident_income_payment_order_version",
        "fi_resident_income_payment_order",
        "selection_session",
        "fi_resident_income_payment_bill_lock",
        "fi_resident_income_payment_async_operation_log",
        "fi_async_task",
    ] {
        all.extend(
            app.lines(&format!("SELECT * FROM {table} ORDER BY id"))
                .await,
        );
    }
    all
}

async fn refused(app: &TestApp, order: OrderId) -> String {
    let before = everything(app).await;
    let error = repair_publish(&app.db, order, OPERATOR, "checked").await;
    let error = error.expect_err("a refusal");
    assert_eq!(error.code(), "publish-repair-refused", "{error}");
    assert_eq!(everything(app).await, before, "a refusal writes nothing");
    error.to_string()
}

const INCIDENT: &str = "INVALID_REVISE_SESSION_PUBLISHED_INCIDENT";

on_every_database! {
    async fn a_completed_incident_is_put_right_and_gives_its_key_back(app: TestApp) {
        let submission = revision(&app).await;
        let key = format!("revise:{}", submission.order);
        unpublish(&app, &submission).await;
        app.round(LOCK_ACTIVATE.handler).await;
        assert_eq!(
            record(&app, &submission).await,
            format!("BUILT|0|COMPLETED|1|{INCIDENT}|{key}")
        );
        let done = repair_publish(&app.db, submission.order, OPERATOR, " checked by hand ").await;
        let done = done.expect("a repair");
        assert_eq!(done.payment_order_version_id, submission.version);
        assert_eq!(done.was, "BUILT");
        assert!(done.incident_cleared && done.revise_key_cleared && !done.incident_remains);
        assert_eq!(record(&app, &submission).await, "PUBLISHED|1|COMPLETED|0|NULL|NULL");
        let trace = app.lines("SELECT task_type, action, result, operator_user_id,
               payment_order_version_id
             FROM fi_resident_income_payment_async_operation_log
             WHERE action = 'REPAIR'").await;
        assert_eq!(trace, [format!(
            "RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE|REPAIR|PUBLISHED|42|{}", submission.version
        )]);
        let detail = app.value("SELECT detail FROM fi_resident_income_payment_async_operation_log
             WHERE action = 'REPAIR'").await;
        assert!(detail.contains(r#""reason":"checked by hand""#), "{detail}");
        let task = app.value("SELECT t.task_code FROM fi_async_task t
             JOIN fi_resident_income_payment_async_operation_log l ON l.task_id = t.id
             WHERE l.action = 'REPAIR'").await;
        assert_eq!(task, done.task_code);
        let told = refused(&app, submission.order).await;
        assert!(told.contains("nothing to repair"), "{told}");
    }

    async fn a_record_repaired_before_s04_leaves_no_incident(app: TestApp) {
        let submission = revision(&app).await;
        let key = format!("revise:{}", submission.order);
        unpublish(&app, &submission).await;
        let done = repair_publish(&app.db, submission.order, OPERATOR, "checked").await;
        let done = done.expect("a repair");
        assert!(!done.incident_cleared && !done.revise_key_cleared);
        assert_eq!(
            record(&app, &submission).await,
            format!("PUBLISHED|1|PUBLISHED_LOCK_SYNCING|0|NULL|{key}")
        );
        app.round(LOCK_ACTIVATE.handler).await;
        assert_eq!(record(&app, &submission).await, "PUBLISHED|1|COMPLETED|0|NULL|NULL");
    }

    async fn a_strangers_revision_stays_an_incident_when_its_record_is_repaired(app: TestApp) {
        let submission = revision(&app).await;
        let key = format!("revise:{}", submission.order);
        unpublish(&app, &submission).await;
        app.execute("UPDATE selection_session SET creator_user_id = 8 WHERE mode = 'REVISE'").await;
        app.round(LOCK_ACTIVATE.handler).await;
        let done = repair_publish(&app.db, submission.order, OPERATOR, "checked").await;
        let done = done.expect("a repair");
        assert!(done.incident_remains && !done.incident_cleared && !done.revise_key_cleared);
        assert_eq!(
            record(&app, &submission).await,
            format!("PUBLISHED|1|COMPLETED|1|{INCIDENT}|{key}")
        );
    }

    async fn two_operators_repair_once(app: TestApp) {
        let submission = revision(&app).await;
        unpublish(&app, &submission).await;
        app.round(LOCK_ACTIVATE.handler).await;
        let other = app.second_process().await;
        let (one, two) = tokio::join!(
            repair_publish(&app.db, submission.order, OPERATOR, "one"),
            repair_publish(&other.db, submission.order, UserId(43), "two"),
        );
        other.db.close().await;
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let refusal = one.err().or(two.err()).expect("a refusal");
        assert!(refusal.to_string().contains("nothing to repair"), "{refusal}");
        let repairs = Fixture(&app).count(
            "fi_resident_income_payment_async_operation_log WHERE action = 'REPAIR'").await;
        assert_eq!(repairs, 1);
    }

    async fn every_other_state_is_refused_and_nothing_is_written(app: TestApp) {
        let submission = revision(&app).await;
        let order = submission.order;
        let set = async |what: &str| app.execute(what).await;
        let told = refused(&app, order).await;
        assert!(told.contains("nothing to repair"), "{told}");

        unpublish(&app, &submission).await;
        set("UPDATE selection_session SET status = 'SUBMIT_FAILED' WHERE mode = 'REVISE'").await;
        let told = refused(&app, order).await;
        assert!(told.contains("session is SUBMIT_FAILED"), "{told}");
        set("UPDATE selection_session SET status = 'COMPLETED' WHERE mode = 'REVISE'").await;
        let told = refused(&app, order).await;
        assert!(told.contains("2 PAYABLE lines and 0 ACTIVE"), "{told}");

        set("UPDATE fi_resident_income_payment_order SET submit_round = 9").await;
        let told = refused(&app, order).await;
        assert!(told.contains("submit round"), "{told}");
        set("UPDATE fi_resident_income_payment_order SET submit_round = 2, status = 90").await;
        let told = refused(&app, order).await;
        assert!(told.contains("cancelled"), "{told}");

        set("UPDATE fi_resident_income_payment_order SET status = 20,
             current_publish_version = 7").await;
        let told = refused(&app, order).await;
        assert!(told.contains("no version record"), "{told}");
        set("UPDATE fi_resident_income_payment_order_version
             SET version_build_status = 'PUBLISHED'").await;
        set("UPDATE fi_resident_income_payment_order SET current_publish_version = 1").await;
        let told = refused(&app, order).await;
        assert!(told.contains("data version 2 says PUBLISHED but the order points to 1"), "{told}");
    }

    async fn a_version_whose_locks_are_being_released_is_not_published(app: TestApp) {
        let submission = revision(&app).await;
        unpublish(&app, &submission).await;
        app.execute(&format!("INSERT INTO fi_async_task (task_code, task_type, business_key)
            VALUES ('RIPLR:x', 'RESIDENT_INCOME_PAYMENT_LOCK_RELEASE',
                    'LOCK_RELEASE:{}:PUBLISH_LOST')", submission.version)).await;
        let told = refused(&app, submission.order).await;
        assert!(told.contains("S06"), "{told}");
    }

    async fn a_repair_needs_a_person_a_reason_and_an_order(app: TestApp) {
        let submission = revision(&app).await;
        unpublish(&app, &submission).await;
        let before = everything(&app).await;
        for (user, reason, field) in [(0, "checked", "user"), (42, " ", "reason")] {
            let error = repair_publish(&app.db, submission.order, UserId(user), reason).await;
            let error = error.expect_err("a refusal");
            assert_eq!(error.code(), "invalid-input");
            assert!(error.to_string().starts_with(field), "{error}");
        }
        let error = repair_publish(&app.db, OrderId(i64::MAX), OPERATOR, "checked").await;
        assert!(matches!(error, Err(PaymentError::OrderNotFound(OrderId(i64::MAX)))));
        assert_eq!(everything(&app).await, before);
    }
}
