//! The only crate that knows which database it is.
//!
//! [`Db`] is chosen at run time by URL (`sqlite:…`, `postgres://…`, `mysql://…`). Statements are
//! written once as SQL with `:name` parameters and a handful of `{tokens}` for what the three
//! databases force apart; [`sql!`] binds them. [`Tx`] is the only way to write: it reads the
//! database's clock once at its start, commits under a name (a fault hook), and fires its
//! after-commit hooks only when the commit has been confirmed.

mod clock;
mod connect;
mod dialect;
mod error;
mod fault;
mod migrate;
mod notify;
mod query;
mod recorder;
mod row;
mod transaction;

pub use clock::{Clock, Instant, ManualClock};
pub use connect::{Db, LOCK_TIMEOUT, Settings};
pub use dialect::Dialect;
pub use error::{Error, Result, Transient, driver_error};
pub use fault::{FaultAction, FaultPlan, Faults, Side};
pub use migrate::{Migration, applied, migrate};
pub use notify::Notifications;
pub use query::{Bind, Query, Text, Value};
pub use recorder::{Pulse, Recorder};
pub use row::Row;
pub use transaction::{Retry, Tx};

/// What both a [`Db`] (plain reads) and a [`Tx`] can do.
#[async_trait::async_trait]
pub trait Read: Send + Sync {
    /// Which database answers.
    fn dialect(&self) -> Dialect;

    /// All rows of a query. Callers bound the number by `LIMIT :limit` or by key.
    async fn rows(&self, query: Query) -> Result<Vec<Row>>;

    /// The first row, if any.
    async fn row(&self, query: Query) -> Result<Option<Row>>;

    /// The first column of the first row as an integer; 0 when there is none or it is NULL.
    async fn count(&self, query: Query) -> Result<i64> {
        match self.row(query).await? {
            Some(row) => Ok(row.first_int()?.unwrap_or(0)),
            None => Ok(0),
        }
    }
}
