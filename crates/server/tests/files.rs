//! Reading files: what a row says and where it stands.

use counterfoil_payment::bill_import::{SheetRow, Unread};
use counterfoil_server::files::{self, FileError};
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook};

fn csv(bytes: impl AsRef<[u8]>) -> Vec<Result<SheetRow, Unread>> {
    files::of_bytes("a.csv", bytes.as_ref().to_vec()).unwrap().collect()
}

/// `line: cells` of the rows that hold anything, or the fault.
fn shown(rows: Vec<Result<SheetRow, Unread>>) -> Vec<String> {
    let shown = rows.into_iter().filter_map(|row| match row {
        Ok(row) if row.cells.iter().all(|cell| cell.trim().is_empty()) => None,
        Ok(row) => Some(format!("{}: {}", row.line, row.cells.join("|"))),
        Err(Unread::Row(fault) | Unread::File(fault)) => Some(fault.to_string()),
    });
    shown.collect()
}

fn xlsx(fill: impl FnOnce(&mut rust_xlsxwriter::Worksheet)) -> Vec<Result<SheetRow, Unread>> {
    let mut book = Workbook::new();
    fill(book.add_worksheet());
    // A second sheet is not read.
    book.add_worksheet().write_string(0, 0, "elsewhere").unwrap();
    let bytes = book.save_to_buffer().unwrap();
    files::of_bytes("a.csv", bytes).unwrap().collect()
}

#[test]
fn csv_rows_keep_the_lines_an_editor_shows() {
    let text = "a,b\n\n1,2\n\n\n\"x\ny\",3\n4,5";
    assert_eq!(shown(csv(text)), ["1: a|b", "3: 1|2", "6: x\ny|3", "8: 4|5"]);
    let windows = text.replace('\n', "\r\n");
    assert_eq!(shown(csv(windows)), ["1: a|b", "3: 1|2", "6: x\r\ny|3", "8: 4|5"]);
    let ended = format!("{text}\n\n");
    assert_eq!(shown(csv(ended)).len(), 4);
}

#[test]
fn a_quoted_cell_before_a_windows_line_end_is_whole() {
    assert_eq!(shown(csv("a,\"b, c\"\r\n1,\"2\"\r\n")), ["1: a|b, c", "2: 1|2"]);
}

#[test]
fn a_cell_in_another_encoding_is_named_by_line_and_column_and_the_others_are_read() {
    let mut bytes = "\u{feff}电站编号,姓名\nS1,张三\nS2,".as_bytes().to_vec();
    // 李四 in GBK.
    bytes.extend(b"\xc0\xee\xcb\xc4\nS3,x\n");
    assert_eq!(
        shown(csv(bytes)),
        [
            "1: 电站编号|姓名",
            "2: S1|张三",
            "line 3, 姓名: is not UTF-8: save the file as \"CSV UTF-8\"",
            "4: S3|x",
        ]
    );
}

#[test]
fn a_quotation_mark_that_is_not_closed_is_found() {
    let text = format!("a,b\n1,\"2\n{}", "3,4\n".repeat(2_000));
    let shown = shown(csv(text));
    assert_eq!(shown[1], "line 2, b: is too long; is a quotation mark not closed?");
}

#[test]
fn xlsx_rows_read_like_the_same_rows_in_csv() {
    let rows = xlsx(|sheet| {
        for (column, name) in ["账期", "电站编号", "合同租金", "备注"].iter().enumerate()
        {
            sheet.write_string(1, column as u16, *name).unwrap();
        }
        sheet.write_number(2, 0, 202_609.0).unwrap();
        sheet.write_string(2, 1, "S1").unwrap();
        sheet.write_number(2, 2, 1180.1).unwrap();
        sheet.write_string(2, 3, "x").unwrap();
        sheet.write_string(4, 0, "202609").unwrap();
        sheet.write_string(4, 1, "S2").unwrap();
        sheet.write_number(4, 2, 0.3).unwrap();
        sheet.write_blank(5, 0, &Format::new().set_bold()).unwrap();
        sheet.write_number(6, 2, -1e15).unwrap();
    });
    let text = "\n账期,电站编号,合同租金,备注\n202609,S1,1180.1,x\n\n202609,S2,0.3,\n";
    let mut both = shown(rows);
    assert!(both.pop().unwrap().starts_with("line 7, 合同租金: is a number of over 15 digits"));
    assert_eq!(both, shown(csv(text)));
}

#[test]
fn what_a_spreadsheet_does_not_keep_exactly_is_refused_or_shown() {
    let rows = xlsx(|sheet| {
        sheet.write_string(0, 0, "收款账号").unwrap();
        sheet.write_number(1, 0, 6_222_000_012_345_678_901.0).unwrap();
        sheet.write_number(2, 0, 123_456_789_012_345.0).unwrap();
        // What 0.1 + 0.2 leaves: refused later, for its decimals.
        sheet.write_number(3, 0, f64::from_bits(0x3fd3_3333_3333_3334)).unwrap();
        let date = ExcelDateTime::from_ymd(2026, 9, 1).unwrap();
        sheet
            .write_datetime_with_format(4, 0, &date, &Format::new().set_num_format("yyyymm"))
            .unwrap();
        sheet.write_boolean(5, 0, true).unwrap();
    });
    let shown = shown(rows);
    assert!(shown[1].starts_with("line 2, 收款账号: is a number of over 15 digits"), "{shown:?}");
    assert_eq!(shown[2], "3: 123456789012345");
    assert_eq!(shown[3], "4: 0.30000000000000004");
    assert!(shown[4].starts_with("line 5, 收款账号: is a date"), "{shown:?}");
    assert_eq!(shown[5], "6: TRUE");
}

#[test]
fn one_cell_in_the_far_corner_of_a_sheet_takes_no_memory() {
    let rows = xlsx(|sheet| {
        sheet.write_string(0, 0, "a").unwrap();
        sheet.write_string(1_048_575, 16_383, "far").unwrap();
    });
    assert_eq!(shown(rows), ["1: a", "line 1048576, column 16384: is beyond column 64"]);
}

#[test]
fn what_a_file_is_is_read_off_its_content() {
    let why = |bytes: &[u8]| match files::of_bytes("f.xlsx", bytes.to_vec()) {
        Err(error @ FileError::Format { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(files::of_bytes("f.xlsx", b"a,b\n1,2\n".to_vec()).is_ok());
    assert!(why(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1").contains("old or a protected Excel file"));
    assert!(why(b"\xff\xfea\0,\0b\0").contains("UTF-16"));
    assert!(why(b"PK\x03\x04 and then nothing").contains("damaged"));
}

#[test]
fn an_xlsx_file_that_would_unpack_to_gigabytes_is_refused_unread() {
    let mut book = Workbook::new();
    book.add_worksheet().write_string(0, 0, "a").unwrap();
    let mut bytes = book.save_to_buffer().unwrap();
    let at = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
    bytes[at + 24..at + 28].copy_from_slice(&3_000_000_000_u32.to_le_bytes());
    let error = files::of_bytes("bomb.xlsx", bytes).unwrap_err();
    assert_eq!(error.code(), "file-too-large");
}

#[test]
fn a_file_that_is_not_there_is_unreadable() {
    let error = files::open(std::path::Path::new("/nowhere/bills.csv")).unwrap_err();
    assert_eq!(error.code(), "file-unreadable");
    assert_eq!(error.to_string(), "/nowhere/bills.csv cannot be read");
    // A folder opens on Linux and fails when read.
    assert!(files::open(std::path::Path::new("/tmp")).is_err());
}
