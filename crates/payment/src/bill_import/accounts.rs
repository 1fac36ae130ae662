//! Importing accounts of customers and partners.

use std::collections::{BTreeSet, HashMap, HashSet};

use counterfoil_db::{Bind, Db, Query, Read, Text, Tx, Value, sql, transact};

use super::account_row::{AccountOwner, AccountRow, column};
use super::bill_facts::known_ids;
use super::bill_plan::Step;
use super::bill_write::{insert, partner_accounts, update};
use super::gather::{Gathered, Refusals, gather};
use super::turn::take_turn;
use super::{ImportOptions, Imported, ROWS_A_CHUNK, SheetRow, Unread};
use crate::PaymentError;

/// Imports an account file in one transaction. An account is known by its owner and its number.
///
/// Changing an account changes where bills are paid to that are not paid yet, held ones included:
/// an order in which the payee no longer is the one that was approved is stopped before payment.
/// Partner bills that nobody holds and that have no usable account get the partner's newest.
///
/// # Errors
/// [`PaymentError::RowsRefused`] with every fault by line and column; then nothing was written.
pub async fn import_accounts(
    db: &Db,
    sheet: impl Iterator<Item = Result<SheetRow, Unread>> + Send,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let gathered = gather::<AccountRow>(sheet)?;
    transact!(attempt(db, &gathered, options))
}

async fn attempt(
    db: &Db,
    gathered: &Gathered<AccountRow>,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let mut tx = db.begin().await?;
    take_turn(&mut tx).await?;
    let mut refusals = gathered.refusals.clone();
    refuse_unknown_partners(&tx, gathered, &mut refusals).await?;
    let mut imported = Imported::default();
    let mut changed_partners = BTreeSet::new();
    for rows in gathered.rows.chunks(ROWS_A_CHUNK) {
        let stored = stored(&tx, rows).await?;
        let steps = rows.iter().map(|row| {
            let known = stored.get(&(row.owner.clone(), row.account_no.clone()));
            (!refusals.holds(row)).then(|| step(row, known))
        });
        let steps: Vec<Option<Step>> = steps.collect();
        imported.count(&steps);
        write(&mut tx, rows, &steps).await?;
        let changed = rows.iter().zip(&steps).filter_map(|(row, step)| match (&row.owner, step) {
            (AccountOwner::Partner(id), Some(Step::Insert | Step::Update(_))) => Some(*id),
            _ => None,
        });
        changed_partners.extend(changed);
    }
    let changed: Vec<i64> = changed_partners.into_iter().collect();
    for (partner, account) in partner_accounts(&tx, &changed).await? {
        give_to_bills(&mut tx, partner, account).await?;
    }
    let refusals = refusals.allow(options)?;
    imported.leave_out(refusals);
    tx.commit("import.accounts").await?;
    Ok(imported)
}

async fn refuse_unknown_partners(
    tx: &Tx,
    gathered: &Gathered<AccountRow>,
    refusals: &mut Refusals,
) -> Result<(), PaymentError> {
    let partner = |row: &AccountRow| match row.owner {
        AccountOwner::Partner(id) => Some(id),
        AccountOwner::Customer(_) => None,
    };
    let text = "SELECT id FROM sys_partner WHERE id IN :ids AND deleted = 0";
    let known = known_ids(tx, text, gathered.rows.iter().filter_map(partner)).await?;
    for row in &gathered.rows {
        if let Some(id) = partner(row).filter(|id| !known.contains(id)) {
            let why = format!("{id} is no partner; import partners first");
            refusals.refuse(&gathered.header, row.line, column::OWNER_ID, why);
        }
    }
    Ok(())
}

struct Stored {
    id: i64,
    /// Holder, bank and bank's code.
    texts: [String; 3],
    status: i64,
}

fn step(row: &AccountRow, stored: Option<&Stored>) -> Step {
    let Some(stored) = stored else {
        return Step::Insert;
    };
    let [holder, bank, bank_code] = &stored.texts;
    let is_same = (holder, bank, bank_code) == (&row.holder, &row.bank, &row.bank_code)
        && stored.status == row.status;
    if is_same { Step::Keep } else { Step::Update(stored.id) }
}

type StoredAccounts = HashMap<(AccountOwner, String), Stored>;

async fn stored(tx: &Tx, rows: &[AccountRow]) -> Result<StoredAccounts, PaymentError> {
    let (customers, partners): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| matches!(row.owner, AccountOwner::Customer(_)));
    let customers = Query::new(
        "SELECT id, customer_id, account_no, holder_name, bank_name, bank_code, status
         FROM fi_customer_account
         WHERE customer_id IN :owners AND account_no IN :numbers AND deleted = 0
         ORDER BY id",
    )
    .bind_list("numbers", customers.iter().map(|row| &row.account_no))
    .bind_list("owners", customers.iter().filter_map(|row| customer(row)));
    let partners = Query::new(
        "SELECT id, partner_id, account_no, holder_name, bank_name, bank_code, status
         FROM fi_customer_account_partner
         WHERE partner_id IN :owners AND account_no IN :numbers AND deleted = 0
         ORDER BY id",
    )
    .bind_list("numbers", partners.iter().map(|row| &row.account_no))
    .bind_list("owners", partners.iter().filter_map(|row| partner(row)).collect::<HashSet<_>>());
    let mut stored = StoredAccounts::new();
    for (query, is_customer) in [(customers, true), (partners, false)] {
        for row in tx.rows(query).await? {
            let owner = match is_customer {
                true => AccountOwner::Customer(row.text("customer_id")?),
                false => AccountOwner::Partner(row.int("partner_id")?),
            };
            let account = Stored {
                id: row.int("id")?,
                texts: [row.text("holder_name")?, row.text("bank_name")?, row.text("bank_code")?],
                status: row.int("status")?,
            };
            stored.entry((owner, row.text("account_no")?)).or_insert(account);
        }
    }
    Ok(stored)
}

