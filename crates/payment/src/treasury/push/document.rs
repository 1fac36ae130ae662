//! What one push sends: the details that wait, without those that a person must look at.

use chrono::TimeDelta;
use counterfoil_db::{Bind, Instant, Read, Row, Text, Tx, Value, sql};
use counterfoil_protocol::Fen;

use crate::row_batch::{insert_rows, update_rows};
use crate::treasury::port::{Instruction, InstructionLine, LineFault, Message, PaymentChannel};
use crate::treasury::{CHUNK, MAX_BATCH_DETAILS, TreasuryError};

/// The bytes of a push and what is in them.
pub(super) struct Document {
    pub(super) number: i64,
    pub(super) message: Message,
    lines: Vec<InstructionLine>,
}

impl Document {
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.lines.len()).unwrap_or(i64::MAX)
    }

    pub(super) fn total(&self) -> i64 {
        self.lines.iter().map(|line| line.amount.0).sum()
    }
}

/// The message's id: the batch and the number of the push, so that it is never used twice.
fn message_id(batch: i64, number: i64) -> String {
    format!("CF{batch}-{number}")
}

/// The line's id in a push: the detail and the number of the batch's push.
fn end_to_end_id(detail: i64, number: i64) -> String {
    format!("CFD{detail}-{number}")
}

/// A fixed offset is exact: Asia/Shanghai has had no daylight saving since 1991.
fn day_in_shanghai(instant: Instant) -> String {
    (instant + TimeDelta::hours(8)).format("%Y-%m-%d").to_string()
}

pub(super) enum Made {
    Document(Document),
    /// Every detail waits for data.
    NeedsData,
    /// Nobody says whose account pays.
    NoPayer,
}

/// Makes the bytes. Details that cannot be sent as they are wait for data; the others go.
pub(super) async fn make(
    tx: &mut Tx,
    batch: i64,
    facts: &Row,
    channel: &dyn PaymentChannel,
) -> Result<Made, TreasuryError> {
    let payer_account = facts.maybe_text("payer_account")?.unwrap_or_default();
    if payer_account.trim().is_empty() {
        return Ok(Made::NoPayer);
    }
    let number = next_number(tx, batch).await?;
    let mut lines = Vec::new();
    let mut faults = Vec::new();
    for line in waiting(tx, batch, number).await? {
        match missing(&line).or_else(|| channel.fault(&line)) {
            None => lines.push(line),
            Some(fault) => faults.push((line.detail, fault)),
        }
    }
    set_aside(tx, faults).await?;
    if lines.is_empty() {
        return Ok(Made::NeedsData);
    }
    let message_id = message_id(batch, number);
    let instruction = Instruction {
        message_id: message_id.clone(),
        batch_no: facts.text("batch_no")?,
        created: tx.now(),
        pay_day: day_in_shanghai(tx.now()),
        payer_name: facts.maybe_text("company")?.unwrap_or_default(),
        payer_account,
        lines,
    };
    let body = channel.render(&instruction);
    let sha256 = crate::treasury::sha256(body.as_bytes());
    let message = Message { message_id, body, sha256 };
    Ok(Made::Document(Document { number, message, lines: instruction.lines }))
}

async fn next_number(tx: &mut Tx, batch: i64) -> Result<i64, TreasuryError> {
    let query = sql!(
        "SELECT MAX(push_no) FROM fi_resident_income_payment_push WHERE push_batch_id = :batch",
        batch = batch,
    );
    Ok(tx.count(query).await? + 1)
}

async fn waiting(
    tx: &mut Tx,
    batch: i64,
    number: i64,
) -> Result<Vec<InstructionLine>, TreasuryError> {
    let query = sql!(
        "SELECT d.id, d.amount, d.payee_name, d.payee_account, d.payee_bank,
            l.station_id, l.bill_yearmonth
         FROM fi_resident_income_payment_push_batch_detail d
         LEFT JOIN fi_resident_income_payment_order_bill l ON l.id = d.order_bill_id
         WHERE d.push_batch_id = :batch AND d.push_status = 'WAIT_PUSH' AND d.deleted = 0
         ORDER BY d.id LIMIT :limit",
        batch = batch,
        limit = MAX_BATCH_DETAILS + 1,
    );
    let rows = tx.rows(query).await?;
    if rows.len() > usize::try_from(MAX_BATCH_DETAILS).unwrap_or(usize::MAX) {
        let why = format!("a message holds {MAX_BATCH_DETAILS} details at most");
        return Err(TreasuryError::BatchState { batch, status: "too large".into(), why });
    }
    let line = |row: &Row| {
        let detail = row.int("id")?;
        let text = |column| Ok::<_, TreasuryError>(row.maybe_text(column)?.unwrap_or_default());
        Ok(InstructionLine {
            detail,
            end_to_end_id: end_to_end_id(detail, number),
            amount: Fen(row.int("amount")?),
            payee_name: text("payee_name")?,
            payee_account: text("payee_account")?,
            payee_bank: text("payee_bank")?,
            purpose: format!("{} {}", text("station_id")?, text("bill_yearmonth")?),
        })
    };
    rows.iter().map(line).collect()
}

