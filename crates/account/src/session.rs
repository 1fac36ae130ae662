//! Sessions: a token that only its holder knows, its hash in the database.

use chrono::TimeDelta;
use counterfoil_db::{Db, Instant, Query, Read, Tx, sql, transact};
use sha2::{Digest, Sha256};

use crate::AccountError;
use crate::password::random_text;
use crate::people::{Account, account_columns};

/// A session ends after so long, whatever happens in it.
pub const LASTS: TimeDelta = TimeDelta::hours(12);
/// It ends sooner when nothing happens in it.
pub const IDLE: TimeDelta = TimeDelta::hours(1);
/// Sessions of one account at most; the oldest make room.
const MAX_OF_ACCOUNT: usize = 10;
/// How exactly it is known when a session was last used: one write a minute is enough.
const SEEN_EVERY: TimeDelta = TimeDelta::minutes(1);
/// Expired sessions cleared with each new one.
const CLEARED_AT_ONCE: u32 = 100;
/// Bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub struct Signed {
    /// Who.
    pub account: Account,
    /// What proves that a form came out of one of his own pages.
    pub csrf: String,
}

fn hashed(purpose: &str, text: &str) -> String {
    let digest = Sha256::digest(format!("counterfoil.{purpose}\n{text}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The proof in a form: from the token, so that nothing more is stored and nobody can make it.
pub fn csrf_of(token: &str) -> String {
    hashed("csrf", token)
}

/// Whether two secrets are the same, in a time that tells nothing about where they differ.
pub fn is_same(a: &str, b: &str) -> bool {
    let pairs = a.bytes().zip(b.bytes());
    a.len() == b.len() && pairs.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// A token that was never seen before: of a session, or of a form before there is one.
pub fn token() -> String {
    random_text(TOKEN_BYTES)
}

pub(crate) async fn open(tx: &mut Tx, account: i64) -> Result<String, AccountError> {
    let (token, now) = (token(), tx.now());
    make_room(tx, account, now).await?;
    tx.execute(sql!(
        "INSERT INTO account_session
           (account_id, token_hash, seen_time, expire_time, create_time, update_time)
         VALUES (:account, :hash, :now, :expires, :now, :now)",
        account = account,
        hash = hashed("session", &token),
        now = now,
        expires = now + LASTS,
    ))
    .await?;
    Ok(token)
}

async fn make_room(tx: &mut Tx, account: i64, now: Instant) -> Result<(), AccountError> {
    let own = sql!(
        "SELECT id FROM account_session WHERE account_id = :account ORDER BY id DESC LIMIT :most",
        account = account,
        most = CLEARED_AT_ONCE,
    );
    let mut gone = Vec::new();
    for row in tx.rows(own).await?.iter().skip(MAX_OF_ACCOUNT - 1) {
        gone.push(row.int("id")?);
    }
    let over = sql!(
        "SELECT id FROM account_session WHERE expire_time < :now ORDER BY expire_time, id
         LIMIT :most",
        now = now,
        most = CLEARED_AT_ONCE,
    );
    for row in tx.rows(over).await? {
        gone.push(row.int("id")?);
    }
    let query = Query::new("DELETE FROM account_session WHERE id IN :ids").bind_list("ids", gone);
    tx.execute(query).await?;
    Ok(())
}

/// Who holds this token, if it opens anything. Role and state are read anew each time.
pub async fn of_token(db: &Db, token: &str) -> Result<Option<Signed>, AccountError> {
    const FIND: &str = concat!(
        "SELECT s.id AS session_id, s.seen_time, s.expire_time, ",
        account_columns!(),
        " FROM account_session s JOIN account a ON a.id = s.account_id AND a.deleted = 0
          WHERE s.token_hash = :hash AND a.is_disabled = 0"
    );
    let Some(row) = db.row(sql!(FIND, hash = hashed("session", token))).await? else {
        return Ok(None);
    };
    let (now, seen) = (db.now().await?, row.instant("seen_time")?);
    if now >= row.instant("expire_time")? || now - seen >= IDLE {
        return Ok(None);
    }
    if now - seen >= SEEN_EVERY {
        let session = row.int("session_id")?;
        transact!(touch(db, session))?;
    }
    Ok(Some(Signed { account: Account::read(&row)?, csrf: csrf_of(token) }))
}

async fn touch(db: &Db, session: i64) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE account_session SET seen_time = :now, update_time = :now WHERE id = :id",
        now = now,
        id = session,
    ))
    .await?;
    tx.commit("account.seen").await?;
    Ok(())
}

/// Ends the session of a token.
pub async fn close(db: &Db, token: &str) -> Result<(), AccountError> {
    transact!(close_once(db, token))
}

async fn close_once(db: &Db, token: &str) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let hash = hashed("session", token);
    tx.execute(sql!("DELETE FROM account_session WHERE token_hash = :hash", hash = hash)).await?;
    tx.commit("account.sign_out").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_its_token_and_tells_nothing_about_it() {
        let (one, other) = (token(), token());
        assert_ne!(one, other);
        assert_ne!(csrf_of(&one), csrf_of(&other));
        assert_ne!(csrf_of(&one), hashed("session", &one));
        assert!(is_same(&csrf_of(&one), &csrf_of(&one)));
        assert!(!is_same(&csrf_of(&one), &csrf_of(&other)) && !is_same("", "a"));
    }
}
