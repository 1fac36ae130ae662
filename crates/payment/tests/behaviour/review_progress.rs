//! S08: an approval moves batch by batch, and the order is effective with FINALIZE and not before.

use counterfoil_db::{Query, Read};
use counterfoil_e2e::{Bill, Crash, Dialect, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{REVIEW_CALLBACK, REVIEW_PROGRESS, SUBMIT_BUILD};
use counterfoil_payment::review_callback::{Conclusion, STALE_NOTE};
use counterfoil_protocol::OrderId;

use super::approval::{advance, decide, instant, prepared, progress, under_review};

const REASON: &str = "农户租金异常";
const EARLY: &str = "2026-09-01T00:00:00+00:00";
const LATE: &str = "2026-09-02T00:00:00+00:00";

fn seven() -> Vec<Bill> {
    let mut bills = [1, 2, 3, 4, 5].map(Bill::payable).to_vec();
    bills.push(Bill::unqualified(6, REASON, 0));
    bills.push(Bill::unqualified(7, REASON, 5));
    bills
}

async fn small_batches(app: &TestApp) {
    app.execute("UPDATE fi_resident_income_payment_review_callback_progress SET batch_size = 2")
        .await;
}

async fn one_turn(app: &TestApp) {
    let round = app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await;
    assert_eq!((round.selected, round.succeeded, round.failed), (1, 1, 0), "{round:?}");
}

const ORDER: &str = "SELECT o.status, o.payment_type, o.push_status, o.business_status,
      a.approval_status, t.task_status
   FROM fi_resident_income_payment_order o
   JOIN fi_resident_income_payment_order_approval_instance a ON a.payment_order_id = o.id
   JOIN fi_async_task t ON t.task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";

const LINES: &str = "SELECT line_type, line_status, COUNT(*) AS found
   FROM fi_resident_income_payment_order_bill GROUP BY line_type, line_status
   ORDER BY line_type, line_status";

/// Everything about the end that must not depend on the way there: no ids, attempts or times.
async fn end_state(app: &TestApp) -> Vec<String> {
    let mut state = Vec::new();
    for query in [
        ORDER,
        LINES,
        "SELECT phase, phase_status, main_task_status, payable_updated_count,
            unqualified_updated_count, lock_release_expected, lock_release_success,
            shard_expected, refresh_ready, last_error_code,
            CASE WHEN finalize_time IS NULL THEN 0 ELSE 1 END AS finalized
         FROM fi_resident_income_payment_review_callback_progress",
        "SELECT lock_status, release_reason, COUNT(*) AS found
         FROM fi_resident_income_payment_bill_lock GROUP BY lock_status, release_reason
         ORDER BY lock_status",
        "SELECT operation_type, from_status, to_status, payable_count, unqualified_count
         FROM fi_resident_income_payment_order_log ORDER BY id",
        "SELECT source_type, scope_count, task_status
         FROM fi_resident_income_payment_status_refresh_shard ORDER BY id",
        "SELECT task_type, task_status, retry_count FROM fi_async_task ORDER BY task_type",
    ] {
        state.extend(app.lines(query).await);
        state.push("--".into());
    }
    state
}

/// A lock on an unqualified line, as imported and historical data may hold one.
async fn lock_an_unqualified_line(app: &TestApp) {
    app.execute(
        "INSERT INTO fi_resident_income_payment_bill_lock
           (lock_key, lock_status, lock_scene, payment_order_id, order_bill_id, data_version,
            submit_round, station_id, bill_yearmonth)
         SELECT 'S6:202609', 'ACTIVE', 'PUBLISHED_ACTIVE', payment_order_id, id, data_version,
            submit_round, 'S6', '202609'
         FROM fi_resident_income_payment_order_bill WHERE station_id = 'S6'",
    )
    .await;
}

/// From the decision to the status refresh, with a process that dies on the way.
async fn approve_with(crash: Option<Crash>, app: &TestApp) -> Vec<String> {
    let order = under_review(app, &seven()).await;
    lock_an_unqualified_line(app).await;
    decide(app, order, Conclusion::Pass).await.expect("acceptance");
    if let Some(crash) = crash {
        app.arm(crash);
    }
    for _ in 0..6 {
        let _ = app.try_round(REVIEW_CALLBACK.handler, "").await;
        small_batches(app).await;
        let _ = app.try_round(REVIEW_PROGRESS.handler, "").await;
        app.pass_minutes(11);
    }
    assert!(crash.is_none() || !app.faults().is_armed(), "{crash:?} did not strike");
    end_state(app).await
}

async fn every_crash_ends_alike(dialect: Dialect) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let undisturbed = async move |app: TestApp| {
        let crashes = app.crashes_of(approve_with(None, &app)).await;
        let ours =
            |crash: &Crash| crash.point.starts_with("review_") || crash.point == "task.claim";
        let crashes: Vec<Crash> = crashes.into_iter().filter(ours).collect();
        sender.send((crashes, end_state(&app).await)).await.expect("a listener");
    };
    counterfoil_e2e::run(dialect, undisturbed).await;
    let (crashes, expected) = receiver.recv().await.expect("the undisturbed end");
    let points: std::collections::BTreeSet<_> = crashes.iter().map(|c| c.point).collect();
    for point in [
        "review_callback.prepare",
        "review_progress.lease",
        "review_progress.bill_update",
        "review_progress.finalize",
        "review_progress.lock_release",
        "review_progress.locks_released",
    ] {
        assert!(points.contains(point), "{point} was never passed: {points:?}");
    }
    // Claims before the decision's are other tests' matter.
    let crashes = crashes.into_iter().filter(|crash| crash.point.starts_with("review_"));
    for crash in crashes.filter(|crash| crash.point != "review_callback.accept") {
        let expected = expected.clone();
        let disturbed = async move |app: TestApp| {
            assert_eq!(approve_with(Some(crash), &app).await, expected, "{crash:?}");
        };
        counterfoil_e2e::run(dialect, disturbed).await;
    }
}

