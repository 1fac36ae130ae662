//! S07: a decision is taken in once, applied once, and never to what it was not about.

use counterfoil_e2e::{Bill, TestApp, on_every_database};
use counterfoil_payment::kinds::{REVIEW_CALLBACK, REVIEW_PROGRESS};
use counterfoil_payment::review_callback::{Conclusion, STALE_NOTE, accept};
use counterfoil_protocol::{ApprovalAttempt, DataVersion, OrderId, PlanId};
use counterfoil_task::{Acceptance, Kicker, TaskStatus};

use super::approval::{
    PLAN, decide, decision, instant, open_plan, prepared, progress, under_review,
};

const REASON: &str = "农户租金异常";

async fn order_of_three(app: &TestApp) -> OrderId {
    under_review(app, &[Bill::payable(1), Bill::payable(2), Bill::unqualified(3, REASON, 0)]).await
}

const ORDER: &str = "SELECT o.status, COUNT(o.review_finish_time) AS finished,
      o.business_status, a.approval_status, COUNT(a.finish_time) AS concluded
   FROM fi_resident_income_payment_order o
   JOIN fi_resident_income_payment_order_approval_instance a ON a.payment_order_id = o.id
   GROUP BY o.status, o.business_status, a.approval_status";

const TASK: &str = "SELECT task_status, retry_count, error_message FROM fi_async_task
   WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY' ORDER BY id";

/// Everything that a rejection and a stale decision must leave as it is.
async fn untouched(app: &TestApp) -> Vec<String> {
    let mut state = Vec::new();
    for table in [
        "fi_resident_income_payment_order_bill",
        "fi_resident_income_payment_bill_lock",
        "fi_monthly_income_difference",
        "fi_customer_bill",
        "fi_customer_bill_partner",
    ] {
        state.extend(app.lines(&format!("SELECT * FROM {table} ORDER BY id")).await);
    }
    state
}

