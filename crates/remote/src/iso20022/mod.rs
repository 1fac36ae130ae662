//! ISO 20022: credit transfers out (pain.001.001.09), their status in (pain.002.001.12).

mod characters;
mod outbox;
mod pain001;
mod pain002;

pub use characters::Characters;
pub use outbox::OutboxChannel;
pub use pain002::{MAX_REPORT_BYTES, ReportError, read_report};

/// The strategy's name in `push_batch.strategy`.
pub const PAIN001: &str = "iso20022-pain001";
