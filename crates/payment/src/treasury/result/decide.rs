//! What a report means for each detail: pure.

use std::collections::HashMap;

use crate::treasury::port::{ReportEntry, Reported, ResultReport};

/// One line of a push, with how its detail stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) reference: String,
    pub(super) amount: i64,
    pub(super) detail: i64,
    pub(super) line: i64,
    pub(super) push_status: String,
    pub(super) pay_status: Option<String>,
    /// The detail's newest push.
    pub(super) push: Option<i64>,
}

/// What came of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It changed the detail.
    Applied,
    /// The detail says so already.
    Unchanged,
    /// It repeats another entry of the same report.
    Duplicate,
    /// The push has no such line.
    Unknown,
    /// Two entries of the report say different things of the line: none of them counts.
    Contradiction,
    /// The amount is not the one that was pushed.
    AmountDiffers,
    /// It says paid of what was reported as failed: a person must look.
    PaidAfterFailed,
    /// The detail was pushed again since: a person must look if it says paid.
    Superseded,
}

impl Outcome {
    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Applied => "APPLIED",
            Outcome::Unchanged => "UNCHANGED",
            Outcome::Duplicate => "DUPLICATE",
            Outcome::Unknown => "UNKNOWN_LINE",
            Outcome::Contradiction => "CONTRADICTION",
            Outcome::AmountDiffers => "AMOUNT_DIFFERS",
            Outcome::PaidAfterFailed => "PAID_AFTER_FAILED",
            Outcome::Superseded => "SUPERSEDED",
        }
    }

    /// Whether it could not be applied.
    pub fn is_refused(self) -> bool {
        !matches!(self, Outcome::Applied | Outcome::Unchanged | Outcome::Duplicate)
    }
}

/// What happens to one detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) detail: i64,
    pub(super) line: i64,
    pub(super) status: Reported,
    /// The line's new status, where the entry decides about the money.
    pub(super) pays: Option<Reported>,
    pub(super) reason_code: Option<String>,
    pub(super) reason: Option<String>,
}

/// A report's meaning.
pub(super) struct Decision {
    pub(super) entries: Vec<(ReportEntry, Outcome, Option<i64>)>,
    pub(super) changes: Vec<Change>,
}

/// The push that a report is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reviewed {
    pub(super) push: i64,
    /// It has its verdict.
    pub(super) settled: bool,
}

pub(super) fn decide(items: &[Item], report: &ResultReport, about: Reviewed) -> Decision {
    let entries = named(items, report);
    let by_reference: HashMap<&str, &Item> =
        items.iter().map(|item| (item.reference.as_str(), item)).collect();
    let mut said: HashMap<&str, Vec<Reported>> = HashMap::new();
    for entry in &entries {
        said.entry(entry.end_to_end_id.as_str()).or_default().push(entry.status);
    }
    let mut decision = Decision { entries: Vec::new(), changes: Vec::new() };
    let mut seen = HashMap::new();
    for entry in &entries {
        let reference = entry.end_to_end_id.as_str();
        let item = by_reference.get(reference).copied();
        let statuses = said.get(reference).map(Vec::as_slice).unwrap_or_default();
        let outcome = if statuses.iter().any(|status| *status != entry.status) {
            Outcome::Contradiction
        } else if seen.insert(reference, ()).is_some() {
            Outcome::Duplicate
        } else {
            item.map_or(Outcome::Unknown, |item| judge(item, entry, about))
        };
        if let (Outcome::Applied, Some(item)) = (outcome, item) {
            decision.changes.push(change(item, entry));
        }
        decision.entries.push((entry.clone(), outcome, item.map(|item| item.detail)));
    }
    decision
}

/// The entries; a message refused as a whole names every line of it.
fn named(items: &[Item], report: &ResultReport) -> Vec<ReportEntry> {
    match &report.group {
        Some(group) if group.is_rejected && report.entries.is_empty() => items
            .iter()
            .map(|item| ReportEntry {
                end_to_end_id: item.reference.clone(),
                status: Reported::Rejected,
                amount: None,
                reason_code: group.reason_code.clone(),
                reason: group.reason.clone(),
            })
            .collect(),
        _ => report.entries.clone(),
    }
}

fn judge(item: &Item, entry: &ReportEntry, about: Reviewed) -> Outcome {
    if entry.amount.is_some_and(|amount| amount.0 != item.amount) {
        return Outcome::AmountDiffers;
    }
    if item.push != Some(about.push) {
        return Outcome::Superseded;
    }
    // It waits to be pushed again, after a refusal or once a person has put the payee right: only
    // money that has arrived after all counts, and it takes the detail out of the next push.
    let waits_again = about.settled && matches!(&*item.push_status, "WAIT_PUSH" | "WAIT_DATA_FIX");
    if waits_again && entry.status != Reported::Paid {
        return Outcome::Unchanged;
    }
    let pay = item.pay_status.as_deref();
    match (entry.status, pay) {
        (Reported::Paid, Some("PAID")) | (Reported::Rejected, Some("PAY_FAILED")) => {
            Outcome::Unchanged
        }
        (Reported::Paid, Some("PAY_FAILED")) => Outcome::PaidAfterFailed,
        (Reported::Pending, Some(_)) => Outcome::Unchanged,
        _ => Outcome::Applied,
    }
}

