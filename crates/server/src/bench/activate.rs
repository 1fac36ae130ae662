//! `bench activate`: the whole of S04 against the same final rows written by the plainest
//! set-based SQL in one transaction, same indexes, fsync on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use counterfoil_db::{Db, Text, Tx, sql};
use counterfoil_payment::LockActivatePayload;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, business_key};
use counterfoil_protocol::{TaskCode, VersionId};
use counterfoil_task::{Kicker, Seed, Subject, accept_or_reuse};

use super::revise;
use super::scratch::Scratch;
use crate::config::Config;
use crate::wiring;

/// One run's figures.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Rows activated, or lines of the revised version.
    pub rows: u64,
    /// S04 by the engine.
    pub ours: Duration,
    /// The floor.
    pub floor: Duration,
}

/// What the planner's statistics know when S04 begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Statistics {
    /// Everything.
    Fresh,
    /// The earlier set only, while all its locks were RESERVED: nothing has been analysed since.
    Stale,
    /// Nothing: no table was ever analysed.
    Never,
}

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// A revision instead of a new order.
    pub revise: bool,
    /// What the planner knows.
    pub statistics: Statistics,
}

/// Runs floor and S04 on two equal sets of rows in one scratch database; with `revise`, S04 runs
/// on a revision of the rows that the floor has activated.
pub async fn run(config: &Config, url: &str, rows: u64, shape: Shape) -> Result<Figures> {
    let scratch = Scratch::create(url, config.max_connections).await?;
    let measured = measure(config, &scratch, rows, shape).await;
    scratch.remove().await?;
    measured
}

async fn measure(config: &Config, scratch: &Scratch, rows: u64, shape: Shape) -> Result<Figures> {
    let db = &scratch.db;
    numbers(db, rows).await?;
    // Rows of two submissions of equal size; ids of the second follow those of the first.
    let first = prepare(db, 1, rows).await?;
    if shape.statistics == Statistics::Stale {
        scratch.analyze().await?;
    }
    let second = prepare(db, 2, rows).await?;
    if shape.statistics == Statistics::Fresh {
        scratch.analyze().await?;
    }
    let began = Instant::now();
    floor(db, first).await?;
    let floor = began.elapsed();
    let (version, expected) = if shape.revise {
        let revision = revise::prepare(db, first, second, rows).await?;
        if shape.statistics == Statistics::Fresh {
            scratch.analyze().await?;
        }
        (revision, revise::payable(rows))
    } else {
        (second, rows)
    };
    let ours = activate(config, db, version).await?;
    for (version, what, expected) in [(first, "the floor", rows), (version, "S04", expected)] {
        if shape.revise && version == first {
            continue; // the revision has taken its rows over
        }
        let written = written(db, version).await?;
        ensure!(written == expected, "{what} wrote {written} of {expected} rows");
    }
    Ok(Figures { rows, ours, floor })
}

async fn activate(config: &Config, db: &Db, version: VersionId) -> Result<Duration> {
    // S04 never calls the review centre: any address will do.
    let engine = wiring::engine(db, config, "http://127.0.0.1:9")?;
    let code = TaskCode::of(LOCK_ACTIVATE.prefix, &business_key::lock_activate(version));
    let began = Instant::now();
    let summary = engine.run_task(LOCK_ACTIVATE.handler, &code).await?;
    let took = began.elapsed();
    ensure!(summary.succeeded == 1, "S04 did not succeed: {:?}", summary.errors);
    Ok(took)
}

/// The numbers 1 to `rows`, by doubling: the same statement on every database.
pub(super) async fn numbers(db: &Db, rows: u64) -> Result<()> {
    let rows = i64::try_from(rows)?;
    let mut tx = db.begin().await?;
    tx.execute(sql!("CREATE TABLE bench_number (n BIGINT NOT NULL PRIMARY KEY)")).await?;
    tx.execute(sql!("INSERT INTO bench_number (n) VALUES (1)")).await?;
    let mut filled = 1;
    while filled < rows {
        let copy = sql!(
            "INSERT INTO bench_number (n)
             SELECT n + :filled FROM bench_number WHERE n + :filled <= :rows",
            filled = filled,
            rows = rows,
        );
        tx.execute(copy).await?;
        filled = (filled * 2).min(rows);
    }
    tx.commit("bench.numbers").await?;
    Ok(())
}

