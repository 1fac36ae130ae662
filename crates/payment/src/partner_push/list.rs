//! What people see of deliveries; reads only.

use counterfoil_db::{Instant, Query, Read, Row};
use counterfoil_protocol::{DataVersion, DeliveryId, OrderId, PartnerId, SubmitRound, UserId};
use serde::Serialize;

use super::DeliveryStatus;
use crate::PaymentError;

/// Rows of a list.
pub const MAX_LISTED: u32 = 200;

/// Which deliveries are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliverySearch {
    /// Of this order only.
    pub order: Option<OrderId>,
    /// In this status only.
    pub status: Option<DeliveryStatus>,
    /// Before this id: the last one of the page before.
    pub before: Option<DeliveryId>,
    /// Rows at most, up to [`MAX_LISTED`].
    pub limit: u32,
}

/// A row of the external log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryRow {
    /// Its id.
    pub id: DeliveryId,
    /// The key under which the partner tells it apart.
    pub idempotency_key: String,
    /// What sort of message it is.
    pub log_type: String,
    /// The order.
    pub payment_order_id: OrderId,
    /// Its version.
    pub data_version: DataVersion,
    /// Its round.
    pub submit_round: SubmitRound,
    /// The partner; none = the lines name none.
    pub partner_id: Option<PartnerId>,
    /// Which chunk.
    pub chunk_no: i64,
    /// Of how many.
    pub chunk_count: i64,
    /// Lines in it.
    pub line_count: i64,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// How often it was sent.
    pub attempt_count: i64,
    /// The last trouble.
    pub last_error: Option<String>,
    /// The last answer's status.
    pub http_status: Option<i64>,
    /// When it was sent last.
    pub sent_time: Option<Instant>,
    /// Who sent it last, if a person did.
    pub operator_user_id: Option<UserId>,
    /// What was or will be sent, before it is sealed; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
    /// The partner's answer, opened; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
}

macro_rules! columns {
    () => {
        "SELECT id, idempotency_key, log_type, payment_order_id, data_version, submit_round,
           partner_id, chunk_no, chunk_count, line_count, status, attempt_count, last_error,
           http_status, sent_time, operator_user_id"
    };
}

/// Deliveries, newest first.
pub async fn deliveries(
    from: &impl Read,
    search: &DeliverySearch,
) -> Result<Vec<DeliveryRow>, PaymentError> {
    let text = match (search.order, search.status) {
        (None, None) => concat!(
            columns!(),
            " FROM fi_resident_income_payment_external_log
             WHERE id < :before AND deleted = 0 ORDER BY id DESC LIMIT :limit"
        ),
        (None, Some(_)) => concat!(
            columns!(),
            " FROM fi_resident_income_payment_external_log
             WHERE status = :status AND id < :before AND deleted = 0
             ORDER BY id DESC LIMIT :limit"
        ),
        (Some(_), None) => concat!(
            columns!(),
            " FROM fi_resident_income_payment_external_log
             WHERE payment_order_id = :order AND id < :before AND deleted = 0
             ORDER BY id DESC LIMIT :limit"
        ),
        (Some(_), Some(_)) => concat!(
            columns!(),
            " FROM fi_resident_income_payment_external_log
             WHERE payment_order_id = :order AND status = :status AND id < :before AND deleted = 0
             ORDER BY id DESC LIMIT :limit"
        ),
    };
    let query = Query::new(text)
        .bind("order", search.order.map(|order| order.0))
        .bind("status", search.status.map(DeliveryStatus::as_str))
        .bind("before", search.before.map_or(i64::MAX, |id| id.0))
        .bind("limit", search.limit.clamp(1, MAX_LISTED));
    from.rows(query).await?.iter().map(read).collect()
}

/// One delivery with its bodies.
pub async fn delivery(from: &impl Read, id: DeliveryId) -> Result<DeliveryRow, PaymentError> {
    let query = Query::new(concat!(
        columns!(),
        ", COALESCE(request_body, (SELECT a.request_body
              FROM fi_resident_income_payment_external_log_archive a WHERE a.log_id = :id))
            AS request_body,
           COALESCE(response_body, (SELECT a.response_body
              FROM fi_resident_income_payment_external_log_archive a WHERE a.log_id = :id))
            AS response_body
         FROM fi_resident_income_payment_external_log
         WHERE id = :id AND deleted = 0"
    ));
    let row = from.row(query.bind("id", id.0)).await?;
    let row = row.ok_or(PaymentError::DeliveryNotFound(id))?;
    let (request_body, response_body) =
        (row.maybe_text("request_body")?, row.maybe_text("response_body")?);
    Ok(DeliveryRow { request_body, response_body, ..read(&row)? })
}

fn read(row: &Row) -> Result<DeliveryRow, PaymentError> {
    Ok(DeliveryRow {
        id: DeliveryId(row.int("id")?),
        idempotency_key: row.text("idempotency_key")?,
        log_type: row.text("log_type")?,
        payment_order_id: OrderId(row.int("payment_order_id")?),
        data_version: DataVersion(row.int("data_version")?),
        submit_round: SubmitRound(row.int("submit_round")?),
        partner_id: row.maybe_int("partner_id")?.map(PartnerId),
        chunk_no: row.int("chunk_no")?,
        chunk_count: row.int("chunk_count")?,
        line_count: row.int("line_count")?,
        status: DeliveryStatus::stored(&row.text("status")?),
        attempt_count: row.int("attempt_count")?,
        last_error: row.maybe_text("last_error")?,
        http_status: row.maybe_int("http_status")?,
        sent_time: row.maybe_instant("sent_time")?,
        operator_user_id: row.maybe_int("operator_user_id")?.map(UserId),
        request_body: None,
        response_body: None,
    })
}
