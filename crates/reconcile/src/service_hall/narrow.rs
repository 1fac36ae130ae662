//! Narrowing: digests of ever smaller ranges, until each is equal or worth comparing row by row.

use counterfoil_protocol::range::{KeyRange, is_range_digest, key_of, spelt};

use super::Narrowing;
use super::advance::{Session, Stop, is_end};
use super::centre::Answer;
use super::stretch::{Plan, Stretch};
use crate::wire::{AskedRange, Digests};

/// Parts of one call at most: the centre's own limit.
const MAX_PARTS: usize = 256;
/// Ranges of a stretch that are asked about first.
const MAX_SPANS: usize = 64;
/// Parts that a range is split into when it has many rows, and when it has few.
const MANY_PARTS: usize = 64;
const FEW_PARTS: usize = 4;
/// Where most parts of a range differ, those of no more rows than this many leaves are compared:
/// another split would cost a good part of what their rows cost. Larger ones are cheap to split.
const DENSE_LEAVES: usize = 8;
/// Splits of a split at most; what differs still is compared row by row.
const MAX_DEPTH: usize = 64;

/// A range as it stands in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) range: KeyRange,
    /// Rows that the centre has in it, and their digest.
    pub(super) remote: i64,
    pub(super) digest: String,
    /// Rows that we had in it when we looked.
    pub(super) local: usize,
    /// Whether both sides are the same.
    pub(super) is_equal: bool,
}

/// What becomes of a range that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Compare,
    Split(u32),
}

/// Splitting pays where few of many rows can differ.
fn step(local: usize, remote: usize, do_most_differ: bool, narrowing: &Narrowing) -> Step {
    let (least, most) = (local.min(remote), local.max(remote));
    // At least half of the larger side would be read all the same.
    let is_lopsided = (most - least) * 2 > most;
    let is_small = least <= narrowing.leaf_rows;
    let is_dense = do_most_differ && least <= narrowing.leaf_rows * DENSE_LEAVES;
    if is_small || is_lopsided || is_dense {
        return Step::Compare;
    }
    let by_rows = local / narrowing.part_rows.max(1);
    // A power of two keeps the parts' bounds as round as the range's: fewer digits to send.
    let parts = by_rows.next_power_of_two().clamp(FEW_PARTS, MANY_PARTS);
    Step::Split(u32::try_from(parts).unwrap_or(2))
}

/// Three quarters of some parts differ: what is in them will, too, if they are small.
fn do_most_differ(differing: usize, parts: usize) -> bool {
    parts >= FEW_PARTS && differing * 4 >= parts * 3
}

/// One part's count and digest, as the centre has it.
type Said = (i64, String);

pub(super) fn wrong(message: impl Into<String>) -> Stop {
    Stop::Stalled { code: "DIGESTS_WRONG", message: message.into() }
}

