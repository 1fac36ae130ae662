//! The one transaction type.

use std::fmt;
use std::time::Duration;

use sea_orm::{
    ConnectionTrait, DatabaseTransaction, IsolationLevel, SqliteTransactionMode,
    TransactionOptions, TransactionTrait,
};

use crate::connect::{note, read_clock, row, rows};
use crate::{
    Db, Dialect, Error, Faults, Instant, Pulse, Query, Read, Recorder, Result, Row, Side, Transient,
};

/// An open transaction: READ COMMITTED on PostgreSQL and MariaDB; on SQLite it holds the one write
/// lock from its start. Dropped without a commit it rolls back and its hooks never fire.
pub struct Tx {
    inner: DatabaseTransaction,
    dialect: Dialect,
    now: Instant,
    faults: Faults,
    recorder: Option<Recorder>,
    pulse: Pulse,
    began: std::time::Instant,
    after_commit: Vec<Box<dyn FnOnce() + Send + Sync>>,
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("dialect", &self.dialect).field("now", &self.now).finish()
    }
}

impl Db {
    /// Starts a transaction and reads the clock for it.
    pub async fn begin(&self) -> Result<Tx> {
        self.begin_at(None).await
    }

    /// Starts a transaction whose plain reads all see one state of the database, that of its first
    /// read: REPEATABLE READ on PostgreSQL and MariaDB; on SQLite every transaction is one.
    pub async fn begin_snapshot(&self) -> Result<Tx> {
        let is_sqlite = self.dialect() == Dialect::Sqlite;
        self.begin_at((!is_sqlite).then_some(IsolationLevel::RepeatableRead)).await
    }

    async fn begin_at(&self, isolation_level: Option<IsolationLevel>) -> Result<Tx> {
        let options = TransactionOptions {
            isolation_level,
            sqlite_transaction_mode: match self.dialect() {
                Dialect::Sqlite => Some(SqliteTransactionMode::Immediate),
                Dialect::Postgres | Dialect::MariaDb => None,
            },
            ..TransactionOptions::default()
        };
        let began = std::time::Instant::now();
        let begun = self.writer().begin_with_options(options).await;
        let inner = begun.map_err(|error| Error::classify(error, "BEGIN"))?;
        let now = read_clock(&inner, self.dialect(), self.clock()).await?;
        Ok(Tx {
            inner,
            dialect: self.dialect(),
            now,
            faults: self.faults().clone(),
            recorder: self.recorder().cloned(),
            pulse: self.pulse().clone(),
            began,
            after_commit: Vec::new(),
        })
    }
}

impl Tx {
    /// The transaction's one reading of the clock; bound as `:now`.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Runs a statement; answers the number of rows it changed.
    pub async fn execute(&mut self, query: Query) -> Result<u64> {
        note(self.recorder.as_ref(), &query);
        let done = self.inner.execute_raw(query.statement(self.dialect)?).await;
        let done = done.map_err(|error| Error::classify(error, query.text(self.dialect)))?;
        Ok(done.rows_affected())
    }

    /// Inserts one row and answers its generated id.
    ///
    /// The statement ends without `RETURNING`: PostgreSQL gets it appended, the other two tell the
    /// id of the connection's last insert.
    pub async fn insert(&mut self, query: Query) -> Result<i64> {
        note(self.recorder.as_ref(), &query);
        let text = query.text(self.dialect).to_owned();
        let failed = |error| Error::classify(error, &text);
        let mut statement = query.statement(self.dialect)?;
        if self.dialect == Dialect::Postgres {
            statement.sql.push_str(" RETURNING id");
            let row = self.inner.query_one_raw(statement).await.map_err(failed)?;
            let row = row
                .map(Row::new)
                .ok_or_else(|| Error::classify(sea_orm::DbErr::RecordNotInserted, &text))?;
            return row.int("id");
        }
        let done = self.inner.execute_raw(statement).await.map_err(failed)?;
        Ok(i64::try_from(done.last_insert_id()).unwrap_or(i64::MAX))
    }

    /// Registers what happens once the commit is confirmed, in order.
    pub fn after_commit(&mut self, hook: impl FnOnce() + Send + Sync + 'static) {
        self.after_commit.push(Box::new(hook));
    }

