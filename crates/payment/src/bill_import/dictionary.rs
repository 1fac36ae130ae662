//! Importing dictionary entries, such as which asset managers the treasury pays for.

use std::collections::HashMap;

use counterfoil_db::{Db, Query, Read, Tx, sql, transact};

use super::bill_plan::Step;
use super::bill_row::{LONGEST_CODE, LONGEST_NAME};
use super::cells::{Cells, Letters};
use super::gather::{FileRow, Gathered, gather};
use super::turn::take_turn;
use super::{Column, ImportOptions, Imported, ROWS_A_CHUNK, RowFaults, SheetRow, Unread};
use crate::PaymentError;

/// An entry as a file gives it. Type and key name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// The line it stands on.
    pub line: u32,
    /// Its dictionary, such as `ASSET_MANAGER`.
    pub dict_type: String,
    /// Its key.
    pub key: String,
    /// What the key stands for.
    pub value: String,
    /// 1 normal, 0 not.
    pub status: i64,
}

const TYPE: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const STATUS: usize = 3;

const COLUMNS: [Column; 4] = [
    Column { name: "dict_type", chinese: "字典类型" },
    Column { name: "dict_key", chinese: "字典键" },
    Column { name: "dict_value", chinese: "字典值" },
    Column { name: "status", chinese: "状态" },
];

const STATUSES: [(&str, i64); 4] = [("1", 1), ("0", 0), ("正常", 1), ("停用", 0)];

impl FileRow for EntryRow {
    const COLUMNS: &'static [Column] = &COLUMNS;
    const KEY: usize = KEY;

    fn key(cells: &Cells<'_>) -> Option<String> {
        Some(format!("{}:{}", cells.get(TYPE), cells.get(KEY)))
    }

    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<EntryRow> {
        let dict_type = cells.text(TYPE, LONGEST_CODE, Letters::Code, faults);
        let key = cells.text(KEY, LONGEST_CODE, Letters::Code, faults);
        let value = cells.text(VALUE, LONGEST_NAME, Letters::Any, faults);
        let status = cells.choice(STATUS, &STATUSES, faults);
        Some(EntryRow {
            line: cells.line(),
            dict_type: dict_type?,
            key: key?,
            value: value?,
            status: status?,
        })
    }

    fn line(&self) -> u32 {
        self.line
    }
}

/// Imports a file of dictionary entries in one transaction.
///
/// # Errors
/// [`PaymentError::RowsRefused`] with every fault by line and column; then nothing was written.
pub async fn import_dictionary(
    db: &Db,
    sheet: impl Iterator<Item = Result<SheetRow, Unread>> + Send,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let gathered = gather::<EntryRow>(sheet)?;
    transact!(attempt(db, &gathered, options))
}

async fn attempt(
    db: &Db,
    gathered: &Gathered<EntryRow>,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let mut tx = db.begin().await?;
    take_turn(&mut tx).await?;
    let refusals = gathered.refusals.clone();
    let mut imported = Imported::default();
    for rows in gathered.rows.chunks(ROWS_A_CHUNK) {
        let stored = stored(&tx, rows).await?;
        let step = |row: &EntryRow| match stored.get(&(row.dict_type.clone(), row.key.clone())) {
            None => Some(Step::Insert),
            Some((_, value, status)) if *value == row.value && *status == row.status => {
                Some(Step::Keep)
            }
            Some((id, _, _)) => Some(Step::Update(*id)),
        };
        let steps: Vec<Option<Step>> = rows.iter().map(step).collect();
        imported.count(&steps);
        for (row, step) in rows.iter().zip(&steps) {
            write(&mut tx, row, step.as_ref()).await?;
        }
    }
    let refusals = refusals.allow(options)?;
    imported.leave_out(refusals);
    tx.commit("import.dictionary").await?;
    Ok(imported)
}

/// Type and key to id, value and status.
type Stored = HashMap<(String, String), (i64, String, i64)>;

async fn stored(tx: &Tx, rows: &[EntryRow]) -> Result<Stored, PaymentError> {
    let query = Query::new(
        "SELECT id, dict_type, dict_key, dict_value, CASE WHEN deleted = 0 THEN status ELSE -1 END
           AS standing
         FROM sys_dict WHERE dict_key IN :keys",
    )
    .bind_list("keys", rows.iter().map(|row| row.key.as_str()));
    let mut stored = Stored::new();
    for row in tx.rows(query).await? {
        let key = (row.text("dict_type")?, row.text("dict_key")?);
        let entry = (row.int("id")?, row.text("dict_value")?, row.int("standing")?);
        stored.insert(key, entry);
    }
    Ok(stored)
}

async fn write(tx: &mut Tx, row: &EntryRow, step: Option<&Step>) -> Result<(), PaymentError> {
    let now = tx.now();
    let query = match step {
        Some(Step::Insert) => sql!(
            "INSERT INTO sys_dict
               (dict_type, dict_key, dict_value, status, create_time, update_time)
             VALUES (:dict_type, :key, :value, :status, :now, :now)",
            dict_type = &row.dict_type,
            key = &row.key,
            value = &row.value,
            status = row.status,
            now = now,
        ),
        Some(Step::Update(id)) => sql!(
            "UPDATE sys_dict
             SET dict_value = :value, status = :status, deleted = 0, update_time = :now
             WHERE id = :id",
            value = &row.value,
            status = row.status,
            now = now,
            id = *id,
        ),
        Some(Step::Keep) | None => return Ok(()),
    };
    tx.execute(query).await?;
    Ok(())
}
