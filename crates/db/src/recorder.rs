//! Statements as they ran: what plan tests and profiles look at, instead of copies that age.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
/// work has come, for people who watch.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Commits so far.
    pub fn commits(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
