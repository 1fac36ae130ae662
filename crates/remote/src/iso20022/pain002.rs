//! A pain.002.001.12 file as a result report.
//!
//! Read strictly: another root, another version, a DTD, a missing id, an amount in another
//! currency or more than the limits allow, and the whole file is refused with its line. What is
//! read is only what decides: ids, statuses, reasons and amounts.

use counterfoil_payment::treasury::port::{GroupStatus, ReportEntry, Reported, ResultReport};
use counterfoil_payment::treasury::result::MAX_ENTRIES;
use counterfoil_protocol::Fen;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use thiserror::Error;

const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:pain.002.001.12";
/// The longest file that is read.
pub const MAX_REPORT_BYTES: usize = 32 * 1024 * 1024;
/// Elements within elements at most; the schema has far fewer.
const MAX_DEPTH: usize = 32;
/// Characters kept of one element's text.
const MAX_TEXT: usize = 512;

/// Why a file is no status report.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} (byte {at})")]
pub struct ReportError {
    what: String,
    at: u64,
}

/// Reads a file.
///
/// # Errors
/// What is wrong with it; nothing of it may be applied then.
pub fn read_report(bytes: &[u8]) -> Result<ResultReport, ReportError> {
    let broken = |what: &str| ReportError { what: what.to_owned(), at: 0 };
    if bytes.len() > MAX_REPORT_BYTES {
        return Err(broken("the file is longer than 32 MiB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ReportError {
        what: "the file is not UTF-8".into(),
        at: u64::try_from(error.valid_up_to()).unwrap_or(0),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading::default();
    let mut reader = Reader::from_str(text);
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event();
        let event = event.map_err(|error| ReportError { what: error.to_string(), at })?;
        let ended = matches!(event, Event::Eof);
        reading.take(event).map_err(|what| ReportError { what, at })?;
        if ended {
            let at = reader.buffer_position();
            return reading.into_report().map_err(|what| ReportError { what, at });
        }
    }
}

#[derive(Default)]
struct Reading {
    path: Vec<String>,
    text: String,
    seen_root: bool,
    report_id: Option<String>,
    message_id: Option<String>,
    message_name: Option<String>,
    group: Status,
    block: Status,
    rejected_block: Option<Status>,
    line: Option<Line>,
    entries: Vec<ReportEntry>,
    currency: Option<String>,
}

#[derive(Default, Clone)]
struct Status {
    code: Option<String>,
    reason_code: Option<String>,
    reason: Option<String>,
}

#[derive(Default)]
struct Line {
    reference: Option<String>,
    status: Status,
    amount: Option<Fen>,
}

const BLOCK: &str = "Document/CstmrPmtStsRpt/OrgnlPmtInfAndSts";
const LINE: &str = "Document/CstmrPmtStsRpt/OrgnlPmtInfAndSts/TxInfAndSts";

impl Reading {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(element) => self.open(&element),
            Event::Empty(element) => {
                self.open(&element)?;
                self.close()
            }
            Event::End(_) => self.close(),
            Event::Text(text) => {
                self.add(&text.xml10_content());
                Ok(())
            }
            Event::CData(text) => {
                self.add(&text.xml10_content());
                Ok(())
            }
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content().into_owned();
                match reference.resolve_char_ref() {
                    Ok(Some(c)) => self.add(c.encode_utf8(&mut [0; 4])),
                    Ok(None) => match resolve_predefined_entity(&name) {
                        Some(text) => self.add(text),
                        None => return Err(format!("it holds the unknown entity &{name};")),
                    },
                    Err(error) => return Err(error.to_string()),
                }
                Ok(())
            }
            Event::DocType(_) => Err("it has a document type, which no report has".into()),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Eof => Ok(()),
        }
    }

    fn add(&mut self, text: &str) {
        let room = MAX_TEXT.saturating_sub(self.text.chars().count());
        self.text.extend(text.chars().take(room));
    }

    fn open(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let name = element.local_name().as_ref().to_owned();
        if self.path.is_empty() {
            check_root(element, &name, self.seen_root)?;
            self.seen_root = true;
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} elements within each other"));
        }
        self.path.push(name);
        self.text.clear();
        let path = self.path.join("/");
        if path == BLOCK {
            self.block = Status::default();
        }
        if path == LINE {
            self.line = Some(Line::default());
        }
        if path.ends_with("/InstdAmt") {
            let currency = element.attributes().flatten().find(|a| a.key.as_ref() == "Ccy");
            self.currency = currency.map(|a| a.value.clone().into_owned());
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let path = self.path.join("/");
        let text = self.text.trim().to_owned();
        self.text.clear();
        self.path.pop();
        if let Some(within) = path.strip_prefix(LINE) {
            return self.close_in_line(within, text);
        }
        if let Some(within) = path.strip_prefix(BLOCK) {
            self.close_in_block(within, text);
            return Ok(());
        }
        match path.strip_prefix("Document/CstmrPmtStsRpt/").unwrap_or_default() {
            "GrpHdr/MsgId" => once(&mut self.report_id, text, "GrpHdr/MsgId")?,
            "OrgnlGrpInfAndSts/OrgnlMsgId" => once(&mut self.message_id, text, "OrgnlMsgId")?,
            "OrgnlGrpInfAndSts/OrgnlMsgNmId" => self.message_name = Some(text),
            "OrgnlGrpInfAndSts/GrpSts" => self.group.code = Some(text),
            other => {
                if let Some(within) = other.strip_prefix("OrgnlGrpInfAndSts") {
                    self.group.reasons(within, text);
                }
            }
        }
        Ok(())
    }

    fn close_in_block(&mut self, within: &str, text: String) {
        match within {
            "/PmtInfSts" => self.block.code = Some(text),
            // A rejected block without lines names all its lines; ours has one block a message.
            "" if self.block.code.as_deref() == Some("RJCT") => {
                self.rejected_block = Some(self.block.clone());
            }
            _ => self.block.reasons(within, text),
        }
    }

    fn close_in_line(&mut self, within: &str, text: String) -> Result<(), String> {
        if within.is_empty() {
            let line = self.line.take().unwrap_or_default();
            if self.entries.len() >= MAX_ENTRIES {
                return Err(format!("it has more than {MAX_ENTRIES} entries"));
            }
            self.entries.push(line.into_entry()?);
            return Ok(());
        }
        let Some(line) = &mut self.line else {
            return Ok(());
        };
        match within {
            "/OrgnlEndToEndId" => once(&mut line.reference, text, "OrgnlEndToEndId"),
            "/TxSts" => once(&mut line.status.code, text, "TxSts"),
            "/OrgnlTxRef/Amt/InstdAmt" => {
                if self.currency.as_deref() != Some("CNY") {
                    let currency = self.currency.as_deref().unwrap_or("no currency");
                    return Err(format!("an amount is in {currency}, not in CNY"));
                }
                line.amount = Some(amount(&text)?);
                Ok(())
            }
            _ => {
                line.status.reasons(within, text);
                Ok(())
            }
        }
    }

    fn into_report(self) -> Result<ResultReport, String> {
        if !self.path.is_empty() || !self.seen_root {
            return Err("it ends before its document does".into());
        }
        let report_id = self.report_id.ok_or("GrpHdr/MsgId is missing")?;
        let message_id = self.message_id.ok_or("OrgnlGrpInfAndSts/OrgnlMsgId is missing")?;
        if !self.message_name.unwrap_or_default().starts_with("pain.001") {
            return Err("OrgnlMsgNmId says that it is about no pain.001".into());
        }
        let whole = self.rejected_block.filter(|_| self.group.code.is_none()).unwrap_or(self.group);
        let group = whole.code.map(|code| GroupStatus {
            is_rejected: code == "RJCT",
            code,
            reason_code: whole.reason_code,
            reason: whole.reason,
        });
        Ok(ResultReport { report_id, message_id, group, entries: self.entries })
    }
}

