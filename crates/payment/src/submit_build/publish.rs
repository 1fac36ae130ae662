//! Publishing: the order points to the new version, S04 is accepted, S03 succeeds, in one commit
//! under the order's row lock.

use counterfoil_db::{Read, Row, Tx, sql};
use counterfoil_task::{Run, Seed, Verdict, WorkError};

use super::{Batch, conflict};
use crate::PaymentError;
use crate::kinds::{LOCK_ACTIVATE, business_key};
use crate::lock_release::Reason;
use crate::review_progress::supersede_parked;
use crate::session::check_revisable;
use crate::version::{LockActivatePayload, Mode, VersionContext};

pub(super) async fn publish(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    let order = lock_order(&mut tx, context).await?;
    let allowed = may_publish(&mut tx, context, &order).await?;
    let won = match &allowed {
        Ok(()) => move_order(&mut tx, context).await?,
        Err(_) => false,
    };
    if !won {
        let why = allowed.err().unwrap_or_else(|| "the order has moved on meanwhile".into());
        let message = format!("the version could not be published: {why}");
        batch.lease.fail(&mut tx, "publish-lost", &message).await?;
        conflict::close(&mut tx, context, "publish-lost", &message).await?;
        conflict::accept_release(&mut tx, run, context, Reason::PublishLost).await?;
        return tx.cancel("submit_build.publish_lost", &message).await;
    }
    if !(move_version(&mut tx, context).await? && move_session(&mut tx, context).await?) {
        let message = format!("version {} or its session has moved on", context.version);
        return Err(WorkError::failed("submission-moved", message));
    }
    // A parked approval of the version before is over: nobody may rerun it.
    supersede_parked(&mut tx, context.order).await?;
    insert_project_payments(&mut tx, context).await?;
    log(&mut tx, context, order.int("status")?).await?;
    if !batch.lease.finish(&mut tx).await? {
        return Err(WorkError::failed("lease-lost", "the BUILD batch's lease was lost"));
    }
    let seed = Seed {
        kind: &LOCK_ACTIVATE,
        business_key: business_key::lock_activate(context.version),
        data: LockActivatePayload::data(context.version),
        subject: context.subject(),
        source: Some(run.code().clone()),
    };
    tx.accept(&seed).await?;
    tx.succeed("submit_build.publish").await
}

async fn lock_order(tx: &mut Tx, context: &VersionContext) -> Result<Row, WorkError> {
    let query = sql!(
        "SELECT status, current_publish_version, submit_round, create_user_id
         FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = context.order.0,
    );
    let row = tx.row(query).await?;
    row.ok_or_else(|| PaymentError::OrderNotFound(context.order).into())
}

/// The revision rules, checked a third time, now under the order's lock.
async fn may_publish(
    tx: &mut Tx,
    context: &VersionContext,
    order: &Row,
) -> Result<Result<(), String>, WorkError> {
    if context.mode == Mode::New {
        return Ok(Ok(()));
    }
    match check_revisable(tx, context.order, order).await {
        Ok(()) => Ok(Ok(())),
        Err(PaymentError::Db(error)) => Err(error.into()),
        Err(refused) => Ok(Err(refused.to_string())),
    }
}

/// Guard: source pointer, source round, and status 10 for NEW, 20 or 30 for REVISE. Lost = the
/// version was approved, cancelled or replaced meanwhile and is never paid a second time.
async fn move_order(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET current_publish_version = :target_data, submit_round = :target_round,
             build_status = 'PUBLISHED', status = 20, business_status = 'PENDING_AUDIT_PLAN',
             review_plan_id = NULL, audit_plan_status = NULL, review_finish_time = NULL,
             total_amount = COALESCE((SELECT SUM(l.pay_amount)
               FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id = :order AND l.data_version = :target_data
                 AND l.submit_round = :target_round AND l.line_type = 10 AND l.deleted = 0), 0),
             payable_count = (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id = :order AND l.data_version = :target_data
                 AND l.submit_round = :target_round AND l.line_type = 10 AND l.deleted = 0),
             unqualified_count = (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id = :order AND l.data_version = :target_data
                 AND l.submit_round = :target_round AND l.line_type = 20 AND l.deleted = 0),
             update_time = :now
         WHERE id = :order AND deleted = 0 AND current_publish_version = :source_data
           AND submit_round = :source_round
           AND ((:revise = 0 AND status = 10) OR (:revise = 1 AND status IN (20, 30)))",
        target_data = context.target_data.0,
        target_round = context.target_round.0,
        order = context.order.0,
        now = now,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        revise = context.mode == Mode::Revise,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Guard: still BUILDING or BUILT.
async fn move_version(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order_version
         SET version_build_status = 'PUBLISHED', publish_time = :now, error_code = NULL,
             error_message = NULL, update_time = :now
         WHERE id = :version AND version_build_status IN ('BUILDING', 'BUILT')",
        now = now,
        version = context.version.0,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Guard: SUBMITTING this version at this attempt.
async fn move_session(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET status = 'PUBLISHED_LOCK_SYNCING', state_version = state_version + 1,
             update_time = :now
         WHERE id = :session AND status = 'SUBMITTING' AND active_submit_id = :version
           AND submit_attempt = :attempt",
        now = now,
        session = context.session.0,
        version = context.version.0,
        attempt = context.attempt.0,
    );
    Ok(tx.execute(update).await? == 1)
}

/// One row a project company with its payable sum; a company with nothing to pay says so.
async fn insert_project_payments(tx: &mut Tx, context: &VersionContext) -> Result<(), WorkError> {
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_project_payment
           (payment_order_id, data_version, submit_round, project_company_id, payment_status,
            payer_account, amount, create_time, update_time)
         SELECT :order, :data, :round, c.company,
            CASE WHEN c.amount = 0 THEN 'NO_NEED_PAYMENT' ELSE 'WAIT_PAYMENT' END,
            p.payer_account, c.amount, :now, :now
         FROM (SELECT COALESCE(l.project_company_id, 0) AS company,
                 SUM(CASE WHEN l.line_type = 10 THEN COALESCE(l.pay_amount, 0) ELSE 0 END)
                   AS amount
               FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id = :order AND l.data_version = :data
                 AND l.submit_round = :round AND l.deleted = 0
               GROUP BY COALESCE(l.project_company_id, 0)) AS c
         LEFT JOIN sys_project_company p ON p.id = c.company AND p.deleted = 0",
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        now = tx.now(),
    );
    tx.execute(insert).await?;
    Ok(())
}

async fn log(tx: &mut Tx, context: &VersionContext, from: i64) -> Result<(), WorkError> {
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_log
           (payment_order_id, operation_type, from_status, to_status, operation_time,
            data_version, payable_count, unqualified_count, create_time, update_time)
         SELECT id, 'PUBLISHED', :from_status, 20, :now, :data, payable_count, unqualified_count,
            :now, :now
         FROM fi_resident_income_payment_order WHERE id = :order",
        from_status = from,
        now = tx.now(),
        data = context.target_data.0,
        order = context.order.0,
    );
    tx.execute(insert).await?;
    Ok(())
}
