//! The one lease implementation, over a described table. Nobody else writes lease SQL.
//!
//! A lease is a right that expires: a row's id and expected version become worker, version + 1 and
//! an expiry. Table and column names come from `const` descriptions, never from input.

use chrono::TimeDelta;
use counterfoil_db::{Bind, Instant, Query, Read, Result, Tx, Value};

/// How long a lease lasts unless renewed; every batch renews it.
pub const LEASE_FOR: TimeDelta = TimeDelta::minutes(10);

/// Where leases of one sort live.
#[derive(Debug, PartialEq, Eq)]
pub struct LeaseTable {
    /// The table.
    pub name: &'static str,
    /// Its status column.
    pub status: &'static str,
    /// The status that a lease gives.
    pub running: &'static str,
    /// The statuses, besides an expired lease, that may be leased.
    pub open: &'static [&'static str],
    /// The status of a finished row.
    pub done: &'static str,
    /// The status of a failed row.
    pub failed: &'static str,
    /// The column of the version that each lease raises.
    pub version: &'static str,
    /// The column of the error code.
    pub error_code: &'static str,
    /// The column of the error message.
    pub error_message: &'static str,
}

/// How long leases last.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// From acquiring or renewing to the expiry.
    pub lasts: TimeDelta,
}

impl Default for LeaseTerms {
    fn default() -> LeaseTerms {
        LeaseTerms { lasts: LEASE_FOR }
    }
}

/// Why a lease was not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseUnavailable {
    /// Somebody holds it until then.
    Held {
        /// When it ends.
        until: Instant,
    },
    /// The row is finished, gone, or its version moved on meanwhile.
    Moved,
}

/// A held lease.
#[derive(Debug, Clone)]
pub struct Lease {
    table: &'static LeaseTable,
    id: i64,
    version: i64,
    worker: String,
    terms: LeaseTerms,
}

/// A change of a column together with a renewal.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Set(Value),
    Add(i64),
}

