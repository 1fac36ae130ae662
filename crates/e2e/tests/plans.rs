//! Every query of the hot paths uses an index.
//!
//! The statements are not copies: a recorder remembers what the engine and the pages really ran,
//! with its values, on tables of a hundred thousand rows, and each is explained.

#[path = "plans/data.rs"]
mod data;
#[path = "plans/explain.rs"]
mod explain;
#[path = "plans/paths.rs"]
mod paths;

use counterfoil_db::Recorder;
use counterfoil_e2e::{Dialect, TestApp};

async fn every_query_uses_an_index(app: TestApp) {
    data::fill(&app).await;
    data::analyse(&app).await;
    let recorder = Recorder::default();
    let recorded = data::reopen(&app, Some(recorder.clone()), 8).await;
    let paths = paths::walk(&app, &recorded, &recorder).await;
    recorded.db.close().await;
    let missing: Vec<&str> =
        paths.iter().filter(|path| path.statements.is_empty()).map(|path| path.name).collect();
    assert!(missing.is_empty(), "no statement was recorded of {missing:?}");
    // First with statistics that know nothing of what the paths have just written, as in
    // production before the next analysis; then with all of it known.
    let mut found = explain::whole_reads(&app, &paths).await;
    data::analyse(&app).await;
    found.extend(explain::whole_reads(&app, &paths).await);
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{} plans:\n{}", found.len(), found.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_hot_paths_uses_an_index_on_postgres() {
    counterfoil_e2e::run(Dialect::Postgres, every_query_uses_an_index).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_hot_paths_uses_an_index_on_mariadb() {
    counterfoil_e2e::run(Dialect::MariaDb, every_query_uses_an_index).await;
}
