//! What to do with a chunk next: pure.

use chrono::TimeDelta;
use counterfoil_db::Instant;
use serde::Serialize;

/// How long a chunk that a person is sending is left alone: longer than any delivery takes.
pub(super) const SENDING_FOR: TimeDelta = TimeDelta::minutes(10);

/// `status` of a row of the external log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryStatus {
    /// To be sent, or being sent.
    WaitProcess,
    /// The partner accepted it.
    Success,
    /// Certainly not accepted.
    Fail,
    /// Sent, no verdict.
    Unknown,
    /// There is no address.
    Skipped,
}

impl DeliveryStatus {
    /// All of them.
    pub const ALL: [DeliveryStatus; 5] = [
        DeliveryStatus::WaitProcess,
        DeliveryStatus::Success,
        DeliveryStatus::Fail,
        DeliveryStatus::Unknown,
        DeliveryStatus::Skipped,
    ];

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::WaitProcess => "WAIT_PROCESS",
            DeliveryStatus::Success => "SUCCESS",
            DeliveryStatus::Fail => "FAIL",
            DeliveryStatus::Unknown => "UNKNOWN",
            DeliveryStatus::Skipped => "SKIPPED",
        }
    }

    /// The status with this stored value.
    pub fn of(text: &str) -> Option<DeliveryStatus> {
        DeliveryStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// The stored value's status; a check constraint keeps others out.
    pub(super) fn stored(text: &str) -> DeliveryStatus {
        DeliveryStatus::of(text).unwrap_or(DeliveryStatus::Unknown)
    }
}

/// What a partner wants done on trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryPolicy {
    /// Nothing is sent twice by itself.
    Never,
    /// What certainly was not accepted is sent again.
    #[default]
    Definite,
    /// What has no verdict is sent again too: the partner tells the same key apart.
    Idempotent,
}

impl RetryPolicy {
    /// The stored value's policy; a check constraint keeps others out.
    pub fn stored(text: &str) -> RetryPolicy {
        match text {
            "never" => RetryPolicy::Never,
            "idempotent" => RetryPolicy::Idempotent,
            _ => RetryPolicy::Definite,
        }
    }

    /// Whether a chunk that ended so may be sent again without a person.
    pub fn allows(self, ended: DeliveryStatus) -> bool {
        match ended {
            DeliveryStatus::Fail => self != RetryPolicy::Never,
            DeliveryStatus::Unknown => self == RetryPolicy::Idempotent,
            _ => false,
        }
    }
}

/// A chunk as its row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkFacts {
    pub(super) status: DeliveryStatus,
    pub(super) attempts: i64,
    pub(super) sent: Option<Instant>,
    /// Whether a person sent it last.
    pub(super) by_operator: bool,
}

impl ChunkFacts {
    /// Whether it may have left the house and nothing was written of its answer.
    fn may_be_on_its_way(&self) -> bool {
        self.status == DeliveryStatus::WaitProcess && (self.attempts > 0 || self.sent.is_some())
    }

    /// Until when a person's delivery is waited for.
    pub(super) fn held_until(&self, now: Instant) -> Option<Instant> {
        let until = self.sent.filter(|_| self.may_be_on_its_way() && self.by_operator)?;
        Some(until + SENDING_FOR).filter(|until| *until > now)
    }

    /// Until when anybody's delivery may still be under way.
    pub(super) fn under_way_until(&self, now: Instant) -> Option<Instant> {
        let until = self.sent.filter(|_| self.may_be_on_its_way())?;
        Some(until + SENDING_FOR).filter(|until| *until > now)
    }
}

/// What the task does with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Send it.
    Send,
    /// Its sender died: nobody knows. Write that down first.
    Lost,
    /// There is nobody to send it to.
    Skip,
    /// A person is sending it.
    Wait,
    /// Settled, or not to be sent again without a person.
    Leave,
}

/// Decides. The task owns the fence, so whoever sent an unanswered chunk under it is dead or will
/// write nothing any more.
pub(super) fn step(
    facts: ChunkFacts,
    policy: RetryPolicy,
    has_address: bool,
    now: Instant,
) -> Step {
    match facts.status {
        DeliveryStatus::Success | DeliveryStatus::Skipped => Step::Leave,
        DeliveryStatus::WaitProcess if facts.held_until(now).is_some() => Step::Wait,
        DeliveryStatus::WaitProcess if facts.may_be_on_its_way() => Step::Lost,
        DeliveryStatus::WaitProcess if has_address => Step::Send,
        DeliveryStatus::WaitProcess => Step::Skip,
        ended if policy.allows(ended) && has_address => Step::Send,
        _ => Step::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        chrono::DateTime::from_timestamp(1_788_000_000, 0).unwrap()
    }

    fn facts(status: DeliveryStatus, attempts: i64) -> ChunkFacts {
        let sent = (attempts > 0).then(now);
        ChunkFacts { status, attempts, sent, by_operator: false }
    }

    #[test]
    fn each_policy_sends_again_what_it_names_and_nothing_else() {
        use DeliveryStatus::{Fail, Skipped, Success, Unknown, WaitProcess};
        use RetryPolicy::{Definite, Idempotent, Never};
        use Step::{Leave, Lost, Send};
        let table = [
            (WaitProcess, 0, [Send, Send, Send]),
            (WaitProcess, 1, [Lost, Lost, Lost]),
            (Fail, 1, [Leave, Send, Send]),
            (Unknown, 1, [Leave, Leave, Send]),
            (Success, 1, [Leave, Leave, Leave]),
            (Skipped, 0, [Leave, Leave, Leave]),
        ];
        for (status, attempts, steps) in table {
            for (policy, expected) in [Never, Definite, Idempotent].into_iter().zip(steps) {
                let decided = step(facts(status, attempts), policy, true, now());
                assert_eq!(decided, expected, "{status:?} {policy:?}");
            }
        }
    }

    #[test]
    fn without_an_address_only_what_was_never_sent_is_skipped() {
        let without =
            |status, attempts| step(facts(status, attempts), RetryPolicy::Idempotent, false, now());
        assert_eq!(without(DeliveryStatus::WaitProcess, 0), Step::Skip);
        assert_eq!(without(DeliveryStatus::WaitProcess, 1), Step::Lost);
        assert_eq!(without(DeliveryStatus::Unknown, 1), Step::Leave);
        assert_eq!(without(DeliveryStatus::Fail, 1), Step::Leave);
    }

    #[test]
    fn a_persons_delivery_is_waited_for_ten_minutes() {
        let sending = ChunkFacts { by_operator: true, ..facts(DeliveryStatus::WaitProcess, 2) };
        let at = |minutes| {
            let now = now() + TimeDelta::minutes(minutes);
            step(sending, RetryPolicy::Definite, true, now)
        };
        assert_eq!(at(0), Step::Wait);
        assert_eq!(at(9), Step::Wait);
        assert_eq!(at(10), Step::Lost);
    }

    #[test]
    fn a_row_written_by_hand_with_only_a_time_of_sending_counts_as_sent() {
        let facts = ChunkFacts { attempts: 0, ..facts(DeliveryStatus::WaitProcess, 1) };
        assert_eq!(step(facts, RetryPolicy::Definite, true, now()), Step::Lost);
    }
}
