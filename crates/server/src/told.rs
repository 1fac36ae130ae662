//! What programs are told of what was done: the same over HTTP as on a command's stdout.

use counterfoil_payment::order_cancel::Cancellation;
use counterfoil_payment::session::Submission;
use counterfoil_payment::session::add::Added;
use counterfoil_payment::session::edit::Marked;
use counterfoil_payment::session::show::SessionView;
use counterfoil_protocol::SessionId;
use serde_json::{Value, json};

/// What was added to a session, and what cannot be.
pub(crate) fn added(session: SessionId, added: &Added) -> Value {
    let refused: Vec<Value> = added
        .unselectable
        .iter()
        .map(|one| {
            json!({
                "stationId": one.bill.station, "billYearmonth": one.bill.month,
                "reason": one.why.to_string(),
            })
        })
        .collect();
    json!({
        "sessionId": session, "payable": added.payable, "unqualified": added.unqualified,
        "already": added.already, "unselectableCount": added.unselectable_count,
        "unselectable": refused,
    })
}

/// Which marks of a session were set or taken back, and which not.
pub(crate) fn marked(session: SessionId, marked: &Marked) -> Value {
    let left: Vec<Value> = marked
        .unmarked
        .iter()
        .map(|one| {
            json!({
                "stationId": one.bill.station, "billYearmonth": one.bill.month,
                "reason": one.why,
            })
        })
        .collect();
    json!({ "sessionId": session, "changed": marked.changed, "unmarked": left })
}

/// A submission that was accepted.
pub(crate) fn submitted(session: SessionId, done: &Submission) -> Value {
    json!({
        "sessionId": session, "paymentOrderId": done.order,
        "paymentOrderVersionId": done.version, "submitAttempt": done.attempt,
        "taskCode": done.task.as_str(),
    })
}

/// An order that was cancelled.
pub(crate) fn cancelled(done: &Cancellation) -> Value {
    json!({
        "paymentOrderId": done.order, "status": 90, "cancelledTasks": done.tasks,
        "releaseTaskCode": done.release.as_str(),
    })
}

/// A session.
pub(crate) fn session(view: &SessionView) -> Value {
    let groups: Vec<Value> = view
        .groups
        .iter()
        .map(|group| {
            json!({
                "billYearmonth": group.month, "unqualifiedReason": group.reason,
                "lines": group.lines, "amount": group.amount,
            })
        })
        .collect();
    let failure = view.failure.as_ref().map(|failure| {
        let conflicts: Vec<Value> = failure
            .conflicts
            .iter()
            .map(|conflict| {
                json!({
                    "stationId": conflict.bill.station, "billYearmonth": conflict.bill.month,
                    "holderOrderId": conflict.order, "holderOrderNo": conflict.order_no,
                    "lockStatus": conflict.lock_status,
                })
            })
            .collect();
        json!({
            "phase": failure.phase, "code": failure.code, "message": failure.message,
            "conflictCount": failure.conflict_count, "conflicts": conflicts,
        })
    });
    json!({
        "sessionId": view.session, "mode": view.mode.as_str(), "status": view.status,
        "creatorUserId": view.creator, "paymentOrderId": view.order, "orderNo": view.order_no,
        "submitAttempt": view.submit_attempt, "stateVersion": view.state_version,
        "heartbeatTime": view.heartbeat, "invalidatedReason": view.invalidated,
        "lines": view.lines, "payable": view.payable, "unqualified": view.unqualified,
        "payableAmount": view.payable_amount, "groups": groups, "failure": failure,
    })
}
