//! `counterfoil`: a durable task engine, resident income payment and answer reconciliation.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterfoil_server::cli::main()
}
