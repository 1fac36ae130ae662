//! Whether a decision is allowed, and what follows from it: a pure function of the plan.

use std::collections::BTreeSet;

use counterfoil_protocol::{PlanId, UserId};

use super::{Decision, Verdict};
use crate::ReviewError;
use crate::staffing::understaffed;
use crate::states::{NodeStatus, PlanStatus};

#[derive(Debug, Clone)]
pub(super) struct PlanFacts {
    pub(super) plan: PlanId,
    pub(super) status: PlanStatus,
    /// `None` on a row made by hand.
    pub(super) submitter: Option<UserId>,
    pub(super) nodes: Vec<NodeFacts>,
}

#[derive(Debug, Clone)]
pub(super) struct NodeFacts {
    pub(super) id: i64,
    pub(super) code: String,
    pub(super) status: NodeStatus,
    pub(super) decided_by: Option<UserId>,
    /// Where its link leads; `None` is the end.
    pub(super) next: Option<i64>,
    pub(super) reviewers: BTreeSet<UserId>,
}

/// What is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) node: i64,
    pub(super) node_becomes: NodeStatus,
    pub(super) next: Option<i64>,
    pub(super) plan_becomes: PlanStatus,
}

/// The submitter comes first: he gets the same answer at every time.
pub(super) fn judge(facts: &PlanFacts, decision: &Decision) -> Result<Step, ReviewError> {
    let user = decision.user;
    if facts.submitter == Some(user) {
        return Err(ReviewError::OwnOrder { user });
    }
    if facts.nodes.iter().any(|node| node.decided_by == Some(user)) {
        return Err(ReviewError::AlreadyDecided { user, plan: facts.plan });
    }
    let current = facts.nodes.iter().find(|node| node.status == NodeStatus::Doing);
    let Some(current) = current.filter(|_| facts.status == PlanStatus::Doing) else {
        return Err(ReviewError::PlanState { plan: facts.plan, status: facts.status.as_str() });
    };
    if let Some(asked) = decision.node.filter(|asked| *asked != current.id) {
        return Err(ReviewError::NodeNotCurrent { asked, current: current.code.clone() });
    }
    if !current.reviewers.contains(&user) {
        let is_elsewhere = facts.nodes.iter().any(|node| node.reviewers.contains(&user));
        return Err(if is_elsewhere {
            ReviewError::NotYourTurn { user, node: current.code.clone() }
        } else {
            ReviewError::NotAssigned { user, plan: facts.plan }
        });
    }
    if decision.verdict == Verdict::Reject {
        return Ok(Step {
            node: current.id,
            node_becomes: NodeStatus::Rejected,
            next: None,
            plan_becomes: PlanStatus::Rejected,
        });
    }
    if is_needed_later(facts, current, user) {
        return Err(ReviewError::NeededLater { user });
    }
    Ok(Step {
        node: current.id,
        node_becomes: NodeStatus::Passed,
        next: current.next,
        plan_becomes: if current.next.is_some() { PlanStatus::Doing } else { PlanStatus::Passed },
    })
}

