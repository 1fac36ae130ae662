//! Publishing deliveries: the snapshot as it is when it is sent, so that a late one is never old.

use std::collections::BTreeMap;

use counterfoil_db::{Db, Instant, Read, sql, transact};
use serde::Serialize;

use super::CentreSettings;
use super::authority::{About, snapshots};
use super::grant;
use crate::delivery::{Carried, Carrier};
use crate::key::new_uuid;
use crate::refusal::{Code, Refusal};
use crate::wire::{Coordinate, Envelope};

/// Deliveries published in one call at most.
const MAX_ROUND: i64 = 500;
/// Tries before a delivery is FAILED for good; reconciliation and a person's replay remain.
const MAX_ATTEMPTS: i64 = 8;

/// A delivery as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct DeliveryRow {
    pub id: i64,
    pub delivery_id: String,
    pub answer_uuid: String,
    pub revision: i64,
    pub consumer_app_key: String,
    pub sch_id: String,
    pub form_uuid: String,
    pub state: String,
    pub attempts: i64,
    pub next_attempt_time: Option<Instant>,
    pub last_error: Option<String>,
}

fn row_of(row: &counterfoil_db::Row) -> counterfoil_db::Result<DeliveryRow> {
    Ok(DeliveryRow {
        id: row.int("id")?,
        delivery_id: row.text("delivery_id")?,
        answer_uuid: row.text("answer_uuid")?,
        revision: row.int("revision")?,
        consumer_app_key: row.text("consumer_app_key")?,
        sch_id: row.text("sch_id")?,
        form_uuid: row.text("form_uuid")?,
        state: row.text("state")?,
        attempts: row.int("attempts")?,
        next_attempt_time: row.maybe_instant("next_attempt_time")?,
        last_error: row.maybe_text("last_error")?,
    })
}

/// Publishes what is due; answers how many were confirmed and how many were not.
pub async fn publish(
    db: &Db,
    settings: &CentreSettings,
    carrier: &dyn Carrier,
) -> Result<(u32, u32), Refusal> {
    let due = sql!(
        "SELECT id, delivery_id, answer_uuid, revision, consumer_app_key, sch_id, form_uuid, state,
           attempts, next_attempt_time, last_error FROM answer_delivery
         WHERE state = 'PENDING' AND deleted = 0
           AND (next_attempt_time IS NULL OR next_attempt_time <= :now)
         ORDER BY id LIMIT :most",
        now = db.now().await?,
        most = MAX_ROUND,
    );
    let mut groups: BTreeMap<(String, String, String), Vec<DeliveryRow>> = BTreeMap::new();
    for row in db.rows(due).await? {
        let delivery = row_of(&row)?;
        let DeliveryRow { consumer_app_key, sch_id, form_uuid, .. } = &delivery;
        let key = (consumer_app_key.clone(), sch_id.clone(), form_uuid.clone());
        groups.entry(key).or_default().push(delivery);
    }
    let (mut confirmed, mut open) = (0, 0);
    for ((consumer, school, form), deliveries) in groups {
        let at = Coordinate { consumer, school, form, answer: None };
        let carried = send(db, settings, carrier, &at, &deliveries).await?;
        for outcome in &carried {
            let counter = if *outcome == Carried::Confirmed { &mut confirmed } else { &mut open };
            *counter += 1;
        }
        transact!(settle(db, settings, &deliveries, &carried))?;
    }
    Ok((confirmed, open))
}

/// Sends deliveries of one coordinate; answers what became of each.
async fn send(
    db: &Db,
    settings: &CentreSettings,
    carrier: &dyn Carrier,
    at: &Coordinate,
    deliveries: &[DeliveryRow],
) -> Result<Vec<Carried>, Refusal> {
    let epoch = match grant::effective(db, at).await {
        Ok(grant) => grant.grant_epoch,
        Err(Refusal::Coded { code, .. }) => {
            return Ok(vec![Carried::Returned { message: code.to_string() }; deliveries.len()]);
        }
        Err(error) => return Err(error),
    };
    let about = About { source: &settings.source_app_key, at, task_id: None, epoch };
    let uuids = deliveries.iter().map(|delivery| delivery.answer_uuid.as_str());
    let snapshots = snapshots(db, &about, uuids).await?;
    let (mut envelopes, mut carried) = (Vec::new(), Vec::new());
    for delivery in deliveries {
        let snapshot = snapshots.get(&delivery.answer_uuid);
        carried.push(match snapshot {
            Some(Ok(snapshot)) => {
                // The same event however often it is sent: the inbox knows it again.
                let event_id = delivery.delivery_id.clone();
                envelopes.push(Envelope { event_id, ..snapshot.clone() });
                None
            }
            Some(Err(message)) => Some(Carried::Returned { message: message.clone() }),
            None => Some(Carried::Returned { message: "there is no such answer any more".into() }),
        });
    }
    let mut sent = carrier.carry_all(&envelopes).await.into_iter();
    let unsaid = || Carried::Unknown { message: "the carrier said nothing of it".into() };
    let all = carried.into_iter();
    Ok(all.map(|carried| carried.or_else(|| sent.next()).unwrap_or_else(unsaid)).collect())
}

