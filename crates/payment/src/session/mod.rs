//! Selection sessions (选单会话): opened, filled, judged, shown, submitted.

pub mod add;
mod candidate;
pub mod creation_key;
pub mod edit;
pub mod open;
pub mod qualify;
pub mod show;
mod submit;

pub use submit::{Submission, submit};
pub(crate) use submit::{check_revisable, name_source_lines};
