//! Step 5: what payable lines hold is written onto the three business tables.
//!
//! Only rows that differ are written: a replay changes no row, no time and no version number. A
//! NULL business id is no reference: nothing is written and nothing is missing.
//!
//! The range on `k.order_bill_id` and `k.payment_order_id + 0` keep a line to its own lock.
//! Statistics know nothing of locks that were activated a moment ago: offered the order's index,
//! PostgreSQL expected one ACTIVE lock and walked all of them for every line. MariaDB samples its
//! statistics and is told to read the record last, by its id.

use counterfoil_db::{Read, Text, Tx, sql, transact};
use counterfoil_task::{Progress, Run, WorkError};

use super::batch::Batch;
use crate::version::VersionContext;

/// Projects the target version's payable lines that have their ACTIVE lock, batch by line id.
pub(super) async fn project(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<(), WorkError> {
    let mut after = 0;
    loop {
        run.checkpoint()?;
        match transact!(one_batch(run, context, batch, after))? {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

async fn one_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let mut tx = run.begin().await?;
    let Some(last) = end_of_batch(&mut tx, context, batch, after).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    for text in [DIFFERENCE, SMALL_BILL, PARTNER_BILL] {
        write_range(&mut tx, text, context, after, last).await?;
    }
    batch.renew(&mut tx, Progress::none()).await?;
    tx.commit("lock_activation.project").await?;
    Ok(Some(last))
}

async fn end_of_batch(
    tx: &mut Tx,
    context: &VersionContext,
    batch: &Batch,
    after: i64,
) -> Result<Option<i64>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM fi_resident_income_payment_order_bill
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
             AND line_type = 10 AND deleted = 0 AND id > :after
           ORDER BY id LIMIT :size) AS batch",
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        after = after,
        size = batch.size,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.maybe_int("last")).transpose()?.flatten())
}

async fn write_range(
    tx: &mut Tx,
    text: Text,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let update = sql!(
        text,
        now = now,
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        session = context.session.0,
        attempt = context.attempt.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(update).await?)
}

const DIFFERENCE: Text = Text::Forked {
    standard: "UPDATE fi_monthly_income_difference AS r
         SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
             locked_order_bill_id = l.id, unqualified_flag = 0, unqualified_reason = NULL,
             financial_version = r.financial_version + 1,
             payment_status_update_time = :now, update_time = :now
         FROM fi_resident_income_payment_order_bill l, fi_resident_income_payment_bill_lock k
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
           AND k.order_bill_id > :after AND k.order_bill_id <= :last
           AND k.payment_order_id + 0 = :order AND k.data_version = :data
           AND k.submit_round = :round AND k.session_id = :session
           AND k.submit_attempt = :attempt
           AND r.id = l.diff_id AND r.deleted = 0
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id
                OR r.unqualified_flag <> 0 OR r.unqualified_reason IS NOT NULL)",
    mariadb: "UPDATE fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
          AND k.order_bill_id > :after AND k.order_bill_id <= :last
          AND k.payment_order_id + 0 = :order AND k.data_version = :data
          AND k.submit_round = :round AND k.session_id = :session
          AND k.submit_attempt = :attempt
         STRAIGHT_JOIN fi_monthly_income_difference r FORCE INDEX (PRIMARY)
           ON r.id = l.diff_id AND r.deleted = 0
         SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
             r.locked_order_bill_id = l.id, r.unqualified_flag = 0,
             r.unqualified_reason = NULL, r.financial_version = r.financial_version + 1,
             r.payment_status_update_time = :now, r.update_time = :now
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id
                OR r.unqualified_flag <> 0 OR r.unqualified_reason IS NOT NULL)",
};

const SMALL_BILL: Text = Text::Forked {
    standard: "UPDATE fi_customer_bill AS r
         SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
             locked_order_bill_id = l.id,
             payment_status_update_time = :now, update_time = :now
         FROM fi_resident_income_payment_order_bill l, fi_resident_income_payment_bill_lock k
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
           AND k.order_bill_id > :after AND k.order_bill_id <= :last
           AND k.payment_order_id + 0 = :order AND k.data_version = :data
           AND k.submit_round = :round AND k.session_id = :session
           AND k.submit_attempt = :attempt
           AND r.id = l.small_bill_id AND r.deleted = 0
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id)",
    mariadb: "UPDATE fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
          AND k.order_bill_id > :after AND k.order_bill_id <= :last
          AND k.payment_order_id + 0 = :order AND k.data_version = :data
          AND k.submit_round = :round AND k.session_id = :session
          AND k.submit_attempt = :attempt
         STRAIGHT_JOIN fi_customer_bill r FORCE INDEX (PRIMARY)
           ON r.id = l.small_bill_id AND r.deleted = 0
         SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
             r.locked_order_bill_id = l.id,
             r.payment_status_update_time = :now, r.update_time = :now
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id)",
};

const PARTNER_BILL: Text = Text::Forked {
    standard: "UPDATE fi_customer_bill_partner AS r
         SET payment_status = 30, locked_payment_order_id = l.payment_order_id,
             locked_order_bill_id = l.id, unqualified_flag = 0, unqualified_reason = NULL,
             payment_status_update_time = :now, update_time = :now
         FROM fi_resident_income_payment_order_bill l, fi_resident_income_payment_bill_lock k
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
           AND k.order_bill_id > :after AND k.order_bill_id <= :last
           AND k.payment_order_id + 0 = :order AND k.data_version = :data
           AND k.submit_round = :round AND k.session_id = :session
           AND k.submit_attempt = :attempt
           AND r.id = l.partner_bill_id AND r.deleted = 0
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id
                OR r.unqualified_flag <> 0 OR r.unqualified_reason IS NOT NULL)",
    mariadb: "UPDATE fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
          AND k.order_bill_id > :after AND k.order_bill_id <= :last
          AND k.payment_order_id + 0 = :order AND k.data_version = :data
          AND k.submit_round = :round AND k.session_id = :session
          AND k.submit_attempt = :attempt
         STRAIGHT_JOIN fi_customer_bill_partner r FORCE INDEX (PRIMARY)
           ON r.id = l.partner_bill_id AND r.deleted = 0
         SET r.payment_status = 30, r.locked_payment_order_id = l.payment_order_id,
             r.locked_order_bill_id = l.id, r.unqualified_flag = 0,
             r.unqualified_reason = NULL,
             r.payment_status_update_time = :now, r.update_time = :now
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after AND l.id <= :last
           AND (r.payment_status <> 30
                OR COALESCE(r.locked_payment_order_id, 0) <> l.payment_order_id
                OR COALESCE(r.locked_order_bill_id, 0) <> l.id
                OR r.unqualified_flag <> 0 OR r.unqualified_reason IS NOT NULL)",
};
