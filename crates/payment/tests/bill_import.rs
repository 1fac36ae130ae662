//! Importing bill files.

mod bill_file;

use bill_file::{
    HEADER, PARTIAL, S1, S2, S3, WHOLE, execute, file, import, number, references, refusals, sheet,
    table,
};
use counterfoil_db::{FaultAction, FaultPlan, Side};
use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{
    Imported, MAX_FAULTS, RowFault, SheetRow, Unread, import_bills,
};
use counterfoil_payment::session::add::{Selection, add_bills};
use counterfoil_payment::session::edit::Editor;
use counterfoil_payment::session::open::open_new;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_protocol::UserId;

const EVERYTHING: [&str; 4] = [
    "SELECT station_id, bill_yearmonth, payment_status, contract_rent, actual_rent, pre_rent,
            project_company_id, partner_id, financial_version, update_time
     FROM fi_monthly_income_difference WHERE deleted = 0 ORDER BY station_id, id",
    "SELECT s.station_id, s.bill_yearmonth, s.payment_status, s.amount, s.pushed_flag,
            a.customer_id, a.holder_name, a.account_no, a.bank_name, s.update_time
     FROM fi_customer_bill s LEFT JOIN fi_customer_account a ON a.id = s.customer_account_id
     WHERE s.deleted = 0 ORDER BY s.station_id, s.id",
    "SELECT station_id, bill_yearmonth, payment_status, amount, partner_id, partner_account_id,
            update_time
     FROM fi_customer_bill_partner WHERE deleted = 0 ORDER BY station_id, id",
    "SELECT id, customer_id, account_no, update_time FROM fi_customer_account ORDER BY id",
];

async fn everything(db: &counterfoil_db::Db) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for query in EVERYTHING {
        all.push(table(db, query).await);
    }
    all
}

