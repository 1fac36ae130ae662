//! Many rows in one statement.

use counterfoil_db::{Dialect, Error, Query, Read, Text, Tx, Value};

/// Inserts rows as `VALUES :rows`, if there are any. The caller bounds their number.
pub(crate) async fn insert_rows(
    tx: &mut Tx,
    text: Text,
    rows: Vec<Vec<Value>>,
) -> Result<u64, Error> {
    if rows.is_empty() {
        return Ok(0);
    }
    tx.execute(Query::new(text).bind_rows("rows", rows)).await
}

/// Updates rows from `VALUES :rows`, or on MariaDB from `:json`, an array of arrays; if there are
/// any. Answers how many rows the statement's guard let through.
pub(crate) async fn update_rows(
    tx: &mut Tx,
    text: Text,
    rows: Vec<Vec<Value>>,
) -> Result<u64, Error> {
    if rows.is_empty() {
        return Ok(0);
    }
    let query = Query::new(text).bind("now", tx.now());
    let query = match tx.dialect() {
        // MariaDB fixes the types of VALUES before it has seen the values.
        Dialect::MariaDb => query.bind("json", json(&rows)),
        Dialect::Sqlite | Dialect::Postgres => query.bind_rows("rows", rows),
    };
    tx.execute(query).await
}

/// Rows as an array of arrays. Only numbers and texts are ever updated in this way.
pub(crate) fn json(rows: &[Vec<Value>]) -> String {
    let cell = |value: &Value| match value {
        Value::BigInt(Some(number)) => serde_json::Value::from(*number),
        Value::String(Some(text)) => serde_json::Value::from(text.as_str()),
        _ => serde_json::Value::Null,
    };
    let row = |row: &Vec<Value>| row.iter().map(cell).collect::<serde_json::Value>();
    rows.iter().map(row).collect::<serde_json::Value>().to_string()
}
