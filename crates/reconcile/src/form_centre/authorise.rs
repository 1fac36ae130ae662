//! Every call is authorised again: that a task could be made proves nothing about now.

use counterfoil_db::{Db, Read, transact};

use super::grant;
use super::task::{self, Task};
use crate::refusal::{Code, Refusal};
use crate::wire::GrantState;

/// Proves that `caller` may have what a task shows, and that the task has not ended. Where its
/// grant, epoch or scope no longer holds, the task is cancelled.
///
/// # Errors
/// In this order: TASK_NOT_FOUND, IDENTITY_MISMATCH, TASK_CANCELLED, TASK_TERMINAL,
/// SCOPE_MISMATCH, GRANT_REVOKED, GRANT_EPOCH_CHANGED.
pub async fn authorise(
    db: &Db,
    task_id: &str,
    caller: &str,
) -> Result<(Task, GrantState), Refusal> {
    let task = task::find(db, task_id).await?.ok_or_else(|| not_found(task_id))?;
    is_target(&task, caller)?;
    is_open(&task)?;
    match holds(db, &task).await {
        Ok(grant) => Ok((task, grant)),
        Err(refusal) => {
            if let Refusal::Coded { code, message } = &refusal {
                transact!(cancel(db, &task, *code, message))?;
            }
            Err(refusal)
        }
    }
}

pub(super) fn not_found(task_id: &str) -> Refusal {
    let shown: String = task_id.chars().take(64).collect();
    Refusal::of(Code::TaskNotFound, format!("there is no task {shown}"))
}

/// Whether the signing app is the task's target.
pub(super) fn is_target(task: &Task, caller: &str) -> Result<(), Refusal> {
    if task.coordinate.consumer == caller {
        return Ok(());
    }
    Err(Refusal::of(Code::IdentityMismatch, "the task is another consumer's"))
}

fn is_open(task: &Task) -> Result<(), Refusal> {
    match task.state.as_str() {
        "CANCELLED" => Err(Refusal::of(Code::TaskCancelled, "the task was cancelled")),
        state if task.is_over() => {
            Err(Refusal::of(Code::TaskTerminal, format!("the task has ended: {state}")))
        }
        _ => Ok(()),
    }
}

/// Whether scope, grant and epoch still are what the task was made under.
pub(super) async fn holds(db: &impl Read, task: &Task) -> Result<GrantState, Refusal> {
    let grant = grant::effective(db, &task.coordinate).await?;
    if grant.grant_epoch != task.grant_epoch {
        let message =
            format!("the grant's epoch is {}, not {}", grant.grant_epoch, task.grant_epoch);
        return Err(Refusal::of(Code::GrantEpochChanged, message));
    }
    Ok(grant)
}

async fn cancel(
    db: &Db,
    task: &Task,
    code: Code,
    message: &str,
) -> Result<(), counterfoil_db::Error> {
    let mut tx = db.begin().await?;
    task::end(&mut tx, task, "CANCELLED", Some(code.as_str()), Some(message)).await?;
    tx.commit("authorise.cancel").await
}
