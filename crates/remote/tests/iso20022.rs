//! ISO 20022 files: what is written is valid, and what is read is read strictly.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use counterfoil_payment::treasury::port::{
    Instruction, InstructionLine, Message, PaymentChannel, PushAnswer, Reported,
};
use counterfoil_protocol::Fen;
use counterfoil_remote::iso20022::{Characters, OutboxChannel, read_report};

const PAIN001: &str = "pain.001.001.09.xsd";
const PAIN002: &str = "pain.002.001.12.xsd";

/// What xmllint says of a document, by the published schema. `./test` installs xmllint.
fn trouble(schema: &str, document: &str) -> Option<String> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas").join(schema);
    let mut lint = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("xmllint is there: ./test installs Debian's libxml2-utils");
    let mut stdin = lint.stdin.take().expect("a pipe");
    stdin.write_all(document.as_bytes()).expect("xmllint reads");
    drop(stdin);
    let output = lint.wait_with_output().expect("xmllint ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

fn line(number: i64, amount: i64) -> InstructionLine {
    InstructionLine {
        detail: number,
        end_to_end_id: format!("CFD{number}-1"),
        amount: Fen(amount),
        payee_name: "王小明".into(),
        payee_account: format!("622202{number:013}"),
        payee_bank: "中国工商银行 <A&B> \"支行\"".into(),
        purpose: "S-01_x 202609".into(),
    }
}

fn instruction(lines: Vec<InstructionLine>) -> Instruction {
    Instruction {
        message_id: "CF1000000000001-1".into(),
        batch_no: "PB1-1-1-1".into(),
        created: "2026-09-30T16:00:00.123456Z".parse().expect("an instant"),
        pay_day: "2026-10-01".into(),
        payer_name: "阳光能源有限公司".into(),
        payer_account: "110900000000001".into(),
        lines,
    }
}

fn outbox(folder: &Path) -> OutboxChannel {
    OutboxChannel::new(folder, Characters::Printable)
}

fn message(body: &str) -> Message {
    Message { message_id: "CF7-1".into(), body: body.into(), sha256: String::new() }
}

#[test]
fn a_rendered_push_is_valid_against_the_published_schema() {
    let channel = outbox(Path::new("."));
    for lines in [vec![line(1, 1)], (1..=300).map(|n| line(n, n * 37)).collect()] {
        let document = channel.render(&instruction(lines));
        assert_eq!(trouble(PAIN001, &document), None);
    }
    let bare = InstructionLine {
        payee_bank: String::new(),
        purpose: "电站".into(),
        ..line(1, i64::MAX / 100)
    };
    let bare = Instruction { payer_name: String::new(), ..instruction(vec![bare]) };
    let shortest = channel.render(&bare);
    assert_eq!(trouble(PAIN001, &shortest), None);
    assert!(trouble(PAIN001, &shortest.replace("TRF", "XXX")).is_some(), "xmllint does look");
}

#[test]
fn count_and_control_sum_are_those_of_the_lines_and_amounts_have_two_decimals() {
    let lines = vec![line(1, 5), line(2, 100), line(3, 123_456)];
    let document = outbox(Path::new(".")).render(&instruction(lines));
    assert_eq!(document.matches("<NbOfTxs>3</NbOfTxs>").count(), 2);
    assert_eq!(document.matches("<CtrlSum>1235.61</CtrlSum>").count(), 2);
    for amount in ["0.05", "1.00", "1234.56"] {
        assert!(document.contains(&format!("<InstdAmt Ccy=\"CNY\">{amount}</InstdAmt>")));
    }
    assert!(document.contains("<ReqdExctnDt><Dt>2026-10-01</Dt></ReqdExctnDt>"));
    assert!(document.contains("<MsgId>CF1000000000001-1</MsgId>"));
}

#[test]
fn a_line_that_the_file_has_no_place_for_is_refused_by_name() {
    let channel = outbox(Path::new("."));
    let sepa = OutboxChannel::new(".", Characters::Sepa);
    assert_eq!(channel.fault(&line(1, 1)), None);
    assert_eq!(sepa.fault(&line(1, 1)).expect("no Latin").code, "payee-characters");
    let table = [
        ("amount-not-positive", line(1, 0)),
        ("amount-not-positive", line(1, -1)),
        ("payee-account-invalid", InstructionLine { payee_account: "1".repeat(35), ..line(1, 1) }),
        ("payee-account-invalid", InstructionLine { payee_account: "62-22".into(), ..line(1, 1) }),
        ("payee-account-invalid", InstructionLine { payee_account: String::new(), ..line(1, 1) }),
        ("payee-characters", InstructionLine { payee_name: "a\nb".into(), ..line(1, 1) }),
        ("payee-characters", InstructionLine { payee_name: "a\u{202e}b".into(), ..line(1, 1) }),
        ("payee-characters", InstructionLine { payee_bank: "x".repeat(141), ..line(1, 1) }),
        ("payee-missing", InstructionLine { payee_name: " ".into(), ..line(1, 1) }),
    ];
    for (code, line) in table {
        assert_eq!(channel.fault(&line).map(|fault| fault.code), Some(code), "{line:?}");
    }
}

#[tokio::test]
async fn a_file_is_written_whole_and_writing_it_again_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let channel = outbox(&folder.path().join("out"));
    assert!(matches!(channel.inquire(&message("x")).await, PushAnswer::Unknown { .. }));
    for _ in 0..2 {
        let answer = channel.send(&message("the bytes")).await;
        let PushAnswer::Accepted { reference, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(reference.as_deref(), Some("CF7-1.xml"));
        let names: Vec<_> = std::fs::read_dir(folder.path().join("out"))
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        assert_eq!(names, ["CF7-1.xml"], "no half-written file stays");
    }
    assert!(matches!(channel.inquire(&message("the bytes")).await, PushAnswer::Accepted { .. }));
    for answer in [channel.send(&message("other")).await, channel.inquire(&message("other")).await]
    {
        assert!(matches!(answer, PushAnswer::Unknown { .. }), "other bytes: {answer:?}");
    }
    let kept = std::fs::read_to_string(folder.path().join("out/CF7-1.xml")).expect("the file");
    assert_eq!(kept, "the bytes");
}

#[tokio::test]
async fn an_outbox_that_cannot_be_written_is_a_certain_refusal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("a file");
    let answer = outbox(&file).send(&message("x")).await;
    assert!(matches!(answer, PushAnswer::Refused { .. }), "{answer:?}");
}

