//! The binary's inside: configuration, commands, and what serves them.

pub mod cli;
pub mod config;
pub mod wiring;
