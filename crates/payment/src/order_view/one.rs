//! One order: its facts read, and everything that is judged of them.

use counterfoil_db::{Db, Query, Read, Result, Row, sql};
use counterfoil_protocol::{
    DataVersion, OrderId, PlanId, SessionId, SubmitAttempt, SubmitRound, TaskCode, VersionId,
};
use counterfoil_task::TaskStatus;
use serde::Serialize;

use super::aftermath::{self, Aftermath, ByStatus, ProgressRow, ShownViolation};
use super::facts::{
    Approval, BatchFacts, BillConflict, Conflicts, FailedRevision, LockCounts, OrderFacts,
    OrderRow, SessionFacts, TaskFacts, Tasks, VersionRow, order_columns,
};
use super::stages::{self, Stage};
use super::success::{SixKinds, six_kinds};
use super::verdict::{Verdict, verdict};
use super::{MAX_CONFLICTS, MAX_VERSIONS};
use crate::PaymentError;
use crate::kinds::business_key;
use crate::lock_release::Reason;

/// One order with the verdict first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderView {
    /// Where it is, what it waits for, what may be done.
    pub verdict: Verdict,
    /// The order.
    pub order: OrderRow,
    /// The version that is shown.
    pub version: Option<VersionRow>,
    /// Its session.
    pub session: Option<SessionFacts>,
    /// Every stage, in order.
    pub stages: Vec<Stage>,
    /// Six kinds of success, each with its evidence.
    pub success: SixKinds,
    /// The order's locks by state.
    pub locks: LockCounts,
    /// Bills that others held when the version was built.
    pub conflicts: Conflicts,
    /// The approval of the version.
    pub approval: Option<Approval>,
    /// How far the approval has come.
    pub callback_progress: Option<ProgressRow>,
    /// Why lines must not be paid: the first of them.
    pub recheck_violations: Vec<ShownViolation>,
    /// How many reasons there are.
    pub recheck_violation_count: i64,
    /// What was sent to partners, by status.
    pub deliveries: ByStatus,
    /// Push batches, by status.
    pub push_batches: ByStatus,
    /// Their details, by what came of the payment.
    pub payments: ByStatus,
    /// The order's versions, newest first.
    pub versions: Vec<VersionRow>,
}

/// Reads and judges one order.
///
/// # Errors
/// [`PaymentError::OrderNotFound`].
pub async fn one(db: &Db, order: OrderId) -> Result<OrderView, PaymentError> {
    let row = order_row(db, order).await?;
    let versions = versions(db, order, row.published_data_version).await?;
    let facts = facts(db, row, &versions).await?;
    Ok(OrderView {
        verdict: verdict(&facts),
        stages: stages::stages(&facts),
        success: six_kinds(&facts),
        order: facts.order,
        version: facts.version,
        session: facts.session,
        locks: facts.locks,
        conflicts: facts.conflicts,
        approval: facts.approval,
        callback_progress: facts.aftermath.progress,
        recheck_violations: facts.aftermath.violations,
        recheck_violation_count: facts.aftermath.violation_count,
        deliveries: facts.aftermath.deliveries,
        push_batches: facts.aftermath.batches,
        payments: facts.aftermath.details,
        versions,
    })
}

async fn facts(db: &Db, order: OrderRow, versions: &[VersionRow]) -> Result<OrderFacts> {
    let version = in_view(order.published_data_version, versions).cloned();
    let failed_revision = versions.first().filter(|newest| {
        newest.build_status == "BUILD_FAILED"
            && version.as_ref().is_some_and(|version| version.id != newest.id)
    });
    let failed_revision = failed_revision.map(|newest| FailedRevision {
        data_version: newest.target_data,
        why: stages::failure(newest),
    });
    let mut facts = OrderFacts {
        now: db.now().await?,
        locks: lock_counts(db, order.id).await?,
        order,
        version,
        session: None,
        build_batch: None,
        lock_batch: None,
        tasks: Tasks::default(),
        approval: None,
        conflicts: Conflicts::default(),
        aftermath: Aftermath::default(),
        failed_revision,
    };
    if let Some(version) = &facts.version {
        facts.session = session(db, version.session_id).await?;
        facts.build_batch = batch(db, version.id, "BUILD").await?;
        facts.lock_batch = batch(db, version.id, "LOCK_ACTIVATE").await?;
        facts.approval = approval(db, facts.order.id, version.target_data).await?;
        facts.conflicts = conflicts(db, version.id).await?;
        let (order, data) = (facts.order.id, version.target_data);
        facts.aftermath = aftermath::read(db, order, data, facts.approval.as_ref()).await?;
        facts.tasks = tasks(db, version.id, versions).await?;
    }
    Ok(facts)
}

