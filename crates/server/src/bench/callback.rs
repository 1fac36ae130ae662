//! `bench callback`: from the accepted decision to DONE (S07, S08, S12) against the same final rows
//! written by the plainest set-based SQL in one transaction, guards and fact reads included, same
//! indexes, fsync on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use counterfoil_db::{Db, Pulse, Read, Text, sql};
use counterfoil_payment::kinds::{REVIEW_CALLBACK, REVIEW_PROGRESS, STATUS_REFRESH};
use counterfoil_payment::review_callback::{Callback, Conclusion, accept};
use counterfoil_protocol::{OrderId, PlanId};
use counterfoil_task::{Engine, Kicker};

use super::activate::numbers;
use super::scratch::Scratch;
use crate::config::Config;
use crate::wiring;

/// One run's figures.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Payable lines.
    pub rows: u64,
    /// S07 to DONE by the engine.
    pub ours: Duration,
    /// The floor.
    pub floor: Duration,
    /// The one turn of FINALIZE, with its reads before the lock.
    pub finalize: Duration,
    /// FINALIZE's transaction.
    pub effective: Duration,
    /// The longest of all other transactions of the approval.
    pub batch: Duration,
}

/// Runs floor and approval on two equal orders in one scratch database.
pub async fn run(config: &Config, url: &str, rows: u64) -> Result<Figures> {
    let scratch = Scratch::create(url, config.max_connections).await?;
    let measured = measure(config, &scratch, rows).await;
    scratch.remove().await?;
    measured
}

async fn measure(config: &Config, scratch: &Scratch, rows: u64) -> Result<Figures> {
    let db = &scratch.db;
    numbers(db, rows).await?;
    let first = prepare(db, 1, rows).await?;
    let second = prepare(db, 2, rows).await?;
    scratch.analyze().await?;
    let began = Instant::now();
    floor(db, first).await?;
    let floor = began.elapsed();
    let callback = Callback {
        order: second,
        plan: PlanId(second.0),
        conclusion: Conclusion::Pass,
        remark: None,
        time: None,
        data_version: None,
        attempt: None,
        round: None,
        evidence: None,
    };
    accept(db, &Kicker::none(), &callback).await?;
    let engine = wiring::engine(db, config, "http://127.0.0.1:9")?;
    let began = Instant::now();
    let finalize = approve(&engine).await?;
    let ours = began.elapsed();
    for (order, what) in [(first, "the floor"), (second, "the approval")] {
        let written = written(db, order).await?;
        ensure!(written == rows, "{what} wrote {written} of {rows} rows");
    }
    let (effective, batch) = transactions(&scratch.pulse);
    Ok(Figures { rows, ours, floor, finalize, effective, batch })
}

/// How long FINALIZE's transaction took, and the longest of the other batches.
fn transactions(pulse: &Pulse) -> (Duration, Duration) {
    let longest = pulse.longest();
    let effective = longest.get("review_progress.finalize").copied().unwrap_or_default();
    let is_batch = |point: &&str| !point.starts_with("bench.") && **point != *"migrate";
    let others = longest.iter().filter(|(point, _)| is_batch(point));
    let others = others.filter(|(point, _)| **point != "review_progress.finalize");
    (effective, others.map(|(_, took)| *took).max().unwrap_or_default())
}

/// Rounds of one handler at most; each does up to its cap of turns.
const MAX_ROUNDS: u32 = 1_000_000;

