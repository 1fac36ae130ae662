//! One sub-batch of scopes: guard them, lock their records, read the facts, decide, write what
//! differs. In the caller's transaction, with the same few statements however many scopes.

use std::collections::{BTreeSet, HashMap};

use counterfoil_db::{Bind, Query, Read, Result, Row, Text, Tx};
use counterfoil_protocol::{BillMonth, Fen, LineId, OrderId, lock_key};

use super::record::{self, Rents, Table};
use super::scope::Scope;
use crate::row_batch::insert_rows;
use crate::status_decision::{Conclusion, Decision, Facts, Holder, HolderState, decide};

/// Scopes of one transaction at most.
pub(crate) const SUB_BATCH: u32 = 250;

/// Which rows name the scopes, by [`Scope::id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// Formal lines.
    Lines,
    /// Bill locks.
    Locks,
}

/// Brings the three tables into line with the facts of at most [`SUB_BATCH`] scopes. Answers how
/// many rows were written. `holder` is who the guards say holds them.
///
/// The order of locks is the same for everybody: guards by station and month, then ledger, small
/// bills and partner bills by id. Facts are read after the locks: S04 takes no guard, and what it
/// has committed before it let go of a record is seen.
pub(crate) async fn refresh(
    tx: &mut Tx,
    holder: &str,
    named_by: NamedBy,
    scopes: &[Scope],
) -> Result<u64> {
    if scopes.is_empty() {
        return Ok(0);
    }
    guard(tx, holder, scopes).await?;
    let mut locked = Vec::with_capacity(Table::ALL.len());
    for table in Table::ALL {
        locked.push(record::lock(tx, table, scopes).await?);
    }
    let rents: Vec<Rents> = scopes.iter().map(|scope| locked[0].rents_of(scope)).collect();
    let decisions = decisions(tx, named_by, scopes, &rents).await?;
    let mut written = 0;
    for locked in locked {
        written += record::write(tx, locked, scopes, &decisions).await?;
    }
    Ok(written)
}

/// A guard for each scope is there, ours, and its version one higher.
async fn guard(tx: &mut Tx, holder: &str, scopes: &[Scope]) -> Result<()> {
    let sorted: BTreeSet<(&str, &str)> =
        scopes.iter().map(|scope| (scope.station.as_str(), scope.month.as_str())).collect();
    let now = tx.now();
    let row = |(station, month): (&str, &str)| {
        vec![station.bind(), month.bind(), holder.bind(), 1_i64.bind(), now.bind(), now.bind()]
    };
    insert_rows(tx, GUARD, sorted.into_iter().map(row).collect()).await?;
    Ok(())
}

const GUARD: Text = Text::Forked {
    standard: "INSERT INTO fi_resident_income_payment_status_refresh_scope_guard AS g
       (station_id, bill_yearmonth, holder, guard_version, create_time, update_time)
     VALUES :rows
     ON CONFLICT (station_id, bill_yearmonth) DO UPDATE
     SET holder = excluded.holder, guard_version = g.guard_version + 1,
         update_time = excluded.update_time",
    mariadb: "INSERT INTO fi_resident_income_payment_status_refresh_scope_guard
       (station_id, bill_yearmonth, holder, guard_version, create_time, update_time)
     VALUES :rows
     ON DUPLICATE KEY UPDATE holder = VALUES(holder), guard_version = guard_version + 1,
       update_time = VALUES(update_time)",
};

/// The decisions of these scopes, in their order.
async fn decisions(
    tx: &Tx,
    named_by: NamedBy,
    scopes: &[Scope],
    rents: &[Rents],
) -> Result<Vec<Decision>> {
    let holders = holders(tx, scopes).await?;
    let mut histories = histories(tx, named_by, scopes).await?;
    let mut decisions = Vec::with_capacity(scopes.len());
    for (scope, rents) in scopes.iter().zip(rents) {
        let history = histories.remove(&scope.id).unwrap_or_default();
        decisions.push(decide(&Facts {
            paid: Fen(history.paid),
            had_result: history.had_result,
            actual_rent: rents.actual,
            contract_rent: rents.contract,
            pre_rent: rents.intended,
            holder: holders.get(&key_of(scope)).copied(),
            conclusion: history.conclusion,
        }));
    }
    Ok(decisions)
}

