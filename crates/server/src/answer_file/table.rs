//! Answers as a table: one a row, its values as JSON text in a cell.

use std::path::Path;

use counterfoil_payment::bill_import::{RowFault, RowFaults, SheetRow, Unread};
use counterfoil_reconcile::form_centre::answer::AnswerWrite;
use counterfoil_reconcile::form_centre::write::hashable;

use super::{AnswerRow, Bad, Field, MAX_ANSWER_BYTES};
use crate::files::{self, FileError, Sheet};

/// The columns: English, Chinese, and whether the header must have it.
const COLUMNS: [(Field, &str, &str, bool); 7] = [
    (Field::Uuid, "answer_uuid", "答卷编号", false),
    (Field::Form, "form_uuid", "表单编号", true),
    (Field::School, "sch_id", "学校编号", true),
    (Field::Version, "form_version", "表单版本", false),
    (Field::Deleted, "is_deleted", "已删除", false),
    (Field::Values, "values", "答卷内容", true),
    (Field::Expected, "expected_revision", "期望修订号", false),
];

/// Reads row by row.
#[derive(Debug)]
pub struct TableRows {
    sheet: Sheet,
    /// By position: the field, and what the file calls it.
    header: Option<Vec<(Field, String)>>,
    is_over: bool,
}

impl TableRows {
    pub(super) fn open(path: &Path) -> Result<TableRows, FileError> {
        let sheet = files::open_wide(path, MAX_ANSWER_BYTES)?;
        Ok(TableRows { sheet, header: None, is_over: false })
    }

    /// What the file calls a field.
    pub(super) fn name(&self, field: Field) -> String {
        let header = self.header.as_deref().unwrap_or_default();
        let own = header.iter().find(|(known, _)| *known == field);
        own.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    fn answer(&self, row: &SheetRow, header: &[(Field, String)]) -> Result<AnswerRow, Bad> {
        let line = row.line;
        if row.cells.len() > header.len() {
            let why = format!("has {} cells, the header {}", row.cells.len(), header.len());
            return Err(Bad::Row(vec![RowFault::of_row(line, why)]));
        }
        let cell = |field: Field| {
            let at = header.iter().position(|(known, _)| *known == field)?;
            row.cells.get(at).map(|cell| cell.trim()).filter(|cell| !cell.is_empty())
        };
        let mut faults = Vec::new();
        let mut fault = |field: Field, why: &str| {
            faults.push(RowFault { line, column: self.name(field), why: why.to_owned() });
        };
        let mut number = |field: Field| {
            let number = cell(field).map(str::parse::<i64>);
            if matches!(number, Some(Err(_))) {
                fault(field, "is no integer");
            }
            number.and_then(Result::ok)
        };
        let (version, expected) = (number(Field::Version), number(Field::Expected));
        let is_deleted = match cell(Field::Deleted).map(str::to_lowercase).as_deref() {
            None | Some("0" | "false" | "no" | "否") => false,
            Some("1" | "true" | "yes" | "是") => true,
            Some(_) => {
                fault(Field::Deleted, "is neither true nor false");
                false
            }
        };
        for field in [Field::Form, Field::School] {
            if cell(field).is_none() {
                fault(field, "is missing");
            }
        }
        let values = cell(Field::Values);
        if values.is_none() && !is_deleted {
            fault(Field::Values, "is missing; write null for an answer without values");
        }
        let text = |field| cell(field).unwrap_or_default().to_owned();
        let answer = AnswerWrite {
            uuid: cell(Field::Uuid).map(str::to_owned),
            form: text(Field::Form),
            school: text(Field::School),
            version,
            values: values.filter(|_| !is_deleted).map(str::to_owned),
            expected,
        };
        if let Err(unhashable) = hashable(&answer) {
            let path = unhashable.path.strip_prefix("/values").unwrap_or(&unhashable.path);
            let why = match path {
                "" => unhashable.reason.to_string(),
                path => format!("{path}: {}", unhashable.reason),
            };
            fault(Field::Values, &why);
        }
        if faults.is_empty() { Ok(AnswerRow { line, answer }) } else { Err(Bad::Row(faults)) }
    }
}

/// Finds the columns by their English or Chinese names, in any order.
fn read_header(row: &SheetRow) -> Result<Vec<(Field, String)>, RowFaults> {
    let mut faults = RowFaults::default();
    let mut fault = |column: &str, why: &str| {
        faults.push(RowFault { line: row.line, column: column.to_owned(), why: why.to_owned() });
    };
    let mut header: Vec<(Field, String)> = Vec::new();
    for cell in &row.cells {
        let name = cell.trim_start_matches('\u{feff}').trim();
        let known = COLUMNS.iter().find(|(_, english, own, _)| name == *english || name == *own);
        match known {
            None => {
                let names = COLUMNS.map(|(_, english, _, _)| english).join(", ");
                fault(name, &format!("is no column here; known are {names}"));
            }
            Some((field, ..)) if header.iter().any(|(seen, _)| seen == field) => {
                fault(name, "is in the header twice");
            }
            Some((field, ..)) => header.push((*field, name.to_owned())),
        }
    }
    for (field, english, own, is_needed) in COLUMNS {
        if is_needed && header.iter().all(|(seen, _)| *seen != field) {
            fault(english, &format!("({own}) is missing from the header"));
        }
    }
    if faults.is_empty() { Ok(header) } else { Err(faults) }
}

impl Iterator for TableRows {
    type Item = Result<AnswerRow, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let row = match self.sheet.next() {
                None => {
                    self.is_over = true;
                    let has_header = self.header.is_some();
                    let mut faults = RowFaults::default();
                    faults.push(RowFault::of_row(1, "the file has no header"));
                    return (!has_header).then_some(Err(Bad::File(faults)));
                }
                Some(Err(Unread::Row(fault))) if self.header.is_some() => {
                    return Some(Err(Bad::Row(vec![fault])));
                }
                Some(Err(Unread::Row(fault) | Unread::File(fault))) => {
                    self.is_over = true;
                    let mut faults = RowFaults::default();
                    faults.push(fault);
                    return Some(Err(Bad::File(faults)));
                }
                Some(Ok(row)) if row.cells.iter().all(|cell| cell.trim().is_empty()) => continue,
                Some(Ok(row)) => row,
            };
            let Some(header) = &self.header else {
                match read_header(&row) {
                    Ok(header) => self.header = Some(header),
                    Err(faults) => {
                        self.is_over = true;
                        return Some(Err(Bad::File(faults)));
                    }
                }
                continue;
            };
            return Some(self.answer(&row, header));
        }
        None
    }
}
