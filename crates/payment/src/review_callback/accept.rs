//! Taking a decision in: a durable task, accepted or reused. It proves no more than that.

use counterfoil_db::{Db, Read, Tx, sql, transact};
use counterfoil_protocol::{ApprovalAttempt, DataVersion, SubmitRound, TaskCode};
use counterfoil_task::{Acceptance, Action, Kicker, Seed, Subject, Trace, accept_or_reuse, record};
use sha2::{Digest, Sha256};

use super::standing::{Instance, OrderFacts, judge};
use super::{Callback, CallbackError, CallbackPayload, Evidence, Identity};
use crate::kinds::REVIEW_CALLBACK;

/// A decision that is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCallback {
    /// Its task.
    pub task: TaskCode,
    /// Which decision it is, completed.
    pub identity: Identity,
    /// A new task, or one that was there.
    pub acceptance: Acceptance,
}

/// Accepts or reuses the decision's task, in one transaction that holds the approval instance's
/// row lock: of two opposite decisions that arrive at once, one is refused.
///
/// # Errors
/// A missing order or instance, and the opposite decision, on record or on its way.
pub async fn accept(
    db: &Db,
    kicker: &Kicker,
    callback: &Callback,
) -> Result<AcceptedCallback, CallbackError> {
    let accepted = transact!(try_accept(db, kicker, callback));
    if let Err(refused @ CallbackError::Opposite { .. }) = &accepted
        && let Err(error) = transact!(keep_refused(db, callback, &refused.to_string()))
    {
        // Whoever sent it is told all the same; only people will not see that it came.
        tracing::error!(%error, order = %callback.order, "a refused callback is not on record");
    }
    accepted
}

/// A decision that contradicts one on record is not taken, but that it came stays on record, once.
async fn keep_refused(db: &Db, callback: &Callback, why: &str) -> Result<(), CallbackError> {
    let mut tx = db.begin().await?;
    let identity = complete(&tx, callback).await?;
    let Seed { business_key, subject, .. } = seed(callback, &identity);
    let code = TaskCode::of(REVIEW_CALLBACK.prefix, &business_key);
    let detail = serde_json::json!({
        "why": why, "remark": callback.remark, "reviewTime": callback.time,
    });
    let trace = Trace {
        task_id: 0,
        code: &code,
        task_type: REVIEW_CALLBACK.task_type,
        business_key: &business_key,
        action: Action::Refuse,
        source: Some(&code),
        result: "REFUSED".to_owned(),
        detail: Some(detail.to_string()),
        operator: None,
    };
    record(&mut tx, &trace, &subject).await?;
    tx.commit("review_callback.refused").await?;
    Ok(())
}

async fn try_accept(
    db: &Db,
    kicker: &Kicker,
    callback: &Callback,
) -> Result<AcceptedCallback, CallbackError> {
    let mut tx = db.begin().await?;
    let order = OrderFacts::read(&tx, callback.order).await?;
    if order.is_none() {
        return Err(CallbackError::OrderNotFound(callback.order));
    }
    let identity = complete(&tx, callback).await?;
    let instance = Instance::lock(&tx, &identity).await?;
    match judge(&identity, order.as_ref(), instance.as_ref()) {
        // Where the order stands is the run's business: it may get there yet.
        Ok(_) | Err(CallbackError::OrderState { .. }) => {}
        Err(refused) => return Err(refused),
    }
    refuse_opposite(&tx, &identity).await?;
    let acceptance = accept_or_reuse(&mut tx, &seed(callback, &identity), kicker).await?;
    let task = TaskCode::of(REVIEW_CALLBACK.prefix, &identity.business_key());
    if let Some(evidence) = &callback.evidence {
        keep(&mut tx, &task, callback, evidence).await?;
    }
    tx.commit("review_callback.accept").await?;
    Ok(AcceptedCallback { task, identity, acceptance })
}

