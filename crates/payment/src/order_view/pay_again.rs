//! Can this bill be paid again, and why not. Pure.

use counterfoil_db::Instant;
use counterfoil_protocol::{DataVersion, Fen, LockId, OrderId};
use serde::Serialize;

use super::shown::at;
use crate::session::qualify::{Qualification, Rents, Tolerance, qualify};
use crate::status_decision::rent_due;

/// Whether a bill can be paid again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Paying {
    /// It is free.
    Yes,
    /// Part of it was paid; the rest is free.
    OnlyTheRest,
    /// It cannot.
    No,
    /// There is nothing to pay.
    NothingDue,
    /// The records contradict each other: a person must look first.
    Unclear,
}

/// One reason, with a stable code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Because {
    /// Its code.
    pub reason: &'static str,
    /// In words.
    pub sentence: String,
}

/// The decision with all its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PayAgain {
    /// The decision.
    pub verdict: Paying,
    /// Why; what decided stands first.
    pub because: Vec<Because>,
}

/// A lock that holds the bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayAgainHolder {
    /// The lock.
    pub lock: LockId,
    /// RESERVED or ACTIVE.
    pub lock_status: String,
    /// The order.
    pub order: OrderId,
    /// Its number.
    pub order_no: Option<String>,
    /// Its data version.
    pub data_version: DataVersion,
    /// Since when.
    pub since: Instant,
}

/// What the decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayAgainFacts {
    /// The locks that hold it; more than one breaks a rule.
    pub holders: Vec<PayAgainHolder>,
    /// Whether its month is closed.
    pub month_closed: bool,
    /// Whether the difference ledger knows it.
    pub has_ledger: bool,
    /// The ledger's rents; paid is what its PAID lines sum to, or what the records say was paid,
    /// whichever is more.
    pub rents: Rents,
    /// How far the actual rent may be from the contract's.
    pub tolerance: Tolerance,
    /// Records that say PAID.
    pub records_say_paid: Vec<&'static str>,
    /// Records that refer to an order although no lock holds the bill.
    pub referring: Vec<(&'static str, OrderId)>,
    /// Why it was unqualified last.
    pub unqualified_reason: Option<String>,
    /// The order whose payment of it failed last.
    pub failed_in: Option<OrderId>,
}

fn because(reason: &'static str, sentence: impl Into<String>) -> Because {
    Because {
        reason,
        sentence: sentence.into(),
    }
}

/// Decides. Every reason that stands against paying is told, not only the first.
pub fn can_be_paid_again(facts: &PayAgainFacts) -> PayAgain {
    let against = against(facts);
    if !against.is_empty() {
        return with_remarks(facts, Paying::No, against);
    }
    let unclear = unclear(facts);
    if !unclear.is_empty() {
        return with_remarks(facts, Paying::Unclear, unclear);
    }
    if facts.rents.pre_rent == Some(Fen::ZERO) {
        let why = because("nothing-due", "the intended rent is zero");
        return with_remarks(facts, Paying::NothingDue, vec![why]);
    }
    // The same judgement that a selection would come to now.
    let (verdict, why) = match qualify(&facts.rents, &facts.tolerance) {
        Qualification::Unqualified(reason) => (Paying::No, unqualified(&facts.rents, reason)),
        Qualification::Payable(left) if facts.rents.paid > Fen::ZERO => {
            (Paying::OnlyTheRest, partly(facts, left))
        }
        Qualification::Payable(rent) => {
            let why = format!("no order holds it and nothing was paid; {rent} is intended");
            (Paying::Yes, because("free", why))
        }
    };
    with_remarks(facts, verdict, vec![why])
}

fn against(facts: &PayAgainFacts) -> Vec<Because> {
    let mut against: Vec<Because> = facts.holders.iter().map(held).collect();
    if facts.holders.len() > 1 {
        let why = "more than one lock holds it: a rule is broken";
        against.push(because("two-holders", why));
    }
    let due = due(facts);
    if facts.rents.paid > Fen::ZERO && due.is_some_and(|due| facts.rents.paid >= due) {
        let due = due.unwrap_or_default();
        let why = format!("{} was paid of {due} due", facts.rents.paid);
        against.push(because("paid-in-full", why));
    } else if !facts.records_say_paid.is_empty() {
        let why = format!("the {} says PAID", facts.records_say_paid.join(" and the "));
        against.push(because("paid-in-full", why));
    }
    if facts.month_closed {
        against.push(because("month-closed", "its month is closed"));
    }
    against
}

