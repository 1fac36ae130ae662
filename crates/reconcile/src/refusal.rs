//! The stable codes of the protocol, and refusals that carry one.

use counterfoil_db::{Error as DbError, Transient};
use thiserror::Error;

/// A code of the protocol. The words are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// No effective grant: enabled, subscribe and read all 1.
    GrantRevoked,
    /// The grant changed since the task was made.
    GrantEpochChanged,
    /// The application may not serve that school.
    ScopeMismatch,
    /// The task, envelope or order is another's.
    IdentityMismatch,
    /// There is no such task.
    TaskNotFound,
    /// The task has ended.
    TaskTerminal,
    /// The task was cancelled.
    TaskCancelled,
    /// The manifest is not there yet.
    ManifestIncomplete,
    /// The cursor is no answer's uuid.
    CursorInvalid,
    /// A range is none, overlaps another, or is one too many.
    RangeInvalid,
    /// The reported state contradicts what was reported with it, or is none.
    ResultStateInvalid,
    /// The report is of an attempt that the centre never made.
    AttemptAhead,
    /// More rows or pages than allowed.
    ResourceLimit,
    /// No address is registered for the consumer.
    TargetNotRegistered,
    /// An answer has no content hash.
    AnswerUnhashable,
    /// A field is missing or wrong.
    InvalidInput,
    /// The answer changed since it was read.
    RevisionConflict,
    /// There is no such answer.
    AnswerNotFound,
}

impl Code {
    /// The word on the wire and in `reason_code`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::GrantRevoked => "GRANT_REVOKED",
            Code::GrantEpochChanged => "GRANT_EPOCH_CHANGED",
            Code::ScopeMismatch => "SCOPE_MISMATCH",
            Code::IdentityMismatch => "IDENTITY_MISMATCH",
            Code::TaskNotFound => "TASK_NOT_FOUND",
            Code::TaskTerminal => "TASK_TERMINAL",
            Code::TaskCancelled => "TASK_CANCELLED",
            Code::ManifestIncomplete => "MANIFEST_INCOMPLETE",
            Code::CursorInvalid => "CURSOR_INVALID",
            Code::RangeInvalid => "RANGE_INVALID",
            Code::ResultStateInvalid => "RESULT_STATE_INVALID",
            Code::AttemptAhead => "ATTEMPT_AHEAD",
            Code::ResourceLimit => "RESOURCE_LIMIT",
            Code::TargetNotRegistered => "TARGET_NOT_REGISTERED",
            Code::AnswerUnhashable => "ANSWER_UNHASHABLE",
            Code::InvalidInput => "INVALID_INPUT",
            Code::RevisionConflict => "REVISION_CONFLICT",
            Code::AnswerNotFound => "ANSWER_NOT_FOUND",
        }
    }

    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            Code::GrantRevoked
            | Code::GrantEpochChanged
            | Code::ScopeMismatch
            | Code::IdentityMismatch => 403,
            Code::TaskNotFound | Code::AnswerNotFound => 404,
            Code::TaskTerminal
            | Code::TaskCancelled
            | Code::ManifestIncomplete
            | Code::RevisionConflict => 409,
            Code::CursorInvalid
            | Code::RangeInvalid
            | Code::ResultStateInvalid
            | Code::AttemptAhead
            | Code::ResourceLimit
            | Code::TargetNotRegistered
            | Code::AnswerUnhashable
            | Code::InvalidInput => 422,
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Refusal {
    /// It is refused, for good or until something changes.
    #[error("{code}: {message}")]
    Coded {
        /// The stable code.
        code: Code,
        /// What a person reads. Never an answer's values.
        message: String,
    },
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Refusal {
    /// A refusal with its code.
    pub fn of(code: Code, message: impl Into<String>) -> Refusal {
        Refusal::Coded { code, message: message.into() }
    }

    /// The code, unless the database failed.
    pub fn refused(&self) -> Option<Code> {
        match self {
            Refusal::Coded { code, .. } => Some(*code),
            Refusal::Db(_) => None,
        }
    }
}

impl Transient for Refusal {
    fn database(&self) -> Option<&DbError> {
        match self {
            Refusal::Db(error) => Some(error),
            Refusal::Coded { .. } => None,
        }
    }
}

/// min(cap, base × 2^doublings).
pub fn backoff(
    base: chrono::TimeDelta,
    cap: chrono::TimeDelta,
    doublings: i64,
) -> chrono::TimeDelta {
    let doublings = u32::try_from(doublings.clamp(0, 30)).unwrap_or(30);
    let seconds = base.num_seconds().saturating_mul(1_i64 << doublings);
    chrono::TimeDelta::seconds(seconds.min(cap.num_seconds()))
}
