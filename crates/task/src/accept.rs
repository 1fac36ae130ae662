//! Accept or reuse: the only way a task row comes to be.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_protocol::TaskCode;

use crate::archive;
use crate::kick::Kicker;
use crate::trace::{Action, Subject, Trace, record};
use crate::{Kind, TaskError, TaskStatus};

/// A task to be accepted inside the caller's transaction.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its business key.
    pub business_key: String,
    /// `task_data`, camelCase JSON.
    pub data: String,
    /// What the trace row says of it.
    pub subject: Subject,
    /// The task that hands over to this one.
    pub source: Option<TaskCode>,
}

impl Seed {
    /// The task's code.
    pub fn code(&self) -> TaskCode {
        TaskCode::of(self.kind.prefix, &self.business_key)
    }
}

/// What acceptance found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// A new row, PENDING and due.
    New,
    /// A row was there; it is untouched.
    Reused {
        /// Its status.
        status: TaskStatus,
        /// Whether the scan will never take it again by itself.
        exhausted: bool,
    },
}

impl Acceptance {
    /// Whether nobody but a person will ever run the task again.
    pub fn is_blocked(self) -> bool {
        match self {
            Acceptance::New => false,
            Acceptance::Reused { status, exhausted } => {
                status == TaskStatus::Cancelled || (exhausted && !status.is_final())
            }
        }
    }
}

/// Inserts the task, ignoring a duplicate code; reads it back; proves that the stored row is this
/// very task; writes the trace row; registers the kick. Never changes an existing row.
///
/// # Errors
/// [`TaskError::Identity`] when the code belongs to another type or business key: the caller's
/// whole transaction must fail.
pub async fn accept_or_reuse(
    tx: &mut Tx,
    seed: &Seed,
    kicker: &Kicker,
) -> Result<Acceptance, TaskError> {
    accept(tx, seed, kicker, MAX_RETRIES).await
}

/// [`accept_or_reuse`] for a task that is tried until it succeeds, an hour apart at last: a message
/// that must arrive, however long its receiver is away.
///
/// # Errors
/// As [`accept_or_reuse`].
pub async fn accept_until_done(
    tx: &mut Tx,
    seed: &Seed,
    kicker: &Kicker,
) -> Result<Acceptance, TaskError> {
    accept(tx, seed, kicker, i32::MAX).await
}

/// Failures after which the scan leaves a task to a person.
const MAX_RETRIES: i32 = 3;

async fn accept(
    tx: &mut Tx,
    seed: &Seed,
    kicker: &Kicker,
    max_retries: i32,
) -> Result<Acceptance, TaskError> {
    let code = seed.code();
    let mut inserted = insert_unless_known(tx, seed, &code, max_retries).await?;
    let mut stored = read_back(tx, &code).await?;
    if inserted && let Some(archived) = archive::archived(tx, &code).await? {
        // It was done, long ago: done once is done.
        take_back(tx, stored.id).await?;
        (inserted, stored) = (false, archived);
    }
    if stored.task_type != seed.kind.task_type || stored.business_key != seed.business_key {
        return Err(TaskError::Identity {
            code,
            stored_type: stored.task_type,
            stored_key: stored.business_key,
            task_type: seed.kind.task_type,
            business_key: seed.business_key.clone(),
        });
    }
    let acceptance = if inserted {
        Acceptance::New
    } else {
        Acceptance::Reused { status: stored.status, exhausted: stored.exhausted }
    };
    let trace = Trace {
        task_id: stored.id,
        code: &code,
        task_type: seed.kind.task_type,
        business_key: &seed.business_key,
        action: if inserted { Action::Accept } else { Action::Reuse },
        source: seed.source.as_ref(),
        result: stored.status.to_string(),
        detail: None,
        operator: None,
    };
    record(tx, &trace, &seed.subject).await?;
    if !stored.status.is_final() {
        kicker.kick_after_commit(tx, seed.kind, &code).await?;
    }
    Ok(acceptance)
}

async fn insert_unless_known(
    tx: &mut Tx,
    seed: &Seed,
    code: &TaskCode,
    max_retries: i32,
) -> Result<bool, TaskError> {
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO fi_async_task
           (task_code, task_type, business_key, task_data, task_status, retry_count,
            max_retry_count, next_execute_time, running_attempt, create_time, update_time)
         VALUES (:code, :task_type, :business_key, :data, 0, 0, :max, :now, 0, :now, :now)
         {or_ignore}",
        code = code.as_str(),
        task_type = seed.kind.task_type,
        business_key = &seed.business_key,
        data = &seed.data,
        max = max_retries,
        now = now,
    );
    Ok(tx.execute(insert).await? == 1)
}

async fn take_back(tx: &mut Tx, id: i64) -> Result<(), TaskError> {
    tx.execute(sql!("DELETE FROM fi_async_task WHERE id = :id", id = id)).await?;
    Ok(())
}

/// A task as it stands.
pub(crate) struct Stored {
    pub(crate) id: i64,
    pub(crate) task_type: String,
    pub(crate) business_key: String,
    pub(crate) status: TaskStatus,
    pub(crate) exhausted: bool,
}

async fn read_back(tx: &mut Tx, code: &TaskCode) -> Result<Stored, TaskError> {
    // FOR UPDATE reads the latest committed row on MariaDB too, whatever the transaction saw first.
    let row = tx
        .row(sql!(
            "SELECT id, task_type, business_key, task_status,
                    COALESCE(retry_count, 0) AS retries, COALESCE(max_retry_count, 3) AS most
             FROM fi_async_task WHERE task_code = :code {for_update}",
            code = code.as_str(),
        ))
        .await?
        .ok_or_else(|| TaskError::Vanished { code: code.clone() })?;
    Ok(Stored {
        id: row.int("id")?,
        task_type: row.text("task_type")?,
        business_key: row.text("business_key")?,
        status: TaskStatus::of_code(row.int("task_status")?).unwrap_or(TaskStatus::Failed),
        exhausted: row.int("retries")? >= row.int("most")?,
    })
}
