//! The compact form of range digests and rows: the same messages as in JSON, in a third of the
//! bytes and less. A hall asks for it by `Accept`, and asks in it once the centre has answered in
//! it; JSON is understood always.
//!
//! `fcr1`, a letter for the message, then its fields: numbers in LEB128, texts with their length,
//! keys without their trailing zero bytes. Ranges of digests are those that were asked for.

use counterfoil_protocol::range::{DIGEST_DIGITS, KeyRange, key_of, spelt};

use crate::wire::{AskedRange, DigestedRange, Digests, KeySpan, ManifestRow, RangeRows};

/// Its media type.
pub const MEDIA_TYPE: &str = "application/vnd.counterfoil.ranges";

const MAGIC: &[u8] = b"fcr1";
/// Items of one message at most; no message of ours has more than 500.
const MAX_ITEMS: u64 = 100_000;
/// Bytes of a text.
const MAX_TEXT: u64 = 1000;

/// Whether a body is in the compact form.
pub fn is_compact(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Messages that have a compact form.
pub trait Compact: Sized {
    /// What has to be known to read it.
    type Question: ?Sized;
    /// The compact form; `None` = it has none, and goes as JSON.
    fn compact(&self) -> Option<Vec<u8>>;
    /// Reads the compact form; `None` = it is none.
    fn expand(body: &[u8], question: &Self::Question) -> Option<Self>;
}

impl Compact for Vec<AskedRange> {
    type Question = ();

    fn compact(&self) -> Option<Vec<u8>> {
        let mut out = Writer::of(b'a');
        out.number(self.len() as u64);
        for range in self {
            out.key(&range.from)?;
            out.key(&range.to)?;
            out.number(range.parts.into());
        }
        Some(out.0)
    }

    fn expand(body: &[u8], (): &()) -> Option<Vec<AskedRange>> {
        let mut from = Reader::of(body, b'a')?;
        let one = |from: &mut Reader<'_>| {
            let (low, high) = (from.key()?, from.key()?);
            Some(AskedRange { from: low, to: high, parts: from.number()?.try_into().ok()? })
        };
        from.items(one)
    }
}

impl Compact for Vec<KeySpan> {
    type Question = ();

    fn compact(&self) -> Option<Vec<u8>> {
        let mut out = Writer::of(b's');
        out.number(self.len() as u64);
        for span in self {
            out.key(&span.from)?;
            out.key(&span.to)?;
        }
        Some(out.0)
    }

    fn expand(body: &[u8], (): &()) -> Option<Vec<KeySpan>> {
        let mut from = Reader::of(body, b's')?;
        from.items(|from| Some(KeySpan { from: from.key()?, to: from.key()? }))
    }
}

impl Compact for Digests {
    type Question = [AskedRange];

    fn compact(&self) -> Option<Vec<u8>> {
        let mut out = Writer::of(b'd');
        out.head(&self.task_id, self.total_rows, &self.task_state)?;
        out.number(self.ranges.len() as u64);
        for range in &self.ranges {
            out.number(range.count.try_into().ok()?);
            out.hex(&range.digest, DIGEST_DIGITS)?;
        }
        Some(out.0)
    }

    fn expand(body: &[u8], question: &[AskedRange]) -> Option<Digests> {
        let mut from = Reader::of(body, b'd')?;
        let (task_id, total_rows, task_state) = from.head()?;
        let parts = |range: &AskedRange| {
            KeyRange::parse(&range.from, &range.to).map(|whole| whole.split(range.parts)).ok()
        };
        let mut pieces = question.iter().filter_map(parts).flatten();
        let ranges = from.items(|from| {
            let piece = pieces.next()?;
            let count = from.number()?.try_into().ok()?;
            let digest = from.hex(DIGEST_DIGITS)?;
            Some(DigestedRange { from: spelt(piece.from()), to: spelt(piece.to()), count, digest })
        })?;
        Some(Digests { task_id, ranges, total_rows, task_state })
    }
}

impl Compact for RangeRows {
    type Question = ();