fn report(header: &str, blocks: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.12\"><CstmrPmtStsRpt>\
         <GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-10-02T01:00:00Z</CreDtTm></GrpHdr>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>CF7-1</OrgnlMsgId>\
         <OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>{header}</OrgnlGrpInfAndSts>{blocks}\
         </CstmrPmtStsRpt></Document>"
    )
}

fn block(lines: &str) -> String {
    format!("<OrgnlPmtInfAndSts><OrgnlPmtInfId>CF7-1</OrgnlPmtInfId>{lines}</OrgnlPmtInfAndSts>")
}

fn status(reference: &str, status: &str, more: &str) -> String {
    format!(
        "<TxInfAndSts><OrgnlEndToEndId>{reference}</OrgnlEndToEndId><TxSts>{status}</TxSts>{more}\
         </TxInfAndSts>"
    )
}

#[test]
fn a_status_report_is_read_line_by_line() {
    let reason = "<StsRsnInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>closed &amp; gone</AddtlInf>\
        </StsRsnInf><OrgnlTxRef><Amt><InstdAmt Ccy=\"CNY\">12.30000</InstdAmt></Amt></OrgnlTxRef>";
    let lines = [
        status("CFD1-1", "ACSC", ""),
        status("CFD2-1", "RJCT", reason),
        status("CFD3-1", "ACSP", ""),
        status("CFD4-1", "ACCC", ""),
        status("CFD5-1", "CANC", ""),
    ];
    let document = report("<GrpSts>PART</GrpSts>", &block(&lines.concat()));
    assert_eq!(trouble(PAIN002, &document), None, "the test's own file is valid");
    let read = read_report(document.as_bytes()).expect("a report");
    assert_eq!((read.report_id.as_str(), read.message_id.as_str()), ("BANK-1", "CF7-1"));
    let group = read.group.expect("a group status");
    assert_eq!((group.code.as_str(), group.is_rejected), ("PART", false));
    let statuses: Vec<_> = read.entries.iter().map(|entry| entry.status).collect();
    use Reported::{Paid, Pending, Rejected};
    assert_eq!(statuses, [Paid, Rejected, Pending, Paid, Rejected]);
    let refused = &read.entries[1];
    assert_eq!(refused.amount, Some(Fen(1230)));
    assert_eq!(refused.reason_code.as_deref(), Some("AC04"));
    assert_eq!(refused.reason.as_deref(), Some("closed & gone"));
}

