//! JSON lines: one answer a line, as the write interface takes it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use counterfoil_payment::bill_import::{RowFault, RowFaults};
use counterfoil_reconcile::form_centre::write::hashable;

use super::{AnswerRow, Bad, MAX_ANSWER_BYTES};
use crate::api::form_answers::Put;

/// Reads line by line.
#[derive(Debug)]
pub struct JsonLines {
    reader: BufReader<File>,
    line: u32,
    is_over: bool,
}

impl JsonLines {
    pub(super) fn new(reader: BufReader<File>) -> JsonLines {
        JsonLines { reader, line: 0, is_over: false }
    }

    /// The next line's bytes; `None` at the end. A line that is too long is read past.
    fn read(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let limit = MAX_ANSWER_BYTES as u64 + 1;
        if (&mut self.reader).take(limit).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.line = self.line.saturating_add(1);
        while bytes.len() > MAX_ANSWER_BYTES && bytes.last() != Some(&b'\n') {
            // Nothing of the rest is kept but its end.
            bytes.truncate(MAX_ANSWER_BYTES + 1);
            let mut rest = Vec::new();
            if (&mut self.reader).take(limit).read_until(b'\n', &mut rest)? == 0 {
                break;
            }
            bytes.extend(rest.last());
        }
        Ok(Some(bytes))
    }

    fn answer(&self, bytes: &[u8]) -> Result<AnswerRow, Bad> {
        let line = self.line;
        let bad = |column: &str, why: String| {
            Bad::Row(vec![RowFault { line, column: column.to_owned(), why }])
        };
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(bad("", format!("is longer than {MAX_ANSWER_BYTES} bytes")));
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        // The parser's message may quote a value: its kind and place are enough.
        let put: Put = serde_json::from_slice(bytes).map_err(|error| {
            let at = error.column();
            match error.classify() {
                serde_json::error::Category::Data => bad("", data_error(&error.to_string(), at)),
                _ => bad("", format!("is no JSON object (at character {at})")),
            }
        })?;
        let answer = put.into_write();
        if let Err(fault) = hashable(&answer) {
            let column = fault.path.trim_start_matches('/').to_owned();
            return Err(bad(&column, fault.reason.to_string()));
        }
        Ok(AnswerRow { line, answer })
    }
}

/// What a well-formed line lacks, or has too much. A wrong type is said without the value.
fn data_error(message: &str, at: usize) -> String {
    let says_names_only = ["missing field", "unknown field", "duplicate field"];
    if says_names_only.iter().any(|words| message.starts_with(words)) {
        let message = message.split(" at line").next().unwrap_or(message);
        return format!("has a {message}");
    }
    format!("has a field of a wrong type (at character {at})")
}

impl Iterator for JsonLines {
    type Item = Result<AnswerRow, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.read() {
                Ok(None) => return None,
                Ok(Some(bytes)) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(bytes)) => return Some(self.answer(&bytes)),
                Err(error) => {
                    self.is_over = true;
                    let why = format!("the file cannot be read from here on: {error}");
                    let mut faults = RowFaults::default();
                    faults.push(RowFault::of_row(self.line.saturating_add(1), why));
                    return Some(Err(Bad::File(faults)));
                }
            }
        }
        None
    }
}
