//! Importing partners.

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

/// A partner as a file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerRow {
    /// The line it stands on.
    pub line: u32,
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its number.
    pub partner_no: String,
    /// Its organisation's code.
    pub org_code: String,
    /// Operations manager A.
    pub manager_a: i64,
    /// Operations manager B.
    pub manager_b: i64,
    /// What happens on trouble with pushing: never, definite or idempotent.
    pub retry_policy: &'static str,
    /// Where results are pushed to; none = nowhere.
    pub endpoint: Option<String>,
    /// The key that signs and encrypts.
    pub key_id: Option<String>,
}

const ID: usize = 0;
const NAME: usize = 1;
const PARTNER_NO: usize = 2;
const ORG_CODE: usize = 3;
const MANAGER_A: usize = 4;
const MANAGER_B: usize = 5;
const RETRY_POLICY: usize = 6;
const ENDPOINT: usize = 7;
const KEY_ID: usize = 8;

const COLUMNS: [Column; 9] = [
    Column { name: "partner_id", chinese: "合作方" },
    Column { name: "name", chinese: "名称" },
    Column { name: "partner_no", chinese: "合作方编号" },
    Column { name: "org_code", chinese: "机构代码" },
    Column { name: "manager_a", chinese: "运营经理A" },
    Column { name: "manager_b", chinese: "运营经理B" },
    Column { name: "retry_policy", chinese: "重试策略" },
    Column { name: "endpoint", chinese: "推送地址" },
    Column { name: "key_id", chinese: "密钥编号" },
];

const POLICIES: [(&str, &str); 3] =
    [("never", "never"), ("definite", "definite"), ("idempotent", "idempotent")];
const LONGEST_ENDPOINT: usize = 255;

impl FileRow for PartnerRow {
    const COLUMNS: &'static [Column] = &COLUMNS;
    const KEY: usize = ID;

    fn key(cells: &Cells<'_>) -> Option<String> {
        Some(cells.get(ID).parse::<i64>().ok()?.to_string())
    }

    fn parse(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<PartnerRow> {
        let id = cells.id(ID, faults);
        let name = cells.text(NAME, LONGEST_NAME, Letters::Any, faults);
        let partner_no = cells.text(PARTNER_NO, LONGEST_CODE, Letters::Code, faults);
        let org_code = cells.text(ORG_CODE, LONGEST_CODE, Letters::Code, faults);
        let manager_a = cells.id(MANAGER_A, faults);
        let manager_b = cells.id(MANAGER_B, faults);
        if manager_a.is_some() && manager_a == manager_b {
            let why = "must be another person than manager A: nobody decides twice";
            cells.fault(MANAGER_B, why, faults);
        }
        let retry_policy = cells.choice(RETRY_POLICY, &POLICIES, faults);
        let endpoint = endpoint(cells, faults);
        let key_id = cells.maybe_text(KEY_ID, LONGEST_CODE, Letters::Code, faults);
        Some(PartnerRow {
            line: cells.line(),
            id: id?,
            name: name?,
            partner_no: partner_no?,
            org_code: org_code?,
            manager_a: manager_a?,
            manager_b: manager_b?,
            retry_policy: retry_policy?,
            endpoint: endpoint?,
            key_id: key_id?,
        })
    }

    fn line(&self) -> u32 {
        self.line
    }
}

fn endpoint(cells: &Cells<'_>, faults: &mut RowFaults) -> Option<Option<String>> {
    let endpoint = cells.maybe_text(ENDPOINT, LONGEST_ENDPOINT, Letters::Any, faults)?;
    let is_web = |url: &String| {
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
            && !url.contains(char::is_whitespace)
    };
    if endpoint.as_ref().is_some_and(|url| !is_web(url)) {
        cells.fault(ENDPOINT, "is no address: it must start with https:// or http://", faults);
        return None;
    }
    Some(endpoint)
}

/// Imports a file of partners in one transaction. A partner is known by its id.
///
/// # Errors
/// [`PaymentError::RowsRefused`] with every fault by line and column; then nothing was written.
pub async fn import_partners(
    db: &Db,
    sheet: impl Iterator<Item = Result<SheetRow, Unread>> + Send,
    options: ImportOptions,
) -> Result<Imported, PaymentError> {
    let gathered = gather::<PartnerRow>(sheet)?;
    transact!(attempt(db, &gathered, options))
}

async fn attempt(
    db: &Db,
    gathered: &Gathered<PartnerRow>,
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
            Some(Stored { row: Some(old), .. }) => {
                let is_same = PartnerRow { line: row.line, ..old.clone() } == *row;
                Some(if is_same { Step::Keep } else { Step::Update(row.id) })
            }
            Some(Stored { row: None, .. }) => Some(Step::Update(row.id)),
        });
        let steps: Vec<Option<Step>> = steps.collect();
        imported.count(&steps);
        write(&mut tx, rows, &steps).await?;
    }
    let refusals = refusals.allow(options)?;
    imported.leave_out(refusals);
    tx.commit("import.partners").await?;
    Ok(imported)
}

