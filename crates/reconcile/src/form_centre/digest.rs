//! Digests over ranges of a task's manifest, and the rows of ranges: what a hall needs to find the
//! few rows that differ without reading all.

use counterfoil_db::{Db, Query, Read, sql};
use counterfoil_protocol::range::{KeyRange, RangeDigest, RangeFault, spelt};

use super::authorise::authorise;
use super::manifest::{MAX_PAGE, is_complete, stored};
use super::task::Task;
use crate::refusal::{Code, Refusal};
use crate::wire::{AskedRange, DigestedRange, Digests, KeySpan, ManifestRow, RangeRows};

/// Digests of one call at most, and ranges.
pub const MAX_PARTS: usize = 256;
/// Manifest rows read at once.
const BATCH: i64 = 2000;

/// The digests of the parts of some ranges, for the task's target.
///
/// # Errors
/// As [`authorise`]; RANGE_INVALID, MANIFEST_INCOMPLETE.
pub async fn digests(
    db: &Db,
    task_id: &str,
    caller: &str,
    asked: &[AskedRange],
) -> Result<Digests, Refusal> {
    let (task, _) = authorise(db, task_id, caller).await?;
    let spans = asked.iter().map(|range| (range.from.as_str(), range.to.as_str()));
    let whole = read_ranges(spans)?;
    let parts = parts_of(asked)?;
    is_complete(&task)?;
    let mut pieces = Vec::with_capacity(MAX_PARTS);
    for (range, parts) in whole.into_iter().zip(parts) {
        pieces.extend(range.split(parts));
    }
    let mut ranges = Vec::with_capacity(pieces.len());
    let mut rest = pieces.as_slice();
    while let Some(first) = rest.first() {
        // Pieces without a gap between them are read in one go.
        let gap = rest.windows(2).position(|two| two[0].to() != two[1].from());
        let (run, others) = rest.split_at(gap.map_or(rest.len(), |at| at + 1));
        digest_run(db, &task, first.from(), run, &mut ranges).await?;
        rest = others;
    }
    let Task { task_id, total_rows, state: task_state, .. } = task;
    Ok(Digests { task_id, ranges, total_rows, task_state })
}

/// The manifest's rows in some ranges, for the task's target.
///
/// # Errors
/// As [`authorise`]; RANGE_INVALID, MANIFEST_INCOMPLETE, RESOURCE_LIMIT for more rows than a page
/// of the manifest may have.
pub async fn rows(
    db: &Db,
    task_id: &str,
    caller: &str,
    asked: &[KeySpan],
) -> Result<RangeRows, Refusal> {
    let (task, _) = authorise(db, task_id, caller).await?;
    let ranges = read_ranges(asked.iter().map(|span| (span.from.as_str(), span.to.as_str())))?;
    is_complete(&task)?;
    let mut rows: Vec<ManifestRow> = Vec::new();
    for range in ranges {
        let most = i64::from(MAX_PAGE) + 1;
        let found = db.rows(after(&task, below(range.from()), range.last(), most)).await?;
        for row in &found {
            rows.push(stored(row)?);
        }
        if rows.len() > MAX_PAGE as usize {
            let message = format!("the ranges have more than {MAX_PAGE} rows");
            return Err(Refusal::of(Code::ResourceLimit, message));
        }
    }
    let Task { task_id, total_rows, state: task_state, .. } = task;
    Ok(RangeRows { task_id, rows, total_rows, task_state })
}

fn wrong(at: usize, what: impl std::fmt::Display) -> Refusal {
    Refusal::of(Code::RangeInvalid, format!("ranges[{at}].{what}"))
}

