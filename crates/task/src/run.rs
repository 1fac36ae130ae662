//! Running a claimed task: what work sees, and the fence around everything it writes.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use counterfoil_db::{Db, Tx, sql};
use counterfoil_protocol::TaskCode;
use serde::de::DeserializeOwned;

use crate::accept::{Acceptance, Seed, accept_or_reuse};
use crate::kick::Kicker;
use crate::lease::{Lease, LeaseTable, LeaseTerms, LeaseUnavailable};
use crate::select::TaskRow;
use crate::shutdown::Shutdown;
use crate::takeover::Takeover;
use crate::trace::{Action, Subject, Trace, record};
use crate::{Kind, WorkError};

/// Characters of `error_message`. Characters, not bytes.
pub const MAX_MESSAGE: usize = 1000;

pub(crate) fn cut(message: &str) -> String {
    message.chars().take(MAX_MESSAGE).collect()
}

/// What `task_data` holds: enough to rebuild the business key. Nothing is guessed from elsewhere.
pub trait Payload: DeserializeOwned + Send + Sync {
    /// The business key of the task with this payload.
    fn business_key(&self) -> String;

    /// What is wrong with the payload itself, such as a non-positive id or another scene.
    fn defect(&self) -> Option<String>;

    /// The id that scoped rules take.
    fn subject_id(&self) -> i64 {
        0
    }
}

/// A kind of task: one struct with a payload and a `run`.
#[async_trait::async_trait]
pub trait Work: Send + Sync + 'static {
    /// What its `task_data` holds.
    type Payload: Payload;

    /// Its names and limits.
    fn kind(&self) -> &'static Kind;

    /// Which of its RUNNING rows may be claimed again.
    fn takeover(&self) -> Takeover {
        Takeover::Stale
    }

    /// Does the work of one claimed task. Every write goes through [`Run::begin`].
    async fn run(&self, payload: Self::Payload, run: &Run<'_>) -> Result<Verdict, WorkError>;
}

/// How a task's work ended, as committed. Only a fenced transaction makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict(pub(crate) Ending);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Succeeded,
    HandedOver,
    Cancelled,
    Skipped,
}

/// A claimed task at work.
#[derive(Debug)]
pub struct Run<'a> {
    pub(crate) db: &'a Db,
    pub(crate) kind: &'static Kind,
    pub(crate) task: &'a TaskRow,
    pub(crate) attempt: i64,
    pub(crate) worker: &'a str,
    pub(crate) kicker: &'a Kicker,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) terms: LeaseTerms,
    pub(crate) lease: Mutex<Option<Lease>>,
}

impl Run<'_> {
    /// The database, for plain reads outside any transaction.
    pub fn db(&self) -> &Db {
        self.db
    }

    /// The task's code.
    pub fn code(&self) -> &TaskCode {
        &self.task.code
    }

    /// The task's row.
    pub fn task_id(&self) -> i64 {
        self.task.id
    }

    /// Starts a business transaction: locks the task row and proves that the attempt is still
    /// ours.
    ///
    /// # Errors
    /// [`WorkError::FencedOut`] when it is not: stop, nothing may be written.
    pub async fn begin(&self) -> Result<Fenced<'_>, WorkError> {
        let tx = self.begin_for_verdict().await?;
        tx.ok_or(WorkError::FencedOut)
    }

    /// Call between two batches: hands the task back when the process is stopping.
    ///
    /// # Errors
    /// [`WorkError::Stopping`]: return it; the engine does the rest.
    pub fn checkpoint(&self) -> Result<(), WorkError> {
        if self.shutdown.is_asked() { Err(WorkError::Stopping) } else { Ok(()) }
    }

    /// Leases a row for this run, and remembers it, so that a failure of the task also fails the
    /// row and a hand-back lets go of it.
    ///
    /// # Errors
    /// [`WorkError::Busy`] while another holds it; a failure when the row moved on meanwhile.
    pub async fn lease(
        &self,
        tx: &mut Tx,
        table: &'static LeaseTable,
        id: i64,
        version: i64,
    ) -> Result<Lease, WorkError> {
        match Lease::acquire(tx, table, id, version, self.worker, self.terms).await? {
            Ok(lease) => {
                *self.remembered() = Some(lease.clone());
                Ok(lease)
            }
            Err(LeaseUnavailable::Held { until }) => Err(WorkError::Busy { until }),
            Err(LeaseUnavailable::Moved) => Err(WorkError::failed(
                "lease-moved",
                format!("{} {id} cannot be leased at version {version}", table.name),
            )),
        }
    }

    pub(crate) fn remembered(&self) -> std::sync::MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when fenced out.
    pub(crate) async fn begin_for_verdict(&self) -> Result<Option<Fenced<'_>>, WorkError> {
        let mut tx = self.db.begin().await?;
        // One conditional update locks the row, proves the attempt and keeps the row fresh: what
        // SELECT … FOR UPDATE and an update would do in two round trips.
        let now = tx.now();
        let fence = sql!(
            "UPDATE fi_async_task SET update_time = :now
             WHERE id = :id AND deleted = 0 AND task_type = :task_type AND task_status = 1
               AND running_attempt = :attempt",
            now = now,
            id = self.task.id,
            task_type = self.kind.task_type,
            attempt = self.attempt,
        );
        if tx.execute(fence).await? != 1 {
            tx.rollback().await?;
            return Ok(None);
        }
        Ok(Some(Fenced { tx, run: self }))
    }
}

