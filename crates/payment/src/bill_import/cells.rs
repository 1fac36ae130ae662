//! Reading the cells of a row as what they must be.

use counterfoil_protocol::{BillMonth, Fen};

use super::sheet::{Header, clean};
use super::{FIRST_GENERATED_ID, RowFault, RowFaults, SheetRow};

/// A row under its header. Every reader notes what is wrong and answers `None` for it.
pub(super) struct Cells<'a> {
    header: &'a Header,
    row: &'a SheetRow,
}

/// What a text may hold.
#[derive(Clone, Copy)]
pub(super) enum Letters {
    /// Whatever can be printed.
    Any,
    /// Letters, digits and `-._/`: codes and numbers that other systems read too.
    Code,
}

impl<'a> Cells<'a> {
    /// Checks the row's width; blank cells beyond the header do no harm.
    pub(super) fn new(
        header: &'a Header,
        row: &'a SheetRow,
        faults: &mut RowFaults,
    ) -> Option<Cells<'a>> {
        let filled = row.cells.iter().rposition(|cell| !clean(cell).is_empty());
        if filled.is_some_and(|last| last >= header.width()) {
            let why = format!("has a cell beyond the header's {} columns", header.width());
            faults.push(RowFault::of_row(row.line, why));
            return None;
        }
        if row.cells.len() < header.width() {
            faults.push(RowFault {
                line: row.line,
                column: header.name_at(row.cells.len()).to_owned(),
                why: format!(
                    "is not there: the row has {} cells, the header {}",
                    row.cells.len(),
                    header.width()
                ),
            });
            return None;
        }
        Some(Cells { header, row })
    }

    /// The row's line.
    pub(super) fn line(&self) -> u32 {
        self.row.line
    }

    /// What a column holds, without surrounding blanks.
    pub(super) fn get(&self, column: usize) -> &'a str {
        clean(&self.row.cells[self.header.position(column)])
    }

    /// Notes what is wrong with a column.
    pub(super) fn fault(&self, column: usize, why: impl Into<String>, faults: &mut RowFaults) {
        let column = self.header.name(column).to_owned();
        faults.push(RowFault { line: self.row.line, column, why: why.into() });
    }

    /// A text that must be there.
    pub(super) fn text(
        &self,
        column: usize,
        longest: usize,
        letters: Letters,
        faults: &mut RowFaults,
    ) -> Option<String> {
        match self.maybe_text(column, longest, letters, faults)? {
            Some(text) => Some(text),
            None => {
                self.fault(column, "must not be blank", faults);
                None
            }
        }
    }

    /// A text that may be blank: `Some(None)`.
    pub(super) fn maybe_text(
        &self,
        column: usize,
        longest: usize,
        letters: Letters,
        faults: &mut RowFaults,
    ) -> Option<Option<String>> {
        let text = self.get(column);
        match defect(text, longest, letters) {
            Some(why) => {
                self.fault(column, why, faults);
                None
            }
            None => Some((!text.is_empty()).then(|| text.to_owned())),
        }
    }

    /// Yuan that must be there.
    pub(super) fn money(&self, column: usize, faults: &mut RowFaults) -> Option<Fen> {
        match self.maybe_money(column, faults)? {
            Some(fen) => Some(fen),
            None => {
                self.fault(column, "must not be blank", faults);
                None
            }
        }
    }

    /// Yuan that may be blank: `Some(None)`.
    pub(super) fn maybe_money(&self, column: usize, faults: &mut RowFaults) -> Option<Option<Fen>> {
        let text = self.get(column);
        if text.is_empty() {
            return Some(None);
        }
        match Fen::from_yuan(text) {
            Ok(fen) => Some(Some(fen)),
            Err(why) => {
                self.fault(column, format!("{} {why}", quoted(text)), faults);
                None
            }
        }
    }

    /// Refuses what is below zero.
    pub(super) fn not_negative(
        &self,
        column: usize,
        fen: Option<Fen>,
        faults: &mut RowFaults,
    ) -> Option<Fen> {
        let fen = fen?;
        if fen < Fen::ZERO {
            self.fault(column, format!("{fen} must not be negative"), faults);
            return None;
        }
        Some(fen)
    }

    /// A month.
    pub(super) fn month(&self, column: usize, faults: &mut RowFaults) -> Option<BillMonth> {
        let text = self.get(column);
        text.parse()
            .map_err(|why| self.fault(column, format!("{} {why}", quoted(text)), faults))
            .ok()
    }

    /// An id that a file may give: positive, below those that the database generates.
    pub(super) fn id(&self, column: usize, faults: &mut RowFaults) -> Option<i64> {
        let text = self.get(column);
        let id = text.parse::<i64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let id = id.filter(|id| (1..FIRST_GENERATED_ID).contains(id));
        if id.is_none() {
            let why = format!(
                "{} is no id: write a whole number from 1 to {}",
                quoted(text),
                FIRST_GENERATED_ID - 1
            );
            self.fault(column, why, faults);
        }
        id
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &self,
        column: usize,
        choices: &[(&str, T)],
        faults: &mut RowFaults,
    ) -> Option<T> {
        let text = self.get(column);
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if chosen.is_none() {
            let words = choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            self.fault(column, format!("{} is none of {words}", quoted(text)), faults);
        }
        chosen
    }
}

/// Characters of a cell shown in a message at most.
const SHOWN: usize = 40;

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_debug())
}

fn defect(text: &str, longest: usize, letters: Letters) -> Option<String> {
    if text.chars().count() > longest {
        return Some(format!("{} is longer than {longest} characters", quoted(text)));
    }
    if let Some(letter) = text.chars().find(|letter| letter.is_control()) {
        return Some(format!("holds the control character {}", letter.escape_unicode()));
    }
    if text.contains('\u{fffd}') {
        return Some("holds a character that was damaged before it came here".into());
    }
    let is_code = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    match letters {
        Letters::Code if !text.chars().all(is_code) => {
            Some(format!("{} may hold only letters, digits and -._/", quoted(text)))
        }
        _ => None,
    }
}
