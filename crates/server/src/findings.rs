//! What a reconciliation found, by kind: for a line, and for a table.

use serde_json::Value;

/// The counts in the order of the contract, and what each means for a person.
pub const KINDS: [(&str, &str); 14] = [
    ("scanned", "keys looked at"),
    ("equal", "the same on both sides: no call, no write"),
    ("missing", "at the centre only: fetched and inserted"),
    ("stale", "an older revision at the hall: fetched and replaced"),
    ("hashConflict", "one revision, two contents: recorded, then replaced"),
    ("tombstone", "deleted on one side only: repaired, business columns untouched"),
    ("localAhead", "a newer revision at the hall: asked again, else only reported"),
    ("extra", "at the hall only: retired with the centre's proof, else only reported"),
    ("revisionZero", "the centre has no revision: only reported"),
    ("repaired", "rows written from the centre's own snapshot"),
    ("retired", "rows retired with a matching proof of absence"),
    ("reported", "differences that stand and were only reported"),
    ("deferred", "repairs put off because the grant could not be proved"),
    ("resumed", "times the work was taken up again from its cursor"),
];

/// The kinds that are not zero, with their counts.
pub fn nonzero(counts: &Value) -> impl Iterator<Item = (&'static str, i64, &'static str)> + '_ {
    KINDS.into_iter().filter_map(|(kind, meaning)| {
        let count = counts.get(kind).and_then(Value::as_i64).filter(|count| *count != 0)?;
        Some((kind, count, meaning))
    })
}

/// `scanned 120 · equal 118 · repaired 2`.
pub fn line(counts: &Value) -> String {
    let shown: Vec<String> =
        nonzero(counts).map(|(kind, count, _)| format!("{kind} {count}")).collect();
    shown.join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_names_every_kind_that_is_not_zero_in_the_order_of_the_contract() {
        let counts = json!({ "repaired": 2, "scanned": 120, "equal": 118, "missing": 0 });
        assert_eq!(line(&counts), "scanned 120 · equal 118 · repaired 2");
        assert_eq!(line(&Value::Null), "");
    }

    #[test]
    fn every_count_of_the_contract_has_its_meaning() {
        let counts = serde_json::to_value(counterfoil_reconcile::wire::Counts::default()).unwrap();
        let mut known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        known.sort_unstable();
        let mut contract: Vec<String> = counts.as_object().unwrap().keys().cloned().collect();
        contract.sort_unstable();
        assert_eq!(known, contract);
    }
}
