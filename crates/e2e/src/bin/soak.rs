//! Kills real processes any number of times and proves the end; takes one order with very many
//! lines to PAID; or gives inputs to the fuzz targets.

use std::io::Write;
use std::path::PathBuf;

use chrono::TimeDelta;
use counterfoil_e2e::fuzz::{TARGETS, corpus_folder, fuzz};
use counterfoil_e2e::two_sides::{SetKillPlan, TwoSidesPlan, kill_both_sides};
use counterfoil_e2e::{Dialect, KillPlan, TestApp, kill_loop, large_order, run};

const HELP: &str = "soak: real `counterfoil serve` processes on databases of their own

  --kills N            kill N processes and prove that nothing is lost or done twice (100)
  --seed N             what the random choices come from (1)
  --sets               instead of payment: centre and hall of reconciliation, on MariaDB and
                       PostgreSQL, their clocks four minutes apart
  --lines N            instead: one order with N payable lines, from its selection to PAID, by a
                       process that nobody kills; prints how long it took and its peak memory
  --fuzz N             instead: N inputs to each fuzz target; what breaks one is kept in the corpus
  --database-kind K    sqlite, postgres or mariadb; without it all three, and PostgreSQL for --lines
  --binary PATH        the counterfoil to run; without it the one beside this program

Build that first: cargo build --bin counterfoil
Servers: COUNTERFOIL_TEST_POSTGRES, COUNTERFOIL_TEST_MARIADB, or those on 127.0.0.1.
";

struct Arguments(Vec<String>);

impl Arguments {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        let number = self.value(name)?.parse().ok();
        Some(number.unwrap_or_else(|| panic!("{name} takes a number")))
    }
}

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    if arguments.has("--help") {
        say(HELP);
        return;
    }
    let seed = arguments.number("--seed").unwrap_or(1);
    if let Some(rounds) = arguments.number("--fuzz") {
        return inputs(rounds, seed);
    }
    let own = std::env::current_exe().expect("this program's path");
    let beside = own.with_file_name("counterfoil");
    let binary = arguments.value("--binary").map_or(beside, PathBuf::from);
    assert!(binary.exists(), "build it first: cargo build --bin counterfoil");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let kills = arguments.number("--kills").unwrap_or(100);
    if arguments.has("--sets") {
        return runtime.block_on(sets(binary, kills, seed));
    }
    let lines: Option<i64> = arguments.number("--lines");
    let only = arguments.value("--database-kind").or(lines.map(|_| "postgres"));
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MariaDb] {
        if only.is_some_and(|name| name != dialect.name()) {
            continue;
        }
        let binary = binary.clone();
        match lines {
            Some(lines) => runtime.block_on(run(dialect, move |app: TestApp| async move {
                let report = large_order(&app, binary, lines).await;
                say(&format!("{}: {report:?}\n", dialect.name()));
            })),
            None => runtime.block_on(run(dialect, move |app: TestApp| async move {
                let report = kill_loop(&app, &KillPlan { binary, kills, seed }).await;
                say(&format!("{} seed {seed}: {report:?}\n", dialect.name()));
            })),
        }
    }
}

/// Gives inputs to the fuzz targets; what breaks one is kept in the corpus.
fn inputs(rounds: u64, seed: u64) {
    for target in &TARGETS {
        let Some(broken) = fuzz(target, rounds, seed) else {
            say(&format!("{} seed {seed}: {rounds} inputs hold\n", target.name));
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
    say(&format!("sets seed {seed}: {report:?}\n"));
}

fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
