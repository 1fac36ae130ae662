//! Work for people.

use counterfoil_db::{Db, Instant, Read, Result, sql};
use serde::Serialize;
use serde_json::Value;

/// Rows shown at most.
pub const MAX_PAGE: u32 = 200;

/// A task at the hall, as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct WorkRow {
    pub task_id: String,
    pub attempt: i64,
    pub consumer_school_id: String,
    pub form_uuid: String,
    pub state: String,
    pub result_state: Option<String>,
    pub counts: Value,
    pub retry_count: i64,
    pub next_attempt_time: Option<Instant>,
    pub last_error_code: Option<String>,
    pub last_error: Option<String>,
    pub update_time: Instant,
}

/// What was worked on since then, newest first.
pub async fn works(db: &Db, since: Option<Instant>, limit: u32) -> Result<Vec<WorkRow>> {
    let since = since.unwrap_or(chrono::DateTime::UNIX_EPOCH);
    let query = sql!(
        "SELECT task_id, attempt, consumer_school_id, form_uuid, state, result_state, counts,
           retry_count, next_attempt_time, last_error_code, last_error, update_time
         FROM answer_reconcile_work WHERE update_time >= :since AND deleted = 0
         ORDER BY id DESC LIMIT :most",
        since = since,
        most = limit.clamp(1, MAX_PAGE),
    );
    let mut works = Vec::new();
    for row in db.rows(query).await? {
        let counts = row.maybe_text("counts")?;
        works.push(WorkRow {
            task_id: row.text("task_id")?,
            attempt: row.int("attempt")?,
            consumer_school_id: row.text("consumer_school_id")?,
            form_uuid: row.text("form_uuid")?,
            state: row.text("state")?,
            result_state: row.maybe_text("result_state")?,
            counts: counts.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            retry_count: row.int("retry_count")?,
            next_attempt_time: row.maybe_instant("next_attempt_time")?,
            last_error_code: row.maybe_text("last_error_code")?,
            last_error: row.maybe_text("last_error")?,
            update_time: row.instant("update_time")?,
        });
    }
    Ok(works)
}
