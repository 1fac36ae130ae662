//! The review centre in this very process, behind the port that payment asks: for one process that
//! holds both, and for commands that run without a server.

use counterfoil_db::Db;
use counterfoil_payment::audit_plan::{
    PlanAnswer, PlanRequest, PlanWithdrawal, REVIEW_TYPE, ReviewCentre, WithdrawAnswer,
};
use counterfoil_review::ReviewError;
use counterfoil_review::plan_opening::{PlanOpening, open};
use counterfoil_review::withdrawal::{Withdrawal, withdraw};

/// The review centre on a database of this process.
#[derive(Debug, Clone)]
pub struct LocalReviewCentre {
    db: Db,
}

impl LocalReviewCentre {
    /// The centre whose tables are in `db`.
    pub fn new(db: Db) -> LocalReviewCentre {
        LocalReviewCentre { db }
    }
}

#[async_trait::async_trait]
impl ReviewCentre for LocalReviewCentre {
    async fn open_plan(&self, request: &PlanRequest) -> PlanAnswer {
        let opening = PlanOpening {
            from_id: request.order,
            from_num: request.order_no.clone(),
            type_name: REVIEW_TYPE.to_owned(),
            epctenantid: request.epctenantid.clone(),
            organisation: request.organisation.clone(),
            submitter: request.submitter,
            round: request.round,
            data_version: request.data_version,
            managers_a: request.managers_a.clone(),
            managers_b: request.managers_b.clone(),
        };
        match open(&self.db, &opening).await {
            Ok(opened) => PlanAnswer::Accepted {
                plan_id: opened.plan,
            },
            Err(error) if error.is_refusal() => {
                let (code, message) = refusal(&error);
                PlanAnswer::Refused { code, message }
            }
            Err(error) => PlanAnswer::Unknown {
                message: error.to_string(),
            },
        }
    }

    async fn withdraw_plan(&self, withdrawal: &PlanWithdrawal) -> WithdrawAnswer {
        let withdrawal = Withdrawal {
            from_id: withdrawal.order,
            type_name: REVIEW_TYPE.to_owned(),
            through_round: withdrawal.through_round,
            operator: withdrawal.operator,
            reason: withdrawal.reason.clone(),
        };
        match withdraw(&self.db, &withdrawal).await {
            Ok(plan_ids) => WithdrawAnswer::Accepted { plan_ids },
            Err(error) if error.is_refusal() => {
                let (code, message) = refusal(&error);
                WithdrawAnswer::Refused { code, message }
            }
            Err(error) => WithdrawAnswer::Unknown {
                message: error.to_string(),
            },
        }
    }
}

fn refusal(error: &ReviewError) -> (String, String) {
    (error.code().to_owned(), error.to_string())
}
