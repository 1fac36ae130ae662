//! What people see of batches; reads only.

use counterfoil_db::{Db, Instant, Read, Row, sql};
use serde::Serialize;

use super::TreasuryError;

/// Rows of a page unless asked otherwise, and at most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

/// Which batches to list.
#[derive(Debug, Clone, Default)]
pub struct BatchQuery {
    /// Only of this order.
    pub order: Option<i64>,
    /// Only in this status.
    pub status: Option<String>,
    /// Only after this id.
    pub after: Option<i64>,
    /// Rows at most.
    pub limit: Option<u32>,
}

/// A page of batches.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchPage {
    /// The batches, by id.
    pub batches: Vec<BatchRow>,
    /// `after` of the next page, if there may be one.
    pub next_after: Option<i64>,
}

/// One batch.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchRow {
    /// Its id.
    pub id: i64,
    /// Its number.
    pub batch_no: String,
    /// Its order.
    pub payment_order_id: i64,
    /// Its project company.
    pub project_company_id: i64,
    /// What sets it apart within the company.
    pub split_key: String,
    /// Its status.
    pub status: String,
    /// In fen.
    pub total_amount: i64,
    /// Its details.
    pub detail_count: i64,
    /// Pushes so far.
    pub push_count: i64,
    /// When it is due.
    pub next_handle_time: Option<Instant>,
    /// How it is pushed.
    pub strategy: String,
    /// Why it stands still.
    pub error_message: Option<String>,
}

/// One batch with its pushes and the first of its details.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchView {
    /// The batch.
    #[serde(flatten)]
    pub batch: BatchRow,
    /// Its pushes, oldest first.
    pub pushes: Vec<PushRow>,
    /// Its details: those that need a person first.
    pub details: Vec<DetailRow>,
    /// Details that are left out here; `export payments` has all.
    pub details_not_shown: i64,
}

/// One push.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushRow {
    /// Its message's id.
    pub message_id: String,
    /// SENDING, UNKNOWN, ACCEPTED or REFUSED.
    pub state: String,
    /// Details in it.
    pub detail_count: i64,
    /// In fen.
    pub total_amount: i64,
    /// Of the bytes sent.
    pub body_sha256: String,
    /// Times it was sent or asked about.
    pub send_count: i64,
    /// When it was made.
    pub create_time: Instant,
    /// What was said.
    pub error_message: Option<String>,
}

/// One detail. The account number is masked.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DetailRow {
    /// Its id.
    pub id: i64,
    /// Its line.
    pub order_bill_id: i64,
    /// In fen.
    pub amount: i64,
    /// Who is paid.
    pub payee_name: Option<String>,
    /// The last four characters.
    pub payee_account: Option<String>,
    /// Its push status.
    pub push_status: String,
    /// Its pay status.
    pub pay_status: Option<String>,
    /// What is wrong with it.
    pub error_code: Option<String>,
    /// In words.
    pub error_message: Option<String>,
}

/// Lists batches by id.
///
/// # Errors
/// When the database fails.
pub async fn list(db: &Db, query: &BatchQuery) -> Result<BatchPage, TreasuryError> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let select = sql!(
        "SELECT id, batch_no, payment_order_id, project_company_id, split_key, status,
            total_amount, detail_count, push_count, next_handle_time, strategy, error_message
         FROM fi_resident_income_payment_push_batch
         WHERE deleted = 0 AND id > :after AND (:any_order = 1 OR payment_order_id = :order)
           AND (:any_status = 1 OR status = :status)
         ORDER BY id LIMIT :limit",
        after = query.after.unwrap_or(0),
        any_order = query.order.is_none(),
        order = query.order.unwrap_or(0),
        any_status = query.status.is_none(),
        status = query.status.as_deref().unwrap_or_default(),
        limit = limit,
    );
    let rows = db.rows(select).await?;
    let batches = rows.iter().map(batch_row).collect::<Result<Vec<_>, _>>()?;
    let full = batches.len() >= limit as usize;
    let next_after = batches.last().filter(|_| full).map(|batch| batch.id);
    Ok(BatchPage { batches, next_after })
}