/// The ranges that are asked for: each one, ascending, and none over another. So one call reads no
/// row of the manifest twice.
fn read_ranges<'a>(
    asked: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<KeyRange>, Refusal> {
    let count = asked.len();
    if !(1..=MAX_PARTS).contains(&count) {
        let message = format!("ranges: ask for 1 to {MAX_PARTS} ranges, not {count}");
        return Err(Refusal::of(Code::RangeInvalid, message));
    }
    let mut ranges: Vec<KeyRange> = Vec::with_capacity(count);
    for (at, (from, to)) in asked.enumerate() {
        let range = KeyRange::parse(from, to).map_err(|fault: RangeFault| wrong(at, fault))?;
        if ranges.last().is_some_and(|before| !range.is_after(*before)) {
            return Err(wrong(at, "from: ranges ascend, and none begins inside another"));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

fn parts_of(asked: &[AskedRange]) -> Result<Vec<u32>, Refusal> {
    let mut all = 0_usize;
    let one = |(at, range): (usize, &AskedRange)| {
        all = all.saturating_add(range.parts as usize);
        if range.parts == 0 {
            return Err(wrong(at, "parts: at least 1"));
        }
        if all > MAX_PARTS {
            return Err(wrong(at, format!("parts: at most {MAX_PARTS} in all")));
        }
        Ok(range.parts)
    };
    asked.iter().enumerate().map(one).collect()
}

/// The greatest key below one, as a cursor; empty below the least.
fn below(key: u128) -> String {
    key.checked_sub(1).map(spelt).unwrap_or_default()
}

fn after(task: &Task, cursor: String, last: u128, most: i64) -> Query {
    sql!(
        "SELECT answer_uuid, revision, content_hash, is_deleted, form_uuid, form_version, seq_no
         FROM answer_reconcile_manifest_row
         WHERE task_id = :task_id AND answer_uuid > :cursor AND answer_uuid <= :last
           AND deleted = 0
         ORDER BY answer_uuid LIMIT :most",
        task_id = task.task_id.as_str(),
        cursor = cursor,
        last = spelt(last),
        most = most,
    )
}

/// Digests pieces that follow each other without a gap.
async fn digest_run(
    db: &Db,
    task: &Task,
    from: u128,
    run: &[KeyRange],
    into: &mut Vec<DigestedRange>,
) -> Result<(), Refusal> {
    let Some(end) = run.last() else { return Ok(()) };
    let mut pieces = run.iter();
    let mut piece = pieces.next().copied();
    let mut digest = RangeDigest::new(&task.task_id);
    let mut close = |range: KeyRange, digest: &mut RangeDigest| {
        let done = std::mem::replace(digest, RangeDigest::new(&task.task_id));
        into.push(DigestedRange {
            from: spelt(range.from()),
            to: spelt(range.to()),
            count: done.count(),
            digest: done.finish(),
        });
    };
    let mut cursor = below(from);
    loop {
        let found = db.rows(after(task, cursor, end.last(), BATCH)).await?;
        for row in &found {
            let uuid = row.text("answer_uuid")?;
            // Texts of keys are in the order of the keys.
            while let Some(range) = piece.filter(|range| uuid > spelt(range.last())) {
                close(range, &mut digest);
                piece = pieces.next().copied();
            }
            let (revision, hash) = (row.int("revision")?, row.text("content_hash")?);
            digest.row(&uuid, revision, &hash, row.int("is_deleted")? == 1);
        }
        let is_end = i64::try_from(found.len()).is_ok_and(|count| count < BATCH);
        match found.last() {
            Some(row) if !is_end => cursor = row.text("answer_uuid")?,
            _ => break,
        }
    }
    while let Some(range) = piece {
        close(range, &mut digest);
        piece = pieces.next().copied();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ranges: &[(u128, u128, u32)]) -> Vec<AskedRange> {
        let one = |&(from, to, parts): &(u128, u128, u32)| AskedRange {
            from: spelt(from),
            to: spelt(to),
            parts,
        };
        ranges.iter().map(one).collect()
    }

    #[test]
    fn what_is_wrong_with_the_ranges_is_named_by_its_field() {
        let most = u128::MAX;
        let many: Vec<_> = (0..257).map(|at| (at, at + 1, 1)).collect();
        type Case<'a> = (&'a [(u128, u128, u32)], &'a str);
        let table: [Case<'_>; 9] = [
            (&[], "ranges: "),
            (&many, "ranges: "),
            (&[(5, 5, 1)], "ranges[0].to: "),
            (&[(0, 5, 1), (4, most, 1)], "ranges[1].from: "),
            (&[(0, most, 1), (most, most, 1)], "ranges[1].from: "),
            (&[(0, 5, 1), (6, 9, 0)], "ranges[1].parts: "),
            (&[(0, 5, 257)], "ranges[0].parts: "),
            (&[(0, 5, 200), (5, 9, 57)], "ranges[1].parts: "),
            (&[(0, 5, u32::MAX), (5, 9, 1)], "ranges[0].parts: "),
        ];
        for (ranges, field) in table {
            let ranges = asked(ranges);
            let spans = ranges.iter().map(|range| (range.from.as_str(), range.to.as_str()));
            let said = read_ranges(spans).map(|_| ()).and_then(|()| parts_of(&ranges).map(|_| ()));
            let Err(refusal) = said else { panic!("{ranges:?}") };
            assert_eq!(refusal.refused(), Some(Code::RangeInvalid));
            let text = refusal.to_string();
            assert!(text.starts_with(&format!("RANGE_INVALID: {field}")), "{text}");
        }
        let fine = asked(&[(0, 5, 200), (5, most, 56)]);
        assert_eq!(parts_of(&fine).unwrap(), [200, 56]);
    }
}
