//! A hundred thousand rows in each large table, of orders that the paths do not touch.

use counterfoil_db::{Clock, Db, Query, Recorder, Settings};
use counterfoil_e2e::{Dialect, TestApp};

/// Rows of each large table before the paths run.
pub const ROWS: i64 = 100_000;
/// Business records beyond those: bills for the paths to select.
pub const FREE: i64 = 10_000;
/// Lines of an order that is there already.
const LINES_OF_AN_ORDER: i64 = 4_000;

/// The tables of which no plan may read all rows.
pub const LARGE: [&str; 27] = [
    "fi_async_task",
    "selection_session_item",
    "fi_resident_income_payment_order",
    "fi_resident_income_payment_order_bill",
    "fi_resident_income_payment_bill_lock",
    "fi_monthly_income_difference",
    "fi_customer_bill",
    "fi_customer_bill_partner",
    "review_business_plan",
    "review_business_node",
    "review_business_node_user",
    "fi_customer_account",
    "fi_resident_income_payment_order_version",
    "fi_resident_income_payment_order_approval_instance",
    "fi_resident_income_payment_order_log",
    "fi_resident_income_payment_order_project_payment",
    "fi_resident_income_payment_review_callback_progress",
    "review_callback_evidence",
    "fi_resident_income_payment_status_refresh_shard",
    "fi_resident_income_payment_status_refresh_scope_guard",
    "fi_resident_income_payment_bill_dimension_snapshot",
    "fi_resident_income_payment_snapshot_refresh_progress",
    "fi_resident_income_payment_external_log",
    "fi_resident_income_payment_push_batch",
    "fi_resident_income_payment_push_batch_detail",
    "fi_resident_income_payment_push",
    "fi_resident_income_payment_push_item",
];

/// The same database and clock through another pool, with a recorder.
pub async fn reopen(app: &TestApp, recorder: Option<Recorder>, connections: u32) -> TestApp {
    let settings = Settings {
        max_connections: connections,
        clock: Clock::Manual(app.clock.clone()),
        recorder,
        ..Settings::default()
    };
    let mut reopened = app.clone();
    reopened.db = Db::connect(app.url(), settings).await.expect("a pool");
    reopened
}

/// Numbers by doubling, and everything else from the numbers: the same text on each database.
pub async fn fill(app: &TestApp) {
    numbers(app, ROWS + FREE).await;
    for statement in STATEMENTS.iter().chain(&AFTER_REVIEW) {
        let text = statement
            .replace("{rows}", &ROWS.to_string())
            .replace("{of_an_order}", &LINES_OF_AN_ORDER.to_string());
        app.execute(&text).await;
    }
}

/// The table `plan_number` with the numbers 1 to `most`.
pub async fn numbers(app: &TestApp, most: i64) {
    app.execute("CREATE TABLE plan_number (n BIGINT NOT NULL PRIMARY KEY)").await;
    app.execute("INSERT INTO plan_number (n) VALUES (1)").await;
    let mut filled = 1;
    while filled < most {
        app.execute(&format!(
            "INSERT INTO plan_number (n)
             SELECT n + {filled} FROM plan_number WHERE n + {filled} <= {most}"
        ))
        .await;
        filled = (filled * 2).min(most);
    }
}

/// What an analysis by hand or by the server's own housekeeping leaves to the planner.
pub async fn analyse(app: &TestApp) {
    let dialect = counterfoil_db::Read::dialect(&app.db);
    let statement = |table: &str| match dialect {
        Dialect::MariaDb => format!("ANALYZE TABLE {table}"),
        Dialect::Postgres | Dialect::Sqlite => format!("ANALYZE {table}"),
    };
    for table in LARGE {
        let query = Query::built(statement(table));
        app.db.execute_outside_transaction(query).await.expect("an analysis");
    }
}

