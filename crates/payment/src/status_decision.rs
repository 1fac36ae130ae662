//! What the business tables say of a bill, decided from facts alone: S12's decision.
//!
//! Source: payment-flow.md "S12 status refresh". Used where a cancelled order lets go of its bills,
//! and by the status refresh. Deciding twice changes nothing.

use counterfoil_protocol::{Fen, LineId};

/// `payment_status` of the three business tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentStatus {
    /// 10.
    NoNeedPay,
    /// 20.
    Unpaid,
    /// 30.
    PaymentReview,
    /// 40.
    WaitPay,
    /// 50.
    PartlyPaid,
    /// 60.
    Paid,
}

impl PaymentStatus {
    /// The stored code.
    pub fn code(self) -> i64 {
        match self {
            PaymentStatus::NoNeedPay => 10,
            PaymentStatus::Unpaid => 20,
            PaymentStatus::PaymentReview => 30,
            PaymentStatus::WaitPay => 40,
            PaymentStatus::PartlyPaid => 50,
            PaymentStatus::Paid => 60,
        }
    }
}

/// The order that holds a bill by an ACTIVE lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Nobody holds it.
    Nobody,
    /// An order at WAIT_PAY.
    WaitPay,
    /// An order at UNDER_REVIEW or REVIEW_REJECTED.
    InReview,
    /// An order in any other state.
    Other,
}

/// The latest UNQUALIFIED_EFFECTIVE line of a bill whose progress has been finalized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The line.
    pub line: LineId,
    /// Its `pre_rent`.
    pub pre_rent: Option<Fen>,
    /// Its reason.
    pub reason: Option<String>,
}

/// The facts of one bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Sum of `pay_amount` of its PAID lines.
    pub paid: Fen,
    /// The ledger's actual rent.
    pub actual_rent: Option<Fen>,
    /// The ledger's contract rent.
    pub contract_rent: Option<Fen>,
    /// The ledger's `pre_rent`.
    pub pre_rent: Option<Fen>,
    /// Who holds it.
    pub holder: Holder,
    /// What was concluded last.
    pub conclusion: Option<Conclusion>,
}

/// The four reasons a partner may see.
pub const PARTNER_VISIBLE_REASONS: [&str; 4] =
    ["农户租金异常", "拟付租金校验不通过", "农户租金异常,拟付租金校验不通过", "用户手动选到不合格"];

/// What the tables shall say. `None` leaves a column as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decision {
    /// `payment_status`.
    pub payment_status: PaymentStatus,
    /// `partner_query_status`.
    pub partner_query_status: Option<i64>,
    /// Flag and reason a partner may see; the inner `None` clears them.
    pub reason: Option<Option<String>>,
    /// `last_unqualified_order_bill_id`.
    pub last_unqualified: Option<LineId>,
}

/// Decides; the first match wins.
pub fn decide(facts: &Facts) -> Decision {
    let plain = |payment_status| Decision {
        payment_status,
        partner_query_status: None,
        reason: None,
        last_unqualified: None,
    };
    if facts.paid > Fen::ZERO {
        let in_full = due(facts).is_some_and(|due| facts.paid >= due);
        return plain(if in_full { PaymentStatus::Paid } else { PaymentStatus::PartlyPaid });
    }
    match (facts.holder, &facts.conclusion) {
        (Holder::WaitPay, _) => {
            Decision { partner_query_status: Some(20), ..plain(PaymentStatus::WaitPay) }
        }
        (Holder::InReview, _) => plain(PaymentStatus::PaymentReview),
        (Holder::Nobody, Some(conclusion)) => {
            let visible = conclusion
                .reason
                .clone()
                .filter(|reason| PARTNER_VISIBLE_REASONS.contains(&reason.as_str()));
            Decision {
                payment_status: free(conclusion.pre_rent),
                partner_query_status: Some(30),
                reason: Some(visible),
                last_unqualified: Some(conclusion.line),
            }
        }
        (Holder::Nobody | Holder::Other, _) => plain(free(facts.pre_rent)),
    }
}

