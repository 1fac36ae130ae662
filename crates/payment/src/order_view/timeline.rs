//! What happened to one order, merged by time.

use counterfoil_db::{Db, Instant};
use counterfoil_protocol::{DataVersion, OrderId};
use serde::Serialize;

use super::{MAX_TIMELINE, page, timeline_rows as rows};
use crate::PaymentError;

/// One thing that happened, or the state something has had since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When.
    pub time: Instant,
    /// What sort of record tells it: `version`, `order`, `trace`, `incident`, `approval`, `locks`
    /// or `task`.
    pub kind: &'static str,
    /// What happened, in a sentence.
    pub what: String,
    /// The data version it is about.
    pub data_version: Option<DataVersion>,
    /// The task it is about.
    pub task_code: Option<String>,
    /// Who did it, if a person did.
    pub operator_user_id: Option<i64>,
    /// More, as stored.
    pub detail: Option<String>,
}

/// Locks of one data version in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocksInState {
    /// The data version they belong to.
    pub data_version: DataVersion,
    /// RESERVED, ACTIVE or RELEASED.
    pub lock_status: String,
    /// Why they were released.
    pub release_reason: Option<String>,
    /// How many.
    pub locks: i64,
    /// When the last of them came into this state.
    pub since: Instant,
}

/// The timeline of one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The order.
    pub payment_order_id: OrderId,
    /// Oldest first.
    pub entries: Vec<TimelineEntry>,
    /// Its locks, by data version and state.
    pub locks: Vec<LocksInState>,
    /// Whether older entries are not shown.
    pub truncated: bool,
}

/// The newest entries of an order's timeline, at most `limit` of them.
///
/// # Errors
/// [`PaymentError::OrderNotFound`].
pub async fn timeline(
    db: &Db,
    order: OrderId,
    limit: Option<u32>,
) -> Result<Timeline, PaymentError> {
    let limit = limit.map_or(MAX_TIMELINE, |asked| page(Some(asked)));
    let versions = rows::versions_of(db, order).await?;
    let tasks = rows::tasks(db, &versions, limit).await?;
    let locks = rows::locks(db, order).await?;
    let sources = [
        rows::of_versions(&versions),
        rows::order_log(db, order, limit).await?,
        rows::trace_of_order(db, order, limit).await?,
        rows::trace_of_tasks(db, &tasks, limit).await?,
        rows::approvals(db, order, limit).await?,
        rows::of_locks(&locks),
        rows::of_tasks(&tasks),
    ];
    let (entries, truncated) = merge(sources, limit as usize);
    Ok(Timeline { payment_order_id: order, entries, locks, truncated })
}

/// The newest `limit` entries, oldest first; at one instant a source's place decides. A source
/// that is as long as the limit may have more: what is older than its oldest entry is incomplete.
fn merge<const N: usize>(
    sources: [Vec<TimelineEntry>; N],
    limit: usize,
) -> (Vec<TimelineEntry>, bool) {
    let is_cut = sources.iter().any(|source| source.len() >= limit);
    let mut entries: Vec<TimelineEntry> = sources.into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry.time);
    let too_many = entries.len().saturating_sub(limit);
    entries.drain(..too_many);
    (entries, is_cut || too_many > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(minute: u32, kind: &'static str) -> TimelineEntry {
        TimelineEntry {
            time: format!("2026-09-08T02:{minute:02}:00Z").parse().unwrap(),
            kind,
            what: String::new(),
            data_version: None,
            task_code: None,
            operator_user_id: None,
            detail: None,
        }
    }

    fn kinds(entries: &[TimelineEntry]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.kind).collect()
    }

    #[test]
    fn sources_are_merged_by_time_and_then_by_their_order() {
        let sources = [
            vec![entry(1, "version"), entry(3, "version")],
            vec![entry(3, "trace"), entry(2, "trace")],
        ];
        let (entries, truncated) = merge(sources, 10);
        assert_eq!(kinds(&entries), ["version", "trace", "version", "trace"]);
        assert!(!truncated);
    }

    #[test]
    fn the_newest_stay_and_what_is_left_out_is_said() {
        let sources = [vec![entry(1, "version")], vec![entry(2, "trace"), entry(3, "task")]];
        let (entries, truncated) = merge(sources, 2);
        assert_eq!(kinds(&entries), ["trace", "task"]);
        assert!(truncated);
    }
}
