//! Handlers whose work is rows of a table of their own: one batch a turn, then the owner lets go,
//! so that many rows advance side by side.
//!
//! A turn leases its row, commits one batch together with cursor and counters, and gives the lease
//! up. Trouble rolls the batch back and marks the row FAILED with the time of its next try; there
//! is no limit on tries. Source: task-engine.md "Long work" and "Fairness"; payment-flow.md, S08.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use counterfoil_db::{Db, Error as DbError, Instant, Tx, transact};
use counterfoil_protocol::TaskCode;
use futures_util::FutureExt;

use crate::accept::{Acceptance, Seed, accept_or_reuse};
use crate::engine::Engine;
use crate::kick::Kicker;
use crate::lease::{Lease, LeaseTable, LeaseTerms, LeaseUnavailable, Progress};
use crate::parameter::{RoundParameter, Selector};
use crate::round::{RoundError, Summary, TaskTrouble, lost};
use crate::run::cut;
use crate::shutdown::Shutdown;
use crate::{Kind, WorkError};

/// A row that may take a turn, as it stood when it was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its row.
    pub id: i64,
    /// `running_attempt`: the version that leasing raises.
    pub version: i64,
    /// Which of the handler's groups it stands in, such as a phase: each gets its share of a round.
    pub group: &'static str,
    /// `retry_count`.
    pub retries: i64,
    /// What a summary calls it: the code of its task, if it has one.
    pub label: String,
}

/// The turns that a round has taken so far, by group.
#[derive(Debug, Clone, Default)]
pub struct Taken(HashMap<&'static str, u32>);

impl Taken {
    /// How many turns a group has had in this round.
    pub fn of(&self, group: &'static str) -> u32 {
        self.0.get(group).copied().unwrap_or(0)
    }

    /// The fair choice: the group that had the fewest turns in this round, and among equals the
    /// row that waits longest. However long one group's backlog is, each later one gets its share.
    pub fn fairest<W: Ord + Copy>(&self, oldest: Vec<(W, Unit)>) -> Option<Unit> {
        let fewest = |(waits, unit): &(W, Unit)| (self.of(unit.group), *waits, unit.id);
        oldest.into_iter().min_by_key(fewest).map(|(_, unit)| unit)
    }

    fn note(&mut self, group: &'static str) {
        *self.0.entry(group).or_default() += 1;
    }
}

/// How a turn ended, as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// A batch was committed; the row is ready for another turn.
    Advanced,
    /// The row's work by this handler is over.
    Finished,
    /// The row was given up, for good: the order moved on.
    GivenUp,
    /// Another was faster, or there was nothing to do.
    Skipped,
}

/// A handler over rows of a table of its own.
#[async_trait::async_trait]
pub trait Turns: Send + Sync + 'static {
    /// Its names and limits. `prefix` names its rows in kicks: `prefix:id`.
    fn kind(&self) -> &'static Kind;

    /// The row whose turn it is, or none. Each turn selects afresh.
    async fn next(&self, db: &Db, now: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError>;

    /// One row, if it is eligible now: what a kick asks for.
    async fn eligible(&self, db: &Db, now: Instant, id: i64) -> Result<Option<Unit>, WorkError>;

    /// The rows that a person named by their tasks, made eligible again, by id.
    async fn named(&self, db: &Db, selector: &Selector, limit: u32)
    -> Result<Vec<Unit>, WorkError>;

    /// Whether a failure with this code leaves the row to a person: no next try is promised.
    fn is_left_to_a_person(&self, _code: &str) -> bool {
        false
    }

    /// Leases the row and does one batch.
    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError>;
}

/// 30 s, doubling to 30 min, after so many earlier failures.
pub fn retry_after(earlier_failures: i64) -> TimeDelta {
    let doublings = u32::try_from(earlier_failures.clamp(0, 6)).unwrap_or(6);
    TimeDelta::seconds((30 << doublings).min(1800))
}

