//! One bill: everything it went through, and whether it can be paid again.

use counterfoil_db::{Db, Read, Result, sql};
use counterfoil_protocol::{BillMonth, Fen, OrderId};
use serde::Serialize;

use super::bill_rows::{self as rows, BillLine, BillLock, BillNote, BillRecord};
use super::pay_again::{PayAgain, PayAgainFacts, PayAgainHolder, can_be_paid_again};
use crate::PaymentError;
use crate::session::qualify::{Rents, Tolerance};

/// One bill of one station and month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillView {
    /// The station.
    pub station_id: String,
    /// The month.
    pub bill_yearmonth: BillMonth,
    /// Whether it can be paid again, and why.
    pub can_be_paid_again: PayAgain,
    /// The difference ledger, the small bill and the partner bill, as far as there are.
    pub records: Vec<BillRecord>,
    /// Its line in every version of every order, newest first.
    pub lines: Vec<BillLine>,
    /// Every lock on it, newest first.
    pub locks: Vec<BillLock>,
    /// Incidents, repairs, cancellations and unfinished tasks of the orders it was in.
    pub notes: Vec<BillNote>,
    /// Whether older lines, locks or notes are not shown.
    pub truncated: bool,
}

impl BillView {
    /// The orders that its lines and locks are of, newest first.
    pub fn orders(&self) -> Vec<OrderId> {
        orders_of(&self.lines, &self.locks)
    }
}

/// Reads and judges one bill, as a selection with this tolerance would.
///
/// # Errors
/// [`PaymentError::BillNotFound`] when neither record, line nor lock knows it.
pub async fn bill(
    db: &Db,
    station: &str,
    month: &BillMonth,
    tolerance: &Tolerance,
) -> Result<BillView, PaymentError> {
    let records = rows::records(db, station, month).await?;
    let (lines, more_lines) = rows::lines(db, station, month).await?;
    let (locks, more_locks) = rows::locks(db, station, month).await?;
    if records.is_empty() && lines.is_empty() && locks.is_empty() {
        return Err(PaymentError::BillNotFound {
            station: station.to_owned(),
            month: month.clone(),
        });
    }
    let orders = orders_of(&lines, &locks);
    let (notes, more_notes) = rows::notes(db, &orders).await?;
    let mut facts = facts(db, station, month, &records, &lines).await?;
    facts.tolerance = *tolerance;
    Ok(BillView {
        station_id: station.to_owned(),
        bill_yearmonth: month.clone(),
        can_be_paid_again: can_be_paid_again(&facts),
        records,
        lines,
        locks,
        notes,
        truncated: more_lines || more_locks || more_notes,
    })
}

/// Orders whose notes are told.
const MAX_ORDERS: usize = 20;

fn orders_of(lines: &[BillLine], locks: &[BillLock]) -> Vec<OrderId> {
    let mut orders: Vec<OrderId> = lines.iter().map(|line| line.payment_order_id).collect();
    orders.extend(locks.iter().map(|lock| lock.payment_order_id));
    orders.sort_unstable_by(|a, b| b.cmp(a));
    orders.dedup();
    orders.truncate(MAX_ORDERS);
    orders
}

async fn facts(
    db: &Db,
    station: &str,
    month: &BillMonth,
    records: &[BillRecord],
    lines: &[BillLine],
) -> Result<PayAgainFacts> {
    let ledger = records.iter().find(|record| record.record == rows::LEDGER);
    let fen = |money: Option<super::Money>| money.map(|money| money.0);
    let recorded = records.iter().map(|record| record.cumulative_paid_amount.0);
    let paid_lines = paid_lines(db, station, month).await?;
    let flagged = records.iter().filter(|record| record.unqualified == Some(true));
    Ok(PayAgainFacts {
        holders: holders(db, station, month).await?,
        month_closed: is_closed(db, month).await?,
        has_ledger: ledger.is_some(),
        rents: Rents {
            contract: fen(ledger.and_then(|ledger| ledger.contract_rent)),
            actual: fen(ledger.and_then(|ledger| ledger.actual_rent)),
            pre_rent: fen(ledger.and_then(|ledger| ledger.pre_rent)),
            paid: recorded.max().unwrap_or_default().max(paid_lines),
        },
        tolerance: Tolerance::default(),
        records_say_paid: records
            .iter()
            .filter(|record| record.payment_status_code == 60)
            .map(|record| record.record)
            .collect(),
        referring: records
            .iter()
            .filter_map(|record| Some((record.record, record.locked_payment_order_id?)))
            .collect(),
        unqualified_reason: flagged
            .filter_map(|record| record.unqualified_reason.clone())
            .next()
            .or_else(|| last_conclusion(lines)),
        failed_in: lines
            .first()
            .filter(|line| line.line_status == "PAY_FAILED")
            .map(|line| line.payment_order_id),
    })
}

/// The reason of the newest line, if that one was concluded unqualified.
fn last_conclusion(lines: &[BillLine]) -> Option<String> {
    let newest = lines.iter().find(|line| line.is_published)?;
    let is_unqualified = newest.line_status == "UNQUALIFIED_EFFECTIVE";
    newest.unqualified_reason.clone().filter(|_| is_unqualified)
}

/// What the bill's PAID lines sum to.
async fn paid_lines(db: &Db, station: &str, month: &BillMonth) -> Result<Fen> {
    let query = sql!(
        "SELECT CAST(COALESCE(SUM(pay_amount), 0) AS {bigint}) AS paid
         FROM fi_resident_income_payment_order_bill
         WHERE station_id = :station AND bill_yearmonth = :month AND line_status = 30
           AND deleted = 0",
        station = station,
        month = month.as_str(),
    );
    Ok(Fen(db.count(query).await?))
}

async fn is_closed(db: &Db, month: &BillMonth) -> Result<bool> {
    let query = sql!(
        "SELECT id FROM month_close WHERE bill_yearmonth = :month AND deleted = 0",
        month = month.as_str(),
    );
    Ok(db.row(query).await?.is_some())
}

/// Locks that hold a bill; one is right, a second one breaks a rule and is told.
const MAX_HOLDERS: u32 = 5;

async fn holders(db: &Db, station: &str, month: &BillMonth) -> Result<Vec<PayAgainHolder>> {
    let query = sql!(
        "SELECT k.id, k.lock_status, k.payment_order_id, o.order_no, k.data_version, k.create_time
         FROM fi_resident_income_payment_bill_lock k
         LEFT JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id
         WHERE k.station_id = :station AND k.bill_yearmonth = :month
           AND k.lock_status IN ('RESERVED', 'ACTIVE')
         ORDER BY k.id LIMIT :limit",
        station = station,
        month = month.as_str(),
        limit = MAX_HOLDERS,
    );
    let mut holders = Vec::new();
    for row in db.rows(query).await? {
        holders.push(PayAgainHolder {
            lock: counterfoil_protocol::LockId(row.int("id")?),
            lock_status: row.text("lock_status")?,
            order: OrderId(row.int("payment_order_id")?),
            order_no: row.maybe_text("order_no")?,
            data_version: counterfoil_protocol::DataVersion(row.int("data_version")?),
            since: row.instant("create_time")?,
        });
    }
    Ok(holders)
}
