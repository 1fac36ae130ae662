//! Who may edit a session and when; removing bills and deciding about them by hand.

use std::collections::{HashMap, HashSet};

use counterfoil_db::{Bind, Db, Read, Text, Tx, Value, sql, transact};
use counterfoil_protocol::{BillMonth, OrderId, SessionId, UserId};

use super::add::{ADD_BATCH, BillKey, Line, PAYABLE, Selection, UNQUALIFIED, by_month};
use super::candidate::{self, Candidate};
use super::qualify::{BY_HAND, Tolerance, qualify};
use crate::row_batch::update_rows;
use crate::{Mode, PaymentError};

/// A person at work on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Editor {
    /// The session.
    pub session: SessionId,
    /// The person.
    pub user: UserId,
}

/// What decides over editing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditFacts {
    pub id: SessionId,
    pub creator: UserId,
    pub status: String,
    pub is_invalidated: bool,
    pub state_version: i64,
    /// The order it revises, or the one that a submission of it made.
    pub order: Option<OrderId>,
    /// Data version and round of the lines that a revision starts from.
    pub source: Option<(i64, i64)>,
}

/// Starts a transaction that edits: reads the session, decides, and takes its row by comparing and
/// raising `state_version`, so that a submission sees an edit wholly or not at all.
pub(super) async fn begin_edit(db: &Db, editor: Editor) -> Result<(Tx, EditFacts), PaymentError> {
    let mut tx = db.begin().await?;
    let facts = read(&tx, editor.session).await?;
    may_edit(&facts, editor.user)?;
    if !take(&mut tx, &facts).await? {
        return Err(PaymentError::Conflict(format!("session {}", editor.session)));
    }
    Ok((tx, facts))
}

async fn read(from: &impl Read, session: SessionId) -> Result<EditFacts, PaymentError> {
    let query = sql!(
        "SELECT s.mode, s.status, s.creator_user_id, s.invalidated_flag, s.state_version,
                s.target_payment_order_id, o.current_publish_version, o.submit_round
         FROM selection_session s
         LEFT JOIN fi_resident_income_payment_order o ON o.id = s.target_payment_order_id
         WHERE s.id = :session AND s.deleted = 0",
        session = session.0,
    );
    let row = from.row(query).await?.ok_or(PaymentError::SessionNotFound(session))?;
    let source = match Mode::stored(&row.text("mode")?) {
        Mode::New => None,
        Mode::Revise => {
            row.maybe_int("current_publish_version")?.zip(row.maybe_int("submit_round")?)
        }
    };
    Ok(EditFacts {
        id: session,
        creator: UserId(row.int("creator_user_id")?),
        status: row.text("status")?,
        is_invalidated: row.int("invalidated_flag")? == 1,
        state_version: row.int("state_version")?,
        order: row.maybe_int("target_payment_order_id")?.map(OrderId),
        source,
    })
}

/// Only its creator, only before it is submitted or after that failed, never once it is over.
fn may_edit(session: &EditFacts, user: UserId) -> Result<(), PaymentError> {
    if session.creator != user {
        let why = format!("session {} belongs to user {}", session.id, session.creator);
        return Err(PaymentError::Forbidden(why));
    }
    let why = match session.status.as_str() {
        "EDITING" | "SUBMIT_FAILED" if session.is_invalidated => "it is invalidated and over",
        "EDITING" | "SUBMIT_FAILED" => return Ok(()),
        _ => "only EDITING or SUBMIT_FAILED can be edited",
    };
    Err(PaymentError::SessionState {
        session: session.id,
        status: session.status.clone(),
        why: why.to_owned(),
    })
}

/// Guard: state_version, status and flag are as read. Whether it won.
async fn take(tx: &mut Tx, session: &EditFacts) -> Result<bool, PaymentError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET state_version = state_version + 1, heartbeat_time = :now, update_time = :now
         WHERE id = :session AND deleted = 0 AND state_version = :state_version
           AND status = :status AND invalidated_flag = 0",
        session = session.id.0,
        state_version = session.state_version,
        status = &session.status,
        now = now,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Removes bills; answers how many were there.
