//! One trigger at work: its round, its time, and whoever stops it.

use std::sync::{Arc, Mutex, PoisonError};

use counterfoil_task::{Engine, RoundError, Shutdown, ShutdownHandle, Summary};

use super::protocol::{FAILURE, SUCCESS, TIMED_OUT, Trigger};
use super::waits::{STOP_WITHIN, Wait, Waits};

/// Why a round was stopped. The first reason counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A person killed it.
    Killed,
    /// A later trigger took its place.
    Covered,
    /// Its time was over.
    TimedOut,
    /// The process ends.
    Stopping,
}

impl StopReason {
    fn code(self) -> i32 {
        match self {
            StopReason::TimedOut => TIMED_OUT,
            StopReason::Killed | StopReason::Covered | StopReason::Stopping => FAILURE,
        }
    }

    /// What the admin is told.
    pub fn told(self) -> &'static str {
        match self {
            StopReason::Killed => "killed",
            StopReason::Covered => "a later trigger took its place (COVER_EARLY)",
            StopReason::TimedOut => "its time was over (executorTimeout)",
            StopReason::Stopping => "the executor stops; what was committed stands",
        }
    }
}

/// The way to stop one round.
#[derive(Debug, Clone)]
pub struct Stop(Arc<(ShutdownHandle, Mutex<Option<StopReason>>)>);

impl Stop {
    /// A way to stop a round that runs under the other half.
    pub fn new() -> (Stop, Shutdown) {
        let (handle, shutdown) = Shutdown::new();
        (Stop(Arc::new((handle, Mutex::new(None)))), shutdown)
    }

    /// Asks the round to stop at its next batch.
    pub fn ask(&self, reason: StopReason) {
        let (handle, first) = &*self.0;
        first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        handle.ask();
    }

    /// Why it was asked.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a trigger ended, for the admin.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// 200, 500 or 502.
    pub code: i32,
    /// What a person reads.
    pub message: String,
}

/// Runs a trigger's round to its end, or until it is stopped.
pub async fn run(
    engine: &Engine,
    trigger: &Trigger,
    stop: &Stop,
    mut shutdown: Shutdown,
    waits: &dyn Waits,
) -> Outcome {
    let engine = engine.under(shutdown.clone());
    let round = engine.round(trigger.handler(), trigger.parameter());
    tokio::pin!(round);
    let timeout = async {
        match trigger.timeout() {
            Some(time) => waits.wait(Wait::Timeout, time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = &mut round => return conclude(done, stop.reason()),
        () = timeout => stop.ask(StopReason::TimedOut),
        () = shutdown.asked() => {}
    }
    // It hands its task back at the next batch; nothing is counted against the task.
    tokio::select! {
        done = &mut round => conclude(done, stop.reason()),
        () = waits.wait(Wait::Stop, STOP_WITHIN) => {
            let reason = stop.reason().unwrap_or(StopReason::Stopping);
            let told = reason.told();
            let message = format!("{told}; the round did not stop in time and was dropped");
            Outcome { code: reason.code(), message }
        }
    }
}

/// What the admin is told: a round that was stopped is no success, whatever it did by then.
fn conclude(done: Result<Summary, RoundError>, stopped: Option<StopReason>) -> Outcome {
    let (code, message) = match done {
        Ok(summary) => {
            let code = if summary.is_success() { SUCCESS } else { FAILURE };
            (code, shown(&summary))
        }
        Err(RoundError::Lost { done, source }) => {
            (FAILURE, format!("the round ended early: {source}; by then {}", shown(&done)))
        }
        Err(error) => (FAILURE, error.to_string()),
    };
    match stopped {
        None => Outcome { code, message },
        Some(reason) => {
            Outcome { code: reason.code(), message: format!("{}; {message}", reason.told()) }
        }
    }
}

fn shown(summary: &Summary) -> String {
    serde_json::to_string(summary).unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(failed: u32) -> Summary {
        Summary { handler: "h".into(), failed, ..Summary::default() }
    }

    #[test]
    fn only_a_round_without_failures_that_nobody_stopped_is_a_success() {
        let table = [
            (Ok(summary(0)), None, SUCCESS),
            (Ok(summary(1)), None, FAILURE),
            (Ok(summary(0)), Some(StopReason::TimedOut), TIMED_OUT),
            (Ok(summary(1)), Some(StopReason::TimedOut), TIMED_OUT),
            (Ok(summary(0)), Some(StopReason::Killed), FAILURE),
            (Ok(summary(0)), Some(StopReason::Covered), FAILURE),
            (Ok(summary(0)), Some(StopReason::Stopping), FAILURE),
            (Err(RoundError::UnknownHandler("x".into())), None, FAILURE),
        ];
        for (done, stopped, code) in table {
            let outcome = conclude(done, stopped);
            assert_eq!(outcome.code, code, "{stopped:?} {}", outcome.message);
        }
    }

    #[test]
    fn the_first_reason_to_stop_counts() {
        let (stop, shutdown) = Stop::new();
        assert_eq!(stop.reason(), None);
        stop.ask(StopReason::TimedOut);
        stop.ask(StopReason::Killed);
        assert!(shutdown.is_asked());
        assert_eq!(stop.reason(), Some(StopReason::TimedOut));
    }
}
