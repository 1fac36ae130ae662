//! One walk over a file: cells in, typed rows and faults out.

use std::collections::{HashMap, HashSet};

use super::cells::Cells;
use super::sheet::{Header, clean};
use super::{Column, ImportOptions, MAX_ROWS, RowFault, RowFaults, SheetRow, Unread};
use crate::PaymentError;

/// A kind of row.
pub(super) trait FileRow: Sized + Send + Sync {
    /// Its columns.
    const COLUMNS: &'static [Column];
    /// The column that is named when a row is there twice.
    const KEY: usize;

    /// What makes the row this row; `None` while that is unreadable. Also asked of rows with
    /// faults: of two rows for one bill neither is the right one.
    fn key(cells: &Cells<'_>) -> Option<String>;

    /// The row, or its faults.
    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<Self>;

    /// The line it stands on.
    fn line(&self) -> u32;
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct Gathered<T> {
    /// The rows without a fault in themselves.
    pub rows: Vec<T>,
    /// The others.
    pub refusals: Refusals,
    /// The header, for what is found wrong later.
    pub header: Header,
}

/// Rows that are not imported.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusals {
    /// What is wrong with them.
    pub faults: RowFaults,
    /// Their lines.
    pub lines: HashSet<u32>,
}

impl Refusals {
    /// Notes what is wrong with a column of a row.
    pub(super) fn refuse(
        &mut self,
        header: &Header,
        line: u32,
        column: usize,
        why: impl Into<String>,
    ) {
        let column = header.name(column).to_owned();
        self.faults.push(RowFault {
            line,
            column,
            why: why.into(),
        });
        self.lines.insert(line);
    }

    /// Whether a row is among them.
    pub(super) fn holds(&self, row: &impl FileRow) -> bool {
        self.lines.contains(&row.line())
    }

    /// Lets the import go on: always without faults, with faults only where a part will do.
    pub(super) fn allow(mut self, options: ImportOptions) -> Result<Refusals, PaymentError> {
        self.faults.settle();
        match self.faults.is_empty() || options.partial {
            true => Ok(self),
            false => Err(PaymentError::RowsRefused(self.faults)),
        }
    }
}

/// Reads a whole file.
///
/// # Errors
/// [`PaymentError::RowsRefused`] for what leaves nothing to import, not even in part: no header or
/// a wrong one, a file that breaks off, too many rows.
pub(super) fn gather<T: FileRow>(
    mut sheet: impl Iterator<Item = Result<SheetRow, Unread>>,
) -> Result<Gathered<T>, PaymentError> {
    let header = header::<T>(&mut sheet)?;
    let mut walk = Walk::<T> {
        gathered: Gathered {
            rows: Vec::new(),
            refusals: Refusals::default(),
            header,
        },
        first_lines: HashMap::new(),
        doubles: HashSet::new(),
    };
    let mut count = 0_u32;
    for row in sheet {
        count += 1;
        if count > MAX_ROWS {
            return Err(only(RowFault::of_row(
                0,
                format!("the file has over {MAX_ROWS} rows"),
            )));
        }
        match row {
            Ok(row) if is_blank(&row) => {}
            Ok(row) => walk.take(&row),
            Err(Unread::Row(fault)) => {
                walk.gathered.refusals.lines.insert(fault.line);
                walk.gathered.refusals.faults.push(fault);
            }
            Err(Unread::File(fault)) => return Err(only(fault)),
        }
    }
    let mut gathered = walk.gathered;
    let Gathered { rows, refusals, .. } = &mut gathered;
    // A first row was taken as good before its double came.
    rows.retain(|row| !refusals.holds(row));
    Ok(gathered)
}

fn header<T: FileRow>(
    sheet: &mut impl Iterator<Item = Result<SheetRow, Unread>>,
) -> Result<Header, PaymentError> {
    for row in sheet {
        match row {
            Ok(row) if is_blank(&row) => {}
            Ok(row) => {
                let header = Header::read(T::COLUMNS, &row);
                return header.map_err(PaymentError::RowsRefused);
            }
            Err(Unread::Row(fault) | Unread::File(fault)) => return Err(only(fault)),
        }
    }
    Err(only(RowFault::of_row(
        1,
        "the file is empty: its first row must name the columns",
    )))
}

struct Walk<T> {
    gathered: Gathered<T>,
    first_lines: HashMap<String, u32>,
    /// First lines whose key came again, so that their fault is noted once.
    doubles: HashSet<u32>,
}

impl<T: FileRow> Walk<T> {
    fn take(&mut self, row: &SheetRow) {
        let Gathered {
            refusals: Refusals { faults, .. },
            header,
            ..
        } = &mut self.gathered;
        let known = faults.total();
        let parsed =
            Cells::new(header, row, faults).map(|cells| (T::key(&cells), T::parse(&cells, faults)));
        let is_good = faults.total() == known;
        if let Some((key, parsed)) = parsed {
            if let Some(key) = key {
                self.note_key(key, row.line);
            }
            if is_good && let Some(parsed) = parsed {
                self.gathered.rows.push(parsed);
                return;
            }
        }
        self.gathered.refusals.lines.insert(row.line);
    }

    fn note_key(&mut self, key: String, line: u32) {
        let first = *self.first_lines.entry(key).or_insert(line);
        if first == line {
            return;
        }
        let Gathered {
            refusals, header, ..
        } = &mut self.gathered;
        refusals.refuse(header, line, T::KEY, format!("is on line {first} already"));
        if self.doubles.insert(first) {
            refusals.refuse(header, first, T::KEY, format!("is on line {line} again"));
        }
    }
}

fn is_blank(row: &SheetRow) -> bool {
    row.cells.iter().all(|cell| clean(cell).is_empty())
}

fn only(fault: RowFault) -> PaymentError {
    let mut faults = RowFaults::default();
    faults.push(fault);
    PaymentError::RowsRefused(faults)
}
