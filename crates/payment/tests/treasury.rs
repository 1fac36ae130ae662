//! The treasury on SQLite, PostgreSQL and MariaDB: batches, pushes, results, fixes, records.

mod treasury {
    mod crash;
    mod create;
    mod fix;
    mod hand;
    mod notice;
    mod push;
    mod record;
    mod result;
    mod rules;
    mod split;
}
