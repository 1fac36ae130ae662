//! Settling: what ranges came to is written, ascending. Equal ones are counted; the rows of the
//! others are fetched, compared and repaired.

use counterfoil_protocol::range::{KeyRange, RangeDigest, empty_digest, key_of, spelt};

use super::advance::{Ends, Session, Stop, said};
use super::narrow::{Stand, wrong};
use super::projection::{self, Local};
use super::repair::CHUNK;
use crate::wire::{KeySpan, ManifestRow};

/// Ranges whose rows are fetched at once at most: the centre's own limit.
const MAX_RANGES: usize = 256;
/// Rows of ours read at once in a range of few rows.
const PAGE: u32 = 1000;

/// Ranges that are settled in one commit.
#[derive(Debug, Default)]
struct Batch {
    stands: Vec<Stand>,
    /// Rows of the centre's that have to be fetched, and ranges that they are in.
    rows: usize,
    ranges: usize,
}

impl Batch {
    fn push(&mut self, stand: Stand) {
        if !stand.is_equal {
            self.rows += usize::try_from(stand.remote).unwrap_or(CHUNK);
            self.ranges += 1;
        }
        self.stands.push(stand);
    }

    fn has_room_for(&self, stand: &Stand) -> bool {
        let rows = usize::try_from(stand.remote).unwrap_or(CHUNK);
        stand.is_equal || (self.rows + rows <= CHUNK && self.ranges < MAX_RANGES)
    }
}

fn is_large(stand: &Stand) -> bool {
    let remote = usize::try_from(stand.remote).unwrap_or(usize::MAX);
    !stand.is_equal && remote.max(stand.local) > CHUNK
}

impl Session<'_> {
    /// Settles ranges that follow each other.
    pub(super) async fn settle(&mut self, stands: Vec<Stand>) -> Result<(), Stop> {
        let mut batch = Batch::default();
        for stand in stands {
            if is_large(&stand) {
                self.settle_batch(std::mem::take(&mut batch)).await?;
                self.walk(&stand).await?;
                continue;
            }
            if !batch.has_room_for(&stand) {
                self.settle_batch(std::mem::take(&mut batch)).await?;
            }
            batch.push(stand);
        }
        self.settle_batch(batch).await
    }

    /// Moves the cursor to the greatest key of a range that is settled.
    fn settled(&mut self, range: KeyRange) {
        self.work.cursor = Some(spelt(range.last()));
        if range.is_last() {
            self.work.manifest_completed = true;
            self.work.local_completed = true;
        }
    }

    async fn settle_batch(&mut self, batch: Batch) -> Result<(), Stop> {
        let Some(end) = batch.stands.last().map(|stand| stand.range) else { return Ok(()) };
        let differing: Vec<&Stand> = batch.stands.iter().filter(|one| !one.is_equal).collect();
        let remote = self.fetch(&differing).await?;
        let local = self.ours(&differing).await?;
        let equal: i64 = batch.stands.iter().filter(|one| one.is_equal).map(|one| one.remote).sum();
        self.work.counts.scanned += equal;
        self.work.counts.equal += equal;
        self.work.remote_rows += equal;
        let differences = self.merge(remote.into_iter(), local.into_iter());
        self.repair_all(differences).await?;
        self.settled(end);
        self.rounds += 1;
        self.commit("work.ranges").await?;
        self.sign_of_life().await?;
        if self.turn.is_stopping() { Err(Stop::Stopping) } else { Ok(()) }
    }

    /// The centre's rows in some ranges, which must be those that it digested.
    async fn fetch(&mut self, stands: &[&Stand]) -> Result<Vec<ManifestRow>, Stop> {
        let task = self.work.task_id.clone();
        let none = empty_digest(&task);
        if stands.iter().any(|stand| stand.remote == 0 && stand.digest != none) {
            return Err(wrong("a range without rows has a digest of some"));
        }
        let full = || stands.iter().filter(|stand| stand.remote > 0);
        let spans: Vec<KeySpan> = full()
            .map(|stand| KeySpan { from: spelt(stand.range.from()), to: spelt(stand.range.to()) })
            .collect();
        if spans.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now().await?;
        let word = said(self.centre.rows(&task, &spans, now).await)?;
        if word.task_id != task {
            return Err(wrong("the rows are another task's"));
        }
        self.is_whole(&word.task_state, word.total_rows)?;
        let mut rows = word.rows.iter().peekable();
        for stand in full() {
            let mut digest = RangeDigest::new(&task);
            let is_in = |row: &&ManifestRow| {
                key_of(&row.answer_uuid).is_some_and(|key| stand.range.holds(key))
            };
            while let Some(row) = rows.next_if(is_in) {
                if row.form_uuid != self.work.coordinate.form {
                    return Err(wrong("a row is another form's"));
                }
                digest.row(&row.answer_uuid, row.revision, &row.content_hash, row.is_deleted);
            }
            if digest.count() != stand.remote || digest.finish() != stand.digest {
                return Err(wrong("a range's rows are not those that were digested"));
            }
        }
        if rows.next().is_some() {
            return Err(wrong("a row is in no range that was asked for"));
        }
        Ok(word.rows)
    }

    /// Our rows in some ranges as they are now.
    async fn ours(&self, stands: &[&Stand]) -> Result<Vec<Local>, Stop> {
        let at = &self.work.coordinate;
        let mut rows = Vec::new();
        for stand in stands {
            let last = spelt(stand.range.last());
            let mut cursor = below(stand.range).unwrap_or_default();
            loop {
                let page = projection::page_to(self.db, at, &cursor, &last, PAGE).await?;
                let is_end = page.len() < PAGE as usize;
                rows.extend(page);
                match rows.last() {
                    Some(row) if !is_end => cursor.clone_from(&row.uuid),
                    _ => break,
                }
            }
        }
        Ok(rows)
    }

    /// A range of many rows, page by page; each page is a commit of its own.
    async fn walk(&mut self, stand: &Stand) -> Result<(), Stop> {
        let before = self.work.remote_rows;
        self.work.cursor = below(stand.range);
        let mut ends = Ends::default();
        while !ends.are_reached() {
            if self.turn.is_stopping() {
                return Err(Stop::Stopping);
            }
            self.round(Some(stand.range), &mut ends).await?;
            if ends.are_reached() {
                if self.work.remote_rows - before != stand.remote {
                    return Err(wrong("a range has another number of rows than was digested"));
                }
                self.settled(stand.range);
            }
            self.commit("work.round").await?;
            self.sign_of_life().await?;
        }
        Ok(())
    }
}

/// The greatest key below a range.
fn below(range: KeyRange) -> Option<String> {
    range.from().checked_sub(1).map(spelt)
}
