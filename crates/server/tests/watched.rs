//! Long work shows how far it has come to a person who watches, and nothing in a pipe.

use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_counterfoil");
const BILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/2026-09/bills.csv");

/// A migrated SQLite database.
fn migrated(folder: &Path) -> String {
    let database = format!("sqlite:{}/watched.db", folder.display());
    let done = run(Command::new(BINARY).args(["--database", &database, "migrate"]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    database
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the process")
}

/// What a person sees whose terminal it is.
fn seen(words: &str) -> String {
    let mut terminal = Command::new("script");
    let done = run(terminal.args(["-qec", &format!("{BINARY} {words}"), "/dev/null"]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn an_import_shows_its_rows_on_a_terminal_and_nothing_in_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = migrated(folder.path());
    let seen = seen(&format!("--database {database} import bills {BILLS}"));
    assert!(seen.contains("rows read") && seen.contains("commits"), "{seen}");
    assert!(seen.contains("bills: 2500 new"), "{seen}");
    let piped = run(Command::new(BINARY).args(["--database", &database, "import", "bills", BILLS]));
    assert_eq!(String::from_utf8_lossy(&piped.stderr), "");
}

#[test]
fn whoever_asks_for_silence_is_shown_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = migrated(folder.path());
    let seen = seen(&format!("-q --database {database} import bills {BILLS}"));
    assert!(!seen.contains("rows read"), "{seen}");
}
