//! The binary's inside: configuration, commands, and what serves them.

pub mod answer_delivery;
pub mod answer_file;
pub mod api;
pub mod bench;
pub mod cli;
pub mod config;
pub mod console;
pub mod console_config;
pub mod demo;
pub mod files;
pub mod findings;
pub mod http;
pub mod proof_file;
pub mod reconcile_config;
pub mod reconcile_wiring;
pub mod rerun;
pub mod retention;
pub mod sample;
pub mod scheduler;
pub mod serve;
pub mod signing_config;
mod told;
pub mod treasury;
pub mod treasury_config;
pub mod wiring;
pub mod xxl_config;
pub mod xxl_job;
