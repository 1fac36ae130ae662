//! A database of its own for each test, on each of the three.

use std::sync::atomic::{AtomicU32, Ordering};

use counterfoil_db::{Db, Dialect, Query, Read, Settings};

static MADE: AtomicU32 = AtomicU32::new(0);

/// A database that is dropped when the test ends, also when it fails.
pub struct TestDb {
    url: String,
    admin: Option<(String, String)>,
    _folder: tempfile::TempDir,
}

impl TestDb {
    pub async fn create(dialect: Dialect) -> TestDb {
        let folder = tempfile::tempdir().unwrap();
        let (variable, default) = match dialect {
            Dialect::Sqlite => {
                let url = format!("sqlite:{}", folder.path().join("test.db").display());
                return TestDb { url, admin: None, _folder: folder };
            }
            Dialect::Postgres => {
                ("COUNTERFOIL_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432")
            }
            Dialect::MariaDb => ("COUNTERFOIL_TEST_MARIADB", "mysql://root@127.0.0.1:3306"),
        };
        let server = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
        let name = unique_name();
        let admin = match dialect {
            Dialect::Postgres => format!("{server}/postgres"),
            _ => format!("{server}/mysql"),
        };
        run_alone(&admin, format!("CREATE DATABASE {name}")).await;
        let url = format!("{server}/{name}");
        TestDb { url, admin: Some((admin, name)), _folder: folder }
    }

    /// Opens it as one more process would.
    pub async fn open(&self, settings: Settings) -> Db {
        Db::connect(&self.url, settings).await.unwrap()
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        let Some((admin, name)) = self.admin.take() else {
            return;
        };
        // Drop cannot wait; a thread of its own can.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let force = if admin.starts_with("postgres") { " WITH (FORCE)" } else { "" };
                run_alone(&admin, format!("DROP DATABASE {name}{force}")).await;
            });
        });
        let _ = dropping.join();
    }
}

fn unique_name() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("cf_{}_{}_{made}", std::process::id(), since.subsec_nanos())
}

/// Outside any transaction: PostgreSQL makes databases nowhere else.
async fn run_alone(admin: &str, statement: String) {
    let settings = Settings { max_connections: 1, ..Settings::default() };
    let db = Db::connect(admin, settings).await.unwrap();
    db.rows(Query::built(statement)).await.unwrap();
    db.close().await;
}

/// Runs an `async fn(TestDb)` as one test on each database.
#[macro_export]
macro_rules! everywhere {
    ($($name:ident;)*) => {$(
        mod $name {
            use $crate::database::TestDb;
            use counterfoil_db::Dialect;

            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                super::$name(TestDb::create(Dialect::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                super::$name(TestDb::create(Dialect::Postgres).await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_mariadb() {
                super::$name(TestDb::create(Dialect::MariaDb).await).await;
            }
        }
    )*};
}