/// The version that an order's page is about. `versions` are newest first. A newest one that
/// failed behind a published one is a note, not the page.
fn in_view(pointer: DataVersion, versions: &[VersionRow]) -> Option<&VersionRow> {
    let newest = versions.first()?;
    if newest.build_status == "BUILD_FAILED" && newest.target_data != pointer {
        let published = versions.iter().find(|version| version.target_data == pointer);
        return published.or(Some(newest));
    }
    Some(newest)
}

async fn order_row(db: &Db, order: OrderId) -> Result<OrderRow, PaymentError> {
    let query = sql!(
        concat!(
            "SELECT ",
            order_columns!(),
            " FROM fi_resident_income_payment_order WHERE id = :order AND deleted = 0"
        ),
        order = order.0,
    );
    let row = db.row(query).await?.ok_or(PaymentError::OrderNotFound(order))?;
    Ok(OrderRow::read(&row)?)
}

const VERSION_COLUMNS: &str = "id, mode, session_id, submit_attempt, source_data_version,
    target_data_version, target_submit_round, version_build_status, audit_plan_status,
    publish_time, error_code, error_message, create_time, update_time";

/// The newest versions, and the published one even if it is older than those.
pub(super) async fn versions(
    db: &Db,
    order: OrderId,
    pointer: DataVersion,
) -> Result<Vec<VersionRow>> {
    let newest = Query::built(format!(
        "SELECT {VERSION_COLUMNS} FROM fi_resident_income_payment_order_version
         WHERE payment_order_id = :order AND deleted = 0
         ORDER BY target_data_version DESC LIMIT :limit"
    ))
    .bind("order", order.0)
    .bind("limit", MAX_VERSIONS);
    let mut versions = Vec::new();
    for row in db.rows(newest).await? {
        versions.push(version_row(&row)?);
    }
    if pointer.0 > 0 && versions.iter().all(|version| version.target_data != pointer) {
        let published = Query::built(format!(
            "SELECT {VERSION_COLUMNS} FROM fi_resident_income_payment_order_version
             WHERE payment_order_id = :order AND target_data_version = :pointer AND deleted = 0"
        ))
        .bind("order", order.0)
        .bind("pointer", pointer.0);
        if let Some(row) = db.row(published).await? {
            versions.push(version_row(&row)?);
        }
    }
    Ok(versions)
}

fn version_row(row: &Row) -> Result<VersionRow> {
    Ok(VersionRow {
        id: VersionId(row.int("id")?),
        mode: row.text("mode")?,
        session_id: SessionId(row.int("session_id")?),
        submit_attempt: SubmitAttempt(row.int("submit_attempt")?),
        source_data_version: DataVersion(row.int("source_data_version")?),
        target_data: DataVersion(row.int("target_data_version")?),
        target_round: SubmitRound(row.int("target_submit_round")?),
        build_status: row.text("version_build_status")?,
        audit_plan_status: row.maybe_text("audit_plan_status")?,
        publish_time: row.maybe_instant("publish_time")?,
        error_code: row.maybe_text("error_code")?,
        error_message: row.maybe_text("error_message")?,
        create_time: row.instant("create_time")?,
        update_time: row.instant("update_time")?,
    })
}

async fn session(db: &Db, session: SessionId) -> Result<Option<SessionFacts>> {
    let query = sql!(
        "SELECT status, submit_attempt, active_submit_id, failure_phase, invalidated_flag,
                invalidated_reason
         FROM selection_session WHERE id = :session AND deleted = 0",
        session = session.0,
    );
    let Some(row) = db.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(SessionFacts {
        id: session,
        status: row.text("status")?,
        submit_attempt: SubmitAttempt(row.int("submit_attempt")?),
        active_submit_id: row.maybe_int("active_submit_id")?.map(VersionId),
        failure_phase: row.maybe_text("failure_phase")?,
        invalidated: row.int("invalidated_flag")? == 1,
        invalidated_reason: row.maybe_text("invalidated_reason")?,
    }))
}

async fn batch(db: &Db, version: VersionId, phase: &'static str) -> Result<Option<BatchFacts>> {
    let query = sql!(
        "SELECT batch_status, last_item_id, processed_count, worker_id, lease_expire_time
         FROM selection_submit_batch
         WHERE payment_order_version_id = :version AND batch_phase = :phase AND deleted = 0",
        version = version.0,
        phase = phase,
    );
    let Some(row) = db.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(BatchFacts {
        status: row.text("batch_status")?,
        cursor: row.int("last_item_id")?,
        processed_count: row.int("processed_count")?,
        worker: row.maybe_text("worker_id")?,
        lease_until: row.maybe_instant("lease_expire_time")?,
    }))
}

