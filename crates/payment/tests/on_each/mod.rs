//! Each test on each database, in a database of its own.

#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "not every test file uses all of it"
)]

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::panic::resume_unwind;

use counterfoil_db::{Clock, Db, Query, Read, Settings, migrate};

/// Which database.
#[derive(Clone, Copy)]
pub enum Which {
    Sqlite,
    Postgres,
    MariaDb,
}

/// One sentence, three tests.
macro_rules! on_each_database {
    ($(async fn $name:ident($db:ident: Db) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn body($db: counterfoil_db::Db) $body

            #[test]
            fn sqlite() {
                $crate::on_each::run($crate::on_each::Which::Sqlite, body);
            }

            #[test]
            fn postgres() {
                $crate::on_each::run($crate::on_each::Which::Postgres, body);
            }

            #[test]
            fn mariadb() {
                $crate::on_each::run($crate::on_each::Which::MariaDb, body);
            }
        }
    )*};
}
pub(crate) use on_each_database;

/// Makes a database with all tables, runs the test, drops the database whatever came of it.
pub fn run<F, T>(which: Which, test: F)
where
    F: FnOnce(Db) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let name = format!("cf_{:016x}", RandomState::new().hash_one(0));
    let server = match which {
        Which::Sqlite => None,
        Which::Postgres => Some(server("POSTGRES", "postgres://postgres@127.0.0.1:5432")),
        Which::MariaDb => Some(server("MARIADB", "mysql://root@127.0.0.1:3306")),
    };
    let database = |server: &String| match which {
        Which::Postgres => format!("{server}/postgres"),
        _ => format!("{server}/mysql"),
    };
    let outcome = runtime.block_on(async {
        let url = match &server {
            None => format!("sqlite:{}", folder.path().join("test.db").display()),
            Some(server) => {
                order(&database(server), format!("CREATE DATABASE {name}")).await;
                format!("{server}/{name}")
            }
        };
        let settings = Settings {
            clock: Clock::Database,
            ..Settings::default()
        };
        let db = Db::connect(&url, settings).await.unwrap();
        migrate(&db, counterfoil_task::MIGRATIONS).await.unwrap();
        migrate(&db, counterfoil_payment::MIGRATIONS).await.unwrap();
        let outcome = tokio::spawn(test(db.clone())).await;
        db.close().await;
        outcome
    });
    if let Some(server) = &server {
        let force = if matches!(which, Which::Postgres) {
            " WITH (FORCE)"
        } else {
            ""
        };
        runtime.block_on(order(
            &database(server),
            format!("DROP DATABASE {name}{force}"),
        ));
    }
    if let Err(error) = outcome {
        resume_unwind(error.into_panic());
    }
}

fn server(which: &str, default: &str) -> String {
    std::env::var(format!("COUNTERFOIL_TEST_{which}")).unwrap_or_else(|_| default.to_owned())
}

async fn order(url: &str, statement: String) {
    let settings = Settings {
        max_connections: 1,
        ..Settings::default()
    };
    let db = Db::connect(url, settings).await.unwrap();
    db.rows(Query::built(statement)).await.unwrap();
    db.close().await;
}

/// Runs statements that a test writes as they are.
pub async fn execute(db: &Db, statement: impl Into<String>) {
    let mut tx = db.begin().await.unwrap();
    tx.execute(Query::built(statement.into())).await.unwrap();
    tx.commit("test").await.unwrap();
}

/// The first column of the first row.
pub async fn number(db: &Db, query: impl Into<String>) -> i64 {
    db.count(Query::built(query.into())).await.unwrap()
}

/// Every row with its columns as text, NULL as `-`.
pub async fn table(db: &Db, query: impl Into<String>) -> Vec<String> {
    let rows = db.rows(Query::built(query.into())).await.unwrap();
    let line = |row: &counterfoil_db::Row| {
        let cells = row.columns().into_iter();
        let cells = cells.map(|column| row.shown(&column).unwrap_or_else(|| "-".into()));
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(line).collect()
}

pub mod bills;
