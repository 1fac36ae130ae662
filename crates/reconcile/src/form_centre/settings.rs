//! `[fc.answer.reconcile]`, as the domain takes it.

use chrono::TimeDelta;

/// What the centre is told. The defaults are what ships.
#[derive(Debug, Clone)]
pub struct CentreSettings {
    /// Our own app key: what envelopes and orders name as their source.
    pub source_app_key: String,
    /// Whether tasks are made on schedule.
    pub schedule_enabled: bool,
    /// Whether manifests, dispatch and recovery of leases run.
    pub dispatch_enabled: bool,
    /// Rows of a page when the caller names no size.
    pub page_size: u32,
    /// Rows of a manifest at most.
    pub max_rows: i64,
    /// Pages of a manifest at most.
    pub max_pages: i64,
    /// Tasks that one run of the schedule, or one request for ALL, makes at most.
    pub max_tasks_per_run: u32,
    /// How long a hall may go without a sign of life.
    pub lease: TimeDelta,
    /// Dispatches of one task, the first included.
    pub max_dispatch_attempts: i64,
    /// The first pause; it doubles.
    pub backoff_base: TimeDelta,
    /// The longest pause.
    pub backoff_cap: TimeDelta,
    /// Error items kept of a report.
    pub max_error_items: usize,
    /// Characters of error items kept of a report.
    pub max_error_chars: usize,
}

impl Default for CentreSettings {
    fn default() -> CentreSettings {
        CentreSettings {
            source_app_key: String::new(),
            schedule_enabled: false,
            dispatch_enabled: false,
            page_size: 200,
            max_rows: 20_000,
            max_pages: 200,
            max_tasks_per_run: 20,
            lease: TimeDelta::seconds(900),
            max_dispatch_attempts: 4,
            backoff_base: TimeDelta::seconds(60),
            backoff_cap: TimeDelta::seconds(3600),
            max_error_items: 50,
            max_error_chars: 8000,
        }
    }
}

impl CentreSettings {
    /// The pause after the `attempt`-th dispatch came to nothing: min(cap, base × 2^(attempt−1)).
    pub fn backoff(&self, attempt: i64) -> TimeDelta {
        crate::refusal::backoff(self.backoff_base, self.backoff_cap, attempt - 1)
    }
}
