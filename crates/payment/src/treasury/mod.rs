//! The treasury (司库付款): batches, their pushing, the results, and payments recorded by hand.
//!
//! Source: payment-flow.md "S09 side effects" from "Treasury batch" on; seed 003, chapter 7.6. A
//! line has one detail for ever, a detail may be pushed more than once, and every push has an id,
//! bytes and a digest of its own. What is not known is not decided: a push without a verdict stays
//! PUSHING until a status query or a result settles it.

pub mod batch_creation;
pub mod data_fix;
pub mod guard;
pub mod notice;
pub mod port;
pub mod push;
pub mod record_payment;
pub mod result;
pub mod rules;
pub mod view;

mod error;
mod refresh;
mod sum_up;

pub use error::TreasuryError;

/// Rows a transaction reads or writes at a time.
pub(crate) const CHUNK: u32 = 1000;
/// Details of one batch at most: a message of that many lines stays below what databases take as
/// one value.
pub const MAX_BATCH_DETAILS: i64 = 5000;
/// Pushes of one batch that nobody asked for, at most.
pub const MAX_PUSH_COUNT: i64 = 10;

/// Characters of messages and remarks that are kept.
const MAX_MESSAGE: usize = 1000;

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
