//! The formal lines of one order version, by id.

use counterfoil_db::{Read, Result, Row, sql};
use counterfoil_protocol::{DataVersion, LineId, OrderId};
use serde::Serialize;

use super::names::{line_status, line_type};
use super::page;
use super::shown::{Money, masked};
use crate::PaymentError;

/// Which lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineQuery {
    /// Of this data version; the published one, or the newest before any, when not named.
    pub data_version: Option<DataVersion>,
    /// Only after this line: the last one of the page before.
    pub after: Option<LineId>,
    /// Rows at most.
    pub limit: Option<u32>,
}

/// A formal line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its id.
    pub order_bill_id: LineId,
    /// PAYABLE or UNQUALIFIED.
    pub line_type: &'static str,
    /// Its status.
    pub line_status: &'static str,
    /// The station.
    pub station_id: String,
    /// The month.
    pub bill_yearmonth: String,
    /// What is to be paid.
    pub pay_amount: Option<Money>,
    /// The intended rent.
    pub pre_rent: Option<Money>,
    /// Why it is unqualified.
    pub unqualified_reason: Option<String>,
    /// The line of the version before that it comes from.
    pub source_order_bill_id: Option<LineId>,
    /// Who is paid.
    pub payee_name: Option<String>,
    /// To which account, masked.
    pub payee_account: Option<String>,
    /// At which bank.
    pub payee_bank: Option<String>,
    /// The state of its lock: RESERVED or ACTIVE, if it has one.
    pub lock_status: Option<String>,
}

/// A page of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinesPage {
    /// The order.
    pub payment_order_id: OrderId,
    /// The data version.
    pub data_version: DataVersion,
    /// The lines, by id.
    pub lines: Vec<Line>,
    /// Where the next page begins; `None` = this was the last.
    pub next_after: Option<LineId>,
}

/// One page of the lines of a version.
///
/// # Errors
/// Refuses a data version that the order does not have.
pub async fn lines(
    from: &impl Read,
    order: OrderId,
    query: &LineQuery,
) -> Result<LinesPage, PaymentError> {
    let data_version = match query.data_version {
        Some(named) => {
            check_version(from, order, named, "dataVersion").await?;
            named
        }
        None => usual_version(from, order).await?,
    };
    let limit = page(query.limit);
    let select = sql!(
        "SELECT l.id, l.line_type, l.line_status, l.station_id, l.bill_yearmonth, l.pay_amount,
                l.pre_rent, l.unqualified_reason, l.source_order_bill_id, l.payee_name,
                l.payee_account, l.payee_bank,
                (SELECT MIN(k.lock_status) FROM fi_resident_income_payment_bill_lock k
                  WHERE k.order_bill_id = l.id AND k.lock_status <> 'RELEASED') AS lock_status
         FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.deleted = 0
           AND l.id > :after
         ORDER BY l.id LIMIT :limit",
        order = order.0,
        data = data_version.0,
        after = query.after.map_or(0, |line| line.0),
        limit = limit + 1,
    );
    let rows = from.rows(select).await?;
    let mut lines = rows.iter().map(read).collect::<Result<Vec<Line>>>()?;
    let has_more = lines.len() > limit as usize;
    lines.truncate(limit as usize);
    let next_after = lines.last().filter(|_| has_more).map(|line| line.order_bill_id);
    Ok(LinesPage { payment_order_id: order, data_version, lines, next_after })
}

fn read(row: &Row) -> Result<Line> {
    Ok(Line {
        order_bill_id: LineId(row.int("id")?),
        line_type: line_type(row.int("line_type")?),
        line_status: line_status(row.int("line_status")?),
        station_id: row.text("station_id")?,
        bill_yearmonth: row.text("bill_yearmonth")?,
        pay_amount: row.maybe_int("pay_amount")?.map(Money::from),
        pre_rent: row.maybe_int("pre_rent")?.map(Money::from),
        unqualified_reason: row.maybe_text("unqualified_reason")?,
        source_order_bill_id: row.maybe_int("source_order_bill_id")?.map(LineId),
        payee_name: row.maybe_text("payee_name")?,
        payee_account: row.maybe_text("payee_account")?.map(|account| masked(&account)),
        payee_bank: row.maybe_text("payee_bank")?,
        lock_status: row.maybe_text("lock_status")?,
    })
}

/// Proves that the order has a version record of this data version; `field` named it.
pub(super) async fn check_version(
    from: &impl Read,
    order: OrderId,
    named: DataVersion,
    field: &'static str,
) -> Result<(), PaymentError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_order_version
         WHERE payment_order_id = :order AND target_data_version = :data AND deleted = 0",
        order = order.0,
        data = named.0,
    );
    if from.row(query).await?.is_some() {
        return Ok(());
    }
    let newest = newest_version(from, order).await?;
    let why = match newest.0 {
        0 => format!("order {order} has no data version yet"),
        n => format!("order {order} has no data version {named}; its newest is {n}"),
    };
    Err(PaymentError::invalid(field, why))
}

/// The published version, or before any was published the newest.
async fn usual_version(from: &impl Read, order: OrderId) -> Result<DataVersion, PaymentError> {
    let query = sql!(
        "SELECT current_publish_version AS pointer FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0",
        order = order.0,
    );
    let row = from.row(query).await?.ok_or(PaymentError::OrderNotFound(order))?;
    match row.int("pointer")? {
        0 => newest_version(from, order).await,
        pointer => Ok(DataVersion(pointer)),
    }
}

async fn newest_version(from: &impl Read, order: OrderId) -> Result<DataVersion, PaymentError> {
    let query = sql!(
        "SELECT MAX(target_data_version) AS newest
         FROM fi_resident_income_payment_order_version
         WHERE payment_order_id = :order AND deleted = 0",
        order = order.0,
    );
    Ok(DataVersion(from.count(query).await?))
}