/// One turn at work.
#[derive(Debug)]
pub struct Turn<'a> {
    db: &'a Db,
    kind: &'static Kind,
    worker: &'a str,
    kicker: &'a Kicker,
    terms: LeaseTerms,
    shutdown: &'a Shutdown,
    claimed: AtomicBool,
    lease: Mutex<Option<Lease>>,
}

impl Turn<'_> {
    /// Who this process is, in leases.
    pub fn worker(&self) -> &str {
        self.worker
    }

    /// Whether the process is stopping: a long turn lets go at its next commit.
    pub fn is_stopping(&self) -> bool {
        self.shutdown.is_asked()
    }

    /// Counts a claim that the turn made by itself, under other terms than the engine's. Its
    /// failures it writes by itself too.
    pub fn count_claim(&self) {
        self.claimed.store(true, Ordering::Relaxed);
    }

    /// The database, for plain reads outside any transaction.
    pub fn db(&self) -> &Db {
        self.db
    }

    /// Where kicks go, for a turn that needs no lease.
    pub fn kicker(&self) -> &Kicker {
        self.kicker
    }

    /// Takes the row's lease in `tx`. False = another was faster.
    ///
    /// # Errors
    /// The database's.
    pub async fn lease(
        &self,
        tx: &mut Tx,
        table: &'static LeaseTable,
        unit: &Unit,
    ) -> Result<bool, WorkError> {
        let (id, version) = (unit.id, unit.version);
        match Lease::acquire(tx, table, id, version, self.worker, self.terms).await? {
            Ok(lease) => {
                *self.remembered() = Some(lease);
                Ok(true)
            }
            Err(LeaseUnavailable::Held { .. } | LeaseUnavailable::Moved) => Ok(false),
        }
    }

    /// Starts the batch's transaction: locks the leased row and proves that the lease is ours.
    ///
    /// # Errors
    /// [`WorkError::FencedOut`] when it is not: stop, nothing may be written.
    pub async fn begin(&self) -> Result<Held<'_>, WorkError> {
        let tx = self.db.begin().await?;
        self.hold(tx).await
    }

    /// Proves the lease in a transaction that has locked something else before.
    ///
    /// # Errors
    /// [`WorkError::FencedOut`].
    pub async fn hold(&self, mut tx: Tx) -> Result<Held<'_>, WorkError> {
        let lease = self.remembered().clone();
        let Some(lease) = lease else {
            return Err(WorkError::FencedOut);
        };
        if !lease.advance(&mut tx, Progress::none()).await? {
            tx.rollback().await?;
            return Err(WorkError::FencedOut);
        }
        Ok(Held { tx, lease, turn: self })
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction that has proved its lease and holds the row's lock.
#[derive(Debug)]
pub struct Held<'t> {
    tx: Tx,
    lease: Lease,
    turn: &'t Turn<'t>,
}

impl Deref for Held<'_> {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}

impl Held<'_> {
    /// Accepts or reuses a task in this transaction.
    pub async fn accept(&mut self, seed: &Seed) -> Result<Acceptance, WorkError> {
        Ok(accept_or_reuse(&mut self.tx, seed, self.turn.kicker).await?)
    }

    /// Asks for a turn of a handler's row once this has committed.
    pub async fn kick(&mut self, kind: &'static Kind, id: i64) -> Result<(), WorkError> {
        let code = TaskCode::stored(format!("{}:{id}", kind.prefix));
        self.turn.kicker.kick_after_commit(&mut self.tx, kind, &code).await?;
        Ok(())
    }

    /// Commits the batch with its cursor and counters, and gives the lease up. `progress` also
    /// says what status the row is left in; an earlier failure is forgotten.
    pub async fn let_go(
        mut self,
        point: &'static str,
        progress: Progress,
        end: TurnEnd,
    ) -> Result<TurnEnd, WorkError> {
        let table = self.lease.table();
        let progress = progress
            .set("retry_count", 0)
            .set("next_retry_time", None::<Instant>)
            .set(table.error_code, None::<&str>)
            .set(table.error_message, None::<&str>);
        if !self.lease.let_go(&mut self.tx, progress).await? {
            self.tx.rollback().await?;
            return Err(WorkError::FencedOut);
        }
        if end == TurnEnd::Advanced {
            let id = self.lease.id();
            self.kick(self.turn.kind, id).await?;
        }
        self.tx.commit(point).await?;
        Ok(end)
    }

    /// Commits something on the way; the lease stays, renewed.
    pub async fn commit(self, point: &'static str) -> Result<(), WorkError> {
        Ok(self.tx.commit(point).await?)
    }

    /// Gives up what was done in this transaction; the lease stays.
    pub async fn rollback(self) -> Result<(), WorkError> {
        Ok(self.tx.rollback().await?)
    }
}

