//! One shard: its row, its lease, and one sub-batch of its scopes.

use counterfoil_db::{Read, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, OrderId, SubmitRound};
use counterfoil_task::{Held, LeaseTable, Progress, Turn, TurnEnd, Unit, WorkError};

use super::finish::{self, Finished};
use super::refresh::{NamedBy, SUB_BATCH, refresh};
use super::scope::{LinesOf, Scope, ScopeHash, hex, scopes_between};
use super::select::{RefreshCaps, Running};
use super::{BUILDER_VERSION, SHARD_LINES};

/// Leases on shards.
const SHARD: LeaseTable = LeaseTable {
    name: "fi_resident_income_payment_status_refresh_shard",
    status: "task_status",
    running: "RUNNING",
    open: &["PENDING"],
    done: "SUCCESS",
    failed: "FAILED",
    version: "running_attempt",
    error_code: "error_code",
    error_message: "error_message",
};

/// A shard's row, read under its lease.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) id: i64,
    pub(super) source_type: String,
    pub(super) source_id: i64,
    pub(super) lines: LinesOf,
    first: i64,
    last: i64,
    cursor: i64,
    processed: i64,
    scope_count: i64,
    scope_hash: String,
    builder: i64,
}

impl Shard {
    async fn read(from: &impl Read, id: i64) -> Result<Shard, WorkError> {
        let query = sql!(
            "SELECT source_type, source_id, payment_order_id, data_version, submit_round,
               start_order_bill_id, end_order_bill_id, cursor_order_bill_id,
               processed_scope_count, scope_count, scope_hash, scope_builder_version
             FROM fi_resident_income_payment_status_refresh_shard WHERE id = :id",
            id = id,
        );
        let row = from.row(query).await?.ok_or(WorkError::FencedOut)?;
        Ok(Shard {
            id,
            source_type: row.text("source_type")?,
            source_id: row.int("source_id")?,
            lines: LinesOf {
                order: OrderId(row.int("payment_order_id")?),
                data: DataVersion(row.int("data_version")?),
                round: SubmitRound(row.int("submit_round")?),
            },
            first: row.int("start_order_bill_id")?,
            last: row.int("end_order_bill_id")?,
            cursor: row.int("cursor_order_bill_id")?,
            processed: row.int("processed_scope_count")?,
            scope_count: row.int("scope_count")?,
            scope_hash: row.text("scope_hash")?,
            builder: row.int("scope_builder_version")?,
        })
    }

    /// A cursor below the range is that of a shard that has not begun.
    fn has_begun(&self) -> bool {
        self.cursor >= self.first
    }

    fn after(&self) -> i64 {
        if self.has_begun() { self.cursor } else { self.first.saturating_sub(1) }
    }
}

/// Takes the shard's lease if the caps leave room. Counting and leasing are one turn at a time
/// over all processes, or two would each take the last place.
pub(super) async fn lease(
    unit: &Unit,
    turn: &Turn<'_>,
    caps: RefreshCaps,
) -> Result<bool, WorkError> {
    let mut tx = turn.db().begin().await?;
    one_at_a_time(&mut tx).await?;
    let running = Running::read(&tx, tx.now()).await?;
    let leased = running.leaves_room(unit.group, caps) && turn.lease(&mut tx, &SHARD, unit).await?;
    if leased {
        tx.commit("status_refresh.lease").await?;
    } else {
        tx.rollback().await?;
    }
    Ok(leased)
}

async fn one_at_a_time(tx: &mut Tx) -> Result<(), WorkError> {
    let take = || sql!("SELECT id FROM status_refresh_turn WHERE turn_name = 'lease' {for_update}");
    if tx.row(take()).await?.is_none() {
        let now = tx.now();
        let ensure = sql!(
            "{insert_ignore} INTO status_refresh_turn (turn_name, create_time, update_time)
             VALUES ('lease', :now, :now) {or_ignore}",
            now = now,
        );
        tx.execute(ensure).await?;
        tx.row(take()).await?;
    }
    Ok(())
}

/// Refreshes the next scopes and moves the cursor; the last ones end the shard.
pub(super) async fn sub_batch(unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
    transact!(try_sub_batch(unit, turn))
}

async fn try_sub_batch(unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
    let mut held = turn.begin().await?;
    let shard = Shard::read(&*held, unit.id).await?;
    let (after, last) = (shard.after(), shard.last);
    let mut scopes = scopes_between(&*held, &shard.lines, after, last, SUB_BATCH + 1).await?;
    let ends = scopes.len() <= SUB_BATCH as usize;
    scopes.truncate(SUB_BATCH as usize);
    if !shard.has_begun() || ends {
        verify(&*held, &shard).await?;
    }
    refresh(&mut held, turn.worker(), NamedBy::Lines, &scopes).await?;
    let progress = moved(&shard, &scopes);
    if ends {
        return end(held, &shard, progress).await;
    }
    let progress = progress.set("task_status", "PENDING");
    held.let_go("status_refresh.sub_batch", progress, TurnEnd::Advanced).await
}

/// Cursor and counter. The counter is set, not added to: a shard that begins anew counts anew.
fn moved(shard: &Shard, scopes: &[Scope]) -> Progress {
    let before = if shard.has_begun() { shard.processed } else { 0 };
    let done = i64::try_from(scopes.len()).unwrap_or(i64::MAX);
    let cursor = scopes.last().map_or(shard.cursor, |scope| scope.id);
    Progress::none()
        .set("cursor_order_bill_id", cursor)
        .set("processed_scope_count", before.saturating_add(done))
}

/// Ends the shard together with what follows from it.
async fn end(mut held: Held<'_>, shard: &Shard, progress: Progress) -> Result<TurnEnd, WorkError> {
    let Finished { next } = finish::finish(&mut held, shard).await?;
    if let Some(next) = next {
        held.kick(&crate::kinds::STATUS_REFRESH, next).await?;
    }
    let progress = progress.set("task_status", SHARD.done);
    held.let_go("status_refresh.shard", progress, TurnEnd::Finished).await
}

/// Rebuilds the scopes of the whole range and compares them with those that were planned. Rows
/// written by hand may say no hash: nothing is compared.
async fn verify(from: &impl Read, shard: &Shard) -> Result<(), WorkError> {
    if shard.scope_hash.is_empty() {
        return Ok(());
    }
    let changed = |why: String| {
        let message = format!("shard {} of order {}: {why}", shard.id, shard.lines.order);
        Err(WorkError::failed("refresh-scope-changed", message))
    };
    if shard.builder != BUILDER_VERSION {
        return changed(format!("its scopes were built by version {}", shard.builder));
    }
    let mut hash = ScopeHash::default();
    let mut after = shard.first.saturating_sub(1);
    loop {
        let scopes = scopes_between(from, &shard.lines, after, shard.last, SHARD_LINES).await?;
        scopes.iter().for_each(|scope| hash.add(scope));
        match scopes.last() {
            Some(scope) if scopes.len() == SHARD_LINES as usize => after = scope.id,
            _ => break,
        }
    }
    let (count, hash) = hash.end();
    if i64::from(count) != shard.scope_count {
        let planned = shard.scope_count;
        return changed(format!("{planned} scopes were planned, now its lines have {count}"));
    }
    if hex(&hash) != shard.scope_hash.to_ascii_lowercase() {
        return changed("its lines have other scopes than were planned".into());
    }
    Ok(())
}
