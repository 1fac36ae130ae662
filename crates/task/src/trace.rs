//! The append-only trace of what happened to tasks.

use counterfoil_db::{Tx, Value};
use counterfoil_protocol::TaskCode;

use crate::TaskError;

/// What a trace row says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A new task was accepted.
    Accept,
    /// An existing task was accepted as it stands.
    Reuse,
    /// A task was cancelled.
    Cancel,
    /// Something that a person must look at.
    Incident,
    /// A person ran a task again.
    Rerun,
    /// A person put a publish record right.
    Repair,
    /// A person sent something to the outside world again.
    Redeliver,
    /// Something came in that contradicts what is on record, and was not taken.
    Refuse,
}

impl Action {
    /// The value in `action`.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Accept => "ACCEPT",
            Action::Reuse => "REUSE",
            Action::Cancel => "CANCEL",
            Action::Incident => "INCIDENT",
            Action::Rerun => "RERUN",
            Action::Repair => "REPAIR",
            Action::Redeliver => "REDELIVER",
            Action::Refuse => "REFUSE",
        }
    }
}

/// What the business calls the thing a task is about: columns that the engine writes without
/// knowing what they mean.
#[derive(Debug, Clone, Default)]
pub struct Subject(Vec<(&'static str, Value)>);

impl Subject {
    /// About nothing in particular.
    pub fn none() -> Subject {
        Subject::default()
    }

    /// Adds one of the trace table's own columns.
    #[must_use]
    pub fn with(mut self, column: &'static str, value: impl counterfoil_db::Bind) -> Subject {
        self.0.push((column, value.bind()));
        self
    }
}

/// One trace row.
#[derive(Debug)]
pub struct Trace<'a> {
    /// The task's row.
    pub task_id: i64,
    /// The task's code.
    pub code: &'a TaskCode,
    /// The task's type.
    pub task_type: &'a str,
    /// The task's business key.
    pub business_key: &'a str,
    /// What happened.
    pub action: Action,
    /// Which task it came from; with the code and the action it makes the row unique, so that a
    /// replayed hand-over adds no second row.
    pub source: Option<&'a TaskCode>,
    /// The outcome in a word.
    pub result: String,
    /// JSON for people.
    pub detail: Option<String>,
    /// Who did it, if a person did.
    pub operator: Option<i64>,
}

/// Characters of `result`. One more, and PostgreSQL refuses the row with all that stands in its
/// transaction, while MariaDB cuts it silently.
const MAX_RESULT: usize = 32;

/// Appends a trace row; the same row again is no change.
pub async fn record(tx: &mut Tx, trace: &Trace<'_>, subject: &Subject) -> Result<(), TaskError> {
    let mut columns = String::new();
    let mut values = String::new();
    for (column, _) in &subject.0 {
        columns.push_str(&format!(", {column}"));
        values.push_str(&format!(", :{column}"));
    }
    let text = format!(
        "{{insert_ignore}} INTO fi_resident_income_payment_async_operation_log
           (task_id, task_code, task_type, business_key, action, source_task_code, result, detail,
            operator_user_id, create_time, update_time{columns})
         VALUES (:task_id, :code, :task_type, :business_key, :action, :source, :result, :detail,
            :operator, :now, :now{values})
         {{or_ignore}}"
    );
    let mut query = counterfoil_db::Query::built(text)
        .bind("task_id", trace.task_id)
        .bind("code", trace.code.as_str())
        .bind("task_type", trace.task_type)
        .bind("business_key", trace.business_key)
        .bind("action", trace.action.as_str())
        .bind("source", trace.source.map(TaskCode::as_str))
        .bind("result", trace.result.chars().take(MAX_RESULT).collect::<String>())
        .bind("detail", trace.detail.as_deref())
        .bind("operator", trace.operator)
        .bind("now", tx.now());
    for (column, value) in &subject.0 {
        query = query.bind(column, value.clone());
    }
    tx.execute(query).await?;
    Ok(())
}

/// The trace of one task, oldest first: `(action, source, result, detail, time)` per row.
pub const TRACE_OF_TASK: &str = "SELECT action, source_task_code, result, detail,
    operator_user_id, create_time
  FROM fi_resident_income_payment_async_operation_log
  WHERE task_code = :code ORDER BY id LIMIT :limit";