fn held(holder: &PayAgainHolder) -> Because {
    let order = match &holder.order_no {
        Some(number) => number.clone(),
        None => format!("order {}", holder.order),
    };
    let how = match holder.lock_status.as_str() {
        "RESERVED" => "its submission publishes it or lets go of it",
        _ => "only a revision, the order's cancellation or its payment lets go of it",
    };
    let why = format!(
        "{order} holds it, data version {}, by lock {} ({}) since {}; {how}",
        holder.data_version,
        holder.lock,
        holder.lock_status,
        at(holder.since)
    );
    because("held", why)
}

fn unclear(facts: &PayAgainFacts) -> Vec<Because> {
    let mut unclear = Vec::new();
    if !facts.has_ledger {
        let why = "the difference ledger does not know it: what is due is not on record";
        unclear.push(because("no-ledger", why));
    }
    if facts.holders.is_empty() {
        for (record, order) in &facts.referring {
            let why = format!("the {record} refers to order {order}, which holds no lock on it");
            unclear.push(because("reference-without-lock", why));
        }
    }
    unclear
}

/// What has to be paid in all.
fn due(facts: &PayAgainFacts) -> Option<Fen> {
    rent_due(
        facts.rents.actual,
        facts.rents.contract,
        facts.rents.pre_rent,
    )
}

fn partly(facts: &PayAgainFacts, left: Fen) -> Because {
    let (paid, due) = (facts.rents.paid, due(facts).unwrap_or_default());
    because(
        "partly-paid",
        format!("{paid} was paid of {due} due; {left} is left"),
    )
}

fn unqualified(rents: &Rents, reason: &str) -> Because {
    let shown = |rent: Option<Fen>| rent.map_or_else(|| "unknown".into(), |rent| rent.to_string());
    let why = format!(
        "selected now it would not be paid: {reason} (contract {}, actual {}, intended {}, paid {})",
        shown(rents.contract),
        shown(rents.actual),
        shown(rents.pre_rent),
        rents.paid
    );
    because("unqualified", why)
}

