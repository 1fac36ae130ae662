//! `counterfoil`: a durable task engine and resident income payment.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterfoil_server::cli::main()
}
