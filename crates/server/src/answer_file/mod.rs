//! Files of answers, row by row: a table (CSV, XLSX) or JSON lines. Which it is, is read off its
//! content. Nothing but the row at hand is held.

mod import;
mod lines;
mod table;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use counterfoil_payment::bill_import::{RowFault, RowFaults};
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::form_centre::answer::AnswerWrite;
use counterfoil_reconcile::refusal::Code;

use crate::files::FileError;
pub use import::import;
use lines::JsonLines;
use table::TableRows;

/// The longest line or cell, in bytes.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// An answer with the line it stands on.
#[derive(Debug)]
pub struct AnswerRow {
    /// From 1.
    pub line: u32,
    /// The answer.
    pub answer: AnswerWrite,
}

/// What could not be read.
#[derive(Debug)]
pub enum Bad {
    /// One row; the others can be read.
    Row(Vec<RowFault>),
    /// The file from here on, or its header: nothing of it may be imported.
    File(RowFaults),
}

/// The answers of a file, in its order.
#[derive(Debug)]
pub enum AnswerRows {
    /// JSON lines.
    Lines(JsonLines),
    /// A table.
    Table(TableRows),
}

/// Opens a file of answers.
///
/// # Errors
/// [`FileError`] when nothing of it can be read.
pub fn open(path: &Path) -> Result<AnswerRows, FileError> {
    let name = path.display().to_string();
    let unreadable = |source| FileError::Unreadable { name: name.clone(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut first = Vec::new();
    (&mut file).take(64).read_to_end(&mut first).map_err(unreadable)?;
    let text = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&first);
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Ok(AnswerRows::Table(TableRows::open(path)?));
    }
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    Ok(AnswerRows::Lines(JsonLines::new(BufReader::new(file))))
}

impl Iterator for AnswerRows {
    type Item = Result<AnswerRow, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            AnswerRows::Lines(lines) => lines.next(),
            AnswerRows::Table(table) => table.next(),
        }
    }
}

impl AnswerRows {
    /// A row that the centre refuses, as a fault of the file.
    pub fn fault(&self, line: u32, refusal: &Refusal) -> RowFault {
        let field = match refusal.refused() {
            Some(Code::AnswerUnhashable) => Field::Values,
            Some(Code::RevisionConflict) => Field::Expected,
            Some(Code::ScopeMismatch | Code::AnswerNotFound) => Field::Uuid,
            _ => Field::None,
        };
        let column = match self {
            AnswerRows::Lines(_) => field.member().to_owned(),
            AnswerRows::Table(table) => table.name(field),
        };
        let why = match refusal {
            Refusal::Coded { message, .. } => message.clone(),
            Refusal::Db(error) => error.to_string(),
        };
        RowFault { line, column, why }
    }
}

/// A field of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Uuid,
    Form,
    School,
    Version,
    Deleted,
    Values,
    Expected,
    /// The row as a whole.
    None,
}

impl Field {
    /// What JSON calls it.
    fn member(self) -> &'static str {
        match self {
            Field::Uuid => "answerUuid",
            Field::Form => "formUuid",
            Field::School => "schId",
            Field::Version => "formVersion",
            Field::Deleted => "isDeleted",
            Field::Values => "values",
            Field::Expected => "expectedRevision",
            Field::None => "",
        }
    }
}