/// What does not decide, but must be known by whoever pays.
fn with_remarks(facts: &PayAgainFacts, verdict: Paying, mut why: Vec<Because>) -> PayAgain {
    if let Some(reason) = &facts.unqualified_reason {
        let remark = format!("it was unqualified before: {reason}");
        why.push(because("unqualified-before", remark));
    }
    if let Some(order) = facts.failed_in {
        let remark = format!("its last payment failed, in order {order}");
        why.push(because("payment-failed", remark));
    }
    PayAgain {
        verdict,
        because: why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> PayAgainFacts {
        PayAgainFacts {
            has_ledger: true,
            rents: Rents {
                actual: Some(Fen(10_200)),
                contract: Some(Fen(10_000)),
                pre_rent: Some(Fen(10_000)),
                paid: Fen(0),
            },
            ..PayAgainFacts::default()
        }
    }

    fn holder(lock_status: &str) -> PayAgainHolder {
        PayAgainHolder {
            lock: LockId(7),
            lock_status: lock_status.into(),
            order: OrderId(3),
            order_no: Some("PO3".into()),
            data_version: DataVersion(2),
            since: "2026-09-08T02:00:00Z".parse().unwrap(),
        }
    }

    type Case = (
        &'static str,
        fn(&mut PayAgainFacts),
        Paying,
        &'static [&'static str],
    );

    const TABLE: &[Case] = &[
        ("free", |_| {}, Paying::Yes, &["free"]),
        (
            "held by an order",
            |f| f.holders = vec![holder("ACTIVE")],
            Paying::No,
            &["held"],
        ),
        (
            "held by a submission",
            |f| f.holders = vec![holder("RESERVED")],
            Paying::No,
            &["held"],
        ),
        (
            "held twice",
            |f| f.holders = vec![holder("ACTIVE"), holder("RESERVED")],
            Paying::No,
            &["held", "held", "two-holders"],
        ),
        (
            "held, and its records refer to the holder",
            |f| {
                f.holders = vec![holder("ACTIVE")];
                f.referring = vec![("difference ledger", OrderId(3))];
            },
            Paying::No,
            &["held"],
        ),
        (
            "paid to the fen",
            |f| f.rents.paid = Fen(10_000),
            Paying::No,
            &["paid-in-full"],
        ),
        (
            "paid all but a fen",
            |f| {
                f.rents.paid = Fen(9_999);
                f.rents.pre_rent = Some(Fen(1));
            },
            Paying::OnlyTheRest,
            &["partly-paid"],
        ),
        (
            "paid by what the rents say, not by the rest that is intended",
            |f| {
                f.rents.paid = Fen(4_000);
                f.rents.pre_rent = Some(Fen(6_000));
            },
            Paying::OnlyTheRest,
            &["partly-paid"],
        ),
        (
            "paid, rents unknown",
            |f| {
                f.rents.paid = Fen(10_000);
                f.rents.actual = None;
            },
            Paying::No,
            &["paid-in-full"],
        ),
        (
            "paid by a record's word",
            |f| f.records_say_paid = vec!["small bill"],
            Paying::No,
            &["paid-in-full"],
        ),
        (
            "month closed",
            |f| f.month_closed = true,
            Paying::No,
            &["month-closed"],
        ),
        (
            "everything against it",
            |f| {
                f.holders = vec![holder("ACTIVE")];
                f.rents.paid = Fen(10_000);
                f.month_closed = true;
            },
            Paying::No,
            &["held", "paid-in-full", "month-closed"],
        ),
        (
            "nothing intended",
            |f| f.rents.pre_rent = Some(Fen(0)),
            Paying::NothingDue,
            &["nothing-due"],
        ),
        (
            "rent missing",
            |f| f.rents.pre_rent = None,
            Paying::No,
            &["unqualified"],
        ),
        (
            "rent that is not what is left",
            |f| f.rents.paid = Fen(4_000),
            Paying::No,
            &["unqualified"],
        ),
        (
            "rents too far apart",
            |f| f.rents.actual = Some(Fen(12_000)),
            Paying::No,
            &["unqualified"],
        ),
        (
            "rents a little apart where more is tolerated",
            |f| {
                f.rents.actual = Some(Fen(12_000));
                f.tolerance.percent = 20;
            },
            Paying::Yes,
            &["free"],
        ),
        (
            "unqualified before",
            |f| f.unqualified_reason = Some("农户租金异常".into()),
            Paying::Yes,
            &["free", "unqualified-before"],
        ),
        (
            "payment failed before",
            |f| f.failed_in = Some(OrderId(3)),
            Paying::Yes,
            &["free", "payment-failed"],
        ),
        (
            "a record refers to an order without a lock",
            |f| f.referring = vec![("small bill", OrderId(3))],
            Paying::Unclear,
            &["reference-without-lock"],
        ),
        (
            "no ledger",
            |f| f.has_ledger = false,
            Paying::Unclear,
            &["no-ledger"],
        ),
        (
            "no ledger, but held",
            |f| {
                f.has_ledger = false;
                f.holders = vec![holder("ACTIVE")];
            },
            Paying::No,
            &["held"],
        ),
    ];

    #[test]
    fn a_bill_is_paid_again_only_when_nothing_stands_against_it() {
        for (name, change, verdict, reasons) in TABLE {
            let mut facts = free();
            change(&mut facts);
            let decided = can_be_paid_again(&facts);
            assert_eq!(decided.verdict, *verdict, "{name}: {decided:?}");
            let told: Vec<&str> = decided.because.iter().map(|why| why.reason).collect();
            assert_eq!(told, *reasons, "{name}");
        }
    }

    #[test]
    fn the_reason_names_the_holder_and_the_money() {
        let mut facts = free();
        facts.holders = vec![holder("ACTIVE")];
        facts.rents.paid = Fen(10_000);
        let told = can_be_paid_again(&facts).because;
        assert_eq!(
            told[0].sentence,
            "PO3 holds it, data version 2, by lock 7 (ACTIVE) since 2026-09-08T02:00:00Z; only a \
             revision, the order's cancellation or its payment lets go of it"
        );
        assert_eq!(told[1].sentence, "100.00 was paid of 100.00 due");
        let mut partly = free();
        partly.rents.paid = Fen(2_550);
        partly.rents.pre_rent = Some(Fen(7_450));
        let told = can_be_paid_again(&partly).because;
        assert_eq!(
            told[0].sentence,
            "25.50 was paid of 100.00 due; 74.50 is left"
        );
    }
    #[test]
    fn a_bill_that_would_be_unqualified_says_by_which_amounts() {
        let mut facts = free();
        facts.rents.pre_rent = None;
        let told = can_be_paid_again(&facts).because;
        assert_eq!(
            told[0].sentence,
            "selected now it would not be paid: 拟付租金校验不通过 (contract 100.00, actual 102.00, \
             intended unknown, paid 0.00)"
        );
    }
}
