//! Whether a bill can be selected, and whether what is selected may be paid: pure decisions.

use std::fmt;

use counterfoil_protocol::{Fen, OrderId};

/// 农户租金异常: the rents are too far apart.
pub const RENT_ABNORMAL: &str = "农户租金异常";
/// 拟付租金校验不通过: the intended rent is not what is due.
pub const PRE_RENT_WRONG: &str = "拟付租金校验不通过";
/// Both.
pub const BOTH_WRONG: &str = "农户租金异常,拟付租金校验不通过";
/// 用户手动选到不合格: a person decided so.
pub const BY_HAND: &str = "用户手动选到不合格";

/// How far the actual rent may be from the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// Up to here any difference is fine.
    pub least: Fen,
    /// And up to that many hundredths of the contract rent.
    pub percent: u32,
}

impl Default for Tolerance {
    /// One yuan or 5 %, whichever is more.
    fn default() -> Tolerance {
        Tolerance {
            least: Fen(100),
            percent: 5,
        }
    }
}

/// The ledger's amounts of one bill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rents {
    /// What the contract says.
    pub contract: Option<Fen>,
    /// What came out.
    pub actual: Option<Fen>,
    /// What is meant to be paid now.
    pub pre_rent: Option<Fen>,
    /// What was paid for this month already.
    pub paid: Fen,
}

impl Rents {
    /// What is owed for the month in all; unknown while one of the rents is.
    fn owed(&self) -> Option<Fen> {
        Some(self.contract?.min(self.actual?))
    }

    /// Whether nothing is left to pay. Where a rent is unknown, the intended one counts.
    fn are_paid_in_full(&self) -> bool {
        let owed = self.owed().or(self.pre_rent);
        self.paid > Fen::ZERO && owed.is_some_and(|owed| self.paid >= owed)
    }
}

/// What becomes of a selected bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qualification {
    /// It is paid with this amount.
    Payable(Fen),
    /// It is not, for this reason.
    Unqualified(&'static str),
}

/// Judges a bill's amounts. What is unknown is not passed: without both rents nobody can say that
/// they are near each other, nor what is due.
pub fn qualify(rents: &Rents, tolerance: &Tolerance) -> Qualification {
    let is_abnormal = match (rents.contract, rents.actual) {
        (Some(contract), Some(actual)) => {
            actual.distance(contract) > tolerance.least.max(contract.percent(tolerance.percent))
        }
        _ => true,
    };
    let due = rents
        .owed()
        .map(|owed| Fen(owed.0.saturating_sub(rents.paid.0)));
    let right = rents
        .pre_rent
        .filter(|pre| *pre >= Fen::ZERO && Some(*pre) == due);
    match (is_abnormal, right) {
        (false, Some(amount)) => Qualification::Payable(amount),
        (true, Some(_)) => Qualification::Unqualified(RENT_ABNORMAL),
        (false, None) => Qualification::Unqualified(PRE_RENT_WRONG),
        (true, None) => Qualification::Unqualified(BOTH_WRONG),
    }
}

/// The order that holds a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderOrder {
    /// Its id.
    pub order: OrderId,
    /// Its number.
    pub order_no: Option<String>,
}

/// What decides whether a bill can be selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Availability {
    /// Whether its month is closed.
    pub is_month_closed: bool,
    /// Who holds a RESERVED or ACTIVE lock on it.
    pub holder: Option<HolderOrder>,
    /// The ledger says that it is paid.
    pub is_paid: bool,
}

/// Why a bill cannot be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// There is no ledger row: no such station, or no bill for that month.
    NoBill,
    /// The month is closed.
    MonthClosed,
    /// Another order holds it.
    Held(HolderOrder),
    /// Nothing is left to pay.
    PaidInFull,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::NoBill => f.write_str("no such station has a bill for this month"),
            Blocker::MonthClosed => f.write_str("the month is closed"),
            Blocker::Held(HolderOrder {
                order_no: Some(number),
                ..
            }) => {
                write!(f, "order {number} holds it")
            }
            Blocker::Held(HolderOrder { order, .. }) => write!(f, "order {order} holds it"),
            Blocker::PaidInFull => f.write_str("it is paid in full"),
        }
    }
}

