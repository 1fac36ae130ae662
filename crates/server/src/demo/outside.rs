//! The outside world of the demo: partners that listen, and a bank that answers payment files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use counterfoil_db::{Db, Read, sql};
use counterfoil_payment::kinds::{SIDE_EFFECT, STATUS_REFRESH};
use counterfoil_payment::partner_key::{self, NewKey};
use counterfoil_payment::treasury::data_fix::{PayeeFix, fix};
use counterfoil_payment::treasury::notice::PUSH_BATCH_NOTIFY;
use counterfoil_payment::treasury::push::PUSH_RETRY;
use counterfoil_payment::treasury::result;
use counterfoil_protocol::{OrderId, PartnerId};
use counterfoil_remote::EnvironmentAndFiles;
use counterfoil_remote::iso20022::read_report;
use counterfoil_task::Engine;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::approve::drain;
use super::{PREPARER, Progress, Proof};
use crate::api::partner::PartnerSimulator;

/// The bank refuses one payment in so many.
const REFUSED_ONE_OF: usize = 50;
/// Payment files at most, and details fixed by hand.
const MAX_FILES: usize = 10_000;

/// Every partner that has an address listens on a loopback port, with keys of its own.
///
/// # Errors
/// No port, no folder.
pub async fn partners(db: &Db, folder: &Path) -> Result<JoinSet<()>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let query = sql!(
        "SELECT id, key_id FROM sys_partner WHERE endpoint IS NOT NULL AND endpoint <> ''
         ORDER BY id"
    );
    let keys = folder.join("keys");
    std::fs::create_dir_all(&keys)?;
    for row in db.rows(query).await? {
        let id = row.int("id")?;
        let endpoint = format!("http://{address}/partner/{id}/review-results");
        let mut tx = db.begin().await?;
        tx.execute(sql!(
            "UPDATE sys_partner SET endpoint = :endpoint WHERE id = :id",
            endpoint = endpoint,
            id = id,
        ))
        .await?;
        tx.commit("demo.partner").await?;
        let key = row.maybe_text("key_id")?.context("the partner's key")?;
        let signing = secret(&keys.join(format!("{key}.sign")), |bytes| {
            format!("whsec_{}", STANDARD.encode(bytes))
        })?;
        let encryption =
            secret(&keys.join(format!("{key}.seal")), |bytes| URL_SAFE_NO_PAD.encode(bytes))?;
        let new = NewKey {
            partner: PartnerId(id),
            key_id: key,
            suite: "jose".into(),
            signing,
            encryption,
            valid_from: None,
        };
        partner_key::add(db, &new, PREPARER).await?;
    }
    let router =
        PartnerSimulator::new(db.clone(), std::sync::Arc::new(EnvironmentAndFiles)).router(address);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the demo's partners ended");
        }
    });
    Ok(serving)
}

/// Writes a fresh secret, and answers where it is.
fn secret(path: &Path, spelled: impl Fn([u8; 32]) -> String) -> Result<String> {
    std::fs::write(path, spelled(rand::random()))?;
    Ok(format!("file:{}", path.display()))
}

/// Partners are told and push batches are made.
pub async fn side_effects(engine: &Engine, progress: &Progress) -> Result<()> {
    drain(engine, SIDE_EFFECT.handler, progress).await
}

