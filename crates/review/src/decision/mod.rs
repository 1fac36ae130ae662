//! A reviewer's decision: node by node in the order of the links, each person once a plan, the
//! submitter never.

mod judge;

use std::collections::BTreeSet;

use counterfoil_db::{Db, Error as DbError, Read, Tx, sql, transact};
use counterfoil_protocol::{PlanId, UserId};
use counterfoil_task::Kicker;

use crate::decision_notice;
use crate::journal::{self, Action, Entry};
use crate::plan_opening::give_turn;
use crate::states::{NodeStatus, PlanStatus};
use crate::withdrawal::close_nodes;
use crate::{MAX_REMARK, ReviewError, defect_of_text};
use judge::{NodeFacts, PlanFacts, Step, judge};

/// What a reviewer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Approve,
    /// The order goes back.
    Reject,
}

impl Verdict {
    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Approve => "APPROVE",
            Verdict::Reject => "REJECT",
        }
    }
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The plan.
    pub plan: PlanId,
    /// Who decides.
    pub user: UserId,
    /// What.
    pub verdict: Verdict,
    /// Why; may be empty.
    pub remark: String,
    /// The node the reviewer looked at; refused when another one has the turn by now.
    pub node: Option<i64>,
}

/// What a decision brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The plan.
    pub plan: PlanId,
    /// The plan's status now: PASSED and REJECTED are final.
    pub status: PlanStatus,
    /// The code of the node that was decided.
    pub node_code: String,
    /// The code of the node that has the turn now.
    pub next_node_code: Option<String>,
}

/// Approves the plan's current node: [`decide`] in a word, for a process that ends with it:
/// the scan tells the receiver.
pub async fn approve(
    db: &Db,
    plan: PlanId,
    user: UserId,
    remark: &str,
) -> Result<Decided, ReviewError> {
    let verdict = Verdict::Approve;
    decide(
        db,
        &Kicker::none(),
        &Decision { plan, user, verdict, remark: remark.to_owned(), node: None },
    )
    .await
}

/// Rejects the plan: [`decide`] in a word, for a process that ends with it:
/// the scan tells the receiver.
pub async fn reject(
    db: &Db,
    plan: PlanId,
    user: UserId,
    remark: &str,
) -> Result<Decided, ReviewError> {
    let verdict = Verdict::Reject;
    decide(
        db,
        &Kicker::none(),
        &Decision { plan, user, verdict, remark: remark.to_owned(), node: None },
    )
    .await
}

/// Writes a decision on the plan's current node, and what follows from it, in one transaction. A
/// final decision leaves the task that tells whoever asked.
///
/// # Errors
/// A refusal ([`ReviewError::is_refusal`]) has written nothing.
pub async fn decide(db: &Db, kicker: &Kicker, decision: &Decision) -> Result<Decided, ReviewError> {
    if let Some(why) = defect_of_text(&decision.remark, MAX_REMARK) {
        return Err(ReviewError::invalid("remark", why));
    }
    match transact!(decide_once(db, kicker, decision)) {
        // The database's own guard, should the plan's lock ever not have kept the second away.
        Err(ReviewError::Db(DbError::Duplicate(_))) => {
            Err(ReviewError::AlreadyDecided { user: decision.user, plan: decision.plan })
        }
        other => other,
    }
}

async fn decide_once(
    db: &Db,
    kicker: &Kicker,
    decision: &Decision,
) -> Result<Decided, ReviewError> {
    let mut tx = db.begin().await?;
    let facts = lock_facts(&mut tx, decision.plan).await?;
    let step = match judge(&facts, decision) {
        Ok(step) => step,
        Err(refusal) => {
            tx.rollback().await?;
            return Err(refusal);
        }
    };
    let wins = decide_node(&mut tx, decision, &step).await?
        && decide_as_reviewer(&mut tx, decision, step.node).await?;
    if !wins {
        tx.rollback().await?;
        return Err(ReviewError::Contended);
    }
    match (step.next, step.plan_becomes) {
        (Some(next), _) => {
            if !give_turn(&mut tx, next).await? {
                return Err(ReviewError::Contended);
            }
        }
        (None, end) => {
            finish_plan(&mut tx, decision, end).await?;
            let passed = end == PlanStatus::Passed;
            decision_notice::accept(&mut tx, kicker, decision.plan, passed).await?;
        }
    }
    record(&mut tx, decision, &step).await?;
    tx.commit("review.decision").await?;
    let code = |id: i64| {
        let found = facts.nodes.iter().find(|node| node.id == id);
        found.map(|node| node.code.clone()).unwrap_or_default()
    };
    Ok(Decided {
        plan: decision.plan,
        status: step.plan_becomes,
        node_code: code(step.node),
        next_node_code: step.next.map(code),
    })
}

