//! The outside world: a partner's secrets and address, and a bank that answers payment files.
//!
//! The bank lives in this process and is never killed. What it paid it remembers by its own
//! references, so that the proof does not rest on what the killed processes wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::PathBuf;

use counterfoil_payment::treasury::data_fix::{PayeeFix, fix};
use counterfoil_payment::treasury::result;
use counterfoil_remote::iso20022::read_report;
use tempfile::TempDir;

use super::Random;
use crate::{CREATOR, TestApp};

/// Ports below those that the system gives away, so that a restarted process finds its own free.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Payment files at most.
const MAX_FILES: usize = 10_000;
const SIGNING: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const SEALING: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA";

/// What is outside of the killed processes.
pub(super) struct Outside {
    address: String,
    outbox: TempDir,
    /// The reports that were sent, by file.
    answered: BTreeMap<PathBuf, String>,
    /// `EndToEndId` of each payment that the bank made.
    pub(super) paid: BTreeSet<String>,
    /// Payments that the bank refused.
    pub(super) refused: u32,
}

impl Outside {
    pub(super) fn new() -> Outside {
        let first = PORTS.start + u16::try_from(std::process::id() % 10_000).unwrap_or(0);
        let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = (first..PORTS.end).find(free).expect("a free port");
        Outside {
            address: format!("127.0.0.1:{port}"),
            outbox: tempfile::tempdir().expect("an outbox"),
            answered: BTreeMap::new(),
            paid: BTreeSet::new(),
            refused: 0,
        }
    }

    /// Where each process listens, one after the other.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What each process is told of the outside.
    pub(super) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("COUNTERFOIL_TREASURY__OUTBOX", self.outbox.path().display().to_string()),
            ("KILLS_SIGNING", SIGNING.to_owned()),
            ("KILLS_SEALING", SEALING.to_owned()),
        ]
    }

    /// The partner listens in the process itself and tells the same message apart by its key.
    pub(super) async fn partner(&self, app: &TestApp) {
        let address = &self.address;
        app.execute(&format!(
            "UPDATE sys_partner SET partner_no = 'P1', retry_policy = 'idempotent', key_id = 'k',
               endpoint = 'http://{address}/partner/1/review-results' WHERE id = 1;
             \nINSERT INTO partner_key (partner_id, key_id, signing_secret_ref, encryption_key_ref)
             VALUES (1, 'k', 'env:KILLS_SIGNING', 'env:KILLS_SEALING')"
        ))
        .await;
    }

    /// The bank answers files: all of them and without a refusal when it is `calm`. Some reports
    /// come twice.
    pub(super) async fn answer(&mut self, app: &TestApp, random: &mut Random, calm: bool) {
        self.answer_new(app, random, calm).await;
        let again = self.answered.values().filter(|_| random.below(4) == 0);
        for report in again.cloned().collect::<Vec<_>>() {
            import(app, &report).await;
        }
    }

    /// The bank answers files that it has not answered yet.
    pub(super) async fn answer_new(&mut self, app: &TestApp, random: &mut Random, calm: bool) {
        for path in self.files() {
            if self.answered.contains_key(&path) || (!calm && random.below(3) == 0) {
                continue;
            }
            let file = std::fs::read_to_string(&path).expect("a payment file");
            let report = self.report(&file, random, calm);
            import(app, &report).await;
            self.answered.insert(path, report);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.outbox.path()).expect("the outbox");
        let paths = entries.take(MAX_FILES).filter_map(|entry| Some(entry.ok()?.path()));
        // A file that has not got its name yet begins with a dot and ends in `.part`.
        let mut files: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|ending| ending == "xml")).collect();
        files.sort();
        files
    }

    fn report(&mut self, file: &str, random: &mut Random, calm: bool) -> String {
        let message = between(file, "<MsgId>", "</MsgId>").next().expect("a message id");
        let mut lines = String::new();
        for reference in between(file, "<EndToEndId>", "</EndToEndId>") {
            let (status, why) = if !calm && random.below(4) == 0 {
                self.refused += 1;
                ("RJCT", "<StsRsnInf><Rsn><Cd>AC01</Cd></Rsn></StsRsnInf>")
            } else {
                assert!(self.paid.insert(reference.to_owned()), "{reference} came in two files");
                ("ACSC", "")
            };
            lines.push_str(&format!(
                "<TxInfAndSts><OrgnlEndToEndId>{reference}</OrgnlEndToEndId>\
                 <TxSts>{status}</TxSts>{why}</TxInfAndSts>"
            ));
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.12\">\
             <CstmrPmtStsRpt><GrpHdr><MsgId>BANK-{message}</MsgId>\
             <CreDtTm>2026-10-02T01:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>\
             <OrgnlMsgId>{message}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>\
             </OrgnlGrpInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>{message}</OrgnlPmtInfId>\
             {lines}</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>"
        )
    }
}

async fn import(app: &TestApp, report: &str) {
    let read = read_report(report.as_bytes()).expect("a report");
    result::import(&app.db, &read, report.as_bytes(), CREATOR).await.expect("an applied report");
}

/// A person puts payees right of what failed: all of them when `calm`.
pub(super) async fn fix_failed(app: &TestApp, random: &mut Random, calm: bool) {
    let failed = "SELECT id FROM fi_resident_income_payment_push_batch_detail
        WHERE pay_status = 'PAY_FAILED' ORDER BY id";
    for id in app.lines(failed).await {
        if calm || random.below(2) == 0 {
            let detail = id.parse().expect("an id");
            let confirmed = PayeeFix::default();
            let fixed = fix(&app.db, detail, &confirmed, "核对账号无误", CREATOR).await;
            fixed.expect("a fix");
        }
    }
}

/// What stands between two marks, each time.
fn between<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(from).skip(1).filter_map(move |rest| rest.split(to).next())
}