/// What paying in full means: the lesser rent, and where a rent is unknown the intended one.
fn due(facts: &Facts) -> Option<Fen> {
    rent_due(facts.actual_rent, facts.contract_rent, facts.pre_rent)
}

/// The lesser of actual and contract rent; where either is unknown, the intended one.
pub(crate) fn rent_due(
    actual: Option<Fen>,
    contract: Option<Fen>,
    intended: Option<Fen>,
) -> Option<Fen> {
    match (actual, contract) {
        (Some(actual), Some(contract)) => Some(actual.min(contract)),
        _ => intended,
    }
}

fn free(pre_rent: Option<Fen>) -> PaymentStatus {
    if pre_rent == Some(Fen::ZERO) { PaymentStatus::NoNeedPay } else { PaymentStatus::Unpaid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            paid: Fen(0),
            actual_rent: Some(Fen(100)),
            contract_rent: Some(Fen(90)),
            pre_rent: Some(Fen(80)),
            holder: Holder::Nobody,
            conclusion: None,
        }
    }

    fn conclusion(pre_rent: Option<i64>, reason: &str) -> Option<Conclusion> {
        let reason = Some(reason.to_owned());
        Some(Conclusion { line: LineId(5), pre_rent: pre_rent.map(Fen), reason })
    }

    #[test]
    fn the_first_match_decides_the_payment_status() {
        use PaymentStatus::{NoNeedPay, Paid, PartlyPaid, PaymentReview, Unpaid, WaitPay};
        let visible = "农户租金异常";
        let table = [
            (Facts { paid: Fen(90), ..facts() }, Paid),
            (Facts { paid: Fen(89), ..facts() }, PartlyPaid),
            (Facts { paid: Fen(80), actual_rent: None, ..facts() }, Paid),
            (Facts { paid: Fen(79), contract_rent: None, ..facts() }, PartlyPaid),
            (Facts { paid: Fen(1), actual_rent: None, pre_rent: None, ..facts() }, PartlyPaid),
            (Facts { paid: Fen(90), holder: Holder::WaitPay, ..facts() }, Paid),
            (Facts { holder: Holder::WaitPay, ..facts() }, WaitPay),
            (Facts { holder: Holder::InReview, ..facts() }, PaymentReview),
            (
                Facts {
                    holder: Holder::InReview,
                    conclusion: conclusion(Some(0), visible),
                    ..facts()
                },
                PaymentReview,
            ),
            (Facts { conclusion: conclusion(Some(0), visible), ..facts() }, NoNeedPay),
            (Facts { conclusion: conclusion(Some(1), visible), ..facts() }, Unpaid),
            (Facts { conclusion: conclusion(None, visible), ..facts() }, Unpaid),
            (
                Facts {
                    pre_rent: Some(Fen(0)),
                    conclusion: conclusion(Some(1), visible),
                    ..facts()
                },
                Unpaid,
            ),
            (Facts { holder: Holder::Other, ..facts() }, Unpaid),
            (facts(), Unpaid),
            (Facts { pre_rent: Some(Fen(0)), ..facts() }, NoNeedPay),
            (Facts { pre_rent: None, ..facts() }, Unpaid),
        ];
        for (facts, expected) in table {
            assert_eq!(decide(&facts).payment_status, expected, "{facts:?}");
        }
    }

    #[test]
    fn a_conclusion_names_its_line_and_shows_only_what_a_partner_may_see() {
        let seen =
            decide(&Facts { conclusion: conclusion(Some(1), "农户租金异常"), ..facts() });
        assert_eq!(seen.partner_query_status, Some(30));
        assert_eq!(seen.reason, Some(Some("农户租金异常".into())));
        assert_eq!(seen.last_unqualified, Some(LineId(5)));
        let hidden = decide(&Facts { conclusion: conclusion(Some(1), "内部原因"), ..facts() });
        assert_eq!(hidden.reason, Some(None));
    }

    #[test]
    fn what_was_not_concluded_leaves_the_partner_columns_alone() {
        for holder in [Holder::Nobody, Holder::InReview, Holder::Other] {
            let decision = decide(&Facts { holder, ..facts() });
            assert_eq!((decision.partner_query_status, decision.reason), (None, None));
        }
    }
}
