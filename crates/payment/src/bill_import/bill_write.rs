//! Writing the planned steps of a chunk of bills.

use std::collections::HashMap;

use counterfoil_db::{Bind, Query, Read, Text, Tx, Value};
use counterfoil_protocol::Fen;

use super::bill_plan::{BillPlan, Step};
use super::bill_row::{BillRow, Payee};
use super::{ROWS_A_CHUNK, bill_facts, bill_statements as sql};
use crate::PaymentError;
use crate::row_batch::{insert_rows, update_rows};

/// `payment_status` of a bill that nobody holds: NO_NEED_PAY where nothing is to be paid.
const NO_NEED_PAY: i64 = 10;
const UNPAID: i64 = 20;

/// By partner: the account that its bills are paid to.
pub(super) type PartnerAccounts = HashMap<i64, i64>;

/// The partners' newest normal accounts.
pub(super) async fn partner_accounts(
    tx: &Tx,
    partners: &[i64],
) -> Result<PartnerAccounts, PaymentError> {
    let mut accounts = PartnerAccounts::new();
    for chunk in partners.chunks(ROWS_A_CHUNK) {
        let query = Query::new(
            "SELECT partner_id, MAX(id) AS account_id
             FROM fi_customer_account_partner
             WHERE partner_id IN :partners AND status = 1 AND deleted = 0
             GROUP BY partner_id",
        )
        .bind_list("partners", chunk.iter().copied());
        for row in tx.rows(query).await? {
            accounts.insert(row.int("partner_id")?, row.int("account_id")?);
        }
    }
    Ok(accounts)
}

/// Writes a chunk: the rows of one month with their plans.
pub(super) async fn write(
    tx: &mut Tx,
    rows: &[BillRow],
    plans: &[BillPlan],
    partner_accounts: &PartnerAccounts,
) -> Result<(), PaymentError> {
    if plans.iter().all(BillPlan::is_empty) {
        return Ok(());
    }
    update_accounts(tx, rows, plans).await?;
    let accounts = ensure_accounts(tx, rows).await?;
    let chunk = Chunk { rows, plans, accounts, partner_accounts, now: tx.now().bind() };
    insert(tx, sql::INSERT_LEDGER, chunk.ledger_inserts()).await?;
    update(tx, sql::UPDATE_LEDGER, chunk.ledger_updates()).await?;
    insert(tx, sql::INSERT_SMALL, chunk.small_inserts()).await?;
    update(tx, sql::UPDATE_SMALL, chunk.small_updates()).await?;
    insert(tx, sql::INSERT_PARTNER, chunk.partner_inserts()).await?;
    update(tx, sql::UPDATE_PARTNER, chunk.partner_updates()).await
}

/// By station and number: the account's id.
type Accounts<'r> = HashMap<(&'r str, &'r str), i64>;

async fn update_accounts(
    tx: &mut Tx,
    rows: &[BillRow],
    plans: &[BillPlan],
) -> Result<(), PaymentError> {
    let fresh = rows.iter().zip(plans).filter_map(|(row, plan)| match (plan.account, &row.payee) {
        (Step::Update(id), Some(payee)) => {
            Some(vec![id.bind(), (&payee.holder).bind(), (&payee.bank).bind()])
        }
        _ => None,
    });
    let fresh = fresh.collect();
    update(tx, sql::UPDATE_ACCOUNTS, fresh).await
}

/// Makes the accounts that are missing. Asked of the database and not of the plans: an earlier
/// month of the same file may have made them.
async fn ensure_accounts<'r>(
    tx: &mut Tx,
    rows: &'r [BillRow],
) -> Result<Accounts<'r>, PaymentError> {
    let (known, missing) = find_accounts(tx, rows).await?;
    if missing.is_empty() {
        return Ok(known);
    }
    let now = tx.now();
    let fresh = missing.iter().map(|(station, payee)| {
        vec![
            (*station).bind(),
            (&payee.account_no).bind(),
            (&payee.holder).bind(),
            (&payee.bank).bind(),
            now.bind(),
            now.bind(),
        ]
    });
    let fresh = fresh.collect();
    insert(tx, sql::INSERT_ACCOUNTS, fresh).await?;
    Ok(find_accounts(tx, rows).await?.0)
}

async fn find_accounts<'r>(
    tx: &Tx,
    rows: &'r [BillRow],
) -> Result<(Accounts<'r>, Vec<(&'r str, &'r Payee)>), PaymentError> {
    let stored = bill_facts::accounts(tx, rows).await?;
    let mut ids = HashMap::new();
    for (station, account) in &stored {
        // Of doubles the first, as the plan saw it.
        ids.entry((station.as_str(), account.account_no.as_str())).or_insert(account.id);
    }
    let mut known = Accounts::new();
    let mut missing = Vec::new();
    for row in rows {
        let Some(payee) = &row.payee else { continue };
        let key = (row.station.as_str(), payee.account_no.as_str());
        match ids.get(&key) {
            Some(id) => drop(known.insert(key, *id)),
            None => missing.push((row.station.as_str(), payee)),
        }
    }
    Ok((known, missing))
}

