//! Planning the shards of a refresh: ranges of about a thousand lines by id with a hash of their
//! scopes. Planned by plain reads outside any transaction, inserted inside the caller's.

use counterfoil_db::{Bind, Read, Result, Text, Tx};
use counterfoil_protocol::{DataVersion, LineId, OrderId, SubmitRound};

use super::scope::{LinesOf, ScopeHash, hex, scopes_between};
use crate::row_batch::insert_rows;

/// Lines of a shard.
pub const SHARD_LINES: u32 = 1000;

/// Says how scopes are built and hashed: `scope_builder_version`.
pub const BUILDER_VERSION: i64 = 1;

/// Shards of one INSERT.
const INSERT_AT_ONCE: usize = 500;

/// Where a refresh comes from: `source_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A review was approved; `source_id` is the review callback's progress.
    ReviewApproved,
    /// A payment had a result; `source_id` is whatever brought it.
    PaymentResult,
    /// A person asked for it.
    Manual,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 3] = [Source::ReviewApproved, Source::PaymentResult, Source::Manual];

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::ReviewApproved => "REVIEW_APPROVED",
            Source::PaymentResult => "PAYMENT_RESULT",
            Source::Manual => "MANUAL",
        }
    }
}

/// One shard to be: its first and last line, and what they cover. A plan keeps no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedShard {
    /// `start_order_bill_id`.
    pub first: LineId,
    /// `end_order_bill_id`: the last line itself.
    pub last: LineId,
    /// `scope_count`: one scope a line.
    pub scopes: u32,
    /// `scope_hash`.
    pub hash: [u8; 32],
}

/// Plans the shards of all lines of one version of an order, by line id. No line, no shard.
///
/// # Errors
/// The database's.
pub async fn plan_shards(
    db: &impl Read,
    order: OrderId,
    data: DataVersion,
    round: SubmitRound,
) -> Result<Vec<PlannedShard>> {
    plan_shards_between(db, &LinesOf { order, data, round }, LineId(0), LineId(i64::MAX)).await
}

/// The same for the lines from `first` to `last`, both included.
///
/// # Errors
/// The database's.
pub async fn plan_shards_between(
    db: &impl Read,
    lines: &LinesOf,
    first: LineId,
    last: LineId,
) -> Result<Vec<PlannedShard>> {
    let mut shards = Vec::new();
    let mut after = first.0.saturating_sub(1);
    loop {
        let scopes = scopes_between(db, lines, after, last.0, SHARD_LINES).await?;
        let (Some(start), Some(end)) = (scopes.first(), scopes.last()) else {
            return Ok(shards);
        };
        let mut hash = ScopeHash::default();
        scopes.iter().for_each(|scope| hash.add(scope));
        let (count, hash) = hash.end();
        let (first, last) = (LineId(start.id), LineId(end.id));
        shards.push(PlannedShard { first, last, scopes: count, hash });
        if count < SHARD_LINES {
            return Ok(shards);
        }
        after = end.id;
    }
}

/// Inserts planned shards, PENDING. One that is there already, by source and first line, stays as
/// it is. Answers how many are new.
///
/// # Errors
/// The database's.
pub async fn insert_shards(
    tx: &mut Tx,
    source: Source,
    source_id: i64,
    lines: &LinesOf,
    shards: &[PlannedShard],
) -> Result<u64> {
    let mut inserted = 0;
    for some in shards.chunks(INSERT_AT_ONCE) {
        let row = |shard: &PlannedShard| {
            vec![
                source.as_str().bind(),
                source_id.bind(),
                lines.order.0.bind(),
                lines.data.0.bind(),
                lines.round.0.bind(),
                shard.first.0.bind(),
                shard.last.0.bind(),
                shard.scopes.bind(),
                hex(&shard.hash).bind(),
                BUILDER_VERSION.bind(),
                tx.now().bind(),
                tx.now().bind(),
            ]
        };
        let rows = some.iter().map(row).collect();
        inserted += insert_rows(tx, INSERT, rows).await?;
    }
    Ok(inserted)
}

const INSERT: Text = Text::Same(
    "{insert_ignore} INTO fi_resident_income_payment_status_refresh_shard
       (source_type, source_id, payment_order_id, data_version, submit_round,
        start_order_bill_id, end_order_bill_id, scope_count, scope_hash, scope_builder_version,
        create_time, update_time)
     VALUES :rows {or_ignore}",
);