    /// A count over a join of a whole version's rows with as many others. PostgreSQL joins them by
    /// hash: its statistics may know nothing of those rows yet, and where it expects one, it walks
    /// all of them for each (measured: twenty thousand lines took longer than twenty seconds).
    /// Both sides must be found by an index of their own.
    pub async fn count_by_hash(&mut self, query: Query) -> Result<i64> {
        self.set_nested_loops("off").await?;
        let counted = self.count(query).await?;
        self.set_nested_loops("on").await?;
        Ok(counted)
    }

    async fn set_nested_loops(&mut self, to: &str) -> Result<()> {
        if self.dialect == Dialect::Postgres {
            let set = Query::new("SELECT set_config('enable_nestloop', :to, true)");
            self.execute(set.bind("to", to)).await?;
        }
        Ok(())
    }

    /// Tells other processes on PostgreSQL, if and when this commits. Nothing elsewhere.
    pub async fn notify(&mut self, channel: &'static str, payload: &str) -> Result<()> {
        if self.dialect == Dialect::Postgres {
            let query = Query::new("SELECT pg_notify(:channel, :payload)")
                .bind("channel", channel)
                .bind("payload", payload);
            self.execute(query).await?;
        }
        Ok(())
    }

    /// Commits. `point` names this commit for fault hooks, tests and logs.
    pub async fn commit(self, point: &'static str) -> Result<()> {
        if self.faults.strike(point, Side::Before) {
            return Err(Error::Injected { point });
        }
        self.inner.commit().await.map_err(|error| Error::classify(error, "COMMIT"))?;
        self.pulse.beat(point, self.began.elapsed());
        tracing::trace!(point, "committed");
        if self.faults.strike(point, Side::After) {
            return Err(Error::Injected { point });
        }
        for hook in self.after_commit {
            hook();
        }
        Ok(())
    }

    /// Gives up what was done. Dropping does the same; this one waits for it.
    pub async fn rollback(self) -> Result<()> {
        self.inner.rollback().await.map_err(|error| Error::classify(error, "ROLLBACK"))
    }
}

#[async_trait::async_trait]
impl Read for Tx {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    async fn rows(&self, query: Query) -> Result<Vec<Row>> {
        note(self.recorder.as_ref(), &query);
        rows(&self.inner, self.dialect, &query).await
    }

    async fn row(&self, query: Query) -> Result<Option<Row>> {
        note(self.recorder.as_ref(), &query);
        row(&self.inner, self.dialect, &query).await
    }
}

/// How often a whole transaction is tried again after a deadlock or a serialization failure.
const MAX_TRIES: u32 = 8;
/// How often when a lock did not become free in time: each try has waited as long for it.
const MAX_LOCK_WAITS: u32 = 3;
/// The pause before the second try; it doubles. Long enough for the other one to finish.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Bounded retries of whole transactions; see [`transact!`](crate::transact).
#[derive(Debug, Default)]
pub struct Retry {
    failures: u32,
}

impl Retry {
    /// Whether to run the transaction again after `error`; waits a little first.
    pub async fn again<E: Transient>(&mut self, error: &E) -> bool {
        let tries = match error.database() {
            Some(Error::Contention(_)) => MAX_TRIES,
            Some(Error::LockWait(_)) => MAX_LOCK_WAITS,
            _ => return false,
        };
        if self.failures + 1 >= tries {
            return false;
        }
        let pause = FIRST_PAUSE * 2_u32.pow(self.failures);
        self.failures += 1;
        // Real time on purpose: this waits for another connection, not for the clock.
        tokio::time::sleep(pause).await;
        true
    }
}

/// Runs a whole transaction, again when the database asks for it, a bounded number of times.
///
/// The body is evaluated anew each time and must begin and commit its own transaction:
/// `transact!(publish(&db, &facts))`.
#[macro_export]
macro_rules! transact {
    ($body:expr) => {{
        let mut retry = $crate::Retry::default();
        loop {
            match $body.await {
                Ok(value) => break Ok(value),
                Err(error) => {
                    if !retry.again(&error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
