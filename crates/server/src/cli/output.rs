//! What a command says, once: for people or as one JSON object on one line.

use std::io::Write;
use std::process::ExitCode;

use counterfoil_payment::bill_import::RowFaults;
use serde::Serialize;
use serde_json::{Value, json};

/// A command's answer.
#[derive(Debug)]
pub struct Output {
    json: Value,
    text: String,
    failed: bool,
    said: bool,
}

/// An error with a stable code, for `--json` and scripts.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub code: &'static str,
    /// What a person reads.
    pub message: String,
}

impl Output {
    /// The same thing said twice.
    pub fn new(json: impl Serialize, text: impl Into<String>) -> Output {
        let json = serde_json::to_value(json).unwrap_or(Value::Null);
        Output { json, text: text.into(), failed: false, said: false }
    }

    /// The same with one thing more.
    #[must_use]
    pub fn and(mut self, name: &str, value: impl Serialize, text: &str) -> Output {
        self.json[name] = serde_json::to_value(value).unwrap_or(Value::Null);
        self.text.push_str(text);
        self
    }

    /// Prints it now, for a command that goes on; what is left says nothing more.
    pub fn print_now(self, as_json: bool) -> Output {
        let failed = self.failed;
        let printed = self.print(as_json);
        let failed = failed || printed != ExitCode::SUCCESS;
        Output { json: Value::Null, text: String::new(), failed, said: true }
    }

    /// Done, with failures: exit code 1.
    #[must_use]
    pub fn failed(mut self, failed: bool) -> Output {
        self.failed = failed;
        self
    }

    /// Prints it and answers the exit code.
    pub fn print(self, as_json: bool) -> ExitCode {
        if self.said {
            return ExitCode::from(u8::from(self.failed));
        }
        let said = if as_json { self.json.to_string() } else { self.text };
        let printed = writeln!(std::io::stdout().lock(), "{}", said.trim_end());
        match (printed, self.failed) {
            (Ok(()), false) => ExitCode::SUCCESS,
            _ => ExitCode::from(1),
        }
    }
}

/// Failures of the failures that are allowed; a task that is tried until it is done names no limit.
pub fn tries(failed: i64, most: i64) -> String {
    if most >= i64::from(i32::MAX) { failed.to_string() } else { format!("{failed}/{most}") }
}

/// Bytes as they are.
pub fn raw(bytes: &[u8]) -> ExitCode {
    match std::io::stdout().lock().write_all(bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    }
}

/// Refused: exit code 2, the reason on stderr, and as an object on stdout when machines listen.
pub fn refuse(as_json: bool, error: &anyhow::Error) -> ExitCode {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let message = causes.join(": ");
    // stderr may be closed; there is nobody left to tell.
    let _ = writeln!(std::io::stderr().lock(), "counterfoil: {message}");
    for fault in refused_rows(error).map(RowFaults::shown).unwrap_or_default() {
        let _ = writeln!(std::io::stderr().lock(), "  {fault}");
    }
    if as_json {
        let code = code_of(error);
        let mut problem = json!({ "code": code, "message": message });
        if let Some(faults) = refused_rows(error) {
            problem["faults"] = json!(super::import::faults_json(faults));
            problem["faultCount"] = json!(faults.total());
        }
        if let Some(fault) = unhashable(error) {
            problem["path"] = json!(fault.path);
            problem["reason"] = json!(fault.reason.to_string());
        }
        let _ = writeln!(std::io::stdout().lock(), "{problem}");
    }
    ExitCode::from(2)
}

/// What clap has to say: help, the version, or a command line that it refuses.
pub fn misspelt(error: &clap::Error) -> ExitCode {
    // Help goes to stdout, the rest to stderr; a closed one leaves nobody to tell.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|argument| argument == "--json") {
        let message = error.to_string();
        let problem = json!({ "code": "invalid-input", "message": message.trim_end() });
        let _ = writeln!(std::io::stdout().lock(), "{problem}");
    }
    ExitCode::from(2)
}

/// The faults of a refused file, by line and column.
fn refused_rows(error: &anyhow::Error) -> Option<&RowFaults> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(counterfoil_payment::PaymentError::RowsRefused(faults)) => Some(faults),
        _ => None,
    })
}

fn unhashable(error: &anyhow::Error) -> Option<&counterfoil_protocol::canon::Unhashable> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

fn code_of(error: &anyhow::Error) -> &'static str {
    for cause in error.chain() {
        if let Some(payment) = cause.downcast_ref::<counterfoil_payment::PaymentError>() {
            return payment.code();
        }
        if let Some(treasury) = cause.downcast_ref::<counterfoil_payment::treasury::TreasuryError>()
        {
            return treasury.code();
        }
        if let Some(review) = cause.downcast_ref::<counterfoil_review::ReviewError>() {
            return review.code();
        }
        if let Some(file) = cause.downcast_ref::<crate::files::FileError>() {
            return file.code();
        }
        if let Some(refusal) = cause.downcast_ref::<counterfoil_reconcile::Refusal>()
            && let Some(code) = refusal.refused()
        {
            return code.as_str();
        }
        if let Some(fault) = cause.downcast_ref::<counterfoil_protocol::canon::Unhashable>() {
            return fault.code();
        }
        if let Some(refusal) = cause.downcast_ref::<crate::rerun::TaskRefusal>() {
            return refusal.code();
        }
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.code;
        }
    }
    "refused"
}

/// A table for people: columns padded by characters, wide ones counted double.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| width(cell)).collect();
    for row in rows {
        for (at, cell) in row.iter().enumerate().take(widths.len()) {
            widths[at] = widths[at].max(width(cell));
        }
    }
    let line = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide.saturating_sub(width(cell)))));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = line(&header);
    for row in rows {
        text.push('\n');
        text.push_str(&line(row));
    }
    text
}

/// Characters that take two columns in a terminal: Chinese, Japanese, Korean and their
/// punctuation. Bullets and arrows take one.
const WIDE: [std::ops::RangeInclusive<char>; 6] = [
    '\u{1100}'..='\u{115f}',
    '\u{2e80}'..='\u{a4cf}',
    '\u{ac00}'..='\u{d7a3}',
    '\u{f900}'..='\u{faff}',
    '\u{fe30}'..='\u{fe6f}',
    '\u{ff00}'..='\u{ff60}',
];

fn width(text: &str) -> usize {
    text.chars()
        .map(|c| {
            let is_wide = WIDE.iter().any(|range| range.contains(&c));
            if is_wide { 2 } else { 1 }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chinese_character_takes_two_columns_and_a_bullet_one() {
        let rows = [["农户", "a"], ["● done", "b"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&["", "X"], &rows), "        X\n农户    a\n● done  b");
    }
}
