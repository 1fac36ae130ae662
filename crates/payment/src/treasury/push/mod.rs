//! Pushing a batch: claim, send with no transaction open, settle.
//!
//! Source: payment-flow.md "S09 side effects"; seed 003, chapter 7.6. The claim raises push_count,
//! puts aside what a person must look at, and stores the bytes that will be sent, in one commit.
//! What is sent is therefore known for ever, whatever happens to the process. A push without a
//! verdict stays PUSHING. It is settled by a status query or a result; identical bytes are sent
//! again under the same id only where the receiver is declared idempotent, and a certain refusal is
//! the only thing that lets the batch be pushed anew.

mod claim;
mod document;
mod due;
mod payee;
mod retry;
mod settle;

use std::time::Duration;

use chrono::TimeDelta;
use counterfoil_db::{Db, transact};

use super::TreasuryError;
use super::port::{Channels, Message, PushAnswer};

pub use due::of_order;
pub use retry::{PUSH_RETRY, PushRetry};

/// Within this time whoever claimed a push must have its verdict; then others may ask.
pub const PUSH_LEASE: TimeDelta = TimeDelta::minutes(10);
/// A channel must answer within this time: well below [`PUSH_LEASE`].
pub const MAX_SEND_TIME: Duration = Duration::from_secs(300);
/// Times that identical bytes are sent at most; then only asking goes on.
pub const MAX_SENDS: i64 = 10;

/// How a push ended for whoever asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The receiver accepted it.
    Accepted,
    /// The receiver certainly accepted nothing.
    Refused,
    /// No verdict: it stays PUSHING.
    Unknown,
    /// Nothing can be sent before a person has put data right.
    NeedsData,
    /// Somebody else has it, or it is not due.
    Lost,
}

/// Who asks for a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The schedule: only what is due, and at most ten times.
    BySchedule,
    /// A person: now.
    ByPerson,
}

/// A push on its way: what to send, and the right to say how it ended.
#[derive(Debug)]
struct Sending {
    push: i64,
    batch: i64,
    order: i64,
    /// `send_count` as we wrote it: whoever comes later raises it, and our word counts no more.
    token: i64,
    strategy: String,
    message: Message,
}

/// Pushes one batch, if it waits to be pushed.
///
/// # Errors
/// When the batch cannot be pushed as things are set up, or the database fails. What was claimed
/// by then stays PUSHING.
pub async fn push_one(
    db: &Db,
    channels: &Channels,
    batch: i64,
    asked: Asked,
) -> Result<Pushed, TreasuryError> {
    let claimed = transact!(claim::claim(db, channels, batch, asked));
    if let Err(TreasuryError::StrategyUnknown { .. } | TreasuryError::BatchState { .. }) = claimed {
        // Certainly nothing was sent. It is not due at once again.
        transact!(claim::postpone(db, batch, &claimed))?;
    }
    let sending = match claimed? {
        claim::Claimed::Send(sending) => *sending,
        claim::Claimed::NeedsData => return Ok(Pushed::NeedsData),
        claim::Claimed::Refused => return Ok(Pushed::Refused),
        claim::Claimed::Lost => return Ok(Pushed::Lost),
    };
    let Some(channel) = channels.get(&sending.strategy) else {
        return Ok(Pushed::Unknown);
    };
    let answer = bounded(channel.send(&sending.message)).await;
    transact!(settle::settle(db, &sending, &answer))
}

/// Asks what became of a push without a verdict, and sends identical bytes again where that can do
/// no harm.
///
/// # Errors
/// As [`push_one`].
pub async fn inquire_one(db: &Db, channels: &Channels, push: i64) -> Result<Pushed, TreasuryError> {
    let Some(sending) = transact!(claim::take_over(db, push))? else {
        return Ok(Pushed::Lost);
    };
    let Some(channel) = channels.get(&sending.strategy) else {
        let (batch, strategy) = (sending.batch, sending.strategy);
        return Err(TreasuryError::StrategyUnknown { batch, strategy });
    };
    let mut answer = bounded(channel.inquire(&sending.message)).await;
    let again = channel.is_idempotent() && sending.token <= MAX_SENDS;
    if again && matches!(answer, PushAnswer::Unknown { .. }) {
        answer = bounded(channel.send(&sending.message)).await;
    }
    transact!(settle::settle(db, &sending, &answer))
}

/// Pushes all batches of an order that wait, one after the other.
///
/// # Errors
/// When the database fails. A batch's own trouble is logged and leaves the others alone.
pub async fn push_order(
    db: &Db,
    channels: &Channels,
    target: super::batch_creation::Target,
) -> Result<u32, TreasuryError> {
    let (mut after, mut pushed) = (0, 0);
    loop {
        let batches = of_order(db, target, after).await?;
        let Some(last) = batches.last().copied() else {
            return Ok(pushed);
        };
        for batch in batches {
            match push_one(db, channels, batch, Asked::BySchedule).await {
                Ok(Pushed::Lost) => {}
                Ok(_) => pushed += 1,
                Err(TreasuryError::Payment(error)) => return Err(error.into()),
                Err(error) => tracing::warn!(batch, %error, "a batch cannot be pushed"),
            }
        }
        after = last;
    }
}

/// A channel that does not come back has given no verdict.
async fn bounded(answer: impl Future<Output = PushAnswer>) -> PushAnswer {
    match tokio::time::timeout(MAX_SEND_TIME, answer).await {
        Ok(answer) => answer,
        Err(_) => PushAnswer::Unknown {
            message: format!("no answer within {} s", MAX_SEND_TIME.as_secs()),
        },
    }
}
