//! The migration runner. Each domain owns its DDL; one text serves all three databases, with
//! `{tokens}` for the types they spell differently (`dialect.rs`).

use crate::{Db, Dialect, Error, Query, Read, Result, Tx, driver_error, sql, transact};

/// One numbered step of DDL. Statements end with `;` at the end of a line and are written
/// `IF NOT EXISTS`: MariaDB commits each by itself, so a step may be met half done.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Ascending over all domains; the same number on every database.
    pub number: u32,
    /// What it brings.
    pub name: &'static str,
    /// The statements.
    pub ddl: &'static str,
}

const BOOKKEEPING: &str = "CREATE TABLE IF NOT EXISTS counterfoil_migration (
  number INT NOT NULL PRIMARY KEY,
  name VARCHAR(128) NOT NULL,
  applied_time {instant} NOT NULL
)";

/// Applies what is missing, in order. Two processes may call it at once. Answers the numbers of
/// the steps that were applied now.
pub async fn migrate(db: &Db, migrations: &[Migration]) -> Result<Vec<u32>> {
    let mut steps = migrations.to_vec();
    steps.sort_by_key(|step| step.number);
    transact!(migrate_at_once(db, &steps))
}

async fn migrate_at_once(db: &Db, steps: &[Migration]) -> Result<Vec<u32>> {
    let mut tx = db.begin().await?;
    take_turn(&mut tx).await?;
    let outcome = apply_missing(&mut tx, steps).await;
    give_turn_back(&mut tx).await?;
    let applied = outcome?;
    tx.commit("migrate").await?;
    Ok(applied)
}

/// The numbers already applied, ascending; empty on a database never migrated.
pub async fn applied(db: &Db) -> Result<Vec<u32>> {
    let rows = db.rows(sql!("SELECT number FROM counterfoil_migration ORDER BY number")).await;
    let Ok(rows) = rows else {
        return Ok(Vec::new());
    };
    rows.iter().map(number).collect()
}

async fn apply_missing(tx: &mut Tx, steps: &[Migration]) -> Result<Vec<u32>> {
    tx.execute(sql!(BOOKKEEPING)).await?;
    let known = tx.rows(sql!("SELECT number FROM counterfoil_migration")).await?;
    let known: Vec<u32> = known.iter().map(number).collect::<Result<_>>()?;
    let mut applied = Vec::new();
    for step in steps.iter().filter(|step| !known.contains(&step.number)) {
        apply(tx, step).await.map_err(|source| Error::Migration {
            number: step.number,
            name: step.name,
            source: Box::new(source),
        })?;
        applied.push(step.number);
    }
    start_generated_ids(tx).await?;
    Ok(applied)
}

/// Generated ids start at 1 000 000 000 000 everywhere, so that explicit ids of imports stay below.
/// PostgreSQL and MariaDB say so in the table; SQLite keeps it in a table of its own.
async fn start_generated_ids(tx: &mut Tx) -> Result<()> {
    if tx.dialect() == Dialect::Sqlite {
        tx.execute(sql!(
            "INSERT INTO sqlite_sequence (name, seq)
             SELECT m.name, 999999999999 FROM sqlite_master m
             WHERE m.type = 'table' AND m.sql LIKE '%AUTOINCREMENT%'
               AND NOT EXISTS (SELECT 1 FROM sqlite_sequence s WHERE s.name = m.name)"
        ))
        .await?;
    }
    Ok(())
}

fn statements(ddl: &str) -> impl Iterator<Item = &str> {
    let parts = ddl.split(";\n").map(|text| text.trim().trim_end_matches(';'));
    parts.filter(|text| !text.is_empty())
}

/// MariaDB commits each statement by itself, to the disk: an index that is made with its table
/// costs nothing, one made afterwards as much as the table. Indexes of tables that the step does
/// not make stay as they are.
fn folded(statements: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for statement in statements {
        let Some(index) = Index::read(&statement) else {
            kept.push(statement);
            continue;
        };
        let begins = format!("CREATE TABLE IF NOT EXISTS {} (", index.table);
        let table = kept.iter_mut().find(|text| text.starts_with(&begins));
        match table.and_then(|text| text.rfind("\n)").map(|end| (text, end))) {
            Some((text, end)) => {
                let Index { kind, name, columns, .. } = index;
                text.insert_str(end, &format!(",\n  {kind} {name} {columns}"));
            }
            None => kept.push(statement),
        }
    }
    kept
}

