//! The form centre (表单中心): answers, who may see them, and the authority over both sets.
//!
//! It makes tasks, freezes a manifest for each, has the hall reconcile, and decides what every
//! report means. Source: `shared/spec/reconcile.md`, "Centre state machine" and around.

pub mod answer;
pub mod authorise;
pub mod authority;
pub mod create;
pub mod delivery;
pub mod digest;
pub mod dispatch;
pub mod grant;
pub mod list;
pub mod manifest;
pub mod prune;
pub mod report;
pub mod settings;
pub mod task;
pub mod turns;
pub mod write;

pub use settings::CentreSettings;
