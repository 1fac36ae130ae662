//! S12, S13 and what waits for them.

mod hand;
mod plan;
mod turns;
