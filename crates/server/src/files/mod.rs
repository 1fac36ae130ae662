//! Reading CSV and XLSX files into rows of text cells with their lines.
//!
//! What a file is, is read off its content: people rename files. What the cells mean is not known
//! here.

pub mod written;

mod csv_rows;
mod xlsx_rows;
mod zip_size;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use counterfoil_payment::bill_import::{SheetRow, Unread};
use thiserror::Error;

use csv_rows::CsvRows;

/// The largest CSV file that is read: a million bills are 150 MB.
pub const MAX_CSV_BYTES: u64 = 256 * 1024 * 1024;
/// The largest XLSX file that is read; its rows are held in memory.
pub const MAX_XLSX_BYTES: u64 = 64 * 1024 * 1024;
/// The most that an XLSX file may unpack to.
pub const MAX_UNPACKED_BYTES: u64 = 1024 * 1024 * 1024;
/// The longest cell, in bytes. A longer one is a quotation mark that was never closed.
pub const MAX_CELL_BYTES: usize = 4096;
/// The most columns; spreadsheets have 16 384, our widest file has 12.
pub const MAX_COLUMNS: usize = 64;

/// Why a file cannot be read at all.
#[derive(Debug, Error)]
pub enum FileError {
    /// It is not there, or may not be read.
    #[error("{name} cannot be read")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is over one of the limits.
    #[error("{name} is too large: {what} are over the limit of {limit} bytes")]
    TooLarge {
        /// The file.
        name: String,
        /// What is.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It is neither CSV in UTF-8 nor XLSX.
    #[error("{name} {why}")]
    Format {
        /// The file.
        name: String,
        /// What it is instead.
        why: String,
    },
}

impl FileError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            FileError::Unreadable { .. } => "file-unreadable",
            FileError::TooLarge { .. } => "file-too-large",
            FileError::Format { .. } => "file-format",
        }
    }
}

/// The rows of a file, header first.
pub struct Sheet(Kind);

enum Kind {
    Csv(Box<CsvRows>),
    Xlsx(std::vec::IntoIter<Result<SheetRow, Unread>>),
}

impl std::fmt::Debug for Sheet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Csv(_) => "Sheet(csv)",
            Kind::Xlsx(_) => "Sheet(xlsx)",
        })
    }
}

impl Iterator for Sheet {
    type Item = Result<SheetRow, Unread>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Kind::Csv(rows) => rows.next(),
            Kind::Xlsx(rows) => rows.next(),
        }
    }
}

/// Opens a CSV file or the first sheet of an XLSX file.
///
/// # Errors
/// [`FileError`] when nothing of it can be read.
pub fn open(path: &Path) -> Result<Sheet, FileError> {
    open_wide(path, MAX_CELL_BYTES)
}

/// The same with another limit for the cells of a CSV file: a document may stand in one.
///
/// # Errors
/// As [`open`].
pub fn open_wide(path: &Path, max_cell: usize) -> Result<Sheet, FileError> {
    let name = path.display().to_string();
    let unreadable = |source| FileError::Unreadable { name: name.clone(), source };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    read(&name, Box::new(BufReader::new(file)), length, max_cell)
}

/// Reads a file that was sent: `name` is only for messages.
///
/// # Errors
/// [`FileError`] when nothing of it can be read.
pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<Sheet, FileError> {
    let length = bytes.len() as u64;
    read(name, Box::new(Cursor::new(bytes)), length, MAX_CELL_BYTES)
}

trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

fn read(
    name: &str,
    mut source: Box<dyn Source>,
    length: u64,
    max_cell: usize,
) -> Result<Sheet, FileError> {
    let unreadable = |source| FileError::Unreadable { name: name.to_owned(), source };
    let format = |why: &str| FileError::Format { name: name.to_owned(), why: why.to_owned() };
    let too_large = |what, limit| FileError::TooLarge { name: name.to_owned(), what, limit };
    let mut magic = Vec::new();
    (&mut source).take(4).read_to_end(&mut magic).map_err(unreadable)?;
    source.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    match magic.as_slice() {
        b"PK\x03\x04" if length > MAX_XLSX_BYTES => Err(too_large("its bytes", MAX_XLSX_BYTES)),
        b"PK\x03\x04" => {
            let unpacked = zip_size::unpacked(&mut source).map_err(unreadable)?;
            let unpacked = unpacked.ok_or_else(|| format("is a damaged XLSX file"))?;
            if unpacked > MAX_UNPACKED_BYTES {
                return Err(too_large("its bytes once unpacked", MAX_UNPACKED_BYTES));
            }
            source.seek(SeekFrom::Start(0)).map_err(unreadable)?;
            let rows = xlsx_rows::read(source).map_err(|why| format(&why))?;
            Ok(Sheet(Kind::Xlsx(rows.into_iter())))
        }
        b"\xd0\xcf\x11\xe0" => Err(format("is an old or a protected Excel file: save it as XLSX")),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Err(format("is in UTF-16: save it as \"CSV UTF-8\""))
        }
        _ if length > MAX_CSV_BYTES => Err(too_large("its bytes", MAX_CSV_BYTES)),
        _ => Ok(Sheet(Kind::Csv(Box::new(CsvRows::new(source, max_cell))))),
    }
}
