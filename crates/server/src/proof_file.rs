//! The proof pack of an order: a signed JSON file, or a spreadsheet of the same.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use counterfoil_db::Db;
use counterfoil_payment::order_proof::{self, Figures, ProofPack};
use counterfoil_protocol::OrderId;
use counterfoil_protocol::signing::SigningKey;
use rust_xlsxwriter::{Workbook, Worksheet};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::Config;
use crate::files::written::Format;
use crate::wiring;

/// One rule with its verdict at the time of the pack.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleVerdict {
    /// The rule.
    pub rule: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// What it says.
    pub what: &'static str,
}

/// What a written pack says.
#[derive(Debug, Clone)]
pub struct Written {
    /// Whether every stage agrees and no rule is broken.
    pub all_agree: bool,
    /// The figures.
    pub figures: Figures,
}

/// Reads the pack of an order, writes it, and says what it says.
///
/// # Errors
/// An unknown order, a format that holds no pack, a file that cannot be written.
pub async fn write(
    config: &Config,
    db: &Db,
    order: OrderId,
    path: &Path,
    format: Format,
) -> Result<Written> {
    let pack = order_proof::read(db, order).await?;
    let rules = rules(db).await?;
    let agrees = pack.figures.all_agree && rules.iter().all(|rule| rule.holds);
    match format {
        Format::Json => {
            let signed = signed(config, &pack, &rules)?;
            whole(path, |file| Ok(serde_json::to_writer_pretty(file, &signed)?))?;
        }
        Format::Xlsx => {
            let bytes = spreadsheet(&pack, &rules)?;
            whole(path, |file| Ok(std::io::Write::write_all(file, &bytes)?))?;
        }
        Format::Csv => anyhow::bail!("a proof pack is json or xlsx: it is no single table"),
    }
    Ok(Written { all_agree: agrees, figures: pack.figures })
}

async fn rules(db: &Db) -> Result<Vec<RuleVerdict>> {
    let mut verdicts = Vec::new();
    for rule in wiring::rules() {
        let holds = wiring::check(db, &rule).await?.is_none();
        verdicts.push(RuleVerdict { rule: rule.name, holds, what: rule.holds });
    }
    Ok(verdicts)
}

/// The pack with a signature over its canonical form (RFC 8785), so that any program can prove it.
fn signed(config: &Config, pack: &ProofPack, rules: &[RuleVerdict]) -> Result<Value> {
    let mut config = config.clone();
    let is_ours = !config.signing.private_key.is_empty();
    config.signing.complete(&mut config.apps);
    let key = SigningKey::read("ed25519", &config.signing.private_key)?;
    let body = json!({ "pack": pack, "rules": rules });
    let text = counterfoil_protocol::canon::read(body.to_string().as_bytes(), MAX_DEPTH)?;
    let canonical = counterfoil_protocol::canon::canonical(&text)?;
    let key_says = if is_ours {
        "signing.private-key of this installation"
    } else {
        "a key of this run only: set signing.private-key to prove who signed"
    };
    Ok(json!({
        "pack": pack,
        "rules": rules,
        "signature": {
            "over": "RFC 8785 form of {pack, rules}",
            "algorithm": key.algorithm(),
            "keyId": config.signing.app_key,
            "key": key_says,
            "publicKey": key.public(),
            "value": BASE64.encode(key.sign(canonical.as_bytes())),
        },
    }))
}

/// How deep a pack nests at most.
const MAX_DEPTH: usize = 32;

/// The file appears whole or not at all.
fn whole(path: &Path, write: impl FnOnce(&mut std::fs::File) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let mut part = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    write(part.as_file_mut())?;
    part.as_file().sync_all()?;
    part.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

fn spreadsheet(pack: &ProofPack, rules: &[RuleVerdict]) -> Result<Vec<u8>> {
    let mut book = Workbook::new();
    let figures = json!(pack.figures.stages);
    sheet(&mut book, "figures", &figures)?;
    sheet(&mut book, "decisions", &json!(pack.decisions))?;
    sheet(&mut book, "deliveries", &json!(pack.deliveries))?;
    sheet(&mut book, "batches", &json!(pack.batches))?;
    sheet(&mut book, "pushes", &json!(pack.pushes))?;
    sheet(&mut book, "rules", &json!(rules))?;
    Ok(book.save_to_buffer()?)
}

/// A list of objects as a sheet: their fields are the columns.
fn sheet(book: &mut Workbook, name: &str, rows: &Value) -> Result<()> {
    let sheet = book.add_worksheet().set_name(name)?;
    let Some(rows) = rows.as_array() else { return Ok(()) };
    let Some(first) = rows.first().and_then(Value::as_object) else { return Ok(()) };
    let columns: Vec<&String> = first.keys().collect();
    for (at, column) in columns.iter().enumerate() {
        sheet.write_string(0, u16::try_from(at)?, column.as_str())?;
    }
    for (line, row) in rows.iter().enumerate() {
        for (at, column) in columns.iter().enumerate() {
            let line = u32::try_from(line + 1)?;
            cell(sheet, line, u16::try_from(at)?, &row[column.as_str()])?;
        }
    }
    Ok(())
}

fn cell(sheet: &mut Worksheet, line: u32, column: u16, value: &Value) -> Result<()> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::String(text) => text.chars().take(MAX_CELL).collect(),
        Value::Object(money) if money.contains_key("yuan") => {
            money["yuan"].as_str().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    };
    sheet.write_string(line, column, text)?;
    Ok(())
}

/// Characters that a spreadsheet's cell holds.
const MAX_CELL: usize = 32_000;
