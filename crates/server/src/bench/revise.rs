//! `bench activate --revise`: a published revision as S03 leaves it to S04.
//!
//! By the number of its bill a line is dropped (ends in 0), becomes unqualified (ends in 1) or
//! stays; one line in ten is new.

use anyhow::Result;
use counterfoil_db::{Db, sql};
use counterfoil_protocol::VersionId;

use super::activate::{hand_over, order_of};

/// The payable lines of a revision of `rows` lines.
pub(super) fn payable(rows: u64) -> u64 {
    rows - rows / 10 - rows.saturating_add(9) / 10 + rows / 10
}

/// Revises `first`, whose locks are ACTIVE and whose records refer to it, and adds bills of the
/// records that were made for `second`.
pub(super) async fn prepare(
    db: &Db,
    first: VersionId,
    second: VersionId,
    rows: u64,
) -> Result<VersionId> {
    let rows = i64::try_from(rows)?;
    let mut tx = db.begin().await?;
    let order = order_of(&tx, first).await?;
    let other = order_of(&tx, second).await?;
    // The second set's locks give way to the revision's new lines.
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_bill_lock
         SET lock_status = 'RELEASED', lock_key = lock_key || ':RELEASED:' || id,
             create_time = :past
         WHERE payment_order_id = :other",
        other = other,
        past = tx.now() - chrono::TimeDelta::days(1),
    ))
    .await?;
    let session = tx
        .insert(sql!(
            "INSERT INTO selection_session
               (mode, status, creator_user_id, target_payment_order_id, submit_attempt)
             VALUES ('REVISE', 'PUBLISHED_LOCK_SYNCING', 7, :order, 1)",
            order = order,
        ))
        .await?;
    let version = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_order_version
               (payment_order_id, session_id, mode, source_data_version, source_submit_round,
                target_data_version, target_submit_round, submit_attempt, version_build_status)
             VALUES (:order, :session, 'REVISE', 1, 1, 2, 2, 1, 'PUBLISHED')",
            order = order,
            session = session,
        ))
        .await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order
         SET current_publish_version = 2, submit_round = 2 WHERE id = :order",
        order = order,
    ))
    .await?;
    for text in [STAYING, ADDED] {
        tx.execute(sql!(text, order = order, rows = rows)).await?;
    }
    tx.execute(sql!(ADDED_LOCKS, order = order, session = session)).await?;
    hand_over(&mut tx, version, session).await?;
    tx.commit("bench.revise").await?;
    Ok(VersionId(version))
}

const STAYING: &str = "INSERT INTO fi_resident_income_payment_order_bill
       (payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, source_order_bill_id, pre_rent, pay_amount,
        unqualified_reason, before_payment_status, before_partner_query_status)
     SELECT :order, 2, 2, CASE WHEN diff_id % 10 = 1 THEN 20 ELSE 10 END, station_id,
        bill_yearmonth, diff_id, small_bill_id, partner_bill_id, id, pre_rent, pay_amount,
        CASE WHEN diff_id % 10 = 1 THEN '农户租金异常' ELSE NULL END, 20, 10
     FROM fi_resident_income_payment_order_bill
     WHERE payment_order_id = :order AND data_version = 1 AND diff_id % 10 <> 0
       AND diff_id <= :rows
     ORDER BY id";

const ADDED: &str = "INSERT INTO fi_resident_income_payment_order_bill
       (payment_order_id, data_version, submit_round, line_type, station_id, bill_yearmonth,
        diff_id, small_bill_id, partner_bill_id, pre_rent, pay_amount, before_payment_status,
        before_partner_query_status)
     SELECT :order, 2, 2, 10, station_id, bill_yearmonth, id, id, id, 10000, 10000, 20, 10
     FROM fi_monthly_income_difference WHERE id > :rows AND id <= :rows + :rows / 10 ORDER BY id";

const ADDED_LOCKS: &str = "INSERT INTO fi_resident_income_payment_bill_lock
       (lock_key, lock_status, lock_scene, payment_order_id, order_bill_id, data_version,
        submit_round, session_id, submit_attempt, station_id, bill_yearmonth, diff_id,
        small_bill_id, partner_bill_id, source_payment_status, source_partner_query_status)
     SELECT station_id || ':' || bill_yearmonth, 'RESERVED', 'BUILD_RESERVE', payment_order_id,
        id, 2, 2, :session, 1, station_id, bill_yearmonth, diff_id, small_bill_id,
        partner_bill_id, 20, 10
     FROM fi_resident_income_payment_order_bill
     WHERE payment_order_id = :order AND data_version = 2 AND source_order_bill_id IS NULL
     ORDER BY id";
