//! The state machines of payment, each a table of transitions, once. The diagrams in
//! ARCHITECTURE.md are generated from here, and a test holds them equal.

/// One machine: a name, its states with their stored values, and its edges with what takes them.
#[derive(Debug)]
pub struct Machine {
    /// The column it describes.
    pub name: &'static str,
    /// `(stored value, name)`.
    pub states: &'static [(&'static str, &'static str)],
    /// `(from, to, by)`, stored values; an empty `from` is the start.
    pub edges: &'static [(&'static str, &'static str, &'static str)],
}

impl Machine {
    /// Whether the machine has this edge.
    pub fn allows(&self, from: &str, to: &str) -> bool {
        self.edges.iter().any(|(a, b, _)| *a == from && *b == to)
    }

    /// The machine as a Mermaid diagram.
    pub fn diagram(&self) -> String {
        let label = |value: &str| match self.states.iter().find(|(stored, _)| *stored == value) {
            Some((_, name)) => (*name).to_owned(),
            None => "[*]".to_owned(),
        };
        let mut text = String::from("stateDiagram-v2\n");
        for (from, to, by) in self.edges {
            text.push_str(&format!("    {} --> {}: {by}\n", label(from), label(to)));
        }
        text
    }
}

/// `selection_session.status`.
pub const SESSION: Machine = Machine {
    name: "selection_session.status",
    states: &[
        ("EDITING", "EDITING"),
        ("SUBMITTING", "SUBMITTING"),
        ("PUBLISHED_LOCK_SYNCING", "PUBLISHED_LOCK_SYNCING"),
        ("COMPLETED", "COMPLETED"),
        ("SUBMIT_FAILED", "SUBMIT_FAILED"),
    ],
    edges: &[
        ("", "EDITING", "open"),
        ("EDITING", "SUBMITTING", "submit"),
        ("SUBMIT_FAILED", "SUBMITTING", "submit again"),
        ("SUBMITTING", "SUBMIT_FAILED", "S03 conflict or lost publish, or order cancelled"),
        ("SUBMITTING", "PUBLISHED_LOCK_SYNCING", "S03 publish"),
        ("PUBLISHED_LOCK_SYNCING", "COMPLETED", "S04 complete"),
        ("PUBLISHED_LOCK_SYNCING", "SUBMIT_FAILED", "S04 invalid revise, or order cancelled"),
        ("EDITING", "SUBMIT_FAILED", "order cancelled"),
    ],
};

/// `selection_submit_batch.batch_status`.
pub const BATCH: Machine = Machine {
    name: "selection_submit_batch.batch_status",
    states: &[("INIT", "INIT"), ("RUNNING", "RUNNING"), ("FAILED", "FAILED"), ("DONE", "DONE")],
    edges: &[
        ("", "INIT", "submit"),
        ("INIT", "RUNNING", "lease"),
        ("FAILED", "RUNNING", "lease"),
        ("RUNNING", "RUNNING", "lease once expired"),
        ("RUNNING", "FAILED", "failure"),
        ("RUNNING", "DONE", "finish"),
    ],
};

/// `fi_resident_income_payment_bill_lock.lock_status`.
pub const LOCK: Machine = Machine {
    name: "bill_lock.lock_status",
    states: &[("RESERVED", "RESERVED"), ("ACTIVE", "ACTIVE"), ("RELEASED", "RELEASED")],
    edges: &[
        ("", "RESERVED", "S03 build"),
        ("RESERVED", "ACTIVE", "S04 activate"),
        ("ACTIVE", "ACTIVE", "S04 keeps it for the next version"),
        ("ACTIVE", "RELEASED", "S04 removed, S06 cancelled order, S08 unqualified"),
        ("RESERVED", "RELEASED", "S06"),
    ],
};

