//! What can go wrong with a database, told apart by what the caller may do about it.

use sea_orm::sqlx::mysql::MySqlDatabaseError;
use thiserror::Error;

/// The result of a database call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A database error.
#[derive(Debug, Error)]
pub enum Error {
    /// A deadlock, a serialization failure or a busy database: the whole transaction may be tried
    /// again.
    #[error("the database asked for the transaction to be tried again")]
    Contention(#[source] sea_orm::DbErr),
    /// A lock that another connection holds did not become free in time: the whole transaction may
    /// be tried again, but each try waits as long.
    #[error("another connection held a lock for too long")]
    LockWait(#[source] sea_orm::DbErr),
    /// The connection is gone or cannot be had: nothing is known beyond the last commit.
    #[error("the database cannot be reached")]
    Lost(#[source] sea_orm::DbErr),
    /// A unique index refused the row.
    #[error("a unique key is taken already")]
    Duplicate(#[source] sea_orm::DbErr),
    /// The statement itself failed.
    #[error("the database refused a statement: {statement}")]
    Statement {
        /// The start of the statement, without its values.
        statement: String,
        /// The driver's error.
        #[source]
        source: sea_orm::DbErr,
    },
    /// A column is missing or has a type the code does not expect.
    #[error("column {column} cannot be read")]
    Column {
        /// The column's name.
        column: String,
        /// The driver's error.
        #[source]
        source: sea_orm::DbErr,
    },
    /// The URL names no database that is known here.
    #[error(
        "database URL must start with sqlite:, postgres:// or mysql://; got {scheme}: (set \
         --database)"
    )]
    UnknownDatabase {
        /// What stood before the first colon.
        scheme: String,
    },
    /// A migration failed.
    #[error("migration {number:04} {name} failed")]
    Migration {
        /// The migration's number.
        number: u32,
        /// Its name.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<Error>,
    },
    /// The process was told to die here and, being a test in one process, reports it instead.
    /// Handled like a lost database: nothing may be written after it.
    #[error("a fault was injected at {point}")]
    Injected {
        /// The commit point.
        point: &'static str,
    },
}

impl Error {
    /// Whether nothing more can be done on this database now. It ends a round.
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Lost(_) | Error::Injected { .. })
    }

    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::LockWait(_) => "lock-wait-timeout",
            _ => "database-error",
        }
    }

    pub(crate) fn classify(error: sea_orm::DbErr, statement: &str) -> Error {
        use sea_orm::{DbErr, SqlErr};
        if let Some(SqlErr::UniqueConstraintViolation(_)) = error.sql_err() {
            return Error::Duplicate(error);
        }
        if matches!(error, DbErr::Conn(_) | DbErr::ConnectionAcquire(_)) {
            return Error::Lost(error);
        }
        match code_of_driver(&error).as_deref() {
            Some("40001" | "40P01" | "1213" | "1020" | "6" | "262" | "517") => {
                return Error::Contention(error);
            }
            Some("55P03" | "1205" | "5" | "261" | "773") => return Error::LockWait(error),
            _ => {}
        }
        let text = error.to_string();
        if is_contention(&text) {
            return Error::Contention(error);
        }
        if is_lost(&text) {
            return Error::Lost(error);
        }
        Error::Statement { statement: opening(statement), source: error }
    }
}

/// SQLSTATE on PostgreSQL, the server's number on MariaDB, the extended result code on SQLite: the
/// messages are in the server's language.
fn code_of_driver(error: &sea_orm::DbErr) -> Option<String> {
    use sea_orm::{DbErr, RuntimeErr};
    let (DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error))) =
        error
    else {
        return None;
    };
    let error = error.as_database_error()?;
    match error.try_downcast_ref::<MySqlDatabaseError>() {
        Some(error) => Some(error.number().to_string()),
        None => error.code().map(Into::into),
    }
}

/// For errors that have lost their code on the way.
fn is_contention(text: &str) -> bool {
    const MARKS: [&str; 4] =
        ["deadlock", "Deadlock", "could not serialize", "Record has changed since last read"];
    MARKS.iter().any(|mark| text.contains(mark))
}

fn is_lost(text: &str) -> bool {
    const MARKS: [&str; 12] = [
        // The drivers' own word for any trouble on the wire, and MariaDB's for a killed session.
        "error communicating with database",
        "Connection was killed",
        "Connection refused",
        "connection closed",
        "Connection reset",
        "Broken pipe",
        "terminating connection",
        "the database system is",
        "server closed the connection",
        "pool timed out",
        "unexpected end of file",
        "Communications link failure",
    ];
    MARKS.iter().any(|mark| text.contains(mark))
}

fn opening(statement: &str) -> String {
    statement.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(160).collect()
}

/// An error that may carry a database error asking for the transaction to be run again.
pub trait Transient {
    /// The database's error, if it is one.
    fn database(&self) -> Option<&Error>;
}

impl Transient for Error {
    fn database(&self) -> Option<&Error> {
        Some(self)
    }
}

/// A driver error made from a text, for errors that lost their own on the way.
pub fn driver_error(text: String) -> sea_orm::DbErr {
    sea_orm::DbErr::Custom(text)
}
