//! Opening a database, chosen by URL at run time.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sea_orm::sqlx::pool::PoolOptions;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgSslMode};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Database, Executor, MySql, Postgres, Sqlite,
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr};

use crate::clock::{Clock, Instant};
use crate::{Dialect, Error, Faults, Pulse, Query, Read, Recorder, Result, Row};

/// How long a statement waits for a lock, unless told otherwise. The servers' own limits are no
/// limit on PostgreSQL, and on MariaDB 50 s for a row and a day for a table.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How to open a database. Every limit has a name.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Connections to the server at most; on SQLite the readers beside the one writer.
    pub max_connections: u32,
    /// How long a caller waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long a statement waits for a lock that another connection holds; on SQLite, for the
    /// write lock of another process. MariaDB counts whole seconds. Below PostgreSQL's
    /// `deadlock_timeout`, a second, a deadlock is taken for a long wait.
    pub lock_timeout: Duration,
    /// Which clock decides.
    pub clock: Clock,
    /// The fault hooks.
    pub faults: Faults,
    /// What remembers the statements that run; `None` outside tests.
    pub recorder: Option<Recorder>,
    /// What counts the commits.
    pub pulse: Pulse,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(30),
            lock_timeout: LOCK_TIMEOUT,
            clock: Clock::Database,
            faults: Faults::default(),
            recorder: None,
            pulse: Pulse::default(),
        }
    }
}

/// An open database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Db(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dialect: Dialect,
    writer: DatabaseConnection,
    reader: DatabaseConnection,
    clock: Clock,
    faults: Faults,
    recorder: Option<Recorder>,
    pulse: Pulse,
    url: String,
}

impl Db {
    /// Opens the database a URL names. A SQLite file is made when missing.
    pub async fn connect(url: &str, settings: Settings) -> Result<Db> {
        let dialect = Dialect::of_url(url).ok_or_else(|| Error::UnknownDatabase {
            scheme: url.split(':').next().unwrap_or_default().to_owned(),
        })?;
        let (writer, reader) = match dialect {
            Dialect::Sqlite => sqlite(url, &settings).await?,
            Dialect::Postgres => one_pool(postgres(url, &settings).await?),
            Dialect::MariaDb => one_pool(mariadb(url, &settings).await?),
        };
        Ok(Db(Arc::new(Inner {
            dialect,
            writer,
            reader,
            clock: settings.clock,
            faults: settings.faults,
            recorder: settings.recorder,
            pulse: settings.pulse,
            url: url.to_owned(),
        })))
    }

    /// The clock that decides here.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The fault hooks of this database.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.0.recorder.as_ref()
    }

    pub(crate) fn pulse(&self) -> &Pulse {
        &self.0.pulse
    }

    /// The URL without its password, for people.
    pub fn shown_url(&self) -> String {
        let url = &self.0.url;
        let Some((scheme, rest)) = url.split_once("://") else {
            return url.clone();
        };
        match rest.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}@{host}")
            }
            None => url.clone(),
        }
    }

    /// What the clock shows now. A transaction has its own reading, see [`crate::Tx::now`].
    pub async fn now(&self) -> Result<Instant> {
        read_clock(&self.0.writer, self.0.dialect, &self.0.clock).await
    }

    /// Runs an administrative statement that refuses to run in a transaction, such as CREATE
    /// DATABASE or ANALYZE. No business statement goes this way: it has no commit point.
    pub async fn execute_outside_transaction(&self, query: Query) -> Result<()> {
        // Unprepared: several administrative statements cannot be prepared on MariaDB.
        let text = query.text(self.0.dialect).to_owned();
        let done = self.0.writer.execute_unprepared(&text).await;
        done.map(|_| ()).map_err(|error| Error::classify(error, &text))
    }

    /// Closes the pools. Open transactions roll back.
    pub async fn close(&self) {
        // Closing twice, or after the server has gone, is no error for anybody.
        let _ = self.0.writer.clone().close().await;
        let _ = self.0.reader.clone().close().await;
    }

    pub(crate) fn writer(&self) -> &DatabaseConnection {
        &self.0.writer
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }
}

