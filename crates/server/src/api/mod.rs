//! The HTTP side: one room per path prefix, and what they share about bodies and errors.

pub mod problem;
pub mod review;

mod fields;
