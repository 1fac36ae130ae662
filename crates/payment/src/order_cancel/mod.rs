//! Cancelling an order: one transaction, and S06 to let go of its bills.
//!
//! Source: payment-flow.md "Submit and S03 build". No bill stays locked for ever because someone
//! gave up.

use counterfoil_db::{Db, Query, Read, Row, Tx, sql, transact};
use counterfoil_protocol::{OrderId, TaskCode, UserId, VersionId};
use counterfoil_task::{Kicker, Subject, accept_or_reuse};

use crate::PaymentError;
use crate::lock_release::{self, Reason};
use crate::review_progress::{is_review_being_applied, supersede_parked};

/// Versions of one order at most; a revision a working day for years stays below.
const MAX_VERSIONS: u32 = 5000;

/// A cancelled order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancellation {
    /// The order.
    pub order: OrderId,
    /// Tasks that were cancelled with it.
    pub tasks: u64,
    /// The S06 task that lets go of its bills.
    pub release: TaskCode,
}

/// Cancels an order that nobody is paying yet.
///
/// # Errors
/// Refuses strangers, a decision being applied, and an order that is paid or being paid: at 40 only
/// a TREASURY order is cancelled, refreshed, NOT_PUSHED and without a batch.
pub async fn cancel(
    db: &Db,
    kicker: &Kicker,
    order: OrderId,
    user: UserId,
    reason: &str,
) -> Result<Cancellation, PaymentError> {
    if reason.trim().is_empty() {
        return Err(PaymentError::invalid("reason", "say why the order is cancelled"));
    }
    transact!(try_cancel(db, kicker, order, user, reason))
}

async fn try_cancel(
    db: &Db,
    kicker: &Kicker,
    order: OrderId,
    user: UserId,
    reason: &str,
) -> Result<Cancellation, PaymentError> {
    let mut tx = db.begin().await?;
    // Workers lock their task and then the order: the same sequence here, or both would wait.
    let versions = versions(&mut tx, order).await?;
    let tasks = cancel_tasks(&mut tx, order, &versions, user, reason).await?;
    let row = lock_order(&mut tx, order).await?;
    check(&tx, order, user, &row).await?;
    let Some(latest) = versions.last().copied() else {
        let why = "it has no version record";
        return Err(state(order, &row, why));
    };
    if !move_order(&mut tx, order).await? {
        return Err(PaymentError::Conflict(format!("order {order}")));
    }
    supersede_parked(&mut tx, order).await?;
    end_sessions(&mut tx, order).await?;
    log(&mut tx, order, user, reason, row.int("status")?).await?;
    let subject = Subject::none()
        .with("payment_order_id", order.0)
        .with("payment_order_version_id", latest.0);
    let seed = lock_release::seed(latest, Reason::OrderCancelled, subject, None);
    accept_or_reuse(&mut tx, &seed, kicker).await?;
    tx.commit("order.cancel").await?;
    Ok(Cancellation { order, tasks, release: seed.code() })
}

async fn versions(tx: &mut Tx, order: OrderId) -> Result<Vec<VersionId>, PaymentError> {
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_order_version
         WHERE payment_order_id = :order AND deleted = 0 ORDER BY id LIMIT :limit",
        order = order.0,
        limit = MAX_VERSIONS,
    );
    let mut versions = Vec::new();
    for row in tx.rows(query).await? {
        versions.push(VersionId(row.int("id")?));
    }
    Ok(versions)
}

/// Guard: PENDING, RUNNING or FAILED. A running worker is fenced out by this.
async fn cancel_tasks(
    tx: &mut Tx,
    order: OrderId,
    versions: &[VersionId],
    user: UserId,
    reason: &str,
) -> Result<u64, PaymentError> {
    let keys = versions.iter().flat_map(|version| {
        use crate::kinds::business_key::{
            audit_plan_create, lock_activate, lock_release, submit_build,
        };
        let releases = Reason::ALL.into_iter().filter(|reason| *reason != Reason::OrderCancelled);
        let releases = releases.map(|reason| lock_release(*version, reason.as_str()));
        [submit_build(*version), lock_activate(*version), audit_plan_create(*version)]
            .into_iter()
            .chain(releases)
    });
    let now = tx.now();
    let message: String = format!("the order was cancelled: {reason}").chars().take(1000).collect();
    let mut cancelled = 0;
    let keys: Vec<String> = keys.collect();
    for some in keys.chunks(MAX_KEYS) {
        let update = Query::new(
            "UPDATE fi_async_task
             SET task_status = 4, error_message = :message, next_execute_time = NULL,
                 update_user_id = :user, update_time = :now
             WHERE business_key IN :keys AND deleted = 0 AND task_status IN (0, 1, 3)",
        )
        .bind("message", message.as_str())
        .bind("user", user.0)
        .bind("now", now)
        .bind_list("keys", some.iter().map(String::as_str));
        cancelled += tx.execute(update).await?;
    }
    Ok(cancelled + cancel_aftermath(tx, order, user, &message).await?)
}