/// Locks the plan, so that its decisions, its withdrawal and its opening go one after the other.
async fn lock_facts(tx: &mut Tx, plan: PlanId) -> Result<PlanFacts, ReviewError> {
    let query = sql!(
        "SELECT status, submitter FROM review_business_plan
         WHERE id = :plan AND deleted = 0 {for_update}",
        plan = plan.0,
    );
    let row = tx.row(query).await?.ok_or(ReviewError::PlanNotFound(plan))?;
    let status = PlanStatus::stored(&row.text("status")?);
    let submitter = row.maybe_int("submitter")?.map(UserId);
    let nodes = sql!(
        "SELECT n.id, n.node_code, n.status, n.decided_by, l.to_node_id
         FROM review_business_node n
         LEFT JOIN review_business_link l
           ON l.plan_id = n.plan_id AND l.from_node_id = n.id AND l.deleted = 0
         WHERE n.plan_id = :plan AND n.deleted = 0 ORDER BY n.sort, n.id",
        plan = plan.0,
    );
    let mut facts = PlanFacts { plan, status, submitter, nodes: Vec::new() };
    for row in tx.rows(nodes).await? {
        facts.nodes.push(NodeFacts {
            id: row.int("id")?,
            code: row.text("node_code")?,
            status: NodeStatus::stored(&row.text("status")?),
            decided_by: row.maybe_int("decided_by")?.map(UserId),
            next: row.maybe_int("to_node_id")?,
            reviewers: BTreeSet::new(),
        });
    }
    let reviewers = sql!(
        "SELECT u.node_id, u.user_id FROM review_business_node_user u
         JOIN review_business_node n ON n.id = u.node_id AND n.deleted = 0
         WHERE n.plan_id = :plan AND u.deleted = 0",
        plan = plan.0,
    );
    for row in tx.rows(reviewers).await? {
        let (node, user) = (row.int("node_id")?, UserId(row.int("user_id")?));
        if let Some(node) = facts.nodes.iter_mut().find(|known| known.id == node) {
            node.reviewers.insert(user);
        }
    }
    Ok(facts)
}

/// The node's guard: it has the turn, nobody has decided it, its plan is under way, and the one who
/// decides did not submit. Answers whether it won.
async fn decide_node(tx: &mut Tx, decision: &Decision, step: &Step) -> Result<bool, ReviewError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_node
         SET status = :status, decided_by = :user, decide_time = :now, remark = :remark,
             update_time = :now
         WHERE id = :node AND status = 'DOING' AND decided_by IS NULL
           AND EXISTS (SELECT 1 FROM review_business_plan p
                       WHERE p.id = :plan AND p.status = 'DOING' AND p.deleted = 0
                         AND (p.submitter IS NULL OR p.submitter <> :user))",
        status = step.node_becomes.as_str(),
        user = decision.user.0,
        now = now,
        remark = &decision.remark,
        node = step.node,
        plan = decision.plan.0,
    );
    let won = tx.execute(update).await? == 1;
    let turn_over = sql!(
        "UPDATE review_business_node_user SET has_turn = 0, update_time = :now
         WHERE node_id = :node",
        now = now,
        node = step.node,
    );
    tx.execute(turn_over).await?;
    Ok(won)
}

/// The reviewer's guard: he is assigned, and has not decided here. Answers whether it won.
async fn decide_as_reviewer(
    tx: &mut Tx,
    decision: &Decision,
    node: i64,
) -> Result<bool, ReviewError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_node_user
         SET decision = :decision, decide_time = :now, update_time = :now
         WHERE node_id = :node AND user_id = :user AND decision IS NULL AND deleted = 0",
        decision = decision.verdict.as_str(),
        now = now,
        node = node,
        user = decision.user.0,
    );
    Ok(tx.execute(update).await? == 1)
}

/// DOING → PASSED or REJECTED: the final decision stays with the plan, its key is free again.
async fn finish_plan(tx: &mut Tx, decision: &Decision, end: PlanStatus) -> Result<(), ReviewError> {
    debug_assert!(PlanStatus::Doing.may_become(end));
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_plan
         SET status = :status, active_key = NULL, finish_time = :now, finish_user_id = :user,
             finish_remark = :remark, update_time = :now
         WHERE id = :plan AND status = 'DOING'",
        status = end.as_str(),
        now = now,
        user = decision.user.0,
        remark = &decision.remark,
        plan = decision.plan.0,
    );
    if tx.execute(update).await? != 1 {
        return Err(ReviewError::Contended);
    }
    close_nodes(tx, decision.plan).await
}

async fn record(tx: &mut Tx, decision: &Decision, step: &Step) -> Result<(), ReviewError> {
    let entry = Entry {
        plan: decision.plan,
        node: Some(step.node),
        action: match decision.verdict {
            Verdict::Approve => Action::Approve,
            Verdict::Reject => Action::Reject,
        },
        from: Some(PlanStatus::Doing.as_str()),
        to: step.plan_becomes.as_str(),
        by: Some(decision.user),
        remark: Some(decision.remark.as_str()).filter(|remark| !remark.is_empty()),
    };
    Ok(journal::record(tx, &entry).await?)
}
