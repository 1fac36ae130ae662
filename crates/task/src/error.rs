//! What can go wrong with a task.

use counterfoil_db::{Error as DbError, Instant, Transient};
use counterfoil_protocol::TaskCode;
use thiserror::Error;

/// Why accepting or moving a task failed.
#[derive(Debug, Error)]
pub enum TaskError {
    /// The stored task under this code is another task: a hash collision or tampering.
    #[error("task {code} exists as {stored_type} {stored_key}, not as {task_type} {business_key}")]
    Identity {
        /// The code both claim.
        code: TaskCode,
        /// The stored row's type.
        stored_type: String,
        /// The stored row's business key.
        stored_key: String,
        /// The seed's type.
        task_type: &'static str,
        /// The seed's business key.
        business_key: String,
    },
    /// The row was ignored by the insert and cannot be read back either.
    #[error("task {code} was neither inserted nor found")]
    Vanished {
        /// Its code.
        code: TaskCode,
    },
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Transient for TaskError {
    fn database(&self) -> Option<&DbError> {
        match self {
            TaskError::Db(error) => Some(error),
            _ => None,
        }
    }
}

/// How a piece of work ends when it does not succeed.
#[derive(Debug, Error)]
pub enum WorkError {
    /// The task failed: counted, backed off, tried again until its limit.
    #[error("{message}")]
    Failed {
        /// A stable code.
        code: &'static str,
        /// What a person reads in `error_message`.
        message: String,
    },
    /// Another attempt owns the task: stop, write nothing, count as skipped.
    #[error("another attempt owns the task")]
    FencedOut,
    /// Somebody else's live lease: come back when it ends; nothing is counted.
    #[error("leased by another until {until}")]
    Busy {
        /// When the lease ends.
        until: Instant,
    },
    /// The process is stopping: hand the task back without burning an attempt.
    #[error("the process is stopping")]
    Stopping,
    /// The task engine's own error.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl WorkError {
    /// A counted failure.
    pub fn failed(code: &'static str, message: impl Into<String>) -> WorkError {
        WorkError::Failed { code, message: message.into() }
    }

    /// The stable code kept with a batch and shown to people.
    pub fn code(&self) -> &'static str {
        match self {
            WorkError::Failed { code, .. } => code,
            WorkError::FencedOut => "fenced-out",
            WorkError::Busy { .. } => "lease-held",
            WorkError::Stopping => "stopping",
            WorkError::Task(TaskError::Identity { .. }) => "task-identity",
            WorkError::Task(TaskError::Db(error)) | WorkError::Db(error) => error.code(),
            WorkError::Task(TaskError::Vanished { .. }) => "database-error",
        }
    }

    /// Whether the database is gone, so that nothing can be written about this failure.
    pub fn is_lost(&self) -> bool {
        match self {
            WorkError::Db(error) | WorkError::Task(TaskError::Db(error)) => error.is_lost(),
            _ => false,
        }
    }

    /// The message with its causes, for `error_message`.
    pub fn full_message(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

impl Transient for WorkError {
    fn database(&self) -> Option<&DbError> {
        match self {
            WorkError::Db(error) => Some(error),
            WorkError::Task(error) => error.database(),
            _ => None,
        }
    }
}