impl Engine {
    /// A round of turns: `maxTaskCount` counts turns, and so does the summary.
    pub(crate) async fn round_of_turns(
        &self,
        turns: &dyn Turns,
        parameter: &RoundParameter,
    ) -> Result<Summary, RoundError> {
        let kind = turns.kind();
        let mut summary = Summary { handler: kind.handler.to_owned(), ..Summary::default() };
        let mut touched = Vec::new();
        let ended = match &parameter.selector {
            None => self.scan_turns(turns, parameter, &mut summary, &mut touched).await,
            Some(named) => {
                let limit = parameter.max_tasks;
                self.named_turns(turns, named, limit, &mut summary, &mut touched).await
            }
        };
        if let Err(error) = ended {
            return Err(RoundError::Lost { done: Box::new(summary), source: lost(error) });
        }
        self.check_touched(kind, &touched).await;
        Ok(summary)
    }

    /// One turn of one row, if it is eligible: what a kick does.
    pub(crate) async fn one_turn(
        &self,
        turns: &dyn Turns,
        code: &TaskCode,
    ) -> Result<Summary, RoundError> {
        let handler = turns.kind().handler;
        let mut summary = Summary { handler: handler.to_owned(), ..Summary::default() };
        let id = code.as_str().rsplit(':').next().and_then(|id| id.parse().ok());
        let Some(id) = id else { return Ok(summary) };
        let ran = async {
            let now = self.db().now().await?;
            if let Some(unit) = turns.eligible(self.db(), now, id).await? {
                self.take_turn(turns, &unit, &mut summary).await?;
            }
            Ok::<(), WorkError>(())
        };
        match ran.await {
            Ok(()) => Ok(summary),
            Err(error) => Err(RoundError::Lost { done: Box::new(summary), source: lost(error) }),
        }
    }

    async fn scan_turns(
        &self,
        turns: &dyn Turns,
        parameter: &RoundParameter,
        summary: &mut Summary,
        touched: &mut Vec<i64>,
    ) -> Result<(), WorkError> {
        let mut taken = Taken::default();
        for _ in 0..parameter.max_tasks {
            if self.shutdown().is_asked() {
                break;
            }
            let now = self.db().now().await?;
            let Some(unit) = turns.next(self.db(), now, &taken).await? else {
                break;
            };
            taken.note(unit.group);
            touch(touched, unit.id);
            self.take_turn(turns, &unit, summary).await?;
        }
        Ok(())
    }

    /// The rows that a person named take turns one after the other until each is done or in
    /// trouble, or the round's number of turns is used up.
    async fn named_turns(
        &self,
        turns: &dyn Turns,
        named: &Selector,
        limit: u32,
        summary: &mut Summary,
        touched: &mut Vec<i64>,
    ) -> Result<(), WorkError> {
        let mut waiting: std::collections::VecDeque<Unit> =
            turns.named(self.db(), named, limit).await?.into();
        for _ in 0..limit {
            let Some(unit) = waiting.pop_front() else { break };
            if self.shutdown().is_asked() {
                break;
            }
            touch(touched, unit.id);
            if self.take_turn(turns, &unit, summary).await? == Some(TurnEnd::Advanced) {
                let now = self.db().now().await?;
                waiting.extend(turns.eligible(self.db(), now, unit.id).await?);
            }
        }
        Ok(())
    }