/// `fi_resident_income_payment_order.status`.
pub const ORDER: Machine = Machine {
    name: "order.status",
    states: &[
        ("10", "DRAFT"),
        ("20", "UNDER_REVIEW"),
        ("30", "REVIEW_REJECTED"),
        ("40", "WAIT_PAY"),
        ("50", "PAID"),
        ("55", "NO_NEED_PAY"),
        ("90", "CANCELLED"),
    ],
    edges: &[
        ("", "10", "submit NEW"),
        ("10", "20", "S03 publish NEW"),
        ("20", "20", "S03 publish REVISE"),
        ("30", "20", "S03 publish REVISE"),
        ("20", "30", "S07 reject"),
        ("20", "40", "S08 finalize"),
        ("20", "55", "S08 finalize, nothing to pay"),
        ("10", "90", "cancel"),
        ("20", "90", "cancel"),
        ("30", "90", "cancel"),
        ("40", "90", "cancel, TREASURY, refreshed and not pushed"),
        ("40", "50", "every payable line paid, or payment recorded"),
        ("50", "40", "a payment came back"),
    ],
};

/// `approval_instance.approval_status`.
pub const APPROVAL: Machine = Machine {
    name: "approval_instance.approval_status",
    states: &[("IN_REVIEW", "IN_REVIEW"), ("APPROVED", "APPROVED"), ("REJECTED", "REJECTED")],
    edges: &[
        ("", "IN_REVIEW", "S05 created"),
        ("IN_REVIEW", "REJECTED", "S07 reject"),
        ("IN_REVIEW", "APPROVED", "S08 finalize, or S07 where the order shows it already"),
    ],
};

/// `review_callback_progress.phase`: an approval on its way.
pub const PROGRESS: Machine = Machine {
    name: "review_callback_progress.phase",
    states: &[
        ("PREPARE", "PREPARE"),
        ("BILL_UPDATE", "BILL_UPDATE"),
        ("FINALIZE", "FINALIZE"),
        ("LOCK_RELEASE", "LOCK_RELEASE"),
        ("REFRESH_SHARD", "REFRESH_SHARD"),
        ("DONE", "DONE"),
    ],
    edges: &[
        ("", "PREPARE", "S07 approve"),
        ("PREPARE", "BILL_UPDATE", "S08's first lease"),
        ("BILL_UPDATE", "BILL_UPDATE", "a batch of lines"),
        ("BILL_UPDATE", "FINALIZE", "no line is left"),
        ("FINALIZE", "LOCK_RELEASE", "the order is effective"),
        ("LOCK_RELEASE", "LOCK_RELEASE", "a batch of locks"),
        ("LOCK_RELEASE", "REFRESH_SHARD", "no lock is left"),
        ("REFRESH_SHARD", "DONE", "S12: every shard SUCCESS"),
    ],
};

/// `review_callback_progress.main_task_status`.
pub const PROGRESS_MAIN: Machine = Machine {
    name: "review_callback_progress.main_task_status",
    states: &[("RUNNING", "RUNNING"), ("SUCCESS", "SUCCESS"), ("SUPERSEDED", "SUPERSEDED")],
    edges: &[
        ("", "RUNNING", "S07 approve"),
        ("RUNNING", "SUCCESS", "S08 finalize"),
        ("RUNNING", "SUPERSEDED", "parked, and revised or cancelled; or the order moved on"),
    ],
};

/// `external_log.status`: one chunk on its way to a partner.
pub const DELIVERY: Machine = Machine {
    name: "external_log.status",
    states: &[
        ("WAIT_PROCESS", "WAIT_PROCESS"),
        ("SUCCESS", "SUCCESS"),
        ("FAIL", "FAIL"),
        ("UNKNOWN", "UNKNOWN"),
        ("SKIPPED", "SKIPPED"),
    ],
    edges: &[
        ("", "WAIT_PROCESS", "S09 cuts a chunk"),
        ("", "SKIPPED", "S09 cuts a chunk, no address"),
        ("WAIT_PROCESS", "SUCCESS", "accepted"),
        ("WAIT_PROCESS", "FAIL", "certainly not accepted"),
        ("WAIT_PROCESS", "UNKNOWN", "sent, no verdict"),
        ("WAIT_PROCESS", "SKIPPED", "never sent, no address any more"),
        ("FAIL", "WAIT_PROCESS", "policy definite or idempotent, or a person"),
        ("UNKNOWN", "WAIT_PROCESS", "policy idempotent, or a person"),
        ("SKIPPED", "WAIT_PROCESS", "a person"),
    ],
};

