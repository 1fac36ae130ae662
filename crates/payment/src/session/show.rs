//! What a session holds and how it stands.

use counterfoil_db::{Instant, Read, sql};
use counterfoil_protocol::{BillMonth, Fen, OrderId, SessionId, UserId, VersionId};

use super::add::{BillKey, PAYABLE};
use crate::{Mode, PaymentError};

/// Conflicts shown at most; all are counted.
pub const MAX_CONFLICTS: i64 = 20;
/// Groups of lines shown at most: months by reasons. An order has a handful.
pub const MAX_GROUPS: i64 = 200;

/// A session as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub session: SessionId,
    /// NEW or REVISE.
    pub mode: Mode,
    /// Its status.
    pub status: String,
    /// Who may edit and submit it.
    pub creator: UserId,
    /// The order it revises or has made.
    pub order: Option<OrderId>,
    /// That order's number.
    pub order_no: Option<String>,
    /// How often it was submitted.
    pub submit_attempt: i64,
    /// Raised by every change.
    pub state_version: i64,
    /// When it was last edited.
    pub heartbeat: Option<Instant>,
    /// Why it is over, if it was invalidated.
    pub invalidated: Option<String>,
    /// The last submission's failure, while the session is SUBMIT_FAILED.
    pub failure: Option<Failure>,
    /// Lines in all.
    pub lines: u64,
    /// Lines that are paid.
    pub payable: u64,
    /// Lines that are not.
    pub unqualified: u64,
    /// What is paid in all.
    pub payable_amount: Fen,
    /// The lines by month and reason, the largest groups first within a month.
    pub groups: Vec<Group>,
}

/// Lines of one month with one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The month.
    pub month: BillMonth,
    /// Why they are not paid; none = they are.
    pub reason: Option<String>,
    /// How many.
    pub lines: u64,
    /// What is paid for them.
    pub amount: Fen,
}

/// Why a submission failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub phase: Option<String>,
    /// The code kept with the version record.
    pub code: Option<String>,
    /// The message kept with it.
    pub message: Option<String>,
    /// How many bills another order held.
    pub conflict_count: u64,
    /// The first of them.
    pub conflicts: Vec<Conflict>,
}

/// A bill that another order held when the session was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The bill.
    pub bill: BillKey,
    /// The order that held it.
    pub order: OrderId,
    /// That order's number.
    pub order_no: Option<String>,
    /// RESERVED or ACTIVE.
    pub lock_status: String,
}

/// Shows a session.
///
/// # Errors
/// [`PaymentError::SessionNotFound`].
pub async fn show(from: &impl Read, session: SessionId) -> Result<SessionView, PaymentError> {
    let query = sql!(
        "SELECT s.mode, s.status, s.creator_user_id, s.target_payment_order_id, o.order_no,
                s.submit_attempt, s.state_version, s.heartbeat_time, s.failure_phase,
                s.invalidated_flag, s.invalidated_reason
         FROM selection_session s
         LEFT JOIN fi_resident_income_payment_order o ON o.id = s.target_payment_order_id
         WHERE s.id = :session AND s.deleted = 0",
        session = session.0,
    );
    let row = from.row(query).await?.ok_or(PaymentError::SessionNotFound(session))?;
    let status = row.text("status")?;
    let failure = match status.as_str() {
        "SUBMIT_FAILED" => Some(failure(from, session, row.maybe_text("failure_phase")?).await?),
        _ => None,
    };
    let invalidated = match row.int("invalidated_flag")? {
        1 => Some(row.maybe_text("invalidated_reason")?.unwrap_or_default()),
        _ => None,
    };
    let totals = totals(from, session).await?;
    Ok(SessionView {
        session,
        mode: Mode::stored(&row.text("mode")?),
        status,
        creator: UserId(row.int("creator_user_id")?),
        order: row.maybe_int("target_payment_order_id")?.map(OrderId),
        order_no: row.maybe_text("order_no")?,
        submit_attempt: row.int("submit_attempt")?,
        state_version: row.int("state_version")?,
        heartbeat: row.maybe_instant("heartbeat_time")?,
        invalidated,
        failure,
        lines: totals.payable + totals.unqualified,
        payable: totals.payable,
        unqualified: totals.unqualified,
        payable_amount: totals.amount,
        groups: groups(from, session).await?,
    })
}