#[async_trait::async_trait]
impl Read for Db {
    fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    async fn rows(&self, query: Query) -> Result<Vec<Row>> {
        note(self.recorder(), &query);
        rows(&self.0.reader, self.0.dialect, &query).await
    }

    async fn row(&self, query: Query) -> Result<Option<Row>> {
        note(self.recorder(), &query);
        row(&self.0.reader, self.0.dialect, &query).await
    }
}

pub(crate) fn note(recorder: Option<&Recorder>, query: &Query) {
    if let Some(recorder) = recorder {
        recorder.note(query);
    }
}

pub(crate) async fn rows<C: ConnectionTrait>(
    connection: &C,
    dialect: Dialect,
    query: &Query,
) -> Result<Vec<Row>> {
    let rows = connection.query_all_raw(query.statement(dialect)?).await;
    let rows = rows.map_err(|error| Error::classify(error, query.text(dialect)))?;
    Ok(rows.into_iter().map(Row::new).collect())
}

pub(crate) async fn row<C: ConnectionTrait>(
    connection: &C,
    dialect: Dialect,
    query: &Query,
) -> Result<Option<Row>> {
    let row = connection.query_one_raw(query.statement(dialect)?).await;
    Ok(row.map_err(|error| Error::classify(error, query.text(dialect)))?.map(Row::new))
}

pub(crate) async fn read_clock<C: ConnectionTrait>(
    connection: &C,
    dialect: Dialect,
    clock: &Clock,
) -> Result<Instant> {
    let database = match (clock, dialect) {
        // SQLite lives in this process and shows milliseconds only: its clock is the process's.
        (Clock::Frozen(_) | Clock::Manual(_), _) | (_, Dialect::Sqlite) => chrono::Utc::now(),
        (_, Dialect::Postgres) => {
            let now = Query::new("SELECT clock_timestamp() AS now");
            instant(row(connection, dialect, &now).await?)?
        }
        (_, Dialect::MariaDb) => {
            let now = Query::new("SELECT UTC_TIMESTAMP(6) AS now");
            instant(row(connection, dialect, &now).await?)?
        }
    };
    Ok(clock.at(database))
}

fn instant(row: Option<Row>) -> Result<Instant> {
    row.map_or_else(|| Ok(chrono::Utc::now()), |row| row.instant("now"))
}

fn one_pool(pool: DatabaseConnection) -> (DatabaseConnection, DatabaseConnection) {
    (pool.clone(), pool)
}

/// A connection idle for longer is asked for a sign of life before it is used: servers and
/// firewalls close idle ones.
const MAX_TRUSTED_IDLE: Duration = Duration::from_secs(60);

