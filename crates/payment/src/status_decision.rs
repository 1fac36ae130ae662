//! What the business tables say of a bill, decided from facts alone: S12's decision.
//!
//! Source: payment-flow.md "S12 status refresh". Used where a cancelled order lets go of its bills,
//! and by the status refresh. Deciding twice changes nothing.

use counterfoil_protocol::{Fen, LineId, OrderId};

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

/// How far the order is that holds a bill by an ACTIVE lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HolderState {
    /// At WAIT_PAY.
    WaitPay,
    /// At UNDER_REVIEW or REVIEW_REJECTED.
    InReview,
    /// In any other state, or gone.
    Other,
}

impl HolderState {
    /// Of an order's stored `status`; of an order that is gone, none.
    pub fn of(status: Option<i64>) -> HolderState {
        match status {
            Some(40) => HolderState::WaitPay,
            Some(20 | 30) => HolderState::InReview,
            _ => HolderState::Other,
        }
    }
}

/// An ACTIVE lock: what the references follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The order that holds the bill.
    pub order: OrderId,
    /// The line that the lock names.
    pub line: LineId,
    /// How far the order is.
    pub state: HolderState,
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
    /// Whether a payment of it had a result ever: a line is PAID or PAY_FAILED.
    pub had_result: bool,
    /// The ledger's actual rent.
    pub actual_rent: Option<Fen>,
    /// The ledger's contract rent.
    pub contract_rent: Option<Fen>,
    /// The ledger's `pre_rent`.
    pub pre_rent: Option<Fen>,
    /// Its ACTIVE lock.
    pub holder: Option<Holder>,
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
    /// The two references: of the ACTIVE lock, or none.
    pub reference: Option<(OrderId, LineId)>,
    /// Both paid amounts. Amounts of a bill that this system never paid are left alone.
    pub paid: Option<Fen>,
}

/// Decides; the first match wins.
pub fn decide(facts: &Facts) -> Decision {
    let plain = |payment_status| Decision {
        payment_status,
        partner_query_status: None,
        reason: None,
        last_unqualified: None,
        reference: facts.holder.map(|holder| (holder.order, holder.line)),
        paid: facts.had_result.then_some(facts.paid),
    };
    if facts.paid > Fen::ZERO {
        let in_full = due(facts).is_some_and(|due| facts.paid >= due);
        return plain(if in_full { PaymentStatus::Paid } else { PaymentStatus::PartlyPaid });
    }
    match (facts.holder.map(|holder| holder.state), &facts.conclusion) {
        (Some(HolderState::WaitPay), _) => {
            Decision { partner_query_status: Some(20), ..plain(PaymentStatus::WaitPay) }
        }
        (Some(HolderState::InReview), _) => plain(PaymentStatus::PaymentReview),
        (None, Some(conclusion)) => Decision {
            partner_query_status: Some(30),
            reason: Some(visible(conclusion)),
            last_unqualified: Some(conclusion.line),
            ..plain(free(intended(facts)))
        },
        (None | Some(HolderState::Other), _) => plain(free(intended(facts))),
    }
}

/// The reason, if a partner may see it.
fn visible(conclusion: &Conclusion) -> Option<String> {
    let reason = conclusion.reason.clone();
    reason.filter(|reason| PARTNER_VISIBLE_REASONS.contains(&reason.as_str()))
}

/// The concluding line's `pre_rent`, else the ledger's.
fn intended(facts: &Facts) -> Option<Fen> {
    let concluded = facts.conclusion.as_ref().and_then(|conclusion| conclusion.pre_rent);
    concluded.or(facts.pre_rent)
}

/// What paying in full means: the lesser rent, and where a rent is unknown the ledger's intended
/// one. Not a concluding line's: an old conclusion of 0 would make any payment a payment in full.
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
mod tests;
