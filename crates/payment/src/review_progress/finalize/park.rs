//! A violated recheck: every violation is kept by line, and the progress is parked until a person
//! has looked.

use counterfoil_db::{Value, sql, transact};
use counterfoil_protocol::LineId;
use counterfoil_task::{Turn, TurnEnd, WorkError};

use super::recheck::{self, RECHECK_VIOLATED, RecheckSettings, Violation};
use crate::review_progress::facts::Progressed;
use crate::row_batch::insert_rows;

/// Violations named in the progress row's message; all of them are in the table.
const MAX_NAMED: usize = 5;

/// Runs the recheck. Violations are written down page by page, so that a million of them need no
/// more memory than a page.
///
/// # Errors
/// `RECHECK_VIOLATED`, once all violations are on record.
pub(super) async fn unless_payable(
    turn: &Turn<'_>,
    facts: &Progressed,
    settings: RecheckSettings,
) -> Result<(), WorkError> {
    let mut after = Some(0);
    let mut count = 0;
    let mut named = Vec::new();
    while let Some(start) = after {
        let (page, next) = recheck::page(turn.db(), facts, settings, start).await?;
        after = next;
        if count == 0 && !page.is_empty() {
            transact!(forget(turn, facts))?;
        }
        count += page.len();
        for violation in page.iter().take(MAX_NAMED - named.len()) {
            named.push(format!(
                "{} {}: {} ({})",
                violation.station, violation.month, violation.message, violation.code
            ));
        }
        if !page.is_empty() {
            transact!(keep(turn, facts, &page))?;
        }
    }
    if count == 0 {
        return Ok(());
    }
    let message = format!("{count} violations before payment: {}", named.join("; "));
    Err(WorkError::Failed { code: RECHECK_VIOLATED, message })
}

/// Parks an order that has no payment type: a revision may mend it, and nothing else is stuck.
///
/// # Errors
/// `RECHECK_VIOLATED`, always.
pub(super) async fn without_payment_type(
    turn: &Turn<'_>,
    facts: &Progressed,
    why: String,
) -> Result<TurnEnd, WorkError> {
    transact!(forget(turn, facts))?;
    let violation = Violation {
        line: LineId(0),
        station: String::new(),
        month: String::new(),
        code: recheck::PAYMENT_TYPE,
        message: why.clone(),
    };
    let found = [violation];
    transact!(keep(turn, facts, &found))?;
    Err(WorkError::Failed { code: RECHECK_VIOLATED, message: why })
}

/// Characters of a violation's detail.
const MAX_DETAIL: usize = 255;

/// What an earlier look found goes, part by part: it may long be mended.
async fn forget(turn: &Turn<'_>, facts: &Progressed) -> Result<(), WorkError> {
    while transact!(forget_some(turn, facts))? {}
    Ok(())
}

async fn forget_some(turn: &Turn<'_>, facts: &Progressed) -> Result<bool, WorkError> {
    let mut tx = turn.begin().await?;
    let gone = tx
        .execute(sql!(
            "DELETE FROM payment_recheck_violation WHERE id IN (
               SELECT id FROM (
                 SELECT id FROM payment_recheck_violation WHERE progress_id = :progress
                 ORDER BY order_bill_id LIMIT :limit) AS part)",
            progress = facts.id.0,
            limit = MAX_ROWS,
        ))
        .await?;
    tx.commit("review_progress.violations_forgotten").await?;
    Ok(gone > 0)
}

async fn keep(turn: &Turn<'_>, facts: &Progressed, page: &[Violation]) -> Result<(), WorkError> {
    let mut tx = turn.begin().await?;
    let row = |violation: &Violation| -> Vec<Value> {
        vec![
            facts.id.0.into(),
            facts.order.0.into(),
            violation.line.0.into(),
            violation.station.clone().into(),
            violation.month.clone().into(),
            violation.code.into(),
            violation.message.chars().take(MAX_DETAIL).collect::<String>().into(),
        ]
    };
    for part in page.chunks(MAX_ROWS as usize) {
        let insert = "INSERT INTO payment_recheck_violation
               (progress_id, payment_order_id, order_bill_id, station_id, bill_yearmonth,
                violation_code, detail)
             VALUES :rows";
        insert_rows(&mut tx, insert.into(), part.iter().map(row).collect()).await?;
    }
    tx.commit("review_progress.violations").await
}

/// Rows a statement, and a transaction that forgets.
const MAX_ROWS: u32 = 1000;
