//! A person sends one chunk again, whatever the partner's policy says: under the same key, with the
//! same body, and on record with his name before anything leaves the house.

use counterfoil_db::{Db, Instant, Query, Read, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, DeliveryId, OrderId, ProgressId, SubmitRound, UserId};
use counterfoil_task::{Action, Subject, Trace, record};
use serde::Serialize;

use super::record::{Chunk, assemble, chunk_columns, mark_answered, mark_sending, outcome};
use super::settle::open_chunks;
use super::terms::{Terms, terms};
use super::{DeliveryAnswer, DeliveryStatus, PartnerInbox};
use crate::PaymentError;
use crate::kinds::{SIDE_EFFECT, business_key};
use crate::side_effect::{Effect, code};

/// Characters of a reason that are kept.
const MAX_REASON: usize = 500;

/// What became of a redelivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Redelivered {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// What it was before.
    pub was: DeliveryStatus,
    /// What it is now.
    pub status: DeliveryStatus,
    /// How often it was sent by now.
    pub attempt_count: i64,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// Chunks of its order's version that are still not settled.
    pub unsettled_chunks: i64,
    /// The side-effect task, which can be rerun to SUCCESS once nothing is unsettled.
    pub task_code: Option<String>,
}

/// Sends one chunk again. It may be FAIL, UNKNOWN or SKIPPED, or WAIT_PROCESS when nobody has been
/// sending it for ten minutes; a chunk that was accepted is not sent again.
///
/// # Errors
/// [`PaymentError::DeliveryState`] with what stands against it; nothing was sent then. A delivery
/// that fails is no error: the answer says so.
pub async fn redeliver(
    db: &Db,
    inbox: &dyn PartnerInbox,
    delivery: DeliveryId,
    user: UserId,
    reason: &str,
) -> Result<Redelivered, PaymentError> {
    if user.0 <= 0 {
        return Err(PaymentError::invalid("user", "the operator's id must be positive"));
    }
    let reason: String = reason.trim().chars().take(MAX_REASON).collect();
    if reason.is_empty() {
        return Err(PaymentError::invalid("reason", "say why it is sent again"));
    }
    let begun = transact!(begin(db, delivery, user, &reason))?;
    let message = assemble(db, &begun.chunk, &begun.terms, begun.sent).await?;
    let answer = inbox.deliver(&message).await;
    transact!(end(db, &begun, user, &answer))
}

/// A chunk that this person is sending.
struct Begun {
    chunk: Chunk,
    terms: Terms,
    sent: Instant,
    of: Whose,
}

/// What the chunk is part of.
struct Whose {
    order: OrderId,
    version: DataVersion,
    round: SubmitRound,
    progress: Option<ProgressId>,
}

async fn begin(
    db: &Db,
    delivery: DeliveryId,
    user: UserId,
    reason: &str,
) -> Result<Begun, PaymentError> {
    let mut tx = db.begin().await?;
    let (chunk, of) = locked(&mut tx, delivery).await?;
    let sent = tx.now();
    let terms = terms(&tx, chunk.partner).await?;
    check(&chunk, &terms, sent)?;
    if !mark_sending(&mut tx, &chunk, Some(user)).await? {
        return Err(PaymentError::Conflict(format!("delivery {delivery}")));
    }
    let detail = serde_json::json!({
        "deliveryId": delivery, "idempotencyKey": chunk.key, "was": chunk.facts.status,
        "attempt": chunk.facts.attempts + 1, "reason": reason,
    });
    trace(&mut tx, &of, user, "SENDING", detail).await?;
    tx.commit("partner_push.redelivery_sending").await?;
    Ok(Begun { chunk, terms, sent, of })
}

fn check(chunk: &Chunk, terms: &Terms, now: Instant) -> Result<(), PaymentError> {
    let refuse = |why: String| {
        let status = chunk.facts.status.as_str().to_owned();
        Err(PaymentError::DeliveryState { delivery: chunk.id, status, why })
    };
    if chunk.facts.status == DeliveryStatus::Success {
        return refuse("the partner has accepted it; it is not sent again".into());
    }
    if let Some(until) = chunk.facts.under_way_until(now) {
        return refuse(format!("it is being sent; ask again after {until}"));
    }
    if terms.endpoint.is_none() {
        return refuse("its partner has no address; give it one first".into());
    }
    Ok(())
}