/// The three business records of every number.
pub const RECORDS: [&str; 3] = [
    "INSERT INTO fi_monthly_income_difference
       (id, station_id, bill_yearmonth, pre_rent, contract_rent, actual_rent)
     SELECT n, 'S' || n, '202609', 10000, 10000, 10000 FROM plan_number ORDER BY n",
    "INSERT INTO fi_customer_bill (id, station_id, bill_yearmonth, amount)
     SELECT n, 'S' || n, '202609', 10000 FROM plan_number ORDER BY n",
    "INSERT INTO fi_customer_bill_partner (id, station_id, bill_yearmonth, amount)
     SELECT n, 'S' || n, '202609', 10000 FROM plan_number ORDER BY n",
];

const STATEMENTS: [&str; 13] = [
    RECORDS[0],
    RECORDS[1],
    RECORDS[2],
    // Tasks of four kinds in every status; none of those that wait is due.
    "INSERT INTO fi_async_task
       (task_code, task_type, business_key, task_status, retry_count)
     SELECT 'OLD:' || n,
       CASE n % 4 WHEN 0 THEN 'RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD'
                  WHEN 1 THEN 'RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE'
                  WHEN 2 THEN 'RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE'
                  ELSE 'RESIDENT_INCOME_PAYMENT_LOCK_RELEASE' END,
       'OLD:' || n, CASE WHEN n % 10 < 6 THEN 2 WHEN n % 10 = 6 THEN 4 WHEN n % 10 = 7 THEN 0
                         WHEN n % 10 = 8 THEN 3 ELSE 1 END,
       CASE WHEN n % 10 = 8 THEN 1 ELSE 0 END
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "UPDATE fi_async_task SET next_execute_time = '2036-09-08 02:00:00'
     WHERE task_status IN (0, 1, 3)",
    "INSERT INTO fi_resident_income_payment_order
       (id, order_no, status, business_status, current_publish_version, submit_round,
        build_status, create_user_id)
     SELECT n, 'OLD' || n, CASE n % 4 WHEN 0 THEN 10 WHEN 1 THEN 20 WHEN 2 THEN 40 ELSE 50 END,
        'UNDER_REVIEW', 1, 1, 'PUBLISHED', n % 100
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO selection_session_item
       (session_id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id, pre_rent,
        pay_amount)
     SELECT n - n % {of_an_order}, 'S' || n, '202609', n, n, n, 10000, 10000
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_order_bill
       (payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, pre_rent, pay_amount, before_payment_status,
        before_partner_query_status)
     SELECT n - n % {of_an_order}, 1, 1, 10, 'S' || n, '202609', n, n, n,
        10000, 10000, 20, 10
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_bill_lock
       (lock_key, lock_status, lock_scene, lock_origin, payment_order_id, order_bill_id,
        data_version, submit_round, session_id, submit_attempt, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id)
     SELECT station_id || ':' || bill_yearmonth, 'ACTIVE', 'PUBLISHED_ACTIVE', 'SUBMIT_NEW',
        payment_order_id, id, 1, 1, payment_order_id, 1, station_id, bill_yearmonth, diff_id,
        small_bill_id, partner_bill_id
     FROM fi_resident_income_payment_order_bill ORDER BY id",
    "INSERT INTO review_business_plan (id, from_id, from_num, type, status, submit_round)
     SELECT n, n, 'OLD' || n, 'RESIDENT_INCOME_PAYMENT_REVIEW',
        CASE WHEN n % 500 = 0 THEN 'DOING' ELSE 'PASSED' END, 1
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO review_business_node (id, plan_id, node_code, status)
     SELECT n, n, 'MANAGER_A', CASE WHEN n % 500 = 0 THEN 'DOING' ELSE 'PASSED' END
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO review_business_node_user (node_id, user_id, has_turn, decision)
     SELECT n, 1 + n % 100, CASE WHEN n % 500 = 0 THEN 1 ELSE 0 END,
        CASE WHEN n % 500 = 0 THEN NULL ELSE 'PASSED' END
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
     VALUES (1, 'Partner', 101, 102)",
];