fn key_of(scope: &Scope) -> String {
    lock_key(&scope.station, &BillMonth::stored(scope.month.as_str()))
}

/// The ACTIVE locks on these scopes, by lock key: one bill, one holder.
async fn holders(tx: &Tx, scopes: &[Scope]) -> Result<HashMap<String, Holder>> {
    let query = Query::new(
        "SELECT k.lock_key, k.payment_order_id, k.order_bill_id, o.status
         FROM fi_resident_income_payment_bill_lock k
         LEFT JOIN fi_resident_income_payment_order o
           ON o.id = k.payment_order_id AND o.deleted = 0
         WHERE k.lock_key IN :keys AND k.lock_status = 'ACTIVE' AND k.deleted = 0",
    )
    .bind_list("keys", scopes.iter().map(key_of));
    let mut holders = HashMap::new();
    for row in tx.rows(query).await? {
        let holder = Holder {
            order: OrderId(row.int("payment_order_id")?),
            line: LineId(row.int("order_bill_id")?),
            state: HolderState::of(row.maybe_int("status")?),
        };
        holders.insert(row.text("lock_key")?, holder);
    }
    Ok(holders)
}

/// What lines of whatever order and version have come to of one bill.
#[derive(Debug, Default)]
struct History {
    paid: i64,
    had_result: bool,
    conclusion: Option<Conclusion>,
}

/// Lines of these scopes that are PAID, PAY_FAILED, or UNQUALIFIED_EFFECTIVE in a version whose
/// progress was finalized: what was decided last comes last.
macro_rules! lines_of {
    ($named_by:literal) => {
        concat!(
            "SELECT * FROM (
               SELECT s.id AS scope_id, l.id, l.line_status, l.pay_amount, l.pre_rent,
                 l.unqualified_reason,
                 (SELECT MAX(p.finalize_time)
                   FROM fi_resident_income_payment_review_callback_progress p
                   WHERE p.payment_order_id = l.payment_order_id
                     AND p.data_version = l.data_version AND p.deleted = 0) AS finalized
               FROM ",
            $named_by,
            " s JOIN fi_resident_income_payment_order_bill l
                 ON l.station_id = s.station_id AND l.bill_yearmonth = s.bill_yearmonth
                AND l.line_status IN (30, 40, 50) AND l.deleted = 0
               WHERE s.id IN :ids) AS h
             WHERE h.line_status <> 50 OR h.finalized IS NOT NULL
             ORDER BY h.finalized, h.id"
        )
    };
}

async fn histories(tx: &Tx, named_by: NamedBy, scopes: &[Scope]) -> Result<HashMap<i64, History>> {
    let query = Query::new(match named_by {
        NamedBy::Lines => lines_of!("fi_resident_income_payment_order_bill"),
        NamedBy::Locks => lines_of!("fi_resident_income_payment_bill_lock"),
    })
    .bind_list("ids", scopes.iter().map(|scope| scope.id));
    let mut histories: HashMap<i64, History> = HashMap::new();
    for row in tx.rows(query).await? {
        let history = histories.entry(row.int("scope_id")?).or_default();
        note(history, &row)?;
    }
    Ok(histories)
}

fn note(history: &mut History, row: &Row) -> Result<()> {
    match row.int("line_status")? {
        50 => {
            history.conclusion = Some(Conclusion {
                line: LineId(row.int("id")?),
                pre_rent: row.maybe_int("pre_rent")?.map(Fen),
                reason: row.maybe_text("unqualified_reason")?,
            });
        }
        status => {
            history.had_result = true;
            if status == 30 {
                let amount = row.maybe_int("pay_amount")?.unwrap_or(0);
                history.paid = history.paid.saturating_add(amount);
            }
        }
    }
    Ok(())
}