#[tokio::test]
async fn an_approval_survives_a_crash_at_every_commit_on_sqlite() {
    every_crash_ends_alike(Dialect::Sqlite).await;
}

#[tokio::test]
async fn an_approval_survives_a_crash_at_every_commit_on_postgres() {
    every_crash_ends_alike(Dialect::Postgres).await;
}

#[tokio::test]
async fn an_approval_survives_a_crash_at_every_commit_on_mariadb() {
    every_crash_ends_alike(Dialect::MariaDb).await;
}

on_every_database! {
    async fn an_approval_moves_batch_by_batch_and_is_effective_with_finalize(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        small_batches(&app).await;
        let expected = [
            "BILL_UPDATE|INIT|RUNNING|2|0|0",
            "BILL_UPDATE|INIT|RUNNING|4|0|0",
            "BILL_UPDATE|INIT|RUNNING|5|0|0",
            "FINALIZE|INIT|RUNNING|5|2|0",
        ];
        for row in expected {
            one_turn(&app).await;
            assert_eq!(progress(&app).await, row);
            assert_eq!(app.value(ORDER).await, "20|NULL|NULL|UNDER_REVIEW|IN_REVIEW|1");
        }
        assert_eq!(app.lines(LINES).await, ["10|20|5", "20|50|2"]);
        one_turn(&app).await;
        assert_eq!(progress(&app).await, "LOCK_RELEASE|INIT|SUCCESS|5|2|0");
        assert_eq!(
            app.value(ORDER).await,
            "40|TREASURY|NOT_PUSHED|UNDER_REVIEW|APPROVED|2"
        );
        one_turn(&app).await;
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|5|2|0");
        let round = app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(round.selected, 0, "the refresh is another handler's: {round:?}");
        let time = "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill
           WHERE line_type = 20 AND unqualified_effective_time IS NOT NULL";
        assert_eq!(app.value(time).await, "2");
    }

    async fn finalize_leaves_its_log_its_shards_and_its_side_effects(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        advance(&app).await;
        let log = "SELECT operation_type, from_status, to_status, operation_remark, review_plan_id,
             data_version, payable_count, unqualified_count
           FROM fi_resident_income_payment_order_log WHERE operation_type = 'REVIEW_APPROVED'";
        assert_eq!(app.lines(log).await, ["REVIEW_APPROVED|20|40|looked at|900|1|5|2"]);
        let shards = "SELECT source_type, scope_count, task_status
           FROM fi_resident_income_payment_status_refresh_shard";
        assert_eq!(app.lines(shards).await, ["REVIEW_APPROVED|7|PENDING"]);
        let id = app
            .value("SELECT id FROM fi_resident_income_payment_review_callback_progress")
            .await;
        let effects = "SELECT business_key, task_status FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT' ORDER BY business_key";
        let expected = [
            format!("SIDE_EFFECT:{id}:PARTNER_BILL_REVIEW_RESULT_PUSH|0"),
            format!("SIDE_EFFECT:{id}:PAYMENT_RESULT_BASE_DATA_BUILD|0"),
        ];
        assert_eq!(app.lines(effects).await, expected);
    }

    async fn an_order_without_anything_to_pay_needs_no_recheck_and_no_payment_type(app: TestApp) {
        let bills = [Bill::unqualified(1, REASON, 0), Bill::unqualified(2, REASON, 0)];
        let order = under_review(&app, &bills).await;
        app.execute("DELETE FROM sys_dict;\nDELETE FROM sys_project_company").await;
        prepared(&app, order).await;
        advance(&app).await;
        assert_eq!(app.value(ORDER).await, "55|NULL|NULL|UNDER_REVIEW|APPROVED|2");
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|0|2|0");
        let effects = "SELECT COUNT(*) FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT'";
        assert_eq!(app.value(effects).await, "1");
    }

    async fn whoever_the_dictionary_does_not_call_normal_is_paid_offline(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        app.execute("UPDATE sys_dict SET status = 0").await;
        prepared(&app, order).await;
        advance(&app).await;
        assert_eq!(app.value(ORDER).await, "40|OFFLINE|NULL|UNDER_REVIEW|APPROVED|2");
    }

    async fn locks_of_unqualified_lines_are_released_and_payable_ones_stay(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        lock_an_unqualified_line(&app).await;
        prepared(&app, order).await;
        advance(&app).await;
        let counts = "SELECT lock_release_expected, lock_release_success
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(app.value(counts).await, "1|1");
        let locks = "SELECT lock_status, release_reason, COUNT(*) AS found
           FROM fi_resident_income_payment_bill_lock GROUP BY lock_status, release_reason
           ORDER BY lock_status";
        let expected = ["ACTIVE|NULL|5", "RELEASED|REVIEW_APPROVED_UNQUALIFIED|1"];
        assert_eq!(app.lines(locks).await, expected);
        let key = "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
           WHERE lock_key LIKE 'S6:202609:RELEASED:%'";
        assert_eq!(app.value(key).await, "1");
    }

    async fn every_phase_has_its_turn_however_long_the_backlog_of_the_first(app: TestApp) {
        for n in 1..=12 {
            let phase = if n <= 10 { "BILL_UPDATE" } else { "LOCK_RELEASE" };
            let main = if n <= 10 { "RUNNING" } else { "SUCCESS" };
            app.execute(&format!(
                "INSERT INTO fi_resident_income_payment_order
                   (id, status, current_publish_version, submit_round, review_plan_id)
                 VALUES ({n}, 20, 1, 1, {n});
INSERT INTO fi_resident_income_payment_review_callback_progress
  (id, payment_order_id, data_version, review_plan_id, submit_round, approval_attempt, phase,
   phase_status, main_task_status, update_time)
 VALUES ({n}, {n}, 1, {n}, 1, 1, '{phase}', 'INIT', '{main}', '{}')",
                instant(&app, if n <= 10 { EARLY } else { LATE }),
            ))
            .await;
        }
        app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":6}"#).await;
        let released = "SELECT COUNT(*) FROM fi_resident_income_payment_review_callback_progress
           WHERE phase = 'REFRESH_SHARD'";
        assert_eq!(app.value(released).await, "2");
    }

    async fn a_live_lease_is_respected_and_an_expired_one_is_taken_over(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        app.execute(&format!(
            "UPDATE fi_resident_income_payment_review_callback_progress
             SET phase = 'BILL_UPDATE', phase_status = 'RUNNING', worker_id = 'dead',
                 running_attempt = 4, lease_expire_time = '{}'",
            instant(&app, "2026-09-08T02:10:00+00:00"),
        ))
        .await;
        assert_eq!(app.round(REVIEW_PROGRESS.handler).await.selected, 0);
        app.pass_minutes(10);
        advance(&app).await;
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|5|2|0");
    }

    async fn two_processes_at_once_count_every_line_once(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        small_batches(&app).await;
        let second = app.second_process().await;
        for _ in 0..8 {
            let (here, there) = tokio::join!(
                app.round(REVIEW_PROGRESS.handler),
                second.round(REVIEW_PROGRESS.handler),
            );
            assert_eq!(here.failed + there.failed, 0, "{here:?} {there:?}");
        }
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|5|2|0");
        second.db.close().await;
    }

    async fn a_missing_lock_stops_finalize_and_nothing_is_half_done(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        app.execute(
            "UPDATE fi_resident_income_payment_bill_lock SET data_version = 9
             WHERE station_id = 'S1'",
        )
        .await;
        app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(app.value(ORDER).await, "20|NULL|NULL|UNDER_REVIEW|IN_REVIEW|1");
        let code = "SELECT phase, phase_status, last_error_code, retry_count
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(app.value(code).await, "FINALIZE|FAILED|RECHECK_VIOLATED|1");
    }

    async fn a_failed_batch_waits_half_a_minute_and_then_twice_as_long(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        let hide = "UPDATE fi_resident_income_payment_order_approval_instance SET deleted = ";
        app.execute(&format!("{hide}1")).await;
        let mut waits = Vec::new();
        for _ in 0..3 {
            let round = app.round(REVIEW_PROGRESS.handler).await;
            assert_eq!(round.failed, 1, "{round:?}");
            let query = "SELECT next_retry_time FROM
               fi_resident_income_payment_review_callback_progress";
            let row = app.db.row(Query::new(query)).await.unwrap().unwrap();
            let next = row.instant("next_retry_time").unwrap();
            waits.push((next - app.now()).num_seconds());
            assert_eq!(app.round(REVIEW_PROGRESS.handler).await.selected, 0);
            app.clock.advance(next - app.now());
        }
        assert_eq!(waits, [30, 60, 120]);
        app.execute(&format!("{hide}0")).await;
        advance(&app).await;
        assert_eq!(app.value(ORDER).await, "40|TREASURY|NOT_PUSHED|UNDER_REVIEW|APPROVED|2");
    }

    async fn a_running_decision_keeps_revisions_and_cancelling_out(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        let creator = counterfoil_e2e::CREATOR;
        let revise = counterfoil_payment::session::open::open_revise(&app.db, creator, order).await;
        let refused = revise.unwrap_err();
        assert!(refused.to_string().contains("decision is being applied"), "{refused}");
        let kicker = counterfoil_task::Kicker::none();
        let cancel =
            counterfoil_payment::order_cancel::cancel(&app.db, &kicker, order, creator, "no").await;
        assert!(cancel.unwrap_err().to_string().contains("decision is being applied"));
    }

    async fn a_revision_published_over_a_parked_approval_supersedes_it(app: TestApp) {
        let order = under_review(&app, &seven()).await;
        prepared(&app, order).await;
        app.execute("UPDATE fi_customer_account SET status = 0 WHERE id = 1").await;
        app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(progress(&app).await, "FINALIZE|FAILED|RUNNING|5|2|0");
        publish_revision(&app, order).await;
        assert!(progress(&app).await.contains("|SUPERSEDED|"), "{}", progress(&app).await);
        let task = "SELECT task_status, error_message FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
        assert_eq!(app.value(task).await, format!("2|{STALE_NOTE}"));
        assert_eq!(app.round(REVIEW_PROGRESS.handler).await.selected, 0);
    }

    async fn a_turn_that_finds_the_order_moved_on_gives_the_approval_up(app: TestApp) {
        for phase in ["BILL_UPDATE", "FINALIZE"] {
            if phase == "BILL_UPDATE" {
                let order = under_review(&app, &seven()).await;
                prepared(&app, order).await;
            }
            app.execute(&format!(
                "UPDATE fi_resident_income_payment_order SET submit_round = 2;
UPDATE fi_async_task SET task_status = 1, error_message = NULL
 WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY';
UPDATE fi_resident_income_payment_review_callback_progress
 SET phase = '{phase}', phase_status = 'INIT', main_task_status = 'RUNNING'"
            ))
            .await;
            let round = app.round(REVIEW_PROGRESS.handler).await;
            assert_eq!((round.selected, round.cancelled, round.failed), (1, 1, 0), "{round:?}");
            assert!(progress(&app).await.contains("|SUPERSEDED|"), "{phase}");
            let task = "SELECT task_status, error_message FROM fi_async_task
               WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
            assert_eq!(app.value(task).await, format!("2|{STALE_NOTE}"), "{phase}");
        }
        let lines = "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill
           WHERE line_status <> 10";
        assert_eq!(app.value(lines).await, "0");
    }
}

async fn publish_revision(app: &TestApp, order: OrderId) {
    let fixture = Fixture(app);
    let session = fixture.revise_session(order.0, &[1, 2, 3, 4, 5].map(Bill::payable)).await;
    fixture.submit(session).await;
    let round = app.round(SUBMIT_BUILD.handler).await;
    assert_eq!((round.succeeded, round.failed), (1, 0), "{round:?}");
}
