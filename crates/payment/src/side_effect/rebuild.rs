//! Adds the side-effect tasks that a finalized review callback lacks. Never sends anything again:
//! a task that is there is left alone, whatever became of it. Source: seed 003, chapter 7.4.

use counterfoil_db::{Db, Read, sql, transact};
use counterfoil_protocol::{OrderId, ProgressId};
use counterfoil_task::{Kicker, Subject, accept_or_reuse};
use serde::Serialize;

use super::seed::{Effect, SeedFacts, seed};
use crate::PaymentError;

/// Progress rows one call repairs at most.
pub const MAX_REBUILT: u32 = 1000;

/// What a rebuild did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildSummary {
    /// Progress rows that lacked a task.
    pub selected: u32,
    /// Tasks added.
    pub added: u32,
    /// Progress rows that could not be repaired, with the reason.
    pub errors: Vec<(ProgressId, String)>,
}

/// Adds what up to `limit` finalized progress rows lack, oldest first. A row that has all its tasks
/// is not touched. One row's trouble does not keep the others from theirs.
pub async fn rebuild_missing_seeds(
    db: &Db,
    kicker: &Kicker,
    limit: u32,
) -> Result<RebuildSummary, PaymentError> {
    let mut summary = RebuildSummary::default();
    for lack in lacking(db, limit.clamp(1, MAX_REBUILT)).await? {
        summary.selected += 1;
        match transact!(add(db, kicker, &lack)) {
            Ok(added) => summary.added += added,
            Err(PaymentError::Db(error)) if error.is_lost() => {
                return Err(PaymentError::Db(error));
            }
            Err(error) => summary.errors.push((lack.progress, error.to_string())),
        }
    }
    Ok(summary)
}

/// A progress row with the tasks it lacks.
struct Lack {
    progress: ProgressId,
    order: OrderId,
    data_version: i64,
    round: i64,
    effects: Vec<Effect>,
}

/// Finalized rows of orders that were not cancelled since. A key is looked up in any state, deleted
/// ones too: its code is taken.
async fn lacking(db: &Db, limit: u32) -> Result<Vec<Lack>, PaymentError> {
    let query = sql!(
        "SELECT f.id, f.payment_order_id, f.data_version, f.submit_round, f.payable_count,
                f.unqualified_count, f.is_treasury, f.pushes, f.builds
         FROM (
           SELECT p.id, p.payment_order_id, p.data_version, p.submit_round, p.payable_count,
             p.unqualified_count,
             CASE WHEN o.payment_type = 'TREASURY' AND p.target_order_status = 40
               THEN 1 ELSE 0 END AS is_treasury,
             (SELECT COUNT(*) FROM fi_async_task t WHERE t.business_key =
               'SIDE_EFFECT:' || p.id || ':PARTNER_BILL_REVIEW_RESULT_PUSH') AS pushes,
             (SELECT COUNT(*) FROM fi_async_task t WHERE t.business_key =
               'SIDE_EFFECT:' || p.id || ':PAYMENT_RESULT_BASE_DATA_BUILD') AS builds
           FROM fi_resident_income_payment_review_callback_progress p
           JOIN fi_resident_income_payment_order o
             ON o.id = p.payment_order_id AND o.deleted = 0 AND o.status <> 90
           WHERE p.deleted = 0 AND p.main_task_status = 'SUCCESS'
             AND p.finalize_time IS NOT NULL) f
         WHERE (f.pushes = 0 AND (f.payable_count > 0 OR f.unqualified_count > 0))
            OR (f.builds = 0 AND f.is_treasury = 1 AND f.payable_count > 0)
         ORDER BY f.id LIMIT :limit",
        limit = limit,
    );
    let mut found = Vec::new();
    for row in db.rows(query).await? {
        let facts = SeedFacts {
            payable_count: row.int("payable_count")?,
            unqualified_count: row.int("unqualified_count")?,
            is_treasury: row.int("is_treasury")? == 1,
        };
        let is_there = [row.int("pushes")? > 0, row.int("builds")? > 0];
        let effects = Effect::ALL.into_iter().zip(is_there);
        let effects = effects.filter(|(effect, is_there)| !is_there && effect.applies(facts));
        found.push(Lack {
            progress: ProgressId(row.int("id")?),
            order: OrderId(row.int("payment_order_id")?),
            data_version: row.int("data_version")?,
            round: row.int("submit_round")?,
            effects: effects.map(|(effect, _)| effect).collect(),
        });
    }
    Ok(found)
}

async fn add(db: &Db, kicker: &Kicker, lack: &Lack) -> Result<u32, PaymentError> {
    let mut tx = db.begin().await?;
    let subject = Subject::none()
        .with("payment_order_id", lack.order.0)
        .with("data_version", lack.data_version)
        .with("submit_round", lack.round);
    let mut added = 0;
    for effect in &lack.effects {
        let seed = seed(lack.progress, *effect, subject.clone(), None);
        let accepted = accept_or_reuse(&mut tx, &seed, kicker).await?;
        added += u32::from(accepted == counterfoil_task::Acceptance::New);
    }
    tx.commit("side_effect.rebuilt").await?;
    Ok(added)
}
