//! The review centre (审核中心): who must decide on what, in which order, and what they decided.
//!
//! One operation, one room. It knows nothing of what it reviews beyond an id, a number, a type and
//! a tenant, so that it can run as a service of its own. Source: `shared/spec/payment-flow.md`
//! ("S05 audit plan, and the review centre"), `shared/spec/inputs.md` and seed 001, chapter 8.3.

pub mod configuration;
pub mod decision;
pub mod decision_notice;
pub mod inbox;
pub mod plan_opening;
pub mod rules;
pub mod states;
pub mod withdrawal;

mod error;
mod journal;
mod staffing;

pub use error::ReviewError;

/// The tables of the review centre.
pub const MIGRATIONS: &[counterfoil_db::Migration] = &[counterfoil_db::Migration {
    number: 301,
    name: "review",
    ddl: include_str!("schema/0301_review.sql"),
}];

/// Characters of a remark, as many as its columns hold. Characters, not bytes.
pub const MAX_REMARK: usize = 1000;

/// What is wrong with a text that is to be stored: PostgreSQL cannot store a NUL.
pub(crate) fn defect_of_text(text: &str, most: usize) -> Option<String> {
    if text.contains('\0') {
        return Some("must not contain NUL".into());
    }
    (text.chars().count() > most).then(|| format!("must not be longer than {most} characters"))
}
