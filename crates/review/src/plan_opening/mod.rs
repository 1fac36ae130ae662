//! Opening an audit plan (initInfo): the same plan for the same round, whoever asks and how often.

mod build;
mod choose;
mod request;

use counterfoil_db::{Db, Error as DbError, Read, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, PlanId, SubmitRound};

use crate::ReviewError;
use crate::journal::{self, Action, Entry};
use crate::states::PlanStatus;
use crate::withdrawal;
pub(crate) use build::give_turn;
use choose::{ActivePlan, Choice, Edition, choose};
pub use request::{MAX_NAME, PlanOpening};

/// How the plan came to be the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It was built from the configuration and started.
    Created,
    /// It was there and not begun: it was started.
    Started,
    /// It was there and under way.
    Reused,
}

/// The plan that is under way now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Its id.
    pub plan: PlanId,
    /// How it came to be.
    pub how: How,
}

/// How often the loser of a race looks for the winner's plan.
const MAX_RACES: u32 = 8;
/// Active plans of one order looked at; the unique key allows one, rows made by hand may be more.
const MAX_ACTIVE: u32 = 100;

/// Opens the plan of this round, or answers the one that is open.
///
/// # Errors
/// A refusal ([`ReviewError::is_refusal`]) has done nothing. [`ReviewError::Stale`] when the order
/// has a plan of a newer round.
pub async fn open(db: &Db, opening: &PlanOpening) -> Result<Opened, ReviewError> {
    opening.validate()?;
    for _ in 0..MAX_RACES {
        match transact!(open_once(db, opening)) {
            // Somebody else's plan took the active key. Our transaction is rolled back; a new one
            // reads the winner's plan.
            Err(ReviewError::Db(DbError::Duplicate(_))) => {}
            other => return other,
        }
    }
    Err(ReviewError::Contended)
}

async fn open_once(db: &Db, opening: &PlanOpening) -> Result<Opened, ReviewError> {
    let mut tx = db.begin().await?;
    let active = lock_active(&mut tx, opening).await?;
    let newest = newest_edition(&tx, opening).await?;
    let choice = choose(opening.edition(), newest, &active);
    if let Choice::Refuse { newest } = choice {
        tx.rollback().await?;
        return Err(opening.stale(newest));
    }
    let (kept, how) = match choice {
        Choice::Start(plan) => (Some(plan), How::Started),
        Choice::Reuse(plan) => (Some(plan), How::Reused),
        _ => (None, How::Created),
    };
    for old in active.iter().filter(|old| Some(old.plan) != kept) {
        let reason = format!("replaced by round {}", opening.round);
        withdrawal::withdraw_locked(&mut tx, old.plan, old.status, None, &reason).await?;
    }
    if let Some(plan) = kept {
        refuse_other_submitter(&tx, plan, opening).await?;
    }
    let plan = match kept {
        Some(plan) => plan,
        None => build::insert_plan(&mut tx, opening).await?,
    };
    if kept.is_some() && active.iter().any(|old| old.plan == plan && old.edition.is_none()) {
        adopt(&mut tx, plan, opening).await?;
    }
    if !build::has_nodes(&tx, plan).await? {
        build::furnish(&mut tx, plan, opening).await?;
    }
    if how != How::Reused {
        build::start(&mut tx, plan, opening.submitter).await?;
    }
    tx.commit("review.opening").await?;
    Ok(Opened { plan, how })
}

/// The order's active plans, newest first, locked so that no decision and no other opening comes
/// between. Rows made by hand may lack the active key: they are found by what they are about.
async fn lock_active(tx: &mut Tx, opening: &PlanOpening) -> Result<Vec<ActivePlan>, ReviewError> {
    let query = sql!(
        "SELECT id, status, submit_round, data_version FROM review_business_plan
         WHERE from_id = :from_id AND type = :type_name AND epctenantid = :tenant
           AND status IN ('NO_START', 'DOING') AND deleted = 0
         ORDER BY id DESC LIMIT :limit {for_update}",
        from_id = opening.from_id.0,
        type_name = &opening.type_name,
        tenant = &opening.epctenantid,
        limit = MAX_ACTIVE,
    );
    let mut plans = Vec::new();
    for row in tx.rows(query).await? {
        let plan = PlanId(row.int("id")?);
        let round = row.maybe_int("submit_round")?;
        let data = row.maybe_int("data_version")?;
        plans.push(ActivePlan {
            plan,
            status: PlanStatus::stored(&row.text("status")?),
            edition: round.map(|round| Edition {
                round: SubmitRound(round),
                data: DataVersion(data.unwrap_or(0)),
            }),
            is_untouched: !is_touched(tx, plan).await?,
        });
    }
    Ok(plans)
}

/// A plan keeps its submitter from deciding, so it must be the order's own: one that somebody
/// opened beforehand in another name would let the real submitter approve.
async fn refuse_other_submitter(
    from: &impl Read,
    plan: PlanId,
    opening: &PlanOpening,
) -> Result<(), ReviewError> {
    let query = sql!("SELECT submitter FROM review_business_plan WHERE id = :plan", plan = plan.0);
    let row = from.row(query).await?;
    let stored = row.map(|row| row.maybe_int("submitter")).transpose()?.flatten();
    match stored {
        Some(user) if user != opening.submitter.0 => {
            Err(ReviewError::OtherSubmitter { plan, user: opening.submitter })
        }
        _ => Ok(()),
    }
}

async fn is_touched(from: &impl Read, plan: PlanId) -> Result<bool, ReviewError> {
    let decided = sql!(
        "SELECT COUNT(*) AS decided FROM review_business_node
         WHERE plan_id = :plan AND decided_by IS NOT NULL",
        plan = plan.0,
    );
    Ok(from.count(decided).await? > 0)
}

async fn newest_edition(
    from: &impl Read,
    opening: &PlanOpening,
) -> Result<Option<Edition>, ReviewError> {
    let query = sql!(
        "SELECT submit_round, COALESCE(data_version, 0) AS data_version
         FROM review_business_plan
         WHERE from_id = :from_id AND type = :type_name AND epctenantid = :tenant
           AND submit_round IS NOT NULL AND deleted = 0
         ORDER BY submit_round DESC, data_version DESC LIMIT 1",
        from_id = opening.from_id.0,
        type_name = &opening.type_name,
        tenant = &opening.epctenantid,
    );
    let Some(row) = from.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(Edition {
        round: SubmitRound(row.int("submit_round")?),
        data: DataVersion(row.int("data_version")?),
    }))
}

/// A plan that says neither round nor submitter (an import, or made by hand) becomes this one's.
async fn adopt(tx: &mut Tx, plan: PlanId, opening: &PlanOpening) -> Result<(), ReviewError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE review_business_plan
         SET submit_round = :round, data_version = :data, submitter = :submitter,
             organisation = :organisation, active_key = :active_key, update_time = :now
         WHERE id = :plan AND status IN ('NO_START', 'DOING') AND submit_round IS NULL",
        round = opening.round.0,
        data = opening.data_version.0,
        submitter = opening.submitter.0,
        organisation = &opening.organisation,
        active_key = opening.active_key(),
        now = now,
        plan = plan.0,
    );
    if tx.execute(update).await? != 1 {
        return Err(ReviewError::Contended);
    }
    build::set_submitter(tx, plan, opening.submitter).await?;
    let entry = Entry {
        plan,
        node: None,
        action: Action::Adopt,
        from: None,
        to: "",
        by: Some(opening.submitter),
        remark: None,
    };
    Ok(journal::record(tx, &entry).await?)
}