/// Rows without the time they were written.
async fn rows(db: &counterfoil_db::Db, which: usize) -> Vec<String> {
    let rows = table(db, EVERYTHING[which]).await;
    rows.iter().map(|row| row.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

fn counts(imported: &Imported) -> [u64; 4] {
    [imported.created, imported.updated, imported.unchanged, imported.refused]
}

fn crash(side: Side) -> FaultPlan {
    let action = FaultAction::Crash;
    FaultPlan { point: "import.bills".into(), side, passage: 1, action }
}

on_every_database! {
    async fn one_row_makes_the_ledger_row_the_bills_and_the_account(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        execute(&db, "INSERT INTO fi_customer_account_partner (id, partner_id, account_no)
                      VALUES (70, 7, '7000')").await;
        let imported = import(&db, &[S1, S2, S3]).await.unwrap();
        assert_eq!(counts(&imported), [3, 0, 0, 0]);
        assert_eq!(rows(&db, 0).await, [
            "S1 202609 20 120000 118050 118050 1 7 0",
            "S2 202609 20 90000 90000 90000 2 8 0",
            "S3 202609 20 90000 80000 - 2 8 0",
        ]);
        assert_eq!(rows(&db, 1).await, [
            "S1 202609 20 118050 1 S1 张三 622200001 中国银行",
            "S3 202609 20 80000 1 S3 李四 622200003 工商银行",
        ]);
        assert_eq!(rows(&db, 2).await, [
            "S1 202609 20 118050 7 70",
            "S2 202609 20 90000 8 -",
        ]);
    }

    async fn the_same_file_again_changes_no_row_and_no_time(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S1, S2, S3]).await.unwrap();
        let before = everything(&db).await;
        let again = import(&db, &[S3, S1, S2]).await.unwrap();
        assert_eq!(counts(&again), [0, 0, 3, 0]);
        assert_eq!(everything(&db).await, before);
    }

    async fn a_bill_that_differs_and_is_held_by_nobody_is_brought_into_line(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S1, S2, S3]).await.unwrap();
        let changed = [
            // Other rents, another payee, the partner bill withdrawn.
            "S1,202609,1300,1190,0,2,8,王五,622200009,建设银行,1190,",
            // A small bill where there was none.
            "S2,202609,900,900,900,2,8,赵六,622200002,中国银行,900,900",
            // The small bill withdrawn, a partner bill instead.
            "S3,202609,900,800,,2,8,,,,,800",
        ];
        let imported = import(&db, &changed).await.unwrap();
        assert_eq!(counts(&imported), [0, 3, 0, 0]);
        assert_eq!(rows(&db, 0).await, [
            "S1 202609 10 130000 119000 0 2 8 1",
            "S2 202609 20 90000 90000 90000 2 8 0",
            "S3 202609 20 90000 80000 - 2 8 0",
        ]);
        assert_eq!(rows(&db, 1).await, [
            "S1 202609 10 119000 1 S1 王五 622200009 建设银行",
            "S2 202609 20 90000 1 S2 赵六 622200002 中国银行",
            "S3 202609 20 0 0 S3 李四 622200003 工商银行",
        ]);
        assert_eq!(rows(&db, 2).await, [
            "S1 202609 10 0 8 -",
            "S2 202609 20 90000 8 -",
            "S3 202609 20 80000 8 -",
        ]);
        assert_eq!(counts(&import(&db, &changed).await.unwrap()), [0, 0, 3, 0]);
    }

    async fn a_bill_that_differs_and_is_held_is_refused_by_line_column_and_order(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S1, S2, S3]).await.unwrap();
        for statement in [
            "INSERT INTO fi_resident_income_payment_order (id, order_no) VALUES (5, 'PO5')",
            "INSERT INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
             VALUES ('S1:202609', 'RESERVED', 5, 'S1', '202609')",
            "UPDATE fi_customer_bill_partner SET locked_payment_order_id = 6
             WHERE station_id = 'S2'",
            "INSERT INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
             VALUES ('S3:202609:RELEASED:1', 'RELEASED', 5, 'S3', '202609')",
        ] {
            execute(&db, statement).await;
        }
        let before = everything(&db).await;
        let again = import(&db, &[S1, S2, S3]).await.unwrap();
        assert_eq!(counts(&again), [0, 0, 3, 0]);
        let refused = import(&db, &[
            "S3,202609,900,800,700,2,8,李四,622200003,工商银行,800,",
            "S1,202609,1200,1180,1180.50,1,7,张三,622200001,建设银行,,1180.50",
            "S2,202609,900,900,,2,8,,,,,900",
        ]).await;
        assert_eq!(refusals(refused), [
            "line 3, actual_rent: differs from the stored 1,180.50, and order PO5 holds the bill",
            "line 3, bank_name: differs from the stored account, and order PO5 holds the bill",
            "line 3, small_bill_amount: differs from the stored 1,180.50, and order PO5 holds \
             the bill",
            "line 4, pre_rent: differs from the stored 900.00, and order 6 holds the bill",
        ]);
        assert_eq!(everything(&db).await, before);
    }

    async fn an_account_that_a_held_bill_is_paid_to_is_not_changed_by_a_bill_file(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S1]).await.unwrap();
        execute(&db, "UPDATE fi_customer_bill SET locked_payment_order_id = 5").await;
        let next_month = "S1,202610,1200,1200,1200,1,7,张三丰,622200001,中国银行,1200,";
        assert_eq!(refusals(import(&db, &[next_month]).await), [
            "line 2, customer_name: differs from the stored account, which the held bill of \
             202609 is paid to",
        ]);
        execute(&db, "UPDATE fi_customer_bill SET locked_payment_order_id = NULL").await;
        import(&db, &[next_month]).await.unwrap();
        let holder = table(&db, "SELECT holder_name FROM fi_customer_account").await;
        assert_eq!(holder, ["张三丰"]);
    }

    async fn rows_of_two_months_of_one_station_share_one_account(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let next_month = S1.replace("202609", "202610");
        import(&db, &[S1, &next_month]).await.unwrap();
        assert_eq!(number(&db, "SELECT COUNT(*) FROM fi_customer_account").await, 1);
        let accounts = "SELECT COUNT(DISTINCT customer_account_id) FROM fi_customer_bill";
        assert_eq!(number(&db, accounts).await, 1);
    }

    async fn the_good_rows_of_a_bad_file_are_imported_only_when_a_part_will_do(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let bad = [S1, "S2,202609,x,900,900,2,8,,,,,900", S3, S3];
        assert_eq!(refusals(import(&db, &bad).await).len(), 3);
        assert_eq!(number(&db, "SELECT COUNT(*) FROM fi_monthly_income_difference").await, 0);
        let partial = import_bills(&db, file(&bad).into_iter(), PARTIAL).await.unwrap();
        assert_eq!(counts(&partial), [1, 0, 0, 3]);
        assert_eq!(partial.faults.total(), 3);
        assert_eq!(rows(&db, 0).await, ["S1 202609 20 120000 118050 118050 1 7 0"]);
        assert_eq!(number(&db, "SELECT COUNT(*) FROM fi_customer_account").await, 1);
    }

    async fn a_crash_before_the_commit_leaves_nothing_and_one_after_it_everything(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S2]).await.unwrap();
        let before = everything(&db).await;
        db.faults().arm(crash(Side::Before));
        assert!(import(&db, &[S1, S3]).await.is_err());
        assert_eq!(everything(&db).await, before);
        db.faults().arm(crash(Side::After));
        assert!(import(&db, &[S1, S3]).await.is_err());
        assert_eq!(counts(&import(&db, &[S1, S2, S3]).await.unwrap()), [0, 0, 3, 0]);
    }

    async fn two_imports_at_once_make_each_bill_once(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let bills: Vec<String> =
            (0..1_200).map(|n| S1.replace("S1,", &format!("S{n:04},"))).collect();
        let tasks: Vec<_> = (0..4).map(|n| {
            let db = db.clone();
            let mut bills = bills.clone();
            // Another order of rows each time.
            bills.rotate_left(300 * n);
            tokio::spawn(async move {
                let bills: Vec<&str> = bills.iter().map(String::as_str).collect();
                import(&db, &bills).await.unwrap()
            })
        }).collect();
        let mut created = 0;
        for task in tasks {
            let imported = task.await.unwrap();
            assert_eq!(imported.created + imported.unchanged, 1_200);
            created += imported.created;
        }
        assert_eq!(created, 1_200);
        for name in ["fi_monthly_income_difference", "fi_customer_bill",
                     "fi_customer_bill_partner", "fi_customer_account"] {
            assert_eq!(number(&db, format!("SELECT COUNT(*) FROM {name}")).await, 1_200);
        }
    }

    async fn an_order_that_takes_a_bill_while_it_is_imported_wins(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &[S1]).await.unwrap();
        let change = S1.replace("1200,", "1300,");
        // A lock the import cannot see at first: taken by a transaction that commits later.
        let mut order = db.begin().await.unwrap();
        let lock = "INSERT INTO fi_resident_income_payment_bill_lock
                      (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
                    VALUES ('S1:202609', 'RESERVED', 5, 'S1', '202609')";
        order.execute(counterfoil_db::Query::built(lock.into())).await.unwrap();
        let reference = "UPDATE fi_monthly_income_difference SET locked_payment_order_id = 5";
        order.execute(counterfoil_db::Query::built(reference.into())).await.unwrap();
        let importing = tokio::spawn({
            let db = db.clone();
            async move { import(&db, &[&change]).await }
        });
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        order.commit("test").await.unwrap();
        assert_eq!(refusals(importing.await.unwrap()), [
            "line 2, contract_rent: differs from the stored 1,200.00, and order 5 holds the bill",
        ]);
    }

    async fn a_stored_double_is_refused_and_not_made_worse(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        for id in [3, 4] {
            execute(&db, format!("INSERT INTO fi_customer_bill (id, station_id, bill_yearmonth)
                                  VALUES ({id}, 'S1', '202609')")).await;
        }
        assert_eq!(refusals(import(&db, &[S1]).await), [
            "line 2, station_id: has this month's small bill stored more than once: ids [3, 4]",
        ]);
    }

    async fn every_kind_of_bad_row_is_refused_by_line_and_column(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        execute(&db, "INSERT INTO month_close (bill_yearmonth) VALUES ('202512')").await;
        for (row, refusal) in BAD_ROWS {
            let refused = import(&db, &[S2, row]).await;
            assert_eq!(refusals(refused), [*refusal], "{row}");
        }
        assert_eq!(number(&db, "SELECT COUNT(*) FROM fi_monthly_income_difference").await, 0);
    }

    async fn companies_and_partners_may_come_after_their_bills(app: TestApp) {
        let db = app.db.clone();
        let imported = import(&db, &[S1, S2, S3]).await.unwrap();
        assert_eq!(counts(&imported), [3, 0, 0, 0]);
        references(&db).await;
        assert_eq!(counts(&import(&db, &[S1, S2, S3]).await.unwrap()), [0, 0, 3, 0]);
    }

    async fn rows_that_contradict_each_other_are_both_refused(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let other_bank = "S1,202610,1200,1200,1200,1,7,张三,622200001,农业银行,1200,";
        assert_eq!(refusals(import(&db, &[S1, S2, other_bank, S2]).await), [
            "line 2, bank_name: differs from line 4 for the same account",
            "line 3, station_id: is on line 5 again",
            "line 4, bank_name: differs from line 2 for the same account",
            "line 5, station_id: is on line 3 already",
        ]);
    }

    async fn a_chinese_header_in_any_order_after_a_byte_order_mark_is_read(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let text = "\u{feff}账期,电站编号,合作方账单金额,小单金额,开户行,收款账号,农户姓名,合作方,\
                    项目公司,拟付租金,实际租金,合同租金\n\
                    ,,,,,,,,,,,\n\
                    202609, S1 ,,1180.50,中国银行,622200001,张三,7,1,1180.50,1180.5,1200\n\
                    202609,S2,x,,,,,8,2,900,900,900\n";
        let refused = import_bills(&db, sheet(text).into_iter(), WHOLE).await;
        assert_eq!(refusals(refused), [
            "line 4, 合作方账单金额: \"x\" is not an amount in yuan: write digits with at most \
             two decimals",
        ]);
        import_bills(&db, sheet(&text.replace(",x,", ",900,")).into_iter(), WHOLE).await.unwrap();
        assert_eq!(rows(&db, 0).await.len(), 2);
    }

    async fn a_file_without_its_columns_or_that_breaks_off_is_refused_even_in_part(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let none = import_bills(&db, sheet("").into_iter(), PARTIAL).await;
        assert_eq!(refusals(none), [
            "line 1: the file is empty: its first row must name the columns",
        ]);
        let header = HEADER.replace("pre_rent", "rent").replace("bank_name", "station_id");
        let refused = import_bills(&db, sheet(&header).into_iter(), PARTIAL).await;
        assert_eq!(refusals(refused).len(), 4);
        let mut broken = file(&[S1]);
        broken.push(Err(Unread::File(RowFault::of_row(3, "cannot be read"))));
        let refused = import_bills(&db, broken.into_iter(), PARTIAL).await;
        assert_eq!(refusals(refused), ["line 3: cannot be read"]);
        assert_eq!(number(&db, "SELECT COUNT(*) FROM fi_monthly_income_difference").await, 0);
    }

    async fn of_ten_thousand_bad_rows_the_first_are_shown_and_all_counted(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        let bad = S2.replace("900,900,900", "900,900,bad");
        let bad: Vec<String> =
            (0..10_000).map(|n| bad.replace("S2,", &format!("S{n},"))).collect();
        let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
        match import(&db, &bad).await.unwrap_err() {
            PaymentError::RowsRefused(faults) => {
                assert_eq!(faults.total(), 10_000);
                assert_eq!(faults.shown().len(), MAX_FAULTS);
                assert_eq!(faults.shown()[0].line, 2);
            }
            other => panic!("{other:?}"),
        }
    }

    async fn a_hundred_thousand_bills_are_imported_and_selected_in_bounded_memory(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        const BILLS: u32 = 100_000;
        let header = sheet(HEADER).into_iter();
        let bills = (0..BILLS).map(|n| {
            let row = S1.replace("S1,", &format!("S{n:06},"));
            let cells = row.split(',').map(str::to_owned).collect();
            Ok(SheetRow { line: n + 2, cells })
        });
        let before = peak_kilobytes();
        let imported = import_bills(&db, header.chain(bills), WHOLE).await.unwrap();
        assert_eq!(counts(&imported), [u64::from(BILLS), 0, 0, 0]);
        // The typed rows, their keys and plans, and one chunk of statements.
        let imported = peak_kilobytes();
        assert!(imported - before < 160 * 1024, "grown by {} kB", imported - before);
        let editor = Editor { session: open_new(&db, UserId(7)).await.unwrap(), user: UserId(7) };
        let month = "202609".parse().unwrap();
        let selection = Selection::Month { month, company: None, partner: None };
        let tolerance = Tolerance::default();
        let added = add_bills(&db, editor, &selection, &tolerance).await.unwrap();
        assert_eq!(added.payable, u64::from(BILLS));
        // One batch; freed memory of the import may be used again, so this is no tight bound.
        let selected = peak_kilobytes();
        assert!(selected - imported < 32 * 1024, "grown by {} kB", selected - imported);
    }
}

/// The most memory this process ever had resident.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

const BAD_ROWS: &[(&str, &str)] = &[
    (",202609,1,1,1,1,7,,,,,1", "line 3, station_id: must not be blank"),
    (
        "S:9,202609,1,1,1,1,7,,,,,1",
        "line 3, station_id: \"S:9\" may hold only letters, digits and -._/",
    ),
    (
        "S9,202613,1,1,1,1,7,,,,,1",
        "line 3, bill_yearmonth: \"202613\" is not a month: write YYYYMM from 200001 to 209912",
    ),
    ("S9,202512,1,1,1,1,7,,,,,1", "line 3, bill_yearmonth: 202512 is closed"),
    ("S9,202609,,1,1,1,7,,,,,1", "line 3, contract_rent: must not be blank"),
    ("S9,202609,-1,1,1,1,7,,,,,1", "line 3, contract_rent: -1.00 must not be negative"),
    ("S9,202609,1,-0.01,1,1,7,,,,,1", "line 3, actual_rent: -0.01 must not be negative"),
    ("S9,202609,1,1.005,1,1,7,,,,,1", "line 3, actual_rent: \"1.005\" has more than two decimals"),
    (
        "S9,202609,1,1,1e3,1,7,,,,,1",
        "line 3, pre_rent: \"1e3\" is not an amount in yuan: write digits with at most two \
         decimals",
    ),
    (
        "S9,202609,1,1,1,,7,,,,,1",
        "line 3, project_company_id: \"\" is no id: write a whole number from 1 to 999999999999",
    ),
    (
        "S9,202609,1,1,1,1,7.0,,,,,1",
        "line 3, partner_id: \"7.0\" is no id: write a whole number from 1 to 999999999999",
    ),
    (
        "S9,202609,1,1,1,1,-7,,,,,1",
        "line 3, partner_id: \"-7\" is no id: write a whole number from 1 to 999999999999",
    ),
    (
        "S9,202609,1,1,1,1,7,,6222,中国银行,1,1",
        "line 3, customer_name: must not be blank where a small bill is pushed",
    ),
    (
        "S9,202609,1,1,1,1,7,张三,,中国银行,,1",
        "line 3, customer_account: must not be blank where another column of the account is filled",
    ),
    (
        "S9,202609,1,1,1,1,7,张三,6222 0000,中国银行,1,1",
        "line 3, customer_account: \"6222 0000\" may hold only letters, digits and -._/",
    ),
    (
        "S9,202609,1,1,1,1,7,张\u{fffd},6222,中国银行,1,1",
        "line 3, customer_name: holds a character that was damaged before it came here",
    ),
    (
        "S9,202609,1,1,1,1,7,张\t三,6222,中国银行,1,1",
        "line 3, customer_name: holds the control character \\u{9}",
    ),
    (
        "S9,202609,1,1,1,1,7,张三,6222,中国银行,-1,1",
        "line 3, small_bill_amount: -1.00 must not be negative",
    ),
    ("S9,202609,1,1,1,1,7,,,,,-1", "line 3, partner_bill_amount: -1.00 must not be negative"),
    (
        "S9,202609,1,1,1,1,7",
        "line 3, customer_name: is not there: the row has 7 cells, the header 12",
    ),
    ("S9,202609,1,1,1,1,7,,,,,1,more", "line 3: has a cell beyond the header's 12 columns"),
    (
        "S9,202609,92233720368547759,1,1,1,7,,,,,1",
        "line 3, contract_rent: \"92233720368547759\" is too large",
    ),
];
