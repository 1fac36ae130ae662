//! Why an audit plan could not be opened.

use counterfoil_protocol::OrderId;
use counterfoil_task::WorkError;
use thiserror::Error;

/// A counted failure of S05. The task tries again until its limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuditPlanError {
    /// The version cannot be reviewed as things stand.
    #[error("the version cannot be reviewed yet: {0}")]
    NotReady(String),
    /// No partner of the lines names such a manager.
    #[error(
        "no partner of order {order}'s lines names an operations manager {which}; set it with \
         `counterfoil import partners`"
    )]
    NoReviewer {
        /// The order.
        order: OrderId,
        /// `A` or `B`.
        which: char,
    },
    /// The project companies of the lines belong to different tenants.
    #[error("the project companies of order {order}'s lines belong to tenants {tenants}")]
    TenantAmbiguous {
        /// The order.
        order: OrderId,
        /// The tenants.
        tenants: String,
    },
    /// Nobody is known to have submitted the version, so anybody might review his own order.
    #[error("neither the session nor order {order} says who submitted")]
    SubmitterUnknown {
        /// The order.
        order: OrderId,
    },
    /// The review centre refused.
    #[error("the review centre refused ({code}): {message}")]
    Refused {
        /// The centre's code.
        code: String,
        /// Its message.
        message: String,
    },
    /// The review centre gave no verdict: the plan may have been opened or not.
    #[error("the review centre gave no verdict: {message}")]
    Unknown {
        /// What happened.
        message: String,
    },
}

impl AuditPlanError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            AuditPlanError::NotReady(_) => "audit-plan-not-ready",
            AuditPlanError::NoReviewer { .. } => "audit-plan-no-reviewer",
            AuditPlanError::TenantAmbiguous { .. } => "audit-plan-tenant-ambiguous",
            AuditPlanError::SubmitterUnknown { .. } => "audit-plan-submitter-unknown",
            AuditPlanError::Refused { .. } => "audit-plan-refused",
            AuditPlanError::Unknown { .. } => "audit-plan-unknown",
        }
    }
}

impl From<AuditPlanError> for WorkError {
    fn from(error: AuditPlanError) -> WorkError {
        WorkError::Failed { code: error.code(), message: error.to_string() }
    }
}
