//! A selection session, for people and for machines.

use counterfoil_payment::session::show::SessionView;
use serde_json::{Value, json};

use super::output::table;

/// Both forms of one session.
pub(super) fn describe(view: &SessionView) -> (Value, String) {
    (as_json(view), as_text(view))
}

fn as_json(view: &SessionView) -> Value {
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

fn as_text(view: &SessionView) -> String {
    let order = match (&view.order_no, view.order) {
        (Some(number), _) => format!(", order {number}"),
        (None, Some(order)) => format!(", order {order}"),
        (None, None) => String::new(),
    };
    let mut text = format!(
        "session {} ({}{order}) of user {} is {} at attempt {}\n{} lines: {} payable for {} yuan, \
         {} unqualified\n",
        view.session,
        view.mode.as_str(),
        view.creator,
        view.status,
        view.submit_attempt,
        view.lines,
        view.payable,
        view.payable_amount,
        view.unqualified
    );
    if let Some(reason) = &view.invalidated {
        text.push_str(&format!("invalidated: {reason}\n"));
    }
    if let Some(failure) = &view.failure {
        let message = failure.message.as_deref().unwrap_or("no message was kept");
        text.push_str(&format!("the last submission failed: {message}\n"));
        for conflict in &failure.conflicts {
            let holder = match &conflict.order_no {
                Some(number) => number.clone(),
                None => conflict.order.to_string(),
            };
            text.push_str(&format!(
                "  {} {} is held by order {holder} ({})\n",
                conflict.bill.station, conflict.bill.month, conflict.lock_status
            ));
        }
    }
    let rows: Vec<Vec<String>> = view
        .groups
        .iter()
        .map(|group| {
            vec![
                group.month.to_string(),
                group.reason.clone().unwrap_or_else(|| "payable".into()),
                group.lines.to_string(),
                group.amount.to_string(),
            ]
        })
        .collect();
    text.push_str(&table(&["MONTH", "REASON", "LINES", "YUAN"], &rows));
    text
}
