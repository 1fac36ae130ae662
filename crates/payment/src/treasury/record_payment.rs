//! An OFFLINE order was paid outside: a person records it, with the evidence.
//!
//! Source: payment-flow.md "Submit and S03 build", last sentence. The record comes first, then the
//! lines in batches, then the order, so that a crash leaves an order at 40 with its record, and
//! recording the same again goes on from there.

use counterfoil_db::{Db, Instant, Read, Row, Tx, sql, transact};
use counterfoil_protocol::{OrderId, UserId};
use serde::Serialize;

use super::refresh::{self, OrderLines};
use super::{CHUNK, MAX_MESSAGE, TreasuryError, result};
use crate::PaymentError;

/// A recorded payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The order.
    pub payment_order_id: OrderId,
    /// The record's row.
    pub record_id: i64,
    /// Lines that are PAID by it.
    pub lines: i64,
    /// Whether it was recorded before: nothing changed now.
    pub known: bool,
}

/// Records that an OFFLINE order at 40 was paid at `paid_at` (now, when not said).
///
/// # Errors
/// Refuses other orders, blank evidence, times to come, and other evidence than was recorded.
pub async fn record_payment(
    db: &Db,
    order: OrderId,
    evidence: &str,
    paid_at: Option<Instant>,
    user: UserId,
) -> Result<Recorded, TreasuryError> {
    let evidence = evidence.trim();
    if evidence.is_empty() || evidence.chars().count() > MAX_MESSAGE {
        let why = format!("say what proves the payment, in {MAX_MESSAGE} characters at most");
        return Err(TreasuryError::invalid("evidence", why));
    }
    let begun = transact!(begin(db, order, evidence, paid_at, user))?;
    let (record, lines) = match begun {
        Begun::Open { record, lines } => (record, lines),
        Begun::Done { record, count } => {
            let known = true;
            return Ok(Recorded {
                payment_order_id: order,
                record_id: record,
                lines: count,
                known,
            });
        }
    };
    while transact!(one_batch(db, record, lines))? {}
    let count = transact!(finish(db, record, lines, evidence, user))?;
    Ok(Recorded { payment_order_id: order, record_id: record, lines: count, known: false })
}

enum Begun {
    Open { record: i64, lines: OrderLines },
    Done { record: i64, count: i64 },
}

async fn begin(
    db: &Db,
    order: OrderId,
    evidence: &str,
    paid_at: Option<Instant>,
    user: UserId,
) -> Result<Begun, TreasuryError> {
    let mut tx = db.begin().await?;
    let row = lock_order(&mut tx, order.0).await?.ok_or(PaymentError::OrderNotFound(order))?;
    let lines = OrderLines {
        order: order.0,
        data: row.int("current_publish_version")?,
        round: row.int("submit_round")?,
    };
    if let Some(known) = record_of(&mut tx, lines).await? {
        if known.text("evidence")? != evidence {
            return Err(TreasuryError::AlreadyRecorded { order });
        }
        let record = known.int("id")?;
        let done = known.text("record_status")? == "DONE";
        let count = known.int("line_count")?;
        tx.rollback().await?;
        return Ok(if done {
            Begun::Done { record, count }
        } else {
            Begun::Open { record, lines }
        });
    }
    may_be_recorded(order, &row)?;
    let now = tx.now();
    if paid_at.is_some_and(|paid_at| paid_at > now) {
        return Err(TreasuryError::invalid("paid-at", "that time is yet to come"));
    }
    let record = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_offline_payment
               (payment_order_id, data_version, submit_round, record_status, evidence, paid_time,
                operator_user_id, create_time, update_time)
             VALUES (:order, :data, :round, 'RECORDING', :evidence, :paid_at, :user, :now, :now)",
            order = lines.order,
            data = lines.data,
            round = lines.round,
            evidence = evidence,
            paid_at = paid_at.unwrap_or(now),
            user = user.0,
            now = now,
        ))
        .await?;
    tx.commit("treasury.record.begin").await?;
    Ok(Begun::Open { record, lines })
}

async fn lock_order(tx: &mut Tx, order: i64) -> Result<Option<Row>, TreasuryError> {
    let query = sql!(
        "SELECT status, payment_type, current_publish_version, submit_round
         FROM fi_resident_income_payment_order WHERE id = :order AND deleted = 0 {for_update}",
        order = order,
    );
    Ok(tx.row(query).await?)
}

fn may_be_recorded(order: OrderId, row: &Row) -> Result<(), TreasuryError> {
    let status = row.int("status")?;
    let kind = row.maybe_text("payment_type")?;
    if status == 40 && kind.as_deref() == Some("OFFLINE") {
        return Ok(());
    }
    let kind = kind.unwrap_or_else(|| "no payment type yet".into());
    let why = format!("only an order at 40 that is paid OFFLINE can be recorded, not {kind}");
    Err(PaymentError::OrderState { order, status: status.to_string(), why }.into())
}

