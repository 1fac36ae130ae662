//! What followed the reviewers' decision, as its rows stand: the facts of S07 to S13 and of the
//! payment.

use counterfoil_db::{Db, Instant, Query, Read, Result, Row, sql};
use counterfoil_protocol::{DataVersion, OrderId, ProgressId};
use serde::Serialize;

use super::facts::{Approval, TaskFacts};
use super::one::{task_facts, task_rows};
use crate::review_progress::{RECHECK_VIOLATED, Violation, violations};

/// Violations shown on an order's page; all of them are on record.
const MAX_SHOWN: u32 = 20;

/// The progress row of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressRow {
    /// Its id.
    #[serde(rename = "progressId")]
    pub id: ProgressId,
    /// PREPARE to DONE.
    pub phase: String,
    /// INIT, RUNNING, FAILED or SUCCESS.
    pub phase_status: String,
    /// RUNNING, SUCCESS or SUPERSEDED.
    pub main_task_status: String,
    /// Lines of the version.
    pub total_count: i64,
    /// Lines that carry the decision.
    pub updated_count: i64,
    /// Locks of UNQUALIFIED lines that were to be released.
    pub lock_release_expected: i64,
    /// Those that were.
    pub lock_release_success: i64,
    /// Refresh shards that were planned.
    pub shard_expected: i64,
    /// Whether every shard has ended.
    pub refresh_ready: bool,
    /// Who works on it.
    pub worker: Option<String>,
    /// When that lease ends.
    pub lease_until: Option<Instant>,
    /// Counted failures.
    pub retry_count: i64,
    /// When it is tried again at the earliest.
    pub next_retry_time: Option<Instant>,
    /// Its last trouble, as a code.
    pub last_error_code: Option<String>,
    /// Its last trouble, in words.
    pub last_error_message: Option<String>,
    /// Since when the order is effective.
    pub finalize_time: Option<Instant>,
    /// Since when the refresh is done.
    pub done_time: Option<Instant>,
}

impl ProgressRow {
    /// Whether a violated recheck waits for a person.
    pub fn is_parked(&self) -> bool {
        self.phase == "FINALIZE"
            && self.phase_status == "FAILED"
            && self.last_error_code.as_deref() == Some(RECHECK_VIOLATED)
    }
}

/// How many rows stand at which status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ByStatus(pub std::collections::BTreeMap<String, i64>);

impl ByStatus {
    /// All rows.
    pub fn total(&self) -> i64 {
        self.0.values().sum()
    }

    /// Rows at a status.
    pub fn at(&self, status: &str) -> i64 {
        self.0.get(status).copied().unwrap_or(0)
    }

