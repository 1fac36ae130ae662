//! The two sides of reconciliation, on every database: what each finds, repairs, retires, refuses.

mod behaviour {
    mod centre;
    mod clauses;
    mod crash;
    mod delivery;
    mod findings;
    mod pair;
    mod ranges;
    mod receive;
    mod retire;
    mod rules;
    mod same_findings;
}