/// Whether the nodes to come can be staffed with this user and cannot without.
fn is_needed_later(facts: &PlanFacts, current: &NodeFacts, user: UserId) -> bool {
    let mut with = Vec::new();
    let mut next = current.next;
    while let Some(node) = next.and_then(|id| facts.nodes.iter().find(|node| node.id == id)) {
        if with.len() == facts.nodes.len() {
            break;
        }
        let is_free = |reviewer: &UserId| {
            let has_decided = facts.nodes.iter().any(|node| node.decided_by == Some(*reviewer));
            !has_decided && facts.submitter != Some(*reviewer)
        };
        with.push(node.reviewers.iter().copied().filter(is_free).collect::<BTreeSet<_>>());
        next = node.next;
    }
    let mut without = with.clone();
    without.iter_mut().for_each(|reviewers| {
        reviewers.remove(&user);
    });
    understaffed(&with).is_none() && understaffed(&without).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use NodeStatus::{Doing, Passed, Waiting};

    const SUBMITTER: i64 = 7;

    fn node(
        id: i64,
        status: NodeStatus,
        decided_by: Option<i64>,
        next: Option<i64>,
        users: &[i64],
    ) -> NodeFacts {
        NodeFacts {
            id,
            code: format!("N{id}"),
            status,
            decided_by: decided_by.map(UserId),
            next,
            reviewers: users.iter().copied().map(UserId).collect(),
        }
    }

    fn plan(status: PlanStatus, nodes: [NodeFacts; 2]) -> PlanFacts {
        let submitter = Some(UserId(SUBMITTER));
        PlanFacts { plan: PlanId(1), status, submitter, nodes: nodes.into() }
    }

    fn first_turn() -> PlanFacts {
        let nodes = [
            node(1, Doing, None, Some(2), &[10, 11, SUBMITTER]),
            node(2, Waiting, None, None, &[20]),
        ];
        plan(PlanStatus::Doing, nodes)
    }

    fn second_turn() -> PlanFacts {
        let nodes =
            [node(1, Passed, Some(10), Some(2), &[10, 11]), node(2, Doing, None, None, &[10, 20])];
        plan(PlanStatus::Doing, nodes)
    }

    fn over() -> PlanFacts {
        let nodes = [
            node(1, Passed, Some(10), Some(2), &[10, 11]),
            node(2, Passed, Some(20), None, &[20, 21]),
        ];
        plan(PlanStatus::Passed, nodes)
    }

    fn needed() -> PlanFacts {
        let nodes = [node(1, Doing, None, Some(2), &[10, 11]), node(2, Waiting, None, None, &[10])];
        plan(PlanStatus::Doing, nodes)
    }

    #[test]
    fn only_an_assigned_reviewer_of_the_current_node_decides_and_only_once() {
        use Verdict::{Approve, Reject};
        type Case =
            (fn() -> PlanFacts, i64, Verdict, Option<i64>, Result<PlanStatus, &'static str>);
        let table: &[Case] = &[
            (first_turn, 10, Approve, None, Ok(PlanStatus::Doing)),
            (first_turn, 11, Approve, Some(1), Ok(PlanStatus::Doing)),
            (first_turn, 10, Reject, None, Ok(PlanStatus::Rejected)),
            (first_turn, SUBMITTER, Approve, None, Err("own-order")),
            (first_turn, SUBMITTER, Reject, None, Err("own-order")),
            (first_turn, 20, Approve, None, Err("not-your-turn")),
            (first_turn, 99, Approve, None, Err("not-assigned")),
            (first_turn, 10, Approve, Some(2), Err("node-not-current")),
            (second_turn, 20, Approve, None, Ok(PlanStatus::Passed)),
            (second_turn, 20, Reject, None, Ok(PlanStatus::Rejected)),
            (second_turn, 10, Approve, None, Err("already-decided")),
            (second_turn, 11, Approve, None, Err("not-your-turn")),
            (second_turn, 20, Approve, Some(1), Err("node-not-current")),
            (over, 21, Reject, None, Err("plan-state")),
            (over, 20, Reject, None, Err("already-decided")),
            (over, SUBMITTER, Reject, None, Err("own-order")),
            (needed, 10, Approve, None, Err("needed-later")),
            (needed, 10, Reject, None, Ok(PlanStatus::Rejected)),
            (needed, 11, Approve, None, Ok(PlanStatus::Doing)),
        ];
        for (facts, user, verdict, node, expected) in table {
            let facts = facts();
            let decision = Decision {
                plan: facts.plan,
                user: UserId(*user),
                verdict: *verdict,
                remark: String::new(),
                node: *node,
            };
            let got = judge(&facts, &decision);
            let got = got
                .as_ref()
                .map(|step| step.plan_becomes)
                .map_err(|error| error.code().trim_start_matches("review-"));
            assert_eq!(got, *expected, "{decision:?} on {facts:?}");
        }
    }

    #[test]
    fn a_plan_not_begun_or_withdrawn_takes_no_decision() {
        for status in [PlanStatus::NoStart, PlanStatus::Withdrawn, PlanStatus::Rejected] {
            let mut facts = first_turn();
            facts.status = status;
            let decision = Decision {
                plan: facts.plan,
                user: UserId(10),
                verdict: Verdict::Approve,
                remark: String::new(),
                node: None,
            };
            let refusal = judge(&facts, &decision).map_err(|error| error.code());
            assert_eq!(refusal, Err("review-plan-state"), "{status}");
        }
    }
}
