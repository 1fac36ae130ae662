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