/// Whether a bill can be selected into a session of `own` order; none while it has made no order.
///
/// # Errors
/// The first reason why not.
pub fn selectable(
    facts: &Availability,
    rents: &Rents,
    own: Option<OrderId>,
) -> Result<(), Blocker> {
    if facts.is_month_closed {
        return Err(Blocker::MonthClosed);
    }
    if let Some(holder) = facts
        .holder
        .as_ref()
        .filter(|holder| Some(holder.order) != own)
    {
        return Err(Blocker::Held(holder.clone()));
    }
    if facts.is_paid || rents.are_paid_in_full() {
        return Err(Blocker::PaidInFull);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use Qualification::{Payable, Unqualified};

    /// What is not known.
    const NONE: i64 = i64::MIN;

    /// Contract, actual and intended rent, and what was paid.
    const CASES: [(&str, [i64; 4], Qualification); 21] = [
        (
            "the rents agree",
            [10_000, 10_000, 10_000, 0],
            Payable(Fen(10_000)),
        ),
        ("5 % below", [10_000, 9_500, 9_500, 0], Payable(Fen(9_500))),
        (
            "a fen more",
            [10_000, 9_499, 9_499, 0],
            Unqualified(RENT_ABNORMAL),
        ),
        (
            "5 % above",
            [10_000, 10_500, 10_000, 0],
            Payable(Fen(10_000)),
        ),
        (
            "a fen more above",
            [10_000, 10_501, 10_000, 0],
            Unqualified(RENT_ABNORMAL),
        ),
        (
            "5 % is no whole fen",
            [10_019, 9_519, 9_519, 0],
            Payable(Fen(9_519)),
        ),
        (
            "and a fen more",
            [10_019, 9_518, 9_518, 0],
            Unqualified(RENT_ABNORMAL),
        ),
        ("a yuan of little", [200, 100, 100, 0], Payable(Fen(100))),
        (
            "over a yuan of little",
            [200, 99, 99, 0],
            Unqualified(RENT_ABNORMAL),
        ),
        (
            "the greater rent is intended",
            [10_000, 9_900, 10_000, 0],
            Unqualified(PRE_RENT_WRONG),
        ),
        (
            "none is intended",
            [10_000, 10_000, NONE, 0],
            Unqualified(PRE_RENT_WRONG),
        ),
        (
            "less than none",
            [10_000, 10_000, -10_000, 0],
            Unqualified(PRE_RENT_WRONG),
        ),
        (
            "the rest of it",
            [10_000, 9_900, 5_900, 4_000],
            Payable(Fen(5_900)),
        ),
        (
            "all of it again",
            [10_000, 9_900, 9_900, 4_000],
            Unqualified(PRE_RENT_WRONG),
        ),
        (
            "too much was paid",
            [10_000, 9_900, -100, 10_000],
            Unqualified(PRE_RENT_WRONG),
        ),
        ("nothing is due", [0, 0, 0, 0], Payable(Fen(0))),
        (
            "both are wrong",
            [10_000, 5_000, 10_000, 0],
            Unqualified(BOTH_WRONG),
        ),
        (
            "both, none intended",
            [10_000, 5_000, NONE, 0],
            Unqualified(BOTH_WRONG),
        ),
        (
            "no contract",
            [NONE, 5_000, 5_000, 0],
            Unqualified(BOTH_WRONG),
        ),
        (
            "no actual rent",
            [5_000, NONE, 5_000, 0],
            Unqualified(BOTH_WRONG),
        ),
        (
            "sums that overflow",
            [i64::MAX, i64::MAX, i64::MAX, 0],
            Payable(Fen(i64::MAX)),
        ),
    ];

    #[test]
    fn a_bill_is_judged_by_its_rents_and_by_what_is_left_to_pay() {
        let known = |fen: i64| (fen != NONE).then_some(Fen(fen));
        for (what, [contract, actual, pre_rent, paid], expected) in CASES {
            let rents = Rents {
                contract: known(contract),
                actual: known(actual),
                pre_rent: known(pre_rent),
                paid: Fen(paid),
            };
            assert_eq!(qualify(&rents, &Tolerance::default()), expected, "{what}");
        }
    }

    #[test]
    fn both_limits_of_the_tolerance_can_be_set() {
        let rents = |actual| Rents {
            contract: Some(Fen(10_000)),
            actual: Some(Fen(actual)),
            pre_rent: Some(Fen(actual)),
            paid: Fen::ZERO,
        };
        let wide = Tolerance {
            least: Fen(2_000),
            percent: 0,
        };
        assert_eq!(
            qualify(&rents(8_000), &wide),
            Qualification::Payable(Fen(8_000))
        );
        let none = Tolerance {
            least: Fen::ZERO,
            percent: 0,
        };
        assert_eq!(
            qualify(&rents(9_999), &none),
            Qualification::Unqualified(RENT_ABNORMAL)
        );
    }

    #[test]
    fn the_reasons_are_the_ones_a_partner_may_see() {
        assert_eq!(BOTH_WRONG, format!("{RENT_ABNORMAL},{PRE_RENT_WRONG}"));
    }

    fn rents(paid: i64) -> Rents {
        Rents {
            contract: Some(Fen(100)),
            actual: Some(Fen(90)),
            pre_rent: Some(Fen(90)),
            paid: Fen(paid),
        }
    }

    fn held(order_no: Option<&str>) -> HolderOrder {
        HolderOrder {
            order: OrderId(5),
            order_no: order_no.map(str::to_owned),
        }
    }

    #[test]
    fn a_bill_that_is_closed_held_or_paid_cannot_be_selected() {
        let free = Availability::default();
        let closed = Availability {
            is_month_closed: true,
            ..free.clone()
        };
        let taken = Availability {
            holder: Some(held(Some("PO5"))),
            ..free.clone()
        };
        let paid = Availability {
            is_paid: true,
            ..free.clone()
        };
        let ours = Some(OrderId(5));
        let theirs = Some(OrderId(6));
        let select = |facts, own| selectable(facts, &rents(0), own);
        assert_eq!(select(&free, None), Ok(()));
        assert_eq!(select(&closed, ours), Err(Blocker::MonthClosed));
        let by_another = Err(Blocker::Held(held(Some("PO5"))));
        assert_eq!(select(&taken, None), by_another);
        assert_eq!(select(&taken, theirs), by_another);
        assert_eq!(select(&taken, ours), Ok(()));
        assert_eq!(select(&paid, ours), Err(Blocker::PaidInFull));
    }

    #[test]
    fn a_bill_is_paid_in_full_when_something_was_paid_and_nothing_is_left() {
        let select = |rents| selectable(&Availability::default(), &rents, None);
        let unknown = |paid| Rents {
            contract: None,
            ..rents(paid)
        };
        let nothing_due = |paid| Rents {
            actual: Some(Fen(0)),
            ..rents(paid)
        };
        for left in [rents(89), unknown(89), nothing_due(0)] {
            assert_eq!(select(left), Ok(()), "{left:?}");
        }
        for full in [rents(90), rents(91), unknown(90), nothing_due(1)] {
            assert_eq!(select(full), Err(Blocker::PaidInFull), "{full:?}");
        }
    }

    #[test]
    fn a_holder_is_named_by_its_number_or_else_by_its_id() {
        assert_eq!(
            Blocker::Held(held(Some("PO5"))).to_string(),
            "order PO5 holds it"
        );
        assert_eq!(Blocker::Held(held(None)).to_string(), "order 5 holds it");
    }
}
