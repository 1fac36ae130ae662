//! The HTTP side: one room per path prefix, and what they share about bodies and errors.

pub mod form_admin;
pub mod form_answers;
pub mod form_sync;
pub mod nonce;
pub mod partner;
pub mod payment;
pub mod payment_desk;
pub mod problem;
pub mod review;
pub mod signed;

mod cursor;
mod fields;

pub(crate) use cursor::{cursor_of, place_of};

use axum::http::StatusCode;
use counterfoil_db::Db;

/// Whether the database answers: what `/readyz` says.
pub async fn ready(db: Db) -> (StatusCode, &'static str) {
    match db.now().await {
        Ok(_) => (StatusCode::OK, "ready\n"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}
