//! What people did: who, what, to what, why, under which request, and what came of it.
//!
//! Rows are added and never changed. An action is written down before it is done, so that a process
//! that dies in it leaves the question behind; its outcome is a second row of the same request.

use counterfoil_db::{Db, Instant, Read, Row, sql, transact};

use crate::people::Account;
use crate::{AccountError, cut};

/// Rows of a list.
pub const MAX_LISTED: u32 = 200;

/// What came of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is about to be done.
    Asked,
    /// It was done.
    Done,
    /// It was not done, for a reason.
    Refused,
    /// It may have been done.
    Failed,
}

impl Outcome {
    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Asked => "ASKED",
            Outcome::Done => "DONE",
            Outcome::Refused => "REFUSED",
            Outcome::Failed => "FAILED",
        }
    }
}

/// Who acts, and in which request.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Who.
    pub account: Account,
    /// Where he is.
    pub address: String,
    /// The request.
    pub request_id: String,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub struct Deed<'a> {
    /// A stable name.
    pub action: &'a str,
    /// To what.
    pub subject: &'a str,
    /// Why, in the person's words.
    pub reason: &'a str,
}

/// A row that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub id: i64,
    /// The request.
    pub request_id: String,
    /// Who.
    pub account_id: Option<i64>,
    /// His login then.
    pub login: String,
    /// His role then.
    pub role: String,
    /// Where he was.
    pub address: String,
    /// What.
    pub action: String,
    /// To what.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// What came of it.
    pub outcome: String,
    /// In words.
    pub detail: String,
    /// When.
    pub time: Instant,
}

/// Adds a row.
pub async fn record(
    db: &Db,
    actor: &Actor,
    deed: Deed<'_>,
    outcome: Outcome,
    detail: &str,
) -> Result<(), AccountError> {
    transact!(record_once(db, actor, deed, outcome, detail))
}

async fn record_once(
    db: &Db,
    actor: &Actor,
    deed: Deed<'_>,
    outcome: Outcome,
    detail: &str,
) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    tx.execute(sql!(
        "INSERT INTO account_audit (request_id, account_id, login, role, address, action, subject,
           reason, outcome, detail, create_time)
         VALUES (:request, :account, :login, :role, :address, :action, :subject, :reason,
           :outcome, :detail, :now)",
        request = cut(&actor.request_id, 64),
        account = actor.account.id,
        login = actor.account.login.as_str(),
        role = actor.account.role.as_str(),
        address = cut(&actor.address, 64),
        action = deed.action,
        subject = cut(deed.subject, 191),
        reason = cut(deed.reason, 1000),
        outcome = outcome.as_str(),
        detail = cut(detail, 1000),
        now = now,
    ))
    .await?;
    tx.commit("account.audit").await?;
    Ok(())
}

/// What was done, newest first.
pub async fn list(
    from: &impl Read,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Entry>, AccountError> {
    let query = sql!(
        "SELECT id, request_id, account_id, login, role, address, action, subject, reason, outcome,
                detail, create_time
         FROM account_audit WHERE id < :before ORDER BY id DESC LIMIT :limit",
        before = before.unwrap_or(i64::MAX),
        limit = limit.clamp(1, MAX_LISTED),
    );
    from.rows(query).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Entry, AccountError> {
    Ok(Entry {
        id: row.int("id")?,
        request_id: row.text("request_id")?,
        account_id: row.maybe_int("account_id")?,
        login: row.text("login")?,
        role: row.text("role")?,
        address: row.text("address")?,
        action: row.text("action")?,
        subject: row.text("subject")?,
        reason: row.text("reason")?,
        outcome: row.text("outcome")?,
        detail: row.text("detail")?,
        time: row.instant("create_time")?,
    })
}

/// How far back the outcome of a request is looked for.
const NEWEST: u32 = 20;

/// What came of a request of this person: its last row.
pub async fn of_request(
    from: &impl Read,
    account: i64,
    request_id: &str,
) -> Result<Option<Entry>, AccountError> {
    let query = sql!(
        "SELECT id, request_id, account_id, login, role, address, action, subject, reason, outcome,
                detail, create_time
         FROM account_audit WHERE account_id = :account ORDER BY id DESC LIMIT :limit",
        account = account,
        limit = NEWEST,
    );
    let rows = from.rows(query).await?;
    let entries: Vec<Entry> = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(entries.into_iter().find(|entry| entry.request_id == request_id))
}
