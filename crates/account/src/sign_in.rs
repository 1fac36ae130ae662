//! Signing in: counted first, compared second, and no answer tells which part was wrong.

use counterfoil_db::{Db, Read, sql, transact};

use crate::people::{Account, account_columns, login_of};
use crate::throttle::{self, Of};
use crate::{AccountError, password, session};

/// Somebody at the door.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Who he says he is.
    pub login: &'a str,
    /// What is to prove it.
    pub password: &'a str,
    /// Where he comes from.
    pub address: &'a str,
}

/// Somebody who is in.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Who.
    pub account: Account,
    /// The token of his new session; it is nowhere else.
    pub token: String,
}

/// Lets somebody in whose password is right.
///
/// # Errors
/// [`AccountError::WrongPassword`] and [`AccountError::Blocked`], the same for a login that there
/// is and one that there is not.
pub async fn sign_in(db: &Db, attempt: Attempt<'_>) -> Result<Opened, AccountError> {
    let login = attempt.login.trim().to_lowercase();
    if let Some(seconds) = transact!(counted(db, &login, attempt.address))? {
        return Err(AccountError::Blocked { seconds });
    }
    // What is no login is nobody's, and not every database takes it as a text.
    let found = match login_of(&login) {
        Ok(login) => stored(db, &login).await?,
        Err(_) => None,
    };
    let (account, hash) = match found {
        Some((account, hash)) => (Some(account), Some(hash)),
        None => (None, None),
    };
    let is_right = password::matches(attempt.password, hash).await?;
    match account.filter(|account| is_right && !account.disabled) {
        Some(account) => {
            let token = transact!(let_in(db, &account, &login, attempt.address))?;
            Ok(Opened { account, token })
        }
        None => {
            tracing::warn!(address = attempt.address, "a sign-in was refused");
            Err(AccountError::WrongPassword)
        }
    }
}

/// Whether somebody who is in knows his password: before it is changed.
pub async fn confirm(db: &Db, account: &Account, attempt: Attempt<'_>) -> Result<(), AccountError> {
    if let Some(seconds) = transact!(counted(db, &account.login, attempt.address))? {
        return Err(AccountError::Blocked { seconds });
    }
    let hash = stored(db, &account.login).await?.map(|(_, hash)| hash);
    if !password::matches(attempt.password, hash).await? {
        return Err(AccountError::WrongPassword);
    }
    transact!(forgiven(db, &account.login, attempt.address))
}

async fn counted(db: &Db, login: &str, address: &str) -> Result<Option<i64>, AccountError> {
    let mut tx = db.begin().await?;
    for (of, text) in [(Of::Account, login), (Of::Address, address)] {
        if let Some(seconds) = throttle::count(&mut tx, of, text).await? {
            tx.rollback().await?;
            return Ok(Some(seconds));
        }
    }
    tx.commit("account.attempt").await?;
    Ok(None)
}

async fn stored(db: &Db, login: &str) -> Result<Option<(Account, String)>, AccountError> {
    const FIND: &str = concat!(
        "SELECT a.password_hash, ",
        account_columns!(),
        " FROM account a WHERE a.login = :login AND a.deleted = 0"
    );
    let row = db.row(sql!(FIND, login = login)).await?;
    let read = row.map(|row| Ok((Account::read(&row)?, row.text("password_hash")?)));
    read.transpose()
}

async fn let_in(
    db: &Db,
    account: &Account,
    login: &str,
    address: &str,
) -> Result<String, AccountError> {
    let mut tx = db.begin().await?;
    throttle::forgive(&mut tx, login, address).await?;
    let token = session::open(&mut tx, account.id).await?;
    tx.commit("account.sign_in").await?;
    Ok(token)
}

async fn forgiven(db: &Db, login: &str, address: &str) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    throttle::forgive(&mut tx, login, address).await?;
    tx.commit("account.confirmed").await?;
    Ok(())
}
