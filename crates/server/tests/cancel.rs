//! Cancelling an order, and S06 letting go of its bills, with the review centre behind real HTTP.

use counterfoil_db::Side;
use counterfoil_e2e::{Bill, CREATOR, Crash, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::order_cancel::cancel;
use counterfoil_payment::session::Submission;
use counterfoil_protocol::UserId;
use counterfoil_server::config::Config;
use counterfoil_server::serve::OwnPeers;
use counterfoil_task::{Engine, Kicker, Summary};

async fn published(app: &TestApp, engine: &Engine) -> Submission {
    let fixture = Fixture(app);
    fixture.records(4).await;
    let session = fixture.new_session(&[1, 2, 3].map(Bill::payable)).await;
    let submission = fixture.submit(session).await;
    for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler, AUDIT_PLAN_CREATE.handler] {
        let summary = engine.round(handler, "").await.expect("a round");
        assert_eq!(summary.succeeded, 1, "{summary:?}");
    }
    submission
}

async fn release(engine: &Engine) -> Summary {
    engine.round(LOCK_RELEASE.handler, "").await.expect("a round")
}

async fn give_up(app: &TestApp, submission: &Submission) {
    cancel(&app.db, &Kicker::none(), submission.order, CREATOR, "not needed").await.expect("done");
}

const HELD: &str = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_bill_lock
    WHERE lock_status <> 'RELEASED'";

async fn assert_nothing_is_held(app: &TestApp) {
    assert_eq!(app.value(HELD).await, "0");
    for table in ["fi_monthly_income_difference", "fi_customer_bill", "fi_customer_bill_partner"] {
        let query = format!(
            "SELECT payment_status, locked_payment_order_id, locked_order_bill_id
             FROM {table} ORDER BY id"
        );
        assert_eq!(app.lines(&query).await, vec!["20|NULL|NULL"; 4], "{table}");
    }
}

