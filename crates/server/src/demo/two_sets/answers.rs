//! The answers of the demo: synthetic, the same from every run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::sides::{FORM, SCHOOL};
use crate::sample::random::Random;

/// Keys spread over their whole space, as real ones do.
pub fn uuid(number: u32) -> String {
    let mut random = Random::new(u64::from(number) + 1);
    let mut half = || random.below(u64::MAX);
    format!("{:016x}{:016x}", half(), half())
}

/// The values of an answer in one of its revisions.
pub fn values(number: u32, revision: u32) -> String {
    json!({
        "姓名": format!("农户{number}"),
        "roofArea": format!("{}.{:02}", 20 + number % 180, number % 100),
        "consent": !number.is_multiple_of(7),
        "visits": [number % 5, revision],
    })
    .to_string()
}

/// Writes them as JSON lines.
pub fn write_file(path: &Path, count: u32) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut out = BufWriter::new(file);
    for number in 0..count {
        writeln!(
            out,
            "{{\"answerUuid\":\"{}\",\"formUuid\":\"{FORM}\",\"schId\":\"{SCHOOL}\",\"values\":{}}}",
            uuid(number),
            values(number, 1)
        )?;
    }
    Ok(out.flush()?)
}
