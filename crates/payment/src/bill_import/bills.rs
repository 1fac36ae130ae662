//! Importing a bill file.

use std::collections::HashSet;

use counterfoil_db::{Db, Read, Tx, sql, transact};

use super::bill_plan::{BillPlan, Step, decide};
use super::bill_row::{BillRow, column};
use super::gather::{Gathered, Refusals, gather};
use super::turn::take_turn;
use super::{
    ImportOptions, Imported, MAX_STARTS, ROWS_A_CHUNK, SheetRow, Unread, bill_facts, bill_write,
};
use crate::PaymentError;

/// Imports a bill file in one transaction: ledger rows, small bills, partner bills and customer
/// accounts.
///
/// A bill is known by its station and month. Stored just so already: nothing changes. Stored
/// otherwise: it is brought into line, unless an order holds it, which refuses the row.
///
/// # Errors
/// [`PaymentError::RowsRefused`] with every fault by line and column; then nothing was written.
/// [`PaymentError::Conflict`] when orders kept taking the file's bills while it was imported.
pub async fn import_bills(
    db: &Db,
    sheet: impl Iterator<Item = Result<SheetRow, Unread>> + Send,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let mut gathered = gather::<BillRow>(sheet)?;
    gathered.rows.sort_by(|a, b| (&a.month, &a.station).cmp(&(&b.month, &b.station)));
    refuse_contradicting_accounts(&mut gathered);
    for _ in 1..MAX_STARTS {
        match transact!(attempt(db, &gathered, options)) {
            // A bill was taken into an order: its row is now refused by line.
            Err(PaymentError::Conflict(_)) => {}
            settled => return settled,
        }
    }
    transact!(attempt(db, &gathered, options))
}

/// Two rows of a file that call the same account by another name: neither is the right one.
fn refuse_contradicting_accounts(gathered: &mut Gathered<BillRow>) {
    let Gathered { rows, refusals, header } = gathered;
    let mut payees: Vec<_> =
        rows.iter().filter_map(|row| Some((&row.station, row.payee.as_ref()?, row.line))).collect();
    payees.sort_by_key(|(station, payee, line)| (*station, &payee.account_no, *line));
    for pair in payees.windows(2) {
        let ((station, old, first), (next, new, line)) = (pair[0], pair[1]);
        if station != next || old.account_no != new.account_no {
            continue;
        }
        let texts =
            [(column::HOLDER, &old.holder, &new.holder), (column::BANK, &old.bank, &new.bank)];
        for (column, _, _) in texts.iter().filter(|(_, old, new)| old != new) {
            let why = |other| format!("differs from line {other} for the same account");
            refusals.refuse(header, first, *column, why(line));
            refusals.refuse(header, line, *column, why(first));
        }
    }
}

async fn attempt(
    db: &Db,
    gathered: &Gathered<BillRow>,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let mut tx = db.begin().await?;
    take_turn(&mut tx).await?;
    let mut refusals = gathered.refusals.clone();
    check_references(&tx, gathered, &mut refusals).await?;
    let plans = plan(&tx, gathered, &mut refusals).await?;
    let refusals = refusals.allow(options)?;
    let imported = summary(&plans, refusals);
    let partners: HashSet<i64> = gathered.rows.iter().map(|row| row.partner).collect();
    let partners: Vec<i64> = partners.into_iter().collect();
    let partner_accounts = bill_write::partner_accounts(&tx, &partners).await?;
    let mut at = 0;
    for rows in chunks(&gathered.rows) {
        let planned = &plans[at..at + rows.len()];
        at += rows.len();
        // What is refused keeps what is stored: its plan is empty, but it must not make accounts.
        let (rows, planned): (Vec<BillRow>, Vec<BillPlan>) = rows
            .iter()
            .zip(planned)
            .filter_map(|(row, plan)| Some((row.clone(), (*plan)?)))
            .filter(|(_, plan)| !plan.is_empty())
            .unzip();
        bill_write::write(&mut tx, &rows, &planned, &partner_accounts).await?;
    }
    tx.commit("import.bills").await?;
    Ok(imported)
}

/// The rows, which are in order of month, in chunks of one month each.
fn chunks(rows: &[BillRow]) -> impl Iterator<Item = &[BillRow]> {
    rows.chunk_by(|a, b| a.month == b.month).flat_map(|month| month.chunks(ROWS_A_CHUNK))
}

/// Months must be open. Companies and partners may arrive later: rows come in any order, and S05
/// says whose managers are missing.
async fn check_references(
    tx: &Tx,
    gathered: &Gathered<BillRow>,
    refusals: &mut Refusals,
) -> Result<(), PaymentError> {
    let closed = sql!("SELECT bill_yearmonth FROM month_close WHERE deleted = 0");
    let closed = tx.rows(closed).await?;
    let closed = closed.iter().map(|row| row.text("bill_yearmonth"));
    let closed: HashSet<String> = closed.collect::<Result<_, _>>()?;
    for row in &gathered.rows {
        if closed.contains(row.month.as_str()) {
            let why = format!("{} is closed", row.month);
            refusals.refuse(&gathered.header, row.line, column::MONTH, why);
        }
    }
    Ok(())
}

/// What each row does, in the order of the rows; none for those that are refused.
async fn plan(
    tx: &Tx,
    gathered: &Gathered<BillRow>,
    refusals: &mut Refusals,
) -> Result<Vec<Option<BillPlan>>, PaymentError> {
    let mut plans = Vec::with_capacity(gathered.rows.len());
    for rows in chunks(&gathered.rows) {
        let stored = bill_facts::read(tx, rows).await?;
        for row in rows {
            let decided = match stored.get(&row.station) {
                Some(stored) => decide(row, stored),
                None => decide(row, &Default::default()),
            };
            let plan = decided.map_err(|faults| {
                for (column, why) in faults {
                    refusals.refuse(&gathered.header, row.line, column, why);
                }
            });
            plans.push(plan.ok().filter(|_| !refusals.holds(row)));
        }
    }
    Ok(plans)
}

fn summary(plans: &[Option<BillPlan>], refusals: Refusals) -> Imported {
    let mut imported = Imported {
        refused: refusals.lines.len() as u64,
        faults: refusals.faults,
        ..Imported::default()
    };
    for plan in plans.iter().flatten() {
        let counter = match plan {
            plan if plan.is_empty() => &mut imported.unchanged,
            BillPlan { ledger: Step::Insert, .. } => &mut imported.created,
            _ => &mut imported.updated,
        };
        *counter += 1;
    }
    imported
}
