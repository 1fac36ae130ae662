//! Step 6: old references of bills whose lock was released are taken back.
//!
//! The same predicate says what the clean-up still has to write and what verification finds left:
//! a row that it would change is a row that is wrong.
//!
//! A lock's target lines are found by the source line it names, and counted, as in `revise`.

use counterfoil_db::{Query, Read, Text, Tx, sql, transact};
use counterfoil_task::{Progress, Run, WorkError};

use super::batch::Batch;
use crate::version::VersionContext;

/// Walks all released source locks again: after a crash, or in a re-entry.
pub(super) async fn sweep(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<(), WorkError> {
    let mut after = 0;
    loop {
        run.checkpoint()?;
        match transact!(one_batch(run, context, batch, after))? {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

async fn one_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = end_of_batch(&mut tx, context, batch, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    clean_range(&mut tx, context, after, last).await?;
    batch.renew(&mut tx, Progress::none()).await?;
    tx.commit("lock_activation.clean_up").await?;
    Ok(Some(last))
}

async fn end_of_batch(
    tx: &mut Tx,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM fi_resident_income_payment_bill_lock
           WHERE payment_order_id = :order AND data_version = :source_data
             AND submit_round = :source_round AND lock_status = 'RELEASED'
             AND release_reason = 'REVISE_REMOVED' AND id > :after
           ORDER BY id LIMIT :size) AS batch",
        order = context.order.0,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        after = after,
        size = batch.size,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

/// Cleans the three records of each lock released in `(after, last]`.
pub(super) async fn clean_range(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<(), WorkError> {
    for text in [DIFFERENCE, SMALL_BILL, PARTNER_BILL] {
        let update = bound(sql!(text, now = tx.now()), context, after, last);
        tx.execute(update).await?;
    }
    Ok(())
}

/// The records that a clean-up would still change, at most `limit`, as `(table, record id)`.
pub(super) async fn left(
    tx: &mut Tx,
    context: &VersionContext,
    limit: u32,
) -> Result<Vec<(&'static str, i64)>, WorkError> {
    let mut found = Vec::new();
    for (table, text) in
        [("ledger", LEFT_DIFFERENCE), ("small bill", LEFT_SMALL), ("partner bill", LEFT_PARTNER)]
    {
        let query = bound(sql!(text, limit = limit), context, 0, i64::MAX);
        for row in tx.rows(query).await? {
            found.push((table, row.int("id")?));
        }
    }
    Ok(found)
}

fn bound(query: Query, context: &VersionContext, after: i64, last: i64) -> Query {
    query
        .bind("order", context.order.0)
        .bind("source_data", context.source_data.0)
        .bind("source_round", context.source_round.0)
        .bind("target_data", context.target_data.0)
        .bind("after", after)
        .bind("last", last)
}

/// Locks of the source version and round released with REVISE_REMOVED, whose bill has no PAYABLE
/// line in the target version, and neither an ACTIVE lock nor, since the release, a lock or a line
/// of another order. A bill is a station and a month; rows written without them are no bill.
macro_rules! released_lock {
    () => {
        "k.payment_order_id = :order AND k.data_version = :source_data
           AND k.submit_round = :source_round AND k.lock_status = 'RELEASED'
           AND k.release_reason = 'REVISE_REMOVED' AND k.id > :after AND k.id <= :last
           AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill t
             WHERE t.source_order_bill_id = k.order_bill_id AND t.payment_order_id + 0 = :order
               AND t.data_version + 0 = :target_data
               AND t.line_type = 10 AND t.deleted = 0) = 0
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock a
             WHERE a.station_id = k.station_id AND a.bill_yearmonth = k.bill_yearmonth
               AND k.station_id <> ''
               AND (a.lock_status = 'ACTIVE'
                    OR (a.payment_order_id <> :order AND a.create_time >= k.release_time)))
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order_bill o
             WHERE o.station_id = k.station_id AND o.bill_yearmonth = k.bill_yearmonth
               AND k.station_id <> ''
               AND o.payment_order_id <> :order AND o.create_time >= k.release_time)"
    };
}

/// The same of the record itself, whatever bill its locks name.
macro_rules! record_is_free {
    ($id:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock h
               WHERE h.",
            $id,
            " = r.id
                 AND (h.lock_status = 'ACTIVE'
                      OR (h.payment_order_id <> :order AND h.create_time >= k.release_time)))"
        )
    };
}

/// The record's references are empty or ours.
macro_rules! reference_is_ours {
    () => {
        "(r.locked_payment_order_id IS NULL OR r.locked_payment_order_id = :order)
           AND (r.locked_order_bill_id IS NULL OR r.locked_order_bill_id = k.order_bill_id)"
    };
}

/// The target version's UNQUALIFIED line of the same bill, if it has one.
macro_rules! unqualified_line {
    () => {
        "LEFT JOIN fi_resident_income_payment_order_bill u
           ON u.source_order_bill_id = k.order_bill_id AND u.payment_order_id + 0 = :order
          AND u.data_version + 0 = :target_data AND u.line_type = 20 AND u.deleted = 0"
    };
}

macro_rules! restored_status {
    () => {
        "CASE WHEN u.pre_rent = 0 THEN 10 ELSE 20 END"
    };
}