impl Session<'_> {
    /// Settles the next stretch of both sets: up to a bounded number of our rows.
    pub(super) async fn stretch(&mut self) -> Result<(), Stop> {
        let cursor = match self.work.cursor.as_deref() {
            None => Some(KeyRange::WHOLE),
            Some(cursor) => key_of(cursor).and_then(KeyRange::above),
        };
        let held = match cursor {
            Some(above) => self.hold(above).await?,
            None => None,
        };
        let Some(stretch) = held else {
            tracing::info!(task = %self.work.task_id, "some keys are no keys: row by row");
            self.narrows = false;
            return Ok(());
        };
        match self.narrow(&stretch).await? {
            Some(stands) => self.settle(stands).await,
            None => {
                tracing::info!(task = %self.work.task_id, "no digests there: row by row");
                self.narrows = false;
                Ok(())
            }
        }
    }

    /// What each part of a stretch comes to, ascending and without a gap. `None` = the centre has
    /// no digests.
    async fn narrow(&mut self, stretch: &Stretch) -> Result<Option<Vec<Stand>>, Stop> {
        let narrowing = &self.settings.narrowing;
        let mut stands: Vec<Stand> = Vec::new();
        let mut plans = vec![stretch.spans(narrowing.span_rows, MAX_SPANS)];
        for depth in 0.. {
            let Some(said) = self.ask_all(&plans).await? else { return Ok(None) };
            let (mut said, mut deeper) = (said.into_iter(), Vec::new());
            for plan in &plans {
                let parts = self.judge_plan(stretch, plan, &mut said)?;
                let differing = parts.iter().filter(|part| !part.is_equal).count();
                let most = plan.remote.is_some() && do_most_differ(differing, parts.len());
                for part in parts {
                    let remote = usize::try_from(part.remote).unwrap_or(usize::MAX);
                    match step(part.local, remote, most, narrowing) {
                        Step::Split(into) if !part.is_equal && depth < MAX_DEPTH => {
                            deeper.push(stretch.split(part.range, into, part.remote));
                        }
                        _ => stands.push(part),
                    }
                }
            }
            if deeper.is_empty() {
                break;
            }
            plans = deeper;
        }
        stands.sort_unstable_by_key(|stand| stand.range);
        Ok(Some(stands))
    }

    /// The parts of a plan, each beside what the centre said of it.
    fn judge_plan(
        &self,
        stretch: &Stretch,
        plan: &Plan,
        said: &mut impl Iterator<Item = Said>,
    ) -> Result<Vec<Stand>, Stop> {
        let mut stands = Vec::with_capacity(plan.pieces.len());
        let mut all = 0_i64;
        for (range, (remote, digest)) in plan.pieces.iter().copied().zip(said) {
            let is_equal = stretch.digest(&self.work.task_id, range) == digest;
            let local = stretch.count(range);
            if is_equal && i64::try_from(local) != Ok(remote) {
                return Err(wrong("equal digests with another count"));
            }
            all = all.saturating_add(remote);
            stands.push(Stand { range, remote, digest, local, is_equal });
        }
        if plan.remote.is_some_and(|remote| remote != all) {
            return Err(wrong("the parts of a range have another count than the range"));
        }
        Ok(stands)
    }

    /// The centre's word on every part of some plans, in their order, in as few calls as may be.
    async fn ask_all(&mut self, plans: &[Plan]) -> Result<Option<Vec<Said>>, Stop> {
        let mut said = Vec::new();
        let mut rest = plans;
        while !rest.is_empty() {
            let mut parts = 0;
            let fits = |plan: &&Plan| {
                parts += plan.pieces.len();
                parts <= MAX_PARTS
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let Some(word) = self.ask_digests(now).await? else { return Ok(None) };
            said.extend(word);
            rest = later;
            self.stay_alive().await?;
        }
        Ok(Some(said))
    }

    async fn ask_digests(&mut self, plans: &[Plan]) -> Result<Option<Vec<Said>>, Stop> {
        let asked: Vec<AskedRange> = plans.iter().flat_map(asked).collect();
        let now = self.now().await?;
        let word = match self.centre.digests(&self.work.task_id, &asked, now).await {
            Answer::Said(word) => word,
            Answer::Refused { code, .. } if is_end(&code) => return Err(Stop::CentreEnded),
            Answer::Refused { code, message } if is_own(&code) => {
                return Err(Stop::Later(format!("{code}: {message}")));
            }
            // Once it had digests: then it is only out of reach.
            Answer::Unknown { message } if self.work.total_rows.is_some() => {
                return Err(Stop::Later(message));
            }
            Answer::Refused { .. } | Answer::Unknown { .. } => return Ok(None),
        };
        let pieces = plans.iter().flat_map(|plan| plan.pieces.iter().copied());
        let said = believe(&self.work.task_id, pieces, &word).map_err(wrong)?;
        self.is_whole(&word.task_state, word.total_rows)?;
        Ok(Some(said))
    }

    /// Whether an answer is of a task that goes on, and of the manifest as it was said to be.
    pub(super) fn is_whole(&mut self, state: &str, total: i64) -> Result<(), Stop> {
        if state == "CANCELLED" {
            return Err(Stop::CentreEnded);
        }
        if *self.work.total_rows.get_or_insert(total) != total {
            return Err(wrong("the manifest has another number of rows than before"));
        }
        Ok(())
    }
}

/// Refusals of the call, not of digests as such.
fn is_own(code: &str) -> bool {
    matches!(code, "MANIFEST_INCOMPLETE" | "TASK_NOT_FOUND" | "IDENTITY_MISMATCH")
}

/// How a plan is asked for.
fn asked(plan: &Plan) -> Vec<AskedRange> {
    let one = |range: KeyRange, to: KeyRange, parts: usize| AskedRange {
        from: spelt(range.from()),
        to: spelt(to.to()),
        parts: u32::try_from(parts).unwrap_or(1),
    };
    match (plan.is_even, plan.pieces.first(), plan.pieces.last()) {
        (true, Some(first), Some(last)) => vec![one(*first, *last, plan.pieces.len())],
        _ => plan.pieces.iter().map(|piece| one(*piece, *piece, 1)).collect(),
    }
}

