//! What became of the payments: a report is applied whole, in one transaction.
//!
//! Source: payment-flow.md "S09 side effects"; conventions.md: a line missing from a pain.002 is
//! unknown, never success. Every entry of a report gets its outcome, and those that cannot be
//! applied are named. A report has at most as many entries as a message has lines, which bounds the
//! transaction.

mod decide;
mod write;

use counterfoil_db::{Db, Read, Row, Tx, sql, transact};
use counterfoil_protocol::UserId;
use serde::Serialize;

use super::port::{ReportEntry, Reported, ResultReport};
use super::refresh::{self, OrderLines};
use super::{MAX_BATCH_DETAILS, TreasuryError, cut, sum_up};
use decide::{Change, Decision, Item, Reviewed};

pub use decide::Outcome;
pub(super) use write::has_unpaid;

/// Entries of one report at most: a message's lines, and room for strangers among them.
pub const MAX_ENTRIES: usize = 10_000;
/// Entries in trouble that an answer names.
const MAX_SHOWN: usize = 20;

/// Where a report comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A file that a person imported.
    File,
    /// A receiver's answer to a push or a status query.
    Answer,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Source::File => "FILE",
            Source::Answer => "ANSWER",
        }
    }
}

/// What applying a report came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The report's row.
    pub result_id: i64,
    /// The report's own id.
    pub report_id: String,
    /// Whether it was applied before: nothing changed now.
    pub known: bool,
    /// Entries in it.
    pub entries: i64,
    /// Details that changed.
    pub changed: i64,
    /// Entries that could not be applied.
    pub refused: i64,
    /// The first of these: `reference: outcome`.
    pub troubles: Vec<String>,
}

/// Applies a report from a file.
///
/// # Errors
/// [`TreasuryError::ReportStranger`], [`TreasuryError::ReportConflict`],
/// [`TreasuryError::ReportUnreadable`]; nothing of the report is applied then.
pub async fn import(
    db: &Db,
    report: &ResultReport,
    content: &[u8],
    user: UserId,
) -> Result<Applied, TreasuryError> {
    let sha256 = super::sha256(content);
    transact!(try_import(db, report, &sha256, user))
}

async fn try_import(
    db: &Db,
    report: &ResultReport,
    sha256: &str,
    user: UserId,
) -> Result<Applied, TreasuryError> {
    let mut tx = db.begin().await?;
    let applied = apply(&mut tx, report, sha256, Source::File, Some(user)).await?;
    tx.commit("treasury.result.apply").await?;
    Ok(applied)
}

struct Push {
    id: i64,
    settled: bool,
    batch: i64,
    order: i64,
    data: i64,
    round: i64,
}

impl Push {
    fn reviewed(&self) -> Reviewed {
        Reviewed { push: self.id, settled: self.settled }
    }

    fn lines(&self) -> OrderLines {
        OrderLines { order: self.order, data: self.data, round: self.round }
    }
}

/// Applies a report within the caller's transaction.
pub(super) async fn apply(
    tx: &mut Tx,
    report: &ResultReport,
    sha256: &str,
    source: Source,
    user: Option<UserId>,
) -> Result<Applied, TreasuryError> {
    check(report)?;
    let push = find_push(tx, &report.message_id).await?;
    lock_order(tx, push.order).await?;
    if let Some(known) = known(tx, report, sha256).await? {
        return Ok(known);
    }
    let items = items(tx, push.id).await?;
    let Decision { entries, changes } = decide::decide(&items, report, push.reviewed());
    let result = insert(tx, &push, report, sha256, source, user).await?;
    write::entries(tx, result, &entries).await?;
    write::details(tx, &changes, source == Source::Answer).await?;
    write::lines(tx, &changes).await?;
    settle_push(tx, &push).await?;
    sum_up::batch(tx, push.batch).await?;
    sum_up::order(tx, push.batch).await?;
    write::order(tx, push.lines(), &changes).await?;
    let touched = changes.iter().filter(|change| change.pays.is_some());
    let touched: Vec<i64> = touched.map(|change| change.line).collect();
    refresh::plan(tx, push.lines(), result, &touched).await?;
    let told = told(report, result, &entries, &changes);
    finish(tx, &told).await?;
    Ok(told)
}

/// What can be refused without looking at anything else.
fn check(report: &ResultReport) -> Result<(), TreasuryError> {
    let unreadable = |why: String| Err(TreasuryError::ReportUnreadable(why));
    if report.report_id.trim().is_empty() || report.report_id.chars().count() > 128 {
        return unreadable("it has no id of its own, or one longer than 128 characters".into());
    }
    if report.entries.len() > MAX_ENTRIES {
        return unreadable(format!("it has more than {MAX_ENTRIES} entries"));
    }
    if report.entries.is_empty() && report.group.is_none() {
        return unreadable("it says nothing of the message nor of any line".into());
    }
    Ok(())
}

async fn find_push(tx: &mut Tx, message: &str) -> Result<Push, TreasuryError> {
    let query = sql!(
        "SELECT p.id, p.push_state, p.push_batch_id, b.payment_order_id, b.data_version,
            b.submit_round
         FROM fi_resident_income_payment_push p
         JOIN fi_resident_income_payment_push_batch b ON b.id = p.push_batch_id
         WHERE p.message_id = :message",
        message = message,
    );
    let stranger = || TreasuryError::ReportStranger { message: cut(message, 64) };
    let row = tx.row(query).await?.ok_or_else(stranger)?;
    Ok(Push {
        id: row.int("id")?,
        settled: !matches!(&*row.text("push_state")?, "SENDING" | "UNKNOWN"),
        batch: row.int("push_batch_id")?,
        order: row.int("payment_order_id")?,
        data: row.int("data_version")?,
        round: row.int("submit_round")?,
    })
}