/// What no channel can do without.
fn missing(line: &InstructionLine) -> Option<LineFault> {
    let fault = |code, message: &str| Some(LineFault { code, message: message.to_owned() });
    if line.amount <= Fen::ZERO {
        return fault("amount-not-positive", "the amount is not above zero");
    }
    if line.payee_name.trim().is_empty() || line.payee_account.trim().is_empty() {
        return fault("payee-missing", "the payee's name or account number is missing");
    }
    None
}

/// Guard: WAIT_PUSH.
async fn set_aside(tx: &mut Tx, faults: Vec<(i64, LineFault)>) -> Result<(), TreasuryError> {
    for some in faults.chunks(CHUNK as usize) {
        let row = |(detail, fault): &(i64, LineFault)| {
            vec![
                detail.bind(),
                fault.code.bind(),
                crate::treasury::cut(&fault.message, 1000).bind(),
            ]
        };
        let rows: Vec<Vec<Value>> = some.iter().map(row).collect();
        update_rows(tx, SET_ASIDE, rows).await?;
    }
    Ok(())
}

const SET_ASIDE: Text = Text::Forked {
    standard: "WITH fresh (id, error_code, error_message) AS (VALUES :rows)
     UPDATE fi_resident_income_payment_push_batch_detail AS d
     SET push_status = 'WAIT_DATA_FIX', error_code = fresh.error_code,
         error_message = fresh.error_message, update_time = :now
     FROM fresh WHERE d.id = fresh.id AND d.push_status = 'WAIT_PUSH'",
    mariadb: "UPDATE fi_resident_income_payment_push_batch_detail d
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', error_code VARCHAR(64) PATH '$[1]',
         error_message VARCHAR(1000) PATH '$[2]')) fresh
       ON d.id = fresh.id
     SET d.push_status = 'WAIT_DATA_FIX', d.error_code = fresh.error_code,
         d.error_message = fresh.error_message, d.update_time = :now
     WHERE d.push_status = 'WAIT_PUSH'",
};

/// The history: which detail went out with which push, with which payee.
pub(super) async fn record_items(
    tx: &mut Tx,
    push: i64,
    document: &Document,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    for some in document.lines.chunks(CHUNK as usize) {
        let row = |line: &InstructionLine| {
            vec![
                push.bind(),
                line.detail.bind(),
                line.end_to_end_id.as_str().bind(),
                line.amount.0.bind(),
                line.payee_name.as_str().bind(),
                line.payee_account.as_str().bind(),
                line.payee_bank.as_str().bind(),
                now.bind(),
                now.bind(),
            ]
        };
        insert_rows(tx, INSERT_ITEMS, some.iter().map(row).collect()).await?;
        let update = sql!(
            "UPDATE fi_resident_income_payment_push_batch_detail
             SET push_id = :push, error_code = NULL, error_message = NULL, update_time = :now
             WHERE id IN :details",
            push = push,
            now = now,
        );
        tx.execute(update.bind_list("details", some.iter().map(|line| line.detail))).await?;
    }
    Ok(())
}

const INSERT_ITEMS: Text = Text::Same(
    "INSERT INTO fi_resident_income_payment_push_item
       (push_id, push_batch_detail_id, end_to_end_id, amount, payee_name, payee_account,
        payee_bank, create_time, update_time)
     VALUES :rows",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_enough_for_a_bank_and_never_used_twice() {
        let longest = end_to_end_id(i64::MAX, 9_999_999);
        assert!(longest.len() <= 35, "{longest}");
        assert!(message_id(i64::MAX, 9_999_999).len() <= 35);
        assert_ne!(end_to_end_id(1, 1), end_to_end_id(1, 2));
    }

    #[test]
    fn the_day_turns_at_midnight_in_shanghai() {
        for (instant, day) in
            [("2026-09-30T15:59:59Z", "2026-09-30"), ("2026-09-30T16:00:00Z", "2026-10-01")]
        {
            assert_eq!(day_in_shanghai(instant.parse().unwrap()), day, "{instant}");
        }
    }
}
