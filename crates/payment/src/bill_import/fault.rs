//! What is wrong with a file, by line and column.

use std::fmt;

/// Faults shown at most. All are counted.
pub const MAX_FAULTS: usize = 200;

/// One thing that is wrong with one row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowFault {
    /// The line of the file on which the row starts, from 1.
    pub line: u32,
    /// The column as the file's header calls it; empty when the row as a whole is meant.
    pub column: String,
    /// What is wrong, as the end of a sentence about the column.
    pub why: String,
}

impl RowFault {
    /// A fault of a whole row.
    pub fn of_row(line: u32, why: impl Into<String>) -> RowFault {
        RowFault { line, column: String::new(), why: why.into() }
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column.as_str() {
            "" => write!(f, "line {}: {}", self.line, self.why),
            column => write!(f, "line {}, {column}: {}", self.line, self.why),
        }
    }
}

/// The first faults of a file by line, and the number of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFaults {
    shown: Vec<RowFault>,
    total: u64,
}

impl RowFaults {
    /// Notes a fault. A file of a million bad rows costs no more memory than one of a few hundred.
    pub fn push(&mut self, fault: RowFault) {
        self.total += 1;
        self.shown.push(fault);
        if self.shown.len() >= 2 * MAX_FAULTS {
            self.settle();
        }
    }

    /// Puts the faults in the order of the file and drops those beyond [`MAX_FAULTS`].
    pub fn settle(&mut self) {
        // Stable: within a line the faults stay in the order of the columns.
        self.shown.sort_by_key(|fault| fault.line);
        self.shown.truncate(MAX_FAULTS);
    }

    /// The first faults, by line.
    pub fn shown(&self) -> &[RowFault] {
        &self.shown
    }

    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

impl fmt::Display for RowFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.total, self.shown.first()) {
            (1, Some(only)) => only.fmt(f),
            (total, Some(first)) => write!(f, "{total} faults, the first in {first}"),
            (_, None) => f.write_str("no fault"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_faults_the_first_by_line_are_shown_and_all_are_counted() {
        let mut faults = RowFaults::default();
        for line in (1..=10_000).rev() {
            faults.push(RowFault::of_row(line, "is bad"));
        }
        faults.settle();
        assert_eq!(faults.total(), 10_000);
        assert_eq!(faults.shown().len(), MAX_FAULTS);
        assert_eq!(faults.shown()[0].line, 1);
        assert_eq!(faults.shown()[MAX_FAULTS - 1].line as usize, MAX_FAULTS);
        assert_eq!(faults.to_string(), "10000 faults, the first in line 1: is bad");
    }
}