///
/// # Errors
/// Whoever is not the session's creator, or comes when it cannot be edited, is refused.
pub async fn remove_bills(
    db: &Db,
    editor: Editor,
    selection: &Selection,
) -> Result<u64, PaymentError> {
    transact!(remove(db, editor, selection))
}

async fn remove(db: &Db, editor: Editor, selection: &Selection) -> Result<u64, PaymentError> {
    let (mut tx, session) = begin_edit(db, editor).await?;
    let mut removed = 0;
    match selection {
        Selection::Month { month, company: None, partner: None } => {
            let delete = sql!(
                "DELETE FROM selection_session_item
                 WHERE session_id = :session AND bill_yearmonth = :month",
                session = session.id.0,
                month = month.as_str(),
            );
            removed += tx.execute(delete).await?;
        }
        Selection::Month { month, company, partner } => {
            let delete = sql!(
                "DELETE FROM selection_session_item
                 WHERE session_id = :session AND bill_yearmonth = :month
                   AND diff_id IN (SELECT d.id FROM fi_monthly_income_difference d
                        WHERE d.bill_yearmonth = :month
                          AND (:company IS NULL OR d.project_company_id = :company)
                          AND (:partner IS NULL OR d.partner_id = :partner))",
                session = session.id.0,
                month = month.as_str(),
                company = *company,
                partner = *partner,
            );
            removed += tx.execute(delete).await?;
        }
        Selection::Bills(bills) => {
            for (month, stations) in by_month(bills)? {
                for stations in stations.chunks(ADD_BATCH) {
                    let delete = sql!(
                        "DELETE FROM selection_session_item
                         WHERE session_id = :session AND bill_yearmonth = :month
                           AND station_id IN :stations",
                        session = session.id.0,
                        month = month.as_str(),
                    );
                    removed += tx.execute(delete.bind_list("stations", stations)).await?;
                }
            }
        }
    }
    tx.commit("session.remove").await?;
    Ok(removed)
}

/// A bill about which the decision by hand could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmarked {
    /// The bill.
    pub bill: BillKey,
    /// Why not.
    pub why: String,
}

/// What deciding by hand did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    /// Lines that are now as asked.
    pub changed: u64,
    /// Lines that stayed as they were, with the reason.
    pub unmarked: Vec<Unmarked>,
}

const NOT_HERE: &str = "it is not in this session";

/// Takes lines out of payment by hand (用户手动选到不合格). A line that is not paid for another
/// reason keeps that one.
///
/// # Errors
/// Whoever is not the session's creator, or comes when it cannot be edited, is refused.
pub async fn mark_unqualified(
    db: &Db,
    editor: Editor,
    bills: &[BillKey],
) -> Result<Marked, PaymentError> {
    transact!(mark_out(db, editor, bills))
}

async fn mark_out(db: &Db, editor: Editor, bills: &[BillKey]) -> Result<Marked, PaymentError> {
    let (mut tx, session) = begin_edit(db, editor).await?;
    let mut marked = Marked::default();
    for (month, stations) in by_month(bills)? {
        for stations in stations.chunks(ADD_BATCH) {
            let lines = lines(&tx, session.id, &month, stations).await?;
            let update = sql!(
                "UPDATE selection_session_item
                 SET line_type = :unqualified, unqualified_reason = :reason, pay_amount = 0,
                     update_time = :now
                 WHERE session_id = :session AND bill_yearmonth = :month AND deleted = 0
                   AND station_id IN :stations AND line_type = :payable",
                session = session.id.0,
                month = month.as_str(),
                payable = PAYABLE,
                unqualified = UNQUALIFIED,
                reason = BY_HAND,
                now = tx.now(),
            );
            marked.changed += tx.execute(update.bind_list("stations", stations)).await?;
            let missing = stations.iter().filter(|station| !lines.contains(*station));
            marked.unmarked.extend(missing.map(|station| unmarked(station, &month, NOT_HERE)));
        }
    }
    tx.commit("session.mark").await?;
    Ok(marked)
}

fn unmarked(station: &str, month: &BillMonth, why: impl Into<String>) -> Unmarked {
    let bill = BillKey { station: station.to_owned(), month: month.clone() };
    Unmarked { bill, why: why.into() }
}

