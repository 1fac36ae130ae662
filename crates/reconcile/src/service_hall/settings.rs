//! `[svchall.answer-reconcile]`, as the domain takes it.

use chrono::TimeDelta;

/// What the hall is told. The defaults are what ships.
#[derive(Debug, Clone)]
pub struct HallSettings {
    /// Whether work runs; receiving does not ask.
    pub enabled: bool,
    /// Our own app key: what orders must be for.
    pub app_key: String,
    /// The centre's app key: who orders must be signed by. Empty = every order is refused.
    pub source_app_key: String,
    /// How long a worker holds a task without a sign of life.
    pub lease: TimeDelta,
    /// Tries of one repair.
    pub max_repair_retries: u32,
    /// Candidates for retirement; one more, and none is retired.
    pub max_pending_extras: usize,
    /// Error items kept.
    pub max_error_items: usize,
    /// Tasks that one scan works on.
    pub max_work_per_scan: u32,
    /// Rounds between two signs of life to the centre.
    pub progress_report_rounds: u32,
    /// Failures in a row before a task stalls.
    pub retry_limit: i64,
    /// The first pause; it doubles.
    pub backoff_base: TimeDelta,
    /// The longest pause.
    pub backoff_cap: TimeDelta,
    /// Rows read of each side in a round.
    pub page_size: u32,
    /// How ranges are compared before rows are.
    pub narrowing: Narrowing,
}

/// How the hall finds the ranges that differ.
#[derive(Debug, Clone)]
pub struct Narrowing {
    /// Whether it does; without it every row is compared.
    pub enabled: bool,
    /// Rows of ours that are looked at together: what is held in memory.
    pub stretch_rows: usize,
    /// Rows of ours in a range that is asked about first.
    pub span_rows: usize,
    /// Rows of ours in a part of such a range.
    pub part_rows: usize,
    /// With no more rows on one side, rows are compared.
    pub leaf_rows: usize,
}

impl Default for Narrowing {
    fn default() -> Narrowing {
        Narrowing {
            enabled: true,
            stretch_rows: 262_144,
            span_rows: 16_384,
            part_rows: 256,
            leaf_rows: 4,
        }
    }
}

impl Default for HallSettings {
    fn default() -> HallSettings {
        HallSettings {
            enabled: false,
            app_key: String::new(),
            source_app_key: String::new(),
            lease: TimeDelta::seconds(900),
            max_repair_retries: 3,
            max_pending_extras: 500,
            max_error_items: 50,
            max_work_per_scan: 1,
            progress_report_rounds: 10,
            retry_limit: 6,
            backoff_base: TimeDelta::seconds(60),
            backoff_cap: TimeDelta::seconds(1800),
            page_size: 200,
            narrowing: Narrowing::default(),
        }
    }
}
