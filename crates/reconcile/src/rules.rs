//! What must hold of reconciliation at all times, at whichever side this database is.

use counterfoil_db::{Db, Read, Result, sql};
use counterfoil_task::{Breach, MAX_SHOWN, Rule};

use crate::service_hall::projection;

/// A rule that runs on schedule only.
const fn scheduled(name: &'static str, holds: &'static str, sql: &'static str) -> Rule {
    Rule { name, holds, sql, touched: None, handlers: &[] }
}

/// The rules of both sides.
pub const RULES: &[Rule] = &[
    scheduled(
        "reconcile-lease-is-looked-after",
        "no task is dispatched or running an hour after its lease ended",
        "SELECT task_id, state, attempt, lease_until FROM answer_reconcile_task
         WHERE state IN ('DISPATCHED', 'RUNNING') AND deleted = 0
           AND (lease_until IS NULL OR lease_until < :long_ago)
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "reconcile-is-not-forgotten",
        "no task has been queued for a day without anything happening",
        "SELECT task_id, attempt, manifest_state, reason_code, update_time
         FROM answer_reconcile_task
         WHERE state = 'QUEUED' AND deleted = 0 AND update_time < :day_ago
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "completed-reconcile-read-both-sets",
        "a COMPLETED task has its whole manifest and a report that both sets were read",
        "SELECT t.task_id, t.attempt, t.manifest_complete, r.manifest_complete AS hall_manifest,
           r.local_completed
         FROM answer_reconcile_task t
         LEFT JOIN answer_reconcile_result r
           ON r.task_id = t.task_id AND r.attempt = t.attempt AND r.deleted = 0
         WHERE t.state = 'COMPLETED' AND t.deleted = 0
           AND (t.manifest_complete = 0 OR COALESCE(r.state, '') <> 'COMPLETED'
             OR r.manifest_complete = 0 OR r.local_completed = 0)
         ORDER BY t.id LIMIT :limit",
    ),
    scheduled(
        "consumer-has-one-reconcile-in-flight",
        "no consumer has two tasks in flight",
        "SELECT consumer_app_key, COUNT(*) AS tasks, MIN(id) AS first_task, MAX(id) AS last_task
         FROM answer_reconcile_task
         WHERE state IN ('DISPATCHED', 'RUNNING') AND deleted = 0
         GROUP BY consumer_app_key HAVING COUNT(*) > 1 ORDER BY consumer_app_key LIMIT :limit",
    ),
    scheduled(
        "ended-reconcile-holds-no-place",
        "a task that has ended holds neither a lease nor its consumer's place",
        "SELECT task_id, state, active_consumer_key, lease_until FROM answer_reconcile_task
         WHERE state IN ('COMPLETED', 'PARTIAL', 'FAILED', 'CANCELLED') AND deleted = 0
           AND (active_consumer_key IS NOT NULL OR lease_until IS NOT NULL)
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "ended-reconcile-says-why",
        "a task that FAILED or was CANCELLED has its reason, or a report that says so",
        "SELECT t.task_id, t.state, t.attempt FROM answer_reconcile_task t
         WHERE t.state IN ('FAILED', 'CANCELLED') AND t.deleted = 0 AND t.reason_code IS NULL
           AND NOT EXISTS (SELECT 1 FROM answer_reconcile_result r
             WHERE r.task_id = t.task_id AND r.state = t.state AND r.deleted = 0)
         ORDER BY t.id LIMIT :limit",
    ),
    scheduled(
        "manifest-has-its-rows",
        "an open task's whole manifest has as many rows as the task says",
        "SELECT t.task_id, t.total_rows, COUNT(m.id) AS manifest_rows
         FROM answer_reconcile_task t
         LEFT JOIN answer_reconcile_manifest_row m ON m.task_id = t.task_id AND m.deleted = 0
         WHERE t.state IN ('QUEUED', 'DISPATCHED', 'RUNNING') AND t.manifest_complete = 1
           AND t.deleted = 0
         GROUP BY t.id, t.task_id, t.total_rows HAVING t.total_rows <> COUNT(m.id)
         ORDER BY t.id LIMIT :limit",
    ),
    scheduled(
        "delivery-arrives-within-a-day",
        "no delivery has been open for a day without a later one or a reconciliation behind it",
        "SELECT d.delivery_id, d.answer_uuid, d.consumer_app_key, d.state, d.attempts
         FROM answer_delivery d
         WHERE d.state IN ('PENDING', 'RETURNED', 'FAILED') AND d.deleted = 0
           AND d.create_time < :day_ago
           AND NOT EXISTS (SELECT 1 FROM answer_delivery n
             WHERE n.answer_uuid = d.answer_uuid AND n.consumer_app_key = d.consumer_app_key
               AND n.id > d.id AND n.state = 'CONFIRMED' AND n.deleted = 0)
           AND NOT EXISTS (SELECT 1 FROM answer_reconcile_task t
             WHERE t.consumer_app_key = d.consumer_app_key AND t.consumer_school_id = d.sch_id
               AND t.form_uuid = d.form_uuid AND t.scope = 'FORM' AND t.state = 'COMPLETED'
               AND t.window_start > d.create_time AND t.deleted = 0)
         ORDER BY d.id LIMIT :limit",
    ),
    scheduled(
        "answer-stands-where-its-log-says",
        "an answer's place in the sequence is the log of its last write",
        "SELECT a.uuid, a.revision, a.seq_no, l.revision AS logged_revision
         FROM answer a LEFT JOIN answer_op_log l ON l.id = a.seq_no
         WHERE a.deleted = 0 AND a.seq_no > 0
           AND (l.id IS NULL OR l.answer_uuid <> a.uuid OR l.revision <> a.revision)
         ORDER BY a.id LIMIT :limit",
    ),
    scheduled(
        "hall-work-is-looked-after",
        "no work is running an hour after its lease ended",
        "SELECT task_id, attempt, worker_id, lease_expire_time FROM answer_reconcile_work
         WHERE state = 'RUNNING' AND deleted = 0
           AND (lease_expire_time IS NULL OR lease_expire_time < :long_ago)
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "stalled-work-is-taken-up",
        "no work has been stalled for a day",
        "SELECT task_id, attempt, last_error_code, last_error, update_time
         FROM answer_reconcile_work
         WHERE state = 'STALLED' AND deleted = 0 AND update_time < :day_ago
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "done-work-knows-its-end",
        "work that is done has the centre's word on how it ended",
        "SELECT task_id, attempt, result_state FROM answer_reconcile_work
         WHERE state = 'DONE' AND deleted = 0
           AND COALESCE(result_state, '') NOT IN ('COMPLETED', 'PARTIAL', 'FAILED', 'CANCELLED')
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "retired-row-has-its-proof",
        "a row that was retired names the proof of absence that it was retired by",
        "SELECT answer_uuid, sch_id, form_uuid, revision, update_time FROM fc_answer_projection
         WHERE deleted = 1 AND COALESCE(conflict_detail, '') NOT LIKE '%\"proofId\"%'
         ORDER BY id LIMIT :limit",
    ),
];