/// Which of some stations have a line in the session.
async fn lines(
    tx: &Tx,
    session: SessionId,
    month: &BillMonth,
    stations: &[String],
) -> Result<HashSet<String>, PaymentError> {
    let query = sql!(
        "SELECT station_id FROM selection_session_item
         WHERE session_id = :session AND bill_yearmonth = :month AND station_id IN :stations
           AND deleted = 0",
        session = session.0,
        month = month.as_str(),
    );
    let rows = tx.rows(query.bind_list("stations", stations)).await?;
    Ok(rows.iter().map(|row| row.text("station_id")).collect::<Result<_, _>>()?)
}

/// Takes lines back into payment. Each is judged anew by the ledger as it stands: what does not
/// qualify by itself cannot be paid by hand, and keeps or gets its reason.
///
/// # Errors
/// Whoever is not the session's creator, or comes when it cannot be edited, is refused.
pub async fn mark_payable(
    db: &Db,
    editor: Editor,
    bills: &[BillKey],
    tolerance: &Tolerance,
) -> Result<Marked, PaymentError> {
    transact!(mark_in(db, editor, bills, tolerance))
}

async fn mark_in(
    db: &Db,
    editor: Editor,
    bills: &[BillKey],
    tolerance: &Tolerance,
) -> Result<Marked, PaymentError> {
    let (mut tx, session) = begin_edit(db, editor).await?;
    let mut marked = Marked::default();
    for (month, stations) in by_month(bills)? {
        for stations in stations.chunks(ADD_BATCH) {
            let found = candidate::of_stations(&tx, &session, &month, stations).await?;
            let mut found: HashMap<String, Candidate> =
                found.into_iter().map(|known| (known.key.station.clone(), known)).collect();
            let mut rows = Vec::new();
            for station in stations {
                match judge(found.remove(station), tolerance) {
                    Ok(row) => {
                        marked.changed += 1;
                        rows.push(row);
                    }
                    Err((row, why)) => {
                        rows.extend(row);
                        marked.unmarked.push(unmarked(station, &month, why));
                    }
                }
            }
            update_rows(&mut tx, JUDGE_AGAIN, rows).await?;
        }
    }
    tx.commit("session.mark").await?;
    Ok(marked)
}

/// The item's new columns; with a reason when it cannot be paid, and without columns when it
/// cannot even be in the session any more.
type Judged = Result<Vec<Value>, (Option<Vec<Value>>, String)>;

fn judge(candidate: Option<Candidate>, tolerance: &Tolerance) -> Judged {
    let Some(candidate) = candidate else {
        return Err((None, NOT_HERE.to_owned()));
    };
    let Some(item) = candidate.item else {
        return Err((None, NOT_HERE.to_owned()));
    };
    if let Some(blocker) = candidate.blocker {
        return Err((None, blocker.to_string()));
    }
    let line = Line::of(qualify(&candidate.rents, tolerance));
    let row = vec![
        item.bind(),
        line.line_type.bind(),
        line.reason.bind(),
        candidate.rents.pre_rent.map(|fen| fen.0).bind(),
        line.pay_amount.0.bind(),
    ];
    match line.reason {
        None => Ok(row),
        Some(reason) => Err((Some(row), reason.to_owned())),
    }
}

const JUDGE_AGAIN: Text = Text::Forked {
    standard: "WITH fresh (id, line_type, unqualified_reason, pre_rent, pay_amount)
                 AS (VALUES :rows)
     UPDATE selection_session_item AS i
     SET line_type = fresh.line_type, unqualified_reason = fresh.unqualified_reason,
         pre_rent = fresh.pre_rent, pay_amount = fresh.pay_amount, update_time = :now
     FROM fresh WHERE i.id = fresh.id",
    mariadb: "UPDATE selection_session_item i
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', line_type SMALLINT PATH '$[1]',
         unqualified_reason VARCHAR(255) PATH '$[2]', pre_rent BIGINT PATH '$[3]',
         pay_amount BIGINT PATH '$[4]')) fresh
       ON i.id = fresh.id
     SET i.line_type = fresh.line_type, i.unqualified_reason = fresh.unqualified_reason,
         i.pre_rent = fresh.pre_rent, i.pay_amount = fresh.pay_amount, i.update_time = :now",
};
