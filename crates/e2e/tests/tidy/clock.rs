//! Business time is the bound `:now`, read from the database's clock once per transaction. A
//! statement that asks the clock itself gets another time, of another precision, per database.

use crate::source::{Source, assert_none, rust};
use crate::syntax::{Token, tokens};

const ROOMS: [&str; 4] =
    ["crates/task/src/", "crates/review/src/", "crates/payment/src/", "crates/reconcile/src/"];

/// How the three databases are asked for the time.
const CLOCKS: [&str; 11] = [
    "now()",
    "now(3)",
    "now(6)",
    "'now'",
    "current_timestamp",
    "localtimestamp",
    "clock_timestamp(",
    "statement_timestamp(",
    "utc_timestamp",
    "sysdate(",
    "unix_timestamp(",
];

fn clocks_in_sql(source: &Source) -> Vec<String> {
    let is_domain = ROOMS.iter().any(|room| source.path.starts_with(room));
    if !is_domain || source.path.contains("migrat") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, token) in tokens(source) {
        let Token::Text(text) = token else { continue };
        let text = text.to_lowercase();
        let clocks = CLOCKS.iter().filter(|clock| text.contains(**clock));
        found.extend(clocks.map(|clock| source.breach(line, format!("SQL asks {clock}"))));
    }
    found
}

#[test]
fn no_statement_of_the_domain_asks_the_database_for_the_time() {
    assert_none(rust().iter().flat_map(clocks_in_sql).collect());
}

#[test]
fn a_statement_that_asks_for_the_time_is_found_inside_macros_too() {
    let found = |path: &str, text: &str| clocks_in_sql(&Source::new(path, text));
    let bad = "fn a() {\n    sql!(\n        \"UPDATE task SET at = NOW()\"\n    );\n}\n";
    assert_eq!(
        found("crates/task/src/claim.rs", bad),
        ["crates/task/src/claim.rs:3: SQL asks now()"]
    );
    let raw = "const A: &str = r#\"at < Current_Timestamp\"#;";
    assert_eq!(found("crates/reconcile/src/a.rs", raw).len(), 1);
    assert_eq!(found("crates/task/src/migrations.rs", bad), [""; 0]);
    assert_eq!(found("crates/db/src/clock.rs", bad), [""; 0]);
}

#[test]
fn rust_that_reads_the_transactions_time_is_left_alone() {
    let good = "/// Not CURRENT_TIMESTAMP, not NOW().\nfn a() { let now = tx.now(); } // now()\n";
    assert_eq!(clocks_in_sql(&Source::new("crates/task/src/claim.rs", good)), [""; 0]);
}
