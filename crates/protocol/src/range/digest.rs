//! The digest of a range: SHA-256 over its rows in ascending order, so that no exchange of rows and
//! no sum of them can hide a difference.

use sha2::{Digest, Sha256};

/// Digits of a digest as it is spelt: 16 bytes of the hash are kept.
pub const DIGEST_DIGITS: usize = 32;

/// A digest being made.
#[derive(Debug, Clone)]
pub struct RangeDigest {
    hash: Sha256,
    count: i64,
}

impl RangeDigest {
    /// Of no rows yet, in a task.
    pub fn new(task_id: &str) -> RangeDigest {
        let mut hash = Sha256::new();
        hash.update(b"fc.range.v1\n");
        hash.update(task_id.as_bytes());
        hash.update(b"\n");
        RangeDigest { hash, count: 0 }
    }

    /// Adds the next row, which is above those before.
    pub fn row(&mut self, uuid: &str, revision: i64, content_hash: &str, is_deleted: bool) {
        let mut digits = [0_u8; 20];
        self.hash.update(uuid.as_bytes());
        self.hash.update(b":");
        self.hash.update(decimal(revision, &mut digits));
        self.hash.update(b":");
        self.hash.update(content_hash.as_bytes());
        self.hash.update(if is_deleted { b":1\n" } else { b":0\n" });
        self.count += 1;
    }

    /// Rows so far.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// The digest, spelt.
    pub fn finish(self) -> String {
        let bytes = self.hash.finalize();
        bytes[..DIGEST_DIGITS / 2].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The digest of a range without rows.
pub fn empty_digest(task_id: &str) -> String {
    RangeDigest::new(task_id).finish()
}

/// Whether a text can be a digest.
pub fn is_range_digest(text: &str) -> bool {
    text.len() == DIGEST_DIGITS
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A number's decimal digits without an allocation: there are millions of rows.
fn decimal(number: i64, room: &mut [u8; 20]) -> &[u8] {
    let (mut rest, mut at) = (number.unsigned_abs(), room.len());
    loop {
        at -= 1;
        room[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        room[at] = b'-';
    }
    &room[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_digest_is_that_of_the_text_in_the_contract() {
        let (a, b) = ("0".repeat(32), "1".repeat(32));
        let text = format!("fc.range.v1\ntask-1\n{a}:7:aa:0\n{b}:120:bb:1\n");
        let mut digest = RangeDigest::new("task-1");
        digest.row(&a, 7, "aa", false);
        digest.row(&b, 120, "bb", true);
        assert_eq!(digest.count(), 2);
        assert_eq!(digest.finish(), hex(&Sha256::digest(text.as_bytes())[..16]));
        let none = hex(&Sha256::digest(b"fc.range.v1\ntask-1\n")[..16]);
        assert_eq!(empty_digest("task-1"), none);
    }

    #[test]
    fn whatever_differs_in_a_row_or_a_task_differs_in_the_digest() {
        let of = |task: &str, rows: &[(&str, i64, &str, bool)]| {
            let mut digest = RangeDigest::new(task);
            for (uuid, revision, hash, is_deleted) in rows {
                digest.row(uuid, *revision, hash, *is_deleted);
            }
            digest.finish()
        };
        let all = [
            of("t", &[]),
            of("u", &[]),
            of("t", &[("a", 1, "h", false)]),
            of("u", &[("a", 1, "h", false)]),
            of("t", &[("b", 1, "h", false)]),
            of("t", &[("a", 2, "h", false)]),
            of("t", &[("a", 1, "i", false)]),
            of("t", &[("a", 1, "h", true)]),
            of("t", &[("a", 1, "h", false), ("a", 1, "h", false)]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(is_range_digest(one));
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
    }

    #[test]
    fn numbers_are_spelt_as_everywhere() {
        for number in [0, 1, 9, 10, 1_234_567_890, i64::MAX, -1, i64::MIN] {
            let mut room = [0; 20];
            assert_eq!(decimal(number, &mut room), number.to_string().as_bytes());
        }
    }
}
