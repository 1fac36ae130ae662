//! What must hold of orders, lines, locks and business tables at all times.

use counterfoil_task::Rule;

use crate::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};

const AFTER_ACTIVATION: &[&str] = &[LOCK_ACTIVATE.handler, AUDIT_PLAN_CREATE.handler];
const AFTER_RELEASE: &[&str] = &[LOCK_RELEASE.handler];
const AFTER_BUILD: &[&str] = &[SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler];

macro_rules! payable_and_active {
    ($scope:literal) => {
        concat!(
            "SELECT c.version_id, c.payment_order_id, c.payable_lines, c.active_locks FROM (
               SELECT v.id AS version_id, v.payment_order_id AS payment_order_id,
                 (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
                   WHERE l.payment_order_id = v.payment_order_id
                     AND l.data_version = v.target_data_version
                     AND l.line_type = 10 AND l.deleted = 0) AS payable_lines,
                 (SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock k
                   WHERE k.payment_order_id = v.payment_order_id AND k.session_id = v.session_id
                     AND k.submit_attempt = v.submit_attempt
                     AND k.data_version = v.target_data_version
                     AND k.lock_status = 'ACTIVE') AS active_locks
               FROM fi_resident_income_payment_order_version v
               JOIN fi_resident_income_payment_order o
                 ON o.id = v.payment_order_id AND o.current_publish_version = v.target_data_version
               JOIN selection_session s ON s.id = v.session_id
               WHERE v.deleted = 0 AND o.deleted = 0 AND o.status IN (20, 30, 40)
                 AND s.status = 'COMPLETED' ",
            $scope,
            ") AS c WHERE c.payable_lines <> c.active_locks ORDER BY c.version_id LIMIT :limit"
        )
    };
}

/// Between the release of an approval's locks and the end of its refresh the records still refer to
/// what was released.
macro_rules! dangling_reference {
    ($table:literal) => {
        concat!(
            "SELECT r.id, r.station_id, r.bill_yearmonth, r.locked_payment_order_id,
               r.locked_order_bill_id, r.payment_status
             FROM ",
            $table,
            " r
             LEFT JOIN fi_resident_income_payment_bill_lock k
               ON k.order_bill_id = r.locked_order_bill_id AND k.lock_status = 'ACTIVE'
             WHERE r.deleted = 0 AND r.locked_order_bill_id IS NOT NULL AND k.id IS NULL
               AND NOT EXISTS (SELECT 1 FROM selection_session s
                 WHERE s.target_payment_order_id = r.locked_payment_order_id
                   AND s.status = 'PUBLISHED_LOCK_SYNCING')
               AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order o
                 WHERE o.id = r.locked_payment_order_id AND o.status = 90)
               AND NOT EXISTS (
                 SELECT 1 FROM fi_resident_income_payment_review_callback_progress p
                 WHERE p.payment_order_id = r.locked_payment_order_id AND p.deleted = 0
                   AND p.main_task_status = 'SUCCESS'
                   AND p.phase IN ('LOCK_RELEASE', 'REFRESH_SHARD'))
             ORDER BY r.id LIMIT :limit"
        )
    };
}

/// A rule that runs on schedule only.
const fn scheduled(name: &'static str, holds: &'static str, sql: &'static str) -> Rule {
    Rule { name, holds, sql, touched: None, handlers: &[] }
}

