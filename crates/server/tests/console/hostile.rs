//! Whatever a person or a partner can write is shown as what it is: text.

use counterfoil_account::Role;
use counterfoil_e2e::on_every_database;

use crate::house::House;

/// Breaks out of an element, of an attribute, and of both kinds of quotes.
const HOSTILE: &str = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>&lt;";

/// What must never stand in a page that shows it.
fn is_clean(body: &str) -> bool {
    !body.contains("<img src=x") && !body.contains("<script>alert")
}

fn quoted() -> String {
    HOSTILE.replace('\'', "''")
}

/// Rows that hold the text wherever a person, a partner or another program can put one.
fn hostile_rows(order: &str) -> Vec<String> {
    let text = quoted();
    vec![
        format!(
            "UPDATE fi_resident_income_payment_order_bill SET payee_name = '{text}',
                 payee_account = '{text}', unqualified_reason = '{text}', pay_amount = 5"
        ),
        format!(
            "UPDATE fi_async_task SET error_message = '{text}', task_status = 3,
                 task_data = '{text}', retry_count = 3
                 WHERE task_type LIKE '%LOCK_ACTIVATE'"
        ),
        format!("UPDATE review_business_node SET node_name = '{text}', remark = '{text}'"),
        format!("UPDATE review_business_plan SET from_num = '{}'", &text[..40]),
        format!("UPDATE fi_monthly_income_difference SET unqualified_reason = '{text}'"),
        format!(
            "UPDATE selection_session SET invalidated_flag = 1,
                 invalidated_reason = '{text}'"
        ),
        format!(
            "INSERT INTO fi_resident_income_payment_order_log
                 (payment_order_id, operation_type, operation_remark)
                 VALUES ({order}, 'NOTE', '{text}')"
        ),
        format!(
            "INSERT INTO fi_resident_income_payment_external_log
                 (id, idempotency_key, payment_order_id, data_version, status, last_error,
                  request_body, response_body)
                 VALUES (5, '{text}', {order}, 1, 'FAIL', '{text}', '{text}', '{text}')"
        ),
        format!(
            "INSERT INTO fi_resident_income_payment_push_batch
                 (id, batch_no, payment_order_id, status, error_message)
                 VALUES (5, '{}', {order}, 'WAIT_DATA_FIX', '{text}')",
            &text[..60]
        ),
        format!(
            "INSERT INTO fi_resident_income_payment_push_batch_detail
                 (id, push_batch_id, order_bill_id, payee_name, payee_account, push_status,
                  error_message)
                 VALUES (5, 5, 5, '{text}', '{}', 'WAIT_DATA_FIX', '{text}')",
            &text[..60]
        ),
        format!(
            "INSERT INTO answer_reconcile_task
                 (task_id, consumer_app_key, form_uuid, state, reason_code, reason)
                 VALUES ('t-5', '{}', '{}', 'FAILED', 'GRANT_REVOKED', '{text}')",
            &text[..60],
            &text[..60]
        ),
    ]
}

