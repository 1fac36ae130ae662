//! S09 and the partners over real sockets, on SQLite, PostgreSQL and MariaDB.

#[path = "../../../payment/tests/behaviour/approval.rs"]
#[allow(dead_code, reason = "the journey needs a part of it")]
mod approval;
mod chunks;
mod command;
mod crash;
mod gate;
mod house;
mod journey;
mod keys;
mod race;
mod rebuild;
mod redelivery;
mod trouble;
