//! `counterfoil canon`: one answer's canonical text and content hash, for implementers of other
//! consumers.

use std::io::Read;

use anyhow::{Context, Result};
use counterfoil_protocol::canon::read_answer;
use serde_json::json;

use super::Output;

/// Bytes of one answer.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Which answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file with one answer's JSON (answerUuid, formUuid, formVersion, isDeleted, schId, values);
    /// - = standard input
    file: String,
}

pub(super) fn run(args: &Args) -> Result<Output> {
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    let read = match args.file.as_str() {
        "-" => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        name => {
            let file = std::fs::File::open(name);
            file.with_context(|| format!("cannot open {name}"))?.take(limit).read_to_end(&mut bytes)
        }
    };
    read.context("the answer cannot be read to its end")?;
    anyhow::ensure!(bytes.len() as u64 <= MAX_BYTES, "an answer has at most {MAX_BYTES} bytes");
    let answer = read_answer(&bytes)?;
    let (canonical, hash) = (answer.canonical()?, answer.hash()?);
    let text = format!("{canonical}\n{hash}");
    Ok(Output::new(json!({ "canonical": canonical, "hash": hash.0 }), text))
}
