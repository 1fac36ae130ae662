//! What a snapshot task is about: the range of a shard of a finalized review.

use counterfoil_db::{Read, sql};
use counterfoil_protocol::{DataVersion, OrderId, SubmitRound};
use counterfoil_task::WorkError;

/// The lines to be snapshotted.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) progress: i64,
    pub(super) order: OrderId,
    pub(super) data: DataVersion,
    pub(super) round: SubmitRound,
    /// The shard's first and last line.
    pub(super) first: i64,
    pub(super) last: i64,
}

/// Reads shard and progress. The progress must have been finalized.
///
/// # Errors
/// `snapshot-source-missing`: nothing is guessed in its place.
pub(super) async fn read(from: &impl Read, progress: i64, shard: i64) -> Result<Source, WorkError> {
    let query = sql!(
        "SELECT s.payment_order_id, s.data_version, s.submit_round, s.start_order_bill_id,
           s.end_order_bill_id
         FROM fi_resident_income_payment_status_refresh_shard s
         JOIN fi_resident_income_payment_review_callback_progress p
           ON p.id = s.source_id AND p.payment_order_id = s.payment_order_id
         WHERE s.id = :shard AND s.source_type = 'REVIEW_APPROVED' AND s.source_id = :progress
           AND s.deleted = 0 AND p.deleted = 0 AND p.main_task_status = 'SUCCESS'",
        shard = shard,
        progress = progress,
    );
    let Some(row) = from.row(query).await? else {
        let message =
            format!("there is no shard {shard} of a finalized review callback progress {progress}");
        return Err(WorkError::failed("snapshot-source-missing", message));
    };
    Ok(Source {
        progress,
        order: OrderId(row.int("payment_order_id")?),
        data: DataVersion(row.int("data_version")?),
        round: SubmitRound(row.int("submit_round")?),
        first: row.int("start_order_bill_id")?,
        last: row.int("end_order_bill_id")?,
    })
}
