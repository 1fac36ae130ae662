//! A person puts a payee right, so that the same detail can be pushed again alone.
//!
//! Source: payment-flow.md "S09 side effects": a failed or later returned detail can be fixed and
//! pushed again alone, as a new push of the same detail; no line is ever in two details.

use counterfoil_db::{Db, Read, Row, Tx, sql, transact};
use counterfoil_protocol::UserId;
use serde::Serialize;

use super::{MAX_MESSAGE, TreasuryError, cut, sum_up};

/// Characters of a payee's name or bank, and of an account number.
const MAX_NAME: usize = 128;
const MAX_ACCOUNT: usize = 64;

/// The payee as it shall be; `None` leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayeeFix {
    /// Name.
    pub name: Option<String>,
    /// Account number.
    pub account: Option<String>,
    /// Bank.
    pub bank: Option<String>,
}

/// A detail put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// The detail.
    pub detail_id: i64,
    /// Its batch.
    pub push_batch_id: i64,
    /// The batch's status now.
    pub batch_status: &'static str,
}

/// Puts a detail's payee right. It waits to be pushed then, by schedule or by `push-batch push`.
/// Confirming the payee as it stands is a fix too: it needs a reason and no new data.
///
/// # Errors
/// Refuses details that are under way or paid, and blank reasons.
pub async fn fix(
    db: &Db,
    detail: i64,
    fix: &PayeeFix,
    reason: &str,
    user: UserId,
) -> Result<Fixed, TreasuryError> {
    if reason.trim().is_empty() {
        return Err(TreasuryError::invalid("reason", "say why the payee is put right"));
    }
    check("name", fix.name.as_deref(), MAX_NAME)?;
    check("account", fix.account.as_deref(), MAX_ACCOUNT)?;
    check("bank", fix.bank.as_deref(), MAX_NAME)?;
    transact!(try_fix(db, detail, fix, reason, user))
}

fn check(field: &str, text: Option<&str>, most: usize) -> Result<(), TreasuryError> {
    let Some(text) = text else {
        return Ok(());
    };
    if text.trim().is_empty() || text.chars().count() > most || text.chars().any(char::is_control) {
        let why = format!("write 1 to {most} printable characters");
        return Err(TreasuryError::invalid(field, why));
    }
    Ok(())
}

async fn try_fix(
    db: &Db,
    detail: i64,
    fix: &PayeeFix,
    reason: &str,
    user: UserId,
) -> Result<Fixed, TreasuryError> {
    let mut tx = db.begin().await?;
    let order = order_of(&tx, detail).await?;
    lock_order(&mut tx, order).await?;
    let row = facts(&tx, detail).await?;
    standing(detail, &row)?;
    record(&mut tx, detail, &row, fix, reason, user).await?;
    if !release(&mut tx, detail, fix).await? {
        return Err(crate::PaymentError::Conflict(format!("detail {detail}")).into());
    }
    let line = row.int("order_bill_id")?;
    let batch = row.int("push_batch_id")?;
    approve_again(&mut tx, line).await?;
    let batch_status = open_batch(&mut tx, batch).await?;
    sum_up::order(&mut tx, batch).await?;
    tx.commit("treasury.fix").await?;
    Ok(Fixed { detail_id: detail, push_batch_id: batch, batch_status })
}

async fn order_of(tx: &Tx, detail: i64) -> Result<i64, TreasuryError> {
    let query = sql!(
        "SELECT b.payment_order_id FROM fi_resident_income_payment_push_batch_detail d
         JOIN fi_resident_income_payment_push_batch b ON b.id = d.push_batch_id AND b.deleted = 0
         WHERE d.id = :detail AND d.deleted = 0",
        detail = detail,
    );
    let row = tx.row(query).await?.ok_or(TreasuryError::DetailNotFound(detail))?;
    Ok(row.int("payment_order_id")?)
}

async fn lock_order(tx: &mut Tx, order: i64) -> Result<(), TreasuryError> {
    let lock = sql!(
        "SELECT id FROM fi_resident_income_payment_order WHERE id = :order {for_update}",
        order = order,
    );
    tx.row(lock).await?;
    Ok(())
}