/// `status_refresh_shard.task_status`.
pub const SHARD: Machine = Machine {
    name: "status_refresh_shard.task_status",
    states: &[
        ("PENDING", "PENDING"),
        ("RUNNING", "RUNNING"),
        ("FAILED", "FAILED"),
        ("SUCCESS", "SUCCESS"),
    ],
    edges: &[
        ("", "PENDING", "S08 finalize, a payment's result, or a person"),
        ("PENDING", "RUNNING", "lease"),
        ("FAILED", "RUNNING", "lease when due"),
        ("RUNNING", "RUNNING", "lease once expired"),
        ("RUNNING", "PENDING", "a sub-batch"),
        ("RUNNING", "FAILED", "failure"),
        ("RUNNING", "SUCCESS", "the last sub-batch"),
    ],
};

/// `snapshot_refresh_progress.status`.
pub const SNAPSHOT: Machine = Machine {
    name: "snapshot_refresh_progress.status",
    states: &[
        ("INIT", "INIT"),
        ("RUNNING", "RUNNING"),
        ("FAILED", "FAILED"),
        ("SUCCESS", "SUCCESS"),
    ],
    edges: &[
        ("", "INIT", "S13's first run"),
        ("INIT", "RUNNING", "lease"),
        ("FAILED", "RUNNING", "lease"),
        ("RUNNING", "RUNNING", "a batch, or lease once expired"),
        ("RUNNING", "FAILED", "failure"),
        ("RUNNING", "SUCCESS", "no payable line is left"),
    ],
};

/// `push_batch.status`.
pub const PUSH_BATCH: Machine = Machine {
    name: "push_batch.status",
    states: &[
        ("WAIT_PUSH", "WAIT_PUSH"),
        ("PUSHING", "PUSHING"),
        ("PUSH_SUCCESS", "PUSH_SUCCESS"),
        ("PUSH_PARTIAL_SUCCESS", "PUSH_PARTIAL_SUCCESS"),
        ("WAIT_DATA_FIX", "WAIT_DATA_FIX"),
        ("PUSH_FAIL", "PUSH_FAIL"),
    ],
    edges: &[
        ("", "WAIT_PUSH", "creation"),
        ("WAIT_PUSH", "PUSHING", "claim"),
        ("PUSH_FAIL", "PUSHING", "claim"),
        ("WAIT_PUSH", "WAIT_DATA_FIX", "nothing in it can be sent"),
        ("PUSH_FAIL", "WAIT_DATA_FIX", "nothing in it can be sent"),
        ("WAIT_PUSH", "PUSH_FAIL", "no account pays"),
        ("PUSHING", "PUSH_SUCCESS", "all of it accepted"),
        ("PUSHING", "PUSH_PARTIAL_SUCCESS", "some of it accepted"),
        ("PUSHING", "WAIT_DATA_FIX", "some of it needs a person"),
        ("PUSHING", "PUSH_FAIL", "certainly not accepted"),
        ("PUSHING", "PUSHING", "no verdict; asked about"),
        ("WAIT_DATA_FIX", "WAIT_PUSH", "fix"),
        ("PUSH_PARTIAL_SUCCESS", "WAIT_PUSH", "fix"),
        ("PUSH_SUCCESS", "WAIT_PUSH", "fix of a failed payment"),
        ("PUSH_SUCCESS", "PUSH_PARTIAL_SUCCESS", "an answer refuses a line later"),
        ("WAIT_PUSH", "PUSH_SUCCESS", "the last open line is paid after all"),
    ],
};

