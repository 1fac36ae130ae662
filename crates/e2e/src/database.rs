//! A database of its own for each test.

use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_db::{Db, Dialect, Settings};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A fresh, empty database; [`TestDatabase::remove`] takes it away again.
#[derive(Debug)]
pub struct TestDatabase {
    dialect: Dialect,
    name: String,
    url: String,
    folder: Option<tempfile::TempDir>,
}

impl TestDatabase {
    /// Creates it. Panics when the server cannot be reached: `./test` starts the servers.
    pub async fn create(dialect: Dialect) -> TestDatabase {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cf_{}_{number}", std::process::id());
        if dialect == Dialect::Sqlite {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let url = format!("sqlite:{}", folder.path().join("test.db").display());
            return TestDatabase { dialect, name, url, folder: Some(folder) };
        }
        let server = server(dialect);
        let admin = admin(dialect, &server).await;
        execute(&admin, &format!("DROP DATABASE IF EXISTS {name}")).await;
        let create = match dialect {
            Dialect::Postgres => {
                format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
            }
            _ => format!("CREATE DATABASE {name}"),
        };
        execute(&admin, &create).await;
        admin.close().await;
        TestDatabase { dialect, url: format!("{server}/{name}"), name, folder: None }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes it away.
    pub async fn remove(self) {
        if self.folder.is_some() {
            return; // the folder takes itself away
        }
        let admin = admin(self.dialect, &server(self.dialect)).await;
        let force = if self.dialect == Dialect::Postgres { " WITH (FORCE)" } else { "" };
        execute(&admin, &format!("DROP DATABASE IF EXISTS {}{force}", self.name)).await;
        admin.close().await;
    }
}

fn server(dialect: Dialect) -> String {
    let (variable, default) = match dialect {
        Dialect::Postgres => ("COUNTERFOIL_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432"),
        _ => ("COUNTERFOIL_TEST_MARIADB", "mysql://root@127.0.0.1:3306"),
    };
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

async fn admin(dialect: Dialect, server: &str) -> Db {
    let database = if dialect == Dialect::Postgres { "postgres" } else { "mysql" };
    let settings = Settings { max_connections: 1, ..Settings::default() };
    Db::connect(&format!("{server}/{database}"), settings)
        .await
        .unwrap_or_else(|error| panic!("{} does not answer: {error:?}", dialect.name()))
}

/// CREATE and DROP DATABASE refuse to run in a transaction: they go through a plain connection.
async fn execute(admin: &Db, statement: &str) {
    let statement = counterfoil_db::Query::built(statement.to_owned());
    admin.execute_outside_transaction(statement).await.expect("an administrative statement");
}