struct Stored {
    /// None where what is stored could not stand in a file, such as a partner without managers.
    row: Option<PartnerRow>,
    is_deleted: bool,
}

async fn stored(tx: &Tx, rows: &[PartnerRow]) -> Result<HashMap<i64, Stored>, PaymentError> {
    let query = Query::new(
        "SELECT id, name, partner_no, org_code, manager_a_user_id, manager_b_user_id,
                retry_policy, endpoint, key_id, deleted
         FROM sys_partner WHERE id IN :ids",
    )
    .bind_list("ids", rows.iter().map(|row| row.id));
    let mut stored = HashMap::new();
    for row in tx.rows(query).await? {
        let id = row.int("id")?;
        let managers = row.maybe_int("manager_a_user_id")?.zip(row.maybe_int("manager_b_user_id")?);
        let policy = row.text("retry_policy")?;
        let policy = POLICIES.iter().find(|(word, _)| *word == policy).map(|(word, _)| *word);
        let partner = match managers.zip(policy) {
            None => None,
            Some(((manager_a, manager_b), retry_policy)) => Some(PartnerRow {
                line: 0,
                id,
                name: row.text("name")?,
                partner_no: row.text("partner_no")?,
                org_code: row.text("org_code")?,
                manager_a,
                manager_b,
                retry_policy,
                endpoint: row.maybe_text("endpoint")?,
                key_id: row.maybe_text("key_id")?,
            }),
        };
        stored.insert(id, Stored { row: partner, is_deleted: row.int("deleted")? == 1 });
    }
    Ok(stored)
}

const INSERT: Text = Text::Same(
    "INSERT INTO sys_partner
       (id, name, partner_no, org_code, manager_a_user_id, manager_b_user_id, retry_policy,
        endpoint, key_id, create_time, update_time)
     VALUES :rows",
);

const UPDATE: Text = Text::Forked {
    standard: "WITH fresh (id, name, partner_no, org_code, manager_a, manager_b, retry_policy,
                 endpoint, key_id) AS (VALUES :rows)
     UPDATE sys_partner AS p
     SET name = fresh.name, partner_no = fresh.partner_no, org_code = fresh.org_code,
         manager_a_user_id = fresh.manager_a, manager_b_user_id = fresh.manager_b,
         retry_policy = fresh.retry_policy, endpoint = fresh.endpoint, key_id = fresh.key_id,
         update_time = :now
     FROM fresh WHERE p.id = fresh.id AND p.deleted = 0",
    mariadb: "UPDATE sys_partner p
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', name VARCHAR(128) PATH '$[1]',
         partner_no VARCHAR(64) PATH '$[2]', org_code VARCHAR(64) PATH '$[3]',
         manager_a BIGINT PATH '$[4]', manager_b BIGINT PATH '$[5]',
         retry_policy VARCHAR(16) PATH '$[6]', endpoint VARCHAR(255) PATH '$[7]',
         key_id VARCHAR(64) PATH '$[8]')) fresh
       ON p.id = fresh.id
     SET p.name = fresh.name, p.partner_no = fresh.partner_no, p.org_code = fresh.org_code,
         p.manager_a_user_id = fresh.manager_a, p.manager_b_user_id = fresh.manager_b,
         p.retry_policy = fresh.retry_policy, p.endpoint = fresh.endpoint,
         p.key_id = fresh.key_id, p.update_time = :now
     WHERE p.deleted = 0",
};

async fn write(
    tx: &mut Tx,
    rows: &[PartnerRow],
    steps: &[Option<Step>],
) -> Result<(), PaymentError> {
    let now = tx.now();
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (row, step) in rows.iter().zip(steps) {
        let mut values = vec![
            row.id.bind(),
            (&row.name).bind(),
            (&row.partner_no).bind(),
            (&row.org_code).bind(),
            row.manager_a.bind(),
            row.manager_b.bind(),
            row.retry_policy.bind(),
            row.endpoint.as_deref().bind(),
            row.key_id.as_deref().bind(),
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
