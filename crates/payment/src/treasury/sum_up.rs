//! What details say of their batch, and batches of their order.

use counterfoil_db::{Read, Row, Tx, sql};

use super::TreasuryError;

/// How a batch stands, read from its details and pushes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BatchFacts {
    waiting: i64,
    to_fix: i64,
    rejected: i64,
    pushed: i64,
    /// A push has no verdict.
    open: bool,
    /// The last push was refused, so that what waits has been tried.
    refused: bool,
}

/// What waits for a person stands above what was pushed; what can be pushed at once above both.
fn batch_status(facts: BatchFacts) -> &'static str {
    match facts {
        BatchFacts { open: true, .. } => "PUSHING",
        BatchFacts { waiting: 1.., refused: true, .. } => "PUSH_FAIL",
        BatchFacts { waiting: 1.., .. } => "WAIT_PUSH",
        BatchFacts { to_fix: 1.., .. } => "WAIT_DATA_FIX",
        // Nothing was accepted and nothing can be sent as it stands.
        BatchFacts { rejected: 1.., pushed: 0, .. } => "WAIT_DATA_FIX",
        BatchFacts { rejected: 1.., .. } => "PUSH_PARTIAL_SUCCESS",
        _ => "PUSH_SUCCESS",
    }
}

/// Which states an order's batches are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OrderFacts {
    moving: bool,
    succeeded: bool,
    partial: bool,
    to_fix: bool,
    failed: bool,
    /// A batch that waits for data has details that were pushed.
    pushed_beside: bool,
}

fn order_status(facts: OrderFacts) -> &'static str {
    match facts {
        OrderFacts { moving: true, .. } => "PUSHING",
        OrderFacts { partial: false, to_fix: false, failed: false, .. } => "PUSHED",
        OrderFacts { succeeded: false, partial: false, pushed_beside: false, .. } => "PUSH_FAILED",
        _ => "PUSH_PARTIAL",
    }
}

/// Writes the batch's status as its details have it, and answers it.
pub(super) async fn batch(tx: &mut Tx, batch: i64) -> Result<&'static str, TreasuryError> {
    let status = batch_status(batch_facts(tx, batch).await?);
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET status = :status, update_time = :now
         WHERE id = :batch AND status <> :status",
        status = status,
        now = now,
        batch = batch,
    ))
    .await?;
    Ok(status)
}

async fn batch_facts(tx: &mut Tx, batch: i64) -> Result<BatchFacts, TreasuryError> {
    let query = sql!(
        "SELECT COUNT(CASE WHEN push_status = 'WAIT_PUSH' THEN 1 END) AS waiting,
            COUNT(CASE WHEN push_status = 'WAIT_DATA_FIX' THEN 1 END) AS to_fix,
            COUNT(CASE WHEN push_status = 'REJECTED' THEN 1 END) AS rejected,
            COUNT(CASE WHEN push_status = 'PUSHED' THEN 1 END) AS pushed,
            (SELECT COUNT(*) FROM fi_resident_income_payment_push p
             WHERE p.push_batch_id = :batch
               AND p.push_state IN ('SENDING', 'UNKNOWN')) AS unsettled,
            (SELECT COUNT(*) FROM fi_resident_income_payment_push p
             JOIN fi_resident_income_payment_push_batch b ON b.push_id = p.id
             WHERE b.id = :batch AND p.push_state = 'REFUSED') AS refused
         FROM fi_resident_income_payment_push_batch_detail
         WHERE push_batch_id = :batch AND deleted = 0",
        batch = batch,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(BatchFacts::default());
    };
    Ok(BatchFacts {
        waiting: row.int("waiting")?,
        to_fix: row.int("to_fix")?,
        rejected: row.int("rejected")?,
        pushed: row.int("pushed")?,
        open: row.int("unsettled")? > 0,
        refused: row.int("refused")? > 0,
    })
}

/// Writes the order's push status as its batches have it. The order's row must be locked.
pub(super) async fn order(tx: &mut Tx, batch: i64) -> Result<(), TreasuryError> {
    let Some(row) = tx.row(sql!(OF_ORDER, batch = batch)).await? else {
        return Ok(());
    };
    let status = order_status(order_facts(&row)?);
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order
         SET push_status = :status, update_time = :now
         WHERE id = :order AND payment_type = 'TREASURY' AND COALESCE(push_status, '') <> :status",
        status = status,
        now = now,
        order = row.int("payment_order_id")?,
    ))
    .await?;
    Ok(())
}

