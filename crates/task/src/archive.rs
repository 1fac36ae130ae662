//! Finished tasks leave the table that rounds work on, with their traces, for one that nobody
//! scans. A code stays taken: accepting it again finds the task there.

use counterfoil_db::{Db, Instant, Query, Read, Result, Tx, sql, transact};
use counterfoil_protocol::TaskCode;

use crate::TaskStatus;
use crate::accept::Stored;

/// Tasks that leave in one transaction at most.
pub const MAX_ARCHIVED: u32 = 1000;

/// When the oldest task of this type ended that ended before `before`; by age of its row.
///
/// # Errors
/// The database's.
pub async fn oldest_finished(db: &Db, task_type: &str, before: Instant) -> Result<Option<Instant>> {
    let row = db.row(finished(task_type, before, 1)).await?;
    row.map(|row| row.instant("update_time")).transpose()
}

/// Moves the oldest tasks of this type that ended before `before`, `most` at most, and their
/// traces. Answers how many.
///
/// # Errors
/// The database's; nothing is moved then.
pub async fn archive_finished(db: &Db, task_type: &str, before: Instant, most: u32) -> Result<u64> {
    transact!(try_archive(db, task_type, before, most))
}

/// By the index of due tasks: ended ones have no due time. What has ended never changes again, so
/// nothing has to be locked.
fn finished(task_type: &str, before: Instant, most: u32) -> Query {
    sql!(
        "SELECT id, task_code, update_time FROM fi_async_task
         WHERE task_type = :task_type AND task_status IN (2, 4) AND deleted = 0
           AND update_time < :before
         ORDER BY id LIMIT :most",
        task_type = task_type,
        before = before,
        most = most.clamp(1, MAX_ARCHIVED),
    )
}

async fn try_archive(db: &Db, task_type: &str, before: Instant, most: u32) -> Result<u64> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let rows = tx.rows(finished(task_type, before, most)).await?;
    let ids = rows.iter().map(|row| row.int("id")).collect::<Result<Vec<_>>>()?;
    let codes = rows.iter().map(|row| row.text("task_code")).collect::<Result<Vec<_>>>()?;
    if ids.is_empty() {
        tx.rollback().await?;
        return Ok(0);
    }
    // A second process may have moved some of them meanwhile: they are there already.
    let tasks = sql!(
        "{insert_ignore} INTO fi_async_task_archive (id, task_code, task_type, business_key,
            task_data, task_status, retry_count, max_retry_count, running_attempt, error_message,
            update_user_id, create_time, update_time, archived_time)
         SELECT id, task_code, task_type, business_key, task_data, task_status, retry_count,
            max_retry_count, running_attempt, error_message, update_user_id, create_time,
            update_time, :now
         FROM fi_async_task WHERE id IN :ids AND task_status IN (2, 4)
         {or_ignore}",
        now = now,
    );
    tx.execute(tasks.bind_list("ids", ids.iter().copied())).await?;
    let traces = sql!(
        "{insert_ignore} INTO fi_resident_income_payment_async_operation_log_archive (id, task_id,
            task_code, task_type, business_key, action, source_task_code, payment_order_id,
            payment_order_version_id, data_version, submit_round, result, detail,
            operator_user_id, create_time, archived_time)
         SELECT id, task_id, task_code, task_type, business_key, action, source_task_code,
            payment_order_id, payment_order_version_id, data_version, submit_round, result, detail,
            operator_user_id, create_time, :now
         FROM fi_resident_income_payment_async_operation_log WHERE task_code IN :codes
         {or_ignore}",
        now = now,
    );
    tx.execute(traces.bind_list("codes", codes.iter().map(String::as_str))).await?;
    let left = Query::new(
        "DELETE FROM fi_resident_income_payment_async_operation_log WHERE task_code IN :codes",
    );
    tx.execute(left.bind_list("codes", codes.iter().map(String::as_str))).await?;
    let left = Query::new("DELETE FROM fi_async_task WHERE id IN :ids AND task_status IN (2, 4)");
    let moved = tx.execute(left.bind_list("ids", ids)).await?;
    tx.commit("task.archive").await?;
    Ok(moved)
}

/// The task of this code, if it has left for the archive.
pub(crate) async fn archived(tx: &mut Tx, code: &TaskCode) -> Result<Option<Stored>> {
    let query = sql!(
        "SELECT id, task_type, business_key, task_status FROM fi_async_task_archive
         WHERE task_code = :code",
        code = code.as_str(),
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(Stored {
        id: row.int("id")?,
        task_type: row.text("task_type")?,
        business_key: row.text("business_key")?,
        status: TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Success),
        exhausted: false,
    }))
}