fn change(item: &Item, entry: &ReportEntry) -> Change {
    let decides = entry.status != Reported::Pending;
    Change {
        detail: item.detail,
        line: item.line,
        status: entry.status,
        pays: decides.then_some(entry.status),
        reason_code: entry.reason_code.clone(),
        reason: entry.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_protocol::Fen;

    const PUSH: i64 = 9;

    fn item(number: i64, push_status: &str, pay_status: Option<&str>) -> Item {
        Item {
            reference: format!("E{number}"),
            amount: 100,
            detail: number,
            line: number + 100,
            push_status: push_status.into(),
            pay_status: pay_status.map(str::to_owned),
            push: Some(PUSH),
        }
    }

    fn entry(reference: &str, status: Reported) -> ReportEntry {
        let end_to_end_id = reference.to_owned();
        ReportEntry { end_to_end_id, status, amount: None, reason_code: None, reason: None }
    }

    fn report(entries: Vec<ReportEntry>) -> ResultReport {
        ResultReport { report_id: "R".into(), message_id: "M".into(), group: None, entries }
    }

    fn outcomes(items: &[Item], entries: Vec<ReportEntry>) -> Vec<Outcome> {
        let about = Reviewed { push: PUSH, settled: true };
        let decision = decide(items, &report(entries), about);
        decision.entries.into_iter().map(|(_, outcome, _)| outcome).collect()
    }

    #[test]
    fn every_standing_meets_every_report() {
        use Outcome::{Applied, PaidAfterFailed, Unchanged};
        let table = [
            ("PUSHED", Some("PAYING"), [Unchanged, Applied, Applied]),
            ("PUSHED", Some("PAID"), [Unchanged, Unchanged, Applied]),
            ("PUSHED", Some("PAY_FAILED"), [Unchanged, PaidAfterFailed, Unchanged]),
            ("REJECTED", Some("PAY_FAILED"), [Unchanged, PaidAfterFailed, Unchanged]),
            ("WAIT_PUSH", None, [Unchanged, Applied, Unchanged]),
            ("WAIT_DATA_FIX", None, [Unchanged, Applied, Unchanged]),
        ];
        for (push_status, pay_status, expected) in table {
            let statuses = [Reported::Pending, Reported::Paid, Reported::Rejected];
            for (status, expected) in statuses.into_iter().zip(expected) {
                let items = [item(1, push_status, pay_status)];
                let found = outcomes(&items, vec![entry("E1", status)]);
                assert_eq!(found, [expected], "{push_status} {pay_status:?} {status:?}");
            }
        }
    }

    #[test]
    fn a_report_settles_a_line_whose_push_has_no_verdict() {
        let about = Reviewed { push: PUSH, settled: false };
        for status in [Reported::Pending, Reported::Paid, Reported::Rejected] {
            let items = [item(1, "WAIT_PUSH", None)];
            let decision = decide(&items, &report(vec![entry("E1", status)]), about);
            assert_eq!(decision.entries[0].1, Outcome::Applied, "{status:?}");
        }
    }

    #[test]
    fn strangers_repeats_contradictions_and_other_amounts_are_named_and_not_applied() {
        let items = [1, 2, 3, 4].map(|number| item(number, "PUSHED", Some("PAYING")));
        let amount = Some(Fen(101));
        let entries = vec![
            entry("E9", Reported::Paid),
            entry("E1", Reported::Paid),
            entry("E1", Reported::Paid),
            entry("E2", Reported::Paid),
            entry("E2", Reported::Rejected),
            ReportEntry { amount, ..entry("E3", Reported::Paid) },
        ];
        use Outcome::{AmountDiffers, Applied, Contradiction, Duplicate, Unknown};
        assert_eq!(
            outcomes(&items, entries),
            [Unknown, Applied, Duplicate, Contradiction, Contradiction, AmountDiffers]
        );
    }

    #[test]
    fn a_report_about_an_older_push_decides_nothing() {
        let items = [Item { push: Some(PUSH + 1), ..item(1, "PUSHED", Some("PAYING")) }];
        for status in [Reported::Pending, Reported::Paid, Reported::Rejected] {
            assert_eq!(outcomes(&items, vec![entry("E1", status)]), [Outcome::Superseded]);
        }
    }
}
