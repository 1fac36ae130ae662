//! The task's state machine: one table of transitions.

use std::fmt;

/// The status of a task row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// Accepted, not yet claimed (0).
    Pending,
    /// Claimed by an attempt (1).
    Running,
    /// Done, for good (2).
    Success,
    /// The last attempt failed (3).
    Failed,
    /// Given up, for good (4).
    Cancelled,
}

use TaskStatus::{Cancelled, Failed, Pending, Running, Success};

/// Every edge a task may take, with what takes it. Nothing else is allowed.
pub const TRANSITIONS: &[(TaskStatus, TaskStatus, &str)] = &[
    (Pending, Running, "claim"),
    (Failed, Running, "claim"),
    (Running, Running, "claim of a stale attempt"),
    (Running, Success, "success"),
    (Running, Failed, "failure"),
    (Running, Cancelled, "cancelled by its own work or a business rule"),
    (Running, Pending, "handed back"),
    (Pending, Cancelled, "cancelled by a person or a business rule"),
    (Failed, Cancelled, "cancelled by a person or a business rule"),
];

impl TaskStatus {
    /// All of them, in the order of their codes.
    pub const ALL: [TaskStatus; 5] = [Pending, Running, Success, Failed, Cancelled];

    /// The code in `task_status`.
    pub fn code(self) -> i64 {
        match self {
            Pending => 0,
            Running => 1,
            Success => 2,
            Failed => 3,
            Cancelled => 4,
        }
    }

    /// The status a code stands for. A check constraint keeps others out of the table.
    pub fn of_code(code: i64) -> Option<TaskStatus> {
        TaskStatus::ALL.into_iter().find(|status| status.code() == code)
    }

    /// The status a person names, in capitals or not.
    pub fn named(text: &str) -> Option<TaskStatus> {
        let upper = text.to_uppercase();
        TaskStatus::ALL.into_iter().find(|status| status.to_string() == upper)
    }

    /// Whether a task may go from `self` to `to`.
    pub fn may_become(self, to: TaskStatus) -> bool {
        TRANSITIONS.iter().any(|(from, next, _)| *from == self && *next == to)
    }

    /// Whether nothing can ever move the task again.
    pub fn is_final(self) -> bool {
        matches!(self, Success | Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Pending => "PENDING",
            Running => "RUNNING",
            Success => "SUCCESS",
            Failed => "FAILED",
            Cancelled => "CANCELLED",
        })
    }
}

/// The transitions as a Mermaid diagram, for the docs.
pub fn diagram() -> String {
    let mut text = String::from("stateDiagram-v2\n    [*] --> PENDING: accept\n");
    for (from, to, by) in TRANSITIONS {
        text.push_str(&format!("    {from} --> {to}: {by}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_and_cancelled_can_never_be_left() {
        for from in [Success, Cancelled] {
            for to in TaskStatus::ALL {
                assert!(!from.may_become(to), "{from} --> {to}");
            }
        }
    }

    #[test]
    fn only_running_work_succeeds_or_fails() {
        for from in TaskStatus::ALL {
            assert_eq!(from.may_become(Success), from == Running, "{from}");
            assert_eq!(from.may_become(Failed), from == Running, "{from}");
        }
    }

    #[test]
    fn codes_are_those_of_the_schema() {
        let codes: Vec<i64> = TaskStatus::ALL.iter().map(|status| status.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
        assert_eq!(TaskStatus::of_code(5), None);
    }
}