/// The business keys of S06: of the version, for whatever reason, and of the order's cancellation,
/// which stands under the version that was the newest then.
fn release_keys(version: VersionId, versions: &[VersionRow]) -> Vec<String> {
    let of_version = Reason::ALL.map(|reason| business_key::lock_release(version, reason.as_str()));
    let cancelled = Reason::OrderCancelled.as_str();
    let of_order = versions.iter().map(|v| business_key::lock_release(v.id, cancelled));
    of_version.into_iter().chain(of_order).collect()
}

/// S03, S04, S05 and the S06 keys of a version, for reading its tasks.
async fn tasks(db: &Db, version: VersionId, versions: &[VersionRow]) -> Result<Tasks> {
    let of = |key: String| async move { Ok(task_rows(db, vec![key]).await?.pop()) };
    Ok(Tasks {
        build: of(business_key::submit_build(version)).await?,
        activation: of(business_key::lock_activate(version)).await?,
        audit_plan: of(business_key::audit_plan_create(version)).await?,
        release: task_rows(db, release_keys(version, versions)).await?.pop(),
    })
}

/// The tasks with these business keys, oldest first. A version has one S06 a reason at most.
pub(super) async fn task_rows(db: &Db, keys: Vec<String>) -> Result<Vec<TaskFacts>> {
    let query = Query::new(
        "SELECT task_code, task_status, COALESCE(retry_count, 0) AS retries,
                COALESCE(max_retry_count, 3) AS most, next_execute_time,
                COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
                update_time
         FROM fi_async_task WHERE business_key IN :keys AND deleted = 0
         ORDER BY id LIMIT :limit",
    )
    .bind("limit", i64::try_from(keys.len()).unwrap_or(i64::MAX))
    .bind_list("keys", keys);
    let rows = db.rows(query).await?;
    rows.iter().map(task_facts).collect()
}

pub(super) fn task_facts(row: &Row) -> Result<TaskFacts> {
    let status = TaskStatus::of_code(row.int("task_status")?);
    Ok(TaskFacts {
        code: TaskCode::stored(row.text("task_code")?),
        status: status.unwrap_or(TaskStatus::Failed),
        retries: row.int("retries")?,
        max_retries: row.int("most")?,
        due: row.maybe_instant("next_execute_time")?,
        attempt: row.int("attempt")?,
        lost: row.int("lost_attempts")?,
        message: row.maybe_text("error_message")?,
        touched: row.instant("update_time")?,
    })
}

async fn approval(db: &Db, order: OrderId, data: DataVersion) -> Result<Option<Approval>> {
    let query = sql!(
        "SELECT review_plan_id, approval_attempt, approval_status, finish_time
         FROM fi_resident_income_payment_order_approval_instance
         WHERE payment_order_id = :order AND data_version = :data AND deleted = 0
         ORDER BY approval_attempt DESC, id DESC LIMIT 1",
        order = order.0,
        data = data.0,
    );
    let Some(row) = db.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(Approval {
        review_plan_id: PlanId(row.int("review_plan_id")?),
        approval_attempt: row.int("approval_attempt")?,
        status: row.text("approval_status")?,
        finish_time: row.maybe_instant("finish_time")?,
    }))
}

async fn lock_counts(db: &Db, order: OrderId) -> Result<LockCounts> {
    let query = sql!(
        "SELECT lock_status, COUNT(*) AS locks FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order GROUP BY lock_status",
        order = order.0,
    );
    let mut counts = LockCounts::default();
    for row in db.rows(query).await? {
        let locks = row.int("locks")?;
        match row.text("lock_status")?.as_str() {
            "RESERVED" => counts.reserved = locks,
            "ACTIVE" => counts.active = locks,
            _ => counts.released += locks,
        }
    }
    Ok(counts)
}

async fn conflicts(db: &Db, version: VersionId) -> Result<Conflicts> {
    let total = db
        .count(sql!(
            "SELECT COUNT(*) FROM selection_conflict WHERE payment_order_version_id = :version",
            version = version.0,
        ))
        .await?;
    let query = sql!(
        "SELECT station_id, bill_yearmonth, holder_order_id, holder_order_no, holder_lock_id,
                holder_lock_status
         FROM selection_conflict WHERE payment_order_version_id = :version
         ORDER BY id LIMIT :limit",
        version = version.0,
        limit = MAX_CONFLICTS,
    );
    let mut first = Vec::new();
    for row in db.rows(query).await? {
        first.push(BillConflict {
            station_id: row.text("station_id")?,
            bill_yearmonth: row.text("bill_yearmonth")?,
            holder_order_id: OrderId(row.int("holder_order_id")?),
            holder_order_no: row.maybe_text("holder_order_no")?,
            holder_lock_id: row.int("holder_lock_id")?,
            holder_lock_status: row.text("holder_lock_status")?,
        });
    }
    Ok(Conflicts { total, first })
}
