//! Where a timeline's entries come from. Every source reads its newest rows, a bounded number.

use counterfoil_db::{Db, Query, Read, Result, Row, sql};
use counterfoil_protocol::{DataVersion, OrderId};
use counterfoil_task::TaskStatus;

use super::facts::VersionRow;
use super::names::order_status;
use super::one;
use super::shown::count;
use super::stages::{S03, S04, S05, S06};
use super::timeline::{LocksInState, TimelineEntry};
use crate::PaymentError;
use crate::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD, business_key};
use crate::lock_release::Reason;

/// Groups of locks of one order: its shown versions times a few states and reasons.
const MAX_GROUPS: u32 = 200;

fn entry(
    kind: &'static str,
    time: counterfoil_db::Instant,
    what: impl Into<String>,
) -> TimelineEntry {
    TimelineEntry {
        time,
        kind,
        what: what.into(),
        data_version: None,
        task_code: None,
        operator_user_id: None,
        detail: None,
    }
}

/// The stage that a task type belongs to; other types keep their name.
fn stage_of(task_type: &str) -> &str {
    let known = [
        (SUBMIT_BUILD.task_type, S03),
        (LOCK_ACTIVATE.task_type, S04),
        (AUDIT_PLAN_CREATE.task_type, S05),
        (LOCK_RELEASE.task_type, S06),
    ];
    let found = known.into_iter().find(|(known, _)| *known == task_type);
    found.map_or(task_type, |(_, stage)| stage)
}

/// The order's versions; refuses an order that is not there.
pub(super) async fn versions_of(db: &Db, order: OrderId) -> Result<Vec<VersionRow>, PaymentError> {
    let query = sql!(
        "SELECT current_publish_version FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0",
        order = order.0,
    );
    let row = db
        .row(query)
        .await?
        .ok_or(PaymentError::OrderNotFound(order))?;
    let pointer = DataVersion(row.int("current_publish_version")?);
    Ok(one::versions(db, order, pointer).await?)
}

pub(super) fn of_versions(versions: &[VersionRow]) -> Vec<TimelineEntry> {
    let mut entries = Vec::new();
    for version in versions {
        let data = version.target_data;
        let by = (version.session_id, version.submit_attempt);
        let what = format!(
            "data version {data} submitted by session {}, attempt {}",
            by.0, by.1
        );
        entries.push(entry("version", version.create_time, what));
        if let Some(time) = version.publish_time {
            entries.push(entry(
                "version",
                time,
                format!("data version {data} published"),
            ));
        }
        if version.build_status == "BUILD_FAILED" {
            let mut failed = entry(
                "version",
                version.update_time,
                format!("data version {data} is BUILD_FAILED"),
            );
            failed.detail.clone_from(&version.error_message);
            entries.push(failed);
        }
        for entry in entries
            .iter_mut()
            .filter(|entry| entry.data_version.is_none())
        {
            entry.data_version = Some(data);
        }
    }
    entries
}

/// A task as a timeline tells of it.
pub(super) struct TaskEntry {
    code: String,
    entry: TimelineEntry,
}

/// The tasks about these versions.
pub(super) async fn tasks(db: &Db, versions: &[VersionRow], limit: u32) -> Result<Vec<TaskEntry>> {
    let keys = versions.iter().flat_map(|version| {
        let releases = Reason::ALL.into_iter();
        let releases =
            releases.map(|reason| business_key::lock_release(version.id, reason.as_str()));
        [
            business_key::submit_build(version.id),
            business_key::lock_activate(version.id),
            business_key::audit_plan_create(version.id),
        ]
        .into_iter()
        .chain(releases)
    });
    let query = Query::new(
        "SELECT task_code, task_type, task_status, COALESCE(running_attempt, 0) AS attempt,
                COALESCE(retry_count, 0) AS retries, error_message, update_time
         FROM fi_async_task WHERE business_key IN :keys AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
    )
    .bind_list("keys", keys)
    .bind("limit", limit);
    let mut tasks = Vec::new();
    for row in db.rows(query).await? {
        let status = TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed);
        let (task_type, attempt) = (row.text("task_type")?, row.int("attempt")?);
        let failures = match row.int("retries")? {
            0 => String::new(),
            n => format!(", {n} counted failures"),
        };
        let stage = stage_of(&task_type);
        let what = format!("{stage} is {status} since then: attempt {attempt}{failures}");
        let code = row.text("task_code")?;
        let mut entry = entry("task", row.instant("update_time")?, what);
        entry.task_code = Some(code.clone());
        entry.detail = row.maybe_text("error_message")?;
        tasks.push(TaskEntry { code, entry });
    }
    Ok(tasks)
}

pub(super) fn of_tasks(tasks: &[TaskEntry]) -> Vec<TimelineEntry> {
    tasks.iter().map(|task| task.entry.clone()).collect()
}

