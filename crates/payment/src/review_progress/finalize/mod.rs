//! FINALIZE: the order becomes effective, or says line by line why it must not.
//!
//! Before any lock is taken the refresh shards are planned, the pre-payment recheck is run and the
//! payment type is decided. Then one transaction locks the order and the progress, proves that
//! what was read still holds, and writes order, approval instance, log, shards, seeds, progress
//! and the task's SUCCESS together. An approval without anything to pay has no recheck and no
//! payment type. Source: payment-flow.md, S08; seed 003, chapters 3.6 and 9.1.

mod commit;
mod park;
mod payment_type;
mod recheck;

use counterfoil_db::transact;
use counterfoil_task::{Turn, TurnEnd, WorkError};

use super::facts::Progressed;
use super::supersede;
use crate::review_callback::OrderFacts;
use crate::status_refresh::{PlannedShard, plan_shards};

use payment_type::PaymentType;
use recheck::Ways;
pub use recheck::{RECHECK_VIOLATED, RecheckSettings, Violation, violations};

/// What was found out before any lock.
struct Plan {
    shards: Vec<PlannedShard>,
    /// `None` where there is nothing to pay.
    payment_type: Option<PaymentType>,
    recheck: RecheckSettings,
    ways: Ways,
}

/// WAIT_PAY: the target of an approval with something to pay.
const WAIT_PAY: i64 = 40;

pub(super) async fn finalize(
    id: i64,
    turn: &Turn<'_>,
    settings: &RecheckSettings,
) -> Result<TurnEnd, WorkError> {
    let db = turn.db();
    let facts = Progressed::read(db, id).await?;
    let order = OrderFacts::read(db, facts.order).await?;
    if !facts.is_of(order.as_ref()) {
        return transact!(give_up(turn, &facts));
    }
    let mut plan = Plan {
        shards: plan_shards(db, facts.order, facts.data, facts.round).await?,
        payment_type: None,
        recheck: *settings,
        ways: Ways::SmallBills,
    };
    if facts.target == WAIT_PAY {
        park::unless_payable(turn, &facts, *settings).await?;
        plan.ways = recheck::ways(db, &facts).await?;
        plan.payment_type = match payment_type::decide(db, &facts).await? {
            Ok(payment_type) => Some(payment_type),
            Err(why) => return park::without_payment_type(turn, &facts, why).await,
        };
    }
    transact!(commit::commit(turn, &facts, &plan))
}

async fn give_up(turn: &Turn<'_>, facts: &Progressed) -> Result<TurnEnd, WorkError> {
    supersede::give_up(turn.begin().await?, facts).await
}
