//! The behaviour of payment on SQLite, PostgreSQL and MariaDB. Modules mirror the source.

mod behaviour {
    mod crash;
    mod journey;
    mod order_view;
    mod publish_repair;
}
