//! The evidence of an order, row by row: hashes of bytes, never more than was kept.

use counterfoil_db::{Db, Instant, Read, Result, Row, sql};
use counterfoil_protocol::OrderId;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::MAX_ROWS;
use crate::order_view::Money;

/// A reviewers' decision as it came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionEvidence {
    /// S07's task.
    pub task_code: String,
    /// Who signed it.
    pub app_key: String,
    /// Whether that was proved.
    pub signature_verdict: String,
    /// The body, as received.
    pub received_body: String,
    /// SHA-256 of those bytes.
    pub body_sha256: String,
    /// When.
    pub received_time: Option<Instant>,
}

/// One chunk to one partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryEvidence {
    /// Its idempotency key.
    pub idempotency_key: String,
    /// The partner.
    pub partner_id: Option<i64>,
    /// SUCCESS, FAIL, UNKNOWN, SKIPPED or WAIT_PROCESS.
    pub status: String,
    /// How often it was sent.
    pub attempt_count: i64,
    /// SHA-256 of the request.
    pub request_sha256: String,
    /// SHA-256 of the answer, if there is one.
    pub response_sha256: Option<String>,
    /// When it was sent last.
    pub sent_time: Option<Instant>,
}

/// One push batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchEvidence {
    /// Its number.
    pub batch_no: String,
    /// Whose money.
    pub project_company_id: i64,
    /// Its status.
    pub status: String,
    /// Its details.
    pub detail_count: i64,
    /// What they sum to.
    pub total_amount: Money,
    /// How often it was pushed.
    pub push_count: i64,
}

/// One message to the payer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushEvidence {
    /// Its batch.
    pub batch_no: String,
    /// Its message id, for ever.
    pub message_id: String,
    /// SENDING, UNKNOWN, ACCEPTED or REFUSED.
    pub push_state: String,
    /// Its details.
    pub detail_count: i64,
    /// What they sum to.
    pub total_amount: Money,
    /// SHA-256 of its bytes.
    pub body_sha256: String,
    /// The payer's own reference.
    pub external_ref: Option<String>,
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) async fn decisions(db: &Db, order: OrderId) -> Result<Vec<DecisionEvidence>> {
    let query = sql!(
        "SELECT task_code, app_key, signature_verdict, received_body, body_sha256, received_time
         FROM review_callback_evidence WHERE payment_order_id = :order AND deleted = 0
         ORDER BY id LIMIT :limit",
        order = order.0,
        limit = MAX_ROWS,
    );
    let decision = |row: &Row| {
        Ok(DecisionEvidence {
            task_code: row.text("task_code")?,
            app_key: row.text("app_key")?,
            signature_verdict: row.text("signature_verdict")?,
            received_body: row.maybe_text("received_body")?.unwrap_or_default(),
            body_sha256: row.text("body_sha256")?,
            received_time: row.maybe_instant("received_time")?,
        })
    };
    db.rows(query).await?.iter().map(decision).collect()
}

pub(super) async fn deliveries(db: &Db, order: OrderId) -> Result<Vec<DeliveryEvidence>> {
    let mut found = Vec::new();
    let mut after = 0;
    while found.len() < MAX_ROWS as usize {
        // Bodies are long: a few at a time.
        let query = sql!(
            "SELECT l.id, l.idempotency_key, l.partner_id, l.status, l.attempt_count,
                    COALESCE(l.request_body, a.request_body) AS request_body,
                    COALESCE(l.response_body, a.response_body) AS response_body, l.sent_time
             FROM fi_resident_income_payment_external_log l
             LEFT JOIN fi_resident_income_payment_external_log_archive a ON a.log_id = l.id
             WHERE l.payment_order_id = :order AND l.deleted = 0 AND l.id > :after
             ORDER BY l.id LIMIT 20",
            order = order.0,
            after = after,
        );
        let rows = db.rows(query).await?;
        let Some(last) = rows.last() else { break };
        after = last.int("id")?;
        for row in &rows {
            let answer = row.maybe_text("response_body")?;
            found.push(DeliveryEvidence {
                idempotency_key: row.text("idempotency_key")?,
                partner_id: row.maybe_int("partner_id")?,
                status: row.text("status")?,
                attempt_count: row.int("attempt_count")?,
                request_sha256: hash(&row.maybe_text("request_body")?.unwrap_or_default()),
                response_sha256: answer.as_deref().map(hash),
                sent_time: row.maybe_instant("sent_time")?,
            });
        }
    }
    Ok(found)
}

pub(super) async fn batches(db: &Db, order: OrderId) -> Result<Vec<BatchEvidence>> {
    let query = sql!(
        "SELECT batch_no, project_company_id, status, detail_count, total_amount, push_count
         FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :order AND deleted = 0 ORDER BY id LIMIT :limit",
        order = order.0,
        limit = MAX_ROWS,
    );
    let batch = |row: &Row| {
        Ok(BatchEvidence {
            batch_no: row.text("batch_no")?,
            project_company_id: row.int("project_company_id")?,
            status: row.text("status")?,
            detail_count: row.int("detail_count")?,
            total_amount: row.int("total_amount")?.into(),
            push_count: row.int("push_count")?,
        })
    };
    db.rows(query).await?.iter().map(batch).collect()
}

pub(super) async fn pushes(db: &Db, order: OrderId) -> Result<Vec<PushEvidence>> {
    let query = sql!(
        "SELECT b.batch_no, p.message_id, p.push_state, p.detail_count, p.total_amount,
                p.body_sha256, p.external_ref
         FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_push p ON p.push_batch_id = b.id
         WHERE b.payment_order_id = :order AND b.deleted = 0 AND p.deleted = 0
         ORDER BY p.id LIMIT :limit",
        order = order.0,
        limit = MAX_ROWS,
    );
    let push = |row: &Row| {
        Ok(PushEvidence {
            batch_no: row.text("batch_no")?,
            message_id: row.text("message_id")?,
            push_state: row.text("push_state")?,
            detail_count: row.int("detail_count")?,
            total_amount: row.int("total_amount")?.into(),
            body_sha256: row.text("body_sha256")?,
            external_ref: row.maybe_text("external_ref")?,
        })
    };
    db.rows(query).await?.iter().map(push).collect()
}
