//! Conflicts: bills that somebody else holds. All of them are collected, once, and shown.

use counterfoil_db::{Db, Query, Read, Tx, sql};
use counterfoil_task::{Action, Run, Verdict, WorkError};

use super::Batch;
use crate::lock_release::{self, Reason};
use crate::version::VersionContext;

/// Conflicts named in the version's message; the table holds all.
const MAX_NAMED: u32 = 5;

/// Payable items of the session.
macro_rules! payable_items {
    () => {
        "i.session_id = :session AND i.line_type = 10 AND i.deleted = 0"
    };
}

/// A lock on the item's lock_key, except by this very attempt and except by the source version's
/// ACTIVE lock of the item's source line, which is carried.
macro_rules! holds_the_bill {
    () => {
        "k.lock_key = i.station_id || ':' || i.bill_yearmonth
           AND NOT (k.payment_order_id = :order AND k.session_id = :session
                    AND k.submit_attempt = :attempt AND k.data_version = :data)
           AND NOT (k.lock_status = 'ACTIVE' AND k.payment_order_id = :order
                    AND k.data_version = :source_data AND k.submit_round = :source_round
                    AND k.order_bill_id = COALESCE(i.source_order_bill_id, 0))"
    };
}

fn bound(query: Query, context: &VersionContext) -> Query {
    query
        .bind("session", context.session.0)
        .bind("order", context.order.0)
        .bind("attempt", context.attempt.0)
        .bind("data", context.target_data.0)
        .bind("source_data", context.source_data.0)
        .bind("source_round", context.source_round.0)
}

/// Looks before building, so that a conflict that is there already costs no half-built version.
///
/// The locks of an item are counted and the smallest item is asked for, not any: in the hope of a
/// conflict near the beginning PostgreSQL read all items of all sessions and joined all locks.
pub(super) async fn exists(db: &Db, context: &VersionContext) -> Result<bool, WorkError> {
    let query = Query::new(concat!(
        "SELECT MIN(i.id) AS id FROM selection_session_item i WHERE ",
        payable_items!(),
        " AND (SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock k WHERE ",
        holds_the_bill!(),
        ") > 0"
    ));
    Ok(db.count(bound(query, context)).await? != 0)
}

/// Fails the submission: the conflicts stored, version BUILD_FAILED, session SUBMIT_FAILED, S06
/// accepted for exactly this attempt's locks, S03 CANCELLED, in one commit.
pub(super) async fn fail(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    let found = store(&mut tx, context).await?;
    if found == 0 {
        // The holder let go between our insert and this look: let the task come back for it.
        let message = "a bill was held by another order for a moment; trying again";
        return Err(WorkError::failed("bill-lock-race", message));
    }
    let message = describe(&mut tx, context, found).await?;
    batch.lease.fail(&mut tx, "bill-lock-conflict", &message).await?;
    close(&mut tx, context, "bill-lock-conflict", &message).await?;
    accept_release(&mut tx, run, context, Reason::SubmitConflict).await?;
    tx.cancel("submit_build.conflict", &message).await
}

/// Accepts S06 for this attempt, traced as a cancellation of S03.
pub(super) async fn accept_release(
    tx: &mut counterfoil_task::Fenced<'_>,
    run: &Run<'_>,
    context: &VersionContext,
    reason: Reason,
) -> Result<(), WorkError> {
    let source = Some(run.code().clone());
    let seed = lock_release::seed(context.version, reason, context.subject(), source);
    tx.accept(&seed).await?;
    tx.trace(Action::Cancel, reason.as_str(), None, &context.subject()).await
}

async fn store(tx: &mut Tx, context: &VersionContext) -> Result<u64, WorkError> {
    let insert = sql!(
        concat!(
            "INSERT INTO selection_conflict
               (payment_order_version_id, station_id, bill_yearmonth, holder_lock_id,
                holder_order_id, holder_order_no, holder_lock_status, create_time, update_time)
             SELECT :version, i.station_id, i.bill_yearmonth, k.id, k.payment_order_id,
                o.order_no, k.lock_status, :now, :now
             FROM selection_session_item i
             JOIN fi_resident_income_payment_bill_lock k ON ",
            holds_the_bill!(),
            " LEFT JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id WHERE ",
            payable_items!(),
            " ORDER BY i.id"
        ),
        version = context.version.0,
        now = tx.now(),
    );
    Ok(tx.execute(bound(insert, context)).await?)
}

async fn describe(tx: &mut Tx, context: &VersionContext, found: u64) -> Result<String, WorkError> {
    let query = sql!(
        "SELECT station_id, bill_yearmonth, holder_order_no, holder_order_id
         FROM selection_conflict WHERE payment_order_version_id = :version
         ORDER BY id LIMIT :limit",
        version = context.version.0,
        limit = MAX_NAMED,
    );
    let mut named = Vec::new();
    for row in tx.rows(query).await? {
        let holder = match row.maybe_text("holder_order_no")? {
            Some(number) => number,
            None => format!("order {}", row.int("holder_order_id")?),
        };
        let (station, month) = (row.text("station_id")?, row.text("bill_yearmonth")?);
        named.push(format!("{station} {month} held by {holder}"));
    }
    Ok(format!("{found} bills are held by other orders: {}", named.join("; ")))
}

/// Version, session and order say that the submission failed. Guards: the version was never
/// published; the session still submits this version at this attempt.
pub(super) async fn close(
    tx: &mut Tx,
    context: &VersionContext,
    code: &'static str,
    message: &str,
) -> Result<(), WorkError> {
    let now = tx.now();
    let message: String = message.chars().take(1000).collect();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order_version
         SET version_build_status = 'BUILD_FAILED', error_code = :code, error_message = :message,
             update_time = :now
         WHERE id = :version AND version_build_status IN ('BUILDING', 'BUILT')",
        code = code,
        message = message,
        now = now,
        version = context.version.0,
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE selection_session
         SET status = 'SUBMIT_FAILED', failure_phase = 'BUILD',
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND status = 'SUBMITTING' AND active_submit_id = :version
           AND submit_attempt = :attempt",
        now = now,
        session = context.session.0,
        version = context.version.0,
        attempt = context.attempt.0,
    ))
    .await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order
         SET build_status = 'BUILD_FAILED', update_time = :now
         WHERE id = :order AND current_publish_version = 0 AND status = 10",
        now = now,
        order = context.order.0,
    ))
    .await?;
    Ok(())
}
