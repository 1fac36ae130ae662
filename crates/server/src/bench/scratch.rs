//! A scratch database beside the configured one.

use anyhow::{Context, Result};
use counterfoil_db::{Clock, Db, Dialect, Pulse, Query, Read, Settings, migrate};

use crate::wiring;

/// A migrated scratch database.
#[derive(Debug)]
pub struct Scratch {
    /// The database.
    pub db: Db,
    /// How long its transactions take.
    pub pulse: Pulse,
    server: String,
    name: String,
}

impl Scratch {
    /// Makes one on the server (or, for SQLite, in the folder) that `url` names.
    pub async fn create(url: &str, connections: u32) -> Result<Scratch> {
        Scratch::named(url, connections, "").await
    }

    /// One of several: `suffix` keeps them apart.
    pub async fn named(url: &str, connections: u32, suffix: &str) -> Result<Scratch> {
        let dialect = Dialect::of_url(url).context("the database URL names no known database")?;
        let name = format!("counterfoil_bench_{}{suffix}", std::process::id());
        let (server, own_url) = if dialect == Dialect::Sqlite {
            let file = format!("{}.{name}", url.trim_start_matches("sqlite:"));
            (file.clone(), format!("sqlite:{file}"))
        } else {
            let at = url.rfind('/').context("the database URL has no database name")?;
            execute(url, &format!("CREATE DATABASE {name}")).await?;
            (url.to_owned(), format!("{}/{name}", &url[..at]))
        };
        let pulse = Pulse::default();
        let settings = Settings {
            max_connections: connections,
            clock: Clock::Database,
            pulse: pulse.clone(),
            ..Settings::default()
        };
        let db = Db::connect(&own_url, settings).await?;
        migrate(&db, &wiring::migrations()).await?;
        Ok(Scratch { db, pulse, server, name })
    }

    /// Takes it away.
    pub async fn remove(self) -> Result<()> {
        let dialect = self.db.dialect();
        self.db.close().await;
        if dialect == Dialect::Sqlite {
            for suffix in ["", "-wal", "-shm"] {
                // The last connection may have removed its side files already.
                let _ = std::fs::remove_file(format!("{}{suffix}", self.server));
            }
            return Ok(());
        }
        execute(&self.server, &format!("DROP DATABASE {}", self.name)).await
    }

    /// Statistics for the planner, as a database that has lived for a while has them.
    pub async fn analyze(&self) -> Result<()> {
        if self.db.dialect() == Dialect::MariaDb {
            for table in TABLES {
                run(&self.db, &format!("ANALYZE TABLE {table}")).await?;
            }
            return Ok(());
        }
        run(&self.db, "ANALYZE").await
    }
}

/// The large tables of the benchmarks.
const TABLES: [&str; 9] = [
    "answer",
    "fc_answer_projection",
    "fi_customer_account",
    "fi_async_task",
    "fi_resident_income_payment_order_bill",
    "fi_resident_income_payment_bill_lock",
    "fi_monthly_income_difference",
    "fi_customer_bill",
    "fi_customer_bill_partner",
];

async fn execute(url: &str, statement: &str) -> Result<()> {
    let settings = Settings { max_connections: 1, ..Settings::default() };
    let db = Db::connect(url, settings).await?;
    run(&db, statement).await?;
    db.close().await;
    Ok(())
}

async fn run(db: &Db, statement: &str) -> Result<()> {
    Ok(db.execute_outside_transaction(Query::built(statement.to_owned())).await?)
}
