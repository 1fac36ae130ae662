//! A process may die at any commit of S03 to S06: whoever comes next goes on, and the end is the
//! same.

use counterfoil_e2e::{Bill, Crash, Dialect, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::Submission;

const RENT_ABNORMAL: &str = "农户租金异常";

/// Everything about the end that must not depend on the way there: no ids, attempts or times.
async fn end_state(app: &TestApp) -> Vec<String> {
    let mut state = Vec::new();
    for query in [
        "SELECT k.station_id, k.lock_status, k.lock_scene, k.lock_origin, k.data_version,
            k.submit_round, k.submit_attempt, k.release_reason, l.station_id AS of_line
         FROM fi_resident_income_payment_bill_lock k
         JOIN fi_resident_income_payment_order_bill l ON l.id = k.order_bill_id
         ORDER BY k.station_id, k.id",
        "SELECT d.station_id, d.payment_status, d.financial_version, d.unqualified_reason,
            l.data_version, l.station_id AS of_line
         FROM fi_monthly_income_difference d
         LEFT JOIN fi_resident_income_payment_order_bill l ON l.id = d.locked_order_bill_id
         ORDER BY d.id",
        "SELECT station_id, payment_status FROM fi_customer_bill ORDER BY id",
        "SELECT station_id, payment_status, partner_query_status, unqualified_flag
         FROM fi_customer_bill_partner ORDER BY id",
        "SELECT station_id, data_version, submit_round, line_type, pay_amount
         FROM fi_resident_income_payment_order_bill ORDER BY data_version, station_id, id",
        "SELECT batch_phase, batch_status, processed_count FROM selection_submit_batch
         ORDER BY id",
        "SELECT status, current_publish_version, submit_round, total_amount, payable_count,
            unqualified_count FROM fi_resident_income_payment_order",
        "SELECT mode, status, submit_attempt, active_submit_id FROM selection_session ORDER BY id",
        "SELECT task_type, task_status, retry_count FROM fi_async_task ORDER BY id",
        "SELECT task_type, action, result FROM fi_resident_income_payment_async_operation_log
         ORDER BY id",
        "SELECT data_version, project_company_id, payment_status, amount
         FROM fi_resident_income_payment_order_project_payment ORDER BY id",
    ] {
        state.extend(app.lines(query).await);
        state.push("--".into());
    }
    state
}

async fn submit_first(app: &TestApp) -> Submission {
    let fixture = Fixture(app);
    fixture.records(7).await;
    let session = fixture.new_session(&[1, 2, 3, 4, 5].map(Bill::payable)).await;
    let submission = fixture.submit(session).await;
    fixture.batch_size(&submission, 2).await;
    submission
}

async fn submit_revision(app: &TestApp, order: i64) -> Submission {
    let bills = [
        Bill::payable(1),
        Bill::unqualified(3, RENT_ABNORMAL, 5),
        Bill::payable(5),
        Bill::payable(6),
        Bill::payable(7),
    ];
    let fixture = Fixture(app);
    let session = fixture.revise_session(order, &bills).await;
    let submission = fixture.submit(session).await;
    fixture.batch_size(&submission, 2).await;
    submission
}

/// Rounds until nothing is left to do; each time the dead process's tasks become stale.
async fn work_off(app: &TestApp) {
    for _ in 0..4 {
        app.round(SUBMIT_BUILD.handler).await;
        app.round(LOCK_ACTIVATE.handler).await;
        app.pass_minutes(11);
    }
}

/// V1 and V2 with a crash in the making of V2; answers the end state.
async fn revise_with(crash: Option<Crash>, app: &TestApp) -> Vec<String> {
    let v1 = submit_first(app).await;
    work_off(app).await;
    submit_revision(app, v1.order.0).await;
    if let Some(crash) = crash {
        app.arm(crash);
        let mut crashed = false;
        for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler] {
            crashed |= app.try_round(handler, "").await.is_err();
        }
        assert!(crashed && !app.faults().is_armed(), "{crash:?} did not strike");
        app.pass_minutes(11);
    }
    work_off(app).await;
    end_state(app).await
}

async fn every_crash_ends_alike(dialect: Dialect) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let undisturbed = async move |app: TestApp| {
        let v1 = submit_first(&app).await;
        work_off(&app).await;
        submit_revision(&app, v1.order.0).await;
        let crashes = app.crashes_of(work_off(&app)).await;
        let state = end_state(&app).await;
        sender.send((crashes, state)).await.expect("a listener");
    };
    counterfoil_e2e::run(dialect, undisturbed).await;
    let (crashes, expected) = receiver.recv().await.expect("the undisturbed end");
    let points: std::collections::BTreeSet<_> = crashes.iter().map(|c| c.point).collect();
    for point in [
        "task.claim",
        "submit_build.batch",
        "submit_build.publish",
        "lock_activation.enter",
        "lock_activation.keep",
        "lock_activation.release",
        "lock_activation.activate",
        "lock_activation.project",
        "lock_activation.clean_up",
        "lock_activation.complete",
    ] {
        assert!(points.contains(point), "{point} was not passed: {points:?}");
    }
    for crash in crashes {
        let expected = expected.clone();
        counterfoil_e2e::run(dialect, async move |app: TestApp| {
            let state = revise_with(Some(crash), &app).await;
            assert_eq!(state, expected, "{crash:?}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_commit_of_a_revision_ends_like_no_crash_on_sqlite() {
    every_crash_ends_alike(Dialect::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_commit_of_a_revision_ends_like_no_crash_on_postgres() {
    every_crash_ends_alike(Dialect::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_commit_of_a_revision_ends_like_no_crash_on_mariadb() {
    every_crash_ends_alike(Dialect::MariaDb).await;
}

on_every_database! {
    async fn a_second_run_of_everything_changes_nothing(app: TestApp) {
        let before = revise_with(None, &app).await;
        work_off(&app).await;
        assert_eq!(end_state(&app).await, before);
    }
}
