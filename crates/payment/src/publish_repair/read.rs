//! The facts of a repair, read under the locks of S04's task and of the order.

use counterfoil_db::{Query, Read, Result, Tx, sql};
use counterfoil_protocol::{OrderId, TaskCode, VersionId};

use super::{Facts, stays_incident};
use crate::PaymentError;
use crate::kinds::business_key;
use crate::lock_release::Reason;
use crate::version::VersionContext;

pub(super) struct Found {
    pub(super) facts: Facts,
    /// `None` = the pointer names no version record with a session.
    pub(super) context: Option<VersionContext>,
}

/// Locks the S04 task of the version that the order points to; answers the version.
pub(super) async fn lock_activation_task(
    tx: &mut Tx,
    order: OrderId,
) -> Result<Option<VersionId>, PaymentError> {
    let Some(version) = pointed_to(tx, order).await? else {
        return Ok(None);
    };
    let query = sql!(
        "SELECT id FROM fi_async_task WHERE business_key = :key AND deleted = 0 {for_update}",
        key = business_key::lock_activate(version),
    );
    tx.row(query).await?;
    Ok(Some(version))
}

async fn pointed_to(tx: &mut Tx, order: OrderId) -> Result<Option<VersionId>> {
    let query = sql!(
        "SELECT v.id AS id FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_order_version v
           ON v.payment_order_id = o.id AND v.target_data_version = o.current_publish_version
          AND v.deleted = 0
         WHERE o.id = :order AND o.deleted = 0",
        order = order.0,
    );
    let row = tx.row(query).await?;
    row.map(|row| Ok(VersionId(row.int("id")?))).transpose()
}

/// Locks the order and reads everything the decision rests on.
pub(super) async fn found(tx: &mut Tx, order: OrderId) -> Result<Found, PaymentError> {
    let query = sql!(
        "SELECT status, current_publish_version FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = order.0,
    );
    let row = tx.row(query).await?.ok_or(PaymentError::OrderNotFound(order))?;
    let pointer = row.int("current_publish_version")?;
    let context = match pointed_to(tx, order).await? {
        None => None,
        Some(version) => match VersionContext::read(&*tx, version).await {
            Ok(context) => Some(context),
            Err(PaymentError::VersionNotFound(_)) => None,
            Err(error) => return Err(error),
        },
    };
    let mut facts = Facts {
        order_status: row.int("status")?,
        pointer,
        build_status: None,
        published_beyond: published_beyond(tx, order, pointer).await?,
        same_round: false,
        session_status: String::new(),
        is_released: false,
        payable_lines: 0,
        active_locks: 0,
        is_marked: false,
        has_revise_key: false,
        stays_incident: false,
    };
    if let Some(context) = &context {
        facts.build_status = Some(context.build_status.clone());
        facts.same_round = context.order_round == context.target_round;
        facts.session_status.clone_from(&context.session_status);
        facts.is_released = is_released(tx, context.version).await?;
        (facts.payable_lines, facts.active_locks) = counts(tx, context).await?;
        facts.is_marked = context.incident;
        facts.has_revise_key = has_revise_key(tx, context).await?;
        facts.stays_incident = stays_incident(context);
    }
    Ok(Found { facts, context })
}

async fn published_beyond(tx: &mut Tx, order: OrderId, pointer: i64) -> Result<Option<i64>> {
    let query = sql!(
        "SELECT MAX(target_data_version) AS beyond
         FROM fi_resident_income_payment_order_version
         WHERE payment_order_id = :order AND target_data_version > :pointer
           AND version_build_status = 'PUBLISHED' AND deleted = 0",
        order = order.0,
        pointer = pointer,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("beyond")).transpose()?.flatten())
}

async fn is_released(tx: &mut Tx, version: VersionId) -> Result<bool> {
    let keys = Reason::ALL.map(|reason| business_key::lock_release(version, reason.as_str()));
    let query = Query::new(
        "SELECT id FROM fi_async_task WHERE business_key IN :keys AND deleted = 0 LIMIT 1",
    )
    .bind_list("keys", keys);
    Ok(tx.row(query).await?.is_some())
}

async fn has_revise_key(tx: &mut Tx, context: &VersionContext) -> Result<bool> {
    let query = sql!(
        "SELECT id FROM selection_session
         WHERE id = :session AND active_revise_key IS NOT NULL",
        session = context.session.0,
    );
    Ok(tx.row(query).await?.is_some())
}

/// The version's PAYABLE lines and its ACTIVE locks, counted as S04 verifies them.
async fn counts(tx: &mut Tx, context: &VersionContext) -> Result<(i64, i64)> {
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
    Ok((tx.count(lines).await?, tx.count(locks).await?))
}

/// The id of a task; 0 when there is none.
pub(super) async fn task_id(tx: &mut Tx, code: &TaskCode) -> Result<i64> {
    let query = sql!("SELECT id FROM fi_async_task WHERE task_code = :code", code = code.as_str(),);
    tx.count(query).await
}
