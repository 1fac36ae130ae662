//! One clock decides leases, due times and stale rows: the database's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// A UTC instant, microsecond precision.
pub type Instant = DateTime<Utc>;

/// Where "now" comes from. Read once a transaction and bound as `:now`.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The database's own clock.
    Database,
    /// Always this instant: `--now T` of a command, and tests.
    Frozen(Instant),
    /// The database's clock shifted: `serve --now T` starts at T and runs on.
    Shifted(TimeDelta),
    /// Set by hand: tests that let time pass, forwards and backwards.
    Manual(ManualClock),
}

/// A clock that stands until it is moved. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at an instant.
    pub fn at(instant: Instant) -> ManualClock {
        ManualClock(Arc::new(AtomicI64::new(instant.timestamp_micros())))
    }

    /// Moves the clock; a negative delta jumps back.
    pub fn advance(&self, by: TimeDelta) {
        self.0.fetch_add(by.num_microseconds().unwrap_or(0), Ordering::SeqCst);
    }

    /// What it shows.
    pub fn now(&self) -> Instant {
        DateTime::from_timestamp_micros(self.0.load(Ordering::SeqCst)).unwrap_or_default()
    }
}

impl Clock {
    /// The instant this clock shows while the database's clock shows `database`.
    pub fn at(&self, database: Instant) -> Instant {
        let shown = match self {
            Clock::Database => database,
            Clock::Frozen(instant) => *instant,
            Clock::Shifted(by) => database + *by,
            Clock::Manual(clock) => clock.now(),
        };
        shown.trunc_subsecs(6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_whole_microseconds() {
        let nanos = DateTime::from_timestamp(1, 123_456_789).unwrap();
        let shown = Clock::Frozen(nanos).at(Utc::now());
        assert_eq!(shown, DateTime::from_timestamp(1, 123_456_000).unwrap());
    }

    #[test]
    fn a_shifted_clock_runs_on_with_the_database() {
        let start = DateTime::from_timestamp(100, 0).unwrap();
        let clock = Clock::Shifted(TimeDelta::seconds(50));
        let later = start + TimeDelta::seconds(1);
        assert_eq!(clock.at(later) - clock.at(start), TimeDelta::seconds(1));
    }
}
