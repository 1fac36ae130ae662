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
        ("ACTIVE", "RELEASED", "S04 removed, S06 cancelled order"),
        ("RESERVED", "RELEASED", "S06"),
    ],
};

/// `fi_resident_income_payment_order.status`, as far as S03 to S06 and cancelling move it.
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
        ("10", "90", "cancel"),
        ("20", "90", "cancel"),
        ("30", "90", "cancel"),
    ],
};

/// All machines, for the docs and the test of forbidden edges.
pub const MACHINES: [&Machine; 4] = [&SESSION, &BATCH, &LOCK, &ORDER];

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
        let nowhere =
            [(&SESSION, "COMPLETED"), (&BATCH, "DONE"), (&LOCK, "RELEASED"), (&ORDER, "90")];
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
