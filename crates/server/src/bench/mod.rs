//! Benchmarks: our own throughput with the database's own floor beside it, as a ratio.
//!
//! Each run makes a scratch database beside the configured one and takes it away again, so that a
//! production database is never touched. Figures in the docs come from these commands.

pub mod activate;
pub mod callback;
pub mod reconcile;
mod revise;
pub mod scratch;
pub mod tasks;

/// The peak resident memory of this process in KiB, from the kernel's own account; 0 elsewhere.
pub fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0)
}

/// `ours / floor` with two decimals, in whole hundredths: ratios need no floats.
pub fn ratio(ours: std::time::Duration, floor: std::time::Duration) -> String {
    let hundredths = ours.as_micros() * 100 / floor.as_micros().max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_ratio_is_shown_with_two_decimals() {
        let ms = Duration::from_millis;
        assert_eq!(super::ratio(ms(150), ms(100)), "1.50");
        assert_eq!(super::ratio(ms(99), ms(100)), "0.99");
    }
}