async fn end(
    db: &Db,
    begun: &Begun,
    user: UserId,
    answer: &DeliveryAnswer,
) -> Result<Redelivered, PaymentError> {
    let Begun { chunk, of, .. } = begun;
    let mut tx = db.begin().await?;
    if !mark_answered(&mut tx, chunk, answer).await? {
        return Err(PaymentError::Conflict(format!("delivery {}", chunk.id)));
    }
    let (status, error) = outcome(answer);
    let detail = serde_json::json!({
        "deliveryId": chunk.id, "idempotencyKey": chunk.key,
        "attempt": chunk.facts.attempts + 1, "error": error,
    });
    trace(&mut tx, of, user, status.as_str(), detail).await?;
    let unsettled = open_chunks(&tx, of.order.0, of.version.0, of.round.0).await?;
    tx.commit("partner_push.redelivery_answered").await?;
    let push = Effect::PartnerBillReviewResultPush;
    Ok(Redelivered {
        delivery_id: chunk.id,
        was: chunk.facts.status,
        status,
        attempt_count: chunk.facts.attempts + 1,
        error,
        unsettled_chunks: unsettled,
        task_code: of.progress.map(|progress| code(progress, push).to_string()),
    })
}

async fn locked(tx: &mut Tx, delivery: DeliveryId) -> Result<(Chunk, Whose), PaymentError> {
    let query = Query::new(concat!(
        "SELECT ",
        chunk_columns!(),
        ", payment_order_id, data_version, submit_round, progress_id
         FROM fi_resident_income_payment_external_log
         WHERE id = :id AND log_type = :log_type AND deleted = 0 {for_update}"
    ))
    .bind("id", delivery.0)
    .bind("log_type", super::LOG_TYPE);
    let row = tx.row(query).await?.ok_or(PaymentError::DeliveryNotFound(delivery))?;
    let mut of = Whose {
        order: OrderId(row.int("payment_order_id")?),
        version: DataVersion(row.int("data_version")?),
        round: SubmitRound(row.int("submit_round")?),
        progress: Some(row.int("progress_id")?).filter(|id| *id > 0).map(ProgressId),
    };
    if of.progress.is_none() {
        of.progress = progress_of(tx, &of).await?;
    }
    Ok((Chunk::read(&row)?, of))
}

/// A row written by hand may not name its progress.
async fn progress_of(tx: &Tx, of: &Whose) -> Result<Option<ProgressId>, PaymentError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
           AND main_task_status = 'SUCCESS' AND deleted = 0
         ORDER BY id DESC LIMIT 1",
        order = of.order.0,
        version = of.version.0,
        round = of.round.0,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.int("id")).transpose()?.map(ProgressId))
}

/// Under the side-effect task, so that it stands in the order's timeline too.
async fn trace(
    tx: &mut Tx,
    of: &Whose,
    user: UserId,
    result: &str,
    detail: serde_json::Value,
) -> Result<(), PaymentError> {
    let progress = of.progress.unwrap_or(ProgressId(0));
    let effect = Effect::PartnerBillReviewResultPush;
    let key = business_key::side_effect(progress, effect.as_str());
    let code = code(progress, effect);
    let task = sql!("SELECT id FROM fi_async_task WHERE task_code = :code", code = code.as_str(),);
    let trace = Trace {
        task_id: tx.count(task).await?,
        code: &code,
        task_type: SIDE_EFFECT.task_type,
        business_key: &key,
        action: Action::Redeliver,
        source: None,
        result: result.to_owned(),
        detail: Some(detail.to_string()),
        operator: Some(user.0),
    };
    let subject = Subject::none()
        .with("payment_order_id", of.order.0)
        .with("data_version", of.version.0)
        .with("submit_round", of.round.0);
    record(tx, &trace, &subject).await?;
    Ok(())
}
