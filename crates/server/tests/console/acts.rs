//! What people do in the console: it is done, with their name and reason, and told.

use counterfoil_account::Role;
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::review_callback::{Callback, Conclusion, accept};
use counterfoil_protocol::{OrderId, PlanId};
use counterfoil_task::Kicker;

use crate::house::House;

async fn audit(app: &TestApp, action: &str) -> Vec<String> {
    let query = "SELECT login, subject, reason, outcome FROM account_audit WHERE action = ";
    app.lines(&format!("{query}'{action}' ORDER BY id")).await
}

on_every_database! {
    async fn two_reviewers_approve_an_order_each_with_a_reason(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let plan = house.plan(&order).await;
        let first = house.person("first", Role::Reviewer, Some(101)).await;
        let second = house.person("second", Role::Reviewer, Some(102)).await;
        let path = format!("/console/reviews/{plan}/decision");
        let inbox = first.get("/console/reviews").await.body;
        assert!(inbox.contains(&format!("/console/reviews/{plan}")), "{inbox}");
        let approve = [("verdict", "approve"), ("reason", "核对无误")];
        let early = second.post(&path, &approve).await;
        assert_eq!(early.status, 409, "{}", early.body);
        assert_eq!(first.post(&path, &[("verdict", "approve")]).await.status, 422, "no reason");
        let done = first.post(&path, &approve).await;
        assert_eq!(done.status, 303, "{}", done.body);
        let told = first.get(done.header("location")).await.body;
        assert!(told.contains("OPERATION_MANAGER_A decided"), "{told}");
        assert_eq!(second.post(&path, &approve).await.status, 303);
        let status = format!("SELECT status FROM review_business_plan WHERE id = {plan}");
        assert_eq!(house.app.value(&status).await, "PASSED");
        let expected = |login: &str, outcome: &str| format!("{login}|{plan}|核对无误|{outcome}");
        assert_eq!(audit(&house.app, "review-approve").await, [
            expected("second", "ASKED"), expected("second", "REFUSED"),
            expected("first", "ASKED"), expected("first", "DONE"),
            expected("second", "ASKED"), expected("second", "DONE"),
        ]);
        house.close().await;
    }

    async fn a_task_is_rerun_after_a_dry_run_and_with_a_reason(app: TestApp) {
        let house = House::open(app).await;
        house.order().await;
        let kind = "task_type LIKE '%AUDIT_PLAN_CREATE'";
        let task = house.app.value(
            &format!("SELECT task_code FROM fi_async_task WHERE {kind}")).await;
        let path = format!("/console/tasks/{task}");
        let ops = house.person("ops", Role::Operator, None).await;
        let page = ops.get(&format!("{path}/rerun")).await.body;
        assert!(page.contains("done work is never opened again"), "{page}");
        assert!(!page.contains("name=\"reason\""), "nothing to confirm");
        let refused = ops.post(&format!("{path}/rerun"), &[("reason", "try")]).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        house.app.execute(&format!(
            "UPDATE fi_async_task SET task_status = 3, retry_count = 3 WHERE {kind}")).await;
        let stuck = ops.get("/console/stuck").await.body;
        assert!(stuck.contains(&task.replace(':', "%3A")), "{stuck}");
        assert!(stuck.contains("a person: no tries left"), "{stuck}");
        let page = ops.get(&format!("{path}/rerun")).await.body;
        assert!(page.contains("claim attempt 2 now, whatever the due time"), "{page}");
        assert!(page.contains("reset the 3 counted failures"), "{page}");
        assert_eq!(ops.post(&format!("{path}/rerun"), &[("reason", " ")]).await.status, 422);
        let before = format!("SELECT running_attempt FROM fi_async_task WHERE {kind}");
        assert_eq!(house.app.value(&before).await, "1", "nothing ran without a reason");
        let done = ops.post(&format!("{path}/rerun"), &[("reason", "对方已修好")]).await;
        assert_eq!(house.app.value(&before).await, "2", "{done:?}");
        let trace = "SELECT operator_user_id FROM
            fi_resident_income_payment_async_operation_log WHERE action = 'RERUN'";
        assert_eq!(house.app.value(trace).await, ops.id.to_string());
        assert_eq!(audit(&house.app, "task-rerun").await.len(), 4);
        house.close().await;
    }

    async fn a_task_is_cancelled_for_good(app: TestApp) {
        let house = House::open(app).await;
        house.order().await;
        let kind = "task_type LIKE '%AUDIT_PLAN_CREATE'";
        house.app.execute(&format!("UPDATE fi_async_task SET task_status = 3 WHERE {kind}")).await;
        let task = house.app.value(
            &format!("SELECT task_code FROM fi_async_task WHERE {kind}")).await;
        let ops = house.person("ops", Role::Operator, None).await;
        let path = format!("/console/tasks/{task}/cancel");
        assert_eq!(ops.post(&path, &[("reason", "given up")]).await.status, 303);
        let status = format!("SELECT task_status FROM fi_async_task WHERE {kind}");
        assert_eq!(house.app.value(&status).await, "4");
        assert_eq!(ops.post(&path, &[("reason", "again")]).await.status, 409);
        house.close().await;
    }

    async fn an_order_is_cancelled_by_its_creator_alone(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let path = format!("/console/orders/{order}/cancel");
        let other = house.person("other", Role::Admin, None).await;
        let page = other.get(&path).await.body;
        assert!(page.contains("only its creator, user 7, may"), "{page}");
        let refused = other.post(&path, &[("reason", "not mine")]).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        let creator = house.person("creator", Role::Operator, Some(7)).await;
        let page = creator.get(&path).await.body;
        assert!(page.contains("let go of its 3 bills in batches"), "{page}");
        let done = creator.post(&path, &[("reason", "选错了月份")]).await;
        assert_eq!(done.status, 303, "{}", done.body);
        let told = creator.get(done.header("location")).await.body;
        assert!(told.contains("order-cancel") && told.contains("CANCELLED"), "{told}");
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(status).await, "90");
        house.close().await;
    }

    async fn an_offline_payment_is_recorded_with_its_evidence(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        house.app.execute(&format!(
            "UPDATE fi_resident_income_payment_order
             SET status = 40, payment_type = 'OFFLINE' WHERE id = {order};
             \nINSERT INTO fi_resident_income_payment_review_callback_progress
               (payment_order_id, data_version, review_plan_id, submit_round, approval_attempt,
                phase, phase_status, main_task_status, refresh_ready)
             VALUES ({order}, 1, 1, 1, 1, 'DONE', 'SUCCESS', 'SUCCESS', 1)"
        )).await;
        let ops = house.person("ops", Role::Operator, None).await;
        let path = format!("/console/orders/{order}/payment");
        assert!(ops.get(&path).await.body.contains("name=\"evidence\""));
        let done = ops.post(&path, &[("evidence", "回单 20260908-17")]).await;
        assert_eq!(done.status, 303, "{}", done.body);
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(status).await, "50");
        let expected = format!("ops|{order}|回单 20260908-17|DONE");
        assert_eq!(audit(&house.app, "order-record-payment").await.last(), Some(&expected));
        house.close().await;
    }

    async fn rules_are_checked_and_a_broken_one_shows_its_rows(app: TestApp) {
        let house = House::open(app).await;
        house.order().await;
        let viewer = house.person("viewer", Role::Viewer, None).await;
        let page = viewer.post("/console/rules/check", &[]).await.body;
        assert!(page.contains("verdict good"), "{page}");
        house.app.execute(
            "UPDATE fi_async_task SET next_execute_time = create_time WHERE task_status = 2").await;
        let page = viewer.post("/console/rules/check", &[]).await.body;
        assert!(page.contains("ended-task-has-no-due-time"), "{page}");
        assert!(page.contains("next_execute_time="), "{page}");
        assert!(!page.contains("verdict good"), "{page}");
        house.close().await;
    }

    async fn a_person_changes_the_own_password_and_is_asked_for_the_old_one(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("ops", Role::Operator, None).await;
        let new = "another long password";
        let wrong = [("old", "wrong"), ("new", new), ("again", new)];
        assert_eq!(person.post("/console/me", &wrong).await.status, 403);
        let right = [("old", crate::house::PASSWORD), ("new", new), ("again", new)];
        assert_eq!(person.post("/console/me", &right).await.status, 303);
        assert_eq!(person.get("/console").await.status, 303, "all sessions have ended");
        assert_eq!(house.enter("ops", new).await.status, 303);
        let stored = house.app.lines("SELECT reason, detail FROM account_audit").await.join("\n");
        assert!(!stored.contains(new), "a password is in the audit");
        house.close().await;
    }

    async fn a_rejected_order_is_revised_and_submitted_again_in_the_console_alone(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        house.app.execute(&format!(
            "UPDATE fi_resident_income_payment_order SET status = 30 WHERE id = {order};
             \nUPDATE fi_resident_income_payment_order_approval_instance
               SET approval_status = 'REJECTED'"
        )).await;
        let stranger = house.person("stranger", Role::Operator, None).await;
        let path = format!("/console/orders/{order}/revise");
        let refused = stranger.post(&path, &[("reason", "not mine")]).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        let creator = house.person("creator", Role::Operator, Some(7)).await;
        let page = creator.get(&format!("/console/orders/{order}")).await.body;
        assert!(page.contains(&path), "the way is shown: {page}");
        let opened = creator.post(&path, &[("reason", "金额已核实")]).await;
        assert_eq!(opened.status, 303, "{}", opened.body);
        let page = creator.get(opened.header("location")).await.body;
        assert!(page.contains("REVISE") && page.contains("Take bills out"), "{page}");
        let session = opened.header("location").split('?').next().unwrap_or_default().to_owned();
        let removals = format!("{session}/removals");
        let removed = creator.post(&removals, &[("bills", "S2:202609")]).await;
        assert_eq!(removed.status, 303, "{}", removed.body);
        let told = creator.get(removed.header("location")).await.body;
        assert!(told.contains("1 bills taken out"), "{told}");
        let sent = creator.post(&format!("{session}/submission"), &[]).await;
        assert_eq!(sent.status, 303, "{}", sent.body);
        assert!(sent.header("location").starts_with(&format!("/console/orders/{order}?said=")));
        for kind in [SUBMIT_BUILD, LOCK_ACTIVATE] {
            assert!(house.app.round(kind.handler).await.is_success());
        }
        let pointer = "SELECT current_publish_version FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(pointer).await, "2");
        let page = creator.get(&format!("/console/orders/{order}/changes?from=1&to=2")).await.body;
        assert!(page.contains("S2 · 2026-09"), "{page}");
        house.close().await;
    }

    async fn a_decision_that_contradicts_one_is_refused_and_still_seen(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let plan = house.plan(&order).await;
        let callback = |conclusion| Callback {
            order: OrderId(order.parse().unwrap()),
            plan: PlanId(plan.parse().unwrap()),
            conclusion,
            remark: Some("<b>不同意</b>".into()),
            time: None,
            data_version: None,
            attempt: None,
            round: None,
            evidence: None,
        };
        let (db, none) = (&house.app.db, Kicker::none());
        accept(db, &none, &callback(Conclusion::Pass)).await.expect("taken");
        accept(db, &none, &callback(Conclusion::Pass)).await.expect("taken again");
        for _ in 0..2 {
            let refused = accept(db, &none, &callback(Conclusion::Reject)).await.unwrap_err();
            assert_eq!(refused.code(), "review-callback-opposite");
        }
        let viewer = house.person("viewer", Role::Viewer, None).await;
        let page = viewer.get(&format!("/console/orders/{order}")).await.body;
        assert!(page.contains("REFUSE: REFUSED"), "{page}");
        assert!(page.contains("&lt;b&gt;不同意&lt;/b&gt;") && !page.contains("<b>不同意"), "{page}");
        let kept = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_async_operation_log
                    WHERE action = 'REFUSE'";
        assert_eq!(house.app.value(kept).await, "1", "once, however often it comes");
        house.close().await;
    }
}