#[test]
fn a_prefix_for_the_namespace_changes_nothing() {
    let plain = report("", &block(&status("CFD1-1", "ACSC", "")));
    let prefixed = plain
        .replace("xmlns=", "xmlns:p=")
        .replace("</", "</p:")
        .replace('<', "<p:")
        .replace("<p:/p:", "</p:")
        .replace("<p:?", "<?");
    assert_eq!(trouble(PAIN002, &prefixed), None, "{prefixed}");
    assert_eq!(read_report(prefixed.as_bytes()), read_report(plain.as_bytes()));
}

#[test]
fn a_message_or_its_block_may_be_refused_as_a_whole() {
    let reason = "<StsRsnInf><Rsn><Prtry>LIMIT</Prtry></Rsn></StsRsnInf>";
    let whole = report(&format!("<GrpSts>RJCT</GrpSts>{reason}"), "");
    let of_block = report("", &block(&format!("<PmtInfSts>RJCT</PmtInfSts>{reason}")));
    for document in [whole, of_block] {
        assert_eq!(trouble(PAIN002, &document), None);
        let read = read_report(document.as_bytes()).expect("a report");
        let group = read.group.expect("a group status");
        assert!(group.is_rejected && read.entries.is_empty());
        assert_eq!(group.reason_code.as_deref(), Some("LIMIT"));
    }
}

#[test]
fn what_is_no_status_report_is_refused() {
    let good = report("", &block(&status("CFD1-1", "ACSC", "")));
    assert!(read_report(good.as_bytes()).is_ok());
    let of = |from: &str, to: &str| good.replace(from, to).into_bytes();
    let euro = "<OrgnlTxRef><Amt><InstdAmt Ccy=\"EUR\">1.00</InstdAmt></Amt></OrgnlTxRef>";
    let third = "<OrgnlTxRef><Amt><InstdAmt Ccy=\"CNY\">1.001</InstdAmt></Amt></OrgnlTxRef>";
    let deep = "<a>".repeat(40);
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("not XML", b"report;CFD1-1;ACSC".to_vec()),
        ("not UTF-8", [good.as_bytes(), &[0xff]].concat()),
        ("cut short", good.as_bytes()[..good.len() - 30].to_vec()),
        ("two roots", format!("{good}<Document/>").into_bytes()),
        ("another version", of("pain.002.001.12", "pain.002.001.03")),
        ("no namespace", of(" xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.12\"", "")),
        ("about no pain.001", of("pain.001.001.09", "pain.008.001.02")),
        ("no report id", of("<MsgId>BANK-1</MsgId>", "")),
        ("no message id", of("<OrgnlMsgId>CF7-1</OrgnlMsgId>", "")),
        ("two message ids", of("<OrgnlMsgNmId>", "<OrgnlMsgId>X</OrgnlMsgId><OrgnlMsgNmId>")),
        ("no reference", of("<OrgnlEndToEndId>CFD1-1</OrgnlEndToEndId>", "")),
        ("no status", of("<TxSts>ACSC</TxSts>", "")),
        ("an unknown status", of("ACSC", "XXXX")),
        ("another currency", of("</TxInfAndSts>", &format!("{euro}</TxInfAndSts>"))),
        ("a third decimal", of("</TxInfAndSts>", &format!("{third}</TxInfAndSts>"))),
        ("too deep", of("</TxInfAndSts>", &format!("{deep}</TxInfAndSts>"))),
        ("a DTD", of("<Document", "<!DOCTYPE d [<!ENTITY x \"y\">]><Document")),
        ("an unknown entity", of("BANK-1", "BANK&x;1")),
    ];
    for (what, bytes) in table {
        assert!(read_report(&bytes).is_err(), "{what}");
    }
}