on_every_database! {
    async fn what_the_sender_does_not_know_is_taken_from_the_latest_instance(app: TestApp) {
        let order = order_of_three(&app).await;
        let accepted = decide(&app, order, Conclusion::Pass).await.unwrap();
        assert_eq!(accepted.acceptance, Acceptance::New);
        let expected = format!("REVIEW_CALLBACK:{order}:{PLAN}:1:1:1:PASS");
        assert_eq!(accepted.identity.business_key(), expected);
        let kept = "SELECT business_key FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
        assert_eq!(app.value(kept).await, expected);
    }

    async fn a_decision_sent_again_with_another_remark_is_the_same_task(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Pass).await.unwrap();
        let before = app.lines("SELECT * FROM fi_async_task ORDER BY id").await;
        let mut again = decision(order, Conclusion::Pass);
        again.remark = Some("another".into());
        again.time = None;
        let reused = accept(&app.db, &Kicker::none(), &again).await.unwrap();
        let expected = Acceptance::Reused { status: TaskStatus::Pending, exhausted: false };
        assert_eq!(reused.acceptance, expected);
        assert_eq!(app.lines("SELECT * FROM fi_async_task ORDER BY id").await, before);
    }

    async fn a_decision_about_nothing_on_record_is_refused(app: TestApp) {
        let order = order_of_three(&app).await;
        let mut other_plan = decision(order, Conclusion::Pass);
        other_plan.plan = PlanId(901);
        let refused = accept(&app.db, &Kicker::none(), &other_plan).await.unwrap_err();
        assert_eq!(refused.code(), "approval-instance-not-found");
        let mut other_attempt = decision(order, Conclusion::Pass);
        other_attempt.attempt = Some(ApprovalAttempt(7));
        let refused = accept(&app.db, &Kicker::none(), &other_attempt).await.unwrap_err();
        assert_eq!(refused.code(), "approval-instance-not-found");
        let refused = decide(&app, OrderId(404), Conclusion::Pass).await.unwrap_err();
        assert_eq!(refused.code(), "order-not-found");
    }

    async fn the_opposite_decision_is_refused_while_the_first_stands(app: TestApp) {
        let order = order_of_three(&app).await;
        let first = decide(&app, order, Conclusion::Reject).await.unwrap();
        let refused = decide(&app, order, Conclusion::Pass).await.unwrap_err();
        assert_eq!(refused.code(), "review-callback-opposite");
        let cancel = "UPDATE fi_async_task SET task_status = 4 WHERE task_code = ";
        app.execute(&format!("{cancel}'{}'", first.task)).await;
        decide(&app, order, Conclusion::Pass).await.expect("the first was cancelled");
    }

    async fn an_instance_that_was_concluded_refuses_the_other_conclusion(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Reject).await.unwrap();
        app.round(REVIEW_CALLBACK.handler).await;
        app.execute("UPDATE fi_async_task SET task_status = 4").await;
        let refused = decide(&app, order, Conclusion::Pass).await.unwrap_err();
        assert_eq!(refused.code(), "review-callback-opposite");
    }

    async fn of_two_opposite_decisions_at_once_one_is_taken(app: TestApp) {
        let order = order_of_three(&app).await;
        let second = app.second_process().await;
        let (pass, reject) = tokio::join!(
            decide(&app, order, Conclusion::Pass),
            decide(&second, order, Conclusion::Reject),
        );
        assert!(pass.is_ok() != reject.is_ok(), "{pass:?} {reject:?}");
        let tasks = "SELECT COUNT(*) FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
        assert_eq!(app.value(tasks).await, "1");
        second.db.close().await;
    }

    async fn a_rejection_ends_order_instance_and_task_and_touches_nothing_else(app: TestApp) {
        let order = order_of_three(&app).await;
        let before = untouched(&app).await;
        decide(&app, order, Conclusion::Reject).await.unwrap();
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!((round.succeeded, round.failed), (1, 0), "{round:?}");
        assert_eq!(app.value(ORDER).await, "30|1|UNDER_REVIEW|REJECTED|1");
        assert_eq!(app.value(TASK).await, "2|0|NULL");
        assert_eq!(untouched(&app).await, before);
        let log = "SELECT operation_type, from_status, to_status, operation_remark
           FROM fi_resident_income_payment_order_log WHERE operation_type = 'REVIEW_REJECTED'";
        assert_eq!(app.lines(log).await, ["REVIEW_REJECTED|20|30|looked at"]);
    }

    async fn a_rejection_is_one_commit(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Reject).await.unwrap();
        let crashes = app.crashes_of(async {}).await;
        assert!(crashes.is_empty());
        for point in ["task.claim", "review_callback.reject"] {
            let crash = counterfoil_e2e::Crash {
                point,
                side: counterfoil_db::Side::Before,
                passage: 1,
            };
            app.arm(crash);
            assert!(app.try_round(REVIEW_CALLBACK.handler, "").await.is_err(), "{point}");
            assert_eq!(app.value(ORDER).await, "20|0|UNDER_REVIEW|IN_REVIEW|0", "{point}");
            app.pass_minutes(11);
        }
        app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!(app.value(ORDER).await, "30|1|UNDER_REVIEW|REJECTED|1");
    }

    async fn a_half_done_rejection_is_completed_by_a_replay(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Reject).await.unwrap();
        app.execute("UPDATE fi_resident_income_payment_order SET status = 30").await;
        app.round(REVIEW_CALLBACK.handler).await;
        let status = "SELECT approval_status
           FROM fi_resident_income_payment_order_approval_instance";
        assert_eq!(app.value(status).await, "REJECTED");
        app.execute(
            "UPDATE fi_resident_income_payment_order SET status = 20;
UPDATE fi_async_task SET task_status = 3
 WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        )
        .await;
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!(round.succeeded, 1, "{round:?}");
        assert_eq!(app.value(ORDER).await, "30|1|UNDER_REVIEW|REJECTED|1");
    }

    async fn a_decision_about_an_older_version_is_skipped_with_a_note(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Pass).await.unwrap();
        app.execute(
            "UPDATE fi_resident_income_payment_order
             SET current_publish_version = 2, submit_round = 2",
        )
        .await;
        let before = untouched(&app).await;
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!((round.skipped, round.succeeded, round.failed), (1, 0, 0), "{round:?}");
        assert_eq!(app.value(TASK).await, format!("2|0|{STALE_NOTE}"));
        assert_eq!(app.value(ORDER).await, "20|0|UNDER_REVIEW|IN_REVIEW|0");
        assert_eq!(untouched(&app).await, before);
    }

    async fn a_missing_instance_is_a_failure_and_never_stale(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Pass).await.unwrap();
        app.execute(
            "UPDATE fi_resident_income_payment_order SET current_publish_version = 2;
UPDATE fi_resident_income_payment_order_approval_instance SET deleted = 1",
        )
        .await;
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!((round.failed, round.skipped), (1, 0), "{round:?}");
        assert!(app.value(TASK).await.starts_with("3|1|"), "{}", app.value(TASK).await);
    }

    async fn an_approval_prepares_its_progress_and_the_task_stays_running(app: TestApp) {
        let order = order_of_three(&app).await;
        prepared(&app, order).await;
        let row = "SELECT phase, phase_status, main_task_status, target_order_status, total_count,
             payable_count, unqualified_count, payable_cursor_id, unqualified_cursor_id,
             lock_cursor_id, refresh_ready, batch_size, worker_id, running_attempt,
             lease_expire_time, review_remark
           FROM fi_resident_income_payment_review_callback_progress";
        let expected = "PREPARE|SUCCESS|RUNNING|40|3|2|1|0|0|0|0|1000|NULL|0|NULL|looked at";
        assert_eq!(app.value(row).await, expected);
        assert_eq!(app.value(TASK).await, "1|0|NULL");
        assert_eq!(app.value(ORDER).await, "20|0|UNDER_REVIEW|IN_REVIEW|0");
    }

    async fn an_order_without_anything_to_pay_aims_at_no_need_pay(app: TestApp) {
        let order = under_review(&app, &[Bill::unqualified(1, REASON, 0)]).await;
        prepared(&app, order).await;
        let target = "SELECT target_order_status
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(app.value(target).await, "55");
    }

    async fn a_replayed_prepare_finds_its_progress_with_its_cursors(app: TestApp) {
        let order = order_of_three(&app).await;
        prepared(&app, order).await;
        app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await;
        let before = progress(&app).await;
        app.execute(
            "UPDATE fi_async_task SET task_status = 3
             WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        )
        .await;
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!(round.handed_over, 1, "{round:?}");
        assert_eq!(progress(&app).await, before);
        // Lines that came or went since are an error, and nothing is reset.
        app.execute(
            "UPDATE fi_resident_income_payment_order_bill SET deleted = 1 WHERE station_id = 'S2';
UPDATE fi_async_task SET task_status = 3, next_execute_time = NULL
 WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        )
        .await;
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!(round.failed, 1, "{round:?}");
        assert!(round.errors[0].message.contains("prepared for 3 lines"), "{round:?}");
        assert_eq!(progress(&app).await, before);
    }

    async fn an_approval_of_an_effective_order_completes_its_instance(app: TestApp) {
        for status in [40, 50, 55] {
            let expected = format!("{status}|0|UNDER_REVIEW|APPROVED|1");
            if status == 40 {
                let order = order_of_three(&app).await;
                decide(&app, order, Conclusion::Pass).await.unwrap();
            }
            app.execute(&format!(
                "UPDATE fi_resident_income_payment_order SET status = {status};
UPDATE fi_resident_income_payment_order_approval_instance
 SET approval_status = 'IN_REVIEW', finish_time = NULL;
UPDATE fi_async_task SET task_status = 0
 WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'"
            ))
            .await;
            let round = app.round(REVIEW_CALLBACK.handler).await;
            assert_eq!((round.succeeded, round.failed), (1, 0), "{status}: {round:?}");
            assert_eq!(app.value(ORDER).await, expected);
        }
    }

    async fn a_running_approval_without_progress_is_repaired_and_no_other(app: TestApp) {
        let order = order_of_three(&app).await;
        decide(&app, order, Conclusion::Pass).await.unwrap();
        app.arm(counterfoil_e2e::Crash {
            point: "task.claim",
            side: counterfoil_db::Side::After,
            passage: 1,
        });
        assert!(app.try_round(REVIEW_CALLBACK.handler, "").await.is_err());
        app.pass_minutes(10);
        assert_eq!(app.round(REVIEW_CALLBACK.handler).await.selected, 0, "exactly ten minutes");
        app.pass_minutes(1);
        let repaired = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!((repaired.selected, repaired.handed_over), (1, 1), "{repaired:?}");
        app.pass_minutes(60);
        assert_eq!(app.round(REVIEW_CALLBACK.handler).await.selected, 0);
    }

    async fn a_person_reruns_what_failed_and_not_what_runs(app: TestApp) {
        let order = order_of_three(&app).await;
        let task = decide(&app, order, Conclusion::Pass).await.unwrap().task;
        let named = format!(r#"{{"taskCode":"{task}"}}"#);
        app.execute(&format!(
            "UPDATE fi_async_task SET task_status = 1, update_time = '{}'
             WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
            instant(&app, "2026-09-01T00:00:00+00:00"),
        ))
        .await;
        let round = app.round_with(REVIEW_CALLBACK.handler, &named).await;
        assert_eq!((round.selected, round.claimed, round.skipped), (1, 0, 1), "{round:?}");
        app.execute(
            "UPDATE fi_async_task SET task_status = 3, retry_count = 9
             WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'",
        )
        .await;
        let round = app.round_with(REVIEW_CALLBACK.handler, &named).await;
        assert_eq!((round.claimed, round.handed_over), (1, 1), "{round:?}");
    }

    async fn an_old_plans_decision_never_decides_the_next_round(app: TestApp) {
        let order = order_of_three(&app).await;
        open_plan(&app, order, 1, 1, 901).await;
        let mut late = decision(order, Conclusion::Reject);
        late.data_version = Some(DataVersion(1));
        accept(&app.db, &Kicker::none(), &late).await.expect("stale decisions are taken in");
        let round = app.round(REVIEW_CALLBACK.handler).await;
        assert_eq!(round.skipped, 1, "{round:?}");
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(app.value(status).await, "20");
    }
}
