//! Writing a plan from the configuration, and starting it.

use std::collections::BTreeSet;

use counterfoil_db::{Query, Read, Tx, sql};
use counterfoil_protocol::{PlanId, UserId};

use super::PlanOpening;
use crate::ReviewError;
use crate::configuration::{self, ConfiguredNode};
use crate::journal::{self, Action, Entry};
use crate::staffing::understaffed;
use crate::states::{NodeStatus, PlanStatus};
use crate::withdrawal::nodes_of;

/// The stored reason of the first log row.
const STARTED: &str = "发起审核";

/// Inserts the plan with its active key. A unique violation means that another plan of the order
/// holds the key: the transaction is over.
pub(super) async fn insert_plan(tx: &mut Tx, opening: &PlanOpening) -> Result<PlanId, ReviewError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO review_business_plan
           (from_id, from_num, type, epctenantid, organisation, status, active_key, submit_round,
            data_version, submitter, create_time, update_time)
         VALUES (:from_id, :from_num, :type_name, :tenant, :organisation, 'NO_START', :active_key,
            :round, :data, :submitter, :now, :now)",
        from_id = opening.from_id.0,
        from_num = &opening.from_num,
        type_name = &opening.type_name,
        tenant = &opening.epctenantid,
        organisation = &opening.organisation,
        active_key = opening.active_key(),
        round = opening.round.0,
        data = opening.data_version.0,
        submitter = opening.submitter.0,
        now = now,
    );
    Ok(PlanId(tx.insert(insert).await?))
}

pub(super) async fn has_nodes(from: &impl Read, plan: PlanId) -> Result<bool, ReviewError> {
    let query = sql!(
        "SELECT COUNT(*) AS nodes FROM review_business_node WHERE plan_id = :plan AND deleted = 0",
        plan = plan.0,
    );
    Ok(from.count(query).await? > 0)
}

/// Gives a plan its nodes, links and reviewers. A plan under way gets its first node's turn too.
pub(super) async fn furnish(
    tx: &mut Tx,
    plan: PlanId,
    opening: &PlanOpening,
) -> Result<(), ReviewError> {
    let configured = configuration::read(&*tx, &opening.type_name).await?;
    let reviewers: Vec<BTreeSet<UserId>> =
        configured.iter().map(|node| reviewers(node, opening)).collect();
    if let Some(at) = understaffed(&reviewers) {
        return Err(nobody_left(&configured[at], &reviewers[at], opening));
    }
    let mut previous = None;
    let mut sort = 1;
    for (node, users) in configured.iter().zip(&reviewers) {
        let id = insert_node(tx, plan, node, sort, opening.submitter).await?;
        for user in users {
            insert_reviewer(tx, id, *user, opening.submitter).await?;
        }
        insert_link(tx, plan, previous, Some(id), sort).await?;
        previous = Some(id);
        sort += 1;
    }
    insert_link(tx, plan, previous, None, sort).await?;
    let status = sql!("SELECT status FROM review_business_plan WHERE id = :plan", plan = plan.0);
    let status = tx.row(status).await?.ok_or(ReviewError::PlanNotFound(plan))?.text("status")?;
    if PlanStatus::stored(&status) == PlanStatus::Doing {
        give_first_turn(tx, plan).await?;
    }
    Ok(())
}

/// Those the request names for the node and those the configuration names, never the submitter.
fn reviewers(node: &ConfiguredNode, opening: &PlanOpening) -> BTreeSet<UserId> {
    let mut users = opening.reviewers_of(&node.code);
    users.extend(node.users.iter().copied().filter(|user| *user != opening.submitter));
    users
}

fn nobody_left(
    node: &ConfiguredNode,
    reviewers: &BTreeSet<UserId>,
    opening: &PlanOpening,
) -> ReviewError {
    let submitter = opening.submitter;
    ReviewError::NobodyLeft(if reviewers.is_empty() {
        format!("node {} has no reviewer other than the submitter, user {submitter}", node.code)
    } else {
        let users: Vec<String> = reviewers.iter().map(UserId::to_string).collect();
        format!(
            "node {} has no reviewer of its own: user {} is needed for another node too, and \
             nobody decides twice",
            node.code,
            users.join(", ")
        )
    })
}