    /// `3 SUCCESS, 1 FAILED`.
    pub fn shown(&self) -> String {
        let parts = self.0.iter().map(|(status, rows)| format!("{rows} {status}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// A line that must not be paid, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownViolation {
    /// The line.
    pub order_bill_id: i64,
    /// Its station.
    pub station_id: String,
    /// Its month.
    pub bill_yearmonth: String,
    /// The stable code.
    pub code: &'static str,
    /// What it means.
    pub message: String,
}

impl From<Violation> for ShownViolation {
    fn from(violation: Violation) -> ShownViolation {
        ShownViolation {
            order_bill_id: violation.line.0,
            message: violation.message,
            station_id: violation.station,
            bill_yearmonth: violation.month,
            code: violation.code,
        }
    }
}

/// What followed the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// S07.
    pub callback: Option<TaskFacts>,
    /// S08's row.
    pub progress: Option<ProgressRow>,
    /// Why lines must not be paid: the first of them.
    pub violations: Vec<ShownViolation>,
    /// How many reasons there are.
    pub violation_count: i64,
    /// S12's shards.
    pub shards: ByStatus,
    /// S13's tasks.
    pub snapshots: ByStatus,
    /// S09: telling the partners.
    pub partner_push: Option<TaskFacts>,
    /// S09: the treasury's batches.
    pub base_data: Option<TaskFacts>,
    /// What was sent to partners.
    pub deliveries: ByStatus,
    /// Push batches.
    pub batches: ByStatus,
    /// Their details by what came of the payment.
    pub details: ByStatus,
}

impl Aftermath {
    /// Whether every partner that can be told was told and has answered.
    pub fn is_told(&self) -> bool {
        let done = |task: &TaskFacts| task.status == counterfoil_task::TaskStatus::Success;
        self.partner_push.as_ref().is_some_and(done) && self.deliveries.at("SUCCESS") > 0
    }

    /// Whether something that was to be told to a partner is without an answer.
    pub fn is_untold(&self) -> bool {
        ["WAIT_PROCESS", "FAIL", "UNKNOWN"].iter().any(|status| self.deliveries.at(status) > 0)
    }
}

/// Reads it, of the version in view.
pub(super) async fn read(
    db: &Db,
    order: OrderId,
    data: DataVersion,
    approval: Option<&Approval>,
) -> Result<Aftermath> {
    let mut after =
        Aftermath { progress: progress(db, order, data).await?, ..Aftermath::default() };
    after.callback = callback(db, order, data, approval).await?;
    after.deliveries = by_status(
        db,
        "SELECT status AS word, COUNT(*) AS found FROM fi_resident_income_payment_external_log
         WHERE payment_order_id = :id AND deleted = 0 GROUP BY status",
        order.0,
    )
    .await?;
    after.batches = by_status(
        db,
        "SELECT status AS word, COUNT(*) AS found FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :id AND deleted = 0 GROUP BY status",
        order.0,
    )
    .await?;
    after.details = by_status(
        db,
        "SELECT COALESCE(d.pay_status, d.push_status) AS word, COUNT(*) AS found
         FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
         WHERE b.payment_order_id = :id AND b.deleted = 0 AND d.deleted = 0
         GROUP BY COALESCE(d.pay_status, d.push_status)",
        order.0,
    )
    .await?;
    let Some(progress) = &after.progress else {
        return Ok(after);
    };
    let id = progress.id;
    let key = |effect: &str| vec![crate::kinds::business_key::side_effect(id, effect)];
    after.partner_push = task_rows(db, key("PARTNER_BILL_REVIEW_RESULT_PUSH")).await?.pop();
    after.base_data = task_rows(db, key("PAYMENT_RESULT_BASE_DATA_BUILD")).await?.pop();
    after.shards = by_status(
        db,
        "SELECT task_status AS word, COUNT(*) AS found
         FROM fi_resident_income_payment_status_refresh_shard
         WHERE source_type = 'REVIEW_APPROVED' AND source_id = :id AND deleted = 0
         GROUP BY task_status",
        id.0,
    )
    .await?;
    after.snapshots = snapshots(db, id).await?;
    if progress.is_parked() {
        let shown = violations(db, order, MAX_SHOWN).await;
        after.violations = shown.unwrap_or_default().into_iter().map(Into::into).collect();
        let total = sql!(
            "SELECT COUNT(*) FROM payment_recheck_violation
             WHERE progress_id = :id AND deleted = 0",
            id = id.0,
        );
        after.violation_count = db.count(total).await?;
    }
    Ok(after)
}

async fn by_status(db: &Db, text: &'static str, id: i64) -> Result<ByStatus> {
    let mut found = ByStatus::default();
    for row in db.rows(sql!(text, id = id)).await? {
        found.0.insert(row.text("word")?, row.int("found")?);
    }
    Ok(found)
}

/// By status, where they are worked on and where they are kept. What is deleted has no verdict.
const SNAPSHOTS: [&str; 2] = [
    "SELECT t.task_status AS status, COUNT(*) AS found
     FROM fi_resident_income_payment_status_refresh_shard s
     JOIN fi_async_task t
       ON t.business_key = 'BILL_SNAPSHOT:' || :progress || ':' || s.id AND t.deleted = 0
     WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = :id AND s.deleted = 0
     GROUP BY t.task_status",
    "SELECT t.task_status AS status, COUNT(*) AS found
     FROM fi_resident_income_payment_status_refresh_shard s
     JOIN fi_async_task_archive t
       ON t.business_key = 'BILL_SNAPSHOT:' || :progress || ':' || s.id
     WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = :id AND s.deleted = 0
     GROUP BY t.task_status",
];

/// S13's tasks of the shards that have ended: one a shard, by its key, also those that have left
/// for the archive.
async fn snapshots(db: &Db, progress: ProgressId) -> Result<ByStatus> {
    let mut found = ByStatus::default();
    for text in SNAPSHOTS {
        let query = sql!(text, progress = progress.to_string(), id = progress.0);
        for row in db.rows(query).await? {
            let status = counterfoil_task::TaskStatus::of_code(row.int("status")?);
            let word = status.map_or_else(|| "?".to_owned(), |status| status.to_string());
            *found.0.entry(word).or_default() += row.int("found")?;
        }
    }
    Ok(found)
}

async fn progress(db: &Db, order: OrderId, data: DataVersion) -> Result<Option<ProgressRow>> {
    let query = sql!(
        "SELECT id, phase, phase_status, main_task_status, total_count,
                payable_updated_count + unqualified_updated_count AS updated,
                lock_release_expected, lock_release_success, shard_expected, refresh_ready,
                worker_id, lease_expire_time, retry_count, next_retry_time, last_error_code,
                last_error_message, finalize_time, done_time
         FROM fi_resident_income_payment_review_callback_progress
         WHERE payment_order_id = :order AND data_version = :data AND deleted = 0
         ORDER BY id DESC LIMIT 1",
        order = order.0,
        data = data.0,
    );
    db.row(query).await?.as_ref().map(progress_row).transpose()
}

fn progress_row(row: &Row) -> Result<ProgressRow> {
    Ok(ProgressRow {
        id: ProgressId(row.int("id")?),
        phase: row.text("phase")?,
        phase_status: row.text("phase_status")?,
        main_task_status: row.text("main_task_status")?,
        total_count: row.int("total_count")?,
        updated_count: row.int("updated")?,
        lock_release_expected: row.int("lock_release_expected")?,
        lock_release_success: row.int("lock_release_success")?,
        shard_expected: row.int("shard_expected")?,
        refresh_ready: row.int("refresh_ready")? == 1,
        worker: row.maybe_text("worker_id")?,
        lease_until: row.maybe_instant("lease_expire_time")?,
        retry_count: row.int("retry_count")?,
        next_retry_time: row.maybe_instant("next_retry_time")?,
        last_error_code: row.maybe_text("last_error_code")?,
        last_error_message: row.maybe_text("last_error_message")?,
        finalize_time: row.maybe_instant("finalize_time")?,
        done_time: row.maybe_instant("done_time")?,
    })
}

/// S07's task of the approval in view, passed or rejected.
async fn callback(
    db: &Db,
    order: OrderId,
    data: DataVersion,
    approval: Option<&Approval>,
) -> Result<Option<TaskFacts>> {
    let Some(approval) = approval else {
        return Ok(None);
    };
    let (plan, attempt) = (approval.review_plan_id, approval.approval_attempt);
    let from = format!("REVIEW_CALLBACK:{order}:{plan}:{data}:{attempt}:");
    // `id + 0`: for the last id PostgreSQL would walk all tasks there are, backwards.
    let query = Query::new(
        "SELECT task_code, task_status, COALESCE(retry_count, 0) AS retries,
                COALESCE(max_retry_count, 3) AS most, next_execute_time,
                COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
                update_time
         FROM fi_async_task
         WHERE business_key > :from AND business_key < :until AND deleted = 0
         ORDER BY id + 0 DESC LIMIT 1",
    )
    .bind("from", from.as_str())
    // ';' follows ':' in every collation used here.
    .bind("until", format!("{};", &from[..from.len() - 1]));
    db.row(query).await?.as_ref().map(task_facts).transpose()
}