on_every_database! {
    async fn a_cancelled_order_lets_go_of_its_bills_and_its_plan(app: TestApp) {
        let centre = own_peers(&app).await;
        let engine = app.engine_with_centre(&centre.url);
        let submission = published(&app, &engine).await;
        give_up(&app, &submission).await;
        assert_eq!(app.value(HELD).await, "3", "S06 lets go, not the cancelling itself");
        assert_eq!(release(&engine).await.succeeded, 1);
        assert_nothing_is_held(&app).await;
        let reasons = "SELECT DISTINCT release_reason FROM fi_resident_income_payment_bill_lock";
        assert_eq!(app.lines(reasons).await, ["ORDER_CANCELLED"]);
        let plans = "SELECT status, active_key FROM review_business_plan";
        assert_eq!(app.lines(plans).await, ["WITHDRAWN|NULL"]);
        let order = "SELECT status, business_status FROM fi_resident_income_payment_order";
        assert_eq!(app.lines(order).await, ["90|CANCELLED"]);
    }

    async fn bills_of_a_cancelled_order_can_be_taken_by_another(app: TestApp) {
        let centre = own_peers(&app).await;
        let engine = app.engine_with_centre(&centre.url);
        let submission = published(&app, &engine).await;
        give_up(&app, &submission).await;
        release(&engine).await;
        let fixture = Fixture(&app);
        let session = fixture.new_session(&[1, 2].map(Bill::payable)).await;
        fixture.submit(session).await;
        for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler] {
            assert_eq!(engine.round(handler, "").await.expect("a round").succeeded, 1);
        }
        assert_eq!(app.value(HELD).await, "2");
    }

    async fn cancelling_takes_unfinished_tasks_and_sessions_along(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(2).await;
        let session = fixture.new_session(&[1, 2].map(Bill::payable)).await;
        let submission = fixture.submit(session).await;
        app.round(SUBMIT_BUILD.handler).await;
        give_up(&app, &submission).await;
        let tasks = "SELECT task_type, task_status FROM fi_async_task ORDER BY id";
        assert_eq!(app.lines(tasks).await, [
            "RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD|2",
            "RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE|4",
            "RESIDENT_INCOME_PAYMENT_LOCK_RELEASE|0",
        ]);
        let sessions = "SELECT status, invalidated_flag, invalidated_reason, active_submit_id,
              active_scope_key, active_revise_key FROM selection_session";
        let expected = ["SUBMIT_FAILED|1|ORDER_CANCELLED|NULL|NULL|NULL"];
        assert_eq!(app.lines(sessions).await, expected);
    }

    async fn a_review_centre_that_is_down_keeps_the_release_open_until_it_answers(app: TestApp) {
        let centre = own_peers(&app).await;
        let engine = app.engine_with_centre(&centre.url);
        let submission = published(&app, &engine).await;
        give_up(&app, &submission).await;
        let failed = app.round(LOCK_RELEASE.handler).await;
        assert_eq!((failed.succeeded, failed.failed), (0, 1), "{failed:?}");
        assert_eq!(app.value(HELD).await, "0", "the bills do not wait for the centre");
        app.pass_minutes(11);
        assert_eq!(release(&engine).await.succeeded, 1);
        let plans = "SELECT status FROM review_business_plan";
        assert_eq!(app.lines(plans).await, ["WITHDRAWN"]);
    }

    async fn a_crash_at_any_commit_of_the_release_ends_with_everything_let_go(app: TestApp) {
        let centre = own_peers(&app).await;
        let engine = app.engine_with_centre(&centre.url);
        let submission = published(&app, &engine).await;
        give_up(&app, &submission).await;
        let crash = async |point, side| {
            app.arm(Crash { point, side, passage: 1 });
            assert!(engine.round(LOCK_RELEASE.handler, "").await.is_err(), "{point} {side:?}");
            assert!(!app.faults().is_armed(), "{point} {side:?} did not strike");
            app.pass_minutes(11);
        };
        crash("task.claim", Side::Before).await;
        crash("lock_release.cancelled_batch", Side::Before).await;
        crash("lock_release.cancelled_batch", Side::After).await;
        crash("lock_release.cancelled", Side::Before).await;
        assert_eq!(release(&engine).await.succeeded, 1);
        assert_nothing_is_held(&app).await;
    }

    async fn only_the_creator_cancels_and_only_once(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(1).await;
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        let order = fixture.submit(session).await.order;
        let try_as = async |user| {
            cancel(&app.db, &Kicker::none(), order, UserId(user), "why").await
        };
        assert_eq!(try_as(8).await.expect_err("a stranger").code(), "forbidden");
        try_as(CREATOR.0).await.expect("the creator");
        assert_eq!(try_as(CREATOR.0).await.expect_err("twice").code(), "order-state");
        let silent = cancel(&app.db, &Kicker::none(), order, CREATOR, " ").await;
        assert_eq!(silent.expect_err("no reason").code(), "invalid-input");
    }

    async fn at_wait_pay_only_a_refreshed_unpushed_treasury_order_is_cancelled(app: TestApp) {
        let centre = own_peers(&app).await;
        let engine = app.engine_with_centre(&centre.url);
        let submission = published(&app, &engine).await;
        let order = submission.order;
        app.execute(&format!(
            "UPDATE fi_resident_income_payment_order
              SET status = 40, payment_type = 'TREASURY', push_status = 'NOT_PUSHED';
INSERT INTO fi_resident_income_payment_review_callback_progress
  (id, payment_order_id, data_version, review_plan_id, submit_round, approval_attempt, phase,
   phase_status, main_task_status, refresh_ready)
 VALUES (1, {order}, 1, 9, 1, 1, 'DONE', 'SUCCESS', 'SUCCESS', 1);
INSERT INTO fi_async_task (task_code, task_type, business_key)
 VALUES ('RIPSE:1', 'RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT',
   'SIDE_EFFECT:1:PARTNER_BILL_REVIEW_RESULT_PUSH')"
        ))
        .await;
        let order_row = "UPDATE fi_resident_income_payment_order SET ";
        let progress =
            "UPDATE fi_resident_income_payment_review_callback_progress SET refresh_ready = ";
        let batch = "UPDATE fi_resident_income_payment_push_batch SET deleted = ";
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_push_batch
               (batch_no, payment_order_id, data_version, submit_round, deleted)
             VALUES ('B1', {order}, 1, 1, 1)"
        ))
        .await;
        let refusals = [
            (format!("{order_row} payment_type = 'OFFLINE'"), "TREASURY",
             format!("{order_row} payment_type = 'TREASURY'")),
            (format!("{order_row} push_status = 'PUSHING'"), "push batches",
             format!("{order_row} push_status = 'NOT_PUSHED'")),
            (format!("{batch} 0"), "push batches", format!("{batch} 1")),
            (format!("{progress} 0"), "status refresh", format!("{progress} 1")),
            (format!("{order_row} status = 50"), "10, 20, 30 or 40",
             format!("{order_row} status = 40")),
        ];
        for (broken, why, mended) in refusals {
            app.execute(&broken).await;
            let refused = cancel(&app.db, &Kicker::none(), order, CREATOR, "no").await;
            let refused = refused.expect_err(&broken).to_string();
            assert!(refused.contains(why), "{broken}: {refused}");
            app.execute(&mended).await;
        }
        give_up(&app, &submission).await;
        assert_eq!(release(&engine).await.succeeded, 1);
        assert_nothing_is_held(&app).await;
        let effect = "SELECT task_status FROM fi_async_task WHERE task_code = 'RIPSE:1'";
        assert_eq!(app.value(effect).await, "4", "nobody is told of an order that is no more");
    }
}

async fn own_peers(app: &TestApp) -> OwnPeers {
    let mut config = Config::default();
    config.signing.complete(&mut config.apps);
    OwnPeers::start(&app.db, &config).await.expect("peers of its own")
}
