//! Ranges of the key space: 128-bit keys, spelt as 32 lower-case hexadecimal digits.
//!
//! A range is `[from, to)`. The greatest key, 32 `f`, stands for the end of the key space when it
//! is a `to`, and then belongs to the range: so ranges together can hold every key there is. No
//! range ends just below it.

mod digest;

pub use digest::{DIGEST_DIGITS, RangeDigest, empty_digest, is_range_digest};

/// What is wrong with a range, by its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeFault {
    /// `from` is no key.
    #[error("from: a key is 32 lower-case hexadecimal digits")]
    From,
    /// `to` is no key.
    #[error("to: a key is 32 lower-case hexadecimal digits")]
    To,
    /// `to` is not above `from`.
    #[error("to: a range ends above its beginning")]
    Order,
}

/// The key that a text spells.
pub fn key_of(text: &str) -> Option<u128> {
    let is_key =
        text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_key.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// A key as it is spelt.
pub fn spelt(key: u128) -> String {
    format!("{key:032x}")
}

/// Keys from one on, below another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    from: u128,
    to: u128,
}

impl KeyRange {
    /// Every key.
    pub const WHOLE: KeyRange = KeyRange { from: 0, to: u128::MAX };

    /// `[from, to)`; with the greatest key as `to`, that key too.
    ///
    /// # Errors
    /// A `to` that is not above `from`.
    pub fn new(from: u128, to: u128) -> Result<KeyRange, RangeFault> {
        let is_range = from < to || to == u128::MAX;
        if is_range { Ok(KeyRange { from, to }) } else { Err(RangeFault::Order) }
    }

    /// The range that two texts spell.
    ///
    /// # Errors
    /// What is no key, or no range.
    pub fn parse(from: &str, to: &str) -> Result<KeyRange, RangeFault> {
        let from = key_of(from).ok_or(RangeFault::From)?;
        KeyRange::new(from, key_of(to).ok_or(RangeFault::To)?)
    }

    /// What lies above a key; nothing above the greatest.
    pub fn above(key: u128) -> Option<KeyRange> {
        let from = key.checked_add(1)?;
        Some(KeyRange { from, to: u128::MAX })
    }

    /// Its first key.
    pub fn from(self) -> u128 {
        self.from
    }

    /// Where it ends.
    pub fn to(self) -> u128 {
        self.to
    }

    /// Whether it reaches to the end of the key space.
    pub fn is_last(self) -> bool {
        self.to == u128::MAX
    }

    /// Its greatest key.
    pub fn last(self) -> u128 {
        if self.is_last() { u128::MAX } else { self.to - 1 }
    }

    /// Whether a key is in it.
    pub fn holds(self, key: u128) -> bool {
        self.from <= key && key <= self.last()
    }

    /// Whether it begins where the other ends, or later.
    pub fn is_after(self, other: KeyRange) -> bool {
        !other.is_last() && self.from >= other.to
    }

    /// Contiguous parts, as even as may be: as many as asked for, or as it has keys.
    pub fn split(self, parts: u32) -> Vec<KeyRange> {
        let width = self.to - self.from;
        let parts = u128::from(parts.max(1)).min(width.max(1));
        // width × part would not fit: by the whole share and what is left over.
        let (share, rest) = (width / parts, width % parts);
        let bound = |part: u128| self.from + share * part + rest * part / parts;
        let piece = |part: u128| {
            let to = if part + 1 == parts { self.to } else { bound(part + 1) };
            KeyRange { from: bound(part), to }
        };
        (0..parts).map(piece).collect()
    }

    /// Cut at ascending keys; those that are no cut of it are passed over.
    pub fn cut(self, at: impl IntoIterator<Item = u128>) -> Vec<KeyRange> {
        let (mut pieces, mut from) = (Vec::new(), self.from);
        for key in at {
            // The greatest key is no cut: it would stand for the end of the key space.
            if key > from && key < self.to {
                pieces.push(KeyRange { from, to: key });
                from = key;
            }
        }
        pieces.push(KeyRange { from, to: self.to });
        pieces
    }
}

