//! The behaviour of the task engine on SQLite, PostgreSQL and MariaDB, with a tiny work of its own.

mod behaviour {
    mod accept;
    mod claim;
    mod clock;
    mod errand;
    mod failure;
    mod fence;
    mod identity;
    mod kick;
    mod lease;
    mod lock_wait;
    mod lost;
    mod model;
    mod rules;
    mod select;
    mod shutdown;
    mod trouble;
}
