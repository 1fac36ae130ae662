//! Which shard takes the next turn, and how many may be RUNNING at once.

use std::collections::HashMap;

use counterfoil_db::{Db, Instant, Query, Read, Result, Row, Tx, sql, transact};
use counterfoil_task::{Selector, Taken, Unit, WorkError};

use super::Source;
use crate::kinds::STATUS_REFRESH;

/// How many shards may be RUNNING under a live lease at once, over all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshCaps {
    /// Of one source type.
    pub per_source: u32,
    /// Of all of them.
    pub in_all: u32,
}

impl Default for RefreshCaps {
    fn default() -> RefreshCaps {
        RefreshCaps { per_source: 8, in_all: 16 }
    }
}

/// RUNNING shards by source type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Running(HashMap<String, u32>);

impl Running {
    pub(super) async fn read(from: &impl Read, now: Instant) -> Result<Running> {
        let query = sql!(
            "SELECT source_type, COUNT(*) AS shards
             FROM fi_resident_income_payment_status_refresh_shard
             WHERE source_type IN ('REVIEW_APPROVED', 'PAYMENT_RESULT', 'MANUAL')
               AND task_status = 'RUNNING' AND lease_expire_time > :now AND deleted = 0
             GROUP BY source_type",
            now = now,
        );
        let mut running = HashMap::new();
        for row in from.rows(query).await? {
            let shards = u32::try_from(row.int("shards")?).unwrap_or(u32::MAX);
            running.insert(row.text("source_type")?, shards);
        }
        Ok(Running(running))
    }

    /// Whether one more shard of this source may run.
    pub(super) fn leaves_room(&self, source: &str, caps: RefreshCaps) -> bool {
        let of_source = self.0.get(source).copied().unwrap_or(0);
        let in_all = self.0.values().fold(0_u32, |sum, shards| sum.saturating_add(*shards));
        of_source < caps.per_source && in_all < caps.in_all
    }
}

/// The columns of a shard that may take a turn.
macro_rules! shard {
    () => {
        "SELECT s.id, s.running_attempt, s.retry_count, s.source_type, s.update_time
         FROM fi_resident_income_payment_status_refresh_shard s "
    };
}

/// A shard of an approved review waits until the locks of its order's unqualified lines are
/// released. Results of payments and a person's wish wait for nothing.
macro_rules! released {
    () => {
        "JOIN fi_resident_income_payment_review_callback_progress p
           ON p.id = s.source_id AND p.main_task_status = 'SUCCESS' AND p.phase = 'REFRESH_SHARD'
          AND p.lock_release_success = p.lock_release_expected AND p.deleted = 0 "
    };
}

/// The oldest due shard of one source in one status, as one row at most.
macro_rules! oldest {
    ($source:literal, $gate:expr, $due:literal) => {
        concat!(
            "SELECT * FROM (",
            shard!(),
            $gate,
            "WHERE s.source_type = '",
            $source,
            "' AND s.deleted = 0 AND ",
            $due,
            " ORDER BY s.update_time, s.id LIMIT 1) AS oldest"
        )
    };
}

/// The oldest due shard of one source in each status.
macro_rules! due {
    ($source:literal, $gate:expr) => {
        concat!(
            oldest!($source, $gate, "s.task_status = 'PENDING'"),
            " UNION ALL ",
            oldest!(
                $source,
                $gate,
                "s.task_status = 'FAILED'
                 AND (s.next_retry_time IS NULL OR s.next_retry_time <= :now)"
            ),
            " UNION ALL ",
            oldest!(
                $source,
                $gate,
                "s.task_status = 'RUNNING'
                 AND (s.lease_expire_time IS NULL OR s.lease_expire_time <= :now)"
            )
        )
    };
}

const DUE: &str = concat!(
    due!("REVIEW_APPROVED", released!()),
    " UNION ALL ",
    due!("PAYMENT_RESULT", ""),
    " UNION ALL ",
    due!("MANUAL", ""),
);

/// The shard whose turn it is: of the source that had the fewest turns and still has room, the one
/// that waits longest.
pub(super) async fn next(
    db: &Db,
    now: Instant,
    taken: &Taken,
    caps: RefreshCaps,
) -> Result<Option<Unit>, WorkError> {
    let running = Running::read(db, now).await?;
    let mut waiting = Vec::new();
    for row in db.rows(sql!(DUE, now = now)).await? {
        let unit = unit_of(&row)?;
        if running.leaves_room(unit.group, caps) {
            waiting.push((row.instant("update_time")?, unit));
        }
    }
    Ok(taken.fairest(waiting))
}

