//! Newtypes for numbers that must not be mixed.

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<$name, Self::Err> {
                text.parse().map($name)
            }
        }
    )*};
}

number! {
    /// A payment order (居民收益付款单).
    OrderId;
    /// A version record: `paymentOrderVersionId`. Not a data version.
    VersionId;
    /// The number that formal lines and the order's publish pointer carry.
    DataVersion;
    /// The session's attempt at submitting.
    SubmitAttempt;
    /// The order's business round.
    SubmitRound;
    /// Which approval of an order's version it is: one a plan.
    ApprovalAttempt;
    /// A progress row of an approved callback.
    ProgressId;
    /// A selection session (选单会话).
    SessionId;
    /// A formal line (正式明细).
    LineId;
    /// A bill lock (账单占用锁).
    LockId;
    /// An audit plan in the review centre.
    PlanId;
    /// A row of the external log: one chunk to one partner.
    DeliveryId;
    /// A partner (合作方).
    PartnerId;
    /// A person.
    UserId;
}
