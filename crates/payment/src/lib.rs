//! Resident income payment (居民收益付款): from selected bills to paid lines.
//!
//! One operation, one room. Data walks one way through it: read facts, decide (a pure function
//! over plain data), write conditionally. Source: `shared/spec/payment-flow.md` and seed 001.

pub mod audit_plan;
pub mod bill_import;
pub mod bill_snapshot;
pub mod kinds;
pub mod lock_activation;
pub mod lock_release;
pub mod order_cancel;
pub mod order_proof;
pub mod order_view;
pub mod partner_key;
pub mod partner_push;
pub mod publish_repair;
pub mod review_callback;
pub mod review_progress;
pub mod rules;
pub mod session;
pub mod side_effect;
pub mod states;
pub mod status_decision;
pub mod status_refresh;
pub mod submit_build;
pub mod treasury;
pub mod visibility_gate;

mod error;
mod row_batch;
mod submit_batch;
mod version;

pub use error::PaymentError;
pub use version::{
    AuditPlanPayload, LockActivatePayload, Mode, PUBLISHED_INCIDENT, Scene, SubmitBuildPayload,
    VersionContext, VersionPayload,
};

/// The tables of selection, order and business data.
pub const MIGRATIONS: &[counterfoil_db::Migration] = &[
    counterfoil_db::Migration {
        number: 201,
        name: "selection",
        ddl: include_str!("schema/0201_selection.sql"),
    },
    counterfoil_db::Migration {
        number: 202,
        name: "payment order",
        ddl: include_str!("schema/0202_order.sql"),
    },
    counterfoil_db::Migration {
        number: 203,
        name: "business tables",
        ddl: include_str!("schema/0203_business.sql"),
    },
    counterfoil_db::Migration {
        number: 204,
        name: "review callback",
        ddl: include_str!("schema/0204_review_callback.sql"),
    },
    counterfoil_db::Migration {
        number: 205,
        name: "status refresh",
        ddl: include_str!("schema/0205_status_refresh.sql"),
    },
    counterfoil_db::Migration {
        number: 206,
        name: "partner push",
        ddl: include_str!("schema/0206_partner_push.sql"),
    },
    counterfoil_db::Migration {
        number: 207,
        name: "treasury",
        ddl: include_str!("schema/0207_treasury.sql"),
    },
    counterfoil_db::Migration {
        number: 211,
        name: "bill import",
        ddl: include_str!("schema/0211_bill_import.sql"),
    },
    counterfoil_db::Migration {
        number: 212,
        name: "creation key",
        ddl: include_str!("schema/0212_creation_key.sql"),
    },
    counterfoil_db::Migration {
        number: 213,
        name: "archive of deliveries",
        ddl: include_str!("schema/0213_delivery_archive.sql"),
    },
];
