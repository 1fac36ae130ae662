//! What becomes of RUNNING rows whose process is taken for dead.

use counterfoil_db::Query;

/// Which RUNNING rows of a kind may be claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// All that nobody touched for ten minutes, by the scan and by a person.
    Stale,
    /// Only rows that left nothing behind: work that rightly stays RUNNING after it was passed on
    /// is no repair. `orphan` is a condition on `fi_async_task`. The scan finds them, strictly
    /// older than ten minutes; a person claims PENDING and FAILED only.
    Orphans {
        /// The condition, SQL over `fi_async_task`, without parameters.
        orphan: &'static str,
    },
}

/// How a round's quota is split: `(ordinary tasks, repairs)`.
///
/// A tenth is the repairs', at least one where the quota exceeds one; what either side leaves
/// unused goes to the other. So neither a backlog nor a mass of repairs starves the other.
pub(crate) fn split(quota: usize, ordinary: usize, repairs: usize) -> (usize, usize) {
    let share = if quota > 1 { (quota / 10).max(1) } else { 0 };
    let repairs = repairs.min(share.max(quota.saturating_sub(ordinary)));
    (ordinary.min(quota - repairs), repairs)
}

/// The condition in a claim's WHERE under which a RUNNING row is taken over.
pub(crate) fn claim_condition(takeover: Takeover) -> &'static str {
    match takeover {
        Takeover::Stale => "update_time <= :stale",
        Takeover::Orphans { .. } => "update_time < :stale AND :manual = 0",
    }
}

/// `text` with the takeover's condition put where `{takeover}` stands.
pub(crate) fn completed(text: &str, takeover: Takeover) -> Query {
    let condition = match takeover {
        Takeover::Stale => claim_condition(takeover).to_owned(),
        Takeover::Orphans { orphan } => format!("{} AND {orphan}", claim_condition(takeover)),
    };
    Query::built(text.replace("[takeover]", &condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_side_of_a_rounds_quota_starves_the_other() {
        let table = [
            // quota, ordinary, repairs -> taken
            ((100, 200, 200), (90, 10)),
            ((100, 50, 200), (50, 50)),
            ((100, 200, 3), (97, 3)),
            ((100, 95, 200), (90, 10)),
            ((100, 0, 200), (0, 100)),
            ((100, 200, 0), (100, 0)),
            ((5, 9, 9), (4, 1)),
            ((1, 1, 1), (1, 0)),
            ((1, 0, 1), (0, 1)),
            ((500, 500, 500), (450, 50)),
        ];
        for ((quota, ordinary, repairs), taken) in table {
            assert_eq!(split(quota, ordinary, repairs), taken, "{quota} {ordinary} {repairs}");
        }
    }
}
