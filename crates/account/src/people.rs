//! Accounts: adding them, finding them, changing what they may do.

use counterfoil_db::{Db, Error as DbError, Instant, Query, Read, Row, Tx, sql, transact};

use crate::password::{self, Cost};
use crate::{AccountError, Role, cut};

/// Rows of a list.
pub const MAX_LISTED: u32 = 200;
/// Ids from here on are given by the database: a person named by hand stays below.
const FIRST_GENERATED_ID: i64 = 1_000_000_000_000;

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The person's id, here and everywhere else.
    pub id: i64,
    /// What he signs in with.
    pub login: String,
    /// What others call him.
    pub name: String,
    /// What he is for.
    pub role: Role,
    /// Whether he is kept out.
    pub disabled: bool,
    /// Since when he has had his password.
    pub password_time: Instant,
    /// Since when the account has existed.
    pub create_time: Instant,
}

macro_rules! account_columns {
    () => {
        "a.id, a.login, a.display_name, a.role, a.is_disabled, a.password_time, a.create_time"
    };
}
pub(crate) use account_columns;

impl Account {
    pub(crate) fn read(row: &Row) -> Result<Account, DbError> {
        Ok(Account {
            id: row.int("id")?,
            login: row.text("login")?,
            name: row.text("display_name")?,
            // A check constraint keeps other words out; the least is what an unknown one gets.
            role: row.text("role")?.parse().unwrap_or(Role::Viewer),
            disabled: row.int("is_disabled")? == 1,
            password_time: row.instant("password_time")?,
            create_time: row.instant("create_time")?,
        })
    }
}

/// Somebody new.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// His id, where others know him by one already; otherwise the database gives one.
    pub id: Option<i64>,
    /// What he will sign in with.
    pub login: String,
    /// What others call him; empty = his login.
    pub name: String,
    /// What he is for.
    pub role: Role,
    /// His first password.
    pub password: String,
}

/// A login as it is stored: small letters, and nothing that looks like another one.
pub(crate) fn login_of(text: &str) -> Result<String, AccountError> {
    let login = text.trim().to_lowercase();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-_@".contains(letter);
    if login.is_empty() || login.len() > 64 || !login.chars().all(fits) {
        let why = "must be 1 to 64 of a-z, 0-9, dot, dash, underscore and @";
        return Err(AccountError::invalid("login", why));
    }
    Ok(login)
}

/// Adds an account.
///
/// # Errors
/// [`AccountError::Exists`], or a login or password that will not do.
pub async fn add(db: &Db, new: &Newcomer, cost: Cost) -> Result<Account, AccountError> {
    let login = login_of(&new.login)?;
    password::check(&login, &new.password)?;
    if new.id.is_some_and(|id| !(1..FIRST_GENERATED_ID).contains(&id)) {
        return Err(AccountError::invalid("id", "must be from 1 to 999999999999"));
    }
    let hash = password::hash(&new.password, cost).await?;
    match transact!(insert(db, new, &login, &hash)) {
        Err(AccountError::Db(DbError::Duplicate(_))) => Err(AccountError::Exists(login.clone())),
        other => other,
    }?;
    find(db, &login).await
}

async fn insert(db: &Db, new: &Newcomer, login: &str, hash: &str) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let name = if new.name.trim().is_empty() { login } else { new.name.trim() };
    let text = match new.id {
        Some(_) => {
            "INSERT INTO account (id, login, display_name, role, password_hash, password_time,
               create_time, update_time)
             VALUES (:id, :login, :name, :role, :hash, :now, :now, :now)"
        }
        None => {
            "INSERT INTO account (login, display_name, role, password_hash, password_time,
               create_time, update_time)
             VALUES (:login, :name, :role, :hash, :now, :now, :now)"
        }
    };
    let query = Query::new(text)
        .bind("id", new.id)
        .bind("login", login)
        .bind("name", cut(name, 128))
        .bind("role", new.role.as_str())
        .bind("hash", hash)
        .bind("now", tx.now());
    tx.execute(query).await?;
    tx.commit("account.add").await?;
    Ok(())
}

/// The account with this login.
///
/// # Errors
/// [`AccountError::NotFound`].
pub async fn find(from: &impl Read, login: &str) -> Result<Account, AccountError> {
    const FIND: &str = concat!(
        "SELECT ",
        account_columns!(),
        " FROM account a WHERE a.login = :login AND a.deleted = 0"
    );
    let login = login.trim().to_lowercase();
    let row = from.row(sql!(FIND, login = login.as_str())).await?;
    let row = row.ok_or(AccountError::NotFound(login))?;
    Ok(Account::read(&row)?)
}

