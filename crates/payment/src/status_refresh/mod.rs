//! S12 (底层状态刷新): the three business tables say of each bill what the facts decide.
//!
//! Source: payment-flow.md "S12 status refresh → DONE"; seed 003, chapter 7.2.

mod plan;
mod scope;

pub use plan::{
    BUILDER_VERSION, PlannedShard, SHARD_LINES, Source, insert_shards, plan_shards,
    plan_shards_between,
};
pub use scope::LinesOf;
