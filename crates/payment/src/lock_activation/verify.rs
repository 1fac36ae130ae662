//! Step 7: proof, inside the completing transaction, that locks, lines and tables agree.

use counterfoil_db::{Query, Read, Tx, sql};
use counterfoil_task::WorkError;

use super::clean_up;
use crate::version::{Mode, VersionContext};

/// Rows named in a failed check.
const MAX_NAMED: u32 = 5;

/// Fails with the first rows that differ. Zero payable lines and zero locks pass.
pub(super) async fn verify(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    counts_agree(tx, context).await?;
    if context.mode == Mode::Revise {
        no_source_lock_left(tx, context).await?;
    }
    references_are_right(tx, context).await?;
    if context.mode == Mode::Revise {
        no_old_reference_left(tx, context).await?;
    }
    Ok(())
}

fn failed(message: String) -> WorkError {
    WorkError::failed("lock-verification", message)
}

async fn counts_agree(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    let lines = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND line_type = 10
           AND deleted = 0",
        order = context.order.0,
        data = context.target_data.0,
    );
    let locks = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND session_id = :session
           AND submit_attempt = :attempt AND data_version = :data AND lock_status = 'ACTIVE'",
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        data = context.target_data.0,
    );
    let (lines, locks) = (tx.count(lines).await?, tx.count(locks).await?);
    if lines == locks {
        return Ok(());
    }
    let unlocked = first_unlocked(tx, context).await?;
    let without_line = first_without_line(tx, context).await?;
    Err(failed(format!(
        "{lines} PAYABLE lines but {locks} ACTIVE locks; first lines without a lock: {unlocked}; \
         first locks without a line: {without_line}"
    )))
}

async fn first_unlocked(tx: &mut Tx, context: &VersionContext) -> Result<String, WorkError> {
    let query = sql!(
        "SELECT l.id AS id FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.line_type = 10
           AND l.deleted = 0
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock k
             WHERE k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
               AND k.payment_order_id + 0 = :order AND k.session_id = :session
               AND k.submit_attempt = :attempt AND k.data_version = :data)
         ORDER BY l.id LIMIT :limit",
        order = context.order.0,
        data = context.target_data.0,
        session = context.session.0,
        attempt = context.attempt.0,
        limit = MAX_NAMED,
    );
    named(tx, query).await
}

async fn first_without_line(tx: &mut Tx, context: &VersionContext) -> Result<String, WorkError> {
    let query = sql!(
        "SELECT k.id AS id FROM fi_resident_income_payment_bill_lock k
         WHERE k.payment_order_id = :order AND k.session_id = :session
           AND k.submit_attempt = :attempt AND k.data_version = :data
           AND k.lock_status = 'ACTIVE'
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order_bill l
             WHERE l.id = k.order_bill_id AND l.payment_order_id = :order
               AND l.data_version = :data AND l.line_type = 10 AND l.deleted = 0)
         ORDER BY k.id LIMIT :limit",
        order = context.order.0,
        session = context.session.0,
        attempt = context.attempt.0,
        data = context.target_data.0,
        limit = MAX_NAMED,
    );
    named(tx, query).await
}

async fn no_source_lock_left(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    let query = sql!(
        "SELECT k.id AS id FROM fi_resident_income_payment_bill_lock k
         JOIN fi_resident_income_payment_order_bill s ON s.id = k.order_bill_id
         WHERE k.payment_order_id = :order AND k.data_version = :source_data
           AND k.submit_round = :source_round AND k.lock_status = 'ACTIVE' AND s.line_type = 10
         ORDER BY k.id LIMIT :limit",
        order = context.order.0,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        limit = MAX_NAMED,
    );
    let left = named(tx, query).await?;
    if left.is_empty() {
        return Ok(());
    }
    Err(failed(format!("locks of the source version neither kept nor released: {left}")))
}

