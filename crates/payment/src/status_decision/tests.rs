use super::PaymentStatus::{NoNeedPay, Paid, PartlyPaid, PaymentReview, Unpaid, WaitPay};
use super::*;

const VISIBLE: &str = "农户租金异常";

fn facts() -> Facts {
    Facts {
        paid: Fen(0),
        had_result: false,
        actual_rent: Some(Fen(100)),
        contract_rent: Some(Fen(90)),
        pre_rent: Some(Fen(80)),
        holder: None,
        conclusion: None,
    }
}

fn paid(paid: i64) -> Facts {
    Facts { paid: Fen(paid), had_result: true, ..facts() }
}

fn held(state: HolderState) -> Option<Holder> {
    Some(Holder { order: OrderId(1), line: LineId(2), state })
}

fn conclusion(pre_rent: Option<i64>, reason: &str) -> Option<Conclusion> {
    let reason = Some(reason.to_owned());
    Some(Conclusion { line: LineId(5), pre_rent: pre_rent.map(Fen), reason })
}

#[test]
fn the_first_match_decides_the_payment_status() {
    use HolderState::{InReview, Other, WaitPay as AtWaitPay};
    let concluded = |pre_rent| conclusion(pre_rent, VISIBLE);
    let ledger_zero = || Facts { pre_rent: Some(Fen(0)), ..facts() };
    let unknown = || Facts { pre_rent: None, ..facts() };
    let table = [
        // Paid, in full and in part: at least the lesser rent, or the intended one if unknown.
        (paid(90), Paid),
        (paid(89), PartlyPaid),
        (Facts { actual_rent: Some(Fen(70)), ..paid(70) }, Paid),
        (Facts { actual_rent: Some(Fen(70)), ..paid(69) }, PartlyPaid),
        (Facts { actual_rent: None, ..paid(80) }, Paid),
        (Facts { contract_rent: None, ..paid(79) }, PartlyPaid),
        (Facts { actual_rent: None, pre_rent: None, ..paid(1) }, PartlyPaid),
        (Facts { contract_rent: None, conclusion: concluded(Some(0)), ..paid(1) }, PartlyPaid),
        // Paid wins over whoever holds it and whatever was concluded.
        (Facts { holder: held(AtWaitPay), ..paid(90) }, Paid),
        (Facts { holder: held(InReview), ..paid(1) }, PartlyPaid),
        (Facts { conclusion: concluded(Some(0)), ..paid(1) }, PartlyPaid),
        // A failed payment is none.
        (Facts { holder: held(AtWaitPay), ..paid(0) }, WaitPay),
        // Held.
        (Facts { holder: held(AtWaitPay), ..facts() }, WaitPay),
        (Facts { holder: held(AtWaitPay), conclusion: concluded(Some(0)), ..facts() }, WaitPay),
        (Facts { holder: held(InReview), ..facts() }, PaymentReview),
        (
            Facts { holder: held(InReview), conclusion: concluded(Some(0)), ..facts() },
            PaymentReview,
        ),
        // Concluded and free: the line's intended rent, else the ledger's.
        (Facts { conclusion: concluded(Some(0)), ..facts() }, NoNeedPay),
        (Facts { conclusion: concluded(Some(1)), ..facts() }, Unpaid),
        (Facts { conclusion: concluded(Some(1)), ..ledger_zero() }, Unpaid),
        (Facts { conclusion: concluded(None), ..facts() }, Unpaid),
        (Facts { conclusion: concluded(None), ..ledger_zero() }, NoNeedPay),
        (Facts { conclusion: concluded(None), ..unknown() }, Unpaid),
        // Otherwise.
        (facts(), Unpaid),
        (ledger_zero(), NoNeedPay),
        (unknown(), Unpaid),
        (Facts { holder: held(Other), ..facts() }, Unpaid),
        (Facts { holder: held(Other), ..ledger_zero() }, NoNeedPay),
        (Facts { holder: held(Other), conclusion: concluded(Some(0)), ..facts() }, NoNeedPay),
    ];
    for (facts, expected) in table {
        assert_eq!(decide(&facts).payment_status, expected, "{facts:?}");
    }
}

#[test]
fn a_conclusion_names_its_line_and_shows_only_what_a_partner_may_see() {
    let seen = decide(&Facts { conclusion: conclusion(Some(1), VISIBLE), ..facts() });
    assert_eq!(seen.partner_query_status, Some(30));
    assert_eq!(seen.reason, Some(Some(VISIBLE.into())));
    assert_eq!(seen.last_unqualified, Some(LineId(5)));
    let hidden = decide(&Facts { conclusion: conclusion(Some(1), "内部原因"), ..facts() });
    assert_eq!((hidden.partner_query_status, hidden.reason), (Some(30), Some(None)));
    assert_eq!(hidden.last_unqualified, Some(LineId(5)));
}

#[test]
fn what_is_held_paid_or_free_leaves_reason_and_last_conclusion_alone() {
    for state in [HolderState::WaitPay, HolderState::InReview, HolderState::Other] {
        let concluded = conclusion(Some(0), VISIBLE);
        let decision = decide(&Facts { holder: held(state), conclusion: concluded, ..facts() });
        assert_eq!((decision.reason, decision.last_unqualified), (None, None), "{state:?}");
        let checked = (state == HolderState::WaitPay).then_some(20);
        assert_eq!(decision.partner_query_status, checked, "{state:?}");
    }
    for facts in [facts(), paid(1), paid(90)] {
        let decision = decide(&facts);
        let partner = (decision.partner_query_status, decision.reason);
        assert_eq!(partner, (None, None), "{facts:?}");
    }
}

#[test]
fn references_follow_the_active_lock_whatever_is_decided() {
    let ours = Some((OrderId(1), LineId(2)));
    for state in [HolderState::WaitPay, HolderState::InReview, HolderState::Other] {
        for facts in [facts(), paid(1), paid(90)] {
            let decision = decide(&Facts { holder: held(state), ..facts });
            assert_eq!(decision.reference, ours);
        }
    }
    assert_eq!(decide(&Facts { conclusion: conclusion(None, ""), ..facts() }).reference, None);
    assert_eq!(decide(&paid(90)).reference, None);
}

#[test]
fn paid_amounts_are_those_of_the_lines_once_a_payment_had_a_result() {
    assert_eq!(decide(&paid(90)).paid, Some(Fen(90)));
    // The payment was returned: its line is PAY_FAILED now.
    assert_eq!(decide(&paid(0)).paid, Some(Fen(0)));
    // Paid before this system, perhaps.
    assert_eq!(decide(&facts()).paid, None);
}

#[test]
fn an_order_holds_as_its_status_says() {
    let table = [
        (Some(10), HolderState::Other),
        (Some(20), HolderState::InReview),
        (Some(30), HolderState::InReview),
        (Some(40), HolderState::WaitPay),
        (Some(50), HolderState::Other),
        (Some(55), HolderState::Other),
        (Some(90), HolderState::Other),
        (None, HolderState::Other),
    ];
    for (status, expected) in table {
        assert_eq!(HolderState::of(status), expected, "{status:?}");
    }
}
