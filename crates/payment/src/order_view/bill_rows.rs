//! The rows that tell of one bill. Every read is bounded.

use counterfoil_db::{Db, Instant, Query, Read, Result, Row, sql};
use counterfoil_protocol::{BillMonth, DataVersion, LineId, LockId, OrderId, SubmitRound};
use counterfoil_task::TaskStatus;
use serde::Serialize;

use super::MAX_OF_BILL;
use super::names::{line_status, line_type, order_status, payment_status};
use super::shown::{Money, masked};

/// What the difference ledger is called.
pub(super) const LEDGER: &str = "difference ledger";
const SMALL_BILL: &str = "small bill";
const PARTNER_BILL: &str = "partner bill";

/// Rows of one table about one bill; imports leave one.
const MAX_RECORDS: u32 = 5;

/// One of the three business records of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillRecord {
    /// Which of the three.
    pub record: &'static str,
    /// Its id.
    pub id: i64,
    /// Its payment status code.
    pub payment_status_code: i64,
    /// Its payment status.
    pub payment_status: &'static str,
    /// `paid_amount`.
    pub paid_amount: Money,
    /// `cumulative_paid_amount`.
    pub cumulative_paid_amount: Money,
    /// The order it refers to.
    pub locked_payment_order_id: Option<OrderId>,
    /// The line it refers to.
    pub locked_order_bill_id: Option<LineId>,
    /// When its payment status was last written.
    pub payment_status_update_time: Option<Instant>,
    /// The intended rent; the ledger's.
    pub pre_rent: Option<Money>,
    /// The contract rent; the ledger's.
    pub contract_rent: Option<Money>,
    /// The actual rent; the ledger's.
    pub actual_rent: Option<Money>,
    /// The amount; of the two bills.
    pub amount: Option<Money>,
    /// What partners see of the check: 10 unchecked, 20 passed, 30 failed.
    pub partner_query_status: Option<i64>,
    /// Whether partners see it as unqualified.
    pub unqualified: Option<bool>,
    /// Why.
    pub unqualified_reason: Option<String>,
}

/// A line of the bill in a version of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillLine {
    /// The line.
    pub order_bill_id: LineId,
    /// The order.
    pub payment_order_id: OrderId,
    /// Its number.
    pub order_no: Option<String>,
    /// Its status.
    pub order_status: &'static str,
    /// The data version.
    pub data_version: DataVersion,
    /// The round.
    pub submit_round: SubmitRound,
    /// Whether the order points to this version.
    pub is_published: bool,
    /// PAYABLE or UNQUALIFIED.
    pub line_type: &'static str,
    /// Its status.
    pub line_status: &'static str,
    /// What is to be paid.
    pub pay_amount: Option<Money>,
    /// The intended rent.
    pub pre_rent: Option<Money>,
    /// Why it is unqualified.
    pub unqualified_reason: Option<String>,
    /// Who is paid.
    pub payee_name: Option<String>,
    /// To which account, masked.
    pub payee_account: Option<String>,
    /// When the line was built.
    pub create_time: Instant,
}

/// A lock on the bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillLock {
    /// The lock.
    pub lock_id: LockId,
    /// Its key.
    pub lock_key: String,
    /// RESERVED, ACTIVE or RELEASED.
    pub lock_status: String,
    /// What last happened to it.
    pub lock_scene: Option<String>,
    /// Where it came from.
    pub lock_origin: Option<String>,
    /// The order.
    pub payment_order_id: OrderId,
    /// Its number.
    pub order_no: Option<String>,
    /// The line it belongs to.
    pub order_bill_id: LineId,
    /// The data version it belongs to.
    pub data_version: DataVersion,
    /// When it was reserved.
    pub create_time: Instant,
    /// When it was released.
    pub release_time: Option<Instant>,
    /// Why.
    pub release_reason: Option<String>,
}

/// A note on one of the bill's orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillNote {
    /// When.
    pub time: Instant,
    /// INCIDENT, REPAIR, CANCEL, RERUN, or TASK for a task that is not SUCCESS.
    pub note: String,
    /// The order, where the record names it.
    pub payment_order_id: Option<OrderId>,
    /// The task.
    pub task_code: String,
    /// What it says.
    pub what: String,
    /// Who did it.
    pub operator_user_id: Option<i64>,
}

/// Cuts a read of one row more than is shown.
fn cut<T>(mut rows: Vec<T>) -> (Vec<T>, bool) {
    let has_more = rows.len() > MAX_OF_BILL as usize;
    rows.truncate(MAX_OF_BILL as usize);
    (rows, has_more)
}

