//! The behaviour of payment on SQLite, PostgreSQL and MariaDB. Modules mirror the source.

mod behaviour {
    mod activation;
    mod approval;
    mod boundary;
    mod build;
    mod clean_up;
    mod conflict;
    mod crash;
    mod hand;
    mod hand_written;
    mod journey;
    mod order_view;
    mod publish_repair;
    mod race;
    mod recheck;
    mod reentry;
    mod refresh;
    mod release;
    mod review_callback;
    mod review_progress;
    mod review_rules;
    mod rules;
    mod verification;
}