/// Runs the handlers one after the other to DONE. Answers how long FINALIZE's turn took.
async fn approve(engine: &Engine) -> Result<Duration> {
    let summary = engine.round(REVIEW_CALLBACK.handler, "").await?;
    ensure!(summary.handed_over == 1, "S07 did not hand over: {:?}", summary.errors);
    let mut finalize = Duration::ZERO;
    for _ in 0..MAX_ROUNDS {
        let phase = phase(engine.db()).await?;
        match phase.as_str() {
            "DONE" => return Ok(finalize),
            "REFRESH_SHARD" => {
                round(engine, STATUS_REFRESH.handler, r#"{"maxTaskCount":500}"#).await?;
            }
            "FINALIZE" => {
                let began = Instant::now();
                round(engine, REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await?;
                finalize = began.elapsed();
            }
            _ => round(engine, REVIEW_PROGRESS.handler, r#"{"maxTaskCount":1}"#).await?,
        }
    }
    anyhow::bail!("the approval does not come to DONE")
}

async fn round(engine: &Engine, handler: &str, parameter: &str) -> Result<()> {
    let summary = engine.round(handler, parameter).await?;
    ensure!(summary.is_success() && summary.selected > 0, "{handler}: {summary:?}");
    Ok(())
}

async fn phase(db: &Db) -> Result<String> {
    let query = sql!("SELECT phase FROM fi_resident_income_payment_review_callback_progress");
    let row = db.row(query).await?;
    Ok(row.map(|row| row.text("phase")).transpose()?.unwrap_or_default())
}

/// An order under review whose bills are locked: what S05 leaves to S07.
async fn prepare(db: &Db, set: i64, rows: u64) -> Result<OrderId> {
    let offset = (set - 1) * i64::try_from(rows)?;
    let mut tx = db.begin().await?;
    let order = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_order
               (order_no, status, business_status, current_publish_version, submit_round,
                build_status, audit_plan_status, create_user_id)
             VALUES (:order_no, 20, 'UNDER_REVIEW', 1, 1, 'PUBLISHED', 'CREATED', 7)",
            order_no = format!("BENCH{set}"),
        ))
        .await?;
    for text in AROUND {
        tx.execute(sql!(text, order = order, rows = rows as i64)).await?;
    }
    if set == 1 {
        for text in REFERENCES {
            tx.execute(sql!(text)).await?;
        }
    }
    for text in RECORDS {
        tx.execute(sql!(text, offset = offset)).await?;
    }
    tx.execute(sql!(LINES, order = order, offset = offset)).await?;
    tx.execute(sql!(LOCKS, order = order)).await?;
    for text in HELD {
        tx.execute(sql!(text, order = order)).await?;
    }
    tx.commit("bench.prepare").await?;
    Ok(OrderId(order))
}

const AROUND: [&str; 3] = [
    "UPDATE fi_resident_income_payment_order SET review_plan_id = id, payable_count = :rows
     WHERE id = :order",
    "INSERT INTO fi_resident_income_payment_order_approval_instance
       (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
     SELECT id, 1, 1, id, 1 FROM fi_resident_income_payment_order
     WHERE id = :order AND payable_count = :rows",
    "INSERT INTO fi_resident_income_payment_order_project_payment
       (payment_order_id, data_version, submit_round, project_company_id, amount)
     VALUES (:order, 1, 1, 1, :rows)",
];

const REFERENCES: [&str; 2] = [
    "INSERT INTO sys_project_company (id, name, asset_manager_code) VALUES (1, 'Bench', 'AM')",
    "INSERT INTO sys_dict (dict_type, dict_key, status) VALUES ('ASSET_MANAGER', 'AM', 1)",
];

const RECORDS: [&str; 4] = [
    "INSERT INTO fi_monthly_income_difference
       (id, station_id, bill_yearmonth, payment_status, pre_rent, contract_rent, actual_rent)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 30, 10000, 10000, 10000
     FROM bench_number ORDER BY n",
    "INSERT INTO fi_customer_bill
       (id, station_id, bill_yearmonth, payment_status, amount, customer_account_id)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 30, 10000, n + :offset
     FROM bench_number ORDER BY n",
    "INSERT INTO fi_customer_bill_partner (id, station_id, bill_yearmonth, payment_status, amount)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 30, 10000 FROM bench_number ORDER BY n",
    "INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
     SELECT n + :offset, 'Holder', 'ACC' || (n + :offset), 'Bank' FROM bench_number ORDER BY n",
];

const LINES: &str = "INSERT INTO fi_resident_income_payment_order_bill
       (payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, pre_rent, pay_amount, before_payment_status,
        before_partner_query_status, project_company_id, payee_name, payee_account, payee_bank)
     SELECT :order, 1, 1, 10, station_id, bill_yearmonth, id, id, id, 10000, 10000, 20, 10, 1,
        'Holder', 'ACC' || id, 'Bank'
     FROM fi_monthly_income_difference WHERE id > :offset ORDER BY id";

const LOCKS: &str = "INSERT INTO fi_resident_income_payment_bill_lock
       (lock_key, lock_status, lock_scene, lock_origin, payment_order_id, order_bill_id,
        data_version, submit_round, submit_attempt, station_id, bill_yearmonth, diff_id,
        small_bill_id, partner_bill_id, source_payment_status, source_partner_query_status)
     SELECT station_id || ':' || bill_yearmonth, 'ACTIVE', 'PUBLISHED_ACTIVE', 'SUBMIT_NEW',
        payment_order_id, id, 1, 1, 1, station_id, bill_yearmonth, diff_id, small_bill_id,
        partner_bill_id, 20, 20
     FROM fi_resident_income_payment_order_bill WHERE payment_order_id = :order ORDER BY id";

/// The three tables refer to the lines, as S04 leaves them.
const HELD: [Text; 3] = [
    Text::Forked {
        standard: "UPDATE fi_monthly_income_difference AS r
             SET locked_payment_order_id = l.payment_order_id, locked_order_bill_id = l.id
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.diff_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_monthly_income_difference r ON r.id = l.diff_id
             SET r.locked_payment_order_id = l.payment_order_id, r.locked_order_bill_id = l.id
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill AS r
             SET locked_payment_order_id = l.payment_order_id, locked_order_bill_id = l.id
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.small_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill r ON r.id = l.small_bill_id
             SET r.locked_payment_order_id = l.payment_order_id, r.locked_order_bill_id = l.id
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill_partner AS r
             SET locked_payment_order_id = l.payment_order_id, locked_order_bill_id = l.id
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.partner_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill_partner r ON r.id = l.partner_bill_id
             SET r.locked_payment_order_id = l.payment_order_id, r.locked_order_bill_id = l.id
             WHERE l.payment_order_id = :order",
    },
];

/// The plainest SQL for the same final rows: no fence, no lease, no batches. The recheck's and the
/// decision's facts are read once, set-based, and each scope gets its guard.
async fn floor(db: &Db, order: OrderId) -> Result<()> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order_bill SET line_status = 20, update_time = :now
         WHERE payment_order_id = :order AND data_version = 1 AND submit_round = 1
           AND line_type = 10",
        now = now,
        order = order.0,
    ))
    .await?;
    let payable = tx.count(sql!(FLOOR_RECHECK, order = order.0)).await?;
    let facts = tx.count(sql!(FLOOR_FACTS, order = order.0)).await?;
    ensure!(payable == facts, "the floor's facts are {payable} and {facts}");
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_status_refresh_scope_guard
           (station_id, bill_yearmonth, holder, guard_version)
         SELECT station_id, bill_yearmonth, 'floor', 1
         FROM fi_resident_income_payment_order_bill WHERE payment_order_id = :order",
        order = order.0,
    ))
    .await?;
    for text in FLOOR_TABLES {
        tx.execute(sql!(text, now = now, order = order.0)).await?;
    }
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order
         SET status = 40, payment_type = 'TREASURY', push_status = 'NOT_PUSHED',
             review_finish_time = :now, update_time = :now WHERE id = :order",
        now = now,
        order = order.0,
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order_approval_instance
         SET approval_status = 'APPROVED', finish_time = :now WHERE payment_order_id = :order",
        now = now,
        order = order.0,
    ))
    .await?;
    tx.commit("bench.floor").await?;
    Ok(())
}

