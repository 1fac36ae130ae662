//! Whether a publish record may be repaired. Pure.

use thiserror::Error;

/// What the decision rests on, read under the order's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The order's status code.
    pub order_status: i64,
    /// The data version it points to.
    pub pointer: i64,
    /// What the record of that version says; `None` = there is no record.
    pub build_status: Option<String>,
    /// A version beyond the pointer that says PUBLISHED.
    pub published_beyond: Option<i64>,
    /// Whether order and version name the same round.
    pub same_round: bool,
    /// The status of the version's session.
    pub session_status: String,
    /// Whether S06 was asked to let go of the version's locks.
    pub is_released: bool,
    /// The version's PAYABLE lines.
    pub payable_lines: i64,
    /// Its ACTIVE locks.
    pub active_locks: i64,
    /// Whether the session is marked as a publish incident.
    pub is_marked: bool,
    /// Whether it still has its `active_revise_key`.
    pub has_revise_key: bool,
    /// Whether it would be one still with the record repaired.
    pub stays_incident: bool,
}

/// What a repair writes besides PUBLISHED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The session's incident mark is taken off.
    pub clear_incident: bool,
    /// The session's `active_revise_key` is given back.
    pub clear_revise_key: bool,
    /// The publication stays an incident for another reason.
    pub incident_remains: bool,
}

/// What stands against a repair.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The order is cancelled.
    #[error("it is cancelled; nothing of it is published any more")]
    Cancelled,
    /// The pointer is 0.
    #[error("it was never published, so there is nothing to repair")]
    NeverPublished,
    /// Pointer and record agree.
    #[error("data version {0} says PUBLISHED and the order points to it: nothing to repair")]
    NothingToRepair(i64),
    /// V without P.
    #[error(
        "data version {beyond} says PUBLISHED but the order points to {pointer}: the pointer is \
         not moved by a command, a person must find out why first"
    )]
    RecordWithoutPointer {
        /// The published version.
        beyond: i64,
        /// Where the order points.
        pointer: i64,
    },
    /// The record is missing.
    #[error("it points to data version {0}, which has no version record with a session")]
    NoRecord(i64),
    /// Pointer and round were not moved together.
    #[error("order and version record disagree about the submit round")]
    OtherRound,
    /// The session says that the submission is not published.
    #[error("the version's session is {0}, not PUBLISHED_LOCK_SYNCING or COMPLETED")]
    SessionState(String),
    /// Its locks are given back.
    #[error("S06 was asked to release the version's locks: it must not be published")]
    Released,
    /// Completed, but not in line.
    #[error(
        "the session is COMPLETED, but the version has {lines} PAYABLE lines and {locks} ACTIVE \
         locks"
    )]
    NotInLine {
        /// The lines.
        lines: i64,
        /// The locks.
        locks: i64,
    },
}

