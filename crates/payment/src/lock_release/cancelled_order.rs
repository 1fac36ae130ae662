//! A cancelled order lets go of every bill it holds; the tables say of each what S12 decides, by
//! S12's own sub-batches; the audit plan is withdrawn.

use counterfoil_db::{Db, Query, Read, Tx, sql, transact};
use counterfoil_protocol::{OrderId, VersionId};
use counterfoil_task::{Run, Verdict, WorkError};

use super::Reason;
use crate::PaymentError;
use crate::status_refresh::{NamedBy, SUB_BATCH, Scope, refresh};

/// Groups of locks a run walks; a next run walks what is left.
const MAX_GROUPS: u32 = 1000;

pub(super) async fn release(run: &Run<'_>, version: VersionId) -> Result<OrderId, WorkError> {
    let order = order_of(run, version).await?;
    for group in groups(run.db(), order).await? {
        let mut after = 0;
        loop {
            run.checkpoint()?;
            match transact!(one_batch(run, order, &group, after))? {
                Some(last) => after = last,
                None => break,
            }
        }
    }
    Ok(order)
}

/// The order's locks of one version, round and status. Within a group the index is in the order
/// of the ids, so that a batch reads its own locks only; over the whole order each batch would
/// read all of them.
#[derive(Debug)]
struct Group {
    data_version: i64,
    round: i64,
    status: String,
}

async fn groups(db: &Db, order: OrderId) -> Result<Vec<Group>, WorkError> {
    let query = sql!(
        "SELECT DISTINCT data_version, submit_round, lock_status
         FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status IN ('RESERVED', 'ACTIVE')
         ORDER BY data_version, submit_round, lock_status LIMIT :limit",
        order = order.0,
        limit = MAX_GROUPS,
    );
    let mut groups = Vec::new();
    for row in db.rows(query).await? {
        groups.push(Group {
            data_version: row.int("data_version")?,
            round: row.int("submit_round")?,
            status: row.text("lock_status")?,
        });
    }
    Ok(groups)
}

/// Proves that no lock is left and succeeds.
pub(super) async fn close(run: &Run<'_>, order: OrderId) -> Result<Verdict, WorkError> {
    transact!(try_close(run, order))
}

async fn try_close(run: &Run<'_>, order: OrderId) -> Result<Verdict, WorkError> {
    let tx = run.begin().await?;
    let held = sql!(
        "SELECT MIN(id) AS id FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status IN ('RESERVED', 'ACTIVE')",
        order = order.0,
    );
    let lock = tx.count(held).await?;
    if lock != 0 {
        let message = format!("order {order} still holds lock {lock}");
        return Err(WorkError::failed("lock-release-incomplete", message));
    }
    tx.succeed("lock_release.cancelled").await
}

async fn order_of(run: &Run<'_>, version: VersionId) -> Result<OrderId, WorkError> {
    let query = sql!(
        "SELECT v.payment_order_id, o.status
         FROM fi_resident_income_payment_order_version v
         JOIN fi_resident_income_payment_order o ON o.id = v.payment_order_id
         WHERE v.id = :version AND v.deleted = 0 AND o.deleted = 0",
        version = version.0,
    );
    let row = run.db().row(query).await?.ok_or(PaymentError::VersionNotFound(version))?;
    let order = OrderId(row.int("payment_order_id")?);
    if row.int("status")? != 90 {
        let message = format!("order {order} is not cancelled; its locks stay");
        return Err(WorkError::failed("order-state", message));
    }
    Ok(order)
}

/// The next locks of a group; each names the bill that it lets go.
async fn held(
    tx: &mut Tx,
    order: OrderId,
    group: &Group,
    after: i64,
) -> Result<Vec<Scope>, WorkError> {
    let query = sql!(
        "SELECT id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id
         FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND lock_status = :status AND id > :after
         ORDER BY id LIMIT :size",
        order = order.0,
        data = group.data_version,
        round = group.round,
        status = group.status.as_str(),
        after = after,
        size = SUB_BATCH,
    );
    let mut locks = Vec::new();
    for row in tx.rows(query).await? {
        locks.push(Scope::of(&row)?);
    }
    Ok(locks)
}

async fn one_batch(
    run: &Run<'_>,
    order: OrderId,
    group: &Group,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let locks = held(&mut tx, order, group, after).await?;
    let Some(last) = locks.last().map(|lock| lock.id) else {
        tx.rollback().await?;
        return Ok(None);
    };
    release_locks(&mut tx, &locks).await?;
    refresh(&mut tx, run.code().as_str(), NamedBy::Locks, &locks).await?;
    tx.commit("lock_release.cancelled_batch").await?;
    Ok(Some(last))
}

/// Guard: RESERVED or ACTIVE.
async fn release_locks(tx: &mut Tx, locks: &[Scope]) -> Result<u64, WorkError> {
    let update = Query::new(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_scene = 'CANCELLED_RELEASE',
             release_reason = :reason, release_time = :now,
             lock_key = lock_key || ':RELEASED:' || id, update_time = :now
         WHERE id IN :ids AND lock_status IN ('RESERVED', 'ACTIVE')",
    )
    .bind("reason", Reason::OrderCancelled.as_str())
    .bind("now", tx.now())
    .bind_list("ids", locks.iter().map(|lock| lock.id));
    Ok(tx.execute(update).await?)
}
