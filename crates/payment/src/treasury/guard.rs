//! Keeping two processes from creating the batches of one order at the same time.
//!
//! The order's row lock and the unique keys decide; this only keeps the second process from doing
//! the work in vain. Source: payment-flow.md: wait 5 s, lease 300 s, when Redis is configured.

use std::time::Duration;

use counterfoil_protocol::OrderId;

/// How long to wait for another creator.
pub const GUARD_WAIT: Duration = Duration::from_secs(5);
/// How long the right lasts when its holder dies.
pub const GUARD_LEASE: Duration = Duration::from_secs(300);

/// The right to create one order's batches; given back when dropped.
pub struct Guarded(Option<Box<dyn FnOnce() + Send + Sync>>);

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

impl Guarded {
    /// A right that nobody else has to be told about.
    pub fn free() -> Guarded {
        Guarded(None)
    }

    /// A right that is given back by `release`.
    pub fn held(release: impl FnOnce() + Send + Sync + 'static) -> Guarded {
        Guarded(Some(Box::new(release)))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}

/// Keeps other creators out.
#[async_trait::async_trait]
pub trait CreationGuard: Send + Sync {
    /// Waits for [`GUARD_WAIT`] at most; `None` = another one works. A guard that cannot be reached
    /// lets everybody in: the database decides anyway.
    async fn enter(&self, order: OrderId) -> Option<Guarded>;
}

/// No guard but the database's.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseOnly;

#[async_trait::async_trait]
impl CreationGuard for DatabaseOnly {
    async fn enter(&self, _order: OrderId) -> Option<Guarded> {
        Some(Guarded::free())
    }
}