/// The four reasons a partner may see.
macro_rules! visible_reason {
    () => {
        "CASE WHEN u.unqualified_reason IN ('农户租金异常', '拟付租金校验不通过',
              '农户租金异常,拟付租金校验不通过', '用户手动选到不合格')
           THEN u.unqualified_reason ELSE NULL END"
    };
}

macro_rules! visible_flag {
    () => {
        concat!("CASE WHEN ", visible_reason!(), " IS NULL THEN 0 ELSE 1 END")
    };
}

macro_rules! query_status {
    () => {
        "CASE WHEN u.id IS NULL THEN r.partner_query_status ELSE 10 END"
    };
}

macro_rules! differs {
    () => {
        concat!(
            "(r.payment_status <> ",
            restored_status!(),
            " OR r.locked_payment_order_id IS NOT NULL OR r.locked_order_bill_id IS NOT NULL)"
        )
    };
}

macro_rules! differs_with_reason {
    () => {
        concat!(
            "(r.payment_status <> ",
            restored_status!(),
            " OR r.locked_payment_order_id IS NOT NULL OR r.locked_order_bill_id IS NOT NULL
              OR r.partner_query_status <> ",
            query_status!(),
            " OR r.unqualified_flag <> ",
            visible_flag!(),
            " OR COALESCE(r.unqualified_reason, '') <> COALESCE(",
            visible_reason!(),
            ", ''))"
        )
    };
}

/// `$record` is the record's table, `$id` the lock's column that names it.
///
/// MariaDB is told to begin with the locks: its statistics are a sample, and by some samples it
/// read all records first.
macro_rules! left {
    ($record:literal, $id:literal, $differs:expr) => {
        Text::Forked {
            standard: left!(@ "JOIN ", $record, " r ", $id, $differs),
            mariadb: left!(
                @ "STRAIGHT_JOIN ", $record, " r FORCE INDEX (PRIMARY) ", $id, $differs
            ),
        }
    };
    (@ $join:literal, $record:literal, $alias:literal, $id:literal, $differs:expr) => {
        concat!(
            "SELECT r.id AS id FROM fi_resident_income_payment_bill_lock k ",
            $join,
            $record,
            $alias,
            "ON r.id = k.",
            $id,
            " AND r.deleted = 0 ",
            unqualified_line!(),
            " WHERE ",
            released_lock!(),
            " AND ",
            record_is_free!($id),
            " AND ",
            reference_is_ours!(),
            " AND ",
            $differs,
            " ORDER BY k.id LIMIT :limit"
        )
    };
}

/// The clean-up of one table: `UPDATE … FROM` and, for MariaDB, `UPDATE … JOIN` in the order of
/// `left`.
macro_rules! clean {
    ($record:literal, $id:literal, $standard_sets:expr, $mariadb_sets:expr, $differs:expr) => {
        Text::Forked {
            standard: concat!(
                "UPDATE ",
                $record,
                " AS r SET ",
                $standard_sets,
                "locked_payment_order_id = NULL, locked_order_bill_id = NULL,
                 payment_status_update_time = :now, update_time = :now
                 FROM fi_resident_income_payment_bill_lock k ",
                unqualified_line!(),
                " WHERE r.id = k.",
                $id,
                " AND r.deleted = 0 AND ",
                released_lock!(),
                " AND ",
                record_is_free!($id),
                " AND ",
                reference_is_ours!(),
                " AND ",
                $differs
            ),
            mariadb: concat!(
                "UPDATE fi_resident_income_payment_bill_lock k STRAIGHT_JOIN ",
                $record,
                " r FORCE INDEX (PRIMARY) ON r.id = k.",
                $id,
                " AND r.deleted = 0 ",
                unqualified_line!(),
                " SET ",
                $mariadb_sets,
                "r.locked_payment_order_id = NULL, r.locked_order_bill_id = NULL,
                 r.payment_status_update_time = :now, r.update_time = :now WHERE ",
                released_lock!(),
                " AND ",
                record_is_free!($id),
                " AND ",
                reference_is_ours!(),
                " AND ",
                $differs
            ),
        }
    };
}

macro_rules! status_set {
    ($prefix:literal) => {
        concat!($prefix, "payment_status = ", restored_status!(), ", ")
    };
}

macro_rules! reason_sets {
    ($prefix:literal) => {
        concat!(
            status_set!($prefix),
            $prefix,
            "partner_query_status = ",
            query_status!(),
            ", ",
            $prefix,
            "unqualified_flag = ",
            visible_flag!(),
            ", ",
            $prefix,
            "unqualified_reason = ",
            visible_reason!(),
            ", "
        )
    };
}

const DIFFERENCE: Text = clean!(
    "fi_monthly_income_difference",
    "diff_id",
    reason_sets!(""),
    reason_sets!("r."),
    differs_with_reason!()
);
const SMALL_BILL: Text =
    clean!("fi_customer_bill", "small_bill_id", status_set!(""), status_set!("r."), differs!());
const PARTNER_BILL: Text = clean!(
    "fi_customer_bill_partner",
    "partner_bill_id",
    reason_sets!(""),
    reason_sets!("r."),
    differs_with_reason!()
);

const LEFT_DIFFERENCE: Text =
    left!("fi_monthly_income_difference", "diff_id", differs_with_reason!());
const LEFT_SMALL: Text = left!("fi_customer_bill", "small_bill_id", differs!());
const LEFT_PARTNER: Text =
    left!("fi_customer_bill_partner", "partner_bill_id", differs_with_reason!());
