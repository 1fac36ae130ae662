//! S09 and the partners over real sockets, on SQLite, PostgreSQL and MariaDB.

mod chunks;
mod command;
mod crash;
mod gate;
mod house;
mod keys;
mod race;
mod rebuild;
mod redelivery;
mod trouble;
