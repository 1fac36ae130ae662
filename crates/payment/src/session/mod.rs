//! Selection sessions (选单会话): opened, edited, submitted.

mod submit;

pub(crate) use submit::{check_revisable, name_source_lines};
pub use submit::{Submission, submit};