fn order_facts(row: &Row) -> Result<OrderFacts, counterfoil_db::Error> {
    let is = |column: &str| Ok::<bool, counterfoil_db::Error>(row.int(column)? > 0);
    Ok(OrderFacts {
        moving: is("moving")?,
        succeeded: is("succeeded")?,
        partial: is("partly")?,
        to_fix: is("to_fix")?,
        failed: is("failed")?,
        pushed_beside: is("pushed_beside")?,
    })
}

macro_rules! any_batch {
    ($statuses:literal) => {
        concat!(
            "(SELECT COUNT(*) FROM (SELECT x.id FROM fi_resident_income_payment_push_batch x
              JOIN fi_resident_income_payment_push_batch y ON y.id = :batch
               AND x.payment_order_id = y.payment_order_id AND x.data_version = y.data_version
               AND x.submit_round = y.submit_round
              WHERE x.deleted = 0 AND x.status IN (",
            $statuses,
            ") LIMIT 1) AS one)"
        )
    };
}

/// One row a state at most is read, however many batches an order has.
const OF_ORDER: &str = concat!(
    "SELECT b.payment_order_id, ",
    any_batch!("'WAIT_PUSH', 'PUSHING'"),
    " AS moving, ",
    any_batch!("'PUSH_SUCCESS'"),
    " AS succeeded, ",
    any_batch!("'PUSH_PARTIAL_SUCCESS'"),
    " AS partly, ",
    any_batch!("'WAIT_DATA_FIX'"),
    " AS to_fix, ",
    any_batch!("'PUSH_FAIL'"),
    " AS failed,
     (SELECT COUNT(*) FROM (SELECT d.id FROM fi_resident_income_payment_push_batch x
       JOIN fi_resident_income_payment_push_batch y ON y.id = :batch
        AND x.payment_order_id = y.payment_order_id AND x.data_version = y.data_version
        AND x.submit_round = y.submit_round
       JOIN fi_resident_income_payment_push_batch_detail d
         ON d.push_batch_id = x.id AND d.push_status = 'PUSHED' AND d.deleted = 0
       WHERE x.deleted = 0 AND x.status IN ('WAIT_DATA_FIX', 'PUSH_FAIL')
       LIMIT 1) AS one) AS pushed_beside
     FROM fi_resident_income_payment_push_batch b WHERE b.id = :batch"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_says_no_more_than_its_details() {
        let facts = |waiting, to_fix, rejected, pushed| BatchFacts {
            waiting,
            to_fix,
            rejected,
            pushed,
            ..BatchFacts::default()
        };
        let table = [
            (facts(0, 0, 0, 3), "PUSH_SUCCESS"),
            (facts(0, 0, 1, 2), "PUSH_PARTIAL_SUCCESS"),
            (facts(0, 0, 3, 0), "WAIT_DATA_FIX"),
            (facts(0, 1, 0, 2), "WAIT_DATA_FIX"),
            (facts(0, 1, 1, 1), "WAIT_DATA_FIX"),
            (facts(1, 1, 0, 1), "WAIT_PUSH"),
            (BatchFacts { refused: true, ..facts(3, 0, 0, 0) }, "PUSH_FAIL"),
            (BatchFacts { refused: true, ..facts(3, 1, 0, 0) }, "PUSH_FAIL"),
            (BatchFacts { open: true, ..facts(3, 1, 0, 0) }, "PUSHING"),
            (BatchFacts { open: true, refused: true, ..facts(0, 0, 0, 3) }, "PUSHING"),
        ];
        for (facts, expected) in table {
            assert_eq!(batch_status(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn an_order_is_pushed_only_when_all_of_it_is() {
        let none = OrderFacts::default();
        let table = [
            (OrderFacts { succeeded: true, ..none }, "PUSHED"),
            (OrderFacts { succeeded: true, moving: true, ..none }, "PUSHING"),
            (OrderFacts { failed: true, ..none }, "PUSH_FAILED"),
            (OrderFacts { to_fix: true, ..none }, "PUSH_FAILED"),
            (OrderFacts { to_fix: true, failed: true, ..none }, "PUSH_FAILED"),
            (OrderFacts { to_fix: true, pushed_beside: true, ..none }, "PUSH_PARTIAL"),
            (OrderFacts { failed: true, succeeded: true, ..none }, "PUSH_PARTIAL"),
            (OrderFacts { partial: true, ..none }, "PUSH_PARTIAL"),
            (OrderFacts { partial: true, moving: true, ..none }, "PUSHING"),
        ];
        for (facts, expected) in table {
            assert_eq!(order_status(facts), expected, "{facts:?}");
        }
    }
}