async fn insert_node(
    tx: &mut Tx,
    plan: PlanId,
    node: &ConfiguredNode,
    sort: i64,
    submitter: UserId,
) -> Result<i64, ReviewError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO review_business_node
           (plan_id, node_code, node_name, sort, role, status, submitter, create_time, update_time)
         VALUES (:plan, :code, :name, :sort, :role, 'WAITING', :submitter, :now, :now)",
        plan = plan.0,
        code = &node.code,
        name = &node.name,
        sort = sort,
        role = &node.role,
        submitter = submitter.0,
        now = now,
    );
    Ok(tx.insert(insert).await?)
}

async fn insert_reviewer(
    tx: &mut Tx,
    node: i64,
    user: UserId,
    submitter: UserId,
) -> Result<(), ReviewError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO review_business_node_user
           (node_id, user_id, submitter, create_time, update_time)
         VALUES (:node, :user, :submitter, :now, :now)",
        node = node,
        user = user.0,
        submitter = submitter.0,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}

async fn insert_link(
    tx: &mut Tx,
    plan: PlanId,
    from: Option<i64>,
    to: Option<i64>,
    sort: i64,
) -> Result<(), ReviewError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO review_business_link
           (plan_id, from_node_id, to_node_id, sort, create_time, update_time)
         VALUES (:plan, :from_node, :to_node, :sort, :now, :now)",
        plan = plan.0,
        from_node = from,
        to_node = to,
        sort = sort,
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}

/// NO_START → DOING, only if it still is NO_START; the first node gets the turn.
pub(super) async fn start(tx: &mut Tx, plan: PlanId, by: UserId) -> Result<(), ReviewError> {
    debug_assert!(PlanStatus::NoStart.may_become(PlanStatus::Doing));
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_plan
         SET status = 'DOING', start_time = :now, update_time = :now
         WHERE id = :plan AND status = 'NO_START' AND deleted = 0",
        now = now,
        plan = plan.0,
    );
    if tx.execute(update).await? != 1 {
        return Err(ReviewError::Contended);
    }
    give_first_turn(tx, plan).await?;
    let entry = Entry {
        plan,
        node: None,
        action: Action::Start,
        from: Some(PlanStatus::NoStart.as_str()),
        to: PlanStatus::Doing.as_str(),
        by: Some(by),
        remark: Some(STARTED),
    };
    Ok(journal::record(tx, &entry).await?)
}

async fn give_first_turn(tx: &mut Tx, plan: PlanId) -> Result<(), ReviewError> {
    let first = sql!(
        "SELECT to_node_id FROM review_business_link
         WHERE plan_id = :plan AND from_node_id IS NULL AND deleted = 0 ORDER BY sort, id LIMIT 1",
        plan = plan.0,
    );
    let first = tx.row(first).await?;
    let first = first.map(|row| row.maybe_int("to_node_id")).transpose()?.flatten();
    let node = first.ok_or(ReviewError::PlanNotFound(plan))?;
    if give_turn(tx, node).await? { Ok(()) } else { Err(ReviewError::Contended) }
}

/// WAITING → DOING, only if it still is WAITING; its reviewers see it in their inbox. Answers
/// whether it won.
pub(crate) async fn give_turn(tx: &mut Tx, node: i64) -> Result<bool, ReviewError> {
    debug_assert!(NodeStatus::Waiting.may_become(NodeStatus::Doing));
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_node SET status = 'DOING', update_time = :now
         WHERE id = :node AND status = 'WAITING'",
        now = now,
        node = node,
    );
    if tx.execute(update).await? != 1 {
        return Ok(false);
    }
    let reviewers = sql!(
        "UPDATE review_business_node_user SET has_turn = 1, update_time = :now
         WHERE node_id = :node AND deleted = 0",
        now = now,
        node = node,
    );
    tx.execute(reviewers).await?;
    Ok(true)
}

/// Lets the database know the submitter on every node, so that its constraints keep him out.
pub(super) async fn set_submitter(
    tx: &mut Tx,
    plan: PlanId,
    submitter: UserId,
) -> Result<(), ReviewError> {
    let now = tx.now();
    let nodes = sql!(
        "UPDATE review_business_node SET submitter = :submitter, update_time = :now
         WHERE plan_id = :plan",
        submitter = submitter.0,
        now = now,
        plan = plan.0,
    );
    tx.execute(nodes).await?;
    let reviewers = Query::new(
        "UPDATE review_business_node_user SET submitter = :submitter, update_time = :now
         WHERE node_id IN :nodes",
    );
    let reviewers = reviewers.bind("submitter", submitter.0).bind("now", now);
    tx.execute(reviewers.bind_list("nodes", nodes_of(tx, plan).await?)).await?;
    Ok(())
}
