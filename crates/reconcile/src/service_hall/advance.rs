//! A task at work: round by round both sets from one cursor, until both are read to their ends.

use chrono::TimeDelta;
use counterfoil_db::{Db, Error as DbError, Instant};
use counterfoil_protocol::range::{KeyRange, spelt};
use counterfoil_task::{Lease, Turn};

use super::HallSettings;
use super::centre::{Answer, Centre};
use super::compare::{Finding, compare};
use super::projection::{self, Local};
use super::work::{Extra, Work};
use crate::key::is_answer_uuid;
use crate::wire::{ManifestPage, ManifestRow, Report, is_final};

/// How old the last look at the grant may be when something is repaired.
const FRESH_GRANT: TimeDelta = TimeDelta::seconds(30);

/// Why work stopped before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Repairs may not go on: keep what is, move no cursor, end PARTIAL.
    Deferred,
    /// The centre has ended the task: its word is fetched by reporting.
    CentreEnded,
    /// It cannot go on by itself; a greater attempt takes it up.
    Stalled { code: &'static str, message: String },
    /// Try again later.
    Later(String),
    /// Another owns the task by now.
    Fenced,
    /// The process is stopping.
    Stopping,
    /// The database failed.
    Db(DbError),
}

impl From<DbError> for Stop {
    fn from(error: DbError) -> Stop {
        Stop::Db(error)
    }
}

/// Work on one task under its lease.
pub(super) struct Session<'a> {
    pub(super) db: &'a Db,
    pub(super) settings: &'a HallSettings,
    pub(super) centre: &'a dyn Centre,
    pub(super) turn: &'a Turn<'a>,
    pub(super) lease: Lease,
    pub(super) work: Work,
    /// What of the work was committed last.
    pub(super) saved: Work,
    pub(super) grant_seen: Option<Instant>,
    pub(super) reported_at: Instant,
    pub(super) rounds: u32,
    /// When the lease was renewed last.
    pub(super) renewed_at: Instant,
    /// Whether ranges are compared before rows are.
    pub(super) narrows: bool,
}

/// Which sides a walk has read to the end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) manifest: bool,
    pub(super) local: bool,
}

impl Ends {
    pub(super) fn are_reached(self) -> bool {
        self.manifest && self.local
    }
}

/// A key at which the two sets differ, and a repair may help.
pub(super) struct Difference {
    pub(super) uuid: String,
    pub(super) finding: Finding,
    pub(super) local: Option<Local>,
}

