//! Reading what is stored about the bills of a chunk.

use std::collections::{HashMap, HashSet};

use counterfoil_db::{Query, Read, Tx};
use counterfoil_protocol::{BillMonth, Fen, lock_key};

use super::ROWS_A_CHUNK;
use super::bill_plan::{
    BillStored, Holder, StoredAccount, StoredLedger, StoredPartner, StoredSmall,
};
use super::bill_row::BillRow;
use crate::PaymentError;

/// What is stored about some stations in one month, by station.
pub(super) type Stored = HashMap<String, BillStored>;

/// Reads all that decides over the rows, which are of one month.
pub(super) async fn read(tx: &Tx, rows: &[BillRow]) -> Result<Stored, PaymentError> {
    let Some(month) = rows.first().map(|row| &row.month) else {
        return Ok(Stored::new());
    };
    let mut stored: Stored =
        rows.iter().map(|row| (row.station.clone(), BillStored::default())).collect();
    ledgers(tx, month, rows, &mut stored).await?;
    smalls(tx, month, rows, &mut stored).await?;
    partners(tx, month, rows, &mut stored).await?;
    locks(tx, month, rows, &mut stored).await?;
    for (station, account) in accounts(tx, rows).await? {
        stored.entry(station).or_default().accounts.push(account);
    }
    held_accounts(tx, rows, &mut stored).await?;
    Ok(stored)
}

fn stations(rows: &[BillRow]) -> impl Iterator<Item = &str> {
    rows.iter().map(|row| row.station.as_str())
}

async fn ledgers(
    tx: &Tx,
    month: &BillMonth,
    rows: &[BillRow],
    stored: &mut Stored,
) -> Result<(), PaymentError> {
    let query = Query::new(
        "SELECT id, station_id, contract_rent, actual_rent, pre_rent, project_company_id,
                partner_id, locked_payment_order_id
         FROM fi_monthly_income_difference
         WHERE station_id IN :stations AND bill_yearmonth = :month AND deleted = 0
         ORDER BY id",
    )
    .bind("month", month.as_str())
    .bind_list("stations", stations(rows));
    for row in tx.rows(query).await? {
        let bill = stored.entry(row.text("station_id")?).or_default();
        refer(bill, row.maybe_int("locked_payment_order_id")?);
        bill.ledgers.push(StoredLedger {
            id: row.int("id")?,
            contract_rent: row.maybe_int("contract_rent")?.map(Fen),
            actual_rent: row.maybe_int("actual_rent")?.map(Fen),
            pre_rent: row.maybe_int("pre_rent")?.map(Fen),
            company: row.maybe_int("project_company_id")?,
            partner: row.maybe_int("partner_id")?,
        });
    }
    Ok(())
}

async fn smalls(
    tx: &Tx,
    month: &BillMonth,
    rows: &[BillRow],
    stored: &mut Stored,
) -> Result<(), PaymentError> {
    let query = Query::new(
        "SELECT id, station_id, amount, pushed_flag, customer_account_id, locked_payment_order_id
         FROM fi_customer_bill
         WHERE station_id IN :stations AND bill_yearmonth = :month AND deleted = 0
         ORDER BY id",
    )
    .bind("month", month.as_str())
    .bind_list("stations", stations(rows));
    for row in tx.rows(query).await? {
        let bill = stored.entry(row.text("station_id")?).or_default();
        refer(bill, row.maybe_int("locked_payment_order_id")?);
        bill.smalls.push(StoredSmall {
            id: row.int("id")?,
            amount: Fen(row.int("amount")?),
            is_pushed: row.int("pushed_flag")? == 1,
            account: row.maybe_int("customer_account_id")?,
        });
    }
    Ok(())
}

async fn partners(
    tx: &Tx,
    month: &BillMonth,
    rows: &[BillRow],
    stored: &mut Stored,
) -> Result<(), PaymentError> {
    let query = Query::new(
        "SELECT id, station_id, amount, partner_id, locked_payment_order_id
         FROM fi_customer_bill_partner
         WHERE station_id IN :stations AND bill_yearmonth = :month AND deleted = 0
         ORDER BY id",
    )
    .bind("month", month.as_str())
    .bind_list("stations", stations(rows));
    for row in tx.rows(query).await? {
        let bill = stored.entry(row.text("station_id")?).or_default();
        refer(bill, row.maybe_int("locked_payment_order_id")?);
        bill.partners.push(StoredPartner {
            id: row.int("id")?,
            amount: Fen(row.int("amount")?),
            partner: row.maybe_int("partner_id")?,
        });
    }
    Ok(())
}