async fn facts(tx: &Tx, detail: i64) -> Result<Row, TreasuryError> {
    let query = sql!(
        "SELECT d.push_batch_id, d.order_bill_id, d.push_status, d.pay_status, d.payee_name,
            d.payee_account, d.payee_bank, p.push_state
         FROM fi_resident_income_payment_push_batch_detail d
         LEFT JOIN fi_resident_income_payment_push p ON p.id = d.push_id
         WHERE d.id = :detail",
        detail = detail,
    );
    let row = tx.row(query).await?;
    row.ok_or(TreasuryError::DetailNotFound(detail))
}

fn standing(detail: i64, row: &Row) -> Result<(), TreasuryError> {
    let push_status = row.text("push_status")?;
    let pay_status = row.maybe_text("pay_status")?;
    let unsettled = matches!(row.maybe_text("push_state")?.as_deref(), Some("SENDING" | "UNKNOWN"));
    let status = format!("{push_status}, {}", pay_status.as_deref().unwrap_or("not paid"));
    let refuse = |why| Err(TreasuryError::DetailState { detail, status: status.clone(), why });
    match (push_status.as_str(), pay_status.as_deref()) {
        _ if unsettled => refuse("its push has no verdict yet; a result or a status query decides"),
        (_, Some("PAID")) => refuse("it is paid"),
        (_, Some("PAY_FAILED")) | ("WAIT_DATA_FIX" | "REJECTED", _) => Ok(()),
        (_, Some(_)) => refuse("it is under way"),
        _ => refuse("it waits to be pushed as it is"),
    }
}

async fn record(
    tx: &mut Tx,
    detail: i64,
    row: &Row,
    fix: &PayeeFix,
    reason: &str,
    user: UserId,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    let old = |column| row.maybe_text(column);
    let new = |part: &Option<String>, old: Option<String>| part.clone().or(old);
    let (name, account, bank) = (old("payee_name")?, old("payee_account")?, old("payee_bank")?);
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_push_fix
           (push_batch_detail_id, order_bill_id, old_payee_name, old_payee_account,
            old_payee_bank, new_payee_name, new_payee_account, new_payee_bank, reason,
            operator_user_id, create_time, update_time)
         VALUES (:detail, :line, :old_name, :old_account, :old_bank, :new_name, :new_account,
            :new_bank, :reason, :user, :now, :now)",
        detail = detail,
        line = row.int("order_bill_id")?,
        old_name = name.clone(),
        old_account = account.clone(),
        old_bank = bank.clone(),
        new_name = new(&fix.name, name),
        new_account = new(&fix.account, account),
        new_bank = new(&fix.bank, bank),
        reason = cut(reason, MAX_MESSAGE),
        user = user.0,
        now = now,
    ))
    .await?;
    Ok(())
}

/// Guard: it waits for data, was refused, or its payment failed.
async fn release(tx: &mut Tx, detail: i64, fix: &PayeeFix) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_batch_detail
         SET push_status = 'WAIT_PUSH', pay_status = NULL, fixed_flag = 1, error_code = NULL,
             error_message = NULL, payee_name = COALESCE(:name, payee_name),
             payee_account = COALESCE(:account, payee_account),
             payee_bank = COALESCE(:bank, payee_bank), update_time = :now
         WHERE id = :detail AND deleted = 0
           AND (push_status IN ('WAIT_DATA_FIX', 'REJECTED') OR pay_status = 'PAY_FAILED')
           AND COALESCE(pay_status, '') <> 'PAID'",
        name = fix.name.as_deref(),
        account = fix.account.as_deref(),
        bank = fix.bank.as_deref(),
        now = now,
        detail = detail,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Its line is approved and not paid, as before the payment failed. Guard: PAY_FAILED.
async fn approve_again(tx: &mut Tx, line: i64) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order_bill
         SET line_status = 20, update_time = :now WHERE id = :line AND line_status = 40",
        now = now,
        line = line,
    ))
    .await?;
    Ok(())
}

/// The batch can be pushed at once; what an earlier push came to says nothing of this one.
async fn open_batch(tx: &mut Tx, batch: i64) -> Result<&'static str, TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET next_handle_time = NULL, error_message = NULL, update_time = :now
         WHERE id = :batch",
        now = now,
        batch = batch,
    ))
    .await?;
    sum_up::batch(tx, batch).await
}
