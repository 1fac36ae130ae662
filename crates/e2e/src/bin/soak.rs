//! Kills real processes any number of times, and proves the end.
//!
//! `cargo build --bin counterfoil && cargo run -p counterfoil-e2e --bin soak -- --kills 100`:
//! payment, on one database kind or on all. With `--sets`, centre and hall of reconciliation. With
//! `--fuzz 1000000` it kills nothing, and gives so many inputs to each fuzz target.

use std::io::Write;
use std::path::PathBuf;

use chrono::TimeDelta;
use counterfoil_e2e::fuzz::{TARGETS, corpus_folder, fuzz};
use counterfoil_e2e::two_sides::{SetKillPlan, TwoSidesPlan, binary_beside, kill_both_sides};
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
    if let Some(rounds) = value("--fuzz") {
        return inputs(rounds.parse().expect("--fuzz takes a number"), seed);
    }
    let own = std::env::current_exe().expect("this program's path");
    let binary = binary_beside(&own);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if arguments.iter().any(|argument| argument == "--sets") {
        runtime.block_on(sets(binary, kills, seed));
        return;
    }
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

/// Gives inputs to the fuzz targets; what breaks one is kept in the corpus.
fn inputs(rounds: u64, seed: u64) {
    for target in &TARGETS {
        let broken = fuzz(target, rounds, seed);
        let Some(broken) = broken else {
            let _ =
                writeln!(std::io::stdout(), "{} seed {seed}: {rounds} inputs hold", target.name);
            continue;
        };
        let name = format!("found-{seed}-{}.bin", broken.input.len());
        let path = corpus_folder().join(target.name).join(name);
        std::fs::write(&path, &broken.input).expect("the input is kept");
        panic!("{}: {}: see {}", target.name, broken.why, path.display());
    }
}

/// The centre on MariaDB, the hall on PostgreSQL, their clocks four minutes apart.
async fn sets(binary: PathBuf, kills: u32, seed: u64) {
    let sides = TwoSidesPlan {
        binary,
        centre: Dialect::MariaDb,
        hall: Dialect::Postgres,
        clocks: (TimeDelta::minutes(4), TimeDelta::zero()),
        more: String::new(),
    };
    let report = kill_both_sides(&SetKillPlan { sides, kills, seed, answers: 2000 }).await;
    let _ = writeln!(std::io::stdout(), "sets seed {seed}: {report:?}");
}
