//! The leaf: what every other crate speaks. No I/O.

pub mod canon;
pub mod signing;

mod id;
mod key;
mod money;
mod month;

pub use id::{
    DataVersion, LineId, LockId, OrderId, PlanId, SessionId, SubmitAttempt, SubmitRound, UserId,
    VersionId,
};
pub use key::{TaskCode, lock_key, released_lock_key};
pub use money::{Fen, MoneyError};
pub use month::{BillMonth, MonthError};