/// A published NEW version whose locks are RESERVED: what S03 leaves to S04.
async fn prepare(db: &Db, set: i64, rows: u64) -> Result<VersionId> {
    let offset = (set - 1) * i64::try_from(rows)?;
    let mut tx = db.begin().await?;
    let order = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_order
               (order_no, status, business_status, current_publish_version, submit_round,
                build_status, create_user_id)
             VALUES (:order_no, 20, 'PENDING_AUDIT_PLAN', 1, 1, 'PUBLISHED', 7)",
            order_no = format!("BENCH{set}"),
        ))
        .await?;
    let session = tx
        .insert(sql!(
            "INSERT INTO selection_session
               (mode, status, creator_user_id, target_payment_order_id, submit_attempt)
             VALUES ('NEW', 'PUBLISHED_LOCK_SYNCING', 7, :order, 1)",
            order = order,
        ))
        .await?;
    let version = version(&mut tx, order, session).await?;
    for text in RECORDS {
        tx.execute(sql!(text, offset = offset)).await?;
    }
    tx.execute(sql!(LINES, order = order, offset = offset)).await?;
    tx.execute(sql!(LOCKS, order = order, session = session)).await?;
    tx.commit("bench.prepare").await?;
    Ok(version)
}

async fn version(tx: &mut Tx, order: i64, session: i64) -> Result<VersionId> {
    let version = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_order_version
               (payment_order_id, session_id, mode, target_data_version, target_submit_round,
                submit_attempt, version_build_status)
             VALUES (:order, :session, 'NEW', 1, 1, 1, 'PUBLISHED')",
            order = order,
            session = session,
        ))
        .await?;
    hand_over(tx, version, session).await?;
    Ok(VersionId(version))
}

/// What S03 leaves to S04: the batch, the session's active submit, the task.
pub(super) async fn hand_over(tx: &mut Tx, version: i64, session: i64) -> Result<()> {
    tx.execute(sql!(
        "INSERT INTO selection_submit_batch (payment_order_version_id, session_id, batch_phase)
         VALUES (:version, :session, 'LOCK_ACTIVATE')",
        version = version,
        session = session,
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE selection_session SET active_submit_id = :version WHERE id = :session",
        version = version,
        session = session,
    ))
    .await?;
    let version = VersionId(version);
    let seed = Seed {
        kind: &LOCK_ACTIVATE,
        business_key: business_key::lock_activate(version),
        data: LockActivatePayload::data(version),
        subject: Subject::none(),
        source: None,
    };
    accept_or_reuse(tx, &seed, &Kicker::none()).await?;
    Ok(())
}

const RECORDS: [&str; 3] = [
    "INSERT INTO fi_monthly_income_difference
       (id, station_id, bill_yearmonth, pre_rent, contract_rent, actual_rent)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 10000, 10000, 10000
     FROM bench_number ORDER BY n",
    "INSERT INTO fi_customer_bill (id, station_id, bill_yearmonth, amount)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 10000 FROM bench_number ORDER BY n",
    "INSERT INTO fi_customer_bill_partner (id, station_id, bill_yearmonth, amount)
     SELECT n + :offset, 'S' || (n + :offset), '202609', 10000 FROM bench_number ORDER BY n",
];

const LINES: &str = "INSERT INTO fi_resident_income_payment_order_bill
       (payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, pre_rent, pay_amount, before_payment_status,
        before_partner_query_status)
     SELECT :order, 1, 1, 10, station_id, bill_yearmonth, id, id, id, 10000, 10000, 20, 10
     FROM fi_monthly_income_difference WHERE id > :offset ORDER BY id";

const LOCKS: &str = "INSERT INTO fi_resident_income_payment_bill_lock
       (lock_key, lock_status, lock_scene, lock_origin, payment_order_id, order_bill_id,
        data_version, submit_round, session_id, submit_attempt, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, source_payment_status,
        source_partner_query_status)
     SELECT station_id || ':' || bill_yearmonth, 'RESERVED', 'BUILD_RESERVE', 'SUBMIT_NEW',
        payment_order_id, id, 1, 1, :session, 1, station_id, bill_yearmonth, diff_id,
        small_bill_id, partner_bill_id, 20, 10
     FROM fi_resident_income_payment_order_bill WHERE payment_order_id = :order ORDER BY id";

