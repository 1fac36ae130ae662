//! What must hold of the partners' notices at all times.

use counterfoil_task::Rule;

use crate::kinds::SIDE_EFFECT;

/// The tasks of successful pushes beside chunks that are not settled, of some progress rows.
macro_rules! success_is_settled {
    ($scope:literal) => {
        concat!(
            "SELECT p.id AS progress_id, p.payment_order_id, l.id AS delivery_id, l.partner_id,
               l.chunk_no, l.status
             FROM fi_resident_income_payment_review_callback_progress p
             JOIN fi_async_task t ON t.business_key =
               'SIDE_EFFECT:' || p.id || ':PARTNER_BILL_REVIEW_RESULT_PUSH'
               AND t.task_status = 2 AND t.deleted = 0
             JOIN fi_resident_income_payment_external_log l
               ON l.payment_order_id = p.payment_order_id AND l.data_version = p.data_version
              AND l.submit_round = p.submit_round AND l.log_type = 'PARTNER_REVIEW_RESULT'
             WHERE p.deleted = 0 AND l.deleted = 0 AND l.status NOT IN ('SUCCESS', 'SKIPPED') ",
            $scope,
            " ORDER BY l.id LIMIT :limit"
        )
    };
}

/// The rules of the partner push.
pub const RULES: &[Rule] = &[
    Rule {
        name: "pushed-means-every-chunk-is-settled",
        holds: "a partner push that is SUCCESS has no chunk that is not accepted or skipped",
        sql: success_is_settled!(""),
        touched: Some(success_is_settled!("AND p.id IN :ids")),
        handlers: &[SIDE_EFFECT.handler],
    },
    Rule {
        name: "no-delivery-hangs",
        holds: "no delivery has been on its way for an hour without an answer",
        sql: "SELECT id, payment_order_id, partner_id, chunk_no, attempt_count, sent_time
              FROM fi_resident_income_payment_external_log
              WHERE status = 'WAIT_PROCESS' AND deleted = 0 AND sent_time < :long_ago
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "no-delivery-stays-unknown",
        holds: "no delivery has been without a verdict for a day: a person looks and redelivers",
        sql: "SELECT id, payment_order_id, partner_id, chunk_no, status, attempt_count, last_error
              FROM fi_resident_income_payment_external_log
              WHERE status = 'UNKNOWN' AND deleted = 0 AND update_time < :day_ago
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
];