pub(super) async fn order_log(db: &Db, order: OrderId, limit: u32) -> Result<Vec<TimelineEntry>> {
    let query = sql!(
        "SELECT operation_type, from_status, to_status, operation_time, operation_remark,
                data_version, operator_user_id, create_time
         FROM fi_resident_income_payment_order_log
         WHERE payment_order_id = :order AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
        order = order.0,
        limit = limit,
    );
    let mut entries = Vec::new();
    for row in db.rows(query).await? {
        let time = match row.maybe_instant("operation_time")? {
            Some(time) => time,
            None => row.instant("create_time")?,
        };
        let moved = match (row.maybe_int("from_status")?, row.maybe_int("to_status")?) {
            (Some(from), Some(to)) => {
                format!(": {} to {}", order_status(from), order_status(to))
            }
            _ => String::new(),
        };
        let mut made = entry(
            "order",
            time,
            format!("{}{moved}", row.text("operation_type")?),
        );
        made.data_version = row.maybe_int("data_version")?.map(DataVersion);
        made.operator_user_id = row.maybe_int("operator_user_id")?;
        made.detail = row.maybe_text("operation_remark")?;
        entries.push(made);
    }
    Ok(entries)
}

/// Trace rows that name the order: acceptances, hand-overs, incidents, repairs.
pub(super) async fn trace_of_order(
    db: &Db,
    order: OrderId,
    limit: u32,
) -> Result<Vec<TimelineEntry>> {
    let query = sql!(
        "SELECT task_code, task_type, action, result, detail, operator_user_id, data_version,
                create_time
         FROM fi_resident_income_payment_async_operation_log
         WHERE payment_order_id = :order AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
        order = order.0,
        limit = limit,
    );
    db.rows(query).await?.iter().map(traced).collect()
}

/// Trace rows of the order's tasks that name no order: what persons did to a task.
pub(super) async fn trace_of_tasks(
    db: &Db,
    tasks: &[TaskEntry],
    limit: u32,
) -> Result<Vec<TimelineEntry>> {
    let query = Query::new(
        "SELECT task_code, task_type, action, result, detail, operator_user_id, data_version,
                create_time
         FROM fi_resident_income_payment_async_operation_log
         WHERE payment_order_id IS NULL AND task_code IN :codes AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
    )
    .bind_list("codes", tasks.iter().map(|task| task.code.as_str()))
    .bind("limit", limit);
    db.rows(query).await?.iter().map(traced).collect()
}

fn traced(row: &Row) -> Result<TimelineEntry> {
    let action = row.text("action")?;
    let (task_type, result) = (row.text("task_type")?, row.text("result")?);
    let kind = if action == "INCIDENT" {
        "incident"
    } else {
        "trace"
    };
    let what = format!("{} {action}: {result}", stage_of(&task_type));
    let mut made = entry(kind, row.instant("create_time")?, what);
    made.task_code = Some(row.text("task_code")?);
    made.data_version = row.maybe_int("data_version")?.map(DataVersion);
    made.operator_user_id = row.maybe_int("operator_user_id")?;
    made.detail = row.maybe_text("detail")?;
    Ok(made)
}

pub(super) async fn approvals(db: &Db, order: OrderId, limit: u32) -> Result<Vec<TimelineEntry>> {
    let query = sql!(
        "SELECT data_version, approval_attempt, review_plan_id, approval_status, finish_time,
                create_time
         FROM fi_resident_income_payment_order_approval_instance
         WHERE payment_order_id = :order AND deleted = 0
         ORDER BY id DESC LIMIT :limit",
        order = order.0,
        limit = limit,
    );
    let mut entries = Vec::new();
    for row in db.rows(query).await? {
        let (plan, attempt) = (row.int("review_plan_id")?, row.int("approval_attempt")?);
        let opened = format!("plan {plan} opened, approval attempt {attempt}");
        let mut both = vec![entry("approval", row.instant("create_time")?, opened)];
        if let Some(time) = row.maybe_instant("finish_time")? {
            let status = row.text("approval_status")?;
            both.push(entry("approval", time, format!("plan {plan} is {status}")));
        }
        for mut made in both {
            made.data_version = Some(DataVersion(row.int("data_version")?));
            entries.push(made);
        }
    }
    Ok(entries)
}

/// The order's locks by data version, state and reason.
pub(super) async fn locks(db: &Db, order: OrderId) -> Result<Vec<LocksInState>> {
    let query = sql!(
        "SELECT data_version, lock_status, release_reason, COUNT(*) AS locks,
                MAX(update_time) AS since
         FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order
         GROUP BY data_version, lock_status, release_reason
         ORDER BY data_version DESC, lock_status, release_reason LIMIT :limit",
        order = order.0,
        limit = MAX_GROUPS,
    );
    let mut groups = Vec::new();
    for row in db.rows(query).await? {
        groups.push(LocksInState {
            data_version: DataVersion(row.int("data_version")?),
            lock_status: row.text("lock_status")?,
            release_reason: row.maybe_text("release_reason")?,
            locks: row.int("locks")?,
            since: row.instant("since")?,
        });
    }
    Ok(groups)
}

pub(super) fn of_locks(groups: &[LocksInState]) -> Vec<TimelineEntry> {
    let told = |group: &LocksInState| {
        let LocksInState {
            locks, lock_status, ..
        } = group;
        let reason = group.release_reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let what = format!("{} {lock_status} since then{reason}", count(*locks, "lock"));
        let mut made = entry("locks", group.since, what);
        made.data_version = Some(group.data_version);
        made
    };
    groups.iter().map(told).collect()
}
