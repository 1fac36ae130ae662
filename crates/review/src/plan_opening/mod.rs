//! Opening an audit plan (initInfo): the same plan for the same round, whoever asks and how often.

mod build;
mod choose;

use std::collections::BTreeSet;

use counterfoil_db::{Db, Error as DbError, Read, Tx, sql, transact};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound, UserId};

use crate::ReviewError;
use crate::configuration::MAX_REVIEWERS;
use crate::journal::{self, Action, Entry};
use crate::states::PlanStatus;
use crate::withdrawal;
pub(crate) use build::give_turn;
use choose::{ActivePlan, Choice, Edition, choose};

/// Characters of a type, a number, a tenant or an organisation.
pub const MAX_NAME: usize = 64;

/// What the centre is asked to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOpening {
    /// The id of what is reviewed.
    pub from_id: OrderId,
    /// Its number, for people.
    pub from_num: String,
    /// The review's type.
    pub type_name: String,
    /// The tenant; may be empty where there is one tenant only.
    pub epctenantid: String,
    /// The organisation, for people; may be empty.
    pub organisation: String,
    /// Who submitted it, and so never reviews it.
    pub submitter: UserId,
    /// The business round.
    pub round: SubmitRound,
    /// The data version under review.
    pub data_version: DataVersion,
    /// Operations managers A: any one of them decides that node.
    pub managers_a: Vec<UserId>,
    /// Operations managers B.
    pub managers_b: Vec<UserId>,
}

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
    let plan = match kept {
        Some(plan) => plan,
        None => build::insert_plan(&mut tx, opening).await?,
    };
    if kept.is_some()
        && active
            .iter()
            .any(|old| old.plan == plan && old.edition.is_none())
    {
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

impl PlanOpening {
    /// The value that only one plan of the order can hold while it is active.
    pub(crate) fn active_key(&self) -> String {
        format!("{}:{}:{}", self.type_name, self.epctenantid, self.from_id)
    }

    fn edition(&self) -> Edition {
        Edition {
            round: self.round,
            data: self.data_version,
        }
    }

    fn stale(&self, newest: Edition) -> ReviewError {
        ReviewError::Stale {
            round: self.round,
            data_version: self.data_version,
            newest_round: newest.round,
            newest_data_version: newest.data,
        }
    }

    fn validate(&self) -> Result<(), ReviewError> {
        let numbers = [
            ("fromId", self.from_id.0),
            ("submitter", self.submitter.0),
            ("submitRound", self.round.0),
            ("dataVersion", self.data_version.0),
        ];
        for (field, number) in numbers {
            if number <= 0 {
                return Err(ReviewError::invalid(field, "must be positive"));
            }
        }
        if self.type_name.is_empty() {
            return Err(ReviewError::invalid("type", "must not be empty"));
        }
        let texts = [
            ("fromNum", &self.from_num),
            ("type", &self.type_name),
            ("epctenantid", &self.epctenantid),
            ("organisation", &self.organisation),
        ];
        for (field, text) in texts {
            if text.chars().count() > MAX_NAME {
                return Err(ReviewError::invalid(
                    field,
                    format!("over {MAX_NAME} characters"),
                ));
            }
        }
        for (field, users) in [
            ("managersA", &self.managers_a),
            ("managersB", &self.managers_b),
        ] {
            if users.len() > MAX_REVIEWERS {
                return Err(ReviewError::invalid(
                    field,
                    format!("over {MAX_REVIEWERS} users"),
                ));
            }
            if users.iter().any(|user| user.0 <= 0) {
                return Err(ReviewError::invalid(
                    field,
                    "every user id must be positive",
                ));
            }
        }
        Ok(())
    }

    /// The managers the request names for a node; the submitter is never among them.
    fn reviewers_of(&self, node_code: &str) -> BTreeSet<UserId> {
        use crate::configuration::{OPERATION_MANAGER_A, OPERATION_MANAGER_B};
        let named: &[UserId] = match node_code {
            OPERATION_MANAGER_A => &self.managers_a,
            OPERATION_MANAGER_B => &self.managers_b,
            _ => &[],
        };
        named
            .iter()
            .copied()
            .filter(|user| *user != self.submitter)
            .collect()
    }
}
