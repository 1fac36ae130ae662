//! Plans of recorded statements, and what in them reads a whole table.

use std::collections::BTreeMap;

use counterfoil_db::{Query, Read, Row, Tx, Value};
use counterfoil_e2e::{Dialect, TestApp};

use super::data::LARGE;
use super::paths::Path;

/// Reads of a whole table, or of a whole index, that are right: a part of the statement, the
/// table, and why.
const ALLOWED: [(&str, &str, &str); 1] = [(
    "INSERT INTO selection_conflict",
    "fi_resident_income_payment_bill_lock",
    "once, after a conflict was found: all items of the session, and where they are many one hash \
     over the locks is cheaper than a look for each",
)];

/// One line a plan that reads a whole large table without leave to.
pub async fn whole_reads(app: &TestApp, paths: &[Path]) -> Vec<String> {
    let dialect = app.db.dialect();
    let mut found = Vec::new();
    for path in paths {
        for (text, query) in examples(path, dialect) {
            let mut read = Vec::new();
            match dialect {
                Dialect::MariaDb => read.extend(mariadb(app, &text, query).await),
                Dialect::Postgres => {
                    read.extend(postgres(app, query).await);
                    read.extend(postgres_generic(app, query).await);
                }
                Dialect::Sqlite => {}
            }
            read.retain(|table| !is_allowed(&text, table));
            for table in read {
                found.push(format!("{}: all of {table}: {}", path.name, one_line(&text)));
            }
        }
    }
    found
}

/// Each distinct statement once, with the values of its passage in the middle: the first batches
/// begin at nothing and the last are short.
fn examples(path: &Path, dialect: Dialect) -> BTreeMap<String, &Query> {
    let mut all: BTreeMap<String, Vec<&Query>> = BTreeMap::new();
    for query in &path.statements {
        let text = query.text(dialect).to_owned();
        all.entry(text).or_default().push(query);
    }
    let all = all.into_iter();
    all.map(|(text, queries)| (text, queries[queries.len() / 2])).collect()
}

fn is_allowed(text: &str, table: &str) -> bool {
    let part_of = |(part, of, _): &(&str, &str, &str)| text.contains(part) && *of == table;
    ALLOWED.iter().any(part_of)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn lines_of(tx: &Tx, query: Query) -> Vec<String> {
    let rows = tx.rows(query).await;
    let rows = rows.unwrap_or_else(|error| panic!("no plan: {error:?}"));
    let line = |row: &Row| row.text("QUERY PLAN").expect("a line of the plan");
    rows.iter().map(line).collect()
}

/// The plan for these very values.
async fn postgres(app: &TestApp, query: &Query) -> Vec<String> {
    let explain = query.prefixed(Dialect::Postgres, "EXPLAIN");
    let tx = app.db.begin().await.expect("a transaction");
    let lines = lines_of(&tx, explain).await;
    tx.rollback().await.expect("a rollback");
    if !whole_reads_of(&lines).is_empty() {
        eprintln!("{}", lines.join("\n"));
    }
    whole_reads_of(&lines)
}

/// The plan for any values, which PostgreSQL turns to after five runs of a prepared statement
/// where it looks no worse.
async fn postgres_generic(app: &TestApp, query: &Query) -> Vec<String> {
    let (text, values) = query.translated(Dialect::Postgres).expect("a statement");
    if values.is_empty() {
        return Vec::new();
    }
    let types: Vec<&str> = values.iter().map(type_of).collect();
    let nulls = vec!["NULL"; values.len()].join(", ");
    let mut tx = app.db.begin().await.expect("a transaction");
    for statement in [
        "SET LOCAL plan_cache_mode = force_generic_plan".to_owned(),
        format!("PREPARE hot_path ({}) AS {text}", types.join(", ")),
    ] {
        let done = tx.execute(Query::built(statement)).await;
        done.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }
    let explain = Query::built(format!("EXPLAIN EXECUTE hot_path ({nulls})"));
    let lines = lines_of(&tx, explain).await;
    let deallocate = Query::built("DEALLOCATE hot_path".to_owned());
    tx.execute(deallocate).await.expect("a free name");
    tx.rollback().await.expect("a rollback");
    if !whole_reads_of(&lines).is_empty() {
        eprintln!("{}", lines.join("\n"));
    }
    whole_reads_of(&lines)
}

/// As the driver declares them.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::BigInt(_) => "BIGINT",
        Value::ChronoDateTimeUtc(_) => "TIMESTAMPTZ",
        _ => "TEXT",
    }
}

