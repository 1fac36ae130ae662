//! What is counted, by names of a fixed number: handlers, stages, tables and rules, never ids.
//! Without a recorder in the process, nothing is.

use metrics::counter;

use crate::Kind;
use crate::round::Summary;

/// Tasks and turns by handler and outcome.
pub const OUTCOMES: &str = "counterfoil_outcomes_total";
/// Kicks by stage and what became of them.
pub const KICKS: &str = "counterfoil_kicks_total";
/// Tasks and leased rows taken over from whoever died.
pub const TAKEOVERS: &str = "counterfoil_takeovers_total";
/// Rules by name and verdict.
pub const RULE_VERDICTS: &str = "counterfoil_rule_verdicts_total";

/// What a round or a kick did.
pub(crate) fn outcomes(summary: &Summary) {
    let counts = [
        ("succeeded", summary.succeeded),
        ("handed_over", summary.handed_over),
        ("skipped", summary.skipped),
        ("failed", summary.failed),
        ("cancelled", summary.cancelled),
    ];
    for (outcome, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let handler = summary.handler.clone();
        counter!(OUTCOMES, "handler" => handler, "outcome" => outcome).increment(count.into());
    }
}

/// What became of a kick.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KickEnd {
    /// It won a task.
    Hit,
    /// The task was not to be had any more.
    Miss,
    /// The pool was full or closed; the scan finds the task.
    Dropped,
}

pub(crate) fn kick(kind: &Kind, end: KickEnd) {
    let end = match end {
        KickEnd::Hit => "hit",
        KickEnd::Miss => "miss",
        KickEnd::Dropped => "dropped",
    };
    counter!(KICKS, "stage" => kind.stage, "result" => end).increment(1);
}

/// `of` is a handler's tasks or a table's rows.
pub(crate) fn takeover(of: &'static str) {
    counter!(TAKEOVERS, "of" => of).increment(1);
}

/// The verdict on a rule: `held`, `broken` or `unreadable`.
pub(crate) fn rule(name: &'static str, verdict: &'static str) {
    counter!(RULE_VERDICTS, "rule" => name, "verdict" => verdict).increment(1);
}