fn check_root(element: &BytesStart<'_>, name: &str, again: bool) -> Result<(), String> {
    if again || name != "Document" {
        return Err("its root is not one Document".into());
    }
    let prefix = element.name().prefix();
    let wanted = match prefix.as_ref().map(|prefix| prefix.as_ref()) {
        None => "xmlns".to_owned(),
        Some(prefix) => format!("xmlns:{prefix}"),
    };
    let namespace = element.attributes().flatten().find(|a| a.key.as_ref() == wanted);
    match namespace {
        Some(found) if found.value == NAMESPACE => Ok(()),
        Some(found) => Err(format!("it is {}, not {NAMESPACE}", found.value)),
        None => Err(format!("it is not {NAMESPACE}")),
    }
}

fn once(slot: &mut Option<String>, text: String, name: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{name} is empty"));
    }
    if slot.replace(text).is_some() {
        return Err(format!("{name} stands twice"));
    }
    Ok(())
}

/// Decimals beyond the second must be zeros: nothing is rounded.
fn amount(text: &str) -> Result<Fen, String> {
    let trimmed = match text.split_once('.') {
        Some((_, decimals)) if decimals.len() > 2 => {
            let cut = text.trim_end_matches('0');
            cut.strip_suffix('.').unwrap_or(cut)
        }
        _ => text,
    };
    Fen::from_yuan(trimmed).map_err(|error| format!("the amount {text} {error}"))
}

impl Status {
    fn reasons(&mut self, within: &str, text: String) {
        match within {
            "/StsRsnInf/Rsn/Cd" | "/StsRsnInf/Rsn/Prtry" => {
                self.reason_code.get_or_insert(text);
            }
            "/StsRsnInf/AddtlInf" => {
                self.reason.get_or_insert(text);
            }
            _ => {}
        }
    }
}

impl Line {
    fn into_entry(self) -> Result<ReportEntry, String> {
        let end_to_end_id = self.reference.ok_or("a TxInfAndSts has no OrgnlEndToEndId")?;
        let code = self.status.code.ok_or("a TxInfAndSts has no TxSts")?;
        let status = match code.as_str() {
            // Settled on the creditor's account, or at least completed by the debtor's bank.
            "ACSC" | "ACCC" => Reported::Paid,
            "RJCT" | "CANC" => Reported::Rejected,
            "ACCP" | "ACSP" | "ACTC" | "ACWC" | "ACWP" | "ACFC" | "ACPD" | "PDNG" | "RCVD"
            | "PRES" | "PATC" | "PART" | "BLCK" => Reported::Pending,
            other => return Err(format!("the status {other} of {end_to_end_id} is not known")),
        };
        let Status { reason_code, reason, .. } = self.status;
        Ok(ReportEntry { end_to_end_id, status, amount: self.amount, reason_code, reason })
    }
}
