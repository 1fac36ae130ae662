//! What must hold in the review centre at all times.

use counterfoil_task::Rule;

/// The rules; they run on the schedule and with `counterfoil check`.
pub const RULES: &[Rule] = &[
    Rule {
        name: "review-active-key",
        holds: "a plan holds its active key while it is NO_START or DOING, and only then",
        sql: "SELECT id, from_id, status, active_key FROM review_business_plan
              WHERE deleted = 0
                AND ((status IN ('NO_START', 'DOING') AND active_key IS NULL)
                  OR (status NOT IN ('NO_START', 'DOING') AND active_key IS NOT NULL))
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "review-one-turn",
        holds: "exactly one node of a plan under way has the turn, and none of another plan",
        sql: "SELECT p.id, p.from_id, p.status, COUNT(n.id) AS turns
              FROM review_business_plan p
              LEFT JOIN review_business_node n
                ON n.plan_id = p.id AND n.status = 'DOING' AND n.deleted = 0
              WHERE p.deleted = 0
              GROUP BY p.id, p.from_id, p.status
              HAVING (p.status = 'DOING' AND COUNT(n.id) <> 1)
                OR (p.status <> 'DOING' AND COUNT(n.id) <> 0)
              ORDER BY p.id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "review-four-eyes",
        holds: "nobody has decided on an order that he submitted",
        sql: "SELECT n.id, n.plan_id, n.decided_by FROM review_business_node n
              JOIN review_business_plan p ON p.id = n.plan_id
              WHERE n.decided_by IS NOT NULL AND n.decided_by = p.submitter
              ORDER BY n.id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
];