/// The rules of selection, publishing and locking.
pub const RULES: &[Rule] = &[
    Rule {
        name: "payable-lines-are-locked",
        holds: "a completed published version has as many ACTIVE locks as PAYABLE lines",
        sql: payable_and_active!(""),
        touched: Some(payable_and_active!("AND v.id IN :ids")),
        handlers: AFTER_ACTIVATION,
    },
    scheduled(
        "ledger-refers-to-held-locks",
        "no difference ledger refers to a line whose lock is not ACTIVE",
        dangling_reference!("fi_monthly_income_difference"),
    ),
    scheduled(
        "small-bill-refers-to-held-locks",
        "no small bill refers to a line whose lock is not ACTIVE",
        dangling_reference!("fi_customer_bill"),
    ),
    scheduled(
        "partner-bill-refers-to-held-locks",
        "no partner bill refers to a line whose lock is not ACTIVE",
        dangling_reference!("fi_customer_bill_partner"),
    ),
    Rule {
        name: "ended-session-reserves-nothing",
        holds: "a session that is COMPLETED or whose failure is closed holds no RESERVED lock",
        sql: "SELECT k.id, k.lock_key, k.payment_order_id, k.session_id, s.status
              FROM fi_resident_income_payment_bill_lock k
              JOIN selection_session s ON s.id = k.session_id
              WHERE k.lock_status = 'RESERVED'
                AND (s.status = 'COMPLETED'
                     OR (s.status = 'SUBMIT_FAILED' AND s.active_submit_id IS NULL))
                AND NOT EXISTS (SELECT 1 FROM fi_async_task t
                  WHERE t.task_type = 'RESIDENT_INCOME_PAYMENT_LOCK_RELEASE'
                    AND t.task_status IN (0, 1)
                    AND t.business_key LIKE 'LOCK_RELEASE:%:ORDER_CANCELLED')
              ORDER BY k.id LIMIT :limit",
        touched: Some(
            "SELECT k.id, k.lock_key, k.payment_order_id, k.session_id
             FROM fi_resident_income_payment_order_version v
             JOIN selection_session s ON s.id = v.session_id
             JOIN fi_resident_income_payment_bill_lock k
               ON k.payment_order_id = v.payment_order_id AND k.session_id = v.session_id
              AND k.submit_attempt = v.submit_attempt AND k.data_version = v.target_data_version
             WHERE v.id IN :ids AND k.lock_status = 'RESERVED'
               AND s.status = 'SUBMIT_FAILED' AND s.active_submit_id IS NULL
             ORDER BY k.id LIMIT :limit",
        ),
        handlers: AFTER_RELEASE,
    },
    Rule {
        name: "pointer-and-version-agree",
        holds: "an order points to a version that says PUBLISHED, and no PUBLISHED version is \
                newer than the pointer",
        sql: "SELECT o.id AS payment_order_id, o.current_publish_version, v.id AS version_id,
                v.target_data_version, v.version_build_status
              FROM fi_resident_income_payment_order o
              JOIN fi_resident_income_payment_order_version v
                ON v.payment_order_id = o.id AND v.deleted = 0
              WHERE o.deleted = 0
                AND ((v.target_data_version = o.current_publish_version
                      AND v.version_build_status <> 'PUBLISHED')
                  OR (v.target_data_version > o.current_publish_version
                      AND v.version_build_status = 'PUBLISHED'))
              ORDER BY o.id LIMIT :limit",
        touched: Some(
            "SELECT o.id AS payment_order_id, o.current_publish_version, v.id AS version_id,
                v.target_data_version, v.version_build_status
              FROM fi_resident_income_payment_order_version v
              JOIN fi_resident_income_payment_order o ON o.id = v.payment_order_id
              WHERE v.id IN :ids AND o.deleted = 0
                AND ((v.target_data_version = o.current_publish_version
                      AND v.version_build_status <> 'PUBLISHED')
                  OR (v.target_data_version > o.current_publish_version
                      AND v.version_build_status = 'PUBLISHED'))
              ORDER BY o.id LIMIT :limit",
        ),
        handlers: AFTER_BUILD,
    },
    Rule {
        name: "hand-over-is-not-blocked",
        holds: "the next task of a published version is not CANCELLED, exhausted or missing while \
                the order waits for it",
        sql: BLOCKED,
        touched: Some(BLOCKED_TOUCHED),
        handlers: AFTER_ACTIVATION,
    },
    scheduled(
        "one-holder-a-bill",
        "a bill is held by one lock at most",
        "SELECT station_id, bill_yearmonth, COUNT(*) AS holders, MIN(id) AS first_lock,
           MAX(id) AS last_lock
         FROM fi_resident_income_payment_bill_lock
         WHERE lock_status IN ('RESERVED', 'ACTIVE') AND station_id <> ''
         GROUP BY station_id, bill_yearmonth HAVING COUNT(*) > 1
         ORDER BY station_id, bill_yearmonth LIMIT :limit",
    ),
    scheduled(
        "lock-key-tells-the-state",
        "a held lock occupies station:month, and a released one has given it back",
        "SELECT id, lock_key, lock_status, station_id, bill_yearmonth
         FROM fi_resident_income_payment_bill_lock
         WHERE (lock_status = 'RELEASED' AND lock_key = station_id || ':' || bill_yearmonth)
            OR (lock_status <> 'RELEASED' AND lock_key <> station_id || ':' || bill_yearmonth)
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "active-lock-is-of-the-published-version",
        "outside a running S04 an ACTIVE lock belongs to the version its order points to",
        "SELECT k.id, k.lock_key, k.payment_order_id, k.data_version, o.current_publish_version
         FROM fi_resident_income_payment_bill_lock k
         JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id
         WHERE k.lock_status = 'ACTIVE' AND k.data_version <> o.current_publish_version
           AND o.status <> 90
           AND NOT EXISTS (SELECT 1 FROM selection_session s
             WHERE s.target_payment_order_id = o.id AND s.status = 'PUBLISHED_LOCK_SYNCING')
         ORDER BY k.id LIMIT :limit",
    ),
    scheduled(
        "order-totals-are-those-of-its-lines",
        "an order's counts are those of the lines of its published version",
        "SELECT c.payment_order_id, c.payable_count, c.payable_lines FROM (
           SELECT o.id AS payment_order_id, o.payable_count AS payable_count,
             (SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id = o.id AND l.data_version = o.current_publish_version
                 AND l.submit_round = o.submit_round AND l.line_type = 10 AND l.deleted = 0)
               AS payable_lines
           FROM fi_resident_income_payment_order o
           JOIN fi_resident_income_payment_order_project_payment p
             ON p.payment_order_id = o.id AND p.data_version = o.current_publish_version
           WHERE o.deleted = 0 AND o.current_publish_version > 0
           GROUP BY o.id, o.payable_count, o.current_publish_version, o.submit_round) AS c
         WHERE c.payable_count <> c.payable_lines ORDER BY c.payment_order_id LIMIT :limit",
    ),
    scheduled(
        "lease-is-alive-or-taken-over",
        "no submit batch is RUNNING under a lease that expired an hour ago",
        "SELECT id, payment_order_version_id, batch_phase, worker_id, lease_expire_time
         FROM selection_submit_batch
         WHERE deleted = 0 AND batch_status = 'RUNNING' AND lease_expire_time < :long_ago
         ORDER BY id LIMIT :limit",
    ),
    scheduled(
        "created-plan-has-its-approval-instance",
        "an order whose audit plan is CREATED has the approval instance of that plan",
        "SELECT o.id AS payment_order_id, o.review_plan_id, o.current_publish_version
         FROM fi_resident_income_payment_order o
         WHERE o.deleted = 0 AND o.audit_plan_status = 'CREATED' AND o.status = 20
           AND NOT EXISTS (
             SELECT 1 FROM fi_resident_income_payment_order_approval_instance a
             WHERE a.payment_order_id = o.id AND a.data_version = o.current_publish_version
               AND a.review_plan_id = o.review_plan_id AND a.deleted = 0)
         ORDER BY o.id LIMIT :limit",
    ),
    scheduled(
        "order-under-review-has-its-version",
        "an order under review has the record of the version that it points to",
        "SELECT o.id AS payment_order_id, o.current_publish_version, o.submit_round
         FROM fi_resident_income_payment_order o
         WHERE o.deleted = 0 AND o.status = 20
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order_version v
             WHERE v.payment_order_id = o.id AND v.deleted = 0
               AND v.target_data_version = o.current_publish_version)
         ORDER BY o.id LIMIT :limit",
    ),
    scheduled(
        "cancelled-order-holds-nothing",
        "a cancelled order whose release has ended holds no lock",
        "SELECT k.id, k.lock_key, k.lock_status, k.payment_order_id
         FROM fi_resident_income_payment_bill_lock k
         JOIN fi_resident_income_payment_order o ON o.id = k.payment_order_id
         WHERE o.status = 90 AND k.lock_status <> 'RELEASED'
           AND NOT EXISTS (SELECT 1 FROM fi_async_task t
             JOIN fi_resident_income_payment_order_version v ON v.payment_order_id = o.id
             WHERE t.business_key = 'LOCK_RELEASE:' || v.id || ':ORDER_CANCELLED'
               AND t.task_status IN (0, 1))
         ORDER BY k.id LIMIT :limit",
    ),
];

