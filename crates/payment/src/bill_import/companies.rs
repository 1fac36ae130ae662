//! Importing project companies.

use std::collections::HashMap;

use counterfoil_db::{Bind, Db, Query, Read, Text, Tx, transact};

use super::bill_plan::Step;
use super::bill_row::{LONGEST_CODE, LONGEST_NAME};
use super::bill_write::{insert, update};
use super::cells::{Cells, Letters};
use super::gather::{FileRow, Gathered, gather};
use super::turn::take_turn;
use super::{Column, ImportOptions, Imported, ROWS_A_CHUNK, RowFaults, SheetRow, Unread};
use crate::PaymentError;

/// A project company as a file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyRow {
    /// The line it stands on.
    pub line: u32,
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Who manages its assets: a key of the dictionary ASSET_MANAGER.
    pub asset_manager_code: Option<String>,
    /// The account it pays from.
    pub payer_account: Option<String>,
    /// Its organisation in the review centre.
    pub organisation: String,
    /// Its tenant in the review centre.
    pub tenant: String,
}

const ID: usize = 0;
const NAME: usize = 1;
const ASSET_MANAGER: usize = 2;
const PAYER_ACCOUNT: usize = 3;
const ORGANISATION: usize = 4;
const TENANT: usize = 5;

const COLUMNS: [Column; 6] = [
    Column { name: "id", chinese: "编号" },
    Column { name: "name", chinese: "名称" },
    Column { name: "asset_manager_code", chinese: "资产管理方" },
    Column { name: "payer_account", chinese: "付款账号" },
    Column { name: "organisation", chinese: "组织机构" },
    Column { name: "epctenantid", chinese: "租户" },
];

impl FileRow for CompanyRow {
    const COLUMNS: &'static [Column] = &COLUMNS;
    const KEY: usize = ID;

    fn key(cells: &Cells<'_>) -> Option<String> {
        Some(cells.get(ID).parse::<i64>().ok()?.to_string())
    }

    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<CompanyRow> {
        let id = cells.id(ID, faults);
        let name = cells.text(NAME, LONGEST_NAME, Letters::Any, faults);
        let asset_manager = cells.maybe_text(ASSET_MANAGER, LONGEST_CODE, Letters::Code, faults);
        let payer_account = cells.maybe_text(PAYER_ACCOUNT, LONGEST_CODE, Letters::Code, faults);
        let organisation = cells.text(ORGANISATION, LONGEST_CODE, Letters::Code, faults);
        let tenant = cells.text(TENANT, LONGEST_CODE, Letters::Code, faults);
        Some(CompanyRow {
            line: cells.line(),
            id: id?,
            name: name?,
            asset_manager_code: asset_manager?,
            payer_account: payer_account?,
            organisation: organisation?,
            tenant: tenant?,
        })
    }

    fn line(&self) -> u32 {
        self.line
    }
}

/// Imports a file of project companies in one transaction. A company is known by its id.
///
/// # Errors
/// [`PaymentError::RowsRefused`] with every fault by line and column; then nothing was written.
pub async fn import_companies(
    db: &Db,
    sheet: impl Iterator<Item = Result<SheetRow, Unread>> + Send,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let gathered = gather::<CompanyRow>(sheet)?;
    transact!(attempt(db, &gathered, options))
}

async fn attempt(
    db: &Db,
    gathered: &Gathered<CompanyRow>,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let mut tx = db.begin().await?;
    take_turn(&mut tx).await?;
    let mut refusals = gathered.refusals.clone();
    let mut imported = Imported::default();
    for rows in gathered.rows.chunks(ROWS_A_CHUNK) {
        let stored = stored(&tx, rows).await?;
        let steps = rows.iter().map(|row| match stored.get(&row.id) {
            None => Some(Step::Insert),
            Some(Stored { is_deleted: true, .. }) => {
                let why = format!("{} was deleted; take another id", row.id);
                refusals.refuse(&gathered.header, row.line, ID, why);
                None
            }
            Some(Stored { row: old, .. }) => {
                let is_same = CompanyRow { line: row.line, ..old.clone() } == *row;
                Some(if is_same { Step::Keep } else { Step::Update(row.id) })
            }
        });
        let steps: Vec<Option<Step>> = steps.collect();
        imported.count(&steps);
        write(&mut tx, rows, &steps).await?;
    }
    let refusals = refusals.allow(options)?;
    imported.leave_out(refusals);
    tx.commit("import.companies").await?;
    Ok(imported)
}

struct Stored {
    row: CompanyRow,
    is_deleted: bool,
}

async fn stored(tx: &Tx, rows: &[CompanyRow]) -> Result<HashMap<i64, Stored>, PaymentError> {
    let query = Query::new(
        "SELECT id, name, asset_manager_code, payer_account, organisation, epctenantid, deleted
         FROM sys_project_company WHERE id IN :ids",
    )
    .bind_list("ids", rows.iter().map(|row| row.id));
    let mut stored = HashMap::new();
    for row in tx.rows(query).await? {
        let id = row.int("id")?;
        let company = CompanyRow {
            line: 0,
            id,
            name: row.text("name")?,
            asset_manager_code: row.maybe_text("asset_manager_code")?,
            payer_account: row.maybe_text("payer_account")?,
            organisation: row.text("organisation")?,
            tenant: row.text("epctenantid")?,
        };
        stored.insert(id, Stored { row: company, is_deleted: row.int("deleted")? == 1 });
    }
    Ok(stored)
}

const INSERT: Text = Text::Same(
    "INSERT INTO sys_project_company
       (id, name, asset_manager_code, payer_account, organisation, epctenantid, create_time,
        update_time)
     VALUES :rows",
);

const UPDATE: Text = Text::Forked {
    standard: "WITH fresh (id, name, asset_manager_code, payer_account, organisation, epctenantid)
                 AS (VALUES :rows)
     UPDATE sys_project_company AS c
     SET name = fresh.name, asset_manager_code = fresh.asset_manager_code,
         payer_account = fresh.payer_account, organisation = fresh.organisation,
         epctenantid = fresh.epctenantid, update_time = :now
     FROM fresh WHERE c.id = fresh.id AND c.deleted = 0",
    mariadb: "UPDATE sys_project_company c
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', name VARCHAR(128) PATH '$[1]',
         asset_manager_code VARCHAR(64) PATH '$[2]', payer_account VARCHAR(64) PATH '$[3]',
         organisation VARCHAR(64) PATH '$[4]', epctenantid VARCHAR(64) PATH '$[5]')) fresh
       ON c.id = fresh.id
     SET c.name = fresh.name, c.asset_manager_code = fresh.asset_manager_code,
         c.payer_account = fresh.payer_account, c.organisation = fresh.organisation,
         c.epctenantid = fresh.epctenantid, c.update_time = :now
     WHERE c.deleted = 0",
};

async fn write(
    tx: &mut Tx,
    rows: &[CompanyRow],
    steps: &[Option<Step>],
) -> Result<(), PaymentError> {
    let now = tx.now();
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (row, step) in rows.iter().zip(steps) {
        let mut values = vec![
            row.id.bind(),
            (&row.name).bind(),
            row.asset_manager_code.as_deref().bind(),
            row.payer_account.as_deref().bind(),
            (&row.organisation).bind(),
            (&row.tenant).bind(),
        ];
        match step {
            Some(Step::Insert) => {
                values.extend([now.bind(), now.bind()]);
                new.push(values);
            }
            Some(Step::Update(_)) => changed.push(values),
            Some(Step::Keep) | None => {}
        }
    }
    insert(tx, INSERT, new).await?;
    update(tx, UPDATE, changed).await
}