/// `push_batch_detail.push_status`.
pub const PUSH_DETAIL: Machine = Machine {
    name: "push_batch_detail.push_status",
    states: &[
        ("WAIT_PUSH", "WAIT_PUSH"),
        ("PUSHED", "PUSHED"),
        ("REJECTED", "REJECTED"),
        ("WAIT_DATA_FIX", "WAIT_DATA_FIX"),
    ],
    edges: &[
        ("", "WAIT_PUSH", "creation"),
        ("WAIT_PUSH", "PUSHED", "its push is accepted, or a result names it"),
        ("WAIT_PUSH", "REJECTED", "an answer refuses it"),
        ("PUSHED", "REJECTED", "an answer refuses it"),
        ("WAIT_PUSH", "WAIT_DATA_FIX", "payee changed, or it cannot be sent"),
        ("WAIT_DATA_FIX", "WAIT_PUSH", "fix"),
        ("REJECTED", "WAIT_PUSH", "fix"),
        ("PUSHED", "WAIT_PUSH", "fix of a failed payment"),
        ("WAIT_DATA_FIX", "PUSHED", "a result says paid after all"),
    ],
};

/// `push_batch_detail.pay_status`. NULL = nothing is on its way.
pub const PUSH_PAY: Machine = Machine {
    name: "push_batch_detail.pay_status",
    states: &[
        ("NULL", "NULL"),
        ("PAYING", "PAYING"),
        ("PAID", "PAID"),
        ("PAY_FAILED", "PAY_FAILED"),
    ],
    edges: &[
        ("", "NULL", "creation"),
        ("NULL", "PAYING", "its push is accepted"),
        ("NULL", "PAID", "result"),
        ("NULL", "PAY_FAILED", "result"),
        ("PAYING", "PAID", "result"),
        ("PAYING", "PAY_FAILED", "result"),
        ("PAID", "PAY_FAILED", "the money came back"),
        ("PAY_FAILED", "NULL", "fix"),
    ],
};

/// All machines, for the docs and the test of forbidden edges.
pub const MACHINES: [&Machine; 13] = [
    &SESSION,
    &BATCH,
    &LOCK,
    &ORDER,
    &APPROVAL,
    &PROGRESS,
    &PROGRESS_MAIN,
    &DELIVERY,
    &SHARD,
    &SNAPSHOT,
    &PUSH_BATCH,
    &PUSH_DETAIL,
    &PUSH_PAY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_joins_states_of_its_machine() {
        for machine in MACHINES {
            let known = |value: &str| machine.states.iter().any(|(stored, _)| *stored == value);
            for (from, to, by) in machine.edges {
                assert!(from.is_empty() || known(from), "{}: {from} ({by})", machine.name);
                assert!(known(to), "{}: {to} ({by})", machine.name);
            }
        }
    }

    #[test]
    fn what_is_over_stays_over() {
        let nowhere = [
            (&SESSION, "COMPLETED"),
            (&BATCH, "DONE"),
            (&LOCK, "RELEASED"),
            (&ORDER, "90"),
            (&ORDER, "55"),
            (&APPROVAL, "APPROVED"),
            (&APPROVAL, "REJECTED"),
            (&PROGRESS, "DONE"),
            (&PROGRESS_MAIN, "SUPERSEDED"),
            (&SHARD, "SUCCESS"),
            (&SNAPSHOT, "SUCCESS"),
        ];
        for (machine, end) in nowhere {
            for (to, _) in machine.states {
                assert!(!machine.allows(end, to), "{}: {end} --> {to}", machine.name);
            }
        }
    }

    #[test]
    fn a_lock_cannot_be_active_without_having_been_reserved() {
        assert!(!LOCK.allows("", "ACTIVE"));
        assert!(!SESSION.allows("EDITING", "COMPLETED"));
        assert!(!SESSION.allows("SUBMITTING", "COMPLETED"));
        assert!(!ORDER.allows("10", "40"));
    }
}