fn customer(row: &AccountRow) -> Option<&str> {
    match &row.owner {
        AccountOwner::Customer(station) => Some(station),
        AccountOwner::Partner(_) => None,
    }
}

fn partner(row: &AccountRow) -> Option<i64> {
    match row.owner {
        AccountOwner::Partner(id) => Some(id),
        AccountOwner::Customer(_) => None,
    }
}

const INSERT_CUSTOMERS: Text = Text::Same(
    "INSERT INTO fi_customer_account
       (customer_id, account_no, holder_name, bank_name, bank_code, status, create_time,
        update_time)
     VALUES :rows",
);

const INSERT_PARTNERS: Text = Text::Same(
    "INSERT INTO fi_customer_account_partner
       (partner_id, account_no, holder_name, bank_name, bank_code, status, create_time,
        update_time)
     VALUES :rows",
);

const UPDATE_CUSTOMERS: Text = Text::Forked {
    standard: "WITH fresh (id, holder_name, bank_name, bank_code, status) AS (VALUES :rows)
     UPDATE fi_customer_account AS a
     SET holder_name = fresh.holder_name, bank_name = fresh.bank_name,
         bank_code = fresh.bank_code, status = fresh.status, update_time = :now
     FROM fresh WHERE a.id = fresh.id AND a.deleted = 0",
    mariadb: "UPDATE fi_customer_account a
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', holder_name VARCHAR(128) PATH '$[1]',
         bank_name VARCHAR(128) PATH '$[2]', bank_code VARCHAR(32) PATH '$[3]',
         status SMALLINT PATH '$[4]')) fresh
       ON a.id = fresh.id
     SET a.holder_name = fresh.holder_name, a.bank_name = fresh.bank_name,
         a.bank_code = fresh.bank_code, a.status = fresh.status, a.update_time = :now
     WHERE a.deleted = 0",
};

const UPDATE_PARTNERS: Text = Text::Forked {
    standard: "WITH fresh (id, holder_name, bank_name, bank_code, status) AS (VALUES :rows)
     UPDATE fi_customer_account_partner AS a
     SET holder_name = fresh.holder_name, bank_name = fresh.bank_name,
         bank_code = fresh.bank_code, status = fresh.status, update_time = :now
     FROM fresh WHERE a.id = fresh.id AND a.deleted = 0",
    mariadb: "UPDATE fi_customer_account_partner a
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', holder_name VARCHAR(128) PATH '$[1]',
         bank_name VARCHAR(128) PATH '$[2]', bank_code VARCHAR(32) PATH '$[3]',
         status SMALLINT PATH '$[4]')) fresh
       ON a.id = fresh.id
     SET a.holder_name = fresh.holder_name, a.bank_name = fresh.bank_name,
         a.bank_code = fresh.bank_code, a.status = fresh.status, a.update_time = :now
     WHERE a.deleted = 0",
};

async fn write(
    tx: &mut Tx,
    rows: &[AccountRow],
    steps: &[Option<Step>],
) -> Result<(), PaymentError> {
    let now = tx.now();
    let new = |owner: Value, row: &AccountRow| {
        vec![
            owner,
            (&row.account_no).bind(),
            (&row.holder).bind(),
            (&row.bank).bind(),
            (&row.bank_code).bind(),
            row.status.bind(),
            now.bind(),
            now.bind(),
        ]
    };
    let changed = |id: i64, row: &AccountRow| {
        vec![
            id.bind(),
            (&row.holder).bind(),
            (&row.bank).bind(),
            (&row.bank_code).bind(),
            row.status.bind(),
        ]
    };
    let mut inserts = [Vec::new(), Vec::new()];
    let mut updates = [Vec::new(), Vec::new()];
    for (row, step) in rows.iter().zip(steps) {
        let (table, owner) = match &row.owner {
            AccountOwner::Customer(station) => (0, station.bind()),
            AccountOwner::Partner(id) => (1, id.bind()),
        };
        match step {
            Some(Step::Insert) => inserts[table].push(new(owner, row)),
            Some(Step::Update(id)) => updates[table].push(changed(*id, row)),
            Some(Step::Keep) | None => {}
        }
    }
    let [customers, partners] = inserts;
    insert(tx, INSERT_CUSTOMERS, customers).await?;
    insert(tx, INSERT_PARTNERS, partners).await?;
    let [customers, partners] = updates;
    update(tx, UPDATE_CUSTOMERS, customers).await?;
    update(tx, UPDATE_PARTNERS, partners).await
}

/// Partner bills come before their partner's account in some files, and accounts get closed.
async fn give_to_bills(tx: &mut Tx, partner: i64, account: i64) -> Result<(), PaymentError> {
    let update = sql!(
        "UPDATE fi_customer_bill_partner
         SET partner_account_id = :account, update_time = :now
         WHERE partner_id = :partner AND deleted = 0 AND locked_payment_order_id IS NULL
           AND (partner_account_id IS NULL
                OR partner_account_id IN (SELECT id FROM fi_customer_account_partner
                     WHERE partner_id = :partner AND (status <> 1 OR deleted = 1)))
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                 WHERE l.station_id = fi_customer_bill_partner.station_id
                   AND l.bill_yearmonth = fi_customer_bill_partner.bill_yearmonth
                   AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
        partner = partner,
        account = account,
        now = tx.now(),
    );
    tx.execute(update).await?;
    Ok(())
}
