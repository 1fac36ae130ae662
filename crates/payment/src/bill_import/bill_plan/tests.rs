//! The decision over one bill row, case by case.

use super::super::bill_row::Payee;
use super::*;

fn row() -> BillRow {
    BillRow {
        line: 2,
        station: "S1".into(),
        month: "202609".parse().unwrap(),
        contract_rent: Fen(1200),
        actual_rent: Fen(1180),
        pre_rent: Some(Fen(1180)),
        company: 1,
        partner: 7,
        payee: Some(Payee {
            holder: "张三".into(),
            account_no: "6222".into(),
            bank: "中国银行".into(),
        }),
        small_amount: Some(Fen(1180)),
        partner_amount: Some(Fen(20)),
    }
}

fn stored() -> BillStored {
    BillStored {
        ledgers: vec![StoredLedger {
            id: 10,
            contract_rent: Some(Fen(1200)),
            actual_rent: Some(Fen(1180)),
            pre_rent: Some(Fen(1180)),
            company: Some(1),
            partner: Some(7),
        }],
        smalls: vec![StoredSmall {
            id: 11,
            amount: Fen(1180),
            is_pushed: true,
            account: Some(13),
        }],
        partners: vec![StoredPartner {
            id: 12,
            amount: Fen(20),
            partner: Some(7),
        }],
        accounts: vec![StoredAccount {
            id: 13,
            account_no: "6222".into(),
            holder: "张三".into(),
            bank: "中国银行".into(),
            held_bill: None,
        }],
        holder: None,
    }
}

const KEEP: BillPlan = BillPlan {
    ledger: Step::Keep,
    small: Step::Keep,
    partner: Step::Keep,
    account: Step::Keep,
};

/// What a case changes in the row and in what is stored.
type Change = fn(&mut BillRow, &mut BillStored);

const LEDGER: BillPlan = BillPlan {
    ledger: Step::Update(10),
    ..KEEP
};
const SMALL: BillPlan = BillPlan {
    small: Step::Update(11),
    ..KEEP
};
const PARTNER: BillPlan = BillPlan {
    partner: Step::Update(12),
    ..KEEP
};
const ALL_NEW: BillPlan = BillPlan {
    ledger: Step::Insert,
    small: Step::Insert,
    partner: Step::Insert,
    account: Step::Insert,
};

const CASES: [(&str, Change, BillPlan); 14] = [
    (
        "nothing stored",
        |_, stored| *stored = BillStored::default(),
        ALL_NEW,
    ),
    ("the same", |_, _| {}, KEEP),
    ("a rent", |row, _| row.contract_rent = Fen(1), LEDGER),
    ("no intended rent", |row, _| row.pre_rent = None, LEDGER),
    (
        "a stored blank",
        |_, stored| stored.ledgers[0].actual_rent = None,
        LEDGER,
    ),
    ("a company", |row, _| row.company = 2, LEDGER),
    ("an amount", |row, _| row.small_amount = Some(Fen(1)), SMALL),
    ("pushed no more", |row, _| row.small_amount = None, SMALL),
    (
        "pushed again",
        |_, stored| stored.smalls[0].is_pushed = false,
        SMALL,
    ),
    (
        "no account yet",
        |_, stored| stored.smalls[0].account = None,
        SMALL,
    ),
    (
        "a partner amount",
        |row, _| row.partner_amount = Some(Fen(21)),
        PARTNER,
    ),
    (
        "no partner bill",
        |row, _| row.partner_amount = None,
        PARTNER,
    ),
    (
        "a partner bill withdrawn before",
        |row, stored| {
            row.partner_amount = None;
            stored.partners[0].amount = Fen::ZERO;
        },
        KEEP,
    ),
    (
        "a holder",
        |_, stored| stored.accounts[0].holder = "李四".into(),
        BillPlan {
            account: Step::Update(13),
            ..KEEP
        },
    ),
];

#[test]
fn what_a_row_does_follows_from_what_is_stored() {
    for (what, change, plan) in CASES {
        let (mut row, mut stored) = (row(), stored());
        change(&mut row, &mut stored);
        assert_eq!(decide(&row, &stored), Ok(plan), "{what}");
        // Held, the same row is refused, unless it changes nothing.
        stored.holder = Some(Holder {
            order: "PO1".into(),
        });
        let held = decide(&row, &stored);
        match plan.is_empty() {
            true => assert_eq!(held, Ok(KEEP), "{what}"),
            false => assert!(
                held.unwrap_err()[0].1.ends_with("PO1 holds the bill"),
                "{what}"
            ),
        }
    }
}

#[test]
fn each_column_that_differs_is_named_once() {
    let (mut row, mut stored) = (row(), stored());
    row.pre_rent = None;
    row.partner = 8;
    row.payee.as_mut().unwrap().account_no = "6333".into();
    stored.holder = Some(Holder {
        order: "PO1".into(),
    });
    let columns: Vec<usize> = decide(&row, &stored)
        .unwrap_err()
        .into_iter()
        .map(|(column, _)| column)
        .collect();
    assert_eq!(
        columns,
        [column::PRE_RENT, column::PARTNER, column::ACCOUNT]
    );
}
