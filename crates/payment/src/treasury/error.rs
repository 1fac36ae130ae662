//! Why a treasury operation was refused or failed.

use counterfoil_db::{Error as DbError, Transient};
use counterfoil_protocol::OrderId;
use counterfoil_task::{TaskError, WorkError};
use thiserror::Error;

use crate::PaymentError;

/// A refused or failed treasury operation.
#[derive(Debug, Error)]
pub enum TreasuryError {
    /// A partner's split rule cannot be read. Nothing was created.
    #[error("partner {partner}: the split rule `{rule}` cannot be used: {why}")]
    SplitRule {
        /// The partner.
        partner: i64,
        /// What `sys_partner.split_rule` holds.
        rule: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A payable line has no amount, or none above zero. Nothing was created.
    #[error("order {order}: line {line} is payable without an amount above zero")]
    LineAmount {
        /// The order.
        order: OrderId,
        /// The first such line.
        line: i64,
    },
    /// ACTIVE locks, payable lines and the approved count do not agree.
    #[error(
        "order {order}: {lines} payable lines, {locks} ACTIVE locks on them, {expected} approved"
    )]
    LocksDiffer {
        /// The order.
        order: OrderId,
        /// Payable lines.
        lines: i64,
        /// ACTIVE locks on them.
        locks: i64,
        /// What the review approved.
        expected: i64,
    },
    /// Details and payable lines do not have the same sum: nothing is shown to the pusher.
    #[error("order {order}: details come to {details}, payable lines to {lines}")]
    SumsDiffer {
        /// The order.
        order: OrderId,
        /// Count and fen of the details.
        details: String,
        /// Count and fen of the lines.
        lines: String,
    },
    /// Another process creates this order's batches.
    #[error("order {order}: another process is creating its batches")]
    CreationBusy {
        /// The order.
        order: OrderId,
    },
    /// No live batch has this id or number.
    #[error("there is no push batch {0}")]
    BatchNotFound(String),
    /// The batch is not in a state that allows this.
    #[error("push batch {batch} is {status}: {why}")]
    BatchState {
        /// The batch.
        batch: i64,
        /// Its status.
        status: String,
        /// What would be needed.
        why: String,
    },
    /// No live detail has this id.
    #[error("there is no push batch detail {0}")]
    DetailNotFound(i64),
    /// The detail is not in a state that allows this.
    #[error("detail {detail} is {status}: {why}")]
    DetailState {
        /// The detail.
        detail: i64,
        /// Its push and pay status.
        status: String,
        /// What would be needed.
        why: &'static str,
    },
    /// No channel is configured for the batch's strategy.
    #[error("push batch {batch}: no channel is configured for the strategy {strategy}")]
    StrategyUnknown {
        /// The batch.
        batch: i64,
        /// What it names.
        strategy: String,
    },
    /// A result report cannot be read. Nothing of it was applied.
    #[error("the result report cannot be read: {0}")]
    ReportUnreadable(String),
    /// A report under a known id says something else. Nothing of it was applied.
    #[error("report {report} was imported before with another content")]
    ReportConflict {
        /// The report's own id.
        report: String,
    },
    /// A report about a message that was never pushed from here. Nothing of it was applied.
    #[error("the report is about the message {message}, which was never pushed from here")]
    ReportStranger {
        /// The message it names.
        message: String,
    },
    /// The payment was recorded before with something else.
    #[error("order {order} was recorded as paid before, with other evidence")]
    AlreadyRecorded {
        /// The order.
        order: OrderId,
    },
    /// Refused or failed as any payment operation.
    #[error(transparent)]
    Payment(#[from] PaymentError),
}

impl TreasuryError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            TreasuryError::SplitRule { .. } => "split-rule-invalid",
            TreasuryError::LineAmount { .. } => "treasury-line-amount",
            TreasuryError::LocksDiffer { .. } => "treasury-locks-differ",
            TreasuryError::SumsDiffer { .. } => "treasury-sums-differ",
            TreasuryError::CreationBusy { .. } => "treasury-creation-busy",
            TreasuryError::BatchNotFound(_) => "push-batch-not-found",
            TreasuryError::BatchState { .. } => "push-batch-state",
            TreasuryError::DetailNotFound(_) => "push-detail-not-found",
            TreasuryError::DetailState { .. } => "push-detail-state",
            TreasuryError::StrategyUnknown { .. } => "push-strategy-unknown",
            TreasuryError::ReportUnreadable(_) => "result-report-unreadable",
            TreasuryError::ReportConflict { .. } => "result-report-conflict",
            TreasuryError::ReportStranger { .. } => "result-report-stranger",
            TreasuryError::AlreadyRecorded { .. } => "payment-recorded-otherwise",
            TreasuryError::Payment(error) => error.code(),
        }
    }

    /// Bad input: `field` names the field.
    pub fn invalid(field: impl Into<String>, why: impl Into<String>) -> TreasuryError {
        PaymentError::invalid(field, why).into()
    }
}

impl From<DbError> for TreasuryError {
    fn from(error: DbError) -> TreasuryError {
        PaymentError::from(error).into()
    }
}

impl From<TaskError> for TreasuryError {
    fn from(error: TaskError) -> TreasuryError {
        PaymentError::from(error).into()
    }
}

impl Transient for TreasuryError {
    fn database(&self) -> Option<&DbError> {
        match self {
            TreasuryError::Payment(error) => error.database(),
            _ => None,
        }
    }
}

impl From<TreasuryError> for WorkError {
    fn from(error: TreasuryError) -> WorkError {
        match error {
            TreasuryError::Payment(error) => error.into(),
            other => WorkError::Failed { code: other.code(), message: other.to_string() },
        }
    }
}