/// Published versions that wait: the session's S04, or once COMPLETED its S05, will never run.
macro_rules! blocked {
    ($scope:literal) => {
        concat!(
            "SELECT v.id AS version_id, v.payment_order_id, s.status AS session_status,
               t.task_code, t.task_status, t.retry_count, t.error_message
             FROM fi_resident_income_payment_order_version v
             JOIN fi_resident_income_payment_order o
               ON o.id = v.payment_order_id AND o.current_publish_version = v.target_data_version
             JOIN selection_session s ON s.id = v.session_id
             LEFT JOIN fi_async_task t
               ON t.business_key = CASE WHEN s.status = 'COMPLETED' THEN 'AUDIT_PLAN_CREATE:'
                                        ELSE 'LOCK_ACTIVATE:' END || v.id
             WHERE v.deleted = 0 AND o.deleted = 0 AND o.status = 20
               AND s.status IN ('PUBLISHED_LOCK_SYNCING', 'COMPLETED')
               AND COALESCE(o.audit_plan_status, '') <> 'CREATED' ",
            $scope,
            " AND (t.id IS NULL OR t.task_status = 4
                   OR (t.task_status <> 2
                       AND COALESCE(t.retry_count, 0) >= COALESCE(t.max_retry_count, 3)))
             ORDER BY v.id LIMIT :limit"
        )
    };
}

const BLOCKED: &str = blocked!("");
const BLOCKED_TOUCHED: &str = blocked!("AND v.id IN :ids");
