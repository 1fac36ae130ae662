//! Importing a file of answers: one transaction, row by row in the order of the file.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use counterfoil_db::{Db, Retry};
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{ImportOptions, Imported, RowFault, RowFaults};
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::form_centre::answer::AnswerWrite;
use counterfoil_reconcile::form_centre::write::{Batch, MAX_BATCH, Outcome, Same, new_answer_uuid};
use counterfoil_reconcile::refusal::Code;

use super::{AnswerRow, AnswerRows, Bad, open};

/// Bytes of values held before they are written.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;
/// How often an import starts again because an answer came into being while it ran.
const MAX_STARTS: u32 = 3;

/// Imports the answers of a file; `count` is called once a row. An answer that is stored just so
/// stays as it is; one that stands twice in the file is written twice.
///
/// # Errors
/// The file's, or every bad row by line and column: then nothing was written.
pub async fn import(
    db: &Db,
    path: &Path,
    options: ImportOptions,
    actor: &str,
    count: impl Fn(),
) -> Result<Imported> {
    let (mut retry, mut starts) = (Retry::default(), 1);
    loop {
        match start(db, path, options, actor, &count).await {
            Err(Trouble::Refusal(Refusal::Coded { code: Code::RevisionConflict, .. }))
                if starts < MAX_STARTS =>
            {
                starts += 1;
            }
            Err(Trouble::Refusal(refusal)) if retry.again(&refusal).await => {}
            Err(Trouble::Refusal(refusal)) => return Err(refusal.into()),
            Err(Trouble::Other(error)) => return Err(error),
            Ok(imported) => return Ok(imported),
        }
    }
}

/// Why an import did not come to its end.
enum Trouble {
    /// The centre's word on all of it.
    Refusal(Refusal),
    /// The file's.
    Other(anyhow::Error),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Refusal(refusal)
    }
}

async fn start(
    db: &Db,
    path: &Path,
    options: ImportOptions,
    actor: &str,
    count: &impl Fn(),
) -> Result<Imported, Trouble> {
    let mut rows = open(path).map_err(|error| Trouble::Other(error.into()))?;
    let mut import = Import {
        batch: Batch::begin(db, actor, Same::IsLeft).await?,
        held: Held::default(),
        imported: Imported::default(),
    };
    while let Some(row) = rows.next() {
        count();
        match row {
            Ok(row) => {
                if !import.held.fits(&row.answer) {
                    import.write(&rows).await?;
                }
                import.held.take(row);
            }
            Err(Bad::Row(faults)) => import.refuse(faults),
            Err(Bad::File(faults)) => return Err(refused(faults)),
        }
    }
    import.write(&rows).await?;
    let Import { batch, mut imported, .. } = import;
    imported.faults.settle();
    if imported.faults.is_empty() || options.partial {
        batch.commit("answer.import").await?;
        return Ok(imported);
    }
    Err(refused(imported.faults))
}

fn refused(faults: RowFaults) -> Trouble {
    Trouble::Other(PaymentError::RowsRefused(faults).into())
}

struct Import {
    batch: Batch,
    held: Held,
    imported: Imported,
}

impl Import {
    fn refuse(&mut self, faults: Vec<RowFault>) {
        self.imported.refused += 1;
        faults.into_iter().for_each(|fault| self.imported.faults.push(fault));
    }

    /// Writes what is held.
    async fn write(&mut self, rows: &AnswerRows) -> Result<(), Refusal> {
        let held = std::mem::take(&mut self.held);
        let outcomes = self.batch.write(&held.answers).await?;
        for (line, outcome) in held.lines.into_iter().zip(outcomes) {
            match outcome {
                Ok(put) => match put.outcome {
                    Outcome::Created => self.imported.created += 1,
                    Outcome::Changed => self.imported.updated += 1,
                    Outcome::Unchanged => self.imported.unchanged += 1,
                },
                Err(refusal) => self.refuse(vec![rows.fault(line, &refusal)]),
            }
        }
        Ok(())
    }
}

/// Rows that wait to be written in one go; no answer stands twice among them.
#[derive(Default)]
struct Held {
    answers: Vec<AnswerWrite>,
    lines: Vec<u32>,
    uuids: BTreeSet<String>,
    bytes: usize,
}

impl Held {
    fn fits(&self, answer: &AnswerWrite) -> bool {
        let is_new = answer.uuid.as_ref().is_none_or(|uuid| !self.uuids.contains(uuid));
        is_new && self.answers.len() < MAX_BATCH && self.bytes < MAX_HELD_BYTES
    }

    fn take(&mut self, row: AnswerRow) {
        let AnswerRow { line, mut answer } = row;
        let uuid = answer.uuid.get_or_insert_with(new_answer_uuid);
        self.uuids.insert(uuid.clone());
        self.bytes += answer.values.as_ref().map_or(0, String::len);
        self.lines.push(line);
        self.answers.push(answer);
    }
}
