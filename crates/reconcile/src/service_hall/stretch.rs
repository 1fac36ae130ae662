//! A stretch of our own set, held in memory as keys and hashes: its ranges' digests cost no further
//! read, however often they are asked for.

use counterfoil_protocol::range::{KeyRange, RangeDigest, between, key_of, spelt};

use super::advance::{Session, Stop};
use super::projection::{self, Local};

/// Rows of ours read at once.
const PAGE: u32 = 1000;

/// A row as digests need it.
#[derive(Debug, Clone)]
struct Held {
    key: u128,
    revision: i64,
    /// `None` where what is stored is not what its hash says: no range that holds it is equal.
    hash: Option<[u8; 32]>,
    is_deleted: bool,
}

impl Held {
    /// `None` = the row's uuid is no key.
    fn of(local: &Local) -> Option<Held> {
        let hash = if local.hash == local.stored_hash { bytes_of(&local.hash) } else { None };
        let (revision, is_deleted) = (local.revision, local.is_deleted);
        Some(Held { key: key_of(&local.uuid)?, revision, hash, is_deleted })
    }
}

fn bytes_of(hash: &str) -> Option<[u8; 32]> {
    let (high, low) = hash.split_at_checked(32)?;
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&key_of(high)?.to_be_bytes());
    bytes[16..].copy_from_slice(&key_of(low)?.to_be_bytes());
    Some(bytes)
}

/// Our rows of one range, ascending.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) range: KeyRange,
    rows: Vec<Held>,
}

/// Parts of a range that the centre is asked for together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The parts.
    pub(super) pieces: Vec<KeyRange>,
    /// Whether they are even, so that one range and a number say them all.
    pub(super) is_even: bool,
    /// Rows that the centre has in all of them, if it said so.
    pub(super) remote: Option<i64>,
}

impl Stretch {
    fn within(&self, range: KeyRange) -> &[Held] {
        let first = self.rows.partition_point(|row| row.key < range.from());
        let end = self.rows.partition_point(|row| row.key <= range.last());
        &self.rows[first.min(end)..end]
    }

    /// How many rows of ours are in a range.
    pub(super) fn count(&self, range: KeyRange) -> usize {
        self.within(range).len()
    }

    /// The digest of our rows in a range.
    pub(super) fn digest(&self, task_id: &str, range: KeyRange) -> String {
        let mut digest = RangeDigest::new(task_id);
        for row in self.within(range) {
            let hash = row.hash.map(|bytes| hex(&bytes)).unwrap_or_default();
            digest.row(&spelt(row.key), row.revision, &hash, row.is_deleted);
        }
        digest.finish()
    }

    /// Parts with about so many rows of ours, at most so many parts.
    fn cut(&self, range: KeyRange, rows: usize, most: usize) -> Vec<KeyRange> {
        let held = self.within(range);
        let parts = held.len().div_ceil(rows.max(1)).clamp(1, most);
        let cut = |part: usize| {
            let at = held.len() * part / parts;
            let low = held.get(at.checked_sub(1)?)?;
            Some(between(low.key, held.get(at)?.key))
        };
        range.cut((1..parts).filter_map(cut))
    }

    /// What the centre is asked about first.
    pub(super) fn spans(&self, rows: usize, most: usize) -> Plan {
        Plan { pieces: self.cut(self.range, rows, most), is_even: false, remote: None }
    }

