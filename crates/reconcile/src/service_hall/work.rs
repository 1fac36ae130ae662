//! A task's row at the hall.

use counterfoil_db::{Instant, Read, Result, Row, Tx, sql};
use counterfoil_task::{Lease, LeaseTable, Progress};
use serde::{Deserialize, Serialize};

use crate::wire::{Coordinate, Counts, ErrorItem};

/// Where the right to work on a task lives.
pub static WORK_LEASE: LeaseTable = LeaseTable {
    name: "answer_reconcile_work",
    status: "state",
    running: "RUNNING",
    open: &["QUEUED"],
    done: "DONE",
    failed: "QUEUED",
    version: "work_version",
    error_code: "last_error_code",
    error_message: "last_error",
};

/// A candidate for retirement, as the scan saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Extra {
    pub answer_uuid: String,
    pub revision: i64,
    pub stored_hash: String,
    pub is_deleted: bool,
    pub version: i64,
    pub created: Option<Instant>,
}

/// A task at work: what is committed of it, and what the round in hand adds.
#[derive(Debug, Clone)]
pub struct Work {
    /// Its row.
    pub id: i64,
    /// Its id on the wire.
    pub task_id: String,
    /// The attempt that it runs under.
    pub attempt: i64,
    /// What it is about.
    pub coordinate: Coordinate,
    /// The grant's epoch.
    pub grant_epoch: i64,
    /// On our own clock.
    pub window_start: Instant,
    /// Compared up to here.
    pub cursor: Option<String>,
    /// Whether the manifest was read to its end.
    pub manifest_completed: bool,
    /// Whether the projection was.
    pub local_completed: bool,
    /// By kind.
    pub counts: Counts,
    /// Differences that stand.
    pub unresolved: i64,
    /// Items of the report.
    pub errors: Vec<ErrorItem>,
    /// Candidates for retirement.
    pub extras: Vec<Extra>,
    /// A result that waits to be reported.
    pub result_state: Option<String>,
    /// Failures in a row.
    pub retries: i64,
    /// Rows of the manifest that are behind the cursor.
    pub remote_rows: i64,
    /// Rows of the whole manifest, once a digest said so: the two must agree in the end.
    pub total_rows: Option<i64>,
}

/// The counts as stored, with what the contract's counts do not say.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StoredCounts {
    #[serde(flatten)]
    counts: Counts,
    unresolved: i64,
    remote_rows: i64,
    total_rows: Option<i64>,
}

impl Work {
    /// Reads a row.
    pub(super) fn of(row: &Row) -> Result<Work> {
        let is_answer = row.text("scope")? == "ANSWER";
        let counts: StoredCounts = parsed(row.maybe_text("counts")?);
        Ok(Work {
            id: row.int("id")?,
            task_id: row.text("task_id")?,
            attempt: row.int("attempt")?,
            coordinate: Coordinate {
                consumer: row.text("consumer_app_key")?,
                school: row.text("consumer_school_id")?,
                form: row.text("form_uuid")?,
                answer: row.maybe_text("answer_uuid")?.filter(|_| is_answer),
            },
            grant_epoch: row.int("grant_epoch")?,
            window_start: row.instant("window_start")?,
            cursor: row.maybe_text("cursor_uuid")?,
            manifest_completed: row.int("manifest_completed")? == 1,
            local_completed: row.int("local_completed")? == 1,
            counts: counts.counts,
            unresolved: counts.unresolved,
            errors: parsed(row.maybe_text("errors")?),
            extras: parsed(row.maybe_text("extras")?),
            result_state: row.maybe_text("result_state")?,
            retries: row.int("retry_count")?,
            remote_rows: counts.remote_rows,
            total_rows: counts.total_rows,
        })
    }

    /// Notes an item, if there is room. Counts are the caller's and are never cut.
    pub(super) fn note(&mut self, most: usize, code: &str, uuid: &str, revision: Option<i64>) {
        if self.errors.len() < most {
            let code = code.to_owned();
            let answer_uuid = Some(uuid.to_owned());
            self.errors.push(ErrorItem { code, answer_uuid, revision, range: None });
        }
    }

    /// A difference that stands: counted and noted.
    pub(super) fn stands(&mut self, most: usize, code: &str, uuid: &str, revision: Option<i64>) {
        self.counts.reported += 1;
        self.unresolved += 1;
        self.note(most, code, uuid, revision);
    }

    /// Writes flags, counts, errors and candidates together with the lease's renewal, and the
    /// cursor beside them. False = the lease is lost.
    pub(super) async fn save(&self, tx: &mut Tx, lease: &Lease) -> Result<bool> {
        self.save_with(tx, lease, Progress::none()).await
    }

    /// The same with more columns.
    pub(super) async fn save_with(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        progress: Progress,
    ) -> Result<bool> {
        Ok(lease.advance(tx, self.progress(progress)).await? && self.save_cursor(tx).await?)
    }

    /// Writes all of it and gives the lease up. False = the lease is lost.
    pub(super) async fn let_go(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        progress: Progress,
    ) -> Result<bool> {
        // The cursor first: after the lease is gone nothing may be written.
        Ok(lease.advance(tx, Progress::none()).await?
            && self.save_cursor(tx).await?
            && lease.let_go(tx, self.progress(progress)).await?)
    }

    fn progress(&self, progress: Progress) -> Progress {
        let counts = StoredCounts {
            counts: self.counts,
            unresolved: self.unresolved,
            remote_rows: self.remote_rows,
            total_rows: self.total_rows,
        };
        progress
            .set("manifest_completed", self.manifest_completed)
            .set("local_completed", self.local_completed)
            .set("counts", text(&counts))
            .set("errors", text(&self.errors))
            .set("extras", text(&self.extras))
            .set("result_state", self.result_state.as_deref())
    }

    /// `cursor` is a reserved word: quoted, and so beside the lease's own statement.
    async fn save_cursor(&self, tx: &mut Tx) -> Result<bool> {
        let update = sql!(
            "UPDATE answer_reconcile_work SET \"cursor\" = :place, update_time = :now
             WHERE id = :id AND state = 'RUNNING'",
            place = self.cursor.as_deref(),
            now = tx.now(),
            id = self.id,
        );
        Ok(tx.execute(update).await? == 1)
    }
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn parsed<T: Default + serde::de::DeserializeOwned>(text: Option<String>) -> T {
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// A task's row, locked, with when it is due.
pub(super) async fn lock(tx: &mut Tx, id: i64) -> Result<Option<(Work, bool)>> {
    let now = tx.now();
    let row = tx
        .row(sql!(
            "SELECT id, task_id, attempt, consumer_app_key, consumer_school_id, form_uuid, scope,
               answer_uuid, grant_epoch, window_start, state, result_state,
               \"cursor\" AS cursor_uuid, manifest_completed, local_completed, counts, errors,
               extras, retry_count, next_attempt_time, lease_expire_time, work_version
             FROM answer_reconcile_work WHERE id = :id AND deleted = 0 {for_update}",
            id = id
        ))
        .await?;
    let Some(row) = row else { return Ok(None) };
    let is_due = row.maybe_instant("next_attempt_time")?.is_none_or(|due| due <= now);
    let is_free = row.maybe_instant("lease_expire_time")?.is_none_or(|until| until <= now);
    let may = match row.text("state")?.as_str() {
        "QUEUED" => is_due,
        "RUNNING" => is_free,
        _ => false,
    };
    Ok(Some((Work::of(&row)?, may)))
}
