//! Kills real processes any number of times on one database kind or on all, and proves the end.
//!
//! `cargo build --bin counterfoil && cargo run -p counterfoil-e2e --bin soak -- --kills 100`

use std::io::Write;

use counterfoil_e2e::{Dialect, KillPlan, TestApp, kill_loop, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let kills = value("--kills").map_or(100, |n| n.parse().expect("--kills takes a number"));
    let seed = value("--seed").map_or(1, |n| n.parse().expect("--seed takes a number"));
    let only = value("--database-kind");
    let own = std::env::current_exe().expect("this program's path");
    let binary = own.with_file_name("counterfoil");
    assert!(binary.exists(), "build it first: cargo build --bin counterfoil");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MariaDb] {
        if only.as_deref().is_some_and(|name| name != dialect.name()) {
            continue;
        }
        let plan = KillPlan { binary: binary.clone(), kills, seed };
        runtime.block_on(run(dialect, move |app: TestApp| async move {
            let report = kill_loop(&app, &plan).await;
            let _ = writeln!(std::io::stdout(), "{} seed {seed}: {report:?}", dialect.name());
        }));
    }
}
