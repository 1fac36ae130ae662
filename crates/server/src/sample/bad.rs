//! A file in which every row but the first is wrong in its own way.

use super::{MONTH, Table, words};

/// What stands in each row: the columns of the bill file.
const ROWS: [[&str; 12]; 13] = [
    // A good one, for `--partial`.
    row("BAD-000001", ["900.00", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // Three decimals.
    row("BAD-000002", ["900.005", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // Below zero.
    row("BAD-000003", ["900.00", "-880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // Separators.
    row("BAD-000004", ["900.00", "880.00", "1，880.00"], ["101", "201"], ["880.00", "880.00"]),
    // Nothing where a rent must stand.
    row("BAD-000005", ["", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // No company.
    row("BAD-000006", ["900.00", "880.00", "880.00"], ["", "201"], ["880.00", "880.00"]),
    // No whole number.
    row("BAD-000007", ["900.00", "880.00", "880.00"], ["101", "20.1"], ["880.00", "880.00"]),
    // A name where an id must stand.
    row("BAD-000008", ["900.00", "880.00", "880.00"], ["鲁东", "201"], ["880.00", "880.00"]),
    // No station.
    row("", ["900.00", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // A station that no lock key can carry.
    row("BAD:000010", ["900.00", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // The same bill twice, with different rents.
    row("BAD-000011", ["900.00", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    row("BAD-000011", ["950.00", "880.00", "880.00"], ["101", "201"], ["880.00", "880.00"]),
    // An amount below zero.
    row("BAD-000012", ["900.00", "880.00", "880.00"], ["101", "201"], ["-880.00", "880.00"]),
];

const fn row(
    station: &'static str,
    rents: [&'static str; 3],
    ids: [&'static str; 2],
    amounts: [&'static str; 2],
) -> [&'static str; 12] {
    [
        station,
        MONTH,
        rents[0],
        rents[1],
        rents[2],
        ids[0],
        ids[1],
        "王样本",
        "6000000000000000005",
        "中国农业银行",
        amounts[0],
        amounts[1],
    ]
}

pub(super) fn bills() -> String {
    let mut table = Table::new(&words::BILL_COLUMNS);
    for cells in &ROWS {
        table.row(cells);
    }
    // What is wrong with these is not one of the columns above.
    for line in [
        // No such month.
        "BAD-000013,202613,900.00,880.00,880.00,101,201,王样本,6000000000000000005,中国农业银行,,880.00",
        // A small bill without an account to pay it to.
        "BAD-000014,202609,900.00,880.00,880.00,101,201,王样本,,中国农业银行,880.00,880.00",
        // A row that breaks off.
        "BAD-000015,202609,900.00,880.00",
    ] {
        table.row(&[line]);
    }
    table.text()
}
