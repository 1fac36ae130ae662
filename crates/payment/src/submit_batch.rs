//! `selection_submit_batch`: how its rows are leased and how large its batches are.

use counterfoil_task::LeaseTable;

/// Leases on submit batches.
pub(crate) const SUBMIT_BATCH: LeaseTable = LeaseTable {
    name: "selection_submit_batch",
    status: "batch_status",
    running: "RUNNING",
    open: &["INIT"],
    done: "DONE",
    failed: "FAILED",
    version: "lease_version",
    error_code: "error_code",
    error_message: "error_message",
};

/// Rows a batch when the row names none.
pub const DEFAULT_BATCH_SIZE: u32 = 1000;
/// Rows a batch at most.
pub const MAX_BATCH_SIZE: u32 = 10_000;

/// The size of a batch: NULL or not positive is the default, and there is a cap.
pub(crate) fn size(stored: Option<i64>) -> u32 {
    match stored {
        Some(size) if size > 0 => u32::try_from(size).unwrap_or(u32::MAX).min(MAX_BATCH_SIZE),
        _ => DEFAULT_BATCH_SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_has_a_default_and_a_cap() {
        let table = [(None, 1000), (Some(0), 1000), (Some(-5), 1000), (Some(7), 7)];
        for (stored, expected) in table {
            assert_eq!(size(stored), expected, "{stored:?}");
        }
        assert_eq!(size(Some(i64::MAX)), MAX_BATCH_SIZE);
    }
}