    /// One turn. An error means that the database is lost; every other trouble is in the summary.
    async fn take_turn(
        &self,
        turns: &dyn Turns,
        unit: &Unit,
        summary: &mut Summary,
    ) -> Result<Option<TurnEnd>, WorkError> {
        summary.selected += 1;
        let turn = Turn {
            db: self.db(),
            kind: turns.kind(),
            worker: self.worker(),
            kicker: self.kicker(),
            terms: LeaseTerms { lasts: self.settings().lease_for },
            shutdown: self.shutdown(),
            claimed: AtomicBool::new(false),
            lease: Mutex::new(None),
        };
        let ran = AssertUnwindSafe(turns.turn(unit, &turn)).catch_unwind().await;
        let leased = turn.remembered().is_some() || turn.claimed.load(Ordering::Relaxed);
        summary.claimed += u32::from(leased);
        let Ok(outcome) = ran else {
            // As if its process had ended: the lease expires, and the row is taken over.
            summary.failed += 1;
            summary.errors.push(trouble(unit, "its work panicked; the lease has to expire".into()));
            tracing::error!(unit = %unit.label, "work panicked");
            return Ok(None);
        };
        match outcome {
            Ok(end) => {
                match end {
                    TurnEnd::Advanced | TurnEnd::Finished => summary.succeeded += 1,
                    TurnEnd::GivenUp => summary.cancelled += 1,
                    TurnEnd::Skipped => summary.skipped += 1,
                }
                Ok(Some(end))
            }
            Err(WorkError::FencedOut | WorkError::Stopping | WorkError::Busy { .. }) => {
                summary.skipped += 1;
                Ok(None)
            }
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                summary.failed += 1;
                summary.errors.push(trouble(unit, cut(&error.full_message())));
                tracing::warn!(unit = %unit.label, code = error.code(), %error, "a turn failed");
                let is_left = turns.is_left_to_a_person(error.code());
                match transact!(write_failure(&turn, unit, &error, is_left)) {
                    Err(unwritten) if unwritten.is_lost() => Err(unwritten.into()),
                    Err(unwritten) => {
                        let message = format!("its end could not be written: {unwritten}");
                        summary.errors.push(trouble(unit, message));
                        Ok(None)
                    }
                    Ok(()) => Ok(None),
                }
            }
        }
    }
}

fn touch(touched: &mut Vec<i64>, id: i64) {
    if !touched.contains(&id) {
        touched.push(id);
    }
}

fn trouble(unit: &Unit, message: String) -> TaskTrouble {
    TaskTrouble { task_code: unit.label.clone(), message }
}

/// FAILED with its reason and the time of the next try, if the lease was ours.
async fn write_failure(
    turn: &Turn<'_>,
    unit: &Unit,
    error: &WorkError,
    is_left: bool,
) -> Result<(), DbError> {
    let lease = turn.remembered().clone();
    let Some(lease) = lease else { return Ok(()) };
    let mut tx = turn.db.begin().await?;
    let next = (!is_left).then(|| tx.now() + retry_after(unit.retries));
    let progress =
        Progress::none().set("retry_count", unit.retries + 1).set("next_retry_time", next);
    let message = cut(&error.full_message());
    if lease.fail_with(&mut tx, error.code(), &message, progress).await? {
        tx.commit("turn.failure").await
    } else {
        tx.rollback().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_wait_thirty_seconds_doubling_to_half_an_hour() {
        let seconds: Vec<i64> = (0..9).map(|n| retry_after(n).num_seconds()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
    }

    #[test]
    fn every_group_gets_its_share_and_the_oldest_goes_first_among_equals() {
        let unit = |id, group| Unit { id, version: 0, group, retries: 0, label: String::new() };
        let offered = || vec![(9, unit(1, "late")), (1, unit(2, "early")), (5, unit(3, "middle"))];
        let mut taken = Taken::default();
        let mut order = Vec::new();
        for _ in 0..6 {
            let Some(next) = taken.fairest(offered()) else { break };
            taken.note(next.group);
            order.push(next.group);
        }
        assert_eq!(order, ["early", "middle", "late", "early", "middle", "late"]);
    }
}
