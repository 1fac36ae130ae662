//! Writes the checked-in sample month anew:
//! `cargo run -p counterfoil-server --example write_sample`

use std::path::Path;

use counterfoil_server::sample::{DEFAULT_SEED, DEFAULT_STATIONS, generate};

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/2026-09");
    generate(DEFAULT_SEED, DEFAULT_STATIONS).write_to(&folder)
}