/// The rule that no statement can check: it reads rows, and hashes them.
pub const HASH_RULE: Rule = scheduled(
    "stored-hash-is-its-contents",
    "a row of the projection has the hash of its content; a moving sample of them is read",
    "",
);

/// Rows that one look at [`HASH_RULE`] reads.
const SAMPLE: u32 = 500;
/// The looks, one a minute, that go once through the table.
const PARTS: i64 = 256;

/// Reads a sample of the projection, another part of it every minute.
///
/// # Errors
/// The database's.
pub async fn check_hashes(db: &Db) -> Result<Option<Breach>> {
    let ends = sql!("SELECT MIN(id) AS least, MAX(id) AS greatest FROM fc_answer_projection");
    let Some(ends) = db.row(ends).await? else { return Ok(None) };
    let (least, greatest) = (ends.maybe_int("least")?, ends.maybe_int("greatest")?);
    let (Some(least), Some(greatest)) = (least, greatest) else { return Ok(None) };
    let part = db.now().await?.timestamp().div_euclid(60).rem_euclid(PARTS);
    let is_small = greatest - least < i64::from(SAMPLE);
    let from = if is_small { least } else { least + (greatest - least) / PARTS * part };
    let rows = projection::sample(db, from, SAMPLE).await?;
    let lying = rows.iter().filter(|row| row.hash != row.stored_hash);
    let shown: Vec<String> = lying
        .take(MAX_SHOWN as usize)
        .map(|row| format!("answer_uuid={} revision={}", row.uuid, row.revision))
        .collect();
    let Rule { name, holds, .. } = HASH_RULE;
    Ok((!shown.is_empty()).then_some(Breach { rule: name, holds, rows: shown }))
}
