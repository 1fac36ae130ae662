//! The last step: the sums are proved and the batches shown, all at once.

use counterfoil_db::{Read, Tx, sql};

use super::Target;
use super::open;
use crate::PaymentError;
use crate::treasury::TreasuryError;

pub(super) enum Finished {
    Shown,
    Abandoned(String),
}

pub(super) async fn finish(tx: &mut Tx, target: Target) -> Result<Finished, TreasuryError> {
    let standing = open::lock_order(tx, target).await?;
    let Some(build) = open::build(tx, target).await? else {
        return Err(PaymentError::Conflict(format!("order {}", target.order)).into());
    };
    if let Some(why) = standing {
        open::abandon(tx, build.id).await?;
        return Ok(Finished::Abandoned(why));
    }
    prove_sums(tx, target).await?;
    show(tx, target).await?;
    close(tx, build.id).await?;
    start_pushing(tx, target).await?;
    Ok(Finished::Shown)
}

/// Lines, their details and the batches' totals must come to the same.
async fn prove_sums(tx: &mut Tx, target: Target) -> Result<(), TreasuryError> {
    // Between the first and the last line: PostgreSQL made a hash of the details of all orders.
    let (first, last) = open::ends(tx, target).await?;
    let query = sql!(
        "SELECT COUNT(*) AS payable, CAST(COALESCE(SUM(l.pay_amount), 0) AS {bigint}) AS due,
            COUNT(d.id) AS details, CAST(COALESCE(SUM(d.amount), 0) AS {bigint}) AS to_pay,
            (SELECT CAST(COALESCE(SUM(b.detail_count), 0) AS {bigint})
             FROM fi_resident_income_payment_push_batch b
             WHERE b.payment_order_id = :order AND b.data_version = :data
               AND b.submit_round = :round) AS in_batches,
            (SELECT CAST(COALESCE(SUM(b.total_amount), 0) AS {bigint})
             FROM fi_resident_income_payment_push_batch b
             WHERE b.payment_order_id = :order AND b.data_version = :data
               AND b.submit_round = :round) AS by_batches
         FROM fi_resident_income_payment_order_bill l
         LEFT JOIN fi_resident_income_payment_push_batch_detail d
           ON d.order_bill_id = l.id AND d.deleted = 0
          AND d.order_bill_id >= :first AND d.order_bill_id <= :last
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.submit_round = :round
           AND l.line_type = 10 AND l.deleted = 0",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        first = first,
        last = last,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(());
    };
    let lines = (row.int("payable")?, row.int("due")?);
    let details = (row.int("details")?, row.int("to_pay")?);
    let batches = (row.int("in_batches")?, row.int("by_batches")?);
    if lines == details && lines == batches {
        return Ok(());
    }
    Err(TreasuryError::SumsDiffer {
        order: target.order,
        details: format!("{details:?} in batches of {batches:?}"),
        lines: format!("{lines:?}"),
    })
}

async fn show(tx: &mut Tx, target: Target) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET deleted = 0, filling = 0, update_time = :now
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND deleted = 1",
        now = now,
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    ))
    .await?;
    Ok(())
}

/// Guard: BUILDING.
async fn close(tx: &mut Tx, build: i64) -> Result<(), TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_build
         SET build_status = 'DONE', update_time = :now
         WHERE id = :build AND build_status = 'BUILDING'",
        now = now,
        build = build,
    );
    if tx.execute(update).await? == 1 {
        return Ok(());
    }
    Err(PaymentError::Conflict(format!("batch build {build}")).into())
}

/// Guard: 40, TREASURY, NOT_PUSHED or not said. Under the order's lock it always wins.
async fn start_pushing(tx: &mut Tx, target: Target) -> Result<(), TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET push_status = 'PUSHING', update_time = :now
         WHERE id = :order AND status = 40 AND payment_type = 'TREASURY'
           AND COALESCE(push_status, 'NOT_PUSHED') = 'NOT_PUSHED'",
        now = now,
        order = target.order.0,
    );
    if tx.execute(update).await? == 1 {
        return Ok(());
    }
    Err(PaymentError::Conflict(format!("order {}", target.order)).into())
}
