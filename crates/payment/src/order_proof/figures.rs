//! Each stage in a count and a sum, from its own table.

use counterfoil_db::{Db, Read, Result, sql};
use serde::Serialize;

use crate::order_view::{Money, OrderRow};

/// What one stage covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// The stage.
    pub stage: &'static str,
    /// Bills.
    pub count: i64,
    /// What they sum to.
    pub sum: Money,
    /// What was counted.
    pub counted: &'static str,
}

/// The stages of one order's published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Selected, locked, approved, pushed, confirmed.
    pub stages: Vec<Figure>,
    /// Whether all of them are equal: then, and only then, the order is proved to its end.
    pub all_agree: bool,
}

const STAGES: [(&str, &str, &str); 5] = [
    (
        "selected",
        "payable items of the session that was published",
        "SELECT COUNT(*) AS found, CAST(COALESCE(SUM(i.pay_amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_order_version v
         JOIN selection_session_item i ON i.session_id = v.session_id
         WHERE v.payment_order_id = :order AND v.target_data_version = :data AND v.deleted = 0
           AND v.target_submit_round = :round AND i.line_type = 10 AND i.deleted = 0",
    ),
    (
        "locked",
        "payable lines whose bill this order holds by an ACTIVE lock",
        "SELECT COUNT(*) AS found, CAST(COALESCE(SUM(l.pay_amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
          AND k.data_version = l.data_version
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0",
    ),
    (
        "approved",
        "payable lines that carry an approval which is in effect",
        "SELECT COUNT(*) AS found, CAST(COALESCE(SUM(l.pay_amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.line_status IN (20, 30, 40)
           AND EXISTS (SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
             WHERE p.payment_order_id = l.payment_order_id AND p.data_version = l.data_version
               AND p.main_task_status = 'SUCCESS' AND p.deleted = 0)",
    ),
    (
        "pushed",
        "details that the payer has accepted",
        "SELECT COUNT(*) AS found, CAST(COALESCE(SUM(d.amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_push_batch b
         JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
         WHERE b.payment_order_id = :order AND b.data_version = :data
           AND b.submit_round = :round AND b.deleted = 0 AND d.deleted = 0
           AND d.push_status = 'PUSHED'",
    ),
    (
        "confirmed",
        "payable lines that are PAID, by a result or by recorded evidence",
        "SELECT COUNT(*) AS found, CAST(COALESCE(SUM(l.pay_amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.line_status = 30",
    ),
];

pub(super) async fn read(db: &Db, order: &OrderRow) -> Result<Figures> {
    // What is paid offline is not pushed: that stage is none of its proof.
    let is_offline = order.payment_type.as_deref() == Some("OFFLINE");
    let mut stages = Vec::new();
    for (stage, counted, text) in STAGES {
        if is_offline && stage == "pushed" {
            continue;
        }
        let query = sql!(
            text,
            order = order.id.0,
            data = order.published_data_version.0,
            round = order.submit_round.0,
        );
        let row = db.row(query).await?;
        let (count, sum) = match row {
            Some(row) => (row.int("found")?, row.int("amount")?),
            None => (0, 0),
        };
        stages.push(Figure { stage, count, sum: sum.into(), counted });
    }
    let all_agree = agree(&stages);
    Ok(Figures { stages, all_agree })
}

/// Equal counts and sums, of something.
fn agree(stages: &[Figure]) -> bool {
    let first = stages.first();
    first.is_some_and(|first| {
        first.count > 0
            && stages.iter().all(|stage| stage.count == first.count && stage.sum == first.sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_agree_only_when_every_count_and_every_sum_is_the_same() {
        let figure = |count, sum: i64| Figure { stage: "", count, sum: sum.into(), counted: "" };
        assert!(agree(&[figure(2, 5), figure(2, 5)]));
        assert!(!agree(&[figure(2, 5), figure(2, 4)]));
        assert!(!agree(&[figure(2, 5), figure(1, 5)]));
        assert!(!agree(&[figure(0, 0), figure(0, 0)]), "nothing proves nothing");
        assert!(!agree(&[]));
    }
}