/// A page of accounts, by id.
pub async fn list(from: &impl Read, after: i64, limit: u32) -> Result<Vec<Account>, AccountError> {
    const LIST: &str = concat!(
        "SELECT ",
        account_columns!(),
        " FROM account a WHERE a.id > :after AND a.deleted = 0 ORDER BY a.id LIMIT :limit"
    );
    let query = sql!(LIST, after = after, limit = limit.clamp(1, MAX_LISTED));
    let rows = from.rows(query).await?;
    rows.iter().map(|row| Ok(Account::read(row)?)).collect()
}

/// What people with these ids are called, for pages that name them.
pub async fn names(from: &impl Read, ids: &[i64]) -> Result<Vec<(i64, String)>, AccountError> {
    let ids = &ids[..ids.len().min(MAX_LISTED as usize)];
    let query = Query::new("SELECT id, display_name FROM account WHERE id IN :ids")
        .bind_list("ids", ids.iter().copied());
    let rows = from.rows(query).await?;
    rows.iter().map(|row| Ok((row.int("id")?, row.text("display_name")?))).collect()
}

/// Whether there is anybody at all.
pub async fn is_anybody(from: &impl Read) -> Result<bool, AccountError> {
    let query = sql!("SELECT id FROM account WHERE deleted = 0 AND is_disabled = 0 LIMIT 1");
    Ok(from.row(query).await?.is_some())
}

/// A change to somebody's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Keeps him out, at once.
    Disable,
    /// Lets him in again.
    Enable,
    /// Makes him something else, at once.
    Role(Role),
}

/// Changes an account. Whoever is kept out loses his sessions in the same commit.
///
/// # Errors
/// [`AccountError::LastAdmin`] where nobody would be left who could undo it.
pub async fn change(db: &Db, login: &str, change: Change) -> Result<Account, AccountError> {
    transact!(change_once(db, login, change))?;
    find(db, login).await
}

async fn change_once(db: &Db, login: &str, change: Change) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    // Two admins who disable each other wait for each other here.
    let admins = admins(&mut tx).await?;
    let account = find(&tx, login).await?;
    let keeps = matches!(change, Change::Enable | Change::Role(Role::Admin));
    if !keeps && admins == [account.id] {
        return Err(AccountError::LastAdmin(account.login));
    }
    let (role, disabled) = match change {
        Change::Disable => (account.role, true),
        Change::Enable => (account.role, false),
        Change::Role(role) => (role, account.disabled),
    };
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE account SET role = :role, is_disabled = :disabled, update_time = :now
         WHERE id = :id",
        role = role.as_str(),
        disabled = disabled,
        now = now,
        id = account.id,
    ))
    .await?;
    if disabled {
        end_sessions(&mut tx, account.id).await?;
    }
    tx.commit("account.change").await?;
    Ok(())
}

/// The admins that can sign in, their rows locked.
async fn admins(tx: &mut Tx) -> Result<Vec<i64>, DbError> {
    let query = sql!(
        "SELECT id FROM account
         WHERE role = 'admin' AND is_disabled = 0 AND deleted = 0 ORDER BY id {for_update}"
    );
    tx.rows(query).await?.iter().map(|row| row.int("id")).collect()
}

/// Gives somebody a new password; all his sessions end with it.
pub async fn set_password(
    db: &Db,
    login: &str,
    password: &str,
    cost: Cost,
) -> Result<Account, AccountError> {
    let account = find(db, login).await?;
    password::check(&account.login, password)?;
    let hash = password::hash(password, cost).await?;
    transact!(write_password(db, account.id, &hash))?;
    find(db, login).await
}

async fn write_password(db: &Db, account: i64, hash: &str) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE account SET password_hash = :hash, password_time = :now, update_time = :now
         WHERE id = :id",
        hash = hash,
        now = now,
        id = account,
    ))
    .await?;
    end_sessions(&mut tx, account).await?;
    tx.commit("account.password").await?;
    Ok(())
}

async fn end_sessions(tx: &mut Tx, account: i64) -> Result<(), DbError> {
    tx.execute(sql!("DELETE FROM account_session WHERE account_id = :id", id = account)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_small_letters_and_looks_like_no_other() {
        assert_eq!(login_of(" Li.Wei@example.com ").unwrap(), "li.wei@example.com");
        for bad in ["", "   ", "李伟", "a b", "a/b", "<b>", &"a".repeat(65)] {
            assert!(login_of(bad).is_err(), "{bad}");
        }
    }
}
