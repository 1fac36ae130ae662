//! Bill files written by hand for tests, and what they leave in the tables.

#![allow(dead_code, reason = "not every test file uses all of it")]

use counterfoil_db::{Db, Query, Read, Row};
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{
    ImportOptions, Imported, RowFault, SheetRow, Unread, import_bills,
};

pub const HEADER: &str = "station_id,bill_yearmonth,contract_rent,actual_rent,pre_rent,\
    project_company_id,partner_id,customer_name,customer_account,bank_name,small_bill_amount,\
    partner_bill_amount";

pub const WHOLE: ImportOptions = ImportOptions { partial: false };
pub const PARTIAL: ImportOptions = ImportOptions { partial: true };

/// Rows of a text without quotes, as a reader gives them.
pub fn sheet(text: &str) -> Vec<Result<SheetRow, Unread>> {
    let rows = text.lines().enumerate().map(|(index, line)| {
        let cells = line.split(',').map(str::to_owned).collect();
        Ok(SheetRow { line: u32::try_from(index + 1).unwrap(), cells })
    });
    rows.collect()
}

/// A file of bills under the English header.
pub fn file(rows: &[&str]) -> Vec<Result<SheetRow, Unread>> {
    sheet(&format!("{HEADER}\n{}\n", rows.join("\n")))
}

pub async fn import(db: &Db, rows: &[&str]) -> Result<Imported, PaymentError> {
    import_bills(db, file(rows).into_iter(), WHOLE).await
}

/// What a refused import says.
pub fn refusals(result: Result<Imported, PaymentError>) -> Vec<String> {
    match result.unwrap_err() {
        PaymentError::RowsRefused(faults) => {
            faults.shown().iter().map(RowFault::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Companies 1 and 2, partners 7 and 8.
pub async fn references(db: &Db) {
    for statement in [
        "INSERT INTO sys_project_company (id, name) VALUES (1, '甲'), (2, '乙')",
        "INSERT INTO sys_partner (id, name) VALUES (7, '丙'), (8, '丁')",
    ] {
        execute(db, statement).await;
    }
}

/// A bill that has everything.
pub const S1: &str = "S1,202609,1200,1180.5,1180.50,1,7,张三,622200001,中国银行,1180.50,1180.50";
/// One without a small bill.
pub const S2: &str = "S2,202609,900,900,900,2,8,,,,,900";
/// One without an intended rent or a partner bill.
pub const S3: &str = "S3,202609,900,800,,2,8,李四,622200003,工商银行,800,";

/// Runs a statement as it stands.
pub async fn execute(db: &Db, statement: impl Into<String>) {
    let mut tx = db.begin().await.unwrap();
    tx.execute(Query::built(statement.into())).await.unwrap();
    tx.commit("test").await.unwrap();
}

/// The first column of the first row.
pub async fn number(db: &Db, query: impl Into<String>) -> i64 {
    db.count(Query::built(query.into())).await.unwrap()
}

/// Every row with its columns as text, NULL as `-`.
pub async fn table(db: &Db, query: impl Into<String>) -> Vec<String> {
    let rows = db.rows(Query::built(query.into())).await.unwrap();
    let line = |row: &Row| {
        let cells = row.columns().into_iter();
        let cells = cells.map(|column| row.shown(&column).unwrap_or_else(|| "-".into()));
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(line).collect()
}
