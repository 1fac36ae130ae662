//! The pre-payment recheck: every violation is listed by line, the approval is parked, and what
//! changed between the recheck and the commit is noticed under the lock.

use counterfoil_db::{Query, Read};
use counterfoil_e2e::{Bill, TestApp, on_every_database};
use counterfoil_payment::kinds::REVIEW_PROGRESS;
use counterfoil_payment::review_progress::violations;
use counterfoil_protocol::OrderId;

use super::approval::{advance, prepared, progress, under_review};

async fn three(app: &TestApp) -> OrderId {
    under_review(app, &[1, 2, 3].map(Bill::payable)).await
}

/// The violations on record as `station code`.
async fn listed(app: &TestApp, order: OrderId) -> Vec<String> {
    let found = violations(&app.db, order, 100).await.expect("violations");
    found.iter().map(|violation| format!("{} {}", violation.station, violation.code)).collect()
}

/// What makes station S2's line unpayable, and how it is called. `PARTNER` first takes its small
/// bill away and gives its partner bill an account.
const BROKEN: [(&str, &[&str]); 15] = [
    (
        "UPDATE fi_resident_income_payment_order_bill SET pay_amount = 0 WHERE station_id = 'S2'",
        &["recheck-amount"],
    ),
    (
        "UPDATE fi_resident_income_payment_order_bill SET pay_amount = NULL, pre_rent = NULL
         WHERE station_id = 'S2'",
        &["recheck-amount", "recheck-intended-rent"],
    ),
    (
        "UPDATE fi_resident_income_payment_order_bill SET bill_yearmonth = '202613'
         WHERE station_id = 'S2';
UPDATE fi_monthly_income_difference SET bill_yearmonth = '202613' WHERE station_id = 'S2'",
        &["recheck-month"],
    ),
    (
        "UPDATE fi_monthly_income_difference SET deleted = 1 WHERE station_id = 'S2'",
        &["recheck-station-unknown"],
    ),
    (
        "INSERT INTO fi_monthly_income_difference (station_id, bill_yearmonth)
         VALUES ('S2', '202609')",
        &["recheck-station-unknown"],
    ),
    (
        "UPDATE fi_resident_income_payment_bill_lock SET lock_status = 'RELEASED'
         WHERE station_id = 'S2'",
        &["recheck-lock"],
    ),
    ("UPDATE fi_customer_account SET status = 0 WHERE id = 2", &["recheck-account"]),
    ("UPDATE fi_customer_account SET deleted = 1 WHERE id = 2", &["recheck-account"]),
    ("UPDATE fi_customer_account SET account_no = 'X' WHERE id = 2", &["recheck-account-payee"]),
    (
        "UPDATE fi_customer_bill SET pushed_flag = 0 WHERE station_id = 'S2';
UPDATE fi_customer_bill_partner SET deleted = 1 WHERE station_id = 'S2'",
        &["recheck-partner-bill"],
    ),
    (
        "PARTNER;\nUPDATE fi_customer_bill_partner SET bill_yearmonth = '202608'
         WHERE station_id = 'S2'",
        &["recheck-partner-bill-month"],
    ),
    ("PARTNER;\nUPDATE fi_customer_account_partner SET status = 0", &["recheck-partner-account"]),
    (
        "PARTNER;\nUPDATE fi_customer_account_partner SET holder_name = 'Somebody'",
        &["recheck-partner-payee"],
    ),
    ("PARTNER;\nUPDATE sys_partner SET deleted = 1", &["recheck-partner-organisation"]),
    (
        "PARTNER;\nUPDATE fi_resident_income_payment_order_bill SET pre_rent = 1
         WHERE station_id = 'S2'",
        &["recheck-intended-amount"],
    ),
];

const PARTNER: &str = "UPDATE fi_customer_bill SET pushed_flag = 0 WHERE station_id = 'S2';
UPDATE fi_customer_bill_partner SET partner_id = 1, partner_account_id = 1
 WHERE station_id = 'S2';
INSERT INTO fi_customer_account_partner (id, partner_id, holder_name, account_no, bank_name)
 VALUES (1, 1, 'Holder 2', 'ACC-2', 'Bank')";

