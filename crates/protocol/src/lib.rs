//! The leaf: what every other crate speaks. No I/O.

pub mod canon;
pub mod range;
pub mod signing;

mod id;
mod key;
mod money;
mod month;
pub mod seal;

pub use id::{
    ApprovalAttempt, DataVersion, DeliveryId, LineId, LockId, OrderId, PartnerId, PlanId,
    ProgressId, SessionId, SubmitAttempt, SubmitRound, UserId, VersionId,
};
pub use key::{TaskCode, lock_key, released_lock_key};
pub use money::{Fen, MoneyError};
pub use month::{BillMonth, MonthError};
