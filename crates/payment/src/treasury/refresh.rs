//! Status refresh shards of payments: S12 brings ledgers and bills into line with paid lines.

use counterfoil_db::{Bind, Text, Tx};

use super::{CHUNK, TreasuryError};
use crate::row_batch::insert_rows;

/// The lines of one order's version.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderLines {
    pub(super) order: i64,
    pub(super) data: i64,
    pub(super) round: i64,
}

/// Plans shards of source PAYMENT_RESULT over ranges that hold the touched lines, 1000 touched
/// lines a shard. A range may hold lines that were not touched: refreshing them changes nothing.
pub(super) async fn plan(
    tx: &mut Tx,
    lines: OrderLines,
    source: i64,
    touched: &[i64],
) -> Result<u64, TreasuryError> {
    let mut touched = touched.to_vec();
    touched.sort_unstable();
    touched.dedup();
    let now = tx.now();
    let row = |some: &[i64]| {
        let (first, last) = (some.first()?, some.last()?);
        Some(vec![
            "PAYMENT_RESULT".bind(),
            source.bind(),
            lines.order.bind(),
            lines.data.bind(),
            lines.round.bind(),
            (*first).bind(),
            (*last).bind(),
            i64::try_from(some.len()).unwrap_or(i64::MAX).bind(),
            now.bind(),
            now.bind(),
        ])
    };
    let rows = touched.chunks(CHUNK as usize).filter_map(row).collect();
    Ok(insert_rows(tx, INSERT_SHARDS, rows).await?)
}

const INSERT_SHARDS: Text = Text::Same(
    "INSERT INTO fi_resident_income_payment_status_refresh_shard
       (source_type, source_id, payment_order_id, data_version, submit_round,
        start_order_bill_id, end_order_bill_id, scope_count, create_time, update_time)
     VALUES :rows",
);