/// A transaction that has proved its attempt and holds the task row's lock.
#[derive(Debug)]
pub struct Fenced<'r> {
    tx: Tx,
    run: &'r Run<'r>,
}

impl Deref for Fenced<'_> {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for Fenced<'_> {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}

impl Fenced<'_> {
    /// Accepts or reuses the next task in this transaction.
    pub async fn accept(&mut self, seed: &Seed) -> Result<Acceptance, WorkError> {
        Ok(accept_or_reuse(&mut self.tx, seed, self.run.kicker).await?)
    }

    /// Asks for a turn of a handler's row once this has committed.
    pub async fn kick_row(&mut self, kind: &'static Kind, id: i64) -> Result<(), WorkError> {
        let code = TaskCode::stored(format!("{}:{id}", kind.prefix));
        self.run.kicker.kick_after_commit(&mut self.tx, kind, &code).await?;
        Ok(())
    }

    /// Appends a trace row about this very task.
    pub async fn trace(
        &mut self,
        action: Action,
        result: &str,
        detail: Option<String>,
        subject: &Subject,
    ) -> Result<(), WorkError> {
        let task = self.run.task;
        let trace = Trace {
            task_id: task.id,
            code: &task.code,
            task_type: self.run.kind.task_type,
            business_key: &task.business_key,
            action,
            source: Some(&task.code),
            result: result.to_owned(),
            detail,
            operator: None,
        };
        record(&mut self.tx, &trace, subject).await?;
        Ok(())
    }

    /// Commits a batch; the task goes on.
    pub async fn commit(self, point: &'static str) -> Result<(), WorkError> {
        Ok(self.tx.commit(point).await?)
    }

    /// Gives up what was done in this transaction; the task goes on.
    pub async fn rollback(self) -> Result<(), WorkError> {
        Ok(self.tx.rollback().await?)
    }

    /// Marks the task SUCCESS and commits.
    pub async fn succeed(self, point: &'static str) -> Result<Verdict, WorkError> {
        self.end(point, 2, None, Ending::Succeeded).await
    }

    /// Marks the task SUCCESS with a note kept in `error_message`, and counts it as skipped.
    pub async fn succeed_as_stale(
        self,
        point: &'static str,
        note: &str,
    ) -> Result<Verdict, WorkError> {
        self.end(point, 2, Some(note), Ending::Skipped).await
    }

    /// Marks the task CANCELLED, for good, and commits.
    pub async fn cancel(self, point: &'static str, reason: &str) -> Result<Verdict, WorkError> {
        self.end(point, 4, Some(reason), Ending::Cancelled).await
    }

    /// Commits with the task left RUNNING: another handler finishes it.
    pub async fn hand_over(self, point: &'static str) -> Result<Verdict, WorkError> {
        self.tx.commit(point).await?;
        Ok(Verdict(Ending::HandedOver))
    }

    async fn end(
        mut self,
        point: &'static str,
        status: i64,
        note: Option<&str>,
        ending: Ending,
    ) -> Result<Verdict, WorkError> {
        let now = self.tx.now();
        let update = sql!(
            "UPDATE fi_async_task
             SET task_status = :status, error_message = :note, next_execute_time = NULL,
                 lost_attempts = 0, update_time = :now
             WHERE id = :id AND task_type = :task_type AND task_status = 1
               AND running_attempt = :attempt",
            status = status,
            note = note.map(cut),
            now = now,
            id = self.run.task.id,
            task_type = self.run.kind.task_type,
            attempt = self.run.attempt,
        );
        if self.tx.execute(update).await? != 1 {
            return Err(WorkError::FencedOut);
        }
        self.tx.commit(point).await?;
        Ok(Verdict(ending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_to_a_thousand_characters_not_bytes() {
        let message = "账".repeat(1200);
        assert_eq!(cut(&message).chars().count(), MAX_MESSAGE);
    }
}
