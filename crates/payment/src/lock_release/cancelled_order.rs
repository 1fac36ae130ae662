//! A cancelled order lets go of every bill it holds; the tables say of each what S12 decides; the
//! audit plan is withdrawn.

use std::collections::HashMap;

use counterfoil_db::{Db, Query, Read, Row, Tx, sql, transact};
use counterfoil_protocol::{Fen, LineId, OrderId, VersionId};
use counterfoil_task::{Run, Verdict, WorkError};

use super::Reason;
use crate::PaymentError;
use crate::status_decision::{self, Conclusion, Decision, Facts, Holder};

/// Locks a batch: three tables' rows are read and written with each.
const BATCH: u32 = 500;

/// Groups of locks a run walks; a next run walks what is left.
const MAX_GROUPS: u32 = 1000;

pub(super) async fn release(run: &Run<'_>, version: VersionId) -> Result<OrderId, WorkError> {
    let order = order_of(run, version).await?;
    for group in groups(run.db(), order).await? {
        let mut after = 0;
        loop {
            run.checkpoint()?;
            match transact!(one_batch(run, order, &group, after))? {
                Some(last) => after = last,
                None => break,
            }
        }
    }
    Ok(order)
}

/// The order's locks of one version, round and status. Within a group the index is in the order
/// of the ids, so that a batch reads its own locks only; over the whole order each batch would
/// read all of them.
#[derive(Debug)]
struct Group {
    data_version: i64,
    round: i64,
    status: String,
}

async fn groups(db: &Db, order: OrderId) -> Result<Vec<Group>, WorkError> {
    let query = sql!(
        "SELECT DISTINCT data_version, submit_round, lock_status
         FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status IN ('RESERVED', 'ACTIVE')
         ORDER BY data_version, submit_round, lock_status LIMIT :limit",
        order = order.0,
        limit = MAX_GROUPS,
    );
    let mut groups = Vec::new();
    for row in db.rows(query).await? {
        groups.push(Group {
            data_version: row.int("data_version")?,
            round: row.int("submit_round")?,
            status: row.text("lock_status")?,
        });
    }
    Ok(groups)
}

/// Proves that no lock is left and succeeds.
pub(super) async fn close(run: &Run<'_>, order: OrderId) -> Result<Verdict, WorkError> {
    transact!(try_close(run, order))
}

async fn try_close(run: &Run<'_>, order: OrderId) -> Result<Verdict, WorkError> {
    let tx = run.begin().await?;
    let held = sql!(
        "SELECT MIN(id) AS id FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status IN ('RESERVED', 'ACTIVE')",
        order = order.0,
    );
    let lock = tx.count(held).await?;
    if lock != 0 {
        let message = format!("order {order} still holds lock {lock}");
        return Err(WorkError::failed("lock-release-incomplete", message));
    }
    tx.succeed("lock_release.cancelled").await
}

async fn order_of(run: &Run<'_>, version: VersionId) -> Result<OrderId, WorkError> {
    let query = sql!(
        "SELECT v.payment_order_id, o.status
         FROM fi_resident_income_payment_order_version v
         JOIN fi_resident_income_payment_order o ON o.id = v.payment_order_id
         WHERE v.id = :version AND v.deleted = 0 AND o.deleted = 0",
        version = version.0,
    );
    let row = run.db().row(query).await?.ok_or(PaymentError::VersionNotFound(version))?;
    let order = OrderId(row.int("payment_order_id")?);
    if row.int("status")? != 90 {
        let message = format!("order {order} is not cancelled; its locks stay");
        return Err(WorkError::failed("order-state", message));
    }
    Ok(order)
}

#[derive(Debug)]
struct Held {
    id: i64,
    diff: Option<i64>,
    small: Option<i64>,
    partner: Option<i64>,
}

