//! Withdrawing plans: their order was given up, or went on to a newer round.

use counterfoil_db::{Db, Query, Read, Tx, sql, transact};
use counterfoil_protocol::{OrderId, PlanId, SubmitRound, UserId};

use crate::journal::{self, Action, Entry};
use crate::states::PlanStatus;
use crate::{MAX_REMARK, ReviewError, defect_of_text};

/// Which plans to withdraw, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// What the plans review.
    pub from_id: OrderId,
    /// The review's type.
    pub type_name: String,
    /// Only plans of this round and older ones; `None` = all.
    pub through_round: Option<SubmitRound>,
    /// Who asked for it, if a person did.
    pub operator: Option<UserId>,
    /// Why.
    pub reason: String,
}

/// Plans withdrawn by one call; there is one active plan an order, unless rows were made by hand.
pub const MAX_WITHDRAWN: u32 = 100;

/// Withdraws the order's active plans, in every tenant; answers which. Plans that have ended stay
/// as they are: calling it again is no change.
pub async fn withdraw(db: &Db, withdrawal: &Withdrawal) -> Result<Vec<PlanId>, ReviewError> {
    if withdrawal.from_id.0 <= 0 {
        return Err(ReviewError::invalid("fromId", "must be positive"));
    }
    if let Some(why) = defect_of_text(&withdrawal.reason, MAX_REMARK) {
        return Err(ReviewError::invalid("reason", why));
    }
    transact!(withdraw_once(db, withdrawal))
}

async fn withdraw_once(db: &Db, withdrawal: &Withdrawal) -> Result<Vec<PlanId>, ReviewError> {
    let mut tx = db.begin().await?;
    let query = sql!(
        "SELECT id, status FROM review_business_plan
         WHERE from_id = :from_id AND type = :type_name AND status IN ('NO_START', 'DOING')
           AND COALESCE(submit_round, 0) <= :through_round AND deleted = 0
         ORDER BY id LIMIT :limit {for_update}",
        from_id = withdrawal.from_id.0,
        type_name = &withdrawal.type_name,
        through_round = withdrawal.through_round.map_or(i64::from(i32::MAX), |round| round.0),
        limit = MAX_WITHDRAWN,
    );
    let mut withdrawn = Vec::new();
    for row in tx.rows(query).await? {
        let plan = PlanId(row.int("id")?);
        let status = PlanStatus::stored(&row.text("status")?);
        withdraw_locked(&mut tx, plan, status, withdrawal.operator, &withdrawal.reason).await?;
        withdrawn.push(plan);
    }
    tx.commit("review.withdrawal").await?;
    Ok(withdrawn)
}

/// Active → WITHDRAWN of a plan whose row is locked by the caller; its key is free again.
pub(crate) async fn withdraw_locked(
    tx: &mut Tx,
    plan: PlanId,
    status: PlanStatus,
    operator: Option<UserId>,
    reason: &str,
) -> Result<(), ReviewError> {
    debug_assert!(status.may_become(PlanStatus::Withdrawn));
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_plan
         SET status = 'WITHDRAWN', active_key = NULL, finish_time = :now,
             finish_user_id = :operator, finish_remark = :reason, update_time = :now
         WHERE id = :plan AND status IN ('NO_START', 'DOING')",
        now = now,
        operator = operator.map(|user| user.0),
        reason = reason,
        plan = plan.0,
    );
    if tx.execute(update).await? != 1 {
        return Err(ReviewError::Contended);
    }
    close_nodes(tx, plan).await?;
    let entry = Entry {
        plan,
        node: None,
        action: Action::Withdraw,
        from: Some(status.as_str()),
        to: PlanStatus::Withdrawn.as_str(),
        by: operator,
        remark: Some(reason),
    };
    Ok(journal::record(tx, &entry).await?)
}

/// The nodes that will not be decided any more leave their reviewers' inboxes.
pub(crate) async fn close_nodes(tx: &mut Tx, plan: PlanId) -> Result<(), ReviewError> {
    let now = tx.now();
    // By id: MariaDB would read the whole table for an IN (SELECT …) in an update.
    let turns = Query::new(
        "UPDATE review_business_node_user SET has_turn = 0, update_time = :now
         WHERE node_id IN :nodes AND has_turn = 1",
    );
    let turns = turns.bind("now", now).bind_list("nodes", nodes_of(tx, plan).await?);
    tx.execute(turns).await?;
    let nodes = sql!(
        "UPDATE review_business_node SET status = 'CLOSED', update_time = :now
         WHERE plan_id = :plan AND status IN ('WAITING', 'DOING')",
        now = now,
        plan = plan.0,
    );
    tx.execute(nodes).await?;
    Ok(())
}

/// The ids of the plan's nodes; a chain, so never many.
pub(crate) async fn nodes_of(from: &impl Read, plan: PlanId) -> Result<Vec<i64>, ReviewError> {
    let query = sql!(
        "SELECT id FROM review_business_node WHERE plan_id = :plan AND deleted = 0 ORDER BY id",
        plan = plan.0,
    );
    let rows = from.rows(query).await?;
    rows.iter().map(|row| Ok(row.int("id")?)).collect()
}
