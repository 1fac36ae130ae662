//! Statements as they ran: what plan tests and profiles look at, instead of copies that age.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Query;

/// Remembers every statement that runs on a [`crate::Db`] opened with it
/// ([`crate::Settings::recorder`]), with its values. The clock's reading, BEGIN and COMMIT are no
/// statements of ours and are left out. Without a recorder a statement pays one look at an
/// `Option`.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Query>>>);

impl Recorder {
    /// What ran since the last call, in order.
    pub fn take(&self) -> Vec<Query> {
        std::mem::take(&mut *self.statements())
    }

    pub(crate) fn note(&self, query: &Query) {
        self.statements().push(query.clone());
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, Vec<Query>> {
        // A poisoned lock only means that a test panicked while holding plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the commits of a [`crate::Db`] opened with it ([`crate::Settings::pulse`]): how far long
/// work has come, for people who watch; and how long transactions take, for benchmarks.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Beats>);

#[derive(Debug, Default)]
struct Beats {
    commits: AtomicU64,
    longest: Mutex<BTreeMap<&'static str, Duration>>,
}

impl Pulse {
    /// Commits so far.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::Relaxed)
    }

    /// The longest transaction so far of each commit point, from its beginning to the confirmed
    /// commit.
    pub fn longest(&self) -> BTreeMap<&'static str, Duration> {
        self.by_point().clone()
    }

    pub(crate) fn beat(&self, point: &'static str, took: Duration) {
        self.0.commits.fetch_add(1, Ordering::Relaxed);
        let mut longest = self.by_point();
        let known = longest.entry(point).or_default();
        *known = took.max(*known);
    }

    fn by_point(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Duration>> {
        self.0.longest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
