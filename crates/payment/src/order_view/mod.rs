//! What people and programs are shown of orders and bills: read models, no write among them.
//!
//! Each reads facts and leaves the judgement to a pure function ([`verdict`], [`stages`],
//! [`six_kinds`], [`can_be_paid_again`]), so that what a page says is tested without a database.
//! Lists page by key; every read has a named limit and says when it was reached. The reads of one
//! view are no snapshot: each is true of its moment. Source: surface.md, and payment-flow.md
//! "Visibility gate".

mod after_review;
mod aftermath;
mod bill;
mod bill_rows;
mod diff;
#[cfg(test)]
mod example;
mod facts;
mod find;
mod lines;
mod list;
mod names;
mod one;
mod pay_again;
mod shown;
mod stages;
mod standing;
mod success;
mod timeline;
mod timeline_rows;
mod verdict;

pub use aftermath::{Aftermath, ByStatus, ProgressRow, ShownViolation};
pub use bill::{BillView, bill};
pub use bill_rows::{BillLine, BillLock, BillNote, BillRecord};
pub use diff::{ChangedLine, Diff, DiffKind, KindOfChange, diff};
pub use facts::{
    Approval, BatchFacts, BillConflict, Conflicts, FailedRevision, LockCounts, OrderFacts,
    OrderRow, SessionFacts, TaskFacts, Tasks, VersionRow,
};
pub use find::find;
pub use lines::{Line, LineQuery, LinesPage, lines};
pub use list::{OrderQuery, OrdersPage, list};
pub use names::{line_status, line_type, order_status, order_status_code, payment_status};
pub use one::{OrderView, one};
pub use pay_again::{Because, PayAgain, PayAgainFacts, PayAgainHolder, Paying, can_be_paid_again};
pub use shown::Money;
pub use stages::{Stage, StageState, stages};
pub use standing::{Standing, standing};
pub use success::{Answer, SixKinds, Success, six_kinds};
pub use timeline::{LocksInState, Timeline, TimelineEntry, timeline};
pub use verdict::{Step, Verdict, verdict};

/// Rows of a page when none are asked for.
pub const DEFAULT_PAGE: u32 = 50;
/// Rows of a page at most.
pub const MAX_PAGE: u32 = 500;
/// Version records shown of one order, newest first.
pub const MAX_VERSIONS: u32 = 20;
/// Conflicting bills named; the count tells of the rest.
pub const MAX_CONFLICTS: u32 = 20;
/// Changed lines shown a kind.
pub const MAX_CHANGED: u32 = 100;
/// Entries of a timeline, the newest.
pub const MAX_TIMELINE: u32 = 500;
/// Lines, locks or notes shown of one bill, the newest.
pub const MAX_OF_BILL: u32 = 200;

/// The page size that is read for the size that was asked for.
pub(crate) fn page(asked: Option<u32>) -> u32 {
    asked.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
}