/// One batch, by id or number.
///
/// # Errors
/// [`TreasuryError::BatchNotFound`].
pub async fn show(db: &Db, named: &str) -> Result<BatchView, TreasuryError> {
    let select = sql!(
        "SELECT id, batch_no, payment_order_id, project_company_id, split_key, status,
            total_amount, detail_count, push_count, next_handle_time, strategy, error_message
         FROM fi_resident_income_payment_push_batch
         WHERE deleted = 0 AND (batch_no = :number OR id = :id) ORDER BY id LIMIT 1",
        number = named.trim(),
        id = named.trim().parse::<i64>().unwrap_or(0),
    );
    let row = db.row(select).await?;
    let row = row.ok_or_else(|| TreasuryError::BatchNotFound(super::cut(named, 64)))?;
    let batch = batch_row(&row)?;
    let pushes = pushes(db, batch.id).await?;
    let details = details(db, batch.id).await?;
    let details_not_shown = batch.detail_count.saturating_sub_unsigned(details.len() as u64).max(0);
    Ok(BatchView { batch, pushes, details, details_not_shown })
}

fn batch_row(row: &Row) -> Result<BatchRow, counterfoil_db::Error> {
    Ok(BatchRow {
        id: row.int("id")?,
        batch_no: row.text("batch_no")?,
        payment_order_id: row.int("payment_order_id")?,
        project_company_id: row.int("project_company_id")?,
        split_key: row.text("split_key")?,
        status: row.text("status")?,
        total_amount: row.int("total_amount")?,
        detail_count: row.int("detail_count")?,
        push_count: row.int("push_count")?,
        next_handle_time: row.maybe_instant("next_handle_time")?,
        strategy: row.text("strategy")?,
        error_message: row.maybe_text("error_message")?,
    })
}

async fn pushes(db: &Db, batch: i64) -> Result<Vec<PushRow>, TreasuryError> {
    let query = sql!(
        "SELECT message_id, push_state, detail_count, total_amount, body_sha256, send_count,
            create_time, error_message
         FROM fi_resident_income_payment_push WHERE push_batch_id = :batch
         ORDER BY push_no LIMIT :limit",
        batch = batch,
        limit = MAX_LIMIT,
    );
    let row = |row: &Row| {
        Ok(PushRow {
            message_id: row.text("message_id")?,
            state: row.text("push_state")?,
            detail_count: row.int("detail_count")?,
            total_amount: row.int("total_amount")?,
            body_sha256: row.text("body_sha256")?,
            send_count: row.int("send_count")?,
            create_time: row.instant("create_time")?,
            error_message: row.maybe_text("error_message")?,
        })
    };
    db.rows(query).await?.iter().map(row).collect()
}

async fn details(db: &Db, batch: i64) -> Result<Vec<DetailRow>, TreasuryError> {
    let query = sql!(
        "SELECT id, order_bill_id, amount, payee_name, payee_account, push_status, pay_status,
            error_code, error_message
         FROM fi_resident_income_payment_push_batch_detail
         WHERE push_batch_id = :batch AND deleted = 0
         ORDER BY CASE WHEN push_status IN ('WAIT_DATA_FIX', 'REJECTED')
                         OR pay_status = 'PAY_FAILED' THEN 0 ELSE 1 END, id
         LIMIT :limit",
        batch = batch,
        limit = MAX_LIMIT,
    );
    let row = |row: &Row| {
        Ok(DetailRow {
            id: row.int("id")?,
            order_bill_id: row.int("order_bill_id")?,
            amount: row.int("amount")?,
            payee_name: row.maybe_text("payee_name")?,
            payee_account: row.maybe_text("payee_account")?.map(|account| masked(&account)),
            push_status: row.text("push_status")?,
            pay_status: row.maybe_text("pay_status")?,
            error_code: row.maybe_text("error_code")?,
            error_message: row.maybe_text("error_message")?,
        })
    };
    db.rows(query).await?.iter().map(row).collect()
}

/// The last four characters; a shorter number shows nothing.
fn masked(account: &str) -> String {
    let count = account.chars().count();
    if count <= 4 {
        return "****".to_owned();
    }
    let last: String = account.chars().skip(count - 4).collect();
    format!("****{last}")
}
