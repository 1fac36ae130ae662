//! The append-only log of what happened to a plan.

use counterfoil_db::{Result, Tx, sql};
use counterfoil_protocol::{PlanId, UserId};

/// One row of `review_business_log`.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) plan: PlanId,
    pub(crate) node: Option<i64>,
    pub(crate) action: Action,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: &'static str,
    pub(crate) by: Option<UserId>,
    pub(crate) remark: Option<&'a str>,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Start,
    Adopt,
    Approve,
    Reject,
    Withdraw,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Action::Start => "START",
            Action::Adopt => "ADOPT",
            Action::Approve => "APPROVE",
            Action::Reject => "REJECT",
            Action::Withdraw => "WITHDRAW",
        }
    }
}

pub(crate) async fn record(tx: &mut Tx, entry: &Entry<'_>) -> Result<()> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO review_business_log
           (plan_id, node_id, action, from_status, to_status, operator_user_id, operation_time,
            operation_remark, create_time, update_time)
         VALUES (:plan, :node, :action, :from_status, :to_status, :by, :now, :remark, :now, :now)",
        plan = entry.plan.0,
        node = entry.node,
        action = entry.action.as_str(),
        from_status = entry.from,
        to_status = entry.to,
        by = entry.by.map(|user| user.0),
        remark = entry.remark,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}
