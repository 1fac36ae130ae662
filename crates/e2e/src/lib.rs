//! What tests share: a database each, an app on it whose end asserts that nothing is stranded, and
//! the rows that tests start from. Unpublished.

mod app;
mod database;
mod fixture;
pub mod fuzz;
mod kills;
pub mod two_sides;

pub use app::{Crash, START, TestApp, run};
pub use counterfoil_db::Dialect;
pub use database::TestDatabase;
pub use fixture::{Bill, CREATOR, Fixture};
pub use kills::{KillPlan, KillReport, LargeReport, Random, kill_loop, large_order};

/// Turns each sentence into three tests: SQLite, PostgreSQL and MariaDB, each on its own database.
#[macro_export]
macro_rules! on_every_database {
    ($($(#[$meta:meta])* async fn $name:ident($app:ident: TestApp) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn sentence($app: $crate::TestApp) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::run($crate::Dialect::Sqlite, sentence).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::run($crate::Dialect::Postgres, sentence).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb() {
                $crate::run($crate::Dialect::MariaDb, sentence).await;
            }
        }
    )*};
}
