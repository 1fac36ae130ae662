//! The names of stored codes.

use crate::states::ORDER;

/// The name of an order status, such as `UNDER_REVIEW` for 20.
pub fn order_status(code: i64) -> &'static str {
    let stored = code.to_string();
    let found = ORDER.states.iter().find(|(value, _)| *value == stored);
    found.map_or("UNKNOWN", |(_, name)| name)
}

/// The order status that a code or a name, in any case, stands for.
pub fn order_status_code(text: &str) -> Option<i64> {
    let upper = text.trim().to_uppercase();
    let found = ORDER.states.iter().find(|(value, name)| *value == upper || *name == upper);
    found.and_then(|(value, _)| value.parse().ok())
}

/// The name of a line's type.
pub fn line_type(code: i64) -> &'static str {
    match code {
        10 => "PAYABLE",
        20 => "UNQUALIFIED",
        _ => "UNKNOWN",
    }
}

/// The name of a line's status.
pub fn line_status(code: i64) -> &'static str {
    match code {
        10 => "UNDER_REVIEW",
        20 => "REVIEW_APPROVED",
        30 => "PAID",
        40 => "PAY_FAILED",
        50 => "UNQUALIFIED_EFFECTIVE",
        _ => "UNKNOWN",
    }
}

/// The name of a business record's payment status.
pub fn payment_status(code: i64) -> &'static str {
    match code {
        10 => "NO_NEED_PAY",
        20 => "UNPAID",
        30 => "PAYMENT_REVIEW",
        40 => "WAIT_PAY",
        50 => "PARTLY_PAID",
        60 => "PAID",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_status_is_named_by_its_code_or_its_name() {
        for text in ["20", "UNDER_REVIEW", "under_review", " Under_Review "] {
            assert_eq!(order_status_code(text), Some(20), "{text}");
        }
        for text in ["", "21", "REVIEW", "02"] {
            assert_eq!(order_status_code(text), None, "{text}");
        }
        assert_eq!(order_status(90), "CANCELLED");
        assert_eq!(order_status(91), "UNKNOWN");
    }
}
