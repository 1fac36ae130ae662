//! The rows of the first sheet of an XLSX file.

use calamine::{DataRef, Reader, SheetType, Xlsx};
use counterfoil_payment::bill_import::{MAX_ROWS, RowFault, SheetRow, Unread};

use super::{MAX_CELL_BYTES, MAX_COLUMNS, Source};

/// A double holds that many decimal digits exactly, and a spreadsheet keeps no more.
const EXACT_DIGITS: usize = 15;

/// Reads the sheet cell by cell: one cell at the far corner must not become a table of millions.
///
/// # Errors
/// What the file is instead of an XLSX file with a sheet.
pub(super) fn read(source: Box<dyn Source>) -> Result<Vec<Result<SheetRow, Unread>>, String> {
    let damaged = |error: calamine::XlsxError| format!("is no readable XLSX file: {error}");
    let mut book = Xlsx::new(source).map_err(damaged)?;
    let sheets = book.sheets_metadata();
    let first = sheets.iter().find(|sheet| sheet.typ == SheetType::WorkSheet);
    let name = first.map(|sheet| sheet.name.clone()).ok_or("has no sheet")?;
    let mut cells = book.worksheet_cells_reader(&name).map_err(damaged)?;
    let mut rows = Rows::default();
    while let Some(cell) = cells.next_cell().map_err(damaged)? {
        let (row, column) = cell.get_position();
        rows.take(row, column as usize, cell.get_value());
        if rows.done.len() > MAX_ROWS as usize + 1 {
            break;
        }
    }
    rows.close();
    Ok(rows.done)
}

#[derive(Default)]
struct Rows {
    done: Vec<Result<SheetRow, Unread>>,
    /// The first row with anything in it.
    header: Option<Vec<String>>,
    open: Option<SheetRow>,
    fault: Option<RowFault>,
}

impl Rows {
    fn take(&mut self, row: u32, column: usize, value: &DataRef<'_>) {
        let line = row + 1;
        if self.open.as_ref().is_none_or(|open| open.line != line) {
            self.close();
            self.open = Some(SheetRow { line, cells: Vec::new() });
        }
        let text = match text(value) {
            Ok(text) if text.len() > MAX_CELL_BYTES => Err("is too long".to_owned()),
            Ok(text) if text.is_empty() => return,
            Ok(_) if column >= MAX_COLUMNS => Err(format!("is beyond column {MAX_COLUMNS}")),
            other => other,
        };
        match text {
            Ok(text) => self.put(column, text),
            Err(why) => {
                let name = self.header.as_ref().and_then(|names| names.get(column)).cloned();
                let column = name.unwrap_or_else(|| format!("column {}", column + 1));
                self.fault.get_or_insert(RowFault { line, column, why });
            }
        }
    }

    fn put(&mut self, column: usize, text: String) {
        if let Some(open) = &mut self.open {
            if open.cells.len() <= column {
                open.cells.resize(column + 1, String::new());
            }
            open.cells[column] = text;
        }
    }

    /// Ends the open row. A sheet does not store blank cells, so a row is as wide as its header.
    fn close(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        if let Some(fault) = self.fault.take() {
            self.done.push(Err(Unread::Row(fault)));
            return;
        }
        if open.cells.is_empty() {
            return;
        }
        match &self.header {
            Some(header) if open.cells.len() < header.len() => {
                open.cells.resize(header.len(), String::new());
            }
            Some(_) => {}
            None => self.header = Some(open.cells.iter().map(|c| c.trim().to_owned()).collect()),
        }
        self.done.push(Ok(open));
    }
}

/// A cell as the text that a CSV file would hold.
fn text(value: &DataRef<'_>) -> Result<String, String> {
    match value {
        DataRef::Empty => Ok(String::new()),
        DataRef::String(text) => Ok(text.clone()),
        DataRef::SharedString(text) => Ok((*text).to_owned()),
        DataRef::Int(number) => exact(number.to_string()),
        // The shortest decimal that is this double: 0.1 stays 0.1, and what carries the rounding
        // of a formula shows it, to be refused for its decimals.
        DataRef::Float(number) => exact(number.to_string()),
        DataRef::Bool(truth) => Ok(if *truth { "TRUE" } else { "FALSE" }.to_owned()),
        DataRef::DateTime(_) | DataRef::DateTimeIso(_) | DataRef::DurationIso(_) => {
            Err("is a date: format the column as text, and write a month as YYYYMM".into())
        }
        DataRef::Error(error) => Err(format!("is the error {error} of a formula")),
    }
}

fn exact(number: String) -> Result<String, String> {
    let digits = number.trim_start_matches('-');
    if digits.len() > EXACT_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "is a number of over {EXACT_DIGITS} digits, which a spreadsheet does not keep: format \
             the column as text and enter it again"
        ));
    }
    Ok(number)
}