    /// A range in parts: even ones where our keys are spread over them, others by our keys.
    pub(super) fn split(&self, range: KeyRange, parts: u32, remote: i64) -> Plan {
        let count = self.count(range);
        let pieces = range.split(parts);
        let most = pieces.iter().map(|piece| self.count(*piece)).max().unwrap_or(0);
        let remote = Some(remote);
        if most * (parts as usize) <= count * 3 && most < count {
            return Plan { pieces, is_even: true, remote };
        }
        let rows = count.div_ceil(parts.max(1) as usize);
        Plan { pieces: self.cut(range, rows, parts as usize), is_even: false, remote }
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    let (mut high, mut low) = ([0; 16], [0; 16]);
    high.copy_from_slice(&bytes[..16]);
    low.copy_from_slice(&bytes[16..]);
    let (high, low) = (u128::from_be_bytes(high), u128::from_be_bytes(low));
    format!("{high:032x}{low:032x}")
}

impl Session<'_> {
    /// Reads our rows above the cursor, as many as are looked at together. `None` = one of them has
    /// no key: such a set is compared row by row.
    pub(super) async fn hold(&mut self, above: KeyRange) -> Result<Option<Stretch>, Stop> {
        let most = self.settings.narrowing.stretch_rows.max(1);
        let mut cursor = self.work.cursor.clone().unwrap_or_default();
        let mut rows: Vec<Held> = Vec::new();
        loop {
            if self.turn.is_stopping() {
                return Err(Stop::Stopping);
            }
            let room = u32::try_from(most - rows.len()).unwrap_or(PAGE).min(PAGE);
            let page = projection::page(self.db, &self.work.coordinate, &cursor, room).await?;
            for local in &page {
                let Some(held) = Held::of(local) else { return Ok(None) };
                rows.push(held);
            }
            let Some(last) = page.last().filter(|_| page.len() == room as usize) else {
                return Ok(Some(Stretch { range: above, rows }));
            };
            cursor.clone_from(&last.uuid);
            self.stay_alive().await?;
            if let Some(last) = rows.last().filter(|_| rows.len() >= most) {
                // Up to our last key; a range cannot end just below the greatest one.
                let range = match last.key.checked_add(1).filter(|end| *end < u128::MAX) {
                    Some(end) => KeyRange::new(above.from(), end).unwrap_or(above),
                    None => above,
                };
                return Ok(Some(Stretch { range, rows }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(keys: &[u128]) -> Stretch {
        let held = |key: &u128| Held { key: *key, revision: 1, hash: None, is_deleted: false };
        Stretch { range: KeyRange::WHOLE, rows: keys.iter().map(held).collect() }
    }

    fn bounds(plan: &Plan) -> Vec<u128> {
        plan.pieces.iter().map(|piece| piece.from()).collect()
    }

    #[test]
    fn spread_keys_are_split_evenly_and_crowded_ones_by_the_keys() {
        let spread: Vec<u128> = (0..64).map(|at| at << 122).collect();
        let plan = stretch(&spread).split(KeyRange::WHOLE, 4, 9);
        assert!(plan.is_even);
        assert_eq!(plan.pieces, KeyRange::WHOLE.split(4));
        let crowded: Vec<u128> = (0..64).map(|at| (7 << 100) + at).collect();
        let plan = stretch(&crowded).split(KeyRange::WHOLE, 4, 9);
        assert!(!plan.is_even);
        let hot = 7 << 100;
        assert_eq!(bounds(&plan), [0, hot + 16, hot + 32, hot + 48]);
        assert_eq!(plan.pieces.last().map(|piece| piece.to()), Some(u128::MAX));
    }

    #[test]
    fn a_part_always_has_fewer_rows_than_the_whole() {
        for keys in [vec![1, 2], vec![0, u128::MAX], vec![5, 6, 7, 8, 9], vec![1, 2, u128::MAX]] {
            let stretch = stretch(&keys);
            for parts in [2, 3, 4, 64] {
                let plan = stretch.split(KeyRange::WHOLE, parts, 0);
                let all: usize = plan.pieces.iter().map(|piece| stretch.count(*piece)).sum();
                assert_eq!(all, keys.len());
                let most = plan.pieces.iter().map(|piece| stretch.count(*piece)).max();
                assert!(most.unwrap() < keys.len(), "{keys:?} in {parts}");
            }
        }
    }

    #[test]
    fn an_empty_set_is_one_range_over_every_key() {
        let plan = stretch(&[]).spans(10, 16);
        assert_eq!(plan.pieces, [KeyRange::WHOLE]);
        assert_eq!(stretch(&[1, 2, 3, 4]).spans(1, 3).pieces.len(), 3);
    }

    #[test]
    fn a_row_whose_stored_hash_lies_never_has_the_digest_of_a_true_one() {
        let hash = "ab".repeat(32);
        let local = Local {
            uuid: spelt(7),
            revision: 1,
            stored_hash: hash.clone(),
            hash: hash.clone(),
            is_deleted: false,
            version: 0,
            created: None,
        };
        let digest = |local: &Local| {
            let rows = vec![Held::of(local).unwrap()];
            Stretch { range: KeyRange::WHOLE, rows }.digest("t", KeyRange::WHOLE)
        };
        let mut expected = RangeDigest::new("t");
        expected.row(&spelt(7), 1, &hash, false);
        let expected = expected.finish();
        assert_eq!(digest(&local), expected);
        for lying in [
            Local { stored_hash: "cd".repeat(32), ..local.clone() },
            Local { hash: String::new(), stored_hash: String::new(), ..local.clone() },
            Local { hash: String::new(), ..local.clone() },
        ] {
            assert_ne!(digest(&lying), expected, "{lying:?}");
        }
        assert!(Held::of(&Local { uuid: "no key".into(), ..local }).is_none());
    }
}
