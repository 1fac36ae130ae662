//! The running example of payment-flow.md written by hand, as an operator or an acceptance check
//! writes it: only columns that schema.md names, and of those only what matters.
//!
//! Order 1. V1 (version 21, session 11): lines 101 A, 102 B, 103 C with locks 1001 to 1003.
//! V2 (version 22, session 12): A kept as line 201, B gone, C UNQUALIFIED as line 203, D new as
//! line 204 with the RESERVED lock 1004. Bills A to D are stations S1 to S4; their ledger rows are
//! 51 to 54, small bills 61 to 64, partner bills 71 to 74.

use chrono::TimeDelta;
use counterfoil_db::Dialect;
use counterfoil_db::Read;
use counterfoil_e2e::TestApp;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE};
use counterfoil_protocol::TaskCode;
use counterfoil_task::Summary;

pub const RENT_ABNORMAL: &str = "农户租金异常";

/// The three business tables with the first id of their rows here.
pub const RECORDS: [(&str, i64); 3] = [
    ("fi_monthly_income_difference", 50),
    ("fi_customer_bill", 60),
    ("fi_customer_bill_partner", 70),
];

/// All tables that S04 may write.
const TABLES: [&str; 9] = [
    "fi_resident_income_payment_order",
    "fi_resident_income_payment_order_version",
    "fi_resident_income_payment_order_bill",
    "fi_resident_income_payment_bill_lock",
    "selection_session",
    "selection_submit_batch",
    "fi_monthly_income_difference",
    "fi_customer_bill",
    "fi_customer_bill_partner",
];

const V1: &str = "
INSERT INTO fi_resident_income_payment_order
  (id, order_no, status, business_status, current_publish_version, submit_round, build_status,
   create_user_id)
 VALUES (1, 'PO-1', 20, 'PENDING_AUDIT_PLAN', 2, 2, 'PUBLISHED', 7);
INSERT INTO selection_session
  (id, mode, status, creator_user_id, target_payment_order_id, submit_attempt)
 VALUES (11, 'NEW', 'COMPLETED', 7, 1, 1);
INSERT INTO fi_resident_income_payment_order_version
  (id, payment_order_id, session_id, mode, target_data_version, target_submit_round,
   submit_attempt, version_build_status)
 VALUES (21, 1, 11, 'NEW', 1, 1, 1, 'PUBLISHED');
INSERT INTO fi_resident_income_payment_order_bill
  (id, payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
   diff_id, small_bill_id, partner_bill_id, pre_rent, pay_amount)
 VALUES (101, 1, 1, 1, 10, 'S1', '202609', 51, 61, 71, 10000, 10000),
  (102, 1, 1, 1, 10, 'S2', '202609', 52, 62, 72, 10000, 10000),
  (103, 1, 1, 1, 10, 'S3', '202609', 53, 63, 73, 10000, 10000);
INSERT INTO fi_resident_income_payment_bill_lock
  (id, lock_key, lock_status, lock_scene, lock_origin, payment_order_id, order_bill_id,
   data_version, submit_round, session_id, submit_attempt, station_id, bill_yearmonth, diff_id,
   small_bill_id, partner_bill_id, source_payment_status, source_partner_query_status)
 VALUES (1001, 'S1:202609', 'ACTIVE', 'PUBLISHED_ACTIVE', 'SUBMIT_NEW', 1, 101, 1, 1, 11, 1,
   'S1', '202609', 51, 61, 71, 60, 30),
  (1002, 'S2:202609', 'ACTIVE', 'PUBLISHED_ACTIVE', 'SUBMIT_NEW', 1, 102, 1, 1, 11, 1,
   'S2', '202609', 52, 62, 72, 20, 20),
  (1003, 'S3:202609', 'ACTIVE', 'PUBLISHED_ACTIVE', 'SUBMIT_NEW', 1, 103, 1, 1, 11, 1,
   'S3', '202609', 53, 63, 73, 20, 20)";

const V2: &str = "
INSERT INTO selection_session
  (id, mode, status, creator_user_id, target_payment_order_id, submit_attempt, active_submit_id,
   active_scope_key, active_revise_key, failure_phase, state_version)
 VALUES (12, 'REVISE', 'PUBLISHED_LOCK_SYNCING', 7, 1, 1, 22, 'scope:12', 'revise:1', 'OLD', 5);
INSERT INTO fi_resident_income_payment_order_version
  (id, payment_order_id, session_id, mode, source_data_version, target_data_version,
   source_submit_round, target_submit_round, submit_attempt, version_build_status)
 VALUES (22, 1, 12, 'REVISE', 1, 2, 1, 2, 1, 'PUBLISHED');
INSERT INTO selection_submit_batch
  (id, payment_order_version_id, session_id, batch_phase, batch_status)
 VALUES (31, 22, 12, 'LOCK_ACTIVATE', 'INIT');