async fn held(
    tx: &mut Tx,
    order: OrderId,
    group: &Group,
    after: i64,
) -> Result<Vec<Held>, WorkError> {
    let query = sql!(
        "SELECT id, diff_id, small_bill_id, partner_bill_id
         FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND lock_status = :status AND id > :after
         ORDER BY id LIMIT :size",
        order = order.0,
        data = group.data_version,
        round = group.round,
        status = group.status.as_str(),
        after = after,
        size = BATCH,
    );
    let mut locks = Vec::new();
    for row in tx.rows(query).await? {
        locks.push(Held {
            id: row.int("id")?,
            diff: row.maybe_int("diff_id")?,
            small: row.maybe_int("small_bill_id")?,
            partner: row.maybe_int("partner_bill_id")?,
        });
    }
    Ok(locks)
}

async fn one_batch(
    run: &Run<'_>,
    order: OrderId,
    group: &Group,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let locks = held(&mut tx, order, group, after).await?;
    let Some(last) = locks.last().map(|lock| lock.id) else {
        tx.rollback().await?;
        return Ok(None);
    };
    release_locks(&mut tx, &locks).await?;
    let decided = decide(&mut tx, &locks).await?;
    for table in TABLES {
        write(&mut tx, table, order, &locks, &decided).await?;
    }
    tx.commit("lock_release.cancelled_batch").await?;
    Ok(Some(last))
}

/// Guard: RESERVED or ACTIVE.
async fn release_locks(tx: &mut Tx, locks: &[Held]) -> Result<u64, WorkError> {
    let update = Query::new(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_scene = 'CANCELLED_RELEASE',
             release_reason = :reason, release_time = :now,
             lock_key = lock_key || ':RELEASED:' || id, update_time = :now
         WHERE id IN :ids AND lock_status IN ('RESERVED', 'ACTIVE')",
    )
    .bind("reason", Reason::OrderCancelled.as_str())
    .bind("now", tx.now())
    .bind_list("ids", locks.iter().map(|lock| lock.id));
    Ok(tx.execute(update).await?)
}

/// Facts of the bills of these locks, decided, by lock id.
async fn decide(tx: &mut Tx, locks: &[Held]) -> Result<HashMap<i64, Decision>, WorkError> {
    let ids = || locks.iter().map(|lock| lock.id);
    let facts = Query::new(
        "SELECT k.id, d.actual_rent, d.contract_rent, d.pre_rent,
           (SELECT CAST(COALESCE(SUM(l.pay_amount), 0) AS {bigint})
             FROM fi_resident_income_payment_order_bill l
             WHERE l.station_id = k.station_id AND l.bill_yearmonth = k.bill_yearmonth
               AND l.line_status = 30 AND l.deleted = 0) AS paid,
           (SELECT MAX(l.id) FROM fi_resident_income_payment_order_bill l
             WHERE l.station_id = k.station_id AND l.bill_yearmonth = k.bill_yearmonth
               AND l.line_status = 50 AND l.deleted = 0
               AND l.unqualified_effective_time IS NOT NULL) AS conclusion
         FROM fi_resident_income_payment_bill_lock k
         LEFT JOIN fi_monthly_income_difference d ON d.id = k.diff_id AND d.deleted = 0
         WHERE k.id IN :ids",
    )
    .bind_list("ids", ids());
    let rows = tx.rows(facts).await?;
    let concluded: Vec<i64> = rows
        .iter()
        .filter_map(|row| row.maybe_int("conclusion").transpose())
        .collect::<Result<_, _>>()?;
    let conclusions = conclusions(tx, &concluded).await?;
    let mut decided = HashMap::new();
    for row in &rows {
        let conclusion = row.maybe_int("conclusion")?.and_then(|id| conclusions.get(&id).cloned());
        decided.insert(row.int("id")?, status_decision::decide(&facts_of(row, conclusion)?));
    }
    Ok(decided)
}