async fn record_of(tx: &mut Tx, lines: OrderLines) -> Result<Option<Row>, TreasuryError> {
    let query = sql!(
        "SELECT id, record_status, evidence, line_count
         FROM fi_resident_income_payment_offline_payment
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round",
        order = lines.order,
        data = lines.data,
        round = lines.round,
    );
    Ok(tx.row(query).await?)
}

/// One range of lines becomes PAID, with its shard and the cursor. False when none is left.
async fn one_batch(db: &Db, record: i64, lines: OrderLines) -> Result<bool, TreasuryError> {
    let mut tx = db.begin().await?;
    lock_order(&mut tx, lines.order).await?;
    let cursor = sql!(
        "SELECT cursor_order_bill_id FROM fi_resident_income_payment_offline_payment
         WHERE id = :record AND record_status = 'RECORDING' {for_update}",
        record = record,
    );
    let after = tx.count(cursor).await?;
    let ids = unpaid(&mut tx, lines, after).await?;
    let Some(last) = ids.last().copied() else {
        tx.rollback().await?;
        return Ok(false);
    };
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order_bill
         SET line_status = 30, update_time = :now
         WHERE id IN :ids AND line_type = 10 AND deleted = 0",
        now = now,
    );
    tx.execute(update.bind_list("ids", ids.iter().copied())).await?;
    refresh::plan(&mut tx, lines, record, &ids).await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_offline_payment
         SET cursor_order_bill_id = :last, line_count = line_count + :lines, update_time = :now
         WHERE id = :record",
        last = last,
        lines = i64::try_from(ids.len()).unwrap_or(i64::MAX),
        now = now,
        record = record,
    ))
    .await?;
    tx.commit("treasury.record.batch").await?;
    Ok(true)
}

async fn unpaid(tx: &mut Tx, lines: OrderLines, after: i64) -> Result<Vec<i64>, TreasuryError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND line_type = 10 AND deleted = 0 AND id > :after
         ORDER BY id LIMIT :limit",
        order = lines.order,
        data = lines.data,
        round = lines.round,
        after = after,
        limit = CHUNK,
    );
    let rows = tx.rows(query).await?;
    Ok(rows.iter().map(|row| row.int("id")).collect::<Result<_, _>>()?)
}

/// The order is PAID, in the commit that closes the record and writes the log. Guard: 40, OFFLINE,
/// the version that was recorded.
async fn finish(
    db: &Db,
    record: i64,
    lines: OrderLines,
    evidence: &str,
    user: UserId,
) -> Result<i64, TreasuryError> {
    let mut tx = db.begin().await?;
    lock_order(&mut tx, lines.order).await?;
    let order = OrderId(lines.order);
    if result::has_unpaid(&mut tx, lines).await? {
        return Err(PaymentError::Conflict(format!("order {order}")).into());
    }
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order SET status = 50, update_time = :now
         WHERE id = :order AND status = 40 AND payment_type = 'OFFLINE'
           AND current_publish_version = :data AND submit_round = :round",
        now = now,
        order = lines.order,
        data = lines.data,
        round = lines.round,
    );
    if tx.execute(update).await? != 1 {
        return Err(PaymentError::Conflict(format!("order {order}")).into());
    }
    let close = sql!(
        "UPDATE fi_resident_income_payment_offline_payment
         SET record_status = 'DONE', update_time = :now
         WHERE id = :record AND record_status = 'RECORDING'",
        now = now,
        record = record,
    );
    if tx.execute(close).await? != 1 {
        return Err(PaymentError::Conflict(format!("order {order}")).into());
    }
    log(&mut tx, lines, evidence, user).await?;
    let count = sql!(
        "SELECT line_count FROM fi_resident_income_payment_offline_payment WHERE id = :record",
        record = record,
    );
    let count = tx.count(count).await?;
    tx.commit("treasury.record.finish").await?;
    Ok(count)
}

async fn log(
    tx: &mut Tx,
    lines: OrderLines,
    evidence: &str,
    user: UserId,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_order_log
           (payment_order_id, operation_type, from_status, to_status, operation_time,
            operation_remark, data_version, operator_user_id, create_time, update_time)
         VALUES (:order, 'PAYMENT_RECORDED', 40, 50, :now, :evidence, :data, :user, :now, :now)",
        order = lines.order,
        now = now,
        evidence = evidence,
        data = lines.data,
        user = user.0,
    ))
    .await?;
    Ok(())
}
