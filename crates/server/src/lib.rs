//! What the binary is made of.

pub mod files;
pub mod sample;