INSERT INTO fi_resident_income_payment_order_bill
  (id, payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
   diff_id, small_bill_id, partner_bill_id, source_order_bill_id, pre_rent, pay_amount,
   unqualified_reason, before_payment_status, before_partner_query_status)
 VALUES (201, 1, 2, 2, 10, 'S1', '202609', 51, 61, 71, 101, 10000, 10000, NULL, 20, 10),
  (203, 1, 2, 2, 20, 'S3', '202609', 53, 63, 73, 103, 0, 0, '农户租金异常', 20, 10),
  (204, 1, 2, 2, 10, 'S4', '202609', 54, 64, 74, NULL, 10000, 10000, NULL, 20, 10);
INSERT INTO fi_resident_income_payment_bill_lock
  (id, lock_key, payment_order_id, order_bill_id, data_version, submit_round, session_id,
   submit_attempt, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id)
 VALUES (1004, 'S4:202609', 1, 204, 2, 2, 12, 1, 'S4', '202609', 54, 64, 74)";

const NEW_ORDER: &str = "
INSERT INTO fi_resident_income_payment_order
  (id, order_no, status, current_publish_version, submit_round, create_user_id)
 VALUES (1, 'PO-1', 20, 1, 1, 7);
INSERT INTO selection_session (id, status, creator_user_id, submit_attempt, active_submit_id)
 VALUES (12, 'PUBLISHED_LOCK_SYNCING', 7, 1, 22);
INSERT INTO fi_resident_income_payment_order_version
  (id, payment_order_id, session_id, target_data_version, target_submit_round, submit_attempt,
   version_build_status)
 VALUES (22, 1, 12, 1, 1, 1, 'PUBLISHED');
INSERT INTO selection_submit_batch (id, payment_order_version_id, batch_phase)
 VALUES (31, 22, 'LOCK_ACTIVATE')";

/// Writes rows by hand into an app's database.
#[derive(Clone, Copy)]
pub struct Hand<'a>(pub &'a TestApp);

