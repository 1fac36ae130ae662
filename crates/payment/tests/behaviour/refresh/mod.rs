//! S12, S13 and what waits for them.

mod crash;
mod decision;
mod gate;
mod hand;
mod plan;
mod rules;
mod snapshot;
mod turns;
