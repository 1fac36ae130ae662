//! The rows of the three business tables: locked and read, compared with what was decided, and
//! written where they differ.

use std::collections::BTreeMap;

use counterfoil_db::{Bind, Query, Read, Result, Row, Tx, Value};
use counterfoil_protocol::Fen;

use super::record_update::update;
use super::scope::Scope;
use crate::status_decision::Decision;

/// One of the three business tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Ledger,
    Small,
    Partner,
}

impl Table {
    /// In the order in which S04 writes them, too.
    pub(super) const ALL: [Table; 3] = [Table::Ledger, Table::Small, Table::Partner];

    /// The record that a scope names. A NULL id is no row.
    fn id_of(self, scope: &Scope) -> Option<i64> {
        match self {
            Table::Ledger => scope.diff,
            Table::Small => scope.small,
            Table::Partner => scope.partner,
        }
    }

    /// Locks rows by id and reads them: FOR UPDATE sees what was committed last.
    fn lock(self) -> &'static str {
        match self {
            Table::Ledger => {
                "SELECT id, payment_status, paid_amount, cumulative_paid_amount,
                   locked_payment_order_id, locked_order_bill_id, partner_query_status,
                   unqualified_flag, unqualified_reason, actual_rent,
                   contract_rent, pre_rent
                 FROM fi_monthly_income_difference
                 WHERE id IN :ids AND deleted = 0 ORDER BY id {for_update}"
            }
            Table::Small => {
                "SELECT id, payment_status, paid_amount, cumulative_paid_amount,
                   locked_payment_order_id, locked_order_bill_id
                 FROM fi_customer_bill
                 WHERE id IN :ids AND deleted = 0 ORDER BY id {for_update}"
            }
            Table::Partner => {
                "SELECT id, payment_status, paid_amount, cumulative_paid_amount,
                   locked_payment_order_id, locked_order_bill_id, partner_query_status,
                   unqualified_flag, unqualified_reason, last_unqualified_order_bill_id
                 FROM fi_customer_bill_partner
                 WHERE id IN :ids AND deleted = 0 ORDER BY id {for_update}"
            }
        }
    }
}

/// The columns that a partner sees.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    query_status: i64,
    flag: i64,
    reason: Option<String>,
    /// Only partner bills have it.
    last_unqualified: Option<i64>,
}

/// What a refresh may write of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    payment_status: i64,
    paid: i64,
    cumulative_paid: i64,
    order: Option<i64>,
    line: Option<i64>,
    /// Small bills have none.
    shown: Option<Shown>,
}

/// What a ledger row says of the rents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rents {
    pub(super) actual: Option<Fen>,
    pub(super) contract: Option<Fen>,
    pub(super) intended: Option<Fen>,
}

/// The locked rows of one table by id.
#[derive(Debug)]
pub(super) struct Locked {
    table: Table,
    rows: BTreeMap<i64, (Record, Rents)>,
}

impl Locked {
    /// The rents that the scope's ledger row says.
    pub(super) fn rents_of(&self, scope: &Scope) -> Rents {
        let id = self.table.id_of(scope);
        id.and_then(|id| self.rows.get(&id)).map(|(_, rents)| *rents).unwrap_or_default()
    }
}

/// Locks the records of these scopes in one table, by id, and reads them as they are now.
pub(super) async fn lock(tx: &mut Tx, table: Table, scopes: &[Scope]) -> Result<Locked> {
    let mut ids: Vec<i64> = scopes.iter().filter_map(|scope| table.id_of(scope)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut rows = BTreeMap::new();
    if ids.is_empty() {
        return Ok(Locked { table, rows });
    }
    for row in tx.rows(Query::new(table.lock()).bind_list("ids", ids)).await? {
        rows.insert(row.int("id")?, (record(table, &row)?, rents(table, &row)?));
    }
    Ok(Locked { table, rows })
}

fn record(table: Table, row: &Row) -> Result<Record> {
    let shown = match table {
        Table::Small => None,
        Table::Ledger | Table::Partner => Some(Shown {
            query_status: row.int("partner_query_status")?,
            flag: row.int("unqualified_flag")?,
            reason: row.maybe_text("unqualified_reason")?,
            last_unqualified: match table {
                Table::Partner => row.maybe_int("last_unqualified_order_bill_id")?,
                Table::Ledger | Table::Small => None,
            },
        }),
    };
    Ok(Record {
        payment_status: row.int("payment_status")?,
        paid: row.int("paid_amount")?,
        cumulative_paid: row.int("cumulative_paid_amount")?,
        order: row.maybe_int("locked_payment_order_id")?,
        line: row.maybe_int("locked_order_bill_id")?,
        shown,
    })
}

fn rents(table: Table, row: &Row) -> Result<Rents> {
    if table != Table::Ledger {
        return Ok(Rents::default());
    }
    Ok(Rents {
        actual: row.maybe_int("actual_rent")?.map(Fen),
        contract: row.maybe_int("contract_rent")?.map(Fen),
        intended: row.maybe_int("pre_rent")?.map(Fen),
    })
}

impl Record {
    /// The row once a decision stands in it. Deciding the same again changes nothing.
    fn after(&self, table: Table, decision: &Decision) -> Record {
        let paid = decision.paid.map(|paid| paid.0);
        let shown = self.shown.clone().map(|mut shown| {
            if let Some(status) = decision.partner_query_status {
                shown.query_status = status;
            }
            if let Some(reason) = &decision.reason {
                shown.flag = i64::from(reason.is_some());
                shown.reason.clone_from(reason);
            }
            if let (Table::Partner, Some(line)) = (table, decision.last_unqualified) {
                shown.last_unqualified = Some(line.0);
            }
            shown
        });
        Record {
            payment_status: decision.payment_status.code(),
            paid: paid.unwrap_or(self.paid),
            cumulative_paid: paid.unwrap_or(self.cumulative_paid),
            order: decision.reference.map(|(order, _)| order.0),
            line: decision.reference.map(|(_, line)| line.0),
            shown,
        }
    }

    /// As the statements want it; `before` says whether the payment status moves.
    fn values(self, id: i64, before: &Record) -> Vec<Value> {
        let moves = self.payment_status != before.payment_status;
        let shown = self.shown;
        let shown_or = |of: fn(&Shown) -> i64| shown.as_ref().map(of);
        vec![
            id.bind(),
            self.payment_status.bind(),
            moves.bind(),
            self.paid.bind(),
            self.cumulative_paid.bind(),
            self.order.bind(),
            self.line.bind(),
            shown_or(|shown| shown.query_status).bind(),
            shown_or(|shown| shown.flag).bind(),
            shown.as_ref().and_then(|shown| shown.reason.clone()).bind(),
            shown.as_ref().and_then(|shown| shown.last_unqualified).bind(),
        ]
    }
}

/// Writes the rows that differ from what was decided, in one statement. The rows are locked, so
/// that they are still as they were read. Answers how many were written.
pub(super) async fn write(
    tx: &mut Tx,
    locked: Locked,
    scopes: &[Scope],
    decisions: &[Decision],
) -> Result<u64> {
    let table = locked.table;
    let mut written = BTreeMap::new();
    for (scope, decision) in scopes.iter().zip(decisions) {
        let Some(id) = table.id_of(scope) else { continue };
        let Some((before, _)) = locked.rows.get(&id) else { continue };
        let after = before.after(table, decision);
        if after != *before {
            // Should two scopes name one record, the first line's decision stands.
            written.entry(id).or_insert_with(|| after.values(id, before));
        }
    }
    update(tx, table, written.into_values().collect()).await
}

#[cfg(test)]
mod tests;
