//! Whether a version is the one to be reviewed: a pure decision, taken before the centre is asked
//! and again after it has answered.

use super::AuditPlanError;
use crate::VersionContext;

/// Where a version stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is published, current and in line: its plan may be opened.
    Ready,
    /// The order went on without it, for good: nothing is to be written.
    MovedOn(String),
    /// Something is wrong or not done yet: a failure, seen and tried again.
    NotReady(AuditPlanError),
}

const CANCELLED: i64 = 90;
/// Rejected, waiting for payment, paid, nothing to pay: reviewed already.
const REVIEWED: [i64; 4] = [30, 40, 50, 55];

/// Pointer and round only rise, and a cancelled order stays cancelled: moved on is for good. An
/// order that is behind its version is no such case, it is a publication gone wrong.
pub(super) fn standing(facts: &VersionContext) -> Standing {
    let VersionContext { order, target_data, target_round, pointer, order_round, .. } = facts;
    if facts.order_status == CANCELLED {
        return Standing::MovedOn(format!("order {order} is cancelled"));
    }
    if pointer > target_data || order_round > target_round {
        return Standing::MovedOn(format!(
            "order {order} moved on to data version {pointer}, round {order_round}"
        ));
    }
    let not_ready = |why: String| Standing::NotReady(AuditPlanError::NotReady(why));
    if facts.build_status != "PUBLISHED" {
        return not_ready(format!("version {} is {}", facts.version, facts.build_status));
    }
    if pointer != target_data || order_round != target_round {
        return not_ready(format!(
            "order {order} is at data version {pointer}, round {order_round}, behind version {}",
            facts.version
        ));
    }
    if facts.session_status != "COMPLETED" {
        return not_ready(format!("session {} is {}", facts.session, facts.session_status));
    }
    if REVIEWED.contains(&facts.order_status) {
        return not_ready(format!("order {order} has been reviewed ({})", facts.order_status));
    }
    Standing::Ready
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Mode;
    use counterfoil_protocol::{
        DataVersion, OrderId, SessionId, SubmitAttempt, SubmitRound, UserId, VersionId,
    };

    pub(in crate::audit_plan) fn ready() -> VersionContext {
        VersionContext {
            version: VersionId(1),
            mode: Mode::New,
            order: OrderId(2),
            session: SessionId(3),
            source_data: DataVersion(0),
            target_data: DataVersion(4),
            source_round: SubmitRound(0),
            target_round: SubmitRound(2),
            attempt: SubmitAttempt(1),
            build_status: "PUBLISHED".into(),
            pointer: DataVersion(4),
            order_round: SubmitRound(2),
            order_status: 20,
            order_no: Some("PO1".into()),
            order_creator: UserId(7),
            session_mode: Mode::New,
            session_status: "COMPLETED".into(),
            session_order: Some(OrderId(2)),
            session_creator: UserId(7),
            session_attempt: SubmitAttempt(1),
            active_submit: None,
            incident: false,
        }
    }

    #[derive(Debug, PartialEq)]
    enum Expected {
        Ready,
        MovedOn,
        NotReady,
    }

    #[test]
    fn only_the_published_current_completed_version_is_reviewed() {
        use Expected::{MovedOn, NotReady, Ready};
        type Case = (&'static str, fn(&mut VersionContext), Expected);
        let table: &[Case] = &[
            ("as it should be", |_| {}, Ready),
            ("an incident is reviewed too", |f| f.incident = true, Ready),
            ("newer pointer", |f| f.pointer = DataVersion(5), MovedOn),
            ("newer round", |f| f.order_round = SubmitRound(3), MovedOn),
            ("cancelled", |f| f.order_status = 90, MovedOn),
            (
                "cancelled, with its session given up",
                |f| {
                    f.order_status = 90;
                    f.session_status = "SUBMIT_FAILED".into();
                },
                MovedOn,
            ),
            (
                "moved on, whatever became of the version",
                |f| {
                    f.pointer = DataVersion(5);
                    f.build_status = "BUILD_FAILED".into();
                },
                MovedOn,
            ),
            ("not published", |f| f.build_status = "BUILT".into(), NotReady),
            ("failed", |f| f.build_status = "BUILD_FAILED".into(), NotReady),
            ("pointer behind", |f| f.pointer = DataVersion(3), NotReady),
            ("never published pointer", |f| f.pointer = DataVersion(0), NotReady),
            ("round behind", |f| f.order_round = SubmitRound(1), NotReady),
            ("locks not in line", |f| f.session_status = "PUBLISHED_LOCK_SYNCING".into(), NotReady),
            ("session failed", |f| f.session_status = "SUBMIT_FAILED".into(), NotReady),
            ("rejected already", |f| f.order_status = 30, NotReady),
            ("waiting for payment", |f| f.order_status = 40, NotReady),
            ("paid", |f| f.order_status = 50, NotReady),
            ("nothing to pay", |f| f.order_status = 55, NotReady),
        ];
        for (name, change, expected) in table {
            let mut facts = ready();
            change(&mut facts);
            let got = match standing(&facts) {
                Standing::Ready => Ready,
                Standing::MovedOn(_) => MovedOn,
                Standing::NotReady(_) => NotReady,
            };
            assert_eq!(got, *expected, "{name}");
        }
    }
}
