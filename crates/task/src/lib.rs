//! A durable task engine on the user's own database.
//!
//! A task is a row in `fi_async_task`, in the same database as the business data. Accepting a
//! task, doing its work and handing over to the next one commit together, or not at all. Claims
//! are fenced by an attempt that only rises; long work moves a cursor batch by batch under a lease
//! that outlives one batch at most; a kick only makes it faster. The engine knows no business.
//!
//! A new kind of task is one struct with a payload and a `run`:
//!
#![doc = "```no_run"]
#![doc = include_str!("../examples/greeting.rs")]
#![doc = "```"]
//!
//! Source: `shared/spec/task-engine.md`; seed 001, chapters 4.1, 7 and 9.

mod accept;
mod archive;
mod claim;
mod engine;
mod error;
mod handed_over;
mod kick;
mod kind;
mod lease;
mod metric;
mod operate;
mod parameter;
mod round;
mod rule;
mod rules;
mod run;
mod select;
mod shutdown;
mod state;
mod takeover;
mod trace;
mod turn;
pub mod view;

pub use accept::{Acceptance, Seed, accept_or_reuse, accept_until_done};
pub use archive::{MAX_ARCHIVED, archive_finished, oldest_finished};
pub use claim::STALE_AFTER;
pub use engine::{Engine, EngineSettings};
pub use error::{TaskError, WorkError};
pub use handed_over::end_handed_over;
pub use kick::{KickSettings, Kicker, listen};
pub use kind::Kind;
pub use lease::{LEASE_FOR, Lease, LeaseTable, LeaseTerms, LeaseUnavailable, Progress};
pub use metric::{KICKS, OUTCOMES, RULE_VERDICTS, TAKEOVERS};
pub use operate::{
    CancelOutcome, RerunFacts, RerunPlan, cancel, plan_rerun, rerun_facts, rerun_plan, trace_rerun,
};
pub use parameter::{ParameterError, RoundParameter, Selector};
pub use round::{RoundError, Summary, TaskTrouble};
pub use rule::{Breach, MAX_SHOWN, Rule, check};
pub use rules::RULES;
pub use run::{Fenced, Payload, Run, Verdict, Work};
pub use select::{MAX_LOST_ATTEMPTS, TaskRow};
pub use shutdown::{Shutdown, ShutdownHandle};
pub use state::{TRANSITIONS, TaskStatus, diagram};
pub use takeover::Takeover;
pub use trace::{Action, Subject, TRACE_OF_TASK, Trace, record};
pub use turn::{Held, Taken, Turn, TurnEnd, Turns, Unit, retry_after};

/// The engine's tables.
pub const MIGRATIONS: &[counterfoil_db::Migration] = &[
    counterfoil_db::Migration {
        number: 101,
        name: "tasks",
        ddl: include_str!("schema/0101_tasks.sql"),
    },
    counterfoil_db::Migration {
        number: 102,
        name: "archive of finished tasks",
        ddl: include_str!("schema/0102_archive.sql"),
    },
];