/// The roundest key above `low` and not above `high`: what is between two neighbours takes few
/// digits to say.
pub fn between(low: u128, high: u128) -> u128 {
    let rounded = (1..32_u32).map(|digits| high & !((1_u128 << (4 * (32 - digits))) - 1));
    rounded.into_iter().find(|key| *key > low).unwrap_or(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u128 = u128::MAX;

    fn range(from: u128, to: u128) -> KeyRange {
        KeyRange::new(from, to).unwrap()
    }

    #[test]
    fn a_range_is_split_into_contiguous_parts_that_cover_it() {
        type Case = (KeyRange, u32, Vec<(u128, u128)>);
        let table: [Case; 9] = [
            (range(0, 10), 1, vec![(0, 10)]),
            (range(0, 10), 0, vec![(0, 10)]),
            (range(0, 10), 3, vec![(0, 3), (3, 6), (6, 10)]),
            (range(5, 7), 4, vec![(5, 6), (6, 7)]),
            (range(5, 6), 256, vec![(5, 6)]),
            (KeyRange::WHOLE, 2, vec![(0, MAX / 2), (MAX / 2, MAX)]),
            (range(MAX - 2, MAX), 2, vec![(MAX - 2, MAX - 1), (MAX - 1, MAX)]),
            (range(MAX - 1, MAX), 2, vec![(MAX - 1, MAX)]),
            (range(MAX, MAX), 5, vec![(MAX, MAX)]),
        ];
        for (whole, parts, expected) in table {
            let pieces = whole.split(parts);
            let said: Vec<_> = pieces.iter().map(|piece| (piece.from(), piece.to())).collect();
            assert_eq!(said, expected, "{whole:?} in {parts}");
        }
        for parts in 1..=256 {
            let pieces = KeyRange::WHOLE.split(parts);
            assert_eq!(pieces.len(), parts as usize);
            assert_eq!((pieces[0].from(), pieces[pieces.len() - 1].last()), (0, MAX));
            assert!(pieces.windows(2).all(|two| two[0].to() == two[1].from()), "{parts}");
            let widths: Vec<_> = pieces.iter().map(|piece| piece.to() - piece.from()).collect();
            let (least, most) = (widths.iter().min().unwrap(), widths.iter().max().unwrap());
            assert!(most - least <= 1, "{parts}");
        }
    }

    #[test]
    fn every_key_is_in_exactly_one_part_of_the_whole_the_greatest_too() {
        for parts in [1, 2, 3, 16, 255, 256] {
            let pieces = KeyRange::WHOLE.split(parts);
            for key in [0, 1, MAX / 2, MAX / 2 + 1, MAX / 3, MAX - 1, MAX] {
                let holding = pieces.iter().filter(|piece| piece.holds(key)).count();
                assert_eq!(holding, 1, "{key:x} in {parts}");
            }
        }
    }

    #[test]
    fn the_last_key_of_a_range_is_the_greatest_below_its_end() {
        assert_eq!(range(3, 9).last(), 8);
        assert_eq!(range(3, MAX).last(), MAX);
        assert_eq!(KeyRange::above(8), Some(range(9, MAX)));
        assert_eq!(KeyRange::above(MAX), None);
        assert!(range(9, MAX).is_after(range(3, 9)) && !range(8, 9).is_after(range(3, 9)));
        assert!(!range(MAX, MAX).is_after(range(3, MAX)));
    }

    #[test]
    fn what_spells_no_range_is_refused_by_its_field() {
        let (low, high) = ("0".repeat(32), "f".repeat(32));
        let one = format!("{:032x}", 1);
        let table = [
            (low.as_str(), high.as_str(), Ok(KeyRange::WHOLE)),
            (&high, &high, Ok(range(MAX, MAX))),
            ("", &high, Err(RangeFault::From)),
            (&low[1..], &high, Err(RangeFault::From)),
            ("0000000000000000000000000000000G", &high, Err(RangeFault::From)),
            ("+0000000000000000000000000000000", &high, Err(RangeFault::From)),
            (&low, "", Err(RangeFault::To)),
            (&low, "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", Err(RangeFault::To)),
            (&low, "1ffffffffffffffffffffffffffffffff", Err(RangeFault::To)),
            (&low, &low, Err(RangeFault::Order)),
            (&one, &low, Err(RangeFault::Order)),
        ];
        for (from, to, expected) in table {
            assert_eq!(KeyRange::parse(from, to), expected, "{from} to {to}");
        }
    }

    #[test]
    fn cuts_outside_a_range_and_the_greatest_key_cut_nothing() {
        let said = |pieces: Vec<KeyRange>| -> Vec<(u128, u128)> {
            pieces.iter().map(|piece| (piece.from(), piece.to())).collect()
        };
        assert_eq!(said(range(3, 9).cut([1, 3, 5, 5, 9, 12])), [(3, 5), (5, 9)]);
        assert_eq!(said(range(3, MAX).cut([MAX])), [(3, MAX)]);
        assert_eq!(said(range(3, MAX).cut([MAX - 1])), [(3, MAX - 1), (MAX - 1, MAX)]);
    }

    #[test]
    fn a_key_between_two_neighbours_is_as_round_as_may_be() {
        let table = [
            (0x10, 0x20, 0x20),
            (0x1234_5678, 0x1235_0001, 0x1235_0000),
            (0x1234, 0x1235, 0x1235),
            (0, MAX, 0xf << 124),
            (MAX - 1, MAX, MAX),
        ];
        for (low, high, expected) in table {
            assert_eq!(between(low, high), expected, "{low:x} {high:x}");
        }
    }
}