/// What deliveries come to that had the same outcome at the same try.
type Settled = (&'static str, Option<String>, i64);

async fn settle(
    db: &Db,
    settings: &CentreSettings,
    deliveries: &[DeliveryRow],
    carried: &[Carried],
) -> Result<(), Refusal> {
    let mut groups: BTreeMap<Settled, Vec<i64>> = BTreeMap::new();
    for (delivery, carried) in deliveries.iter().zip(carried) {
        let attempts = delivery.attempts + 1;
        let (state, message) = match carried {
            Carried::Confirmed => ("CONFIRMED", None),
            Carried::Returned { message } => ("RETURNED", Some(message)),
            Carried::Unknown { message } if attempts >= MAX_ATTEMPTS => ("FAILED", Some(message)),
            Carried::Unknown { message } => ("PENDING", Some(message)),
        };
        let message = message.map(|message| message.chars().take(1000).collect::<String>());
        groups.entry((state, message, attempts)).or_default().push(delivery.id);
    }
    let mut tx = db.begin().await?;
    let now = tx.now();
    for ((state, message, attempts), ids) in groups {
        let update = sql!(
            "UPDATE answer_delivery
             SET state = :state, attempts = :attempts, last_error = :message,
                 next_attempt_time = :next, update_time = :now
             WHERE id IN :ids AND attempts = :attempts - 1 AND state = 'PENDING'",
            state = state,
            attempts = attempts,
            message = message,
            next = (state == "PENDING").then(|| now + settings.backoff(attempts)),
            now = now,
        );
        tx.execute(update.bind_list("ids", ids)).await?;
    }
    Ok(tx.commit("delivery.settle").await?)
}

/// Deliveries that did not arrive, newest first, and the row that the next page is before.
pub async fn failed(
    db: &Db,
    before: Option<i64>,
    limit: u32,
) -> Result<(Vec<DeliveryRow>, Option<i64>), Refusal> {
    let limit = limit.clamp(1, super::list::MAX_PAGE);
    let query = sql!(
        "SELECT id, delivery_id, answer_uuid, revision, consumer_app_key, sch_id, form_uuid, state,
           attempts, next_attempt_time, last_error FROM answer_delivery
         WHERE state IN ('FAILED', 'RETURNED') AND deleted = 0 AND id < :before
         ORDER BY id DESC LIMIT :most",
        before = before.unwrap_or(i64::MAX),
        most = i64::from(limit) + 1,
    );
    let rows = db.rows(query).await?;
    let mut rows = rows.iter().map(row_of).collect::<counterfoil_db::Result<Vec<_>>>()?;
    let is_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().map(|row| row.id).filter(|_| is_more);
    Ok((rows, next))
}

/// Has an answer delivered again to a consumer, whose grant is checked first.
///
/// # Errors
/// ANSWER_NOT_FOUND, SCOPE_MISMATCH, GRANT_REVOKED.
pub async fn replay(db: &Db, uuid: &str, consumer: &str, actor: &str) -> Result<String, Refusal> {
    transact!(try_replay(db, uuid, consumer, actor))
}

async fn try_replay(db: &Db, uuid: &str, consumer: &str, actor: &str) -> Result<String, Refusal> {
    let mut tx = db.begin().await?;
    let answer = tx
        .row(sql!(
            "SELECT form_uuid, sch_id, revision FROM answer WHERE uuid = :uuid AND deleted = 0",
            uuid = uuid
        ))
        .await?;
    let missing = || Refusal::of(Code::AnswerNotFound, "there is no such answer");
    let answer = answer.ok_or_else(missing)?;
    let at = Coordinate {
        consumer: consumer.to_owned(),
        school: answer.text("sch_id")?,
        form: answer.text("form_uuid")?,
        answer: None,
    };
    grant::effective(&tx, &at).await?;
    let now = tx.now();
    let delivery = new_uuid();
    let insert = sql!(
        "INSERT INTO answer_delivery (delivery_id, answer_uuid, revision, consumer_app_key, sch_id,
           form_uuid, create_time, update_time)
         VALUES (:delivery, :uuid, :revision, :app, :school, :form, :now, :now)",
        delivery = delivery.as_str(),
        uuid = uuid,
        revision = answer.int("revision")?,
        app = consumer,
        school = at.school.as_str(),
        form = at.form.as_str(),
        now = now,
    );
    tx.execute(insert).await?;
    let log = sql!(
        "INSERT INTO answer_op_log (action, answer_uuid, form_uuid, sch_id, actor, detail,
           create_time) VALUES ('REPLAY', :uuid, :form, :school, :actor, :detail, :now)",
        uuid = uuid,
        form = at.form.as_str(),
        school = at.school.as_str(),
        actor = actor,
        detail = delivery.as_str(),
        now = now,
    );
    tx.execute(log).await?;
    tx.commit("delivery.replay").await?;
    Ok(delivery)
}
