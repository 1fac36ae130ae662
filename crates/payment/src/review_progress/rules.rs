//! What must hold of decisions and of the approvals that are being applied.

use counterfoil_task::Rule;

/// A rule that runs on schedule only.
const fn scheduled(name: &'static str, holds: &'static str, sql: &'static str) -> Rule {
    Rule { name, holds, sql, touched: None, handlers: &[] }
}

/// The rules of S07 and S08.
pub const RULES: &[Rule] = &[
    scheduled(
        "effective-approval-is-on-its-order",
        "the order of an approval that has taken effect is still at its version and round, and is \
         WAIT_PAY, PAID, NO_NEED_PAY or cancelled",
        "SELECT p.id AS progress_id, p.payment_order_id, p.data_version, p.submit_round, o.status,
            o.current_publish_version
         FROM fi_resident_income_payment_review_callback_progress p
         LEFT JOIN fi_resident_income_payment_order o
           ON o.id = p.payment_order_id AND o.deleted = 0
         WHERE p.deleted = 0 AND p.main_task_status = 'SUCCESS'
           AND (o.id IS NULL OR o.status NOT IN (40, 50, 55, 90)
             OR o.current_publish_version <> p.data_version OR o.submit_round <> p.submit_round)
         ORDER BY p.id LIMIT :limit",
    ),
    scheduled(
        "running-approval-is-of-its-order",
        "the order of an approval that is being applied is under review at its version, plan and \
         round, unless it moved on less than half an hour ago",
        "SELECT p.id AS progress_id, p.payment_order_id, p.data_version, p.submit_round,
            p.review_plan_id, o.status, o.current_publish_version, o.update_time
         FROM fi_resident_income_payment_review_callback_progress p
         LEFT JOIN fi_resident_income_payment_order o
           ON o.id = p.payment_order_id AND o.deleted = 0
         WHERE p.deleted = 0 AND p.main_task_status = 'RUNNING'
           AND (o.id IS NULL OR (o.update_time < :half_hour_ago
             AND (o.status <> 20 OR o.current_publish_version <> p.data_version
               OR o.submit_round <> p.submit_round
               OR COALESCE(o.review_plan_id, 0) <> p.review_plan_id)))
         ORDER BY p.id LIMIT :limit",
    ),
    scheduled(
        "running-callback-has-its-progress",
        "a decision whose task is RUNNING is being applied, or its task is younger than an hour",
        "SELECT t.task_code, t.business_key, t.task_status, t.create_time
         FROM fi_async_task t
         WHERE t.task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'
           AND t.task_status = 1 AND t.deleted = 0 AND t.create_time < :long_ago
           AND NOT EXISTS (
             SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
             WHERE p.async_task_id = t.id AND p.main_task_status = 'RUNNING' AND p.deleted = 0)
         ORDER BY t.id LIMIT :limit",
    ),
    scheduled(
        // In place of the engine's rule of this name.
        "running-task-is-alive",
        "no task has been RUNNING for an hour without its process touching it; a decision that is \
         being applied is alive in its progress",
        "SELECT t.task_code, t.task_type, t.business_key, t.running_attempt, t.lost_attempts,
            t.update_time
         FROM fi_async_task t
         WHERE t.deleted = 0 AND t.task_status = 1 AND t.update_time < :long_ago
           AND NOT EXISTS (
             SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
             WHERE p.async_task_id = t.id AND p.main_task_status = 'RUNNING' AND p.deleted = 0)
         ORDER BY t.id LIMIT :limit",
    ),
    scheduled(
        "approval-gets-on",
        "no approval that is being applied has failed ten times in a row",
        "SELECT p.id AS progress_id, p.payment_order_id, p.phase, p.retry_count,
            p.last_error_code, p.last_error_message
         FROM fi_resident_income_payment_review_callback_progress p
         WHERE p.deleted = 0 AND p.phase_status = 'FAILED' AND p.retry_count >= 10
           AND p.main_task_status <> 'SUPERSEDED'
         ORDER BY p.id LIMIT :limit",
    ),
];