/// Large tables that a plan reads row by row: sequential scans, and scans of an index without a
/// condition on it.
fn whole_reads_of(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let node = line.trim_start().trim_start_matches("->").trim_start();
        let node = node.trim_start_matches("Parallel ");
        let is_whole = if node.starts_with("Seq Scan on ") {
            true
        } else if node.starts_with("Index ") || node.starts_with("Bitmap Index ") {
            !has_condition(&lines[at + 1..])
        } else {
            false
        };
        let Some((_, of)) = node.split_once(" on ").filter(|_| is_whole) else {
            continue;
        };
        let table = of.split(' ').next().unwrap_or_default();
        if LARGE.contains(&table) {
            found.push(table.to_owned());
        }
    }
    found
}

/// Whether a node's own lines, which end where the next node begins, name an index condition.
fn has_condition(after: &[String]) -> bool {
    let own = after.iter().take_while(|line| !line.trim_start().starts_with("->"));
    own.into_iter().any(|line| line.contains("Index Cond:"))
}

/// Large tables whose access is ALL or a walk over a whole index.
async fn mariadb(app: &TestApp, text: &str, query: &Query) -> Vec<String> {
    let explain = query.prefixed(Dialect::MariaDb, "EXPLAIN");
    let tx = app.db.begin().await.expect("a transaction");
    let rows = tx.rows(explain).await;
    let rows = rows.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let mut found = Vec::new();
    for row in &rows {
        let cell = |column| row.maybe_text(column).ok().flatten().unwrap_or_default();
        let is_whole = ["ALL", "index"].contains(&cell("type").as_str());
        // The table that INSERT … SELECT fills has a row of its own, without rows to read.
        if is_whole && cell("select_type") != "INSERT" {
            found.extend(tables_of(text, &cell("table")));
        }
    }
    tx.rollback().await.expect("a rollback");
    found
}

/// The large tables that a name in a plan may stand for: itself, or those whose alias it is.
fn tables_of(text: &str, name: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let is_alias = |table: &str| {
        words.iter().enumerate().any(|(at, word)| {
            let next = words.get(at + 1).filter(|next| !next.eq_ignore_ascii_case("AS"));
            let next = next.or(words.get(at + 2));
            *word == table && next.is_some_and(|next| *next == name)
        })
    };
    let named = LARGE.iter().filter(|table| **table == name || is_alias(table));
    named.map(|table| (*table).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(plan: &str) -> Vec<String> {
        plan.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_sequential_scan_and_an_index_without_a_condition_are_whole_reads() {
        let plan = "Nested Loop  (cost=0.28..8.30 rows=1 width=8)
  ->  Parallel Seq Scan on fi_async_task t  (cost=0.00..1.00 rows=1 width=8)
        Filter: (id > 1)
  ->  Index Only Scan using uk_lock_key on fi_resident_income_payment_bill_lock k  (cost=1..2)
        Filter: (id > 1)
  ->  Index Scan using fi_customer_bill_pkey on fi_customer_bill b  (cost=0.28..8.30)
        Index Cond: (id = t.id)
  ->  Seq Scan on sys_partner p  (cost=0.00..1.00 rows=1 width=8)";
        let found = whole_reads_of(&lines(plan));
        let expected = ["fi_async_task", "fi_resident_income_payment_bill_lock"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_in_a_plan_is_a_table_or_an_alias() {
        let text = "UPDATE fi_customer_bill AS r SET a = 1 FROM fi_async_task WHERE r.id = 2";
        assert_eq!(tables_of(text, "r"), ["fi_customer_bill"]);
        assert_eq!(tables_of(text, "fi_async_task"), ["fi_async_task"]);
        assert!(tables_of(text, "x").is_empty());
    }
}