/// Decides. Only P without V is repaired, and only where nothing else contradicts the pointer.
pub fn decide(facts: &Facts) -> Result<Plan, Refusal> {
    let pointer = facts.pointer;
    if facts.order_status == 90 {
        return Err(Refusal::Cancelled);
    }
    if let Some(beyond) = facts.published_beyond {
        return Err(Refusal::RecordWithoutPointer { beyond, pointer });
    }
    if pointer <= 0 {
        return Err(Refusal::NeverPublished);
    }
    match facts.build_status.as_deref() {
        None => return Err(Refusal::NoRecord(pointer)),
        Some("PUBLISHED") => return Err(Refusal::NothingToRepair(pointer)),
        Some(_) => {}
    }
    if !facts.same_round {
        return Err(Refusal::OtherRound);
    }
    if facts.is_released {
        return Err(Refusal::Released);
    }
    let completed = match facts.session_status.as_str() {
        "COMPLETED" => true,
        "PUBLISHED_LOCK_SYNCING" => false,
        other => return Err(Refusal::SessionState(other.to_owned())),
    };
    // Before COMPLETED S04 will verify them itself.
    if completed && facts.payable_lines != facts.active_locks {
        return Err(Refusal::NotInLine { lines: facts.payable_lines, locks: facts.active_locks });
    }
    let settled = !facts.stays_incident;
    Ok(Plan {
        clear_incident: facts.is_marked && settled,
        clear_revise_key: facts.has_revise_key && completed && settled,
        incident_remains: facts.stays_incident,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident() -> Facts {
        Facts {
            order_status: 20,
            pointer: 2,
            build_status: Some("BUILT".into()),
            published_beyond: None,
            same_round: true,
            session_status: "COMPLETED".into(),
            is_released: false,
            payable_lines: 3,
            active_locks: 3,
            is_marked: true,
            has_revise_key: true,
            stays_incident: false,
        }
    }

    fn plan(clear_incident: bool, clear_revise_key: bool, incident_remains: bool) -> Plan {
        Plan { clear_incident, clear_revise_key, incident_remains }
    }

    #[test]
    fn a_pointer_without_its_record_is_repaired() {
        type Case = (&'static str, fn(&mut Facts), Plan);
        let table: &[Case] = &[
            ("completed", |_| {}, plan(true, true, false)),
            (
                "still syncing: S04 gives the key back itself",
                |f| {
                    f.session_status = "PUBLISHED_LOCK_SYNCING".into();
                    f.active_locks = 0;
                },
                plan(true, false, false),
            ),
            (
                "not recorded, and without a key",
                |f| {
                    f.is_marked = false;
                    f.has_revise_key = false;
                },
                plan(false, false, false),
            ),
            ("a stranger's revision", |f| f.stays_incident = true, plan(false, false, true)),
            ("rejected meanwhile", |f| f.order_status = 30, plan(true, true, false)),
            ("BUILDING", |f| f.build_status = Some("BUILDING".into()), plan(true, true, false)),
            (
                "BUILD_FAILED, nothing released",
                |f| f.build_status = Some("BUILD_FAILED".into()),
                plan(true, true, false),
            ),
        ];
        for (name, change, expected) in table {
            let mut facts = incident();
            change(&mut facts);
            assert_eq!(decide(&facts), Ok(*expected), "{name}");
        }
    }

    #[test]
    fn every_other_state_is_refused_with_its_reason() {
        type Case = (&'static str, fn(&mut Facts), Refusal);
        let table: &[Case] = &[
            ("cancelled", |f| f.order_status = 90, Refusal::Cancelled),
            (
                "never published",
                |f| {
                    f.pointer = 0;
                    f.build_status = None;
                },
                Refusal::NeverPublished,
            ),
            (
                "in order",
                |f| f.build_status = Some("PUBLISHED".into()),
                Refusal::NothingToRepair(2),
            ),
            (
                "V without P",
                |f| {
                    f.build_status = Some("PUBLISHED".into());
                    f.published_beyond = Some(3);
                },
                Refusal::RecordWithoutPointer { beyond: 3, pointer: 2 },
            ),
            (
                "V without P, never published before",
                |f| {
                    f.pointer = 0;
                    f.build_status = None;
                    f.published_beyond = Some(1);
                },
                Refusal::RecordWithoutPointer { beyond: 1, pointer: 0 },
            ),
            ("no record", |f| f.build_status = None, Refusal::NoRecord(2)),
            ("another round", |f| f.same_round = false, Refusal::OtherRound),
            ("locks given back", |f| f.is_released = true, Refusal::Released),
            (
                "submission failed",
                |f| f.session_status = "SUBMIT_FAILED".into(),
                Refusal::SessionState("SUBMIT_FAILED".into()),
            ),
            (
                "completed, not in line",
                |f| f.active_locks = 2,
                Refusal::NotInLine { lines: 3, locks: 2 },
            ),
        ];
        for (name, change, expected) in table {
            let mut facts = incident();
            change(&mut facts);
            assert_eq!(decide(&facts).as_ref(), Err(expected), "{name}");
        }
    }
}
