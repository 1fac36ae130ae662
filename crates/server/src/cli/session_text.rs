//! A selection session, for people and for machines.

use counterfoil_payment::session::show::SessionView;
use serde_json::Value;

use super::output::table;
use crate::told;

/// Both forms of one session.
pub(super) fn describe(view: &SessionView) -> (Value, String) {
    (told::session(view), as_text(view))
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
