//! What payment refuses, as problems.

use axum::http::StatusCode;
use counterfoil_payment::PaymentError;
use counterfoil_payment::treasury::TreasuryError;

use crate::api::problem::{FieldFault, Problem};

/// Why an operation was refused or failed.
pub(crate) fn of_payment(error: PaymentError) -> Problem {
    let status = match &error {
        PaymentError::SessionNotFound(_)
        | PaymentError::OrderNotFound(_)
        | PaymentError::NoSuchOrder(_)
        | PaymentError::BillNotFound { .. }
        | PaymentError::VersionNotFound(_)
        | PaymentError::DeliveryNotFound(_) => StatusCode::NOT_FOUND,
        PaymentError::RepairRefused { .. }
        | PaymentError::SessionState { .. }
        | PaymentError::OrderState { .. }
        | PaymentError::DeliveryState { .. }
        | PaymentError::Conflict(_)
        | PaymentError::RefreshPending { .. } => StatusCode::CONFLICT,
        PaymentError::Forbidden(_) => StatusCode::FORBIDDEN,
        PaymentError::Invalid { field, why } => {
            return Problem::of_fields(vec![FieldFault {
                field: field.clone(),
                detail: why.clone(),
            }]);
        }
        PaymentError::KeyReused | PaymentError::RowsRefused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        PaymentError::Task(_) | PaymentError::Db(_) => return failed(&error, error.code()),
    };
    Problem::new(status, error.code(), error.to_string())
}

/// Why an operation of the treasury was refused or failed.
pub(crate) fn of_treasury(error: TreasuryError) -> Problem {
    let status = match error {
        TreasuryError::Payment(error) => return of_payment(error),
        TreasuryError::BatchNotFound(_) | TreasuryError::DetailNotFound(_) => StatusCode::NOT_FOUND,
        TreasuryError::SplitRule { .. } | TreasuryError::ReportUnreadable(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => StatusCode::CONFLICT,
    };
    Problem::new(status, error.code(), error.to_string())
}

/// The cause is for our own log.
pub(super) fn failed(error: &dyn std::error::Error, code: &'static str) -> Problem {
    tracing::error!(?error, "an operation failed");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, code, "the database failed; try again later")
}
