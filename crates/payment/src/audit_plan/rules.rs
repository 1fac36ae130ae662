//! What must hold about audit plans at all times.

use counterfoil_task::Rule;

use crate::kinds::AUDIT_PLAN_CREATE;

/// The rules of S05.
pub const RULES: &[Rule] = &[Rule {
    name: "audit-plan-has-instance",
    holds: "a current version whose audit plan is CREATED has one approval instance of the \
            order's plan, of its own version and round",
    sql: "SELECT v.id, o.order_no, o.review_plan_id, v.target_data_version
          FROM fi_resident_income_payment_order_version v
          JOIN fi_resident_income_payment_order o
            ON o.id = v.payment_order_id AND o.current_publish_version = v.target_data_version
          WHERE v.deleted = 0 AND o.deleted = 0 AND v.audit_plan_status = 'CREATED'
            AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_approval_instance i
                 WHERE i.payment_order_id = o.id AND i.data_version = v.target_data_version
                   AND i.submit_round = v.target_submit_round
                   AND i.review_plan_id = o.review_plan_id AND i.deleted = 0) <> 1
          ORDER BY v.id LIMIT :limit",
    touched: Some(
        "SELECT v.id, o.order_no, o.review_plan_id, v.target_data_version
         FROM fi_resident_income_payment_order_version v
         JOIN fi_resident_income_payment_order o
           ON o.id = v.payment_order_id AND o.current_publish_version = v.target_data_version
         WHERE v.id IN :ids AND v.deleted = 0 AND o.deleted = 0
           AND v.audit_plan_status = 'CREATED'
           AND (SELECT COUNT(*) FROM fi_resident_income_payment_order_approval_instance i
                WHERE i.payment_order_id = o.id AND i.data_version = v.target_data_version
                  AND i.submit_round = v.target_submit_round
                  AND i.review_plan_id = o.review_plan_id AND i.deleted = 0) <> 1
         ORDER BY v.id LIMIT :limit",
    ),
    handlers: &[AUDIT_PLAN_CREATE.handler],
}];
