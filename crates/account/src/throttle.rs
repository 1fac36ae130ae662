//! How many wrong passwords are listened to: per account and per address.
//!
//! A failure is counted before the password is looked at, so that a thousand guesses at once count
//! as a thousand; the right password takes its own count back. The table is bounded by
//! construction: logins and addresses fall into 65 536 buckets each, by their hash.

use chrono::TimeDelta;
use counterfoil_db::{Instant, Read, Result, Tx, sql};
use sha2::{Digest, Sha256};

/// What a bucket counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// One account's failures.
    Account,
    /// One address's failures, over all accounts.
    Address,
}

impl Of {
    /// Failures that cost nothing. Many people may sit behind one address.
    fn free(self) -> i64 {
        match self {
            Of::Account => 5,
            Of::Address => 30,
        }
    }

    pub(crate) fn bucket(self, text: &str) -> String {
        let digest = Sha256::digest(text.as_bytes());
        let kind = match self {
            Of::Account => 'a',
            Of::Address => 'n',
        };
        format!("{kind}{:02x}{:02x}", digest[0], digest[1])
    }
}

/// After so long without a failure a bucket is empty again.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::hours(1);
/// The first pause; it doubles.
const FIRST_PAUSE_SECONDS: i64 = 15;
/// The longest pause.
const MAX_PAUSE_SECONDS: i64 = 900;

/// What a bucket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Past {
    failures: i64,
    last: Instant,
    blocked_until: Option<Instant>,
}

impl Past {
    /// How long nobody is listened to.
    fn wait(&self, now: Instant) -> Option<i64> {
        let left = (self.blocked_until? - now).num_milliseconds();
        (left > 0).then_some((left + 999) / 1000)
    }

    fn one_more(&self, of: Of, now: Instant) -> Past {
        let forgotten = now - self.last > FORGOTTEN_AFTER;
        let failures = if forgotten { 1 } else { self.failures.max(0) + 1 };
        let over = failures - of.free();
        let blocked_until = (over >= 0).then(|| {
            let doublings = u32::try_from(over.min(16)).unwrap_or(16);
            let pause = (FIRST_PAUSE_SECONDS << doublings).min(MAX_PAUSE_SECONDS);
            now + TimeDelta::seconds(pause)
        });
        Past { failures, last: now, blocked_until }
    }
}

/// Counts one attempt as a failure, or answers for how many seconds none is listened to.
pub(crate) async fn count(tx: &mut Tx, of: Of, text: &str) -> Result<Option<i64>> {
    let (bucket, now) = (of.bucket(text), tx.now());
    tx.execute(sql!(
        "{insert_ignore} INTO account_login_failure (bucket, failures, last_time)
         VALUES (:bucket, 0, :now) {or_ignore}",
        bucket = bucket.as_str(),
        now = now,
    ))
    .await?;
    let row = tx
        .row(sql!(
            "SELECT failures, last_time, blocked_until FROM account_login_failure
             WHERE bucket = :bucket {for_update}",
            bucket = bucket.as_str(),
        ))
        .await?;
    let past = match row {
        Some(row) => Past {
            failures: row.int("failures")?,
            last: row.instant("last_time")?,
            blocked_until: row.maybe_instant("blocked_until")?,
        },
        None => Past { failures: 0, last: now, blocked_until: None },
    };
    if let Some(seconds) = past.wait(now) {
        return Ok(Some(seconds));
    }
    let next = past.one_more(of, now);
    tx.execute(sql!(
        "UPDATE account_login_failure
         SET failures = :failures, last_time = :now, blocked_until = :until
         WHERE bucket = :bucket",
        failures = next.failures,
        now = now,
        until = next.blocked_until,
        bucket = bucket.as_str(),
    ))
    .await?;
    Ok(None)
}

/// The password was right: the account's bucket is emptied, the address's loses this one attempt.
pub(crate) async fn forgive(tx: &mut Tx, login: &str, address: &str) -> Result<()> {
    let account = Of::Account.bucket(login);
    tx.execute(sql!(
        "UPDATE account_login_failure SET failures = 0, blocked_until = NULL
         WHERE bucket = :bucket",
        bucket = account.as_str(),
    ))
    .await?;
    let address = Of::Address.bucket(address);
    tx.execute(sql!(
        "UPDATE account_login_failure SET failures = failures - 1, blocked_until = NULL
         WHERE bucket = :bucket AND failures > 0",
        bucket = address.as_str(),
    ))
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        chrono::DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn pauses_begin_after_the_free_failures_double_and_have_an_end() {
        let mut past = Past { failures: 0, last: at(0), blocked_until: None };
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..13 {
            past = past.one_more(Of::Account, now);
            let pause = past.wait(now).unwrap_or(0);
            pauses.push(pause);
            now += TimeDelta::seconds(pause);
        }
        assert_eq!(pauses, [0, 0, 0, 0, 15, 30, 60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(past.wait(now), None);
    }

    #[test]
    fn an_hour_without_a_failure_is_forgotten() {
        let past = Past { failures: 40, last: at(0), blocked_until: None };
        assert_eq!(past.one_more(Of::Address, at(3601)).failures, 1);
        assert_eq!(past.one_more(Of::Address, at(3599)).failures, 41);
    }

    #[test]
    fn buckets_are_bounded_whatever_is_typed() {
        for text in ["", "ops", &"x".repeat(100_000)] {
            assert_eq!(Of::Account.bucket(text).len(), 5);
        }
        assert_ne!(Of::Account.bucket("a"), Of::Address.bucket("a"));
    }
}
