//! Every action and every guarded page, for every role: who may not gets 403 and nothing is done.

use counterfoil_account::Role::{self, Admin, Operator, Reviewer, Viewer};
use counterfoil_e2e::on_every_database;

use crate::house::House;

/// Method, path, who may. `{order}`, `{task}` and `{plan}` stand for real ones.
const TABLE: &[(&str, &str, &[Role])] = &[
    ("GET", "/console/accounts", &[Admin]),
    ("GET", "/console/audit", &[Admin]),
    ("POST", "/console/accounts", &[Admin]),
    ("POST", "/console/accounts/viewer", &[Admin]),
    ("GET", "/console/orders/{order}/cancel", &[Operator, Admin]),
    ("POST", "/console/orders/{order}/cancel", &[Operator, Admin]),
    ("GET", "/console/orders/{order}/payment", &[Operator, Admin]),
    ("POST", "/console/orders/{order}/payment", &[Operator, Admin]),
    ("GET", "/console/orders/{order}/repair", &[Operator, Admin]),
    ("POST", "/console/orders/{order}/repair", &[Operator, Admin]),
    ("GET", "/console/orders/{order}/revise", &[Operator, Admin]),
    ("POST", "/console/orders/{order}/revise", &[Operator, Admin]),
    ("POST", "/console/sessions/1/bills", &[Operator, Admin]),
    ("POST", "/console/sessions/1/removals", &[Operator, Admin]),
    ("GET", "/console/tasks/{task}/rerun", &[Operator, Admin]),
    ("POST", "/console/tasks/{task}/rerun", &[Operator, Admin]),
    ("GET", "/console/tasks/{task}/cancel", &[Operator, Admin]),
    ("POST", "/console/tasks/{task}/cancel", &[Operator, Admin]),
    ("GET", "/console/jobs/anything", &[Operator, Admin]),
    ("POST", "/console/jobs/anything", &[Operator, Admin]),
    ("POST", "/console/reviews/{plan}/decision", &[Reviewer, Admin]),
    ("POST", "/console/deliveries/1/again", &[Operator, Admin]),
    ("POST", "/console/batches/1/push", &[Operator, Admin]),
    ("POST", "/console/batches/1/fix/1", &[Operator, Admin]),
    ("POST", "/console/reconciliation/new", &[Operator, Admin]),
    ("POST", "/console/reconciliation/1/cancel", &[Operator, Admin]),
    ("POST", "/console/rules/check", &[Viewer, Operator, Reviewer, Admin]),
    ("GET", "/console/orders/{order}", &[Viewer, Operator, Reviewer, Admin]),
];

on_every_database! {
    async fn every_action_is_refused_to_every_role_that_may_not(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let plan = house.plan(&order).await;
        let task = house.app.value("SELECT MIN(task_code) AS code FROM fi_async_task").await;
        for role in Role::ALL {
            let person = house.person(role.as_str(), role, None).await;
            for (method, path, may) in TABLE {
                let path = path.replace("{order}", &order).replace("{task}", &task);
                let path = path.replace("{plan}", &plan);
                // Without a reason, or what it is about, nothing is done by those who may, either.
                let answer = match *method {
                    "GET" => person.get(&path).await,
                    _ => person.post(&path, &[]).await,
                };
                let is_refused = answer.status == 403 && answer.body.contains("forbidden");
                assert_eq!(is_refused, !may.contains(&role), "{role} {method} {path}: {answer:?}");
            }
        }
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(status).await, "20", "nothing was done to the order");
        let deeds = "SELECT COUNT(*) AS n FROM account_audit WHERE action <> 'sign-in'";
        assert_eq!(house.app.value(deeds).await, "0", "nothing was begun");
        house.close().await;
    }

    async fn whoever_submitted_an_order_never_decides_on_it_an_admin_neither(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let plan = house.plan(&order).await;
        // Person 7 submitted the order. An administrator makes him its reviewer, too.
        house.app.execute(
            "INSERT INTO review_business_node_user (node_id, user_id, has_turn)
             SELECT id, 7, 1 FROM review_business_node WHERE status = 'DOING'",
        ).await;
        let preparer = house.person("preparer", Admin, Some(7)).await;
        let page = preparer.get(&format!("/console/reviews/{plan}")).await.body;
        assert!(page.contains("You submitted this order"), "{page}");
        assert!(!page.contains("value=\"approve\""), "there is no button");
        let decision = [("verdict", "approve"), ("reason", "mine")];
        let path = format!("/console/reviews/{plan}/decision");
        let refused = preparer.post(&path, &decision).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("review-own-order"), "{}", refused.body);
        let decided = "SELECT COUNT(*) AS n FROM review_business_node WHERE decided_by IS NOT NULL";
        assert_eq!(house.app.value(decided).await, "0");
        let outcome = "SELECT outcome FROM account_audit WHERE action = 'review-approve'
                       ORDER BY id DESC LIMIT 1";
        assert_eq!(house.app.value(outcome).await, "REFUSED");
        house.close().await;
    }

    async fn a_role_that_is_taken_away_is_gone_with_the_next_request(app: TestApp) {
        let house = House::open(app).await;
        let chief = house.person("chief", Admin, None).await;
        let ops = house.person("ops", Operator, None).await;
        let handler = "residentIncomePaymentSelectionSubmitBuildAsyncTask";
        let path = format!("/console/jobs/{handler}");
        assert_eq!(ops.get(&path).await.status, 200);
        let to_viewer = [("what", "role"), ("role", "viewer"), ("reason", "left the team")];
        assert_eq!(chief.post("/console/accounts/ops", &to_viewer).await.status, 303);
        assert_eq!(ops.get(&path).await.status, 403);
        for act in ["/console/sessions", "/console/sessions/1/submission"] {
            assert_eq!(ops.post(act, &[]).await.status, 403, "{act}");
        }
        let opened = "SELECT COUNT(*) AS n FROM selection_session";
        assert_eq!(house.app.value(opened).await, "0");
        let last = [("what", "disable"), ("reason", "by mistake")];
        let refused = chief.post("/console/accounts/chief", &last).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("account-last-admin"));
        house.close().await;
    }
}
