//! An operator puts the publish record of an order right: the order points to a version whose
//! record does not say PUBLISHED (P without V), so that S05 can never create its audit plan.
//!
//! Source: payment-flow.md, S04 step 1; seed 001, chapter 10.5: S04 brings the locks into line and
//! leaves the record alone. Everything else that can be wrong with a publication is refused: what
//! a person decides here is only that the pointer tells the truth.

mod decide;
mod read;

pub use decide::{Facts, Plan, Refusal, decide};

use counterfoil_db::{Db, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, OrderId, TaskCode, UserId, VersionId};
use counterfoil_task::{Action, Trace, record};
use serde::Serialize;

use crate::kinds::{LOCK_ACTIVATE, business_key};
use crate::version::{PUBLISHED_INCIDENT, VersionContext};
use crate::{PaymentError, lock_activation::boundary};
use read::Found;

/// Characters of a reason that are kept.
const MAX_REASON: usize = 500;

/// A publish record that was put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repaired {
    /// The order.
    pub payment_order_id: OrderId,
    /// The version record that says PUBLISHED now.
    pub payment_order_version_id: VersionId,
    /// Its data version.
    pub data_version: DataVersion,
    /// What it said before.
    pub was: String,
    /// Whether the session's incident mark was taken off.
    pub incident_cleared: bool,
    /// Whether the session's `active_revise_key` was given back.
    pub revise_key_cleared: bool,
    /// Whether the session stays, or will be, marked: its revision is not the order's creator's.
    pub incident_remains: bool,
    /// The S04 task under whose trace the repair stands.
    pub task_code: String,
}

/// Sets the version that the order points to PUBLISHED, and settles the incident. Repeated, it
/// finds nothing to repair and is refused.
///
/// # Errors
/// [`PaymentError::RepairRefused`] for every other state, with what stands against it.
pub async fn repair_publish(
    db: &Db,
    order: OrderId,
    operator: UserId,
    reason: &str,
) -> Result<Repaired, PaymentError> {
    if operator.0 <= 0 {
        return Err(PaymentError::invalid("user", "the operator's id must be positive"));
    }
    if reason.trim().is_empty() {
        return Err(PaymentError::invalid("reason", "say why the publish record is repaired"));
    }
    transact!(try_repair(db, order, operator, reason.trim()))
}

async fn try_repair(
    db: &Db,
    order: OrderId,
    operator: UserId,
    reason: &str,
) -> Result<Repaired, PaymentError> {
    let mut tx = db.begin().await?;
    // S04 locks its task in every transaction, and publishing its task and then the order: the
    // same sequence here. No incident can be recorded from what S04 read before the repair.
    let locked = read::lock_activation_task(&mut tx, order).await?;
    let Found { facts, context } = read::found(&mut tx, order).await?;
    let plan = decide(&facts)
        .map_err(|refusal| PaymentError::RepairRefused { order, why: refusal.to_string() })?;
    // `decide` refuses an order without a version record; another version than the one whose task
    // is locked was published in between.
    let Some(context) = context.filter(|context| locked == Some(context.version)) else {
        return Err(PaymentError::Conflict(format!("order {order}")));
    };
    let won = publish_version(&mut tx, &context).await?
        && settle_session(&mut tx, &context, plan).await?;
    if !won {
        return Err(PaymentError::Conflict(format!("order {order}")));
    }
    let code = trace(&mut tx, &context, plan, operator, reason).await?;
    tx.commit("publish_repair").await?;
    Ok(Repaired {
        payment_order_id: order,
        payment_order_version_id: context.version,
        data_version: context.target_data,
        was: context.build_status.clone(),
        incident_cleared: plan.clear_incident,
        revise_key_cleared: plan.clear_revise_key,
        incident_remains: plan.incident_remains,
        task_code: code.to_string(),
    })
}

/// Guard: the version says what was read.
async fn publish_version(tx: &mut Tx, context: &VersionContext) -> Result<bool, PaymentError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order_version
         SET version_build_status = 'PUBLISHED', publish_time = :now, error_code = NULL,
             error_message = NULL, update_time = :now
         WHERE id = :version AND deleted = 0 AND version_build_status = :was",
        now = now,
        version = context.version.0,
        was = &context.build_status,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Guard: the session is at the status that was read. The mark is only taken off if it is the
/// publish incident's.
async fn settle_session(
    tx: &mut Tx,
    context: &VersionContext,
    plan: Plan,
) -> Result<bool, PaymentError> {
    if !plan.clear_incident && !plan.clear_revise_key {
        return Ok(true);
    }
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET invalidated_flag = CASE WHEN :clear_incident = 1 THEN 0 ELSE invalidated_flag END,
             invalidated_reason = CASE WHEN :clear_incident = 1 THEN NULL
                                       ELSE invalidated_reason END,
             active_revise_key = CASE WHEN :clear_key = 1 THEN NULL ELSE active_revise_key END,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND deleted = 0 AND status = :status
           AND (:clear_incident = 0
                OR (invalidated_flag = 1 AND invalidated_reason = :incident))",
        clear_incident = plan.clear_incident,
        clear_key = plan.clear_revise_key,
        now = now,
        session = context.session.0,
        status = &context.session_status,
        incident = PUBLISHED_INCIDENT,
    );
    Ok(tx.execute(update).await? == 1)
}

/// The repair in the trace of the version's S04 task, with the person and the reason. Another
/// repair later adds another row.
async fn trace(
    tx: &mut Tx,
    context: &VersionContext,
    plan: Plan,
    operator: UserId,
    reason: &str,
) -> Result<TaskCode, PaymentError> {
    let key = business_key::lock_activate(context.version);
    let code = TaskCode::of(LOCK_ACTIVATE.prefix, &key);
    let reason: String = reason.chars().take(MAX_REASON).collect();
    let detail = serde_json::json!({
        "reason": reason,
        "was": context.build_status,
        "pointer": context.pointer,
        "sessionStatus": context.session_status,
        "incidentCleared": plan.clear_incident,
        "reviseKeyCleared": plan.clear_revise_key,
        "incidentRemains": plan.incident_remains,
    });
    let trace = Trace {
        task_id: read::task_id(tx, &code).await?,
        code: &code,
        task_type: LOCK_ACTIVATE.task_type,
        business_key: &key,
        action: Action::Repair,
        source: None,
        result: "PUBLISHED".into(),
        detail: Some(detail.to_string()),
        operator: Some(operator.0),
    };
    record(tx, &trace, &context.subject()).await?;
    Ok(code)
}

/// Whether the version will still be a publish incident once its record says PUBLISHED, judged as
/// S04 judges it.
fn stays_incident(context: &VersionContext) -> bool {
    let repaired = boundary::Facts { published: true, ..boundary::facts(context) };
    boundary::decide(repaired) != boundary::Route::Proceed
}