/// Column changes that a renewal carries along: cursors and counters.
#[derive(Debug, Clone, Default)]
pub struct Progress(Vec<(&'static str, Change)>);

impl Progress {
    /// Only renew.
    pub fn none() -> Progress {
        Progress::default()
    }

    /// Sets a column, such as a cursor.
    #[must_use]
    pub fn set(mut self, column: &'static str, value: impl Bind) -> Progress {
        self.0.push((column, Change::Set(value.bind())));
        self
    }

    /// Adds to a counter.
    #[must_use]
    pub fn add(mut self, column: &'static str, by: u64) -> Progress {
        self.0.push((column, Change::Add(i64::try_from(by).unwrap_or(i64::MAX))));
        self
    }
}

impl Lease {
    /// Leases a row that is open, failed, or RUNNING under an expired lease.
    pub async fn acquire(
        tx: &mut Tx,
        table: &'static LeaseTable,
        id: i64,
        expected_version: i64,
        worker: &str,
        terms: LeaseTerms,
    ) -> Result<std::result::Result<Lease, LeaseUnavailable>> {
        let LeaseTable { name, status, running, failed, version, .. } = table;
        let open = table.open.iter().map(|s| format!("'{s}'")).collect::<Vec<_>>().join(", ");
        let now = tx.now();
        let free = format!("{status} IN ({open}, '{failed}')");
        let expired = format!(
            "{status} = '{running}' AND (lease_expire_time IS NULL OR lease_expire_time <= :now)"
        );
        for (condition, is_takeover) in [(free, false), (expired, true)] {
            let text = format!(
                "UPDATE {name}
                 SET {status} = '{running}', worker_id = :worker, {version} = :version + 1,
                     lease_expire_time = :until, heartbeat_time = :now, update_time = :now
                 WHERE id = :id AND deleted = 0 AND COALESCE({version}, 0) = :version
                   AND {condition}"
            );
            let update = Query::built(text)
                .bind("worker", worker)
                .bind("version", expected_version)
                .bind("until", now + terms.lasts)
                .bind("now", now)
                .bind("id", id);
            if tx.execute(update).await? == 1 {
                if is_takeover {
                    tx.after_commit(|| crate::metric::takeover(table.name));
                }
                let version = expected_version + 1;
                return Ok(Ok(Lease { table, id, version, worker: worker.to_owned(), terms }));
            }
        }
        let text = format!(
            "SELECT lease_expire_time FROM {name}
             WHERE id = :id AND {status} = '{running}' AND lease_expire_time > :now"
        );
        let held = tx.row(Query::built(text).bind("id", id).bind("now", now)).await?;
        Ok(Err(match held {
            Some(row) => LeaseUnavailable::Held { until: row.instant("lease_expire_time")? },
            None => LeaseUnavailable::Moved,
        }))
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    pub(crate) fn table(&self) -> &'static LeaseTable {
        self.table
    }

    /// Renews the lease and moves cursor and counters. Guard: RUNNING, our worker and version,
    /// not expired. False = the lease is lost and nothing was written.
    pub async fn advance(&self, tx: &mut Tx, progress: Progress) -> Result<bool> {
        let until = tx.now() + self.terms.lasts;
        let progress = progress.set("lease_expire_time", until);
        self.write(tx, progress, true).await
    }

    /// Marks the row finished. Same guard as [`Lease::advance`].
    pub async fn finish(&self, tx: &mut Tx) -> Result<bool> {
        let progress = Progress::none()
            .set(self.table.status, self.table.done)
            .set("lease_expire_time", None::<Instant>)
            .set(self.table.error_code, None::<&str>)
            .set(self.table.error_message, None::<&str>);
        self.write(tx, progress, true).await
    }

    /// Gives the lease up together with a change, which also says what status the row is left in.
    /// Same guard as [`Lease::advance`].
    pub async fn let_go(&self, tx: &mut Tx, progress: Progress) -> Result<bool> {
        let progress = progress.set("lease_expire_time", None::<Instant>);
        self.write(tx, progress, true).await
    }

    /// Marks the row failed. Guard: our worker and version; the lease may have expired.
    pub async fn fail(&self, tx: &mut Tx, code: &str, message: &str) -> Result<bool> {
        self.fail_with(tx, code, message, Progress::none()).await
    }

    /// Marks the row failed, together with a change such as when to try again.
    pub(crate) async fn fail_with(
        &self,
        tx: &mut Tx,
        code: &str,
        message: &str,
        progress: Progress,
    ) -> Result<bool> {
        let progress = progress
            .set(self.table.status, self.table.failed)
            .set("lease_expire_time", None::<Instant>)
            .set(self.table.error_code, code)
            .set(self.table.error_message, crate::run::cut(message));
        self.write(tx, progress, false).await
    }

    /// Lets go so that the next owner need not wait for the expiry. Guard as [`Lease::advance`].
    pub async fn release(&self, tx: &mut Tx) -> Result<bool> {
        let now = tx.now();
        self.write(tx, Progress::none().set("lease_expire_time", now), true).await
    }

    async fn write(&self, tx: &mut Tx, progress: Progress, unexpired: bool) -> Result<bool> {
        let LeaseTable { name, status, running, version, .. } = self.table;
        let now = tx.now();
        let mut sets = String::new();
        for (column, change) in &progress.0 {
            match change {
                Change::Set(_) => sets.push_str(&format!("{column} = :{column}, ")),
                Change::Add(_) => sets.push_str(&format!("{column} = {column} + :{column}, ")),
            }
        }
        let alive = if unexpired { "AND lease_expire_time > :now" } else { "" };
        let text = format!(
            "UPDATE {name} SET {sets}heartbeat_time = :now, update_time = :now
             WHERE id = :id AND {status} = '{running}' AND worker_id = :worker
               AND {version} = :version {alive}"
        );
        let mut update = Query::built(text)
            .bind("now", now)
            .bind("id", self.id)
            .bind("worker", self.worker.as_str())
            .bind("version", self.version);
        for (column, change) in progress.0 {
            update = match change {
                Change::Set(value) => update.bind(column, value),
                Change::Add(by) => update.bind(column, by),
            };
        }
        Ok(tx.execute(update).await? == 1)
    }
}
