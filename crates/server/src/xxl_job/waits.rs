//! Waiting: by the machine's clock, or in tests by hand.

use std::time::Duration;

/// Between two registrations: an executor is dead after 90 s.
pub const BEAT_EVERY: Duration = Duration::from_secs(30);
/// Between two tries to tell results.
pub const TELL_EVERY: Duration = Duration::from_secs(30);
/// How long a round that is to stop may take to reach its next batch; then it is dropped, as if
/// its process had died.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The next registration.
    Beat,
    /// The next try to tell results.
    Tell,
    /// The end of the time that an admin gives a round.
    Timeout,
    /// The end of the time in which a round is to stop.
    Stop,
}

/// Lets time pass.
#[async_trait::async_trait]
pub trait Waits: Send + Sync + 'static {
    /// Returns when the time has passed.
    async fn wait(&self, what: Wait, time: Duration);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct RealTime;

#[async_trait::async_trait]
impl Waits for RealTime {
    async fn wait(&self, _what: Wait, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