fn facts_of(row: &Row, conclusion: Option<Conclusion>) -> Result<Facts, WorkError> {
    Ok(Facts {
        paid: Fen(row.int("paid")?),
        actual_rent: row.maybe_int("actual_rent")?.map(Fen),
        contract_rent: row.maybe_int("contract_rent")?.map(Fen),
        pre_rent: row.maybe_int("pre_rent")?.map(Fen),
        // The lock was released a statement ago, and its key can have no second holder.
        holder: Holder::Nobody,
        conclusion,
    })
}

async fn conclusions(tx: &mut Tx, lines: &[i64]) -> Result<HashMap<i64, Conclusion>, WorkError> {
    let query = Query::new(
        "SELECT id, pre_rent, unqualified_reason FROM fi_resident_income_payment_order_bill
         WHERE id IN :ids",
    )
    .bind_list("ids", lines.iter().copied());
    let mut found = HashMap::new();
    for row in tx.rows(query).await? {
        let line = LineId(row.int("id")?);
        let pre_rent = row.maybe_int("pre_rent")?.map(Fen);
        let reason = row.maybe_text("unqualified_reason")?;
        found.insert(line.0, Conclusion { line, pre_rent, reason });
    }
    Ok(found)
}

#[derive(Clone, Copy)]
struct Table {
    name: &'static str,
    record: fn(&Held) -> Option<i64>,
    /// Whether it has the columns a partner sees.
    partner_columns: bool,
    /// Whether it remembers the last unqualified line.
    last_unqualified: bool,
}

const TABLES: [Table; 3] = [
    Table {
        name: "fi_monthly_income_difference",
        record: |lock| lock.diff,
        partner_columns: true,
        last_unqualified: false,
    },
    Table {
        name: "fi_customer_bill",
        record: |lock| lock.small,
        partner_columns: false,
        last_unqualified: false,
    },
    Table {
        name: "fi_customer_bill_partner",
        record: |lock| lock.partner,
        partner_columns: true,
        last_unqualified: true,
    },
];

/// One statement a distinct decision. Guard: the record's references are empty or this order's.
async fn write(
    tx: &mut Tx,
    table: Table,
    order: OrderId,
    locks: &[Held],
    decided: &HashMap<i64, Decision>,
) -> Result<(), WorkError> {
    let mut groups: HashMap<&Decision, Vec<i64>> = HashMap::new();
    for lock in locks {
        if let (Some(record), Some(decision)) = ((table.record)(lock), decided.get(&lock.id)) {
            groups.entry(decision).or_default().push(record);
        }
    }
    for (decision, records) in groups {
        let update = statement(table, decision)
            .bind("order", order.0)
            .bind("now", tx.now())
            .bind_list("records", records);
        tx.execute(update).await?;
    }
    Ok(())
}

fn statement(table: Table, decision: &Decision) -> Query {
    let mut sets = String::new();
    if table.partner_columns && decision.partner_query_status.is_some() {
        sets.push_str("partner_query_status = :query_status, ");
    }
    if table.partner_columns && decision.reason.is_some() {
        sets.push_str("unqualified_flag = :flag, unqualified_reason = :reason, ");
    }
    if table.last_unqualified && decision.last_unqualified.is_some() {
        sets.push_str("last_unqualified_order_bill_id = :line, ");
    }
    let reason = decision.reason.clone().flatten();
    Query::built(format!(
        "UPDATE {}
         SET {sets}payment_status = :status, locked_payment_order_id = NULL,
             locked_order_bill_id = NULL, payment_status_update_time = :now, update_time = :now
         WHERE id IN :records AND deleted = 0
           AND (locked_payment_order_id IS NULL OR locked_payment_order_id = :order)",
        table.name
    ))
    .bind("status", decision.payment_status.code())
    .bind("query_status", decision.partner_query_status)
    .bind("flag", reason.is_some())
    .bind("reason", reason)
    .bind("line", decision.last_unqualified.map(|line| line.0))
}
