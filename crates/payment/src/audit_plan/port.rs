//! What payment asks of the review centre, wherever that runs.

use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound, UserId};

/// The type that payment orders are reviewed under.
pub const REVIEW_TYPE: &str = "RESIDENT_INCOME_PAYMENT_REVIEW";

/// The review centre. Never called while a transaction is open.
///
/// Every call may be repeated: the same request finds the same plan.
#[async_trait::async_trait]
pub trait ReviewCentre: Send + Sync {
    /// Opens the plan of this round, or finds the one that is open.
    async fn open_plan(&self, request: &PlanRequest) -> PlanAnswer;

    /// Withdraws what is under way for an order.
    async fn withdraw_plan(&self, withdrawal: &PlanWithdrawal) -> WithdrawAnswer;
}

/// What is to be reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// `fromId`.
    pub order: OrderId,
    /// `fromNum`.
    pub order_no: String,
    /// The tenant of the order's project companies; empty where they name none.
    pub epctenantid: String,
    /// The organisation of the order's first project company; empty where it names none.
    pub organisation: String,
    /// Who submitted the version.
    pub submitter: UserId,
    /// The round under review.
    pub round: SubmitRound,
    /// The data version under review.
    pub data_version: DataVersion,
    /// Operations managers A of the order's partners: any one of them decides.
    pub managers_a: Vec<UserId>,
    /// Operations managers B.
    pub managers_b: Vec<UserId>,
}

/// What the centre said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanAnswer {
    /// The plan is under way.
    Accepted {
        /// Its id.
        plan_id: PlanId,
    },
    /// Certainly nothing was opened.
    Refused {
        /// The centre's own code.
        code: String,
        /// Its message.
        message: String,
    },
    /// No verdict: the plan may have been opened or not.
    Unknown {
        /// What happened.
        message: String,
    },
}

/// Which plans of an order are to be withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWithdrawal {
    /// The order.
    pub order: OrderId,
    /// Only plans of this round and older ones; `None` = all.
    pub through_round: Option<SubmitRound>,
    /// Who gave the order up, if a person did.
    pub operator: Option<UserId>,
    /// Why.
    pub reason: String,
}

/// What the centre said to a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithdrawAnswer {
    /// None of those plans is under way any more.
    Accepted {
        /// The ones that were withdrawn now.
        plan_ids: Vec<PlanId>,
    },
    /// Certainly nothing was withdrawn.
    Refused {
        /// The centre's own code.
        code: String,
        /// Its message.
        message: String,
    },
    /// No verdict.
    Unknown {
        /// What happened.
        message: String,
    },
}
