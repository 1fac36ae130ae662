//! The service hall (办事大厅): a consumer's projection, its inbox, and the worker that brings the
//! projection in line with the centre's set.
//!
//! It never decides by itself that a row should go, and writes nothing that the centre's signed
//! word does not cover. Source: `shared/spec/reconcile.md`, "Hall: receive, then work".

pub mod centre;
pub mod compare;
pub mod inbox;
pub mod list;
pub mod projection;
pub mod receive;
pub mod settings;
pub mod turns;
pub mod work;

mod advance;
mod finish;
mod narrow;
mod repair;
mod retire;
mod settle;
mod stretch;

pub use settings::{HallSettings, Narrowing};
