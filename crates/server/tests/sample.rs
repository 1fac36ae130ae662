//! The sample month: generated, checked in, imported.

#[path = "../../payment/tests/bill_file/mod.rs"]
mod bill_file;

use std::path::{Path, PathBuf};

use bill_file::{PARTIAL, WHOLE, number, refusals};
use counterfoil_db::Db;
use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{
    ImportOptions, Imported, import_accounts, import_bills, import_companies, import_dictionary,
    import_partners,
};
use counterfoil_payment::session::add::{Selection, add_bills};
use counterfoil_payment::session::edit::Editor;
use counterfoil_payment::session::open::open_new;
use counterfoil_payment::session::qualify::{BOTH_WRONG, PRE_RENT_WRONG, RENT_ABNORMAL, Tolerance};
use counterfoil_payment::session::show::show;
use counterfoil_protocol::UserId;
use counterfoil_server::files;
use counterfoil_server::sample::{DEFAULT_SEED, DEFAULT_STATIONS, MONTH, generate};
use rust_xlsxwriter::Workbook;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/2026-09")
}

async fn import(db: &Db, file: &str, options: ImportOptions) -> Result<Imported, PaymentError> {
    let sheet = files::open(&folder().join(file)).unwrap();
    match file {
        "companies.csv" => import_companies(db, sheet, options).await,
        "partners.csv" => import_partners(db, sheet, options).await,
        "accounts.csv" => import_accounts(db, sheet, options).await,
        "dictionary.csv" => import_dictionary(db, sheet, options).await,
        _ => import_bills(db, sheet, options).await,
    }
}

#[test]
fn the_checked_in_sample_is_what_its_seed_gives() {
    for (name, content) in generate(DEFAULT_SEED, DEFAULT_STATIONS).files() {
        let stored = std::fs::read_to_string(folder().join(name)).unwrap();
        let how = "cargo run -p counterfoil-server --example write_sample";
        assert!(stored == content, "{name} is not what the generator gives: {how}");
    }
}

/// The bill file as XLSX: money as numbers, the rest as text.
fn as_xlsx(csv: &str) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (row, line) in csv.lines().enumerate() {
        for (column, cell) in line.split(',').enumerate() {
            let is_number = row > 0 && [1, 2, 3, 4, 5, 6, 10, 11].contains(&column);
            let at = (u32::try_from(row).unwrap(), u16::try_from(column).unwrap());
            match cell.parse::<f64>() {
                Ok(number) if is_number => sheet.write_number(at.0, at.1, number).unwrap(),
                _ => sheet.write_string(at.0, at.1, cell).unwrap(),
            };
        }
    }
    book.save_to_buffer().unwrap()
}

on_every_database! {
    async fn the_sample_imports_and_the_same_month_as_xlsx_changes_nothing(app: TestApp) {
        let db = app.db.clone();
        let names = ["companies", "partners", "accounts", "dictionary", "bills"];
        for name in names {
            let file = &format!("{name}.csv");
            let imported = import(&db, file, WHOLE).await.unwrap();
            assert!(imported.created > 0 && imported.updated == 0, "{file}: {imported:?}");
            let again = import(&db, file, WHOLE).await.unwrap();
            assert_eq!(again.unchanged, imported.created, "{file}");
        }
        let bills = "SELECT COUNT(*) FROM fi_monthly_income_difference";
        assert_eq!(number(&db, bills).await, i64::from(DEFAULT_STATIONS));
        let unpaid_for = "SELECT COUNT(*) FROM fi_customer_bill_partner
                          WHERE partner_account_id IS NULL";
        assert_eq!(number(&db, unpaid_for).await, 0);
        let csv = std::fs::read_to_string(folder().join("bills.csv")).unwrap();
        let sheet = files::of_bytes("bills.xlsx", as_xlsx(&csv)).unwrap();
        let imported = import_bills(&db, sheet, WHOLE).await.unwrap();
        assert_eq!(imported.unchanged, u64::from(DEFAULT_STATIONS));
        let user = UserId(7);
        let editor = Editor { session: open_new(&db, user).await.unwrap(), user };
        let month = MONTH.parse().unwrap();
        let selection = Selection::Month { month, company: None, partner: None };
        add_bills(&db, editor, &selection, &Tolerance::default()).await.unwrap();
        let view = show(&db, editor.session).await.unwrap();
        assert_eq!(view.lines, u64::from(DEFAULT_STATIONS));
        let reasons: Vec<_> = view.groups.iter().map(|group| group.reason.as_deref()).collect();
        for reason in [None, Some(RENT_ABNORMAL), Some(PRE_RENT_WRONG), Some(BOTH_WRONG)] {
            assert!(reasons.contains(&reason), "{reasons:?}");
        }
        assert!((100..250).contains(&view.unqualified), "{}", view.unqualified);
    }

    async fn each_bad_row_of_the_sample_is_refused_for_its_own_reason(app: TestApp) {
        let db = app.db.clone();
        for file in ["companies.csv", "partners.csv"] {
            import(&db, file, WHOLE).await.unwrap();
        }
        let refused = refusals(import(&db, "bills-bad.csv", WHOLE).await);
        let places: Vec<&str> =
            refused.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
        assert_eq!(places, [
            "line 3, contract_rent",
            "line 4, actual_rent",
            "line 5, pre_rent",
            "line 6, contract_rent",
            "line 7, project_company_id",
            "line 8, partner_id",
            "line 9, project_company_id",
            "line 10, station_id",
            "line 11, station_id",
            "line 12, station_id",
            "line 13, station_id",
            "line 14, small_bill_amount",
            "line 15, bill_yearmonth",
            "line 16, customer_account",
            "line 17, pre_rent",
        ]);
        let partial = import(&db, "bills-bad.csv", PARTIAL).await.unwrap();
        assert_eq!((partial.created, partial.refused), (1, 15));
    }
}