/// What all pools have in common.
///
/// No lifetime and no idle limit: with either, sqlx 0.9 runs a maintenance task over `num_idle()`
/// connections, whose count can fall below zero; the task then spins, and the runtime that is to
/// be shut down waits for it for ever (met in a test that hung after its end).
fn pool<D: Database>(settings: &Settings, connections: u32) -> PoolOptions<D> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(settings.acquire_timeout)
        .max_lifetime(None)
        .idle_timeout(None)
        .test_before_acquire(false)
        .before_acquire(|connection: &mut D::Connection, meta| {
            Box::pin(async move {
                if meta.idle_for > MAX_TRUSTED_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// One writer connection and a pool of readers: deferred transactions that read and then write
/// fail under concurrency on SQLite (stack.md, fact 1).
async fn sqlite(
    url: &str,
    settings: &Settings,
) -> Result<(DatabaseConnection, DatabaseConnection)> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(unreachable_database)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(settings.lock_timeout)
        .disable_statement_logging();
    let writer = pool::<Sqlite>(settings, 1)
        .connect_with(options.clone())
        .await
        .map_err(unreachable_database)?;
    let reader = pool::<Sqlite>(settings, settings.max_connections)
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok((writer.into(), reader.into()))
}

/// Whether to leave TLS out: on the machine's own loopback there is no wire to protect, and sqlx
/// 0.9 leaves Nagle's algorithm on, so that each statement over one TLS record (16 KiB) waits
/// 40 ms for an acknowledgement: measured, 47 s instead of 8 s for an import. A URL that names a
/// mode of its own decides.
fn is_plain(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_loopback = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|name| host.strip_prefix(name).is_some_and(|r| r.is_empty() || r.starts_with(':')));
    is_loopback && !url.contains("sslmode") && !url.contains("ssl-mode")
}

/// Memory of one sort or hash of a statement on PostgreSQL. Its own 4 MB are used up at a hundred
/// thousand lines: measured, proofs over a whole version spent half their time on temporary files.
const WORK_MEM: &str = "32MB";

/// Its 4 is a spinning disk's. At that price a batch of 250 lines rather read whole tables of forty
/// thousand rows than look 250 rows up.
const RANDOM_PAGE_COST: &str = "1.1";

/// No just-in-time compilation: measured, it took longer than what it sped up, anew each time.
///
/// Every statement is planned for its values. A prepared statement's plan for any values, which
/// PostgreSQL turns to after five runs, is kept while a table grows from nothing: measured, a build
/// that began on an empty table read all its lines again for every batch.
async fn postgres(url: &str, settings: &Settings) -> Result<DatabaseConnection> {
    let mut options = PgConnectOptions::from_str(url).map_err(unreachable_database)?;
    if is_plain(url) {
        options = options.ssl_mode(PgSslMode::Disable);
    }
    let lock_timeout = format!("{}ms", settings.lock_timeout.as_millis().max(1));
    let options = options
        .application_name("counterfoil")
        .options([
            ("plan_cache_mode", "force_custom_plan"),
            ("lock_timeout", lock_timeout.as_str()),
            ("work_mem", WORK_MEM),
            ("random_page_cost", RANDOM_PAGE_COST),
            ("jit", "off"),
        ])
        .disable_statement_logging();
    let pool = pool::<Postgres>(settings, settings.max_connections)
        .connect_with(options)
        .await
        .map_err(unreachable_database)?;
    Ok(pool.into())
}

/// What each MariaDB session needs to behave like the other two (stack.md, fact 5).
const MARIADB_SESSION: [&str; 2] = [
    "SET SESSION sql_mode = CONCAT(@@sql_mode, \
     ',ANSI_QUOTES,SIMULTANEOUS_ASSIGNMENT,STRICT_ALL_TABLES')",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
];

/// For rows, and for tables that somebody alters. In whole seconds, and 0 would be no wait at all.
fn mariadb_waits(lock_timeout: Duration) -> String {
    let seconds = lock_timeout.as_millis().div_ceil(1000).max(1);
    format!("SET SESSION innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}")
}

async fn mariadb(url: &str, settings: &Settings) -> Result<DatabaseConnection> {
    let url = url.replacen("mariadb://", "mysql://", 1);
    let mut options = MySqlConnectOptions::from_str(&url).map_err(unreachable_database)?;
    if is_plain(&url) {
        options = options.ssl_mode(MySqlSslMode::Disabled);
    }
    let options = options.disable_statement_logging();
    let waits = mariadb_waits(settings.lock_timeout);
    let pool = pool::<MySql>(settings, settings.max_connections)
        .after_connect(move |connection, _| {
            let waits = AssertSqlSafe(waits.clone());
            Box::pin(async move {
                for statement in MARIADB_SESSION {
                    connection.execute(statement).await?;
                }
                connection.execute(waits).await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(unreachable_database)?;
    Ok(pool.into())
}

fn unreachable_database(error: sea_orm::sqlx::Error) -> Error {
    Error::Lost(DbErr::Conn(RuntimeErr::SqlxError(error.into())))
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn only_the_loopback_goes_without_tls_and_only_where_the_url_leaves_it_open() {
        for plain in ["postgres://a:b@127.0.0.1:5432/c", "mysql://localhost/c", "postgres://[::1]"]
        {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "postgres://a@db.example/c",
            "postgres://a@127.0.0.1.example/c",
            "postgres://localhost@db.example/c",
            "postgres://a@127.0.0.1/c?sslmode=require",
            "mysql://localhost/c?ssl-mode=REQUIRED",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