/// A reference without a lock still says whose the bill is. A lock, read later, knows the number.
fn refer(bill: &mut BillStored, order: Option<i64>) {
    if let Some(order) = order {
        bill.holder.get_or_insert_with(|| Holder { order: order.to_string() });
    }
}

async fn locks(
    tx: &Tx,
    month: &BillMonth,
    rows: &[BillRow],
    stored: &mut Stored,
) -> Result<(), PaymentError> {
    let query = Query::new(
        "SELECT l.station_id, l.payment_order_id, o.order_no
         FROM fi_resident_income_payment_bill_lock l
         LEFT JOIN fi_resident_income_payment_order o ON o.id = l.payment_order_id
         WHERE l.lock_key IN :keys AND l.lock_status IN ('RESERVED', 'ACTIVE')
           AND l.deleted = 0",
    )
    .bind_list("keys", stations(rows).map(|station| lock_key(station, month)));
    for row in tx.rows(query).await? {
        let order = match row.maybe_text("order_no")? {
            Some(number) => number,
            None => row.int("payment_order_id")?.to_string(),
        };
        let bill = stored.entry(row.text("station_id")?).or_default();
        bill.holder = Some(Holder { order });
    }
    Ok(())
}

/// The customer accounts of the rows' stations, with the station.
pub(super) async fn accounts(
    tx: &Tx,
    rows: &[BillRow],
) -> Result<Vec<(String, StoredAccount)>, PaymentError> {
    let query = Query::new(
        "SELECT id, customer_id, account_no, holder_name, bank_name
         FROM fi_customer_account
         WHERE customer_id IN :stations AND deleted = 0
         ORDER BY id",
    )
    .bind_list("stations", stations(rows));
    let mut accounts = Vec::new();
    for row in tx.rows(query).await? {
        let account = StoredAccount {
            id: row.int("id")?,
            account_no: row.text("account_no")?,
            holder: row.text("holder_name")?,
            bank: row.text("bank_name")?,
            held_bill: None,
        };
        accounts.push((row.text("customer_id")?, account));
    }
    Ok(accounts)
}

/// Notes the held bills that are paid to accounts which the file would change.
async fn held_accounts(tx: &Tx, rows: &[BillRow], stored: &mut Stored) -> Result<(), PaymentError> {
    let changed = rows.iter().filter_map(|row| {
        let payee = row.payee.as_ref()?;
        let accounts = &stored.get(&row.station)?.accounts;
        let account = accounts.iter().find(|known| known.account_no == payee.account_no)?;
        let is_changed = account.holder != payee.holder || account.bank != payee.bank;
        is_changed.then(|| (row.station.clone(), account.id))
    });
    let changed: Vec<(String, i64)> = changed.collect();
    if changed.is_empty() {
        return Ok(());
    }
    let query = Query::new(
        "SELECT s.station_id, s.customer_account_id, s.bill_yearmonth
         FROM fi_customer_bill s
         LEFT JOIN fi_resident_income_payment_bill_lock l
           ON l.station_id = s.station_id AND l.bill_yearmonth = s.bill_yearmonth
          AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0
         WHERE s.station_id IN :stations AND s.customer_account_id IN :accounts AND s.deleted = 0
           AND (s.locked_payment_order_id IS NOT NULL OR l.id IS NOT NULL)
         ORDER BY s.id",
    )
    .bind_list("stations", changed.iter().map(|(station, _)| station.as_str()))
    .bind_list("accounts", changed.iter().map(|(_, account)| *account));
    for row in tx.rows(query).await? {
        let id = row.int("customer_account_id")?;
        let held = format!("the held bill of {}", row.text("bill_yearmonth")?);
        let accounts = stored.get_mut(&row.text("station_id")?).map(|bill| &mut bill.accounts);
        for account in accounts.into_iter().flatten().filter(|account| account.id == id) {
            account.held_bill.get_or_insert_with(|| held.clone());
        }
    }
    Ok(())
}

/// Which of some ids are live rows of a table, by a query with the list `:ids` and a column `id`.
pub(super) async fn known_ids(
    tx: &Tx,
    text: &'static str,
    ids: impl IntoIterator<Item = i64>,
) -> Result<HashSet<i64>, PaymentError> {
    let ids: Vec<i64> = ids.into_iter().collect::<HashSet<i64>>().into_iter().collect();
    let mut known = HashSet::new();
    for chunk in ids.chunks(ROWS_A_CHUNK) {
        let query = Query::new(text).bind_list("ids", chunk.iter().copied());
        for row in tx.rows(query).await? {
            known.insert(row.int("id")?);
        }
    }
    Ok(known)
}
