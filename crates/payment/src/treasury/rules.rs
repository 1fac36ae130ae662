//! What must hold of batches, details, lines and orders at all times.

use counterfoil_task::Rule;

/// A rule that runs on schedule only.
const fn scheduled(name: &'static str, holds: &'static str, sql: &'static str) -> Rule {
    Rule { name, holds, sql, touched: None, handlers: &[] }
}

/// The rules of the treasury.
pub const RULES: &[Rule] = &[
    scheduled(
        "line-is-in-one-detail",
        "no line is in two details",
        "SELECT order_bill_id, COUNT(*) AS details, MIN(id) AS first_detail, MAX(id) AS last_detail
         FROM fi_resident_income_payment_push_batch_detail WHERE deleted = 0
         GROUP BY order_bill_id HAVING COUNT(*) > 1 ORDER BY order_bill_id LIMIT :limit",
    ),
    scheduled(
        "details-come-to-the-payable-lines",
        "an order that has its batches has one detail a payable line, of the same amount",
        "SELECT l.payment_order_id, l.id AS order_bill_id, l.pay_amount, d.id AS detail_id, d.amount
         FROM fi_resident_income_payment_push_build u
         JOIN fi_resident_income_payment_order_bill l
           ON l.payment_order_id = u.payment_order_id AND l.data_version = u.data_version
          AND l.submit_round = u.submit_round AND l.line_type = 10 AND l.deleted = 0
         LEFT JOIN fi_resident_income_payment_push_batch_detail d
           ON d.order_bill_id = l.id AND d.deleted = 0
         WHERE u.build_status = 'DONE' AND u.deleted = 0
           AND (d.id IS NULL OR d.amount <> COALESCE(l.pay_amount, 0))
         ORDER BY l.id LIMIT :limit",
    ),
    scheduled(
        "batch-totals-are-those-of-its-details",
        "a batch's count and total are those of its details",
        "SELECT b.id AS push_batch_id, b.batch_no, b.detail_count, b.total_amount,
            COUNT(d.id) AS details, CAST(COALESCE(SUM(d.amount), 0) AS {bigint}) AS amount
         FROM fi_resident_income_payment_push_batch b
         LEFT JOIN fi_resident_income_payment_push_batch_detail d
           ON d.push_batch_id = b.id AND d.deleted = 0
         WHERE b.deleted = 0
         GROUP BY b.id, b.batch_no, b.detail_count, b.total_amount
         HAVING b.detail_count <> COUNT(d.id) OR b.total_amount <> COALESCE(SUM(d.amount), 0)
         ORDER BY b.id LIMIT :limit",
    ),
    scheduled(
        "paid-order-has-its-evidence",
        "an order at PAID has every payable line PAID, by a paid detail or a recorded payment",
        "SELECT o.id AS payment_order_id, l.id AS order_bill_id, l.line_status, d.pay_status
         FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_order_bill l
           ON l.payment_order_id = o.id AND l.data_version = o.current_publish_version
          AND l.submit_round = o.submit_round AND l.line_type = 10 AND l.deleted = 0
         LEFT JOIN fi_resident_income_payment_push_batch_detail d
           ON d.order_bill_id = l.id AND d.deleted = 0
         WHERE o.deleted = 0 AND o.status = 50
           AND (l.line_status <> 30 OR (COALESCE(d.pay_status, '') <> 'PAID'
             AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order_log g
               WHERE g.payment_order_id = o.id AND g.operation_type = 'PAYMENT_RECORDED')))
         ORDER BY o.id, l.id LIMIT :limit",
    ),
    scheduled(
        "line-and-detail-agree",
        "a line that has a detail is PAID or PAY_FAILED exactly when its detail is",
        "SELECT d.id AS detail_id, d.order_bill_id, d.pay_status, l.line_status
         FROM fi_resident_income_payment_push_batch_detail d
         JOIN fi_resident_income_payment_order_bill l ON l.id = d.order_bill_id
         WHERE d.deleted = 0
           AND ((COALESCE(d.pay_status, '') = 'PAID' AND l.line_status <> 30)
             OR (COALESCE(d.pay_status, '') <> 'PAID' AND l.line_status = 30)
             OR (COALESCE(d.pay_status, '') = 'PAY_FAILED' AND l.line_status <> 40))
         ORDER BY d.id LIMIT :limit",
    ),
    scheduled(
        "push-status-agrees",
        "an order says PUSHED only when all its batches do, and NOT_PUSHED only without any",
        "SELECT o.id AS payment_order_id, o.push_status, b.id AS push_batch_id, b.status
         FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_push_batch b
           ON b.payment_order_id = o.id AND b.data_version = o.current_publish_version
          AND b.submit_round = o.submit_round AND b.deleted = 0
         WHERE o.deleted = 0 AND o.payment_type = 'TREASURY'
           AND ((o.push_status = 'PUSHED' AND b.status <> 'PUSH_SUCCESS')
             OR COALESCE(o.push_status, 'NOT_PUSHED') = 'NOT_PUSHED'
             OR (o.push_status = 'PUSH_FAILED' AND b.status = 'PUSH_SUCCESS'))
         ORDER BY o.id, b.id LIMIT :limit",
    ),
    scheduled(
        "no-push-stays-without-verdict",
        "every push has its verdict within an hour",
        "SELECT p.id AS push_id, p.message_id, p.push_batch_id, p.push_state, p.send_count,
            p.create_time
         FROM fi_resident_income_payment_push p
         WHERE p.push_state IN ('SENDING', 'UNKNOWN') AND p.create_time < :long_ago
         ORDER BY p.id LIMIT :limit",
    ),
    scheduled(
        "no-result-contradicts",
        "no result says paid of what was failed or pushed again since",
        "SELECT e.id, e.push_result_id, e.end_to_end_id, e.push_batch_detail_id, e.outcome
         FROM fi_resident_income_payment_push_result_entry e
         WHERE e.reported = 'PAID' AND e.outcome IN ('PAID_AFTER_FAILED', 'SUPERSEDED')
         ORDER BY e.id LIMIT :limit",
    ),
];
