//! Why the review centre refused or failed: a stable code, a public message, a private cause.

use counterfoil_db::{Error as DbError, Transient};
use counterfoil_protocol::{DataVersion, PlanId, SubmitRound, UserId};
use counterfoil_task::TaskError;
use thiserror::Error;

/// An error of the review centre.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// Input that names what is wrong with it.
    #[error("{field}: {why}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The order has a plan of a newer round already.
    #[error(
        "round {round} (data version {data_version}) is behind the order's newest plan, of round \
         {newest_round} (data version {newest_data_version})"
    )]
    Stale {
        /// The round asked for.
        round: SubmitRound,
        /// Its data version.
        data_version: DataVersion,
        /// The newest plan's round.
        newest_round: SubmitRound,
        /// The newest plan's data version.
        newest_data_version: DataVersion,
    },
    /// The round has a plan already, and another person is said to have submitted it.
    #[error("audit plan {plan} of this round was opened for another submitter than user {user}")]
    OtherSubmitter {
        /// The plan.
        plan: PlanId,
        /// Who is the submitter now.
        user: UserId,
    },
    /// The configuration of this type is missing or is no chain of nodes.
    #[error("the review of {type_name} is not configured: {why}")]
    NotConfigured {
        /// The type.
        type_name: String,
        /// What is missing.
        why: String,
    },
    /// Some node could never be decided.
    #[error("{0}")]
    NobodyLeft(String),
    /// No live plan has this id.
    #[error("there is no audit plan {0}")]
    PlanNotFound(PlanId),
    /// The plan is not under way.
    #[error("audit plan {plan} is {status}: nothing is to be decided")]
    PlanState {
        /// The plan.
        plan: PlanId,
        /// Its status.
        status: &'static str,
    },
    /// The submitter wants to review his own order.
    #[error("user {user} submitted this order and cannot review it, in whatever role")]
    OwnOrder {
        /// The submitter.
        user: UserId,
    },
    /// The user is on no node of the plan.
    #[error("user {user} is no reviewer of audit plan {plan}")]
    NotAssigned {
        /// The user.
        user: UserId,
        /// The plan.
        plan: PlanId,
    },
    /// The user's node comes later, or was decided by a colleague.
    #[error("it is {node}'s turn, and user {user} is no reviewer of that node")]
    NotYourTurn {
        /// The user.
        user: UserId,
        /// The current node's code.
        node: String,
    },
    /// The decision is about another node than the current one.
    #[error("node {asked} is not the current node; it is {current}'s turn")]
    NodeNotCurrent {
        /// The node asked for.
        asked: i64,
        /// The current node's code.
        current: String,
    },
    /// Nobody decides twice on one plan.
    #[error("user {user} has decided on audit plan {plan} already")]
    AlreadyDecided {
        /// The user.
        user: UserId,
        /// The plan.
        plan: PlanId,
    },
    /// A later node could not be decided any more if this user decided now.
    #[error("user {user} is needed for a later node, and nobody decides twice")]
    NeededLater {
        /// The user.
        user: UserId,
    },
    /// Others were faster again and again.
    #[error("others changed the same plan again and again; try again")]
    Contended,
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The task engine failed.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl ReviewError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            ReviewError::Invalid { .. } => "invalid-input",
            ReviewError::Stale { .. } => "review-round-stale",
            ReviewError::OtherSubmitter { .. } => "review-other-submitter",
            ReviewError::NotConfigured { .. } => "review-not-configured",
            ReviewError::NobodyLeft(_) => "review-nobody-left",
            ReviewError::PlanNotFound(_) => "review-plan-not-found",
            ReviewError::PlanState { .. } => "review-plan-state",
            ReviewError::OwnOrder { .. } => "review-own-order",
            ReviewError::NotAssigned { .. } => "review-not-assigned",
            ReviewError::NotYourTurn { .. } => "review-not-your-turn",
            ReviewError::NodeNotCurrent { .. } => "review-node-not-current",
            ReviewError::AlreadyDecided { .. } => "review-already-decided",
            ReviewError::NeededLater { .. } => "review-needed-later",
            ReviewError::Contended => "review-contended",
            ReviewError::Task(TaskError::Db(error)) | ReviewError::Db(error) => error.code(),
            ReviewError::Task(_) => "database-error",
        }
    }

    /// Whether the centre answered for certain that it did nothing. A database error is no such
    /// answer: the commit may have happened.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, ReviewError::Contended | ReviewError::Db(_) | ReviewError::Task(_))
    }

    pub(crate) fn invalid(field: &'static str, why: impl Into<String>) -> ReviewError {
        ReviewError::Invalid { field, why: why.into() }
    }
}

impl Transient for ReviewError {
    fn database(&self) -> Option<&DbError> {
        match self {
            ReviewError::Db(error) => Some(error),
            ReviewError::Task(error) => error.database(),
            _ => None,
        }
    }
}