/// What a decision left: S07 that failed, side effects, snapshots. Their keys begin with the order
/// or its progress, and ':' is followed by ';' in every collation used here.
async fn cancel_aftermath(
    tx: &mut Tx,
    order: OrderId,
    user: UserId,
    message: &str,
) -> Result<u64, PaymentError> {
    let progress = sql!(
        "SELECT id FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order ORDER BY id LIMIT :limit",
        order = order.0,
        limit = MAX_VERSIONS,
    );
    let mut prefixes = vec![format!("REVIEW_CALLBACK:{order}")];
    for row in tx.rows(progress).await? {
        let id = row.int("id")?;
        prefixes.extend([format!("SIDE_EFFECT:{id}"), format!("BILL_SNAPSHOT:{id}")]);
    }
    let now = tx.now();
    let mut cancelled = 0;
    for prefix in prefixes {
        let update = sql!(
            "UPDATE fi_async_task
             SET task_status = 4, error_message = :message, next_execute_time = NULL,
                 update_user_id = :user, update_time = :now
             WHERE business_key > :from AND business_key < :until AND deleted = 0
               AND task_status IN (0, 1, 3)",
            message = message,
            user = user.0,
            now = now,
            from = format!("{prefix}:"),
            until = format!("{prefix};"),
        );
        cancelled += tx.execute(update).await?;
    }
    Ok(cancelled)
}

/// Keys a statement.
const MAX_KEYS: usize = 500;

async fn lock_order(tx: &mut Tx, order: OrderId) -> Result<Row, PaymentError> {
    tx.row(sql!(
        "SELECT status, create_user_id, push_status, payment_type
         FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = order.0,
    ))
    .await?
    .ok_or(PaymentError::OrderNotFound(order))
}

async fn check(tx: &Tx, order: OrderId, user: UserId, row: &Row) -> Result<(), PaymentError> {
    let creator = row.int("create_user_id")?;
    if creator != user.0 {
        return Err(PaymentError::Forbidden(format!(
            "order {order} can be cancelled by its creator, user {creator}, only"
        )));
    }
    match row.int("status")? {
        10 | 20 | 30 => {
            if is_review_being_applied(tx, order).await? {
                let why = "its reviewers' decision is being applied; wait until that has ended";
                return Err(state(order, row, why));
            }
            Ok(())
        }
        40 => check_unpaid(tx, order, row).await,
        90 => Err(state(order, row, "it is cancelled already")),
        _ => Err(state(order, row, "only an order at 10, 20, 30 or 40 can be cancelled")),
    }
}

/// At 40 nobody may have begun to pay, and the refresh must have ended: S12 and cancelling would
/// otherwise write the same records.
async fn check_unpaid(tx: &Tx, order: OrderId, row: &Row) -> Result<(), PaymentError> {
    let facts = sql!(
        "SELECT
           (SELECT COUNT(*) FROM fi_resident_income_payment_push_batch b
             WHERE b.payment_order_id = :order AND b.deleted = 0) AS batches,
           (SELECT COUNT(*) FROM fi_resident_income_payment_review_callback_progress p
             JOIN fi_resident_income_payment_order o
               ON o.id = p.payment_order_id AND o.current_publish_version = p.data_version
             WHERE p.payment_order_id = :order AND p.deleted = 0
               AND p.main_task_status = 'SUCCESS' AND p.refresh_ready = 1) AS refreshed",
        order = order.0,
    );
    let facts = tx.row(facts).await?.ok_or(PaymentError::OrderNotFound(order))?;
    let is_treasury = row.maybe_text("payment_type")?.as_deref() == Some("TREASURY");
    let is_unpushed = row.maybe_text("push_status")?.as_deref() == Some("NOT_PUSHED");
    match () {
        () if !is_treasury => Err(state(order, row, "at 40 only a TREASURY order is cancelled")),
        () if !is_unpushed || facts.int("batches")? > 0 => {
            Err(state(order, row, "it has push batches: its payment has begun"))
        }
        () if facts.int("refreshed")? == 0 => {
            Err(state(order, row, "its status refresh has not ended; try again once it has"))
        }
        () => Ok(()),
    }
}

fn state(order: OrderId, row: &Row, why: &str) -> PaymentError {
    let status = row.int("status").map_or_else(|_| "?".to_owned(), |status| status.to_string());
    PaymentError::OrderState { order, status, why: why.to_owned() }
}

/// Guard: 10, 20 or 30, or 40 with nothing pushed.
async fn move_order(tx: &mut Tx, order: OrderId) -> Result<bool, PaymentError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET status = 90, business_status = 'CANCELLED', update_time = :now
         WHERE id = :order
           AND (status IN (10, 20, 30) OR (status = 40 AND push_status = 'NOT_PUSHED'))",
        now = now,
        order = order.0,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Every session that is not COMPLETED is over, and gives up its keys.
async fn end_sessions(tx: &mut Tx, order: OrderId) -> Result<(), PaymentError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE selection_session
         SET status = 'SUBMIT_FAILED', invalidated_flag = 1,
             invalidated_reason = 'ORDER_CANCELLED', active_submit_id = NULL,
             active_scope_key = NULL, active_revise_key = NULL,
             state_version = state_version + 1, update_time = :now
         WHERE target_payment_order_id = :order AND deleted = 0 AND status <> 'COMPLETED'",
        now = now,
        order = order.0,
    ))
    .await?;
    Ok(())
}

async fn log(
    tx: &mut Tx,
    order: OrderId,
    user: UserId,
    reason: &str,
    from: i64,
) -> Result<(), PaymentError> {
    let now = tx.now();
    let remark: String = reason.chars().take(1000).collect();
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_order_log
           (payment_order_id, operation_type, from_status, to_status, operation_time,
            operation_remark, operator_user_id, create_time, update_time)
         VALUES (:order, 'CANCELLED', :from_status, 90, :now, :remark, :user, :now, :now)",
        order = order.0,
        from_status = from,
        now = now,
        remark = remark,
        user = user.0,
    ))
    .await?;
    Ok(())
}
