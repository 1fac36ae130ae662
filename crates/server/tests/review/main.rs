//! S05 and the review centre over real sockets, on SQLite, PostgreSQL and MariaDB.

mod api;
mod centre;
mod crash;
#[path = "../../../review/tests/review/database.rs"]
mod database;
mod house;
mod moved_on;
mod trouble;
mod working;
