//! The engine's own rules.

use crate::rule::Rule;

/// What must hold of tasks, whatever they are about.
pub const RULES: &[Rule] = &[
    Rule {
        name: "running-task-is-alive",
        holds: "no task has been RUNNING for an hour without its process touching it",
        sql: "SELECT task_code, task_type, business_key, running_attempt, lost_attempts,
                update_time
              FROM fi_async_task
              WHERE deleted = 0 AND task_status = 1 AND update_time < :long_ago
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
    Rule {
        name: "ended-task-has-no-due-time",
        holds: "a task that is SUCCESS or CANCELLED is not due for anything",
        sql: "SELECT task_code, task_status, next_execute_time FROM fi_async_task
              WHERE deleted = 0 AND task_status IN (2, 4) AND next_execute_time IS NOT NULL
              ORDER BY id LIMIT :limit",
        touched: None,
        handlers: &[],
    },
];