on_every_database! {
    async fn no_name_reason_or_message_that_is_stored_becomes_code(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let plan = house.plan(&order).await;
        for statement in hostile_rows(&order) {
            house.app.execute(&statement).await;
        }
        let person = house.person("chief", Role::Admin, None).await;
        let task = house.app.value(
            "SELECT task_code FROM fi_async_task WHERE task_type LIKE '%LOCK_ACTIVATE'").await;
        let pages = [
            "/console".into(),
            "/console/stuck".into(),
            "/console/tasks".into(),
            "/console/incidents".into(),
            "/console/reviews?of=all".into(),
            "/console/deliveries".into(),
            "/console/deliveries/5".into(),
            "/console/batches".into(),
            "/console/batches/5".into(),
            "/console/batches/5?full=1".into(),
            "/console/reconciliation".into(),
            "/console/reconciliation/t-5".into(),
            "/console/bills/S1/202609".into(),
            format!("/console/orders/{order}"),
            format!("/console/orders/{order}/lines"),
            format!("/console/tasks/{task}"),
            format!("/console/tasks/{task}/rerun"),
            format!("/console/reviews/{plan}"),
        ];
        let mut shown = 0;
        for path in pages {
            let answer = person.get(&path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            assert!(is_clean(&answer.body), "{path}: {}", answer.body);
            shown += usize::from(answer.body.contains("&lt;img src=x"));
        }
        assert!(shown >= 14, "only {shown} pages show the text at all");
        house.close().await;
    }

    async fn what_is_typed_into_an_address_or_a_form_is_shown_as_text(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("chief", Role::Admin, None).await;
        let typed: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in ["find?q=", "orders?creator=", "deliveries?status=", "tasks?type=",
            "bills?station=", "orders/", "tasks/", "reconciliation?consumer=", "batches?status="]
        {
            let answer = person.get(&format!("/console/{path}{typed}")).await;
            assert!(is_clean(&answer.body), "{path}: {}", answer.body);
        }
        let add = [("login", HOSTILE), ("name", HOSTILE), ("role", "viewer"),
            ("password", "correct horse battery"), ("reason", HOSTILE)];
        let refused = person.post("/console/accounts", &add).await;
        assert_eq!(refused.status, 422);
        assert!(is_clean(&refused.body), "{}", refused.body);
        let add = [("login", "guest"), ("name", HOSTILE), ("role", "viewer"),
            ("password", "correct horse battery"), ("reason", HOSTILE)];
        let added = person.post("/console/accounts", &add).await;
        assert_eq!(added.status, 303, "{}", added.body);
        for path in ["/console/accounts", "/console/audit", added.header("location")] {
            let page = person.get(path).await.body;
            assert!(is_clean(&page), "{path}: {page}");
            assert!(page.contains("&lt;script&gt;"), "{path} shows it: {page}");
        }
        let next = format!("/console/sign-in?next=%2F%2Fevil.example%2F{typed}");
        assert!(is_clean(&house.get(&next, "").await.body));
        house.close().await;
    }

    async fn account_numbers_are_hidden_from_who_does_not_need_them(app: TestApp) {
        let house = House::open(app).await;
        let order = house.order().await;
        let number = "6222020200112233";
        house.app.execute(&format!(
            "UPDATE fi_resident_income_payment_order_bill SET payee_account = '{number}';
             \nINSERT INTO fi_resident_income_payment_external_log
               (id, idempotency_key, payment_order_id, status, request_body)
             VALUES (5, 'k', {order}, 'SUCCESS', '{{\"payeeAccount\":\"{number}\"}}');
             \nINSERT INTO fi_resident_income_payment_push_batch
               (id, batch_no, payment_order_id, status)
             VALUES (5, 'B5', {order}, 'WAIT_DATA_FIX');
             \nINSERT INTO fi_resident_income_payment_push_batch_detail
               (id, push_batch_id, order_bill_id, payee_account, push_status)
             VALUES (5, 5, 5, '{number}', 'WAIT_DATA_FIX')"
        )).await;
        let paths = [
            format!("/console/orders/{order}/lines"),
            "/console/bills/S1/202609".to_owned(),
            "/console/deliveries/5".to_owned(),
            "/console/batches/5?full=1".to_owned(),
        ];
        let viewer = house.person("viewer", Role::Viewer, None).await;
        for path in &paths {
            let page = viewer.get(path).await.body;
            assert!(!page.contains(number), "{path}");
            assert!(page.contains("****2233"), "{path}: {page}");
        }
        let operator = house.person("operator", Role::Operator, None).await;
        assert!(!operator.get("/console/batches/5").await.body.contains(number));
        assert!(operator.get("/console/batches/5?full=1").await.body.contains(number));
        let seen = "SELECT login FROM account_audit WHERE action = 'account-numbers-seen'";
        assert_eq!(house.app.value(seen).await, "operator");
        house.close().await;
    }
}
