//! One clock decides leases, due times and stale rows: the database's.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// A UTC instant, microsecond precision.
pub type Instant = DateTime<Utc>;

/// Where "now" comes from. Read once a transaction and bound as `:now`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The database's own clock.
    Database,
    /// Always this instant: `--now T` of a command, and tests.
    Frozen(Instant),
    /// The database's clock shifted: `serve --now T` starts at T and runs on.
    Shifted(TimeDelta),
}

impl Clock {
    /// The instant this clock shows while the database's clock shows `database`.
    pub fn at(self, database: Instant) -> Instant {
        let shown = match self {
            Clock::Database => database,
            Clock::Frozen(instant) => instant,
            Clock::Shifted(by) => database + by,
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