async fn references_are_right(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    let mut wrong = Vec::new();
    if tx.count(of_attempt(WRONG, context)).await? > 0 {
        for row in tx.rows(of_attempt(WRONG_REFERENCES, context)).await? {
            wrong.push(format!("line {}: {}", row.int("id")?, row.text("wrong")?));
        }
    }
    let referring = tx.count(of_attempt(REFERRING, context)).await?;
    if referring != tx.count_by_hash(of_attempt(LOCKED, context)).await? {
        for row in tx.rows(of_attempt(UNLOCKED, context)).await? {
            wrong.push(format!("line {}: no ACTIVE lock", row.int("id")?));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(failed(format!("references missing or wrong: {}", wrong.join(", "))))
}

fn of_attempt(text: &'static str, context: &VersionContext) -> Query {
    sql!(
        text,
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        session = context.session.0,
        attempt = context.attempt.0,
        limit = MAX_NAMED,
    )
}

async fn no_old_reference_left(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    let left = clean_up::left(tx, context, MAX_NAMED).await?;
    if left.is_empty() {
        return Ok(());
    }
    let rows: Vec<String> = left.iter().map(|(table, id)| format!("{table} {id}")).collect();
    Err(failed(format!("old references or wrongly restored status left: {}", rows.join(", "))))
}

async fn named(tx: &mut Tx, query: Query) -> Result<String, WorkError> {
    let mut ids = Vec::new();
    for row in tx.rows(query).await? {
        ids.push(row.int("id")?.to_string());
    }
    Ok(ids.join(", "))
}

macro_rules! wrong {
    ($record:literal, $id:literal) => {
        concat!(
            "(l.",
            $id,
            " IS NOT NULL AND (",
            $record,
            ".id IS NULL OR ",
            $record,
            ".payment_status <> 30 OR COALESCE(",
            $record,
            ".locked_payment_order_id, 0) <> l.payment_order_id OR COALESCE(",
            $record,
            ".locked_order_bill_id, 0) <> l.id))"
        )
    };
}

/// Payable lines that name a record.
macro_rules! referring {
    () => {
        "FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND (l.diff_id IS NOT NULL OR l.small_bill_id IS NOT NULL
                OR l.partner_bill_id IS NOT NULL)"
    };
}

const REFERRING: &str = concat!("SELECT COUNT(*) ", referring!());

/// Those of them that have an ACTIVE lock of this very submission.
const LOCKED: &str = concat!(
    "SELECT COUNT(*) ",
    referring!(),
    " AND l.id IN (SELECT k.order_bill_id FROM fi_resident_income_payment_bill_lock k
        WHERE k.payment_order_id = :order AND k.session_id = :session
          AND k.submit_attempt = :attempt AND k.data_version = :data
          AND k.submit_round = :round AND k.lock_status = 'ACTIVE')"
);

/// The first of those that have none: looked for when the numbers differ. The locks of a line are
/// counted, so that no planner turns the question into a join over all locks.
const UNLOCKED: &str = concat!(
    "SELECT l.id AS id ",
    referring!(),
    " AND (SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock k
        WHERE k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
          AND k.payment_order_id + 0 = :order AND k.data_version = :data
          AND k.submit_round = :round AND k.session_id = :session
          AND k.submit_attempt = :attempt) = 0
      ORDER BY l.id LIMIT :limit"
);

/// Payable lines that name a record which is missing, deleted, of another status, or whose
/// references are not the line's.
macro_rules! wrong_references {
    () => {
        concat!(
            "FROM fi_resident_income_payment_order_bill l
             LEFT JOIN fi_monthly_income_difference d ON d.id = l.diff_id AND d.deleted = 0
             LEFT JOIN fi_customer_bill b ON b.id = l.small_bill_id AND b.deleted = 0
             LEFT JOIN fi_customer_bill_partner p ON p.id = l.partner_bill_id AND p.deleted = 0
             WHERE l.payment_order_id = :order AND l.data_version = :data
               AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
               AND (",
            wrong!("d", "diff_id"),
            " OR ",
            wrong!("b", "small_bill_id"),
            " OR ",
            wrong!("p", "partner_bill_id"),
            ")"
        )
    };
}

/// Counted first: in the hope of five wrong ones near the beginning, PostgreSQL and MariaDB walk
/// all lines there are by their ids, and look every record up.
const WRONG: &str = concat!("SELECT COUNT(*) ", wrong_references!());

const WRONG_REFERENCES: &str = concat!(
    "SELECT l.id AS id, CASE WHEN ",
    wrong!("d", "diff_id"),
    " THEN 'ledger' WHEN ",
    wrong!("b", "small_bill_id"),
    " THEN 'small bill' ELSE 'partner bill' END AS wrong ",
    wrong_references!(),
    " ORDER BY l.id + 0 LIMIT :limit"
);