on_every_database! {
    async fn every_reason_not_to_pay_a_line_is_listed_by_its_code(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await;
        let tables = [
            "fi_resident_income_payment_order_bill",
            "fi_resident_income_payment_bill_lock",
            "fi_monthly_income_difference",
            "fi_customer_bill",
            "fi_customer_bill_partner",
            "fi_customer_account",
            "sys_partner",
        ];
        for table in tables {
            app.execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
        }
        for (broken, codes) in BROKEN {
            app.execute(&broken.replace("PARTNER", PARTNER)).await;
            let parked = app.round(REVIEW_PROGRESS.handler).await;
            assert_eq!((parked.selected, parked.failed), (1, 1), "{broken}: {parked:?}");
            let expected: Vec<String> = codes.iter().map(|code| format!("S2 {code}")).collect();
            assert_eq!(listed(&app, order).await, expected, "{broken}");
            for table in tables {
                app.execute(&format!(
                    "DELETE FROM {table};\nINSERT INTO {table} SELECT * FROM kept_{table}"
                ))
                .await;
            }
            app.execute(
                "DELETE FROM fi_customer_account_partner;
UPDATE fi_resident_income_payment_review_callback_progress
 SET last_error_code = NULL, next_retry_time = NULL",
            )
            .await;
        }
        advance(&app).await;
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|3|0|0");
    }

    async fn a_line_paid_by_its_partner_bill_passes_when_everything_agrees(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        app.execute(PARTNER).await;
        advance(&app).await;
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|3|0|0");
    }

    async fn a_parked_approval_waits_for_a_person_who_reruns_its_task(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        app.execute("UPDATE fi_customer_account SET status = 0").await;
        let parked = app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(parked.failed, 1, "{parked:?}");
        assert_eq!(listed(&app, order).await.len(), 3);
        let row = "SELECT phase, phase_status, main_task_status, last_error_code
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(app.value(row).await, "FINALIZE|FAILED|RUNNING|RECHECK_VIOLATED");
        app.pass_minutes(24 * 60);
        assert_eq!(app.round(REVIEW_PROGRESS.handler).await.selected, 0, "nobody but a person");
        app.execute("UPDATE fi_customer_account SET status = 1").await;
        let code = "SELECT task_code FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
        let named = format!(r#"{{"taskCode":"{}"}}"#, app.value(code).await);
        let rerun = app.round_with(REVIEW_PROGRESS.handler, &named).await;
        assert_eq!((rerun.failed, rerun.succeeded), (0, 2), "{rerun:?}");
        assert_eq!(progress(&app).await, "REFRESH_SHARD|INIT|SUCCESS|3|0|0");
        assert!(listed(&app, order).await.is_empty());
    }

    async fn an_account_changed_after_the_recheck_is_noticed_under_the_lock(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        // Up to FINALIZE, one turn.
        app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await;
        let second = app.second_process().await;
        let mut tx = second.db.begin().await.unwrap();
        let lock = "UPDATE fi_resident_income_payment_order SET update_time = update_time";
        tx.execute(Query::new(lock)).await.unwrap();
        let finalize = tokio::spawn({
            let app = app.clone();
            async move { app.round_with(REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await }
        });
        // The lease is committed before the recheck on every database but SQLite, whose one
        // writer this transaction is: there the turn has not begun, and the recheck itself sees it.
        let change = "UPDATE fi_customer_account SET account_no = 'ELSEWHERE' WHERE id = 2";
        tx.execute(Query::new(change)).await.unwrap();
        if app.db.dialect() != counterfoil_e2e::Dialect::Sqlite {
            waits_for_the_order(&app).await;
        }
        tx.commit("test").await.unwrap();
        let round = finalize.await.unwrap();
        assert_eq!(round.failed, 1, "{round:?}");
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(app.value(status).await, "20");
        second.db.close().await;
    }

    async fn an_order_without_a_payment_type_is_parked_with_the_reason(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        app.execute("UPDATE sys_project_company SET asset_manager_code = NULL").await;
        app.round(REVIEW_PROGRESS.handler).await;
        let found = violations(&app.db, order, 10).await.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].line.0, found[0].code), (0, "recheck-payment-type"));
        assert_eq!(found[0].message, "project companies without an asset manager: 1");
        let code = "SELECT last_error_code
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(app.value(code).await, "RECHECK_VIOLATED");
    }

    async fn every_violation_of_every_line_is_on_record(app: TestApp) {
        let order = three(&app).await;
        prepared(&app, order).await;
        app.execute(
            "UPDATE fi_resident_income_payment_order_bill SET pay_amount = 0, pre_rent = NULL;
UPDATE fi_customer_account SET status = 0",
        )
        .await;
        app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(listed(&app, order).await.len(), 9);
    }
}

/// Until another session waits for a row lock.
async fn waits_for_the_order(app: &TestApp) {
    let waiting = match app.db.dialect() {
        counterfoil_e2e::Dialect::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'"
        }
        // INNODB_TRX is a cache that frequent readers keep from being renewed. Another test's wait
        // counts too; then the recheck itself may see the change, which is refused all the same.
        _ => {
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
             WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
        }
    };
    for _ in 0..10_000 {
        if app.value(waiting).await != "0" {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("nobody waits for the order");
}