macro_rules! due_among {
    ($which:literal) => {
        concat!(
            shard!(),
            "WHERE ",
            $which,
            " AND s.deleted = 0
               AND (s.task_status = 'PENDING'
                    OR (s.task_status = 'FAILED'
                        AND (s.next_retry_time IS NULL OR s.next_retry_time <= :now))
                    OR (s.task_status = 'RUNNING'
                        AND (s.lease_expire_time IS NULL OR s.lease_expire_time <= :now)))
               AND (s.source_type <> 'REVIEW_APPROVED' OR EXISTS (
                 SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
                 WHERE p.id = s.source_id AND p.main_task_status = 'SUCCESS'
                   AND p.phase = 'REFRESH_SHARD'
                   AND p.lock_release_success = p.lock_release_expected AND p.deleted = 0))
             ORDER BY s.id LIMIT :limit"
        )
    };
}

/// One shard, if it may take a turn now.
pub(super) async fn eligible(
    db: &Db,
    now: Instant,
    id: i64,
    caps: RefreshCaps,
) -> Result<Option<Unit>, WorkError> {
    let query = sql!(due_among!("s.id = :id"), id = id, now = now, limit = 1);
    let Some(row) = db.row(query).await? else { return Ok(None) };
    let unit = unit_of(&row)?;
    let running = Running::read(db, now).await?;
    Ok(Some(unit).filter(|unit| running.leaves_room(unit.group, caps)))
}

/// The shards of the reviews whose S07 tasks a person named, and the shards named themselves as
/// `RIPRS:<id>`. Those that wait after a failure are due at once.
pub(super) async fn named(
    db: &Db,
    selector: &Selector,
    limit: u32,
) -> Result<Vec<Unit>, WorkError> {
    transact!(make_due(db, selector))?;
    let now = db.now().await?;
    let query = sql!(
        due_among!(
            "(s.id IN :ids OR (s.source_type = 'REVIEW_APPROVED'
           AND s.source_id IN (
             SELECT named.id FROM fi_resident_income_payment_review_callback_progress named
             JOIN fi_async_task t ON t.id = named.async_task_id
             WHERE t.task_code IN :codes OR t.business_key IN :keys)))"
        ),
        now = now,
        limit = limit
    );
    let rows = db.rows(bind_selector(query, selector)).await?;
    rows.iter().map(|row| Ok(unit_of(row)?)).collect()
}

async fn make_due(db: &Db, selector: &Selector) -> Result<(), WorkError> {
    let mut tx: Tx = db.begin().await?;
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_status_refresh_shard
         SET next_retry_time = NULL, update_time = :now
         WHERE task_status = 'FAILED' AND next_retry_time IS NOT NULL AND deleted = 0
           AND (id IN :ids OR (source_type = 'REVIEW_APPROVED' AND source_id IN (
             SELECT named.id FROM fi_resident_income_payment_review_callback_progress named
             JOIN fi_async_task t ON t.id = named.async_task_id
             WHERE t.task_code IN :codes OR t.business_key IN :keys)))",
        now = now,
    );
    tx.execute(bind_selector(update, selector)).await?;
    tx.commit("status_refresh.named").await?;
    Ok(())
}

fn bind_selector(query: Query, selector: &Selector) -> Query {
    let own = |code: &String| {
        let (prefix, id) = code.rsplit_once(':')?;
        id.parse::<i64>().ok().filter(|_| prefix == STATUS_REFRESH.prefix)
    };
    query
        .bind_list("ids", selector.codes.iter().filter_map(own))
        .bind_list("codes", selector.codes.iter())
        .bind_list("keys", selector.keys.iter())
}

fn unit_of(row: &Row) -> Result<Unit> {
    let id = row.int("id")?;
    let source_type = row.text("source_type")?;
    let source = Source::ALL.into_iter().find(|source| source.as_str() == source_type);
    Ok(Unit {
        id,
        version: row.int("running_attempt")?,
        group: source.unwrap_or(Source::Manual).as_str(),
        retries: row.int("retry_count")?,
        label: format!("{}:{id}", STATUS_REFRESH.prefix),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_below_both_caps_only() {
        let caps = RefreshCaps { per_source: 2, in_all: 3 };
        let running = |review: u32, manual: u32| {
            let of = |source: Source, shards| (source.as_str().to_owned(), shards);
            let all = [of(Source::ReviewApproved, review), of(Source::Manual, manual)];
            Running(all.into_iter().collect())
        };
        let table = [((0, 0), true), ((1, 0), true), ((2, 0), false), ((1, 2), false)];
        for ((review, manual), expected) in table {
            let room = running(review, manual).leaves_room("REVIEW_APPROVED", caps);
            assert_eq!(room, expected, "{review} and {manual}");
        }
        assert!(Running::default().leaves_room("PAYMENT_RESULT", caps));
        let none = RefreshCaps { per_source: 0, in_all: 3 };
        assert!(!Running::default().leaves_room("PAYMENT_RESULT", none));
    }
}
