//! `/healthz`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use counterfoil_db::Db;
use counterfoil_task::{Engine, Shutdown};

use super::age::Ages;
use super::measured;
use crate::wiring;

/// How long the database may take to say that it is there.
const MAX_ANSWER: Duration = Duration::from_secs(2);

/// What the doors look at.
#[derive(Debug, Clone)]
pub struct Health {
    db: Db,
    shutdown: Shutdown,
    /// Task types and the stages they are of.
    stages: Arc<BTreeMap<&'static str, &'static str>>,
    ages: Arc<Ages>,
}

impl Health {
    /// Of a process with this engine.
    pub fn of(engine: &Engine, shutdown: Shutdown) -> Health {
        let stages = engine.kinds().map(|kind| (kind.task_type, kind.stage)).collect();
        let db = engine.db().clone();
        Health { db, shutdown, stages: Arc::new(stages), ages: Arc::default() }
    }
}

/// The doors of operations.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

/// Whether work can be sent here: the database answers, its tables are ours, and nobody has asked
/// this process to stop.
async fn ready(State(health): State<Health>) -> (StatusCode, &'static str) {
    if health.shutdown.is_asked() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    let looked = async {
        health.db.now().await.ok()?;
        wiring::schema(&health.db).await.ok()
    };
    match tokio::time::timeout(MAX_ANSWER, looked).await {
        // A newer binary may have added to the tables: that stops nobody who runs already.
        Ok(Some(schema)) if schema.missing.is_empty() => (StatusCode::OK, "ready\n"),
        Ok(Some(_)) => (StatusCode::SERVICE_UNAVAILABLE, "the database lacks migrations\n"),
        Ok(None) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    let looked = health.ages.look(&health.db, &health.stages);
    if tokio::time::timeout(MAX_ANSWER, looked).await.is_err() {
        tracing::warn!("the age of waiting work was not read in time");
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, measured::rendered())
}
