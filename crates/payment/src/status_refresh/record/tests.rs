use counterfoil_protocol::{LineId, OrderId};

use super::*;
use crate::status_decision::{Conclusion, Facts, Holder, HolderState, decide};

fn every_fact() -> Vec<Facts> {
    let amounts = [None, Some(Fen(0)), Some(Fen(80)), Some(Fen(90))];
    let holder = |state| Some(Holder { order: OrderId(1), line: LineId(2), state });
    let holders = [
        None,
        holder(HolderState::WaitPay),
        holder(HolderState::InReview),
        holder(HolderState::Other),
    ];
    let concluded = |pre_rent, reason: Option<&str>| {
        Some(Conclusion { line: LineId(5), pre_rent, reason: reason.map(str::to_owned) })
    };
    let conclusions = [
        None,
        concluded(None, None),
        concluded(Some(Fen(0)), Some("农户租金异常")),
        concluded(Some(Fen(7)), Some("内部原因")),
    ];
    let mut all = Vec::new();
    for (paid, had_result) in [(0, false), (0, true), (79, true), (80, true), (90, true)] {
        for actual_rent in amounts {
            for contract_rent in amounts {
                for pre_rent in amounts {
                    for holder in holders {
                        for conclusion in conclusions.clone() {
                            all.push(Facts {
                                paid: Fen(paid),
                                had_result,
                                actual_rent,
                                contract_rent,
                                pre_rent,
                                holder,
                                conclusion,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

fn records(table: Table) -> Vec<Record> {
    let shown = |query_status, reason: Option<&str>, last_unqualified: Option<i64>| {
        (table != Table::Small).then(|| Shown {
            query_status,
            flag: i64::from(reason.is_some()),
            reason: reason.map(str::to_owned),
            last_unqualified: last_unqualified.filter(|_| table == Table::Partner),
        })
    };
    let row = |payment_status, paid, order, line, shown| Record {
        payment_status,
        paid,
        cumulative_paid: paid,
        order,
        line,
        shown,
    };
    vec![
        row(20, 0, None, None, shown(10, None, None)),
        row(30, 0, Some(1), Some(2), shown(20, None, None)),
        row(60, 90, Some(9), Some(9), shown(30, Some("用户手动选到不合格"), Some(4))),
    ]
}

#[test]
fn what_is_decided_depends_on_the_facts_only_and_deciding_again_changes_nothing() {
    for facts in every_fact() {
        let decision = decide(&facts);
        assert_eq!(decide(&facts.clone()), decision);
        for table in Table::ALL {
            let ends: Vec<Record> =
                records(table).iter().map(|before| before.after(table, &decision)).collect();
            for end in &ends {
                assert_eq!(end.after(table, &decision), *end, "{facts:?}");
                // Whatever stood there before: one status and the lock's references.
                assert_eq!(end.payment_status, ends[0].payment_status, "{facts:?}");
                assert_eq!((end.order, end.line), (ends[0].order, ends[0].line), "{facts:?}");
                assert_eq!(end.order.is_some(), facts.holder.is_some(), "{facts:?}");
            }
        }
    }
}

#[test]
fn a_small_bill_has_nothing_a_partner_sees_and_only_a_partner_bill_names_the_last_line() {
    let conclusion = Conclusion {
        line: LineId(5),
        pre_rent: Some(Fen(1)),
        reason: Some("农户租金异常".to_owned()),
    };
    let facts = Facts {
        paid: Fen(0),
        had_result: false,
        actual_rent: None,
        contract_rent: None,
        pre_rent: None,
        holder: None,
        conclusion: Some(conclusion),
    };
    let decision = decide(&facts);
    for table in Table::ALL {
        let after = records(table)[0].after(table, &decision);
        let shown = after.shown.map(|shown| (shown.query_status, shown.flag, shown.reason));
        let expected = (table != Table::Small).then(|| (30, 1, Some("农户租金异常".to_owned())));
        assert_eq!(shown, expected, "{table:?}");
        let last = records(table)[0].after(table, &decision).shown;
        let last = last.and_then(|shown| shown.last_unqualified);
        assert_eq!(last, (table == Table::Partner).then_some(5), "{table:?}");
    }
}
