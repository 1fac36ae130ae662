//! Errors of payment operations: a stable code, a public message, a private cause.

use counterfoil_db::{Error as DbError, Transient};
use counterfoil_protocol::{BillMonth, DeliveryId, OrderId, SessionId, VersionId};
use counterfoil_task::{TaskError, WorkError};
use thiserror::Error;

use crate::bill_import::RowFaults;

/// Why a payment operation was refused or failed.
#[derive(Debug, Error)]
pub enum PaymentError {
    /// No live session has this id.
    #[error("there is no selection session {0}")]
    SessionNotFound(SessionId),
    /// No live order has this id.
    #[error("there is no payment order {0}")]
    OrderNotFound(OrderId),
    /// No live order has what was typed as its id or number.
    #[error("order: there is no payment order {0}; write its id or its number")]
    NoSuchOrder(String),
    /// No record, line or lock knows this bill.
    #[error("station, month: nothing is on record of station {station} in {month}")]
    BillNotFound {
        /// The station.
        station: String,
        /// The month.
        month: BillMonth,
    },
    /// An operator's repair of a publish record does not apply.
    #[error("order {order}: {why}")]
    RepairRefused {
        /// The order.
        order: OrderId,
        /// What stands against it.
        why: String,
    },
    /// No live version record has this id, or its order or session is gone.
    #[error("there is no order version record {0} with a live order and a live session")]
    VersionNotFound(VersionId),
    /// The session is not in a state that allows this.
    #[error("session {session} is {status}: {why}")]
    SessionState {
        /// The session.
        session: SessionId,
        /// Its status.
        status: String,
        /// What would be needed.
        why: String,
    },
    /// The order is not in a state that allows this.
    #[error("order {order} is {status}: {why}")]
    OrderState {
        /// The order.
        order: OrderId,
        /// Its status.
        status: String,
        /// What would be needed.
        why: String,
    },
    /// No live row of the external log has this id.
    #[error("there is no delivery {0}")]
    DeliveryNotFound(DeliveryId),
    /// A delivery cannot be sent again as it stands.
    #[error("delivery {delivery} is {status}: {why}")]
    DeliveryState {
        /// The delivery.
        delivery: DeliveryId,
        /// Its status.
        status: String,
        /// What stands against it.
        why: String,
    },
    /// Somebody else's session or order.
    #[error("{0}")]
    Forbidden(String),
    /// Input that names what is wrong with it.
    #[error("{field}: {why}")]
    Invalid {
        /// The field, row or key.
        field: String,
        /// What is wrong.
        why: String,
    },
    /// Rows of a file are wrong; nothing of it was imported.
    #[error("nothing was imported: {0}")]
    RowsRefused(RowFaults),
    /// Somebody else moved the row meanwhile; nothing was written.
    #[error("{0} was changed by somebody else meanwhile; look at it again")]
    Conflict(String),
    /// The key opened a session for another request.
    #[error("this Idempotency-Key came with another request before; use a new one")]
    KeyReused,
    /// The order was approved, and its refreshed state is not there yet.
    #[error(
        "order {order} was approved; its bills are still being refreshed ({phase}): try again later"
    )]
    RefreshPending {
        /// The order.
        order: OrderId,
        /// How far the review callback's progress is.
        phase: String,
    },
    /// The task engine failed.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl PaymentError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            PaymentError::SessionNotFound(_) => "session-not-found",
            PaymentError::OrderNotFound(_) | PaymentError::NoSuchOrder(_) => "order-not-found",
            PaymentError::BillNotFound { .. } => "bill-not-found",
            PaymentError::RepairRefused { .. } => "publish-repair-refused",
            PaymentError::VersionNotFound(_) => "version-not-found",
            PaymentError::SessionState { .. } => "session-state",
            PaymentError::OrderState { .. } => "order-state",
            PaymentError::DeliveryNotFound(_) => "delivery-not-found",
            PaymentError::DeliveryState { .. } => "delivery-state",
            PaymentError::Forbidden(_) => "forbidden",
            PaymentError::Invalid { .. } => "invalid-input",
            PaymentError::RowsRefused(_) => "rows-refused",
            PaymentError::Conflict(_) => "changed-meanwhile",
            PaymentError::KeyReused => "idempotency-key-reused",
            PaymentError::RefreshPending { .. } => "review-callback-refresh-pending",
            PaymentError::Task(TaskError::Db(error)) | PaymentError::Db(error) => error.code(),
            PaymentError::Task(_) => "database-error",
        }
    }

    /// Bad input: `field` names the field, row or key.
    pub fn invalid(field: impl Into<String>, why: impl Into<String>) -> PaymentError {
        PaymentError::Invalid { field: field.into(), why: why.into() }
    }
}

impl Transient for PaymentError {
    fn database(&self) -> Option<&DbError> {
        match self {
            PaymentError::Db(error) => Some(error),
            PaymentError::Task(error) => error.database(),
            _ => None,
        }
    }
}

impl From<PaymentError> for WorkError {
    fn from(error: PaymentError) -> WorkError {
        match error {
            PaymentError::Db(error) => WorkError::Db(error),
            PaymentError::Task(error) => WorkError::Task(error),
            other => WorkError::Failed { code: other.code(), message: other.to_string() },
        }
    }
}
