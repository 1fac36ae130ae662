//! Whose turn it is.
//!
//! Each phase and status is looked up in the order of `ix_callback_progress_due` and answers its
//! oldest row, whatever the backlog. Among the phases the one goes first that had the fewest turns
//! in this round; among rows, the one that waits longest.

use counterfoil_db::{Db, Instant, Query, Read, Row, sql, transact};
use counterfoil_task::{Selector, Unit, WorkError};

use super::finalize::RECHECK_VIOLATED;
use crate::kinds::REVIEW_CALLBACK;

pub(super) const BILL_UPDATE: &str = "BILL_UPDATE";
pub(super) const FINALIZE: &str = "FINALIZE";
pub(super) const LOCK_RELEASE: &str = "LOCK_RELEASE";

macro_rules! columns {
    () => {
        "SELECT p.id, p.phase, p.running_attempt, p.retry_count, p.update_time,
                (SELECT t.task_code FROM fi_async_task t WHERE t.id = p.async_task_id) AS task_code
         FROM fi_resident_income_payment_review_callback_progress p
         WHERE p.deleted = 0 AND (p.next_retry_time IS NULL OR p.next_retry_time <= :now) "
    };
}

macro_rules! oldest {
    ($name:literal, $main:literal, $phase:literal, $status:literal, $more:literal) => {
        concat!(
            "SELECT * FROM (",
            columns!(),
            "AND p.main_task_status = '",
            $main,
            "' AND p.phase = '",
            $phase,
            "' AND p.phase_status = '",
            $status,
            "' ",
            $more,
            " ORDER BY p.update_time, p.id LIMIT 1) AS ",
            $name
        )
    };
}

const EXPIRED: &str = "AND (p.lease_expire_time IS NULL OR p.lease_expire_time <= :now)";

/// The oldest eligible row of each phase and status.
pub(super) async fn oldest(db: &Db, now: Instant) -> Result<Vec<(Instant, Unit)>, WorkError> {
    let parts = [
        oldest!("a", "RUNNING", "PREPARE", "SUCCESS", ""),
        oldest!("b", "RUNNING", "BILL_UPDATE", "INIT", ""),
        oldest!("c", "RUNNING", "BILL_UPDATE", "FAILED", ""),
        oldest!("d", "RUNNING", "BILL_UPDATE", "RUNNING", "[expired]"),
        oldest!("e", "RUNNING", "FINALIZE", "INIT", ""),
        oldest!(
            "f",
            "RUNNING",
            "FINALIZE",
            "FAILED",
            "AND COALESCE(p.last_error_code, '') <> :parked"
        ),
        oldest!("g", "RUNNING", "FINALIZE", "RUNNING", "[expired]"),
        oldest!("h", "SUCCESS", "LOCK_RELEASE", "INIT", ""),
        oldest!("i", "SUCCESS", "LOCK_RELEASE", "FAILED", ""),
        oldest!("j", "SUCCESS", "LOCK_RELEASE", "RUNNING", "[expired]"),
    ];
    let text = parts.join(" UNION ALL ").replace("[expired]", EXPIRED);
    let query = Query::built(text).bind("now", now).bind("parked", RECHECK_VIOLATED);
    let mut found = Vec::new();
    for row in db.rows(query).await? {
        found.push((row.instant("update_time")?, unit(&row)?));
    }
    Ok(found)
}

macro_rules! eligible {
    () => {
        concat!(
            columns!(),
            "AND ((p.main_task_status = 'RUNNING' AND p.phase = 'PREPARE'
                   AND p.phase_status = 'SUCCESS')
              OR (((p.main_task_status = 'RUNNING' AND p.phase IN ('BILL_UPDATE', 'FINALIZE'))
                   OR (p.main_task_status = 'SUCCESS' AND p.phase = 'LOCK_RELEASE'))
                  AND (p.phase_status = 'INIT'
                    OR (p.phase_status = 'FAILED'
                        AND (p.phase <> 'FINALIZE' OR COALESCE(p.last_error_code, '') <> :parked))
                    OR (p.phase_status = 'RUNNING'
                        AND (p.lease_expire_time IS NULL OR p.lease_expire_time <= :now))))) "
        )
    };
}

/// One row, if it is eligible.
pub(super) async fn one(db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
    let query = sql!(
        concat!(eligible!(), "AND p.id = :id"),
        now = now,
        parked = RECHECK_VIOLATED,
        id = id,
    );
    db.row(query).await?.as_ref().map(unit).transpose()
}

/// The progress rows of named S07 tasks. One that FAILED is eligible again at once, also when it
/// was parked; a live lease, a finished and a superseded row stay as they are.
pub(super) async fn named(
    db: &Db,
    selector: &Selector,
    limit: u32,
) -> Result<Vec<Unit>, WorkError> {
    transact!(reopen(db, selector))?;
    let query = Query::new(concat!(
        eligible!(),
        "AND p.async_task_id IN (
           SELECT t.id FROM fi_async_task t
           WHERE t.task_type = :task_type AND t.deleted = 0
             AND (t.task_code IN :codes OR t.business_key IN :keys))
         ORDER BY p.id LIMIT :limit"
    ))
    .bind("now", db.now().await?)
    .bind("parked", RECHECK_VIOLATED)
    .bind("limit", limit);
    db.rows(tasks(query, selector)).await?.iter().map(unit).collect()
}

/// Guard: FAILED. The tasks are read first: MariaDB would read every progress row there is and ask
/// for each whether its task is named.
async fn reopen(db: &Db, selector: &Selector) -> Result<(), WorkError> {
    let mut tx = db.begin().await?;
    let named = Query::new(
        "SELECT t.id FROM fi_async_task t
         WHERE t.task_type = :task_type AND t.deleted = 0
           AND (t.task_code IN :codes OR t.business_key IN :keys)",
    );
    let mut named_ids = Vec::new();
    for row in tx.rows(tasks(named, selector)).await? {
        named_ids.push(row.int("id")?);
    }
    let update = Query::new(
        "UPDATE fi_resident_income_payment_review_callback_progress
         SET next_retry_time = NULL, last_error_code = NULL, update_time = :now
         WHERE async_task_id IN :tasks AND deleted = 0 AND phase_status = 'FAILED'
           AND main_task_status IN ('RUNNING', 'SUCCESS')",
    )
    .bind("now", tx.now())
    .bind_list("tasks", named_ids);
    tx.execute(update).await?;
    tx.commit("review_progress.reopen").await?;
    Ok(())
}

fn tasks(query: Query, selector: &Selector) -> Query {
    query
        .bind("task_type", REVIEW_CALLBACK.task_type)
        .bind_list("codes", selector.codes.iter().map(String::as_str))
        .bind_list("keys", selector.keys.iter().map(String::as_str))
}

fn unit(row: &Row) -> Result<Unit, WorkError> {
    let id = row.int("id")?;
    let group = match row.text("phase")?.as_str() {
        "FINALIZE" => FINALIZE,
        "LOCK_RELEASE" => LOCK_RELEASE,
        _ => BILL_UPDATE,
    };
    let label = row.maybe_text("task_code")?.unwrap_or_else(|| format!("progress:{id}"));
    Ok(Unit {
        id,
        version: row.int("running_attempt")?,
        group,
        retries: row.int("retry_count")?,
        label,
    })
}
