//! What is written of a chunk before and after it is sent. Every write is a compare and swap on
//! status and attempt: each attempt is sent once, and each answer is that attempt's.

use counterfoil_db::{Db, Instant, Read, Result, Row, Tx, sql};
use counterfoil_protocol::{DeliveryId, PartnerId, UserId};

use super::step::ChunkFacts;
use super::terms::{Terms, keys};
use super::{Delivery, DeliveryAnswer, DeliveryStatus, cut};

/// A chunk's row without its bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) id: DeliveryId,
    pub(super) key: String,
    pub(super) partner: Option<PartnerId>,
    pub(super) number: i64,
    pub(super) of: i64,
    pub(super) facts: ChunkFacts,
    pub(super) last_error: Option<String>,
}

/// The columns that [`Chunk::read`] takes.
macro_rules! chunk_columns {
    () => {
        "id, idempotency_key, partner_id, chunk_no, chunk_count, status, attempt_count, sent_time,
         operator_user_id, last_error"
    };
}
pub(super) use chunk_columns;

impl Chunk {
    pub(super) fn read(row: &Row) -> Result<Chunk> {
        Ok(Chunk {
            id: DeliveryId(row.int("id")?),
            key: row.text("idempotency_key")?,
            partner: row.maybe_int("partner_id")?.map(PartnerId),
            number: row.int("chunk_no")?,
            of: row.int("chunk_count")?,
            facts: ChunkFacts {
                status: DeliveryStatus::stored(&row.text("status")?),
                attempts: row.int("attempt_count")?,
                sent: row.maybe_instant("sent_time")?,
                by_operator: row.maybe_int("operator_user_id")?.is_some(),
            },
            last_error: row.maybe_text("last_error")?,
        })
    }

    /// For messages: `chunk 2/3 of partner 51`.
    pub(super) fn name(&self) -> String {
        let partner = self.partner.map_or_else(|| "none".to_owned(), |partner| partner.to_string());
        format!("delivery {} (chunk {}/{} of partner {partner})", self.id, self.number, self.of)
    }
}

/// Starts the next attempt. False = somebody else did, and nothing was written.
pub(super) async fn mark_sending(
    tx: &mut Tx,
    chunk: &Chunk,
    operator: Option<UserId>,
) -> Result<bool> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_external_log
         SET status = 'WAIT_PROCESS', attempt_count = attempt_count + 1, sent_time = :now,
             operator_user_id = :operator, update_time = :now
         WHERE id = :id AND deleted = 0 AND status = :status AND attempt_count = :attempts",
        now = now,
        operator = operator.map(|user| user.0),
        id = chunk.id.0,
        status = chunk.facts.status.as_str(),
        attempts = chunk.facts.attempts,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Ends a chunk without sending it: its sender died, or there is nobody to send it to.
pub(super) async fn mark_unsent(
    tx: &mut Tx,
    chunk: &Chunk,
    status: DeliveryStatus,
    why: &str,
) -> Result<bool> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_external_log
         SET status = :to_status, last_error = :why, update_time = :now
         WHERE id = :id AND deleted = 0 AND status = :status AND attempt_count = :attempts",
        to_status = status.as_str(),
        why = cut(why),
        now = now,
        id = chunk.id.0,
        status = chunk.facts.status.as_str(),
        attempts = chunk.facts.attempts,
    );
    Ok(tx.execute(update).await? == 1)
}

/// What an answer means for the row: status, error, HTTP status, response.
pub(super) fn outcome(answer: &DeliveryAnswer) -> (DeliveryStatus, Option<String>) {
    match answer {
        DeliveryAnswer::Accepted { .. } => (DeliveryStatus::Success, None),
        DeliveryAnswer::Refused { code, message, .. } => {
            (DeliveryStatus::Fail, Some(cut(&format!("refused ({code}): {message}"))))
        }
        DeliveryAnswer::Unknown { message, .. } => {
            (DeliveryStatus::Unknown, Some(cut(&format!("no verdict: {message}"))))
        }
    }
}

/// Writes the answer of the attempt that [`mark_sending`] began. False = the attempt is not the
/// row's any more.
pub(super) async fn mark_answered(
    tx: &mut Tx,
    chunk: &Chunk,
    answer: &DeliveryAnswer,
) -> Result<bool> {
    let now = tx.now();
    let (status, error) = outcome(answer);
    let (response, http_status) = match answer {
        DeliveryAnswer::Accepted { response, http_status } => {
            (Some(response.as_str()), Some(*http_status))
        }
        DeliveryAnswer::Refused { http_status, .. }
        | DeliveryAnswer::Unknown { http_status, .. } => (None, *http_status),
    };
    let update = sql!(
        "UPDATE fi_resident_income_payment_external_log
         SET status = :status, response_body = :response, last_error = :error,
             http_status = :http_status, update_time = :now
         WHERE id = :id AND status = 'WAIT_PROCESS' AND attempt_count = :attempt",
        status = status.as_str(),
        response = response,
        error = error,
        http_status = http_status.map(i64::from),
        now = now,
        id = chunk.id.0,
        attempt = chunk.facts.attempts + 1,
    );
    Ok(tx.execute(update).await? == 1)
}

/// The chunk as it goes out: the stored body under its key.
pub(super) async fn assemble(
    db: &Db,
    chunk: &Chunk,
    terms: &Terms,
    sent: Instant,
) -> Result<Delivery> {
    let query = sql!(
        "SELECT request_body FROM fi_resident_income_payment_external_log WHERE id = :id",
        id = chunk.id.0,
    );
    let body = match db.row(query).await? {
        Some(row) => row.maybe_text("request_body")?.unwrap_or_default(),
        None => String::new(),
    };
    Ok(Delivery {
        key: chunk.key.clone(),
        endpoint: terms.endpoint.clone().unwrap_or_default(),
        keys: keys(db, chunk.partner, terms, sent).await?,
        sent,
        body,
    })
}
