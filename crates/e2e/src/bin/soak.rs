//! Kills real processes any number of times on one database kind or on all, and proves the end; or
//! takes one order with very many lines to PAID.

use std::io::Write;
use std::path::PathBuf;

use counterfoil_e2e::{Dialect, KillPlan, TestApp, kill_loop, large_order, run};

const HELP: &str = "soak: real `counterfoil serve` processes on databases of their own

  --kills N            kill N processes and prove that nothing is lost or done twice (100)
  --seed N             what the random choices come from (1)
  --lines N            instead: one order with N payable lines, from its selection to PAID, by a
                       process that nobody kills; prints how long it took and its peak memory
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
    let own = std::env::current_exe().expect("this program's path");
    let beside = own.with_file_name("counterfoil");
    let binary = arguments.value("--binary").map_or(beside, PathBuf::from);
    assert!(binary.exists(), "build it first: cargo build --bin counterfoil");
    let lines: Option<i64> = arguments.number("--lines");
    let only = arguments.value("--database-kind").or(lines.map(|_| "postgres"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MariaDb] {
        if only.is_some_and(|name| name != dialect.name()) {
            continue;
        }
        match lines {
            Some(lines) => {
                let binary = binary.clone();
                runtime.block_on(run(dialect, move |app: TestApp| async move {
                    let report = large_order(&app, binary, lines).await;
                    say(&format!("{}: {report:?}\n", dialect.name()));
                }));
            }
            None => {
                let kills = arguments.number("--kills").unwrap_or(100);
                let seed = arguments.number("--seed").unwrap_or(1);
                let plan = KillPlan { binary: binary.clone(), kills, seed };
                runtime.block_on(run(dialect, move |app: TestApp| async move {
                    let report = kill_loop(&app, &plan).await;
                    say(&format!("{} seed {seed}: {report:?}\n", dialect.name()));
                }));
            }
        }
    }
}

fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