/// Every partner with an address has each of its chunks once.
pub async fn prove_told(db: &Db, order: OrderId) -> Result<Proof> {
    let query = sql!(
        "SELECT COUNT(CASE WHEN e.status = 'SUCCESS' THEN 1 END) AS told,
                COUNT(CASE WHEN e.status = 'SKIPPED' THEN 1 END) AS skipped,
                COUNT(*) AS chunks, COUNT(r.id) AS received
         FROM fi_resident_income_payment_external_log e
         LEFT JOIN partner_received r ON r.idempotency_key = e.idempotency_key
         WHERE e.payment_order_id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the external log")?;
    let (told, skipped) = (row.int("told")?, row.int("skipped")?);
    let (chunks, received) = (row.int("chunks")?, row.int("received")?);
    Ok(Proof::new(
        "partners told",
        told > 0 && told + skipped == chunks && received == told,
        format!(
            "{told} sealed and signed chunks accepted and received once, {skipped} without an \
             address"
        ),
    ))
}

/// Pushes every batch, lets the bank answer with some refusals, fixes those and pushes them again.
pub async fn pay(
    db: &Db,
    engine: &Engine,
    outbox: &Path,
    order: OrderId,
    progress: &Progress,
) -> Result<Vec<Proof>> {
    drain(engine, PUSH_BATCH_NOTIFY.handler, progress).await?;
    drain(engine, PUSH_RETRY.handler, progress).await?;
    let mut bank = Bank { outbox: outbox.to_owned(), answered: Vec::new() };
    let first = bank.answer(db, Some(REFUSED_ONE_OF)).await?;
    drain(engine, STATUS_REFRESH.handler, progress).await?;
    let between = status(db, order).await?;
    let refused = Proof::new(
        "bank refused some",
        first.refused > 0 && between.0 == 40 && between.1 == first.refused as i64,
        format!(
            "{} payments in {} pain.001 files, {} refused by pain.002: not PAID, no line lost",
            first.payments, first.files, first.refused
        ),
    );
    for detail in failed(db, order).await? {
        let corrected = PayeeFix::default();
        fix(db, detail, &corrected, "与农户核对账号无误", PREPARER).await?;
    }
    drain(engine, PUSH_RETRY.handler, progress).await?;
    let second = bank.answer(db, None).await?;
    drain(engine, STATUS_REFRESH.handler, progress).await?;
    let end = status(db, order).await?;
    let paid = Proof::new(
        "paid to the last line",
        end.0 == 50 && second.payments == first.refused && paid_sums(db, order).await?,
        format!("{} pushed again alone; every payable line PAID once", second.payments),
    );
    Ok(vec![refused, paid])
}

/// The order's status, and its lines whose payment failed.
async fn status(db: &Db, order: OrderId) -> Result<(i64, i64)> {
    let query = sql!(
        "SELECT o.status, (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
             WHERE l.payment_order_id = o.id AND l.line_status = 40) AS failed
         FROM fi_resident_income_payment_order o WHERE o.id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the order")?;
    Ok((row.int("status")?, row.int("failed")?))
}

/// What was paid is what was payable, to the fen, and the ledger says so bill by bill.
async fn paid_sums(db: &Db, order: OrderId) -> Result<bool> {
    let query = sql!(
        "SELECT o.total_amount,
            (SELECT CAST(COALESCE(SUM(d.amount), 0) AS {bigint})
               FROM fi_resident_income_payment_push_batch b
               JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
              WHERE b.payment_order_id = o.id AND d.pay_status = 'PAID') AS paid,
            (SELECT COUNT(*) FROM fi_monthly_income_difference d
              WHERE d.locked_payment_order_id = o.id AND d.payment_status <> 60) AS unpaid
         FROM fi_resident_income_payment_order o WHERE o.id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the order")?;
    Ok(row.int("total_amount")? == row.int("paid")? && row.int("unpaid")? == 0)
}

async fn failed(db: &Db, order: OrderId) -> Result<Vec<i64>> {
    let query = sql!(
        "SELECT d.id FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
         WHERE b.payment_order_id = :order AND d.pay_status = 'PAY_FAILED'
         ORDER BY d.id LIMIT :most",
        order = order.0,
        most = i64::try_from(MAX_FILES)?,
    );
    db.rows(query).await?.iter().map(|row| Ok(row.int("id")?)).collect()
}

/// A bank that reads payment files and writes status reports.
struct Bank {
    outbox: PathBuf,
    answered: Vec<PathBuf>,
}

#[derive(Default)]
struct Answered {
    files: usize,
    payments: usize,
    refused: usize,
}

impl Bank {
    /// Answers every file that it has not answered yet; refuses one payment in so many.
    async fn answer(&mut self, db: &Db, refused_one_of: Option<usize>) -> Result<Answered> {
        let mut done = Answered::default();
        let mut files: Vec<PathBuf> = std::fs::read_dir(&self.outbox)
            .context("the outbox")?
            .take(MAX_FILES)
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
            .filter(|path| !self.answered.contains(path))
            .collect();
        files.sort();
        for path in files {
            let file = std::fs::read_to_string(&path)?;
            let message = between(&file, "<MsgId>", "</MsgId>").next().context("a message id")?;
            let mut lines = String::new();
            for reference in between(&file, "<EndToEndId>", "</EndToEndId>") {
                done.payments += 1;
                let refuses = refused_one_of.is_some_and(|n| done.payments.is_multiple_of(n));
                done.refused += usize::from(refuses);
                let (status, why) = match refuses {
                    true => ("RJCT", "<StsRsnInf><Rsn><Cd>AC01</Cd></Rsn></StsRsnInf>"),
                    false => ("ACSC", ""),
                };
                lines.push_str(&format!(
                    "<TxInfAndSts><OrgnlEndToEndId>{reference}</OrgnlEndToEndId>\
                     <TxSts>{status}</TxSts>{why}</TxInfAndSts>"
                ));
            }
            let report = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.12\">\
                 <CstmrPmtStsRpt><GrpHdr><MsgId>BANK-{message}</MsgId>\
                 <CreDtTm>2026-10-02T01:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>\
                 <OrgnlMsgId>{message}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>\
                 </OrgnlGrpInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>{message}</OrgnlPmtInfId>\
                 {lines}</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>"
            );
            let read = read_report(report.as_bytes())?;
            result::import(db, &read, report.as_bytes(), PREPARER).await?;
            done.files += 1;
            self.answered.push(path);
        }
        Ok(done)
    }
}

/// What stands between two marks, each time.
fn between<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(from).skip(1).filter_map(move |rest| rest.split(to).next())
}