/// The columns that only some of the three have are read as NULL from the others.
macro_rules! records_of {
    ($table:literal, $own:literal) => {
        concat!(
            "SELECT id, payment_status, paid_amount, cumulative_paid_amount,
               locked_payment_order_id, locked_order_bill_id, payment_status_update_time, ",
            $own,
            " FROM ",
            $table,
            " WHERE station_id = :station AND bill_yearmonth = :month AND deleted = 0
              ORDER BY id LIMIT :limit"
        )
    };
}

const RECORDS: [(&str, &str); 3] = [
    (
        LEDGER,
        records_of!(
            "fi_monthly_income_difference",
            "pre_rent, contract_rent, actual_rent, CAST(NULL AS {bigint}) AS amount,
             partner_query_status, unqualified_flag, unqualified_reason"
        ),
    ),
    (
        SMALL_BILL,
        records_of!(
            "fi_customer_bill",
            "CAST(NULL AS {bigint}) AS pre_rent, CAST(NULL AS {bigint}) AS contract_rent,
             CAST(NULL AS {bigint}) AS actual_rent, amount,
             CAST(NULL AS {bigint}) AS partner_query_status,
             CAST(NULL AS {bigint}) AS unqualified_flag,
             CAST(NULL AS CHAR(1)) AS unqualified_reason"
        ),
    ),
    (
        PARTNER_BILL,
        records_of!(
            "fi_customer_bill_partner",
            "CAST(NULL AS {bigint}) AS pre_rent, CAST(NULL AS {bigint}) AS contract_rent,
             CAST(NULL AS {bigint}) AS actual_rent, amount, partner_query_status,
             unqualified_flag, unqualified_reason"
        ),
    ),
];

pub(super) async fn records(db: &Db, station: &str, month: &BillMonth) -> Result<Vec<BillRecord>> {
    let mut records = Vec::new();
    for (name, text) in RECORDS {
        let query = sql!(
            text,
            station = station,
            month = month.as_str(),
            limit = MAX_RECORDS,
        );
        for row in db.rows(query).await? {
            records.push(record(name, &row)?);
        }
    }
    Ok(records)
}

fn record(name: &'static str, row: &Row) -> Result<BillRecord> {
    let money = |column: &str| Ok(row.maybe_int(column)?.map(Money::from));
    let status = row.int("payment_status")?;
    Ok(BillRecord {
        record: name,
        id: row.int("id")?,
        payment_status_code: status,
        payment_status: payment_status(status),
        paid_amount: row.int("paid_amount")?.into(),
        cumulative_paid_amount: row.int("cumulative_paid_amount")?.into(),
        locked_payment_order_id: row.maybe_int("locked_payment_order_id")?.map(OrderId),
        locked_order_bill_id: row.maybe_int("locked_order_bill_id")?.map(LineId),
        payment_status_update_time: row.maybe_instant("payment_status_update_time")?,
        pre_rent: money("pre_rent")?,
        contract_rent: money("contract_rent")?,
        actual_rent: money("actual_rent")?,
        amount: money("amount")?,
        partner_query_status: row.maybe_int("partner_query_status")?,
        unqualified: row.maybe_int("unqualified_flag")?.map(|flag| flag == 1),
        unqualified_reason: row.maybe_text("unqualified_reason")?,
    })
}

pub(super) async fn lines(
    db: &Db,
    station: &str,
    month: &BillMonth,
) -> Result<(Vec<BillLine>, bool)> {
    let query = sql!(
        "SELECT l.id, l.payment_order_id, o.order_no, o.status, o.current_publish_version,
                l.data_version, l.submit_round, l.line_type, l.line_status, l.pay_amount,
                l.pre_rent, l.unqualified_reason, l.payee_name, l.payee_account, l.create_time
         FROM fi_resident_income_payment_order_bill l
         LEFT JOIN fi_resident_income_payment_order o ON o.id = l.payment_order_id
         WHERE l.station_id = :station AND l.bill_yearmonth = :month AND l.deleted = 0
         ORDER BY l.id DESC LIMIT :limit",
        station = station,
        month = month.as_str(),
        limit = MAX_OF_BILL + 1,
    );
    let rows = db.rows(query).await?;
    Ok(cut(rows.iter().map(line).collect::<Result<Vec<_>>>()?))
}

fn line(row: &Row) -> Result<BillLine> {
    let data_version = row.int("data_version")?;
    Ok(BillLine {
        order_bill_id: LineId(row.int("id")?),
        payment_order_id: OrderId(row.int("payment_order_id")?),
        order_no: row.maybe_text("order_no")?,
        order_status: row.maybe_int("status")?.map_or("MISSING", order_status),
        data_version: DataVersion(data_version),
        submit_round: SubmitRound(row.int("submit_round")?),
        is_published: row.maybe_int("current_publish_version")? == Some(data_version),
        line_type: line_type(row.int("line_type")?),
        line_status: line_status(row.int("line_status")?),
        pay_amount: row.maybe_int("pay_amount")?.map(Money::from),
        pre_rent: row.maybe_int("pre_rent")?.map(Money::from),
        unqualified_reason: row.maybe_text("unqualified_reason")?,
        payee_name: row.maybe_text("payee_name")?,
        payee_account: row
            .maybe_text("payee_account")?
            .map(|account| masked(&account)),
        create_time: row.instant("create_time")?,
    })
}

