//! The state machines of the review centre: two tables of transitions. Every update that moves a
//! status names the status it moves from, and these tables say whether there is such an edge.

use std::fmt;

/// `review_business_plan.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanStatus {
    /// Built, not begun.
    NoStart,
    /// Some node has its turn.
    Doing,
    /// The last node approved.
    Passed,
    /// A node rejected.
    Rejected,
    /// Overtaken by a newer round, or its order was given up.
    Withdrawn,
}

/// Every edge a plan may take, with what takes it. Nothing else is allowed.
pub const PLAN_TRANSITIONS: &[(PlanStatus, PlanStatus, &str)] = &[
    (PlanStatus::NoStart, PlanStatus::Doing, "start"),
    (PlanStatus::Doing, PlanStatus::Passed, "last node approves"),
    (PlanStatus::Doing, PlanStatus::Rejected, "a node rejects"),
    (PlanStatus::NoStart, PlanStatus::Withdrawn, "newer round, or withdrawn"),
    (PlanStatus::Doing, PlanStatus::Withdrawn, "newer round, or withdrawn"),
];

impl PlanStatus {
    /// All of them.
    pub const ALL: [PlanStatus; 5] = [
        PlanStatus::NoStart,
        PlanStatus::Doing,
        PlanStatus::Passed,
        PlanStatus::Rejected,
        PlanStatus::Withdrawn,
    ];

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanStatus::NoStart => "NO_START",
            PlanStatus::Doing => "DOING",
            PlanStatus::Passed => "PASSED",
            PlanStatus::Rejected => "REJECTED",
            PlanStatus::Withdrawn => "WITHDRAWN",
        }
    }

    /// The status of a stored value. A check constraint keeps others out of the table.
    pub fn stored(text: &str) -> PlanStatus {
        let found = PlanStatus::ALL.into_iter().find(|status| status.as_str() == text);
        found.unwrap_or(PlanStatus::Withdrawn)
    }

    /// Whether a plan may go from `self` to `to`.
    pub fn may_become(self, to: PlanStatus) -> bool {
        PLAN_TRANSITIONS.iter().any(|(from, next, _)| *from == self && *next == to)
    }

    /// Whether the plan holds its order's active key.
    pub fn is_active(self) -> bool {
        matches!(self, PlanStatus::NoStart | PlanStatus::Doing)
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `review_business_node.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeStatus {
    /// Its turn has not come.
    Waiting,
    /// It has the turn.
    Doing,
    /// One of its reviewers approved.
    Passed,
    /// One of its reviewers rejected.
    Rejected,
    /// The plan ended without it.
    Closed,
}

/// Every edge a node may take, with what takes it.
pub const NODE_TRANSITIONS: &[(NodeStatus, NodeStatus, &str)] = &[
    (NodeStatus::Waiting, NodeStatus::Doing, "its turn"),
    (NodeStatus::Doing, NodeStatus::Passed, "approve"),
    (NodeStatus::Doing, NodeStatus::Rejected, "reject"),
    (NodeStatus::Waiting, NodeStatus::Closed, "plan rejected or withdrawn"),
    (NodeStatus::Doing, NodeStatus::Closed, "plan withdrawn"),
];

impl NodeStatus {
    /// All of them.
    pub const ALL: [NodeStatus; 5] = [
        NodeStatus::Waiting,
        NodeStatus::Doing,
        NodeStatus::Passed,
        NodeStatus::Rejected,
        NodeStatus::Closed,
    ];

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Waiting => "WAITING",
            NodeStatus::Doing => "DOING",
            NodeStatus::Passed => "PASSED",
            NodeStatus::Rejected => "REJECTED",
            NodeStatus::Closed => "CLOSED",
        }
    }

    /// The status of a stored value. A check constraint keeps others out of the table.
    pub fn stored(text: &str) -> NodeStatus {
        let found = NodeStatus::ALL.into_iter().find(|status| status.as_str() == text);
        found.unwrap_or(NodeStatus::Closed)
    }

    /// Whether a node may go from `self` to `to`.
    pub fn may_become(self, to: NodeStatus) -> bool {
        NODE_TRANSITIONS.iter().any(|(from, next, _)| *from == self && *next == to)
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Both machines as Mermaid diagrams, for the docs: of the plan, then of the node.
pub fn diagrams() -> [String; 2] {
    let plan = PLAN_TRANSITIONS.iter().map(|(from, to, by)| edge(from, to, by));
    let node = NODE_TRANSITIONS.iter().map(|(from, to, by)| edge(from, to, by));
    [
        format!("stateDiagram-v2\n    [*] --> NO_START: build\n{}", plan.collect::<String>()),
        format!("stateDiagram-v2\n    [*] --> WAITING: build\n{}", node.collect::<String>()),
    ]
}

fn edge(from: &dyn fmt::Display, to: &dyn fmt::Display, by: &str) -> String {
    format!("    {from} --> {to}: {by}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_has_ended_is_never_opened_again() {
        for from in [PlanStatus::Passed, PlanStatus::Rejected, PlanStatus::Withdrawn] {
            for to in PlanStatus::ALL {
                assert!(!from.may_become(to), "{from} --> {to}");
            }
            assert!(!from.is_active(), "{from}");
        }
    }

    #[test]
    fn only_a_plan_under_way_passes_or_is_rejected() {
        for from in PlanStatus::ALL {
            assert_eq!(from.may_become(PlanStatus::Passed), from == PlanStatus::Doing, "{from}");
            assert_eq!(from.may_become(PlanStatus::Rejected), from == PlanStatus::Doing, "{from}");
        }
        assert!(!PlanStatus::Doing.may_become(PlanStatus::NoStart));
    }

    #[test]
    fn a_node_is_decided_only_while_it_has_the_turn_and_only_once() {
        for from in NodeStatus::ALL {
            for to in [NodeStatus::Passed, NodeStatus::Rejected] {
                assert_eq!(from.may_become(to), from == NodeStatus::Doing, "{from} --> {to}");
            }
        }
        for from in [NodeStatus::Passed, NodeStatus::Rejected, NodeStatus::Closed] {
            for to in NodeStatus::ALL {
                assert!(!from.may_become(to), "{from} --> {to}");
            }
        }
    }

    #[test]
    fn stored_values_read_back_as_what_they_were() {
        for status in PlanStatus::ALL {
            assert_eq!(PlanStatus::stored(status.as_str()), status);
        }
        for status in NodeStatus::ALL {
            assert_eq!(NodeStatus::stored(status.as_str()), status);
        }
    }
}