/// What earlier orders left behind from their review to their payment. All of it has ended.
const AFTER_REVIEW: [&str; 19] = [
    "INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
     SELECT n, 'Holder', 'ACC' || n, 'Bank' FROM plan_number ORDER BY n",
    "UPDATE fi_customer_bill SET customer_account_id = id WHERE id > {rows}",
    "UPDATE fi_monthly_income_difference SET partner_id = 1, project_company_id = 1
     WHERE id > {rows}",
    "INSERT INTO sys_project_company (id, name, asset_manager_code, payer_account)
     VALUES (1, 'Company', 'AM', 'PAYER')",
    "INSERT INTO sys_dict (dict_type, dict_key, status) VALUES ('ASSET_MANAGER', 'AM', 1)",
    "UPDATE sys_partner SET endpoint = 'http://127.0.0.1:9', split_rule = 'NONE'",
    "INSERT INTO fi_resident_income_payment_order_version
       (payment_order_id, session_id, target_data_version, target_submit_round,
        version_build_status)
     SELECT n, n, 1, 1, 'PUBLISHED' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_order_approval_instance
       (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round,
        approval_status)
     SELECT n, 1, 1, n, 1, 'APPROVED' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_order_log
       (payment_order_id, operation_type, data_version)
     SELECT n, 'PUBLISHED', 1 FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_order_project_payment
       (payment_order_id, data_version, submit_round, project_company_id, amount)
     SELECT n, 1, 1, 1, 10000 FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_review_callback_progress
       (id, payment_order_id, data_version, review_plan_id, submit_round, approval_attempt,
        async_task_id, phase, phase_status, main_task_status)
     SELECT n, n, 1, n, 1, 1, n, 'DONE', 'SUCCESS', 'SUCCESS'
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO review_callback_evidence (task_code, payment_order_id, body_sha256)
     SELECT 'OLD:' || n, n, 'hash' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_status_refresh_shard
       (source_id, payment_order_id, data_version, submit_round, task_status)
     SELECT n, n, 1, 1, 'SUCCESS' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_status_refresh_scope_guard
       (station_id, bill_yearmonth)
     SELECT 'S' || n, '202609' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_bill_dimension_snapshot
       (payment_order_id, data_version, order_bill_id, station_id, bill_yearmonth)
     SELECT n - n % {of_an_order}, 1, n, 'S' || n, '202609'
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_snapshot_refresh_progress
       (progress_id, shard_id, status)
     SELECT n, n, 'SUCCESS' FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_external_log
       (idempotency_key, log_type, payment_order_id, data_version, submit_round, partner_id,
        chunk_no, chunk_count, status)
     SELECT 'OLD:' || n, 'PARTNER_REVIEW_RESULT', n, 1, 1, 1, 1, 1, 'SUCCESS'
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_push_batch
       (id, batch_no, payment_order_id, data_version, submit_round, project_company_id, status,
        push_count, push_id)
     SELECT n, 'OLD:' || n, n, 1, 1, 1, 'PUSH_SUCCESS', 1, n
     FROM plan_number WHERE n <= {rows} ORDER BY n;
INSERT INTO fi_resident_income_payment_push_batch_detail
       (id, push_batch_id, order_bill_id, push_status, pay_status, push_id)
     SELECT n, n - n % 1000, n, 'PUSHED', 'PAID', n - n % 1000
     FROM plan_number WHERE n <= {rows} ORDER BY n",
    "INSERT INTO fi_resident_income_payment_push
       (id, push_batch_id, push_no, message_id, push_state)
     SELECT n, n, 1, 'OLD' || n, 'ACCEPTED' FROM plan_number WHERE n <= {rows} ORDER BY n;
INSERT INTO fi_resident_income_payment_push_item
       (push_id, push_batch_detail_id, end_to_end_id)
     SELECT n - n % 1000, n, 'OLD' || n FROM plan_number WHERE n <= {rows} ORDER BY n",
];