impl Session<'_> {
    pub(super) async fn now(&self) -> Result<Instant, Stop> {
        Ok(self.db.now().await?)
    }

    /// Reads both sets to their ends, and retires what may be retired.
    pub(super) async fn run(&mut self) -> Result<(), Stop> {
        while !(self.work.manifest_completed && self.work.local_completed) {
            if self.turn.is_stopping() {
                return Err(Stop::Stopping);
            }
            if self.narrows {
                self.stretch().await?;
                continue;
            }
            let Work { manifest_completed: manifest, local_completed: local, .. } = self.work;
            let mut ends = Ends { manifest, local };
            self.round(None, &mut ends).await?;
            self.work.manifest_completed = ends.manifest;
            self.work.local_completed = ends.local;
            self.commit("work.round").await?;
            self.sign_of_life().await?;
        }
        self.retire_extras().await
    }

    /// Commits what the work has come to.
    pub(super) async fn commit(&mut self, point: &'static str) -> Result<(), Stop> {
        let mut tx = self.db.begin().await?;
        if !self.work.save(&mut tx, &self.lease).await? {
            return Err(Stop::Fenced);
        }
        let now = tx.now();
        tx.commit(point).await?;
        self.renewed_at = now;
        self.saved = self.work.clone();
        Ok(())
    }

    /// One page of each side from one cursor, in a range or in all of both sets; the smaller of the
    /// two last keys bounds the round.
    pub(super) async fn round(
        &mut self,
        within: Option<KeyRange>,
        ends: &mut Ends,
    ) -> Result<(), Stop> {
        let size = self.settings.page_size;
        let end = within.map(|range| spelt(range.last())).unwrap_or_default();
        let is_within = |key: &str| end.is_empty() || key <= end.as_str();
        let (mut remote, mut remote_ends) = (Vec::new(), true);
        if !ends.manifest {
            let page = self.manifest_page(size).await?;
            (remote, remote_ends) = (page.rows, page.completed);
            remote_ends |= !remote.last().is_none_or(|row| is_within(&row.answer_uuid));
            remote.retain(|row| is_within(&row.answer_uuid));
        }
        let (mut local, mut local_ends) = (Vec::new(), true);
        if !ends.local {
            let (at, cursor) = (&self.work.coordinate, self.work.cursor.clone());
            let cursor = cursor.unwrap_or_default();
            local = match end.as_str() {
                "" => projection::page(self.db, at, &cursor, size).await?,
                end => projection::page_to(self.db, at, &cursor, end, size).await?,
            };
            local_ends = local.len() < size as usize;
        }
        let last_remote = remote.last().map(|row| row.answer_uuid.clone());
        let last_local = local.last().map(|row| row.uuid.clone());
        let open = [
            last_remote.clone().filter(|_| !remote_ends),
            last_local.clone().filter(|_| !local_ends),
        ];
        let bound = open.into_iter().flatten().min();
        let is_in = |key: &str| bound.as_deref().is_none_or(|bound| key <= bound);
        let is_read = |last: &Option<String>| last.as_deref().is_none_or(is_in);
        let (remote_read, local_read) = (is_read(&last_remote), is_read(&last_local));
        let differences = self.merge(
            remote.into_iter().filter(|row| is_in(&row.answer_uuid)),
            local.into_iter().filter(|row| is_in(&row.uuid)),
        );
        self.repair_all(differences).await?;
        *ends = Ends { manifest: remote_ends && remote_read, local: local_ends && local_read };
        if let Some(reached) = bound.or_else(|| last_remote.max(last_local)) {
            self.work.cursor = Some(reached);
        }
        self.rounds += 1;
        Ok(())
    }

    async fn manifest_page(&mut self, size: u32) -> Result<ManifestPage, Stop> {
        let (task, cursor) = (self.work.task_id.clone(), self.work.cursor.clone());
        let now = self.now().await?;
        let page = said(self.centre.manifest(&task, cursor.as_deref(), size, now).await)?;
        if page.task_state == "CANCELLED" {
            return Err(Stop::CentreEnded);
        }
        let stalled =
            |message: &str| Stop::Stalled { code: "MANIFEST_STALLED", message: message.to_owned() };
        if page.rows.is_empty() && !page.completed {
            return Err(stalled("an empty page of the manifest that is not its end"));
        }
        let at = &self.work.coordinate;
        let mut last = cursor.unwrap_or_default();
        for row in &page.rows {
            let is_next = is_answer_uuid(&row.answer_uuid) && row.answer_uuid > last;
            if !is_next || row.form_uuid != at.form || !at.sees(&row.answer_uuid) {
                return Err(stalled("the manifest's rows are not ascending, or another task's"));
            }
            last.clone_from(&row.answer_uuid);
        }
        if page.task_id != task {
            return Err(stalled("the manifest is another task's"));
        }
        Ok(page)
    }

    /// Compares key by key; counts every key once.
    pub(super) fn merge(
        &mut self,
        remote: impl Iterator<Item = ManifestRow>,
        local: impl Iterator<Item = Local>,
    ) -> Vec<Difference> {
        let (mut remote, mut local) = (remote.peekable(), local.peekable());
        let mut differences = Vec::new();
        loop {
            let order = match (remote.peek(), local.peek()) {
                (None, None) => return differences,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(remote), Some(local)) => remote.answer_uuid.cmp(&local.uuid),
            };
            let theirs = remote.next_if(|_| order.is_le());
            let ours = local.next_if(|_| order.is_ge());
            differences.extend(self.find(theirs, ours));
        }
    }

    /// Counts one key's finding; answers it where a repair may help.
    fn find(&mut self, theirs: Option<ManifestRow>, ours: Option<Local>) -> Option<Difference> {
        let finding = compare(theirs.as_ref().map(Into::into), ours.as_ref());
        let uuid = match (&theirs, &ours) {
            (Some(row), _) => row.answer_uuid.clone(),
            (None, Some(row)) => row.uuid.clone(),
            (None, None) => return None,
        };
        let most = self.settings.max_error_items;
        self.work.remote_rows += i64::from(theirs.is_some());
        let counts = &mut self.work.counts;
        counts.scanned += 1;
        match finding {
            Finding::Equal => {
                counts.equal += 1;
                return None;
            }
            Finding::RevisionZero => {
                counts.revision_zero += 1;
                self.work.stands(most, finding.code(), &uuid, Some(0));
                return None;
            }
            Finding::Extra => {
                counts.extra += 1;
                if !is_answer_uuid(&uuid) {
                    // The centre can have no answer of that name, and so no proof of its absence.
                    let revision = ours.map(|row| row.revision);
                    self.work.stands(most, finding.code(), &uuid, revision);
                    return None;
                }
                // One more than may be is remembered: then none is retired.
                if self.work.extras.len() <= self.settings.max_pending_extras {
                    self.work.extras.extend(ours.map(extra));
                }
                return None;
            }
            Finding::Missing => counts.missing += 1,
            Finding::LocalAhead => counts.local_ahead += 1,
            Finding::Tombstone => counts.tombstone += 1,
            Finding::Stale => counts.stale += 1,
            Finding::HashConflict => {
                counts.hash_conflict += 1;
                let revision = ours.as_ref().map(|row| row.revision);
                self.work.note(most, finding.code(), &uuid, revision);
            }
        }
        Some(Difference { uuid, finding, local: ours })
    }

    /// Proves that the grant is as it was, not longer than 30 s ago.
    pub(super) async fn ensure_grant(&mut self) -> Result<(), Stop> {
        let now = self.now().await?;
        let is_fresh = self.grant_seen.is_some_and(|seen| now - seen <= FRESH_GRANT);
        if is_fresh {
            return Ok(());
        }
        match self.centre.grant(&self.work.task_id, now).await {
            Answer::Said(grant)
                if grant.enabled
                    && grant.subscribe
                    && grant.read
                    && grant.grant_epoch == self.work.grant_epoch =>
            {
                self.grant_seen = Some(now);
                Ok(())
            }
            Answer::Refused { code, .. } if is_end(&code) => Err(Stop::CentreEnded),
            Answer::Said(_) | Answer::Refused { .. } | Answer::Unknown { .. } => {
                Err(Stop::Deferred)
            }
        }
    }

    /// Keeps the lease while much is read and nothing is written.
    pub(super) async fn stay_alive(&mut self) -> Result<(), Stop> {
        if self.now().await? - self.renewed_at >= self.settings.lease / 3 {
            self.commit("work.alive").await?;
            self.sign_of_life().await?;
        }
        Ok(())
    }

    /// Tells the centre that work goes on: every so many rounds, and every third of a lease.
    pub(super) async fn sign_of_life(&mut self) -> Result<(), Stop> {
        let now = self.now().await?;
        let is_long = now - self.reported_at >= self.settings.lease / 3;
        if self.rounds < self.settings.progress_report_rounds && !is_long {
            return Ok(());
        }
        self.rounds = 0;
        self.reported_at = now;
        let report = self.report_of("RUNNING");
        if let Answer::Said(ack) = self.centre.report(&report, now).await {
            let is_ours = ack.task_id == report.task_id && ack.report_attempt == report.attempt;
            if is_ours && ack.result_state.as_deref().is_some_and(is_final) {
                return Err(Stop::CentreEnded);
            }
        }
        Ok(())
    }

    pub(super) fn report_of(&self, state: &str) -> Report {
        let work = &self.work;
        Report {
            task_id: work.task_id.clone(),
            attempt: work.attempt,
            state: state.to_owned(),
            manifest_complete: work.manifest_completed,
            local_completed: work.local_completed,
            counts: work.counts,
            unresolved: work.unresolved,
            errors: work.errors.clone(),
            consumer_app_key: work.coordinate.consumer.clone(),
        }
    }
}

fn extra(local: Local) -> Extra {
    Extra {
        answer_uuid: local.uuid,
        revision: local.revision,
        stored_hash: local.stored_hash,
        is_deleted: local.is_deleted,
        version: local.version,
        created: local.created,
    }
}

/// Codes by which the centre says that the task goes no further.
pub(super) fn is_end(code: &str) -> bool {
    matches!(
        code,
        "TASK_CANCELLED"
            | "TASK_TERMINAL"
            | "GRANT_REVOKED"
            | "GRANT_EPOCH_CHANGED"
            | "SCOPE_MISMATCH"
    )
}

/// The centre's own word, or why to stop.
pub(super) fn said<T>(answer: Answer<T>) -> Result<T, Stop> {
    match answer {
        Answer::Said(word) => Ok(word),
        Answer::Refused { code, .. } if is_end(&code) => Err(Stop::CentreEnded),
        Answer::Refused { code, message } => Err(Stop::Later(format!("{code}: {message}"))),
        Answer::Unknown { message } => Err(Stop::Later(message)),
    }
}
