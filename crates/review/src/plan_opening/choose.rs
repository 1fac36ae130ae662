//! Which plan answers a request: a pure decision.

use counterfoil_protocol::{DataVersion, PlanId, SubmitRound};

use crate::states::PlanStatus;

/// What a plan reviews: ordered by round, then by data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edition {
    pub(super) round: SubmitRound,
    pub(super) data: DataVersion,
}

/// An active plan of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActivePlan {
    pub(super) plan: PlanId,
    pub(super) status: PlanStatus,
    /// `None` where the row does not say.
    pub(super) edition: Option<Edition>,
    /// Nobody has decided anything on it.
    pub(super) is_untouched: bool,
}

/// The answer. Active plans that are not named in it are withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Refuse { newest: Edition },
    Start(PlanId),
    Reuse(PlanId),
    Build,
}

/// The plan of the same edition goes on; one of an older edition never decides a newer one. A plan
/// that does not say its edition is taken for this one's only while nobody has decided on it.
pub(super) fn choose(
    asked: Edition,
    newest: Option<Edition>,
    active_newest_first: &[ActivePlan],
) -> Choice {
    if let Some(newest) = newest.filter(|newest| *newest > asked) {
        return Choice::Refuse { newest };
    }
    let same = active_newest_first.iter().find(|plan| match plan.edition {
        Some(edition) => edition == asked,
        None => plan.is_untouched,
    });
    match same {
        None => Choice::Build,
        Some(plan) if plan.status == PlanStatus::NoStart => Choice::Start(plan.plan),
        Some(plan) => Choice::Reuse(plan.plan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PlanStatus::{Doing, NoStart};

    fn edition(round: i64, data: i64) -> Edition {
        Edition { round: SubmitRound(round), data: DataVersion(data) }
    }

    fn plan(id: i64, status: PlanStatus, at: Option<(i64, i64)>, is_untouched: bool) -> ActivePlan {
        let edition = at.map(|(round, data)| edition(round, data));
        ActivePlan { plan: PlanId(id), status, edition, is_untouched }
    }

    #[test]
    fn the_same_round_goes_on_an_older_one_is_replaced_and_a_newer_one_refuses() {
        let refused = |round, data| Choice::Refuse { newest: edition(round, data) };
        let asked = edition(2, 5);
        // (newest edition of any status, active plans newest first, the choice)
        let table = [
            (None, vec![], Choice::Build),
            (Some(edition(1, 1)), vec![], Choice::Build),
            (Some(edition(2, 5)), vec![], Choice::Build),
            (Some(edition(3, 6)), vec![], refused(3, 6)),
            (Some(edition(2, 6)), vec![plan(1, Doing, Some((2, 6)), true)], refused(2, 6)),
            (Some(asked), vec![plan(1, NoStart, Some((2, 5)), true)], Choice::Start(PlanId(1))),
            (Some(asked), vec![plan(1, Doing, Some((2, 5)), false)], Choice::Reuse(PlanId(1))),
            (Some(edition(1, 4)), vec![plan(1, Doing, Some((1, 4)), true)], Choice::Build),
            (Some(edition(2, 4)), vec![plan(1, Doing, Some((2, 4)), true)], Choice::Build),
            (None, vec![plan(1, NoStart, None, true)], Choice::Start(PlanId(1))),
            (None, vec![plan(1, Doing, None, true)], Choice::Reuse(PlanId(1))),
            (None, vec![plan(1, Doing, None, false)], Choice::Build),
            (
                Some(asked),
                vec![plan(9, Doing, Some((1, 4)), true), plan(8, Doing, Some((2, 5)), true)],
                Choice::Reuse(PlanId(8)),
            ),
        ];
        for (newest, active, expected) in table {
            assert_eq!(choose(asked, newest, &active), expected, "{newest:?} {active:?}");
        }
    }
}
