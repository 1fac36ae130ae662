//! Writing tables row by row as CSV, XLSX or JSON: memory does not grow with the rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use counterfoil_protocol::Fen;
use rust_xlsxwriter::Workbook;
use serde_json::{Map, Value};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A spreadsheet
    Xlsx,
    /// Comma-separated, UTF-8 with a byte order mark
    Csv,
    /// A JSON array of objects
    Json,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// A text.
    Text(String),
    /// A whole number, of 15 digits at most: spreadsheets round what is longer. Ids are texts.
    Number(i64),
    /// An amount: yuan with two decimals, as a text. No cell rounds it.
    Yuan(Fen),
}

impl Cell {
    /// A text, or nothing.
    pub fn maybe(text: Option<String>) -> Cell {
        text.map_or(Cell::Empty, Cell::Text)
    }

    fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => number.to_string(),
            Cell::Yuan(fen) => plain_yuan(*fen),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Number(number) => Value::from(*number),
            Cell::Text(_) | Cell::Yuan(_) => Value::from(self.text()),
        }
    }
}

/// `1234.05`: no thousands separator, so that other programs read it.
fn plain_yuan(fen: Fen) -> String {
    let sign = if fen.0 < 0 { "-" } else { "" };
    let abs = fen.0.unsigned_abs();
    format!("{sign}{}.{:02}", abs / 100, abs % 100)
}

/// Rows of one sheet at most: a spreadsheet has no more.
pub const MAX_SHEET_ROWS: u32 = 1_048_575;

enum Kind {
    Csv(Box<csv::Writer<BufWriter<File>>>),
    Json { file: BufWriter<File>, first: bool },
    Xlsx { book: Box<Workbook>, next: u32 },
}

/// A table on its way into a file. The file appears whole or not at all.
pub struct TableFile {
    kind: Kind,
    header: &'static [&'static str],
    part: tempfile::NamedTempFile,
    rows: u64,
}

impl std::fmt::Debug for TableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFile").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl TableFile {
    /// Begins a table beside `path`.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn create(
        path: &Path,
        format: Format,
        header: &'static [&'static str],
    ) -> Result<TableFile> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let part = tempfile::NamedTempFile::new_in(folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        let file = || Ok::<_, anyhow::Error>(BufWriter::new(part.reopen()?));
        let kind = match format {
            Format::Csv => {
                let mut file = file()?;
                // Spreadsheet programs take a file without the mark for one in a local encoding.
                file.write_all("\u{feff}".as_bytes())?;
                let mut writer = csv::Writer::from_writer(file);
                writer.write_record(header)?;
                Kind::Csv(Box::new(writer))
            }
            Format::Json => {
                let mut file = file()?;
                file.write_all(b"[")?;
                Kind::Json { file, first: true }
            }
            Format::Xlsx => {
                let mut book = Workbook::new();
                let sheet = book.add_worksheet_with_constant_memory()?;
                for (column, name) in header.iter().enumerate() {
                    sheet.write_string(0, u16::try_from(column)?, *name)?;
                }
                Kind::Xlsx { book: Box::new(book), next: 1 }
            }
        };
        Ok(TableFile { kind, header, part, rows: 0 })
    }

    /// One more row.
    ///
    /// # Errors
    /// A full disk, or more rows than a spreadsheet has.
    pub fn row(&mut self, cells: &[Cell]) -> Result<()> {
        self.rows += 1;
        match &mut self.kind {
            Kind::Csv(writer) => Ok(writer.write_record(cells.iter().map(guarded))?),
            Kind::Json { file, first } => {
                let row: Map<String, Value> = self
                    .header
                    .iter()
                    .zip(cells)
                    .map(|(name, cell)| ((*name).to_owned(), cell.json()))
                    .collect();
                let comma = if *first { "\n" } else { ",\n" };
                *first = false;
                write!(file, "{comma}{}", Value::Object(row))?;
                Ok(())
            }
            Kind::Xlsx { book, next } => {
                anyhow::ensure!(
                    *next <= MAX_SHEET_ROWS,
                    "a spreadsheet has {MAX_SHEET_ROWS} rows at most; export as csv or json"
                );
                let sheet = book.worksheet_from_index(0)?;
                for (column, cell) in cells.iter().enumerate() {
                    let column = u16::try_from(column)?;
                    match cell {
                        Cell::Empty => {}
                        Cell::Number(number) => {
                            sheet.write_number(*next, column, *number as f64)?;
                        }
                        Cell::Text(_) | Cell::Yuan(_) => {
                            sheet.write_string(*next, column, cell.text())?;
                        }
                    }
                }
                *next += 1;
                Ok(())
            }
        }
    }

    /// Ends the table and puts it in its place. Answers its rows.
    ///
    /// # Errors
    /// A full disk.
    pub fn finish(self, path: &Path) -> Result<u64> {
        match self.kind {
            Kind::Csv(mut writer) => writer.flush()?,
            Kind::Json { mut file, .. } => {
                file.write_all(b"\n]\n")?;
                file.flush()?;
            }
            Kind::Xlsx { mut book, .. } => book.save(self.part.path())?,
        }
        self.part.as_file().sync_all()?;
        self.part.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(self.rows)
    }
}

/// A text that a spreadsheet would run as a formula is quoted as text.
fn guarded(cell: &Cell) -> String {
    let text = cell.text();
    let is_formula = matches!(cell, Cell::Text(_)) && text.starts_with(['=', '+', '-', '@']);
    if is_formula { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_in_full_and_a_formula_stays_a_text() {
        assert_eq!(plain_yuan(Fen(-123_405)), "-1234.05");
        assert_eq!(plain_yuan(Fen(5)), "0.05");
        assert_eq!(guarded(&Cell::Text("=1+1".into())), "'=1+1");
        assert_eq!(guarded(&Cell::Yuan(Fen(-5))), "-0.05");
    }
}
