//! Bills that may be selected, with all that decides over them.

use counterfoil_db::{Query, Read, Row, Text};
use counterfoil_protocol::{BillMonth, Fen, OrderId, SessionId};

use super::add::BillKey;
use super::edit::EditFacts;
use super::qualify::{Availability, Blocker, HolderOrder, Rents, selectable};
use crate::PaymentError;

/// `payment_status` of what is paid.
const PAID: i64 = 60;

/// One ledger row and what stands around it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The ledger row.
    pub diff: i64,
    /// The bill.
    pub key: BillKey,
    /// Its amounts.
    pub rents: Rents,
    /// Its small bill.
    pub small: Option<i64>,
    /// Its partner bill.
    pub partner: Option<i64>,
    /// The line of the published version that a revision keeps.
    pub source_line: Option<i64>,
    /// Its item, when it is in the session already.
    pub item: Option<i64>,
    /// Why it cannot be selected.
    pub blocker: Option<Blocker>,
}

/// The statement with its two ways of choosing ledger rows. Those are chosen first, and all else is
/// looked up for them by its whole key: joined, the planner of a database without statistics
/// reads every line of the session for every ledger row (measured: minutes a batch).
macro_rules! candidates {
    ($chosen:literal) => {
        concat!(
            "SELECT d.id, d.station_id, d.bill_yearmonth, d.payment_status, d.contract_rent,
                    d.actual_rent, d.pre_rent, d.paid_amount,
                    (SELECT MIN(s.id) FROM fi_customer_bill s
                     WHERE s.station_id = d.station_id AND s.bill_yearmonth = d.bill_yearmonth
                       AND s.deleted = 0) AS small_bill_id,
                    (SELECT MIN(p.id) FROM fi_customer_bill_partner p
                     WHERE p.station_id = d.station_id AND p.bill_yearmonth = d.bill_yearmonth
                       AND p.deleted = 0) AS partner_bill_id,
                    (SELECT MIN(b.id) FROM fi_resident_income_payment_order_bill b
                     WHERE b.station_id = d.station_id AND b.bill_yearmonth = d.bill_yearmonth
                       AND b.payment_order_id = :order AND b.data_version = :data_version
                       AND b.submit_round = :round AND b.deleted = 0) AS source_line_id,
                    (SELECT MIN(i.id) FROM selection_session_item i
                     WHERE i.session_id = :session AND i.station_id = d.station_id
                       AND i.bill_yearmonth = d.bill_yearmonth AND i.deleted = 0) AS item_id,
                    (SELECT MIN(l.payment_order_id) FROM fi_resident_income_payment_bill_lock l
                     WHERE l.station_id = d.station_id AND l.bill_yearmonth = d.bill_yearmonth
                       AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)
                       AS holder_id,
                    (SELECT MIN(o.order_no) FROM fi_resident_income_payment_bill_lock l
                     JOIN fi_resident_income_payment_order o ON o.id = l.payment_order_id
                     WHERE l.station_id = d.station_id AND l.bill_yearmonth = d.bill_yearmonth
                       AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)
                       AS holder_no,
                    (SELECT COUNT(*) FROM month_close c
                     WHERE c.bill_yearmonth = :month AND c.deleted = 0) AS closed
             FROM (SELECT id, station_id, bill_yearmonth, payment_status, contract_rent,
                          actual_rent, pre_rent, paid_amount
                   FROM fi_monthly_income_difference
                   WHERE bill_yearmonth = :month AND deleted = 0 AND ",
            $chosen,
            "      ORDER BY id LIMIT :limit) d
             ORDER BY d.id"
        )
    };
}

const OF_A_MONTH: Text = Text::Same(candidates!(
    "id > :cursor AND (:company IS NULL OR project_company_id = :company)
       AND (:partner IS NULL OR partner_id = :partner)
"
));

const OF_STATIONS: Text = Text::Same(candidates!("station_id IN :stations "));

/// The next candidates of a month behind a ledger row, by its id.
pub(super) async fn of_month(
    from: &impl Read,
    session: &EditFacts,
    month: &BillMonth,
    filter: (Option<i64>, Option<i64>),
    cursor: i64,
    limit: i64,
) -> Result<Vec<Candidate>, PaymentError> {
    let query = Query::new(OF_A_MONTH)
        .bind("cursor", cursor)
        .bind("limit", limit)
        .bind("company", filter.0)
        .bind("partner", filter.1);
    read(from, session, month, query).await
}

/// The candidates of some stations in one month. The caller bounds their number.
pub(super) async fn of_stations(
    from: &impl Read,
    session: &EditFacts,
    month: &BillMonth,
    stations: &[String],
) -> Result<Vec<Candidate>, PaymentError> {
    // Historical data may hold a bill more than once; nothing of that is left out here.
    let query = Query::new(OF_STATIONS)
        .bind_list("stations", stations)
        .bind("limit", i64::MAX);
    read(from, session, month, query).await
}

async fn read(
    from: &impl Read,
    session: &EditFacts,
    month: &BillMonth,
    query: Query,
) -> Result<Vec<Candidate>, PaymentError> {
    let SessionId(id) = session.id;
    let source = session.source.unwrap_or_default();
    let query = query
        .bind("session", id)
        .bind("month", month.as_str())
        .bind("order", session.order.map_or(0, |order| order.0))
        .bind("data_version", source.0)
        .bind("round", source.1);
    let rows = from.rows(query).await?;
    rows.iter()
        .map(|row| candidate(row, session.order))
        .collect()
}

fn candidate(row: &Row, own: Option<OrderId>) -> Result<Candidate, PaymentError> {
    let rents = Rents {
        contract: row.maybe_int("contract_rent")?.map(Fen),
        actual: row.maybe_int("actual_rent")?.map(Fen),
        pre_rent: row.maybe_int("pre_rent")?.map(Fen),
        paid: Fen(row.int("paid_amount")?),
    };
    let holder = match row.maybe_int("holder_id")? {
        None => None,
        Some(order) => Some(HolderOrder {
            order: OrderId(order),
            order_no: row.maybe_text("holder_no")?,
        }),
    };
    let availability = Availability {
        is_month_closed: row.int("closed")? > 0,
        holder,
        is_paid: row.int("payment_status")? == PAID,
    };
    Ok(Candidate {
        diff: row.int("id")?,
        key: BillKey {
            station: row.text("station_id")?,
            month: BillMonth::stored(row.text("bill_yearmonth")?),
        },
        rents,
        small: row.maybe_int("small_bill_id")?,
        partner: row.maybe_int("partner_bill_id")?,
        source_line: row.maybe_int("source_line_id")?,
        item: row.maybe_int("item_id")?,
        blocker: selectable(&availability, &rents, own).err(),
    })
}
