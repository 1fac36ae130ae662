//! What a partner reads: pure.

use counterfoil_db::{Instant, Row};
use serde::Serialize;

use super::LOG_TYPE;
use crate::side_effect::ProgressFacts;
use crate::status_decision::PARTNER_VISIBLE_REASONS;

const PASSED: &str = "校核通过";
const NOT_PASSED: &str = "校核不通过";

/// A line's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineResult {
    line_id: i64,
    station_id: String,
    bill_yearmonth: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whole fen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pay_amount: Option<i64>,
}

/// A line as the database tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: i64,
    pub(super) line_type: i64,
    pub(super) line_status: i64,
    pub(super) station: String,
    pub(super) month: String,
    pub(super) reason: Option<String>,
    pub(super) pay_amount: Option<i64>,
}

impl Line {
    pub(super) fn read(row: &Row) -> counterfoil_db::Result<Line> {
        Ok(Line {
            id: row.int("id")?,
            line_type: row.int("line_type")?,
            line_status: row.int("line_status")?,
            station: row.text("station_id")?,
            month: row.text("bill_yearmonth")?,
            reason: row.maybe_text("unqualified_reason")?,
            pay_amount: row.maybe_int("pay_amount")?,
        })
    }

    /// What the review said; `None` while it has not been written to the line. A payment that came
    /// meanwhile (30, 40) does not change it. A reason is told only if it is one of the four that
    /// a partner may see.
    fn result(&self) -> Option<LineResult> {
        let (result, reason) = match (self.line_type, self.line_status) {
            (10, 20 | 30 | 40) => (PASSED, None),
            (20, 50) => (NOT_PASSED, self.reason.clone()),
            _ => return None,
        };
        Some(LineResult {
            line_id: self.id,
            station_id: self.station.clone(),
            bill_yearmonth: self.month.clone(),
            result,
            reason: reason.filter(|reason| PARTNER_VISIBLE_REASONS.contains(&reason.as_str())),
            pay_amount: self.pay_amount.filter(|_| result == PASSED),
        })
    }
}

/// Where a chunk stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) progress: &'a ProgressFacts,
    pub(super) order_no: &'a str,
    /// 0 = lines that name no partner.
    pub(super) partner: i64,
    pub(super) partner_no: &'a str,
    pub(super) number: i64,
    pub(super) of: i64,
}

impl Place<'_> {
    /// The key under which the partner tells this chunk apart for ever.
    pub(super) fn key(&self) -> String {
        let ProgressFacts { order, data_version, round, .. } = self.progress;
        let (partner, number) = (self.partner, self.number);
        format!("{LOG_TYPE}:{order}:{data_version}:{round}:{partner}:{number}")
    }

    /// The plain body, or the first line that the review has not concluded.
    pub(super) fn body(&self, lines: &[Line]) -> Result<String, Unconcluded> {
        let mut results = Vec::with_capacity(lines.len());
        for line in lines {
            results.push(line.result().ok_or(Unconcluded {
                line: line.id,
                line_type: line.line_type,
                line_status: line.line_status,
            })?);
        }
        let body = Body {
            idempotency_key: self.key(),
            r#type: LOG_TYPE,
            order_no: self.order_no,
            payment_order_id: self.progress.order.0,
            data_version: self.progress.data_version.0,
            submit_round: self.progress.round.0,
            partner_id: self.partner,
            partner_no: self.partner_no,
            chunk_no: self.number,
            chunk_count: self.of,
            approved_at: self.progress.finalized,
            lines: results,
        };
        // Numbers and texts always serialize.
        Ok(serde_json::to_string(&body).unwrap_or_default())
    }
}

/// A line without a conclusion: nothing of the order is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unconcluded {
    pub(super) line: i64,
    pub(super) line_type: i64,
    pub(super) line_status: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    idempotency_key: String,
    r#type: &'static str,
    order_no: &'a str,
    payment_order_id: i64,
    data_version: i64,
    submit_round: i64,
    partner_id: i64,
    partner_no: &'a str,
    chunk_no: i64,
    chunk_count: i64,
    approved_at: Instant,
    lines: Vec<LineResult>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line_type: i64, line_status: i64, reason: Option<&str>) -> Line {
        Line {
            id: 7,
            line_type,
            line_status,
            station: "S1".into(),
            month: "202609".into(),
            reason: reason.map(str::to_owned),
            pay_amount: Some(100),
        }
    }

    #[test]
    fn a_line_says_what_the_review_said_and_nothing_a_partner_may_not_see() {
        let said = |line: Line| line.result().map(|said| (said.result, said.reason));
        for status in [20, 30, 40] {
            assert_eq!(said(line(10, status, None)), Some((PASSED, None)));
        }
        let known = "农户租金异常";
        let told = Some((NOT_PASSED, Some(known.to_owned())));
        assert_eq!(said(line(20, 50, Some(known))), told);
        assert_eq!(said(line(20, 50, Some("internal"))), Some((NOT_PASSED, None)));
        for (line_type, status) in [(10, 10), (10, 50), (20, 10), (20, 20), (30, 50)] {
            assert_eq!(said(line(line_type, status, None)), None);
        }
    }
}
