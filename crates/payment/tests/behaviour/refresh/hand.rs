//! An approved order written by hand: order 1, version 1, round 1, its progress 5 at
//! REFRESH_SHARD, its S07 task 900. Line n is of station `Sn`; its ledger row is 10000 + n, its
//! small bill 20000 + n, its partner bill 30000 + n, its lock 40000 + n. Every fifth line is
//! UNQUALIFIED and concluded, the others are PAYABLE and locked, as S04 left them.

use counterfoil_db::Dialect;
use counterfoil_db::Read;
use counterfoil_e2e::TestApp;
use counterfoil_payment::kinds::{BILL_SNAPSHOT, STATUS_REFRESH};
use counterfoil_payment::status_refresh::{
    LinesOf, Source, insert_shards, plan_shards, plan_shards_between,
};
use counterfoil_protocol::{DataVersion, LineId, OrderId, SubmitRound, TaskCode};
use counterfoil_task::Summary;

pub const REASON: &str = "农户租金异常";

/// The three business tables.
pub const RECORDS: [&str; 3] =
    ["fi_monthly_income_difference", "fi_customer_bill", "fi_customer_bill_partner"];

/// All tables that S12 and S13 write, apart from guards.
const TABLES: [&str; 8] = [
    "fi_monthly_income_difference",
    "fi_customer_bill",
    "fi_customer_bill_partner",
    "fi_resident_income_payment_review_callback_progress",
    "fi_resident_income_payment_status_refresh_shard",
    "fi_resident_income_payment_bill_dimension_snapshot",
    "fi_resident_income_payment_snapshot_refresh_progress",
    "fi_async_task",
];

pub const LINES: LinesOf =
    LinesOf { order: OrderId(1), data: DataVersion(1), round: SubmitRound(1) };

/// Writes rows by hand, a thousand a statement.
#[derive(Clone, Copy)]
pub struct Approved<'a>(pub &'a TestApp);