pub(super) async fn locks(
    db: &Db,
    station: &str,
    month: &BillMonth,
) -> Result<(Vec<BillLock>, bool)> {
    let query = sql!(
        "SELECT k.id, k.lock_key, k.lock_status, k.lock_scene, k.lock_origin, k.payment_order_id,
                o.order_no, k.order_bill_id, k.data_version, k.create_time, k.release_time,
                k.release_reason
         FROM fi_resident_income_payment_bill_lock k
         LEFT JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id
         WHERE k.station_id = :station AND k.bill_yearmonth = :month
         ORDER BY k.id DESC LIMIT :limit",
        station = station,
        month = month.as_str(),
        limit = MAX_OF_BILL + 1,
    );
    let rows = db.rows(query).await?;
    Ok(cut(rows.iter().map(lock).collect::<Result<Vec<_>>>()?))
}

fn lock(row: &Row) -> Result<BillLock> {
    Ok(BillLock {
        lock_id: LockId(row.int("id")?),
        lock_key: row.text("lock_key")?,
        lock_status: row.text("lock_status")?,
        lock_scene: row.maybe_text("lock_scene")?,
        lock_origin: row.maybe_text("lock_origin")?,
        payment_order_id: OrderId(row.int("payment_order_id")?),
        order_no: row.maybe_text("order_no")?,
        order_bill_id: LineId(row.int("order_bill_id")?),
        data_version: DataVersion(row.int("data_version")?),
        create_time: row.instant("create_time")?,
        release_time: row.maybe_instant("release_time")?,
        release_reason: row.maybe_text("release_reason")?,
    })
}

/// What must be known of the bill's orders, newest first.
pub(super) async fn notes(db: &Db, orders: &[OrderId]) -> Result<(Vec<BillNote>, bool)> {
    let mut notes = traced(db, orders).await?;
    notes.extend(unfinished(db, orders).await?);
    notes.sort_by_key(|note| std::cmp::Reverse(note.time));
    Ok(cut(notes))
}

async fn traced(db: &Db, orders: &[OrderId]) -> Result<Vec<BillNote>> {
    let query = Query::new(
        "SELECT create_time, action, payment_order_id, task_code, result, detail,
                operator_user_id
         FROM fi_resident_income_payment_async_operation_log
         WHERE payment_order_id IN :orders AND action IN ('INCIDENT', 'REPAIR', 'CANCEL', 'RERUN')
           AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
    )
    .bind_list("orders", orders.iter().map(|order| order.0))
    .bind("limit", MAX_OF_BILL + 1);
    let mut notes = Vec::new();
    for row in db.rows(query).await? {
        let detail = row.maybe_text("detail")?;
        let detail = detail.map_or_else(String::new, |detail| format!(" {detail}"));
        notes.push(BillNote {
            time: row.instant("create_time")?,
            note: row.text("action")?,
            payment_order_id: row.maybe_int("payment_order_id")?.map(OrderId),
            task_code: row.text("task_code")?,
            what: format!("{}{detail}", row.text("result")?),
            operator_user_id: row.maybe_int("operator_user_id")?,
        });
    }
    Ok(notes)
}

/// Tasks of the orders that are not SUCCESS. The trace knows which tasks an order has had.
async fn unfinished(db: &Db, orders: &[OrderId]) -> Result<Vec<BillNote>> {
    let query = Query::new(
        "SELECT task_code, task_type, task_status, error_message, update_time
         FROM fi_async_task
         WHERE deleted = 0 AND task_status <> 2 AND task_code IN (
           SELECT task_code FROM fi_resident_income_payment_async_operation_log
           WHERE payment_order_id IN :orders AND action = 'ACCEPT')
         ORDER BY id DESC LIMIT :limit",
    )
    .bind_list("orders", orders.iter().map(|order| order.0))
    .bind("limit", MAX_OF_BILL + 1);
    let mut notes = Vec::new();
    for row in db.rows(query).await? {
        let status = TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed);
        let message = row.maybe_text("error_message")?;
        let message = message.map_or_else(String::new, |message| format!(": {message}"));
        notes.push(BillNote {
            time: row.instant("update_time")?,
            note: "TASK".into(),
            payment_order_id: None,
            task_code: row.text("task_code")?,
            what: format!("{} is {status}{message}", row.text("task_type")?),
            operator_user_id: None,
        });
    }
    Ok(notes)
}