async fn lock_order(tx: &mut Tx, order: i64) -> Result<(), TreasuryError> {
    let lock = sql!(
        "SELECT id FROM fi_resident_income_payment_order WHERE id = :order {for_update}",
        order = order,
    );
    tx.row(lock).await?;
    Ok(())
}

/// The same report again changes nothing; another one under its id is refused.
async fn known(
    tx: &mut Tx,
    report: &ResultReport,
    sha256: &str,
) -> Result<Option<Applied>, TreasuryError> {
    let query = sql!(
        "SELECT id, content_sha256, entry_count, changed_count, refused_count
         FROM fi_resident_income_payment_push_result WHERE report_id = :report",
        report = report.report_id.as_str(),
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(None);
    };
    if row.text("content_sha256")? != sha256 {
        return Err(TreasuryError::ReportConflict { report: report.report_id.clone() });
    }
    Ok(Some(Applied {
        result_id: row.int("id")?,
        report_id: report.report_id.clone(),
        known: true,
        entries: row.int("entry_count")?,
        changed: row.int("changed_count")?,
        refused: row.int("refused_count")?,
        troubles: Vec::new(),
    }))
}

/// What was pushed, with how each detail stands now.
async fn items(tx: &mut Tx, push: i64) -> Result<Vec<Item>, TreasuryError> {
    let query = sql!(
        "SELECT i.end_to_end_id, i.amount, d.id, d.order_bill_id, d.push_status, d.pay_status,
            d.push_id
         FROM fi_resident_income_payment_push_item i
         JOIN fi_resident_income_payment_push_batch_detail d ON d.id = i.push_batch_detail_id
         WHERE i.push_id = :push ORDER BY i.id LIMIT :limit",
        push = push,
        limit = MAX_BATCH_DETAILS,
    );
    let item = |row: &Row| {
        Ok(Item {
            reference: row.text("end_to_end_id")?,
            amount: row.int("amount")?,
            detail: row.int("id")?,
            line: row.int("order_bill_id")?,
            push_status: row.text("push_status")?,
            pay_status: row.maybe_text("pay_status")?,
            push: row.maybe_int("push_id")?,
        })
    };
    tx.rows(query).await?.iter().map(item).collect()
}

async fn insert(
    tx: &mut Tx,
    push: &Push,
    report: &ResultReport,
    sha256: &str,
    source: Source,
    user: Option<UserId>,
) -> Result<i64, TreasuryError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_push_result
           (report_id, content_sha256, source, push_id, payment_order_id, group_status,
            operator_user_id, create_time, update_time)
         VALUES (:report, :sha256, :source, :push, :order, :status, :user, :now, :now)",
        report = report.report_id.as_str(),
        sha256 = sha256,
        source = source.as_str(),
        push = push.id,
        order = push.order,
        status = report.group.as_ref().map(|group| cut(&group.code, 16)),
        user = user.map(|user| user.0),
        now = now,
    );
    Ok(tx.insert(insert).await?)
}

/// All details of an accepted push are on their way.
pub(super) async fn mark_pushed(tx: &mut Tx, push: i64) -> Result<u64, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_batch_detail
         SET push_status = 'PUSHED', pay_status = 'PAYING', error_code = NULL,
             error_message = NULL, update_time = :now
         WHERE push_id = :push AND push_status = 'WAIT_PUSH'",
        now = now,
        push = push,
    );
    Ok(tx.execute(update).await?)
}

/// A push without a verdict is settled once every line of it has been named. A line that no report
/// names stays unknown, and the push with it.
async fn settle_push(tx: &mut Tx, push: &Push) -> Result<(), TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push
         SET push_state = 'ACCEPTED', lease_expire_time = NULL, settled_time = :now,
             error_message = NULL, update_time = :now
         WHERE id = :push AND push_state IN ('SENDING', 'UNKNOWN')
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_push_batch_detail d
             WHERE d.push_id = :push AND d.push_status = 'WAIT_PUSH')",
        now = now,
        push = push.id,
    );
    tx.execute(update).await?;
    Ok(())
}

fn told(
    report: &ResultReport,
    result: i64,
    entries: &[(ReportEntry, Outcome, Option<i64>)],
    changes: &[Change],
) -> Applied {
    let refused = entries.iter().filter(|(_, outcome, _)| outcome.is_refused());
    let shown = refused.clone().take(MAX_SHOWN);
    Applied {
        result_id: result,
        report_id: report.report_id.clone(),
        known: false,
        entries: i64::try_from(entries.len()).unwrap_or(i64::MAX),
        changed: i64::try_from(changes.len()).unwrap_or(i64::MAX),
        refused: i64::try_from(refused.count()).unwrap_or(i64::MAX),
        troubles: shown
            .map(|(entry, outcome, _)| {
                format!("{}: {}", cut(&entry.end_to_end_id, 64), outcome.as_str())
            })
            .collect(),
    }
}

async fn finish(tx: &mut Tx, told: &Applied) -> Result<(), TreasuryError> {
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_result
         SET entry_count = :entries, changed_count = :changed, refused_count = :refused
         WHERE id = :result",
        entries = told.entries,
        changed = told.changed,
        refused = told.refused,
        result = told.result_id,
    ))
    .await?;
    Ok(())
}

impl Reported {
    /// What it does to `pay_status`.
    fn pay_status(self) -> &'static str {
        match self {
            Reported::Pending => "PAYING",
            Reported::Paid => "PAID",
            Reported::Rejected => "PAY_FAILED",
        }
    }
}