impl<'a> Approved<'a> {
    /// The order with its lines and no shard yet.
    pub async fn order(app: &'a TestApp, lines: i64) -> Approved<'a> {
        let this = Approved(app);
        let finalized = this.instant(0);
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_order
               (id, order_no, status, current_publish_version, submit_round, create_user_id)
             VALUES (1, 'PO-1', 40, 1, 1, 7);
             \nINSERT INTO fi_async_task (id, task_code, task_type, business_key, task_status)
             VALUES (900, 'RIPRC:900', 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY',
               'REVIEW_CALLBACK:1:9:1:1:1:PASS', 2);
             \nINSERT INTO fi_resident_income_payment_review_callback_progress
               (id, payment_order_id, data_version, review_plan_id, submit_round,
                approval_attempt, async_task_id, phase, phase_status, main_task_status,
                finalize_time)
             VALUES (5, 1, 1, 9, 1, 1, 900, 'REFRESH_SHARD', 'INIT', 'SUCCESS', {finalized})"
        ))
        .await;
        this.records(1, lines).await;
        this.lines(lines).await;
        app.execute(
            "UPDATE fi_monthly_income_difference SET payment_status = 30,
               locked_payment_order_id = 1, locked_order_bill_id = id - 10000
             WHERE (id - 10000) % 5 <> 0;
             \nUPDATE fi_customer_bill SET payment_status = 30, locked_payment_order_id = 1,
               locked_order_bill_id = id - 20000 WHERE (id - 20000) % 5 <> 0;
             \nUPDATE fi_customer_bill_partner SET payment_status = 30,
               locked_payment_order_id = 1, locked_order_bill_id = id - 30000
             WHERE (id - 30000) % 5 <> 0",
        )
        .await;
        this
    }

    /// The same with its planned shards, all expected.
    pub async fn planned(app: &'a TestApp, lines: i64) -> Approved<'a> {
        let this = Approved::order(app, lines).await;
        let shards = this.plan(Source::ReviewApproved, 5).await;
        app.execute(&format!(
            "UPDATE fi_resident_income_payment_review_callback_progress
             SET shard_expected = {shards} WHERE id = 5"
        ))
        .await;
        this
    }

    /// The same in two shards: the lines up to `split`, and the rest.
    pub async fn planned_in_two(app: &'a TestApp, lines: i64, split: i64) -> Approved<'a> {
        let this = Approved::order(app, lines).await;
        let mut tx = app.db.begin().await.expect("a transaction");
        for (first, last) in [(1, split), (split + 1, lines)] {
            let part = plan_shards_between(&tx, &LINES, LineId(first), LineId(last)).await;
            let part = part.expect("a plan");
            let new = insert_shards(&mut tx, Source::ReviewApproved, 5, &LINES, &part).await;
            assert_eq!(new.expect("shards"), 1);
        }
        tx.commit("test").await.expect("a commit");
        app.execute(
            "UPDATE fi_resident_income_payment_review_callback_progress
             SET shard_expected = 2 WHERE id = 5",
        )
        .await;
        this
    }

    /// Takes all of it away again.
    pub async fn wipe(self) {
        let others = [
            "fi_resident_income_payment_order",
            "fi_resident_income_payment_order_bill",
            "fi_resident_income_payment_bill_lock",
            "fi_resident_income_payment_status_refresh_scope_guard",
            "fi_resident_income_payment_async_operation_log",
        ];
        for table in TABLES.into_iter().chain(others) {
            self.0.execute(&format!("DELETE FROM {table}")).await;
        }
    }

    /// Plans and inserts shards of all lines; answers how many are new.
    pub async fn plan(self, source: Source, source_id: i64) -> u64 {
        let LinesOf { order, data, round } = LINES;
        let shards = plan_shards(&self.0.db, order, data, round).await.expect("a plan");
        let mut tx = self.0.db.begin().await.expect("a transaction");
        let new = insert_shards(&mut tx, source, source_id, &LINES, &shards).await;
        tx.commit("test").await.expect("a commit");
        new.expect("shards")
    }

    /// Free records `first` to `last` as an import leaves them.
    pub async fn records(self, first: i64, last: i64) {
        let numbers: Vec<i64> = (first..=last).collect();
        for some in numbers.chunks(1000) {
            let rows = |make: &dyn Fn(i64) -> String| {
                some.iter().map(|n| make(*n)).collect::<Vec<_>>().join(", ")
            };
            let ledger =
                rows(&|n| format!("({}, 'S{n}', '202609', 10000, 10000, 10000)", n + 10_000));
            let small = rows(&|n| format!("({}, 'S{n}', '202609', 10000)", n + 20_000));
            let partner = rows(&|n| format!("({}, 'S{n}', '202609', 10000)", n + 30_000));
            self.0
                .execute(&format!(
                    "INSERT INTO fi_monthly_income_difference
                       (id, station_id, bill_yearmonth, pre_rent, contract_rent, actual_rent)
                     VALUES {ledger};
                     \nINSERT INTO fi_customer_bill (id, station_id, bill_yearmonth, amount)
                     VALUES {small};
                     \nINSERT INTO fi_customer_bill_partner
                       (id, station_id, bill_yearmonth, amount) VALUES {partner}"
                ))
                .await;
        }
    }

    async fn lines(self, last: i64) {
        let effective = self.instant(0);
        let line = |n: i64| {
            let (line_type, status, pay, reason, time) = match n % 5 {
                0 => (20, 50, 0, format!("'{REASON}'"), effective.as_str()),
                _ => (10, 20, 10_000, "NULL".to_owned(), "NULL"),
            };
            let pre_rent = if n % 10 == 0 { 0 } else { 10_000 };
            format!(
                "({n}, 1, 1, 1, {line_type}, {status}, 'S{n}', '202609', {}, {}, {}, {pre_rent},
                  {pay}, {reason}, {time}, 'Payee {n}', 'ACC{n}', 'Bank')",
                n + 10_000,
                n + 20_000,
                n + 30_000
            )
        };
        let lock = |n: i64| {
            format!(
                "({}, 'S{n}:202609', 'ACTIVE', 1, {n}, 1, 1, 11, 1, 'S{n}', '202609')",
                n + 40_000
            )
        };
        let numbers: Vec<i64> = (1..=last).collect();
        for some in numbers.chunks(1000) {
            let lines: Vec<String> = some.iter().map(|n| line(*n)).collect();
            let locks: Vec<String> =
                some.iter().filter(|n| **n % 5 != 0).map(|n| lock(*n)).collect();
            self.0
                .execute(&format!(
                    "INSERT INTO fi_resident_income_payment_order_bill
                       (id, payment_order_id, data_version, submit_round, line_type, line_status,
                        station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id,
                        pre_rent, pay_amount, unqualified_reason, unqualified_effective_time,
                        payee_name, payee_account, payee_bank)
                     VALUES {};
                     \nINSERT INTO fi_resident_income_payment_bill_lock
                       (id, lock_key, lock_status, payment_order_id, order_bill_id, data_version,
                        submit_round, session_id, submit_attempt, station_id, bill_yearmonth)
                     VALUES {}",
                    lines.join(", "),
                    locks.join(", ")
                ))
                .await;
        }
    }

    /// One round of S12.
    pub async fn refresh(self) -> Summary {
        self.0.round(STATUS_REFRESH.handler).await
    }

    /// One round of S12 without trouble; answers its turns.
    pub async fn refreshed(self) -> u32 {
        let summary = self.refresh().await;
        assert_eq!(summary.failed, 0, "{summary:?}");
        summary.succeeded
    }

    /// One round of S13.
    pub async fn snapshot(self) -> Summary {
        self.0.round(BILL_SNAPSHOT.handler).await
    }

    /// `phase|phase status|ready|shard_success` of the progress.
    pub async fn progress(self) -> String {
        self.0
            .value(
                "SELECT phase, phase_status, refresh_ready, shard_success
                 FROM fi_resident_income_payment_review_callback_progress WHERE id = 5",
            )
            .await
    }

    /// `status|processed|cursor` of every shard.
    pub async fn shards(self) -> Vec<String> {
        self.0
            .lines(
                "SELECT task_status, processed_scope_count, cursor_order_bill_id
                 FROM fi_resident_income_payment_status_refresh_shard ORDER BY id",
            )
            .await
    }

    /// Ledger and partner bill of bill n, which must agree:
    /// `status|order|line|query|flag|reason|paid|cumulative`; the small bill has the first three.
    pub async fn bill(self, n: i64) -> String {
        let columns = "payment_status, locked_payment_order_id, locked_order_bill_id,
            partner_query_status, unqualified_flag, unqualified_reason, paid_amount,
            cumulative_paid_amount";
        let row = async |table: &str, columns: &str, id: i64| {
            self.0.value(&format!("SELECT {columns} FROM {table} WHERE id = {id}")).await
        };
        let ledger = row(RECORDS[0], columns, n + 10_000).await;
        assert_eq!(row(RECORDS[2], columns, n + 30_000).await, ledger, "partner bill of {n}");
        let small = "payment_status, locked_payment_order_id, locked_order_bill_id";
        let small = row(RECORDS[1], small, n + 20_000).await;
        assert!(ledger.starts_with(&format!("{small}|")), "small bill of {n}: {small} {ledger}");
        ledger
    }

    /// Every column of every row of the three business tables.
    pub async fn business(self) -> Vec<String> {
        self.rows_of(&RECORDS).await
    }

    /// Every column of every row that S12 and S13 may write, apart from guards.
    pub async fn everything(self) -> Vec<String> {
        self.rows_of(&TABLES).await
    }

    async fn rows_of(self, tables: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        for table in tables {
            for line in self.0.lines(&format!("SELECT * FROM {table} ORDER BY id")).await {
                all.push(format!("{table}: {line}"));
            }
        }
        all
    }

    /// The S13 task of a shard, written by hand.
    pub async fn snapshot_task(self, progress: i64, shard: i64) {
        let key = format!("BILL_SNAPSHOT:{progress}:{shard}");
        self.0
            .execute(&format!(
                r#"INSERT INTO fi_async_task (task_code, task_type, business_key, task_data)
                 VALUES ('{}', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', '{key}',
                   '{{"progressId":{progress},"shardId":{shard}}}')"#,
                TaskCode::of("RIPBS", &key)
            ))
            .await;
    }

    /// An instant this many minutes from now, as a literal.
    pub fn instant(self, minutes: i64) -> String {
        let instant = self.0.now() + chrono::TimeDelta::minutes(minutes);
        let format = match self.0.db.dialect() {
            Dialect::MariaDb => "'%Y-%m-%d %H:%M:%S%.6f'",
            _ => "'%Y-%m-%dT%H:%M:%S+00:00'",
        };
        instant.format(format).to_string()
    }
}