fn seed(callback: &Callback, identity: &Identity) -> Seed {
    let subject = Subject::none()
        .with("payment_order_id", identity.order.0)
        .with("data_version", identity.data_version.0)
        .with("submit_round", identity.round.0);
    Seed {
        kind: &REVIEW_CALLBACK,
        business_key: identity.business_key(),
        data: CallbackPayload::data(identity, callback.remark.as_deref(), callback.time),
        subject,
        source: None,
    }
}

/// The bytes that were believed, once a task: the same ones again are not kept twice.
async fn keep(
    tx: &mut Tx,
    task: &TaskCode,
    callback: &Callback,
    evidence: &Evidence,
) -> Result<(), CallbackError> {
    let digest = Sha256::digest(&evidence.body);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO review_callback_evidence
           (task_code, payment_order_id, app_key, received_body, body_sha256, signature_verdict,
            received_time, create_time, update_time)
         VALUES (:task, :order, :app, :body, :digest, 'VERIFIED', :now, :now, :now)
         {or_ignore}",
        task = task.as_str(),
        order = callback.order.0,
        app = &evidence.app,
        body = String::from_utf8_lossy(&evidence.body).into_owned(),
        digest = digest,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}

/// What the sender did not say is taken from the latest instance of that order and plan.
async fn complete(tx: &Tx, callback: &Callback) -> Result<Identity, CallbackError> {
    if let (Some(data_version), Some(attempt), Some(round)) =
        (callback.data_version, callback.attempt, callback.round)
    {
        return Ok(identity(callback, data_version, attempt, round));
    }
    let latest = sql!(
        "SELECT data_version, approval_attempt, submit_round
         FROM fi_resident_income_payment_order_approval_instance
         WHERE payment_order_id = :order AND review_plan_id = :plan AND deleted = 0
           AND (:no_data = 1 OR data_version = :data)
           AND (:no_attempt = 1 OR approval_attempt = :attempt)
         ORDER BY data_version DESC, approval_attempt DESC, id DESC
         LIMIT 1",
        order = callback.order.0,
        plan = callback.plan.0,
        no_data = callback.data_version.is_none(),
        data = callback.data_version.map_or(0, |data| data.0),
        no_attempt = callback.attempt.is_none(),
        attempt = callback.attempt.map_or(0, |attempt| attempt.0),
    );
    let Some(row) = tx.row(latest).await? else {
        return Err(CallbackError::InstanceNotFound {
            order: callback.order,
            plan: callback.plan,
            of: callback.data_version.map_or_else(String::new, |data| format!(", version {data}")),
        });
    };
    let data_version = DataVersion(row.int("data_version")?);
    let attempt = ApprovalAttempt(row.int("approval_attempt")?);
    let round = SubmitRound(row.int("submit_round")?);
    Ok(identity(callback, data_version, attempt, callback.round.unwrap_or(round)))
}

fn identity(
    callback: &Callback,
    data_version: DataVersion,
    attempt: ApprovalAttempt,
    round: SubmitRound,
) -> Identity {
    Identity {
        order: callback.order,
        plan: callback.plan,
        data_version,
        attempt,
        round,
        conclusion: callback.conclusion,
    }
}

/// The opposite decision's task, unless it is CANCELLED, keeps this one out.
async fn refuse_opposite(tx: &Tx, identity: &Identity) -> Result<(), CallbackError> {
    let said = identity.conclusion.opposite();
    let key = Identity { conclusion: said, ..*identity }.business_key();
    let code = TaskCode::of(REVIEW_CALLBACK.prefix, &key);
    let opposite = sql!(
        "SELECT id FROM fi_async_task
         WHERE task_code = :code AND deleted = 0 AND task_status <> 4",
        code = code.as_str(),
    );
    match tx.row(opposite).await? {
        None => Ok(()),
        Some(_) => {
            Err(CallbackError::Opposite { order: identity.order, plan: identity.plan, said })
        }
    }
}
