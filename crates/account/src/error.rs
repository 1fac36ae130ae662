//! Why an account's operation was refused or failed.

use counterfoil_db::{Error as DbError, Transient};
use thiserror::Error;

/// An error about accounts.
#[derive(Debug, Error)]
pub enum AccountError {
    /// Input that names what is wrong with it.
    #[error("{field}: {why}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// No account has this login.
    #[error("there is no account {0}")]
    NotFound(String),
    /// The login or the id belongs to somebody.
    #[error("the account {0} exists already")]
    Exists(String),
    /// Nobody would be left who could put it right.
    #[error("{0} is the last admin that can sign in")]
    LastAdmin(String),
    /// Login, password or the account itself is wrong; which of them is not said.
    #[error("login or password is wrong")]
    WrongPassword,
    /// Too many failures.
    #[error("too many failed attempts; try again in {seconds} seconds")]
    Blocked {
        /// How long it takes.
        seconds: i64,
    },
    /// The computation of a password's hash failed.
    #[error("a password cannot be hashed: {0}")]
    Hash(String),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl AccountError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            AccountError::Invalid { .. } => "invalid-input",
            AccountError::NotFound(_) => "account-not-found",
            AccountError::Exists(_) => "account-exists",
            AccountError::LastAdmin(_) => "account-last-admin",
            AccountError::WrongPassword => "sign-in-refused",
            AccountError::Blocked { .. } => "sign-in-blocked",
            AccountError::Hash(_) => "password-hash",
            AccountError::Db(_) => "database-error",
        }
    }

    pub(crate) fn invalid(field: &'static str, why: impl Into<String>) -> AccountError {
        AccountError::Invalid { field, why: why.into() }
    }
}

impl Transient for AccountError {
    fn database(&self) -> Option<&DbError> {
        match self {
            AccountError::Db(error) => Some(error),
            _ => None,
        }
    }
}
