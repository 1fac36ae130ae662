//! Fault hooks: every commit has a name, and a test (or `COUNTERFOIL_FAULT`) can make the process
//! die just before or just after it.

use std::sync::{Arc, Mutex};

/// Which side of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing of the transaction is kept.
    Before,
    /// All of it is kept, and the process knows nothing of it.
    After,
}

/// What happens at the armed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAction {
    /// The call fails with [`crate::Error::Injected`], as if the process had ended.
    Crash,
    /// The process really ends, by SIGKILL's own effect: no destructor runs.
    Kill,
}

/// One armed fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    /// The commit point's name.
    pub point: String,
    /// Before or after the commit.
    pub side: Side,
    /// At which passage, counted from 1.
    pub passage: u32,
    /// What then.
    pub action: FaultAction,
}

impl FaultPlan {
    /// Reads `point:before|after:passage`, as in `COUNTERFOIL_FAULT`. The action is a real kill.
    pub fn parse(text: &str) -> Option<FaultPlan> {
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let side = match parts.next()? {
            "before" => Side::Before,
            "after" => Side::After,
            _ => return None,
        };
        let passage = parts.next()?.parse().ok().filter(|n| *n > 0)?;
        match parts.next() {
            None => Some(FaultPlan { point, side, passage, action: FaultAction::Kill }),
            Some(_) => None,
        }
    }
}

/// The armed fault, if any, and the commit points passed so far. One a [`crate::Db`].
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    armed: Option<FaultPlan>,
    recording: bool,
    passed: Vec<&'static str>,
}

impl Faults {
    /// Arms one fault; it replaces what was armed and disarms itself when it strikes.
    pub fn arm(&self, plan: FaultPlan) {
        self.state().armed = Some(plan);
    }

    /// Starts to remember the commit points passed, so that a test can visit each.
    pub fn record(&self) {
        let mut state = self.state();
        state.recording = true;
        state.passed.clear();
    }

    /// The commit points passed since [`Faults::record`], in order.
    pub fn passed(&self) -> Vec<&'static str> {
        self.state().passed.clone()
    }

    /// Whether the armed fault has not struck yet.
    pub fn is_armed(&self) -> bool {
        self.state().armed.is_some()
    }

    /// Called on both sides of every commit; true = behave as if the process had ended.
    pub(crate) fn strike(&self, point: &'static str, side: Side) -> bool {
        let mut state = self.state();
        if side == Side::Before && state.recording {
            state.passed.push(point);
        }
        let Some(plan) = state.armed.as_mut() else {
            return false;
        };
        if plan.point != point || plan.side != side {
            return false;
        }
        if plan.passage > 1 {
            plan.passage -= 1;
            return false;
        }
        let action = plan.action;
        state.armed = None;
        if action == FaultAction::Kill {
            // As close to SIGKILL as a process can do to itself: no unwinding, no flushing.
            std::process::abort();
        }
        true
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A poisoned lock only means that a test panicked while holding plain data.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_once_at_its_passage_and_its_side() {
        let faults = Faults::default();
        let plan = FaultPlan {
            point: "p".into(),
            side: Side::After,
            passage: 2,
            action: FaultAction::Crash,
        };
        faults.arm(plan);
        let strikes = [Side::Before, Side::After, Side::Before, Side::After, Side::After]
            .map(|side| faults.strike("p", side));
        assert_eq!(strikes, [false, false, false, true, false]);
    }

    #[test]
    fn a_fault_that_does_not_parse_is_refused() {
        for bad in ["", "p", "p:middle:1", "p:before:0", "p:before:x", "p:before:1:2"] {
            assert_eq!(FaultPlan::parse(bad), None, "{bad}");
        }
        assert_eq!(FaultPlan::parse("p:before:3").map(|p| p.passage), Some(3));
    }
}
