//! Orders at every stage, for the tables of tests.

use counterfoil_protocol::{
    DataVersion, OrderId, PlanId, SessionId, SubmitAttempt, SubmitRound, UserId, VersionId,
};
use counterfoil_task::TaskStatus::{Cancelled, Pending, Running, Success};

use super::aftermath::Aftermath;
use super::facts::{
    Approval, BillConflict, Conflicts, LockCounts, OrderFacts, OrderRow, SessionFacts, TaskFacts,
    Tasks, VersionRow,
};
use super::standing::tests::{batch, minutes, now, task};
use super::{Money, names};

/// An order whose first version was submitted a minute ago.
pub(in crate::order_view) fn submitted() -> OrderFacts {
    OrderFacts {
        now: now(),
        order: OrderRow {
            id: OrderId(1),
            order_no: Some("PO1".into()),
            status: 10,
            status_name: names::order_status(10),
            business_status: Some("DRAFT".into()),
            published_data_version: DataVersion(0),
            submit_round: SubmitRound(0),
            build_status: Some("BUILDING".into()),
            audit_plan_status: None,
            review_plan_id: None,
            payment_type: None,
            push_status: None,
            review_finish_time: None,
            total_amount: Money::default(),
            payable_count: 0,
            unqualified_count: 0,
            create_user_id: UserId(7),
            create_time: minutes(-1),
            update_time: minutes(-1),
        },
        version: Some(VersionRow {
            id: VersionId(2),
            mode: "NEW".into(),
            session_id: SessionId(3),
            submit_attempt: SubmitAttempt(1),
            source_data_version: DataVersion(0),
            target_data: DataVersion(1),
            target_round: SubmitRound(1),
            build_status: "BUILDING".into(),
            audit_plan_status: None,
            publish_time: None,
            error_code: None,
            error_message: None,
            create_time: minutes(-1),
            update_time: minutes(-1),
        }),
        session: Some(SessionFacts {
            id: SessionId(3),
            status: "SUBMITTING".into(),
            submit_attempt: SubmitAttempt(1),
            active_submit_id: Some(VersionId(2)),
            failure_phase: None,
            invalidated: false,
            invalidated_reason: None,
        }),
        build_batch: Some(batch("INIT", None)),
        lock_batch: Some(batch("INIT", None)),
        tasks: Tasks { build: Some(TaskFacts { attempt: 0, ..task(Pending) }), ..Tasks::default() },
        approval: None,
        locks: LockCounts::default(),
        conflicts: Conflicts::default(),
        aftermath: Aftermath::default(),
        failed_revision: None,
    }
}

pub(in crate::order_view) fn status(facts: &mut OrderFacts, code: i64) {
    facts.order.status = code;
    facts.order.status_name = names::order_status(code);
}

pub(in crate::order_view) fn version(facts: &mut OrderFacts) -> &mut VersionRow {
    facts.version.as_mut().expect("a version")
}

pub(in crate::order_view) fn session(facts: &mut OrderFacts) -> &mut SessionFacts {
    facts.session.as_mut().expect("a session")
}

/// S03 has published; S04 is accepted.
pub(in crate::order_view) fn published() -> OrderFacts {
    let mut facts = submitted();
    status(&mut facts, 20);
    facts.order.published_data_version = DataVersion(1);
    version(&mut facts).build_status = "PUBLISHED".into();
    version(&mut facts).publish_time = Some(minutes(-1));
    session(&mut facts).status = "PUBLISHED_LOCK_SYNCING".into();
    facts.build_batch = Some(batch("DONE", None));
    facts.tasks.build = Some(task(Success));
    facts.tasks.activation = Some(TaskFacts { attempt: 0, ..task(Pending) });
    facts.locks.reserved = 3;
    facts
}

/// S04 has completed; S05 is accepted.
pub(in crate::order_view) fn completed() -> OrderFacts {
    let mut facts = published();
    session(&mut facts).status = "COMPLETED".into();
    session(&mut facts).active_submit_id = None;
    facts.lock_batch = Some(batch("DONE", None));
    facts.tasks.activation = Some(task(Success));
    facts.tasks.audit_plan = Some(TaskFacts { attempt: 0, ..task(Pending) });
    facts.locks = LockCounts { reserved: 0, active: 3, released: 0 };
    facts
}

/// S05 has its plan.
pub(in crate::order_view) fn under_review_now() -> OrderFacts {
    let mut facts = completed();
    version(&mut facts).audit_plan_status = Some("CREATED".into());
    facts.order.review_plan_id = Some(PlanId(9));
    facts.tasks.audit_plan = Some(task(Success));
    facts.approval = Some(Approval {
        review_plan_id: PlanId(9),
        approval_attempt: 1,
        status: "IN_REVIEW".into(),
        finish_time: None,
    });
    facts
}

/// S03 met bills of others; S06 is accepted.
pub(in crate::order_view) fn conflicted() -> OrderFacts {
    let mut facts = submitted();
    version(&mut facts).build_status = "BUILD_FAILED".into();
    version(&mut facts).error_code = Some("bill-lock-conflict".into());
    session(&mut facts).status = "SUBMIT_FAILED".into();
    facts.tasks.build = Some(task(Cancelled));
    facts.tasks.release = Some(task(Pending));
    facts.conflicts =
        Conflicts { total: 4, first: ["S1", "S2", "S3", "S4"].map(conflict).to_vec() };
    facts
}

pub(in crate::order_view) fn conflict(station: &str) -> BillConflict {
    BillConflict {
        station_id: station.into(),
        bill_yearmonth: "202609".into(),
        holder_order_id: OrderId(8),
        holder_order_no: (station != "S2").then(|| "PO8".into()),
        holder_lock_id: 5,
        holder_lock_status: "ACTIVE".into(),
    }
}

pub(in crate::order_view) fn activating(change: impl FnOnce(&mut TaskFacts)) -> OrderFacts {
    let mut facts = published();
    let mut activation = task(Running);
    change(&mut activation);
    facts.tasks.activation = Some(activation);
    facts
}

pub(in crate::order_view) fn handed_over(change: impl FnOnce(&mut OrderFacts)) -> OrderFacts {
    let mut facts = completed();
    change(&mut facts);
    facts
}

pub(in crate::order_view) fn pointer_only() -> OrderFacts {
    handed_over(|f| {
        version(f).build_status = "BUILT".into();
        session(f).invalidated = true;
        session(f).invalidated_reason = Some(crate::PUBLISHED_INCIDENT.into());
    })
}

pub(in crate::order_view) fn decided(approval: &str, code: i64) -> OrderFacts {
    let mut facts = under_review_now();
    status(&mut facts, code);
    facts.order.review_finish_time = (code != 20).then(|| minutes(-2));
    facts.approval.as_mut().expect("an approval").status = approval.into();
    facts
}