    fn compact(&self) -> Option<Vec<u8>> {
        let mut out = Writer::of(b'r');
        out.head(&self.task_id, self.total_rows, &self.task_state)?;
        let form = self.rows.first().map_or("", |row| row.form_uuid.as_str());
        out.text(form)?;
        out.number(self.rows.len() as u64);
        for row in &self.rows {
            if row.form_uuid != form {
                return None;
            }
            out.hex(&row.answer_uuid, 32)?;
            out.hex(&row.content_hash, 64)?;
            out.0.push(row.is_deleted.into());
            for number in [row.revision, row.form_version, row.seq_no] {
                out.number(number.try_into().ok()?);
            }
        }
        Some(out.0)
    }

    fn expand(body: &[u8], (): &()) -> Option<RangeRows> {
        let mut from = Reader::of(body, b'r')?;
        let (task_id, total_rows, task_state) = from.head()?;
        let form = from.text()?;
        let rows = from.items(|from| {
            let (answer_uuid, content_hash) = (from.hex(32)?, from.hex(64)?);
            let is_deleted = match from.take(1)? {
                [0] => false,
                [1] => true,
                _ => return None,
            };
            let mut number = || i64::try_from(from.number()?).ok();
            let (revision, form_version, seq_no) = (number()?, number()?, number()?);
            let form_uuid = form.clone();
            Some(ManifestRow {
                answer_uuid,
                revision,
                content_hash,
                is_deleted,
                form_uuid,
                form_version,
                seq_no,
            })
        })?;
        Some(RangeRows { task_id, rows, total_rows, task_state })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn of(message: u8) -> Writer {
        Writer([MAGIC, &[message]].concat())
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let length = text.len() as u64;
        (length <= MAX_TEXT).then(|| {
            self.number(length);
            self.0.extend_from_slice(text.as_bytes());
        })
    }

    fn head(&mut self, task: &str, total: i64, state: &str) -> Option<()> {
        self.text(task)?;
        self.number(total.try_into().ok()?);
        self.text(state)
    }

    /// Lower-case digits of that number, as bytes.
    fn hex(&mut self, text: &str, digits: usize) -> Option<()> {
        if text.len() != digits {
            return None;
        }
        for half in text.as_bytes().chunks(32) {
            let key = key_of(std::str::from_utf8(half).ok()?)?;
            self.0.extend_from_slice(&key.to_be_bytes());
        }
        Some(())
    }

    fn key(&mut self, text: &str) -> Option<()> {
        let bytes = key_of(text)?.to_be_bytes();
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.0.push(u8::try_from(length).ok()?);
        self.0.extend_from_slice(&bytes[..length]);
        Some(())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn of(body: &'a [u8], message: u8) -> Option<Reader<'a>> {
        let (first, rest) = body.strip_prefix(MAGIC)?.split_first()?;
        (*first == message).then_some(Reader(rest))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.take(1)? else { return None };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number().filter(|length| *length <= MAX_TEXT)?;
        let bytes = self.take(usize::try_from(length).ok()?)?;
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    fn head(&mut self) -> Option<(String, i64, String)> {
        let (task, total) = (self.text()?, self.number()?);
        Some((task, total.try_into().ok()?, self.text()?))
    }

    fn hex(&mut self, digits: usize) -> Option<String> {
        let mut text = String::with_capacity(digits);
        for half in self.take(digits / 2)?.chunks(16) {
            text += &spelt(u128::from_be_bytes(half.try_into().ok()?));
        }
        Some(text)
    }

    fn key(&mut self) -> Option<String> {
        let [length] = self.take(1)? else { return None };
        let mut bytes = [0; 16];
        let taken = self.take(usize::from(*length))?;
        bytes.get_mut(..taken.len())?.copy_from_slice(taken);
        Some(spelt(u128::from_be_bytes(bytes)))
    }

    /// All that is left: so many items, and nothing after them.
    fn items<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number().filter(|count| *count <= MAX_ITEMS)?;
        let items: Option<Vec<T>> = (0..count).map(|_| one(self)).collect();
        items.filter(|_| self.0.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked() -> impl Strategy<Value = Vec<AskedRange>> {
        let one = (any::<u128>(), 1..5_u32).prop_map(|(key, parts)| {
            let from = key & !0xffff_ffff;
            AskedRange { from: spelt(from), to: spelt(u128::MAX), parts }
        });
        proptest::collection::vec(one, 0..6)
    }

    fn rows() -> impl Strategy<Value = RangeRows> {
        let numbers = (0..=i64::MAX, 0..9_i64, 0..=i64::MAX);
        let row = (any::<[u128; 3]>(), numbers, any::<bool>()).prop_map(
            |([uuid, high, low], (revision, form_version, seq_no), is_deleted)| ManifestRow {
                answer_uuid: spelt(uuid),
                revision,
                content_hash: spelt(high) + &spelt(low),
                is_deleted,
                form_uuid: "表单-1".into(),
                form_version,
                seq_no,
            },
        );
        (proptest::collection::vec(row, 0..6), 0..=i64::MAX).prop_map(|(rows, total_rows)| {
            RangeRows { task_id: "t".into(), rows, total_rows, task_state: "RUNNING".into() }
        })
    }

    proptest! {
        #[test]
        fn what_is_compacted_expands_to_the_same(
            asked in asked(),
            rows in rows(),
            n in any::<u128>(),
        ) {
            let body = asked.compact().unwrap();
            prop_assert!(is_compact(&body));
            prop_assert_eq!(&Vec::<AskedRange>::expand(&body, &()).unwrap(), &asked);
            let spans: Vec<KeySpan> = asked
                .iter()
                .map(|range| KeySpan { from: range.from.clone(), to: range.to.clone() })
                .collect();
            let body = spans.compact().unwrap();
            prop_assert_eq!(&Vec::<KeySpan>::expand(&body, &()).unwrap(), &spans);
            let pieces = asked.iter().flat_map(|range| {
                KeyRange::parse(&range.from, &range.to).unwrap().split(range.parts)
            });
            let ranges = pieces
                .map(|piece| DigestedRange {
                    from: spelt(piece.from()),
                    to: spelt(piece.to()),
                    count: rows.total_rows / 7,
                    digest: spelt(n),
                })
                .collect();
            let task_state = "RUNNING".to_owned();
            let digests = Digests { task_id: "t".into(), ranges, total_rows: 9, task_state };
            let body = digests.compact().unwrap();
            prop_assert_eq!(&Digests::expand(&body, &asked).unwrap(), &digests);
            let body = rows.compact().unwrap();
            prop_assert_eq!(&RangeRows::expand(&body, &()).unwrap(), &rows);
            // Cut anywhere, or with something after its end, it is nothing.
            for end in 0..body.len() {
                prop_assert!(RangeRows::expand(&body[..end], &()).is_none());
            }
            prop_assert!(RangeRows::expand(&[body.as_slice(), b"x"].concat(), &()).is_none());
        }

        #[test]
        fn no_bytes_at_all_make_it_fall_over(
            rest in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            for message in *b"asdr" {
                let body = [MAGIC, &[message], &rest].concat();
                let _ = Vec::<AskedRange>::expand(&body, &());
                let _ = Vec::<KeySpan>::expand(&body, &());
                let _ = Digests::expand(&body, &[]);
                let _ = RangeRows::expand(&body, &());
            }
        }
    }

    #[test]
    fn a_row_that_is_not_as_it_should_be_goes_as_json() {
        let row = ManifestRow {
            answer_uuid: spelt(1),
            revision: 1,
            content_hash: "ab".repeat(32),
            is_deleted: false,
            form_uuid: "f".into(),
            form_version: 1,
            seq_no: 1,
        };
        let rows = |rows: Vec<ManifestRow>| RangeRows {
            task_id: "t".into(),
            rows,
            total_rows: 1,
            task_state: "RUNNING".into(),
        };
        assert!(rows(vec![row.clone()]).compact().is_some());
        for other in [
            ManifestRow { content_hash: "AB".repeat(32), ..row.clone() },
            ManifestRow { content_hash: "lies".into(), ..row.clone() },
            ManifestRow { answer_uuid: "x".into(), ..row.clone() },
            ManifestRow { revision: -1, ..row.clone() },
            ManifestRow { form_uuid: "g".into(), ..row.clone() },
        ] {
            assert!(rows(vec![row.clone(), other]).compact().is_none());
        }
    }
}
