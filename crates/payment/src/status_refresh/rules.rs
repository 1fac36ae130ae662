//! What must hold of refreshes and of what follows them.

use counterfoil_task::Rule;

use crate::kinds::{BILL_SNAPSHOT, STATUS_REFRESH};

/// A progress that is DONE or ready, with the shards of its review counted.
macro_rules! done {
    ($scope:literal) => {
        concat!(
            "SELECT c.progress_id, c.payment_order_id, c.shard_expected, c.shards, c.ended FROM (
               SELECT p.id AS progress_id, p.payment_order_id AS payment_order_id,
                 p.shard_expected AS shard_expected,
                 (SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
                   WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = p.id
                     AND s.deleted = 0) AS shards,
                 (SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
                   WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = p.id
                     AND s.task_status = 'SUCCESS' AND s.deleted = 0) AS ended
               FROM fi_resident_income_payment_review_callback_progress p
               WHERE (p.phase = 'DONE' OR p.refresh_ready = 1) AND p.deleted = 0 ",
            $scope,
            ") AS c
             WHERE c.shard_expected <= 0 OR c.shards <> c.shard_expected
                OR c.ended <> c.shard_expected
             ORDER BY c.progress_id LIMIT :limit"
        )
    };
}

/// The rules of S12 and S13.
pub const RULES: &[Rule] = &[
    Rule {
        name: "done-means-all-shards-succeeded",
        holds: "a review whose refresh is DONE has all the shards it expected, each SUCCESS",
        sql: done!(""),
        touched: Some(done!(
            "AND p.id IN (SELECT t.source_id FROM fi_resident_income_payment_status_refresh_shard t
               WHERE t.id IN :ids AND t.source_type = 'REVIEW_APPROVED')"
        )),
        handlers: &[STATUS_REFRESH.handler],
    },
    Rule {
        name: "refresh-gets-on",
        holds: "no refresh shard has failed five times in a row, or lost its owner an hour ago",
        sql: "SELECT id, source_type, source_id, payment_order_id, task_status, retry_count,
                error_code, error_message
              FROM fi_resident_income_payment_status_refresh_shard
              WHERE deleted = 0
                AND ((task_status = 'FAILED' AND retry_count >= 5)
                  OR (task_status = 'RUNNING' AND lease_expire_time < :long_ago))
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "awaited-shards-are-there",
        holds: "a review that waits for its refresh has the shards it expects",
        sql: "SELECT p.id, p.payment_order_id, p.shard_expected
              FROM fi_resident_income_payment_review_callback_progress p
              WHERE p.main_task_status = 'SUCCESS' AND p.phase = 'REFRESH_SHARD'
                AND p.deleted = 0
                AND (p.shard_expected <= 0 OR p.shard_expected <> (
                  SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
                  WHERE s.source_type = 'REVIEW_APPROVED' AND s.source_id = p.id
                    AND s.deleted = 0))
              ORDER BY p.id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "snapshot-is-of-a-payable-line",
        holds: "a bill-dimension snapshot is of a payable line of its own order and version",
        sql: "SELECT n.id, n.order_bill_id, n.payment_order_id, n.data_version
              FROM fi_resident_income_payment_bill_dimension_snapshot n
              LEFT JOIN fi_resident_income_payment_order_bill l
                ON l.id = n.order_bill_id AND l.payment_order_id = n.payment_order_id
               AND l.data_version = n.data_version AND l.line_type = 10 AND l.deleted = 0
              WHERE n.deleted = 0 AND l.id IS NULL
              ORDER BY n.id LIMIT :limit",
        touched: Some(
            "SELECT n.id, n.order_bill_id, n.payment_order_id, n.data_version
             FROM fi_resident_income_payment_status_refresh_shard s
             JOIN fi_resident_income_payment_bill_dimension_snapshot n
               ON n.order_bill_id >= s.start_order_bill_id
              AND n.order_bill_id <= s.end_order_bill_id
              AND n.payment_order_id = s.payment_order_id
             LEFT JOIN fi_resident_income_payment_order_bill l
               ON l.id = n.order_bill_id AND l.payment_order_id = n.payment_order_id
              AND l.data_version = n.data_version AND l.line_type = 10 AND l.deleted = 0
             WHERE s.id IN :ids AND n.deleted = 0 AND l.id IS NULL
             ORDER BY n.id LIMIT :limit",
        ),
        handlers: &[BILL_SNAPSHOT.handler],
    },
];