/// The plainest SQL for the same final rows: no fence, no lease, no batches, no verification.
async fn floor(db: &Db, version: VersionId) -> Result<()> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let order = order_of(&tx, version).await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'ACTIVE', lock_scene = 'PUBLISHED_ACTIVE', update_time = :now
         WHERE payment_order_id = :order",
        now = now,
        order = order,
    ))
    .await?;
    for text in FLOOR_TABLES {
        tx.execute(sql!(text, now = now, order = order)).await?;
    }
    tx.execute(sql!(
        "UPDATE selection_submit_batch SET batch_status = 'DONE', update_time = :now
         WHERE payment_order_version_id = :version",
        now = now,
        version = version.0,
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE selection_session SET status = 'COMPLETED', update_time = :now
         WHERE target_payment_order_id = :order",
        now = now,
        order = order,
    ))
    .await?;
    tx.execute(sql!(
        "INSERT INTO fi_async_task (task_code, task_type, business_key)
         VALUES (:code, 'RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE', :code)",
        code = format!("FLOOR:{version}"),
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE fi_async_task SET task_status = 2, update_time = :now
         WHERE business_key = :key",
        now = now,
        key = business_key::lock_activate(version),
    ))
    .await?;
    tx.commit("bench.floor").await?;
    Ok(())
}

const FLOOR_TABLES: [Text; 3] = [
    Text::Forked {
        standard: "UPDATE fi_monthly_income_difference AS r
             SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
                 locked_order_bill_id = l.id, unqualified_flag = 0, unqualified_reason = NULL,
                 financial_version = r.financial_version + 1,
                 payment_status_update_time = :now, update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.diff_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_monthly_income_difference r ON r.id = l.diff_id
             SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
                 r.locked_order_bill_id = l.id, r.unqualified_flag = 0,
                 r.unqualified_reason = NULL, r.financial_version = r.financial_version + 1,
                 r.payment_status_update_time = :now, r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill AS r
             SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
                 locked_order_bill_id = l.id, payment_status_update_time = :now,
                 update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.small_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill r ON r.id = l.small_bill_id
             SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
                 r.locked_order_bill_id = l.id, r.payment_status_update_time = :now,
                 r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
    Text::Forked {
        standard: "UPDATE fi_customer_bill_partner AS r
             SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
                 locked_order_bill_id = l.id, unqualified_flag = 0, unqualified_reason = NULL,
                 payment_status_update_time = :now, update_time = :now
             FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = :order AND r.id = l.partner_bill_id",
        mariadb: "UPDATE fi_resident_income_payment_order_bill l
             JOIN fi_customer_bill_partner r ON r.id = l.partner_bill_id
             SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
                 r.locked_order_bill_id = l.id, r.unqualified_flag = 0,
                 r.unqualified_reason = NULL, r.payment_status_update_time = :now,
                 r.update_time = :now
             WHERE l.payment_order_id = :order",
    },
];

pub(super) async fn order_of(tx: &Tx, version: VersionId) -> Result<i64> {
    use counterfoil_db::Read;
    let query = sql!(
        "SELECT payment_order_id AS id FROM fi_resident_income_payment_order_version
         WHERE id = :version",
        version = version.0,
    );
    Ok(tx.count(query).await?)
}

async fn written(db: &Db, version: VersionId) -> Result<u64> {
    use counterfoil_db::Read;
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order_version v
         JOIN fi_resident_income_payment_order_bill l
           ON l.payment_order_id = v.payment_order_id AND l.data_version = v.target_data_version
         JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
         JOIN fi_monthly_income_difference d
           ON d.id = l.diff_id AND d.locked_order_bill_id = l.id
         JOIN fi_customer_bill b ON b.id = l.small_bill_id AND b.locked_order_bill_id = l.id
         JOIN fi_customer_bill_partner p
           ON p.id = l.partner_bill_id AND p.locked_order_bill_id = l.id
         WHERE v.id = :version",
        version = version.0,
    );
    Ok(u64::try_from(db.count(query).await?)?)
}
