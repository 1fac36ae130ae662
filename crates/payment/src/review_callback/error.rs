//! Why a decision of the reviewers was not accepted or not applied.

use counterfoil_db::{Error as DbError, Transient};
use counterfoil_protocol::{OrderId, PlanId};
use counterfoil_task::{TaskError, WorkError};
use thiserror::Error;

use super::Conclusion;

/// A refusal at acceptance, or a counted failure of S07.
#[derive(Debug, Error)]
pub enum CallbackError {
    /// No live order has this id.
    #[error("there is no payment order {0}")]
    OrderNotFound(OrderId),
    /// No approval instance is on record of what was decided.
    #[error("order {order} has no approval instance of plan {plan}{of}")]
    InstanceNotFound {
        /// The order.
        order: OrderId,
        /// The plan.
        plan: PlanId,
        /// Which version and attempt, if the sender said.
        of: String,
    },
    /// The same approval was concluded the other way.
    #[error("plan {plan} of order {order} was concluded {other} already", other = said.as_str())]
    Opposite {
        /// The order.
        order: OrderId,
        /// The plan.
        plan: PlanId,
        /// What stands.
        said: Conclusion,
    },
    /// The order is not where a decision can be applied.
    #[error("order {order} is at {status}: {why}")]
    OrderState {
        /// The order.
        order: OrderId,
        /// Its status.
        status: i64,
        /// What would be needed.
        why: &'static str,
    },
    /// The lines are not what an approval can be applied to.
    #[error("the lines of order {order}: {why}")]
    Lines {
        /// The order.
        order: OrderId,
        /// What is wrong.
        why: String,
    },
    /// The task engine failed.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl CallbackError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            CallbackError::OrderNotFound(_) => "order-not-found",
            CallbackError::InstanceNotFound { .. } => "approval-instance-not-found",
            CallbackError::Opposite { .. } => "review-callback-opposite",
            CallbackError::OrderState { .. } => "order-state",
            CallbackError::Lines { .. } => "review-callback-lines",
            CallbackError::Task(TaskError::Db(error)) | CallbackError::Db(error) => error.code(),
            CallbackError::Task(_) => "database-error",
        }
    }
}

impl Transient for CallbackError {
    fn database(&self) -> Option<&DbError> {
        match self {
            CallbackError::Db(error) => Some(error),
            CallbackError::Task(error) => error.database(),
            _ => None,
        }
    }
}

impl From<CallbackError> for WorkError {
    fn from(error: CallbackError) -> WorkError {
        match error {
            CallbackError::Db(error) => WorkError::Db(error),
            CallbackError::Task(error) => WorkError::Task(error),
            other => WorkError::Failed { code: other.code(), message: other.to_string() },
        }
    }
}