const FLOOR_RECHECK: &str = "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
     JOIN fi_resident_income_payment_bill_lock k
       ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
     JOIN fi_customer_bill b ON b.id = l.small_bill_id AND b.deleted = 0
     JOIN fi_customer_account a
       ON a.id = b.customer_account_id AND a.account_no = l.payee_account AND a.deleted = 0
     WHERE l.payment_order_id = :order AND l.pay_amount > 0 AND l.pre_rent IS NOT NULL";

const FLOOR_FACTS: &str = "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
     JOIN fi_monthly_income_difference d
       ON d.station_id = l.station_id AND d.bill_yearmonth = l.bill_yearmonth
     JOIN fi_resident_income_payment_bill_lock k
       ON k.lock_key = l.station_id || ':' || l.bill_yearmonth
     JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id
     WHERE l.payment_order_id = :order AND COALESCE(d.actual_rent, d.pre_rent) >= 0";

const FLOOR_TABLES: [Text; 3] = [
    Text::Forked {
        standard: "UPDATE fi_monthly_income_difference AS r
             SET payment_status = 40, partner_query_status = 20,
                 financial_version = r.financial_version + 1,
                 payment_status_update_time = :now, update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.diff_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_monthly_income_difference r ON r.id = l.diff_id
             SET r.payment_status = 40, r.partner_query_status = 20,
                 r.financial_version = r.financial_version + 1,
                 r.payment_status_update_time = :now, r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill AS r
             SET payment_status = 40, payment_status_update_time = :now, update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.small_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill r ON r.id = l.small_bill_id
             SET r.payment_status = 40, r.payment_status_update_time = :now,
                 r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill_partner AS r
             SET payment_status = 40, partner_query_status = 20,
                 payment_status_update_time = :now, update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.partner_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill_partner r ON r.id = l.partner_bill_id
             SET r.payment_status = 40, r.partner_query_status = 20,
                 r.payment_status_update_time = :now, r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
];

async fn written(db: &Db, order: OrderId) -> Result<u64> {
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_order_bill l ON l.payment_order_id = o.id
         JOIN fi_monthly_income_difference d ON d.id = l.diff_id AND d.payment_status = 40
         JOIN fi_customer_bill b ON b.id = l.small_bill_id AND b.payment_status = 40
         JOIN fi_customer_bill_partner p ON p.id = l.partner_bill_id AND p.payment_status = 40
         WHERE o.id = :order AND o.status = 40 AND l.line_status = 20",
        order = order.0,
    );
    Ok(u64::try_from(db.count(query).await?)?)
}
