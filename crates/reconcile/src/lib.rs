//! Answer reconciliation (答卷差异对账): two sets that can prove they agree.
//!
//! The form centre is the only authority; the service hall repairs its own set by what the centre
//! signs, and never proves by itself that a row should go. The two know each other only by the
//! messages of [`wire`]: they are two processes, each with its own database. Source:
//! `shared/spec/reconcile.md`, `shared/spec/schema.md`; seed 000.

pub mod delivery;
pub mod form_centre;
pub mod refusal;
pub mod rules;
pub mod service_hall;
pub mod wire;

mod key;

pub use key::{is_answer_uuid, new_uuid};
pub use refusal::Refusal;

use counterfoil_db::Migration;

/// The tables of both sides. A process needs its own side's only; both are made everywhere.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 401,
        name: "form_centre",
        ddl: include_str!("schema/0401_form_centre.sql"),
    },
    Migration {
        number: 402,
        name: "service_hall",
        ddl: include_str!("schema/0402_service_hall.sql"),
    },
];
