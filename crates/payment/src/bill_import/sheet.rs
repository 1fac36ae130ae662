//! Rows of text cells, and the header that says what they hold.

use super::{RowFault, RowFaults};

/// One row of text cells, as CSV and XLSX readers give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetRow {
    /// The line of the file on which the row starts, from 1.
    pub line: u32,
    /// Its cells.
    pub cells: Vec<String>,
}

/// What could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// One row; the others can be read.
    Row(RowFault),
    /// The file from here on: nothing of it may be imported, not even in part.
    File(RowFault),
}

/// A column of a kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its English header.
    pub name: &'static str,
    /// Its Chinese header.
    pub chinese: &'static str,
}

/// Where each column of a file stands.
#[derive(Debug)]
pub(super) struct Header {
    /// As the file calls them, for messages.
    names: Vec<String>,
    /// By column of the kind: its position in the file.
    positions: Vec<usize>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl Header {
    /// Finds every column, in any order, by its English or Chinese name; refuses unknown,
    /// duplicate and missing ones by name.
    pub(super) fn read(columns: &[Column], row: &SheetRow) -> Result<Header, RowFaults> {
        let mut faults = RowFaults::default();
        let mut fault = |column: &str, why: String| {
            faults.push(RowFault { line: row.line, column: column.to_owned(), why });
        };
        let names: Vec<String> = row.cells.iter().map(|cell| clean(cell).to_owned()).collect();
        let mut positions = vec![None; columns.len()];
        for (at, name) in names.iter().enumerate() {
            let known = columns.iter().position(|c| c.name == name || c.chinese == name);
            match known {
                None if name.is_empty() => {
                    fault("", format!("column {} of the header has no name", at + 1));
                }
                None => fault(name, format!("is no column here; known are {}", list(columns))),
                Some(column) if positions[column].is_some() => {
                    fault(name, "is in the header twice".into());
                }
                Some(column) => positions[column] = Some(at),
            }
        }
        for (column, _) in columns.iter().zip(&positions).filter(|(_, at)| at.is_none()) {
            fault(column.name, format!("({}) is missing from the header", column.chinese));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Header { names, positions: positions.into_iter().flatten().collect() })
    }

    /// How many columns a row has.
    pub(super) fn width(&self) -> usize {
        self.names.len()
    }

    /// What the file calls the column at a position.
    pub(super) fn name_at(&self, position: usize) -> &str {
        self.names.get(position).map_or("", String::as_str)
    }

    /// What the file calls a column of the kind.
    pub(super) fn name(&self, column: usize) -> &str {
        self.name_at(self.position(column))
    }

    /// Where a column of the kind stands.
    pub(super) fn position(&self, column: usize) -> usize {
        self.positions[column]
    }
}

/// A cell without what surrounds it, a byte order mark included.
pub(super) fn clean(cell: &str) -> &str {
    cell.trim_start_matches(BYTE_ORDER_MARK).trim()
}

fn list(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: [Column; 2] = [
        Column { name: "station_id", chinese: "电站编号" },
        Column { name: "bill_yearmonth", chinese: "账期" },
    ];

    fn read(cells: &[&str]) -> Result<Header, Vec<String>> {
        let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
        let header = Header::read(&KIND, &SheetRow { line: 1, cells });
        header.map_err(|faults| faults.shown().iter().map(RowFault::to_string).collect())
    }

    #[test]
    fn a_header_may_be_english_or_chinese_in_any_order_after_a_byte_order_mark() {
        let header = read(&["\u{feff}账期", " station_id "]).unwrap();
        assert_eq!((header.position(0), header.position(1)), (1, 0));
        assert_eq!(header.name(1), "账期");
    }

    #[test]
    fn unknown_duplicate_unnamed_and_missing_columns_are_refused_by_name() {
        assert_eq!(
            read(&["station_id", "电站编号", "colour", ""]).unwrap_err(),
            [
                "line 1, 电站编号: is in the header twice",
                "line 1, colour: is no column here; known are station_id, bill_yearmonth",
                "line 1: column 4 of the header has no name",
                "line 1, bill_yearmonth: (账期) is missing from the header",
            ]
        );
    }
}
