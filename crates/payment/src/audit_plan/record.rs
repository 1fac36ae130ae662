//! The fenced transactions of S05. Each locks the order and looks where the version stands before
//! it writes anything.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_protocol::{PlanId, VersionId};
use counterfoil_task::{Fenced, Run, Verdict, WorkError};

use super::{AuditPlanError, Standing, standing};
use crate::{PaymentError, VersionContext};

/// What the first transaction found.
pub(super) enum Begun {
    /// The version is CREATING: ask the centre.
    Marked(Box<VersionContext>),
    /// The order moved on; an earlier attempt may have opened a plan.
    MovedOn { facts: Box<VersionContext>, why: String, may_have_plan: bool },
}

/// What the last transaction did.
pub(super) enum Recorded {
    Created(Verdict),
    Failed(WorkError),
    MovedOn { why: String },
}

/// Checks, and marks CREATING on order and version.
pub(super) async fn begin(run: &Run<'_>, version: VersionId) -> Result<Begun, WorkError> {
    let mut tx = run.begin().await?;
    let facts = lock_and_read(&mut tx, version).await?;
    match standing(&facts) {
        Standing::Ready => {}
        Standing::NotReady(error) => {
            tx.rollback().await?;
            return Err(error.into());
        }
        Standing::MovedOn(why) => {
            let may_have_plan = has_asked(&*tx, version).await?;
            tx.rollback().await?;
            return Ok(Begun::MovedOn { facts: Box::new(facts), why, may_have_plan });
        }
    }
    set_audit_plan_status(&mut tx, &facts, "CREATING").await?;
    tx.commit("audit_plan.creating").await?;
    Ok(Begun::Marked(Box::new(facts)))
}

/// Approval instance, plan id, states and SUCCESS, all in one commit.
pub(super) async fn created(
    run: &Run<'_>,
    version: VersionId,
    plan: PlanId,
) -> Result<Recorded, WorkError> {
    let mut tx = run.begin().await?;
    let facts = lock_and_read(&mut tx, version).await?;
    match standing(&facts) {
        Standing::Ready => {}
        Standing::MovedOn(why) => {
            tx.rollback().await?;
            return Ok(Recorded::MovedOn { why });
        }
        Standing::NotReady(error) => {
            tx.rollback().await?;
            return Ok(Recorded::Failed(error.into()));
        }
    }
    open_approval(&mut tx, &facts, plan).await?;
    let now = tx.now();
    let order = sql!(
        "UPDATE fi_resident_income_payment_order
         SET review_plan_id = :plan, business_status = 'UNDER_REVIEW', update_time = :now
         WHERE id = :order AND deleted = 0",
        plan = plan.0,
        now = now,
        order = facts.order.0,
    );
    won_or_conflict(tx.execute(order).await?, &facts)?;
    set_audit_plan_status(&mut tx, &facts, "CREATED").await?;
    Ok(Recorded::Created(tx.succeed("audit_plan.created").await?))
}

/// CREATE_FAILED in a transaction of its own, so that it lasts whatever becomes of the task.
pub(super) async fn create_failed(
    run: &Run<'_>,
    version: VersionId,
    trouble: &AuditPlanError,
) -> Result<Recorded, WorkError> {
    let mut tx = run.begin().await?;
    let facts = lock_and_read(&mut tx, version).await?;
    if let Standing::MovedOn(why) = standing(&facts) {
        tx.rollback().await?;
        return Ok(Recorded::MovedOn { why });
    }
    set_audit_plan_status(&mut tx, &facts, "CREATE_FAILED").await?;
    tx.commit("audit_plan.create_failed").await?;
    Ok(Recorded::Failed(trouble.clone().into()))
}

/// The order moved on: CANCELLED, and nothing else is written.
pub(super) async fn cancel(run: &Run<'_>, why: &str) -> Result<Verdict, WorkError> {
    let tx = run.begin().await?;
    tx.cancel("audit_plan.cancelled", why).await
}

/// The order's row lock is the one that publishing, cancelling and reviewing take too: what is
/// read under it stays true until the commit.
async fn lock_and_read(
    tx: &mut Fenced<'_>,
    version: VersionId,
) -> Result<VersionContext, WorkError> {
    let lock = sql!(
        "SELECT o.id FROM fi_resident_income_payment_order o
         WHERE o.id = (SELECT v.payment_order_id FROM fi_resident_income_payment_order_version v
                       WHERE v.id = :version)
         {for_update}",
        version = version.0,
    );
    tx.row(lock).await?;
    Ok(VersionContext::read(&**tx, version).await?)
}

/// Whether an earlier attempt has come as far as asking the centre.
async fn has_asked(from: &impl Read, version: VersionId) -> Result<bool, WorkError> {
    let asked = sql!(
        "SELECT COUNT(*) AS asked FROM fi_resident_income_payment_order_version
         WHERE id = :version AND audit_plan_status IS NOT NULL",
        version = version.0,
    );
    Ok(from.count(asked).await? > 0)
}

/// Guard: pointer and round are the version's, and the version is PUBLISHED. Under the order's
/// lock it always wins; losing would mean that somebody writes without that lock.
async fn set_audit_plan_status(
    tx: &mut Tx,
    facts: &VersionContext,
    status: &'static str,
) -> Result<(), WorkError> {
    let now = tx.now();
    let order = sql!(
        "UPDATE fi_resident_income_payment_order
         SET audit_plan_status = :status, update_time = :now
         WHERE id = :order AND deleted = 0 AND current_publish_version = :data
           AND submit_round = :round",
        status = status,
        now = now,
        order = facts.order.0,
        data = facts.target_data.0,
        round = facts.target_round.0,
    );
    won_or_conflict(tx.execute(order).await?, facts)?;
    let version = sql!(
        "UPDATE fi_resident_income_payment_order_version
         SET audit_plan_status = :status, update_time = :now
         WHERE id = :version AND deleted = 0 AND version_build_status = 'PUBLISHED'",
        status = status,
        now = now,
        version = facts.version.0,
    );
    won_or_conflict(tx.execute(version).await?, facts)
}

fn won_or_conflict(changed: u64, facts: &VersionContext) -> Result<(), WorkError> {
    if changed == 1 {
        return Ok(());
    }
    Err(PaymentError::Conflict(format!("order {}", facts.order)).into())
}

/// One approval instance a plan: the attempt is the highest of that order and version + 1, unless
/// the same plan has one already.
async fn open_approval(tx: &mut Tx, facts: &VersionContext, plan: PlanId) -> Result<(), WorkError> {
    let instances = sql!(
        "SELECT COALESCE(MAX(approval_attempt), 0) AS highest,
                COUNT(CASE WHEN review_plan_id = :plan AND deleted = 0 THEN 1 END) AS of_plan
         FROM fi_resident_income_payment_order_approval_instance
         WHERE payment_order_id = :order AND data_version = :data",
        plan = plan.0,
        order = facts.order.0,
        data = facts.target_data.0,
    );
    let (highest, of_plan) = match tx.row(instances).await? {
        Some(row) => (row.int("highest")?, row.int("of_plan")?),
        None => (0, 0),
    };
    if of_plan > 0 {
        return Ok(());
    }
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_approval_instance
           (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round,
            approval_status, create_time, update_time)
         VALUES (:order, :data, :attempt, :plan, :round, 'IN_REVIEW', :now, :now)",
        order = facts.order.0,
        data = facts.target_data.0,
        attempt = highest + 1,
        plan = plan.0,
        round = facts.target_round.0,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}
