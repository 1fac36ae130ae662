//! Adds the side-effect tasks that a finalized review callback lacks. Never sends anything again:
//! a task that is there is left alone, whatever became of it. Source: seed 003, chapter 7.4.

use std::sync::{Mutex, PoisonError};

use counterfoil_db::{Db, Instant, Query, Read, Row, transact};
use counterfoil_protocol::{OrderId, ProgressId};
use counterfoil_task::{
    Acceptance, Kicker, Kind, Selector, Subject, Taken, Turn, TurnEnd, Turns, Unit, WorkError,
    accept_or_reuse,
};
use serde::Serialize;

use super::seed::{Effect, SeedFacts, seed};
use crate::PaymentError;
use crate::kinds::SIDE_EFFECT_REBUILD;

/// Progress rows that one call of [`rebuild_missing_seeds`] repairs at most.
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
    for lack in lacking(db, 0, limit.clamp(1, MAX_REBUILT)).await? {
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

/// The same as a handler: a turn repairs one progress row, and takes no lease of it, because it
/// changes nothing of the row.
#[derive(Debug, Default)]
pub struct Rebuild {
    /// The last row of the round under way, so that one row's trouble does not keep the round from
    /// the next. Two rounds at once only leave each other rows for later.
    after: Mutex<i64>,
}

const GROUP: &str = "rebuild";

impl Rebuild {
    fn after(&self) -> std::sync::MutexGuard<'_, i64> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unit(lack: &Lack) -> Unit {
    Unit {
        id: lack.progress.0,
        version: 0,
        group: GROUP,
        retries: 0,
        label: format!("progress {}", lack.progress),
    }
}

#[async_trait::async_trait]
impl Turns for Rebuild {
    fn kind(&self) -> &'static Kind {
        &SIDE_EFFECT_REBUILD
    }

    async fn next(&self, db: &Db, _: Instant, taken: &Taken) -> Result<Option<Unit>, WorkError> {
        let after = if taken.of(GROUP) == 0 { 0 } else { *self.after() };
        let found = lacking(db, after, 1).await?;
        let found = found.first().map(unit);
        *self.after() = found.as_ref().map_or(0, |unit| unit.id);
        Ok(found)
    }

    async fn eligible(&self, db: &Db, _: Instant, id: i64) -> Result<Option<Unit>, WorkError> {
        let found = lacking(db, id - 1, 1).await?;
        Ok(found.first().map(unit).filter(|unit| unit.id == id))
    }

    /// The rows whose S07 tasks are named, as far as they lack something.
    async fn named(&self, db: &Db, named: &Selector, limit: u32) -> Result<Vec<Unit>, WorkError> {
        let query = Query::new(
            "SELECT p.id FROM fi_resident_income_payment_review_callback_progress p
             JOIN fi_async_task t ON t.id = p.async_task_id AND t.deleted = 0
             WHERE p.deleted = 0 AND (t.task_code IN :codes OR t.business_key IN :business_keys)
             ORDER BY p.id LIMIT :limit",
        )
        .bind_list("codes", named.codes.iter().map(String::as_str))
        .bind_list("business_keys", named.keys.iter().map(String::as_str))
        .bind("limit", limit);
        let mut units = Vec::new();
        for row in db.rows(query).await? {
            units.extend(lacking_of(db, row.int("id")?).await?.as_ref().map(unit));
        }
        Ok(units)
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        let Some(lack) = lacking_of(turn.db(), unit.id).await? else {
            return Ok(TurnEnd::Skipped);
        };
        transact!(add(turn.db(), turn.kicker(), &lack))?;
        Ok(TurnEnd::Finished)
    }
}

/// A progress row with the tasks it lacks.
struct Lack {
    progress: ProgressId,
    order: OrderId,
    data_version: i64,
    round: i64,
    effects: Vec<Effect>,
}

/// Finalized rows of orders that were not cancelled since, by id. A key is looked up in any state,
/// deleted ones too: its code is taken.
async fn lacking(db: &Db, after: i64, limit: u32) -> Result<Vec<Lack>, PaymentError> {
    let query = Query::new(
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
           WHERE p.id > :after AND p.deleted = 0 AND p.main_task_status = 'SUCCESS'
             AND p.finalize_time IS NOT NULL) f
         WHERE (f.pushes = 0 AND (f.payable_count > 0 OR f.unqualified_count > 0))
            OR (f.builds = 0 AND f.is_treasury = 1 AND f.payable_count > 0)
         ORDER BY f.id LIMIT :limit",
    )
    .bind("after", after)
    .bind("limit", limit);
    db.rows(query).await?.iter().map(Lack::read).collect()
}

async fn lacking_of(db: &Db, progress: i64) -> Result<Option<Lack>, PaymentError> {
    let found = lacking(db, progress - 1, 1).await?;
    Ok(found.into_iter().find(|lack| lack.progress.0 == progress))
}

impl Lack {
    fn read(row: &Row) -> Result<Lack, PaymentError> {
        let facts = SeedFacts {
            payable_count: row.int("payable_count")?,
            unqualified_count: row.int("unqualified_count")?,
            is_treasury: row.int("is_treasury")? == 1,
        };
        let is_there = [row.int("pushes")? > 0, row.int("builds")? > 0];
        let effects = Effect::ALL.into_iter().zip(is_there);
        let effects = effects.filter(|(effect, is_there)| !is_there && effect.applies(facts));
        Ok(Lack {
            progress: ProgressId(row.int("id")?),
            order: OrderId(row.int("payment_order_id")?),
            data_version: row.int("data_version")?,
            round: row.int("submit_round")?,
            effects: effects.map(|(effect, _)| effect).collect(),
        })
    }
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
        added += u32::from(accepted == Acceptance::New);
    }
    tx.commit("side_effect.rebuilt").await?;
    Ok(added)
}