impl<'a> Hand<'a> {
    /// The running example, V2 just published, and its S04 task.
    pub async fn revision(app: &'a TestApp) -> Hand<'a> {
        let hand = Hand(app);
        app.execute(V1).await;
        app.execute(V2).await;
        for (table, first) in RECORDS {
            for n in 1..=4 {
                hand.record(table, first + n, n).await;
            }
            app.execute(&format!(
                "UPDATE {table} SET payment_status = 30, locked_payment_order_id = 1,
                   locked_order_bill_id = id - {first} + 100 WHERE id < {first} + 4"
            ))
            .await;
        }
        hand.task("LOCK_ACTIVATE", 22).await;
        hand
    }

    /// A NEW order of `bills` payable bills, just published, and its S04 task.
    pub async fn new_order(app: &'a TestApp, bills: i64) -> Hand<'a> {
        let hand = Hand(app);
        app.execute(NEW_ORDER).await;
        for n in 1..=bills {
            for (table, first) in RECORDS {
                hand.record(table, first + n, n).await;
            }
            app.execute(&format!(
                "INSERT INTO fi_resident_income_payment_order_bill
                   (id, payment_order_id, data_version, submit_round, station_id, bill_yearmonth,
                    diff_id, small_bill_id, partner_bill_id, pay_amount)
                 VALUES (20{n}, 1, 1, 1, 'S{n}', '202609', 5{n}, 6{n}, 7{n}, 10000);
                 \nINSERT INTO fi_resident_income_payment_bill_lock
                   (id, lock_key, payment_order_id, order_bill_id, data_version, submit_round,
                    session_id, submit_attempt, station_id, bill_yearmonth, diff_id,
                    small_bill_id, partner_bill_id)
                 VALUES (100{n}, 'S{n}:202609', 1, 20{n}, 1, 1, 12, 1, 'S{n}', '202609', 5{n},
                    6{n}, 7{n})"
            ))
            .await;
        }
        hand.task("LOCK_ACTIVATE", 22).await;
        hand
    }

    /// Takes all of it away again.
    pub async fn wipe(self) {
        let engine = [
            "fi_async_task",
            "fi_resident_income_payment_async_operation_log",
        ];
        for table in engine.into_iter().chain(TABLES) {
            self.0.execute(&format!("DELETE FROM {table}")).await;
        }
    }

    async fn record(self, table: &str, id: i64, n: i64) {
        let checked = if table == "fi_customer_bill" {
            ""
        } else {
            ", partner_query_status"
        };
        let passed = if checked.is_empty() { "" } else { ", 20" };
        self.0
            .execute(&format!(
                "INSERT INTO {table} (id, station_id, bill_yearmonth{checked})
                 VALUES ({id}, 'S{n}', '202609'{passed})"
            ))
            .await;
    }

    /// A task of S03 to S05 about a version.
    pub async fn task(self, scene: &str, version: i64) {
        let key = format!("{scene}:{version}");
        let prefix = match scene {
            "SUBMIT_BUILD" => "RIPSB",
            "LOCK_ACTIVATE" => "RIPLA",
            _ => "RIPAP",
        };
        self.0
            .execute(&format!(
                r#"INSERT INTO fi_async_task (task_code, task_type, business_key, task_data)
                 VALUES ('{}', 'RESIDENT_INCOME_PAYMENT_{scene}', '{key}',
                   '{{"paymentOrderVersionId":{version},"taskScene":"{scene}"}}')"#,
                TaskCode::of(prefix, &key)
            ))
            .await;
    }

    /// Runs S04 once.
    pub async fn activate(self) -> Summary {
        self.0.round(LOCK_ACTIVATE.handler).await
    }

    /// Runs S04 once; it must succeed.
    pub async fn activated(self) {
        let summary = self.activate().await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
    }

    /// The same after this many failures, which stay counted.
    pub async fn activated_after(self, failures: i64) {
        self.activated().await;
        let expected = format!("2|{failures}|NULL");
        assert_eq!(self.task_state("LOCK_ACTIVATE:22").await, expected);
    }

    /// Runs S04 once; it must fail, counted. Answers the message.
    pub async fn refused(self) -> String {
        let summary = self.activate().await;
        assert_eq!((summary.succeeded, summary.failed), (0, 1), "{summary:?}");
        let task = self.task_state("LOCK_ACTIVATE:22").await;
        assert!(task.starts_with("3|1|"), "{task}");
        task
    }

    /// Runs S06 once.
    pub async fn release(self) -> Summary {
        self.0.round(LOCK_RELEASE.handler).await
    }

    /// One statement as it stands, outside a transaction.
    pub async fn raw(self, text: &str) {
        let query = counterfoil_db::Query::built(text.to_owned());
        let done = self.0.db.execute_outside_transaction(query).await;
        done.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }

    /// `status|retries|message` of a task.
    pub async fn task_state(self, key: &str) -> String {
        self.0
            .value(&format!(
                "SELECT task_status, retry_count, error_message FROM fi_async_task
                 WHERE business_key = '{key}'"
            ))
            .await
    }

    /// Every column of every row of the tables that S04 may write.
    pub async fn everything(self) -> Vec<String> {
        let mut all = Vec::new();
        for table in TABLES {
            for line in self.rows(table).await {
                all.push(format!("{table}: {line}"));
            }
        }
        all
    }

    /// Every column of every row of one table.
    pub async fn rows(self, table: &str) -> Vec<String> {
        self.0
            .lines(&format!("SELECT * FROM {table} ORDER BY id"))
            .await
    }

    /// Every column of one row.
    pub async fn row(self, table: &str, id: i64) -> String {
        self.0
            .value(&format!("SELECT * FROM {table} WHERE id = {id}"))
            .await
    }

    /// `status|order|line` of a bill's record, n from 1 for A.
    pub async fn reference(self, table: &str, n: i64) -> String {
        let first = RECORDS.iter().find(|(name, _)| *name == table);
        let first = first.expect("a business table").1;
        self.0
            .value(&format!(
                "SELECT payment_status, locked_payment_order_id, locked_order_bill_id
                 FROM {table} WHERE id = {}",
                first + n
            ))
            .await
    }

    /// The three references of a bill, which must agree.
    pub async fn references(self, n: i64) -> String {
        let [(ledger, _), (small, _), (partner, _)] = RECORDS;
        let reference = self.reference(ledger, n).await;
        assert_eq!(
            self.reference(small, n).await,
            reference,
            "small bill of bill {n}"
        );
        assert_eq!(
            self.reference(partner, n).await,
            reference,
            "partner bill of bill {n}"
        );
        reference
    }

    /// `status|key|line|version|scene|reason` of a lock.
    pub async fn lock(self, id: i64) -> String {
        self.0
            .value(&format!(
                "SELECT lock_status, lock_key, order_bill_id, data_version, lock_scene,
                   release_reason
                 FROM fi_resident_income_payment_bill_lock WHERE id = {id}"
            ))
            .await
    }

    /// An instant this many minutes from the clock's now, as a literal.
    pub fn minutes(self, minutes: i64) -> String {
        let instant = self.0.now() + TimeDelta::minutes(minutes);
        let format = match self.0.db.dialect() {
            Dialect::MariaDb => "'%Y-%m-%d %H:%M:%S%.6f'",
            _ => "'%Y-%m-%dT%H:%M:%S+00:00'",
        };
        instant.format(format).to_string()
    }
}