struct Chunk<'r> {
    rows: &'r [BillRow],
    plans: &'r [BillPlan],
    accounts: Accounts<'r>,
    partner_accounts: &'r PartnerAccounts,
    now: Value,
}

impl Chunk<'_> {
    /// The values of each row whose step is an insert.
    fn inserts(
        &self,
        step: impl Fn(&BillPlan) -> Step,
        values: impl Fn(&BillRow) -> Vec<Value>,
    ) -> Vec<Vec<Value>> {
        let planned = self.rows.iter().zip(self.plans);
        let planned = planned.filter(|(_, plan)| step(plan) == Step::Insert);
        let fresh = planned.map(|(row, _)| {
            let mut all =
                vec![(&row.station).bind(), row.month.as_str().bind(), payment_status(row).bind()];
            all.extend(values(row));
            all.extend([self.now.clone(), self.now.clone()]);
            all
        });
        fresh.collect()
    }

    /// The id and the values of each row whose step is an update.
    fn updates(
        &self,
        step: impl Fn(&BillPlan) -> Step,
        values: impl Fn(&BillRow) -> Vec<Value>,
    ) -> Vec<Vec<Value>> {
        let planned = self.rows.iter().zip(self.plans);
        let fresh = planned.filter_map(|(row, plan)| match step(plan) {
            Step::Update(id) => {
                let mut all = vec![id.bind(), payment_status(row).bind()];
                all.extend(values(row));
                Some(all)
            }
            Step::Keep | Step::Insert => None,
        });
        fresh.collect()
    }

    fn ledger_inserts(&self) -> Vec<Vec<Value>> {
        self.inserts(|plan| plan.ledger, ledger)
    }

    fn ledger_updates(&self) -> Vec<Vec<Value>> {
        self.updates(|plan| plan.ledger, ledger)
    }

    fn small_inserts(&self) -> Vec<Vec<Value>> {
        self.inserts(|plan| plan.small, |row| self.small(row))
    }

    fn small_updates(&self) -> Vec<Vec<Value>> {
        self.updates(|plan| plan.small, |row| self.small(row))
    }

    fn partner_inserts(&self) -> Vec<Vec<Value>> {
        self.inserts(|plan| plan.partner, |row| self.partner(row))
    }

    fn partner_updates(&self) -> Vec<Vec<Value>> {
        self.updates(|plan| plan.partner, |row| self.partner(row))
    }

    fn small(&self, row: &BillRow) -> Vec<Value> {
        let key = row.payee.as_ref().map(|payee| (row.station.as_str(), &*payee.account_no));
        let account = key.and_then(|key| self.accounts.get(&key).copied());
        let amount = row.small_amount.unwrap_or(Fen::ZERO);
        vec![amount.0.bind(), account.bind(), row.small_amount.is_some().bind()]
    }

    fn partner(&self, row: &BillRow) -> Vec<Value> {
        let account = self.partner_accounts.get(&row.partner).copied();
        let amount = row.partner_amount.unwrap_or(Fen::ZERO);
        vec![amount.0.bind(), row.partner.bind(), account.bind()]
    }
}

fn ledger(row: &BillRow) -> Vec<Value> {
    vec![
        row.contract_rent.0.bind(),
        row.actual_rent.0.bind(),
        row.pre_rent.map(|fen| fen.0).bind(),
        row.company.bind(),
        row.partner.bind(),
    ]
}

fn payment_status(row: &BillRow) -> i64 {
    if row.pre_rent == Some(Fen::ZERO) { NO_NEED_PAY } else { UNPAID }
}

/// Inserts rows, if there are any.
pub(super) async fn insert(
    tx: &mut Tx,
    text: Text,
    rows: Vec<Vec<Value>>,
) -> Result<(), PaymentError> {
    insert_rows(tx, text, rows).await?;
    Ok(())
}

/// Brings rows into line, if there are any. The statement's guard must let all of them through.
pub(super) async fn update(
    tx: &mut Tx,
    text: Text,
    rows: Vec<Vec<Value>>,
) -> Result<(), PaymentError> {
    let wanted = rows.len() as u64;
    match update_rows(tx, text, rows).await? == wanted {
        true => Ok(()),
        false => Err(PaymentError::Conflict("one of the bills to import".into())),
    }
}