/// The answer, if it is one to what was asked.
fn believe(
    task_id: &str,
    pieces: impl Iterator<Item = KeyRange>,
    word: &Digests,
) -> Result<Vec<Said>, &'static str> {
    if word.task_id != task_id {
        return Err("the digests are another task's");
    }
    let mut ranges = word.ranges.iter();
    let mut said = Vec::with_capacity(word.ranges.len());
    for piece in pieces {
        let Some(range) = ranges.next() else { return Err("a range has no digest") };
        if range.from != spelt(piece.from()) || range.to != spelt(piece.to()) {
            return Err("a digest is of another range");
        }
        if range.count < 0 || !is_range_digest(&range.digest) {
            return Err("a count or a digest is none");
        }
        said.push((range.count, range.digest.clone()));
    }
    if ranges.next().is_some() {
        return Err("there are more digests than ranges");
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::DigestedRange;

    #[test]
    fn a_range_is_split_only_where_that_can_save_rows() {
        let narrowing = Narrowing::default();
        let table = [
            (0, 0, false, Step::Compare),
            (0, 1_000_000, false, Step::Compare),
            (1_000_000, 0, false, Step::Compare),
            (4, 9, false, Step::Compare),
            (5, 5, false, Step::Split(4)),
            (5, 5, true, Step::Compare),
            (32, 32, true, Step::Compare),
            (33, 33, true, Step::Split(4)),
            (256, 256, true, Step::Split(4)),
            (10, 25, false, Step::Compare),
            (10, 15, false, Step::Split(4)),
            (256, 256, false, Step::Split(4)),
            (2_560, 2_560, false, Step::Split(16)),
            (16_384, 16_380, false, Step::Split(64)),
            (1_000_000, 999_000, false, Step::Split(64)),
        ];
        for (local, remote, most, expected) in table {
            let said = step(local, remote, most, &narrowing);
            assert_eq!(said, expected, "{local} {remote} {most}");
        }
        assert!(do_most_differ(3, 4) && do_most_differ(64, 64) && do_most_differ(48, 64));
        assert!(!do_most_differ(2, 4) && !do_most_differ(47, 64) && !do_most_differ(2, 2));
    }

    #[test]
    fn an_answer_that_is_not_to_the_question_is_not_believed() {
        let pieces = KeyRange::WHOLE.split(2);
        let ranges: Vec<DigestedRange> = pieces
            .iter()
            .map(|piece| DigestedRange {
                from: spelt(piece.from()),
                to: spelt(piece.to()),
                count: 3,
                digest: "0".repeat(32),
            })
            .collect();
        let task_state = "RUNNING".to_owned();
        let fine = Digests { task_id: "t".into(), ranges, total_rows: 6, task_state };
        let said = |word: &Digests| believe("t", pieces.iter().copied(), word);
        assert_eq!(said(&fine).unwrap().len(), 2);
        type Change = (&'static str, fn(&mut Digests));
        let changes: [Change; 8] = [
            ("task", |word| word.task_id = "u".into()),
            ("fewer", |word| word.ranges.truncate(1)),
            ("more", |word| word.ranges.extend(word.ranges.last().cloned())),
            ("from", |word| word.ranges[0].from = spelt(1)),
            ("to", |word| word.ranges[1].to = spelt(9)),
            ("order", |word| word.ranges.swap(0, 1)),
            ("count", |word| word.ranges[0].count = -1),
            ("digest", |word| word.ranges[0].digest.truncate(8)),
        ];
        for (what, change) in changes {
            let mut word = fine.clone();
            change(&mut word);
            assert!(said(&word).is_err(), "{what}");
        }
    }

    #[test]
    fn even_parts_are_asked_for_by_one_range_and_others_each() {
        let pieces = KeyRange::WHOLE.split(4);
        let plan = |is_even| Plan { pieces: pieces.clone(), is_even, remote: None };
        let even = asked(&plan(true));
        assert_eq!((even.len(), even[0].parts), (1, 4));
        assert_eq!((even[0].from.as_str(), even[0].to.as_str()), (&*spelt(0), &*spelt(u128::MAX)));
        let others = asked(&plan(false));
        assert_eq!(others.len(), 4);
        assert!(others.iter().all(|range| range.parts == 1));
    }
}