#[derive(Default)]
struct Totals {
    payable: u64,
    unqualified: u64,
    amount: Fen,
}

async fn totals(from: &impl Read, session: SessionId) -> Result<Totals, PaymentError> {
    let query = sql!(
        "SELECT line_type, COUNT(*) AS line_count,
                CAST(COALESCE(SUM(pay_amount), 0) AS {bigint}) AS amount
         FROM selection_session_item
         WHERE session_id = :session AND deleted = 0
         GROUP BY line_type",
        session = session.0,
    );
    let mut totals = Totals::default();
    for row in from.rows(query).await? {
        let lines = row.int("line_count")?.unsigned_abs();
        if row.int("line_type")? == PAYABLE {
            totals.payable = lines;
            totals.amount = Fen(row.int("amount")?);
        } else {
            totals.unqualified = lines;
        }
    }
    Ok(totals)
}

async fn groups(from: &impl Read, session: SessionId) -> Result<Vec<Group>, PaymentError> {
    let query = sql!(
        "SELECT bill_yearmonth, unqualified_reason, COUNT(*) AS line_count,
                CAST(COALESCE(SUM(pay_amount), 0) AS {bigint}) AS amount
         FROM selection_session_item
         WHERE session_id = :session AND deleted = 0
         GROUP BY bill_yearmonth, unqualified_reason
         ORDER BY bill_yearmonth, line_count DESC, unqualified_reason
         LIMIT :limit",
        session = session.0,
        limit = MAX_GROUPS,
    );
    let mut groups = Vec::new();
    for row in from.rows(query).await? {
        groups.push(Group {
            month: BillMonth::stored(row.text("bill_yearmonth")?),
            reason: row.maybe_text("unqualified_reason")?,
            lines: row.int("line_count")?.unsigned_abs(),
            amount: Fen(row.int("amount")?),
        });
    }
    Ok(groups)
}

/// What the last submission's version record says.
async fn failure(
    from: &impl Read,
    session: SessionId,
    phase: Option<String>,
) -> Result<Failure, PaymentError> {
    let query = sql!(
        "SELECT id, error_code, error_message
         FROM fi_resident_income_payment_order_version
         WHERE session_id = :session AND deleted = 0
         ORDER BY id DESC LIMIT 1",
        session = session.0,
    );
    let mut failure =
        Failure { phase, code: None, message: None, conflict_count: 0, conflicts: Vec::new() };
    let Some(row) = from.row(query).await? else {
        return Ok(failure);
    };
    let version = VersionId(row.int("id")?);
    failure.code = row.maybe_text("error_code")?;
    failure.message = row.maybe_text("error_message")?;
    let count = sql!(
        "SELECT COUNT(*) FROM selection_conflict
         WHERE payment_order_version_id = :version AND deleted = 0",
        version = version.0,
    );
    failure.conflict_count = from.count(count).await?.unsigned_abs();
    failure.conflicts = conflicts(from, version).await?;
    Ok(failure)
}

async fn conflicts(from: &impl Read, version: VersionId) -> Result<Vec<Conflict>, PaymentError> {
    let query = sql!(
        "SELECT station_id, bill_yearmonth, holder_order_id, holder_order_no, holder_lock_status
         FROM selection_conflict
         WHERE payment_order_version_id = :version AND deleted = 0
         ORDER BY id LIMIT :limit",
        version = version.0,
        limit = MAX_CONFLICTS,
    );
    let mut conflicts = Vec::new();
    for row in from.rows(query).await? {
        conflicts.push(Conflict {
            bill: BillKey {
                station: row.text("station_id")?,
                month: BillMonth::stored(row.text("bill_yearmonth")?),
            },
            order: OrderId(row.int("holder_order_id")?),
            order_no: row.maybe_text("holder_order_no")?,
            lock_status: row.text("holder_lock_status")?,
        });
    }
    Ok(conflicts)
}
