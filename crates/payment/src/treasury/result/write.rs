//! Writing what a report decided.

use counterfoil_db::{Bind, Read, Text, Tx, Value, sql};

use super::decide::{Change, Outcome};
use crate::row_batch::{insert_rows, update_rows};
use crate::treasury::port::{ReportEntry, Reported};
use crate::treasury::refresh::OrderLines;
use crate::treasury::{CHUNK, TreasuryError, cut};

/// Every entry with its outcome, in the report's order.
pub(super) async fn entries(
    tx: &mut Tx,
    result: i64,
    entries: &[(ReportEntry, Outcome, Option<i64>)],
) -> Result<(), TreasuryError> {
    let now = tx.now();
    let mut number = 0_i64;
    for some in entries.chunks(CHUNK as usize) {
        let mut rows = Vec::with_capacity(some.len());
        for (entry, outcome, detail) in some {
            number += 1;
            rows.push(vec![
                result.bind(),
                number.bind(),
                cut(&entry.end_to_end_id, 64).bind(),
                (*detail).bind(),
                entry.status.as_str().bind(),
                entry.reason_code.as_deref().map(|text| cut(text, 64)).bind(),
                entry.reason.as_deref().map(|text| cut(text, 255)).bind(),
                entry.amount.map(|amount| amount.0).bind(),
                outcome.as_str().bind(),
                now.bind(),
                now.bind(),
            ]);
        }
        insert_rows(tx, INSERT_ENTRIES, rows).await?;
    }
    Ok(())
}

const INSERT_ENTRIES: Text = Text::Same(
    "INSERT INTO fi_resident_income_payment_push_result_entry
       (push_result_id, entry_no, end_to_end_id, push_batch_detail_id, reported, reason_code,
        reason, amount, outcome, create_time, update_time)
     VALUES :rows",
);

/// Details as reported. What an answer to the push itself refuses was never accepted: REJECTED.
pub(super) async fn details(
    tx: &mut Tx,
    changes: &[Change],
    by_answer: bool,
) -> Result<(), TreasuryError> {
    for some in changes.chunks(CHUNK as usize) {
        let row = |change: &Change| {
            let refused = by_answer && change.status == Reported::Rejected;
            let push_status = if refused { "REJECTED" } else { "PUSHED" };
            let failed = change.status == Reported::Rejected;
            let code = failed.then(|| change.reason_code.as_deref().unwrap_or("rejected"));
            let reason = failed.then(|| change.reason.as_deref().unwrap_or("no reason was told"));
            vec![
                change.detail.bind(),
                push_status.bind(),
                change.status.pay_status().bind(),
                code.map(|text| cut(text, 64)).bind(),
                reason.map(|text| cut(text, 1000)).bind(),
            ]
        };
        let rows: Vec<Vec<Value>> = some.iter().map(row).collect();
        update_rows(tx, UPDATE_DETAILS, rows).await?;
    }
    Ok(())
}

const UPDATE_DETAILS: Text = Text::Forked {
    standard: "WITH fresh (id, push_status, pay_status, error_code, error_message)
                 AS (VALUES :rows)
     UPDATE fi_resident_income_payment_push_batch_detail AS d
     SET push_status = fresh.push_status, pay_status = fresh.pay_status,
         error_code = fresh.error_code, error_message = fresh.error_message,
         paid_time = CASE WHEN fresh.pay_status = 'PAID' THEN :now ELSE NULL END,
         update_time = :now
     FROM fresh WHERE d.id = fresh.id",
    mariadb: "UPDATE fi_resident_income_payment_push_batch_detail d
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', push_status VARCHAR(16) PATH '$[1]',
         pay_status VARCHAR(16) PATH '$[2]', error_code VARCHAR(64) PATH '$[3]',
         error_message VARCHAR(1000) PATH '$[4]')) fresh
       ON d.id = fresh.id
     SET d.push_status = fresh.push_status, d.pay_status = fresh.pay_status,
         d.error_code = fresh.error_code, d.error_message = fresh.error_message,
         d.paid_time = CASE WHEN fresh.pay_status = 'PAID' THEN :now ELSE NULL END,
         d.update_time = :now",
};

/// Lines PAID or PAY_FAILED.
pub(super) async fn lines(tx: &mut Tx, changes: &[Change]) -> Result<(), TreasuryError> {
    for (status, code) in [(Reported::Paid, 30), (Reported::Rejected, 40)] {
        let lines = changes.iter().filter(|change| change.pays == Some(status));
        let lines: Vec<i64> = lines.map(|change| change.line).collect();
        for some in lines.chunks(CHUNK as usize) {
            let now = tx.now();
            let update = sql!(
                "UPDATE fi_resident_income_payment_order_bill
                 SET line_status = :status, update_time = :now
                 WHERE id IN :lines AND line_type = 10 AND deleted = 0",
                status = code,
                now = now,
            );
            tx.execute(update.bind_list("lines", some.iter().copied())).await?;
        }
    }
    Ok(())
}

/// 40 → 50 once every payable line is PAID; 50 → 40 when a payment came back.
pub(super) async fn order(
    tx: &mut Tx,
    lines: OrderLines,
    changes: &[Change],
) -> Result<(), TreasuryError> {
    let came = |status| changes.iter().any(|change| change.pays == Some(status));
    if came(Reported::Rejected) && move_order(tx, lines, 50, 40).await? {
        log(tx, lines, "PAYMENT_RETURNED", 50, 40).await?;
    }
    if came(Reported::Paid)
        && !has_unpaid(tx, lines).await?
        && move_order(tx, lines, 40, 50).await?
    {
        log(tx, lines, "PAID", 40, 50).await?;
    }
    Ok(())
}

/// The first, not any: in the hope of an early one PostgreSQL read the lines of all orders.
pub(in crate::treasury) async fn has_unpaid(
    tx: &mut Tx,
    lines: OrderLines,
) -> Result<bool, TreasuryError> {
    let query = sql!(
        "SELECT COUNT(*) FROM (
           SELECT id FROM fi_resident_income_payment_order_bill
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
             AND line_type = 10 AND deleted = 0 AND line_status <> 30
           ORDER BY id LIMIT 1) AS one",
        order = lines.order,
        data = lines.data,
        round = lines.round,
    );
    Ok(tx.count(query).await? > 0)
}

/// Guard: status, pointer and round.
async fn move_order(
    tx: &mut Tx,
    lines: OrderLines,
    from: i64,
    to: i64,
) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET status = :to_status, update_time = :now
         WHERE id = :order AND status = :from_status AND current_publish_version = :data
           AND submit_round = :round AND deleted = 0",
        to_status = to,
        now = now,
        order = lines.order,
        from_status = from,
        data = lines.data,
        round = lines.round,
    );
    Ok(tx.execute(update).await? == 1)
}

async fn log(
    tx: &mut Tx,
    lines: OrderLines,
    what: &'static str,
    from: i64,
    to: i64,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_order_log
           (payment_order_id, operation_type, from_status, to_status, operation_time,
            data_version, create_time, update_time)
         VALUES (:order, :what, :from_status, :to_status, :now, :data, :now, :now)",
        order = lines.order,
        what = what,
        from_status = from,
        to_status = to,
        now = now,
        data = lines.data,
    ))
    .await?;
    Ok(())
}