/// `CREATE [UNIQUE] INDEX IF NOT EXISTS name ON table (columns)`.
struct Index<'a> {
    kind: &'static str,
    name: &'a str,
    table: &'a str,
    columns: &'a str,
}

impl Index<'_> {
    fn read(statement: &str) -> Option<Index<'_>> {
        let kinds = [
            ("CREATE UNIQUE INDEX IF NOT EXISTS ", "UNIQUE INDEX"),
            ("CREATE INDEX IF NOT EXISTS ", "INDEX"),
        ];
        let (rest, kind) = kinds
            .iter()
            .find_map(|(begins, kind)| Some((statement.strip_prefix(begins)?, *kind)))?;
        let (name, rest) = rest.split_once(char::is_whitespace)?;
        let (table, columns) = rest.trim_start().strip_prefix("ON")?.split_once('(')?;
        let columns = &rest[rest.len() - columns.len() - 1..];
        Some(Index { kind, name, table: table.trim(), columns })
    }
}

async fn apply(tx: &mut Tx, step: &Migration) -> Result<()> {
    let mut statements: Vec<String> = statements(step.ddl).map(str::to_owned).collect();
    if tx.dialect() == Dialect::MariaDb {
        statements = folded(statements);
    }
    for statement in statements {
        tx.execute(Query::built(statement)).await?;
    }
    let now = tx.now();
    let done = sql!(
        "INSERT INTO counterfoil_migration (number, name, applied_time)
         VALUES (:number, :name, :now)",
        number = step.number,
        name = step.name,
        now = now,
    );
    tx.execute(done).await?;
    Ok(())
}

fn number(row: &crate::Row) -> Result<u32> {
    Ok(u32::try_from(row.int("number")?).unwrap_or(u32::MAX))
}

/// An arbitrary number that all Counterfoil processes know.
const TURN: i64 = 7_246_111;

async fn take_turn(tx: &mut Tx) -> Result<()> {
    match tx.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => {
            // For the turn only: behind DDL that waits, everybody waits who wants the table.
            tx.execute(sql!("SET LOCAL lock_timeout = '60s'")).await?;
            tx.execute(sql!("SELECT pg_advisory_xact_lock(:turn)", turn = TURN)).await?;
            tx.execute(sql!("SET LOCAL lock_timeout TO DEFAULT")).await?;
        }
        Dialect::MariaDb => {
            // The name is the server's: other databases on it migrate at the same time.
            let lock = "SELECT GET_LOCK(CONCAT('counterfoil_', MD5(DATABASE())), 60) AS locked";
            if tx.count(sql!(lock)).await? != 1 {
                let waited = "another process migrates for longer than 60 s".to_owned();
                return Err(Error::LockWait(driver_error(waited)));
            }
        }
    }
    Ok(())
}

async fn give_turn_back(tx: &mut Tx) -> Result<()> {
    if tx.dialect() == Dialect::MariaDb {
        let release = "SELECT RELEASE_LOCK(CONCAT('counterfoil_', MD5(DATABASE()))) AS released";
        tx.row(sql!(release)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_made_with_its_table_where_the_step_makes_the_table() {
        let ddl = "CREATE TABLE IF NOT EXISTS t (
  id {id},
  a INT NOT NULL
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_t ON t (a);
CREATE INDEX IF NOT EXISTS ix_t
  ON t (a, id);
CREATE INDEX IF NOT EXISTS ix_other ON other (b);
";
        let folded = folded(statements(ddl).map(str::to_owned).collect());
        let expected = [
            "CREATE TABLE IF NOT EXISTS t (
  id {id},
  a INT NOT NULL,
  UNIQUE INDEX uk_t (a),
  INDEX ix_t (a, id)
) {table_options}",
            "CREATE INDEX IF NOT EXISTS ix_other ON other (b)",
        ];
        assert_eq!(folded, expected);
    }
}
