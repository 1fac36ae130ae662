//! A push as a pain.001.001.09 document.
//!
//! One payment information block a message, CNY, two decimals. Count and control sum are computed
//! from the lines that are written, never taken from elsewhere.

use counterfoil_payment::treasury::port::{Instruction, InstructionLine, LineFault};
use counterfoil_protocol::Fen;
use quick_xml::escape::escape;

use super::characters::{Characters, is_sepa};

const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09";
/// Lengths of the schema.
const MAX_ACCOUNT: usize = 34;
const MAX_NAME: usize = 140;

/// What keeps a line out of the document.
pub(super) fn fault(line: &InstructionLine, characters: Characters) -> Option<LineFault> {
    let fault = |code, message: String| Some(LineFault { code, message });
    if line.amount <= Fen::ZERO {
        return fault("amount-not-positive", "the amount is not above zero".into());
    }
    let account = line.payee_account.trim();
    let fits = (1..=MAX_ACCOUNT).contains(&account.chars().count());
    if !fits || !account.chars().all(|c| c.is_ascii_alphanumeric()) {
        let why = format!("the account number must have 1 to {MAX_ACCOUNT} letters and digits");
        return fault("payee-account-invalid", why);
    }
    for (what, text) in [("name", &line.payee_name), ("bank", &line.payee_bank)] {
        match characters.fit(text) {
            Err(c) => {
                let why = format!("the payee's {what} holds {:?}, which cannot be sent", c);
                return fault("payee-characters", why);
            }
            Ok(text) if text.chars().count() > MAX_NAME => {
                let why = format!("the payee's {what} has more than {MAX_NAME} characters");
                return fault("payee-characters", why);
            }
            Ok(text) if text.is_empty() && what == "name" => {
                return fault("payee-missing", "the payee's name is blank".into());
            }
            Ok(_) => {}
        }
    }
    None
}

/// Yuan with exactly two decimals.
pub(super) fn yuan(amount: Fen) -> String {
    format!("{}.{:02}", amount.0 / 100, amount.0 % 100)
}

/// The document. Lines must have no [`fault`].
pub(super) fn render(instruction: &Instruction, characters: Characters) -> String {
    let count = instruction.lines.len().to_string();
    let total = yuan(Fen(instruction.lines.iter().map(|line| line.amount.0).sum()));
    let mut xml = Xml::default();
    xml.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.text.push_str(&format!("<Document xmlns=\"{NAMESPACE}\">"));
    xml.within("CstmrCdtTrfInitn", |xml| {
        xml.within("GrpHdr", |xml| {
            xml.leaf("MsgId", &instruction.message_id);
            xml.leaf("CreDtTm", &instruction.created.format("%Y-%m-%dT%H:%M:%SZ").to_string());
            xml.leaf("NbOfTxs", &count);
            xml.leaf("CtrlSum", &total);
            xml.within("InitgPty", |xml| xml.name(&instruction.payer_name, characters));
        });
        xml.within("PmtInf", |xml| {
            xml.leaf("PmtInfId", &instruction.message_id);
            xml.leaf("PmtMtd", "TRF");
            xml.leaf("BtchBookg", "true");
            xml.leaf("NbOfTxs", &count);
            xml.leaf("CtrlSum", &total);
            xml.within("ReqdExctnDt", |xml| xml.leaf("Dt", &instruction.pay_day));
            xml.within("Dbtr", |xml| xml.name(&instruction.payer_name, characters));
            xml.within("DbtrAcct", |xml| {
                xml.account(&instruction.payer_account);
                xml.leaf("Ccy", "CNY");
            });
            // The account says which bank; there is no number of it to give.
            xml.agent(|xml| xml.within("Othr", |xml| xml.leaf("Id", "NOTPROVIDED")), "DbtrAgt");
            for line in &instruction.lines {
                xml.within("CdtTrfTxInf", |xml| transfer(xml, line, characters));
            }
        });
    });
    xml.text.push_str("</Document>\n");
    xml.text
}

fn transfer(xml: &mut Xml, line: &InstructionLine, characters: Characters) {
    xml.within("PmtId", |xml| {
        xml.leaf("InstrId", &line.end_to_end_id);
        xml.leaf("EndToEndId", &line.end_to_end_id);
    });
    xml.within("Amt", |xml| {
        xml.text.push_str(&format!("<InstdAmt Ccy=\"CNY\">{}</InstdAmt>", yuan(line.amount)));
    });
    let bank = characters.fit(&line.payee_bank).unwrap_or_default();
    if !bank.is_empty() {
        xml.agent(|xml| xml.leaf("Nm", &bank), "CdtrAgt");
    }
    xml.within("Cdtr", |xml| xml.name(&line.payee_name, characters));
    xml.within("CdtrAcct", |xml| xml.account(&line.payee_account));
    // Station and month: ours, so that what has no place in the set is left out.
    let purpose: String = line.purpose.chars().filter(|c| is_sepa(*c)).take(MAX_NAME).collect();
    if !purpose.trim().is_empty() {
        xml.within("RmtInf", |xml| xml.leaf("Ustrd", purpose.trim()));
    }
}

/// XML that is written from its beginning to its end.
#[derive(Default)]
struct Xml {
    text: String,
}

impl Xml {
    fn within(&mut self, name: &str, content: impl FnOnce(&mut Xml)) {
        self.text.push_str(&format!("<{name}>"));
        content(self);
        self.text.push_str(&format!("</{name}>"));
    }

    fn leaf(&mut self, name: &str, text: &str) {
        self.text.push_str(&format!("<{name}>{}</{name}>", escape(text)));
    }

    fn agent(&mut self, content: impl FnOnce(&mut Xml), name: &str) {
        self.within(name, |xml| xml.within("FinInstnId", content));
    }

    fn account(&mut self, number: &str) {
        let number: String = number.trim().chars().take(MAX_ACCOUNT).collect();
        self.within("Id", |xml| xml.within("Othr", |xml| xml.leaf("Id", &number)));
    }

    /// A party's name, if there is one: it may be left out.
    fn name(&mut self, name: &str, characters: Characters) {
        let fitted = characters.fit(name).unwrap_or_default();
        let fitted: String = fitted.chars().take(MAX_NAME).collect();
        if !fitted.is_empty() {
            self.leaf("Nm", &fitted);
        }
    }
}
