//! The rows of a CSV file.

use std::io::{Chain, Read};

use counterfoil_payment::bill_import::{RowFault, SheetRow, Unread};

use super::{MAX_COLUMNS, Source};

/// Reads record by record; the file is never in memory as a whole.
pub(super) struct CsvRows {
    reader: csv::Reader<Chain<Box<dyn Source>, &'static [u8]>>,
    record: csv::ByteRecord,
    max_cell: usize,
    /// The header's cells, to name columns by.
    header: Option<Vec<String>>,
    is_over: bool,
    /// The line after the record before.
    begun: u64,
}

impl CsvRows {
    pub(super) fn new(source: Box<dyn Source>, max_cell: usize) -> CsvRows {
        // The last row is ended like the others, so that lines can be counted from the end. The
        // terminator is the line feed alone for the same reason; a carriage return before it
        // ends up in the last cell, and blanks around cells mean nothing.
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(source.chain(&b"\n"[..]));
        let record = csv::ByteRecord::new();
        CsvRows { reader, record, max_cell, header: None, is_over: false, begun: 1 }
    }

    /// The line on which the record just read starts. The reader's own answer is the line after
    /// the record before, blank lines not counted.
    fn line(&self) -> u32 {
        let inside = self.record.iter().flatten().filter(|byte| **byte == b'\n').count() as u64;
        let line = self.reader.position().line().saturating_sub(1 + inside);
        // A quotation mark that is never closed takes in the end of the file too.
        let line = line.max(self.begun);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    fn row(&mut self) -> Result<SheetRow, Unread> {
        let line = self.line();
        let fault = |column: usize, why: &str| {
            let name = self.header.as_ref().and_then(|names| names.get(column)).cloned();
            let column = name.unwrap_or_else(|| format!("column {}", column + 1));
            Unread::Row(RowFault { line, column, why: why.to_owned() })
        };
        if self.record.len() > MAX_COLUMNS {
            let why = format!("has over {MAX_COLUMNS} cells");
            return Err(Unread::Row(RowFault::of_row(line, why)));
        }
        let mut cells = Vec::with_capacity(self.record.len());
        for (column, cell) in self.record.iter().enumerate() {
            if cell.len() > self.max_cell {
                let why = "is too long; is a quotation mark not closed?";
                return Err(fault(column, why));
            }
            let Ok(text) = std::str::from_utf8(cell) else {
                return Err(fault(column, "is not UTF-8: save the file as \"CSV UTF-8\""));
            };
            cells.push(text.trim_end_matches('\r').to_owned());
        }
        if self.header.is_none() && cells.iter().any(|cell| !cell.trim().is_empty()) {
            let names = cells.iter().map(|cell| cell.trim_start_matches('\u{feff}').trim());
            self.header = Some(names.map(str::to_owned).collect());
        }
        Ok(SheetRow { line, cells })
    }
}

impl Iterator for CsvRows {
    type Item = Result<SheetRow, Unread>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        self.begun = self.reader.position().line();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => Some(self.row()),
            Ok(false) => None,
            Err(error) => {
                self.is_over = true;
                let line = u32::try_from(self.reader.position().line()).unwrap_or(u32::MAX);
                let why = format!("the file cannot be read from here on: {error}");
                Some(Err(Unread::File(RowFault::of_row(line, why))))
            }
        }
    }
}
