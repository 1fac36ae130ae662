//! Where a version stands between "not published" and "published", decided from stored facts.

use counterfoil_protocol::{OrderId, UserId};

use crate::version::{Mode, VersionContext};

/// What the boundary is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// NEW or REVISE.
    pub mode: Mode,
    /// Whether the REVISE identity is valid; NEW has none.
    pub identity: bool,
    /// P: the order's pointer is the version's target data version.
    pub pointer: bool,
    /// V: the version record says PUBLISHED.
    pub published: bool,
}

/// What S04 does with the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Bring locks into line.
    Proceed,
    /// Record the incident and bring locks into line all the same.
    ProceedWithIncident,
    /// Record the incident; activate nothing, release nothing; the task is CANCELLED.
    CancelWithIncident,
    /// Close the invalid revision: version BUILD_FAILED, session SUBMIT_FAILED, S06, CANCELLED.
    CloseInvalid,
    /// Not published: an ordinary failure.
    NotPublished,
}

/// The seven branches. For REVISE, P≠V is judged before identity.
pub fn decide(facts: Facts) -> Route {
    let Facts { mode, identity, pointer, published } = facts;
    match (mode, pointer, published, identity) {
        (Mode::New, false, false, _) => Route::NotPublished,
        (Mode::New, _, _, _) => Route::Proceed,
        (Mode::Revise, false, true, _) => Route::CancelWithIncident,
        (Mode::Revise, true, false, _) => Route::ProceedWithIncident,
        (Mode::Revise, true, true, true) => Route::Proceed,
        (Mode::Revise, true, true, false) => Route::ProceedWithIncident,
        (Mode::Revise, false, false, true) => Route::NotPublished,
        (Mode::Revise, false, false, false) => Route::CloseInvalid,
    }
}

/// The persisted identity of a revision. Who runs the worker plays no part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The version's mode.
    pub version_mode: Mode,
    /// The session's mode.
    pub session_mode: Mode,
    /// The version's order.
    pub version_order: OrderId,
    /// The session's order.
    pub session_order: Option<OrderId>,
    /// The session's creator.
    pub session_creator: UserId,
    /// The order's first creator.
    pub order_creator: UserId,
}

impl Identity {
    /// Both REVISE, one order, and one positive creator of both.
    pub fn is_valid(self) -> bool {
        self.version_mode == Mode::Revise
            && self.session_mode == Mode::Revise
            && self.session_order == Some(self.version_order)
            && self.session_creator.0 > 0
            && self.session_creator == self.order_creator
    }
}

/// What to do when the batch was met in some state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reentry {
    /// Lease it and work.
    Lease,
    /// DONE and COMPLETED: straight to the hand-over.
    HandOver,
    /// DONE, session still syncing: redo the matrix, projections, clean-up and verification.
    Redo,
    /// DONE with any other session status: an error.
    Contradiction,
}

/// The re-entry table.
pub fn reenter(batch_status: &str, session_status: &str) -> Reentry {
    match (batch_status, session_status) {
        ("DONE", "COMPLETED") => Reentry::HandOver,
        ("DONE", "PUBLISHED_LOCK_SYNCING") => Reentry::Redo,
        ("DONE", _) => Reentry::Contradiction,
        _ => Reentry::Lease,
    }
}

/// The facts of a version as read. It counts as NEW only when version and session both say so.
pub fn facts(context: &VersionContext) -> Facts {
    let identity = Identity {
        version_mode: context.mode,
        session_mode: context.session_mode,
        version_order: context.order,
        session_order: context.session_order,
        session_creator: context.session_creator,
        order_creator: context.order_creator,
    };
    let both_new = context.mode == Mode::New && context.session_mode == Mode::New;
    Facts {
        mode: if both_new { Mode::New } else { Mode::Revise },
        identity: identity.is_valid(),
        pointer: context.pointer == context.target_data,
        published: context.build_status == "PUBLISHED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_branch_of_the_boundary_table() {
        use Mode::{New, Revise};
        let table = [
            // mode, identity, P, V → route
            (New, false, false, false, Route::NotPublished),
            (New, false, true, false, Route::Proceed),
            (New, false, false, true, Route::Proceed),
            (New, false, true, true, Route::Proceed),
            (Revise, true, true, true, Route::Proceed),
            (Revise, true, false, false, Route::NotPublished),
            (Revise, false, false, false, Route::CloseInvalid),
            (Revise, true, false, true, Route::CancelWithIncident),
            (Revise, false, false, true, Route::CancelWithIncident),
            (Revise, true, true, false, Route::ProceedWithIncident),
            (Revise, false, true, false, Route::ProceedWithIncident),
            (Revise, false, true, true, Route::ProceedWithIncident),
        ];
        for (mode, identity, pointer, published, route) in table {
            let facts = Facts { mode, identity, pointer, published };
            assert_eq!(decide(facts), route, "{facts:?}");
        }
    }

    #[test]
    fn a_revision_is_valid_only_with_one_order_and_one_positive_creator() {
        let valid = Identity {
            version_mode: Mode::Revise,
            session_mode: Mode::Revise,
            version_order: OrderId(1),
            session_order: Some(OrderId(1)),
            session_creator: UserId(7),
            order_creator: UserId(7),
        };
        assert!(valid.is_valid());
        let broken = [
            Identity { version_mode: Mode::New, ..valid },
            Identity { session_mode: Mode::New, ..valid },
            Identity { session_order: Some(OrderId(2)), ..valid },
            Identity { session_order: None, ..valid },
            Identity { session_creator: UserId(8), ..valid },
            Identity { session_creator: UserId(0), order_creator: UserId(0), ..valid },
            Identity { session_creator: UserId(-1), order_creator: UserId(-1), ..valid },
        ];
        for identity in broken {
            assert!(!identity.is_valid(), "{identity:?}");
        }
    }

    #[test]
    fn a_done_batch_is_re_entered_by_the_state_of_its_session() {
        assert_eq!(reenter("DONE", "COMPLETED"), Reentry::HandOver);
        assert_eq!(reenter("DONE", "PUBLISHED_LOCK_SYNCING"), Reentry::Redo);
        for other in ["EDITING", "SUBMITTING", "SUBMIT_FAILED"] {
            assert_eq!(reenter("DONE", other), Reentry::Contradiction, "{other}");
        }
        for open in ["INIT", "RUNNING", "FAILED"] {
            assert_eq!(reenter(open, "COMPLETED"), Reentry::Lease, "{open}");
        }
    }
}
