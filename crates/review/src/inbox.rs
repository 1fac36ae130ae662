//! What waits for a reviewer: the nodes that have the turn, oldest first, page by page.

use counterfoil_db::{Db, Instant, Read, Row, sql};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound, UserId};

use crate::ReviewError;

/// Items of a page when the caller names no number.
pub const DEFAULT_PAGE: u32 = 50;
/// Items of a page at most.
pub const MAX_PAGE: u32 = 200;

/// One node that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The plan.
    pub plan: PlanId,
    /// The node that has the turn.
    pub node: i64,
    /// Its code.
    pub node_code: String,
    /// Its name.
    pub node_name: String,
    /// The id of what is reviewed.
    pub from_id: OrderId,
    /// Its number.
    pub from_num: String,
    /// The review's type.
    pub type_name: String,
    /// The tenant.
    pub epctenantid: String,
    /// The organisation.
    pub organisation: String,
    /// Who submitted it.
    pub submitter: Option<UserId>,
    /// The round.
    pub round: Option<SubmitRound>,
    /// The data version.
    pub data_version: Option<DataVersion>,
    /// Since when the node has had the turn.
    pub since: Instant,
}

/// A page of items, with where the next one begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The items.
    pub items: Vec<Item>,
    /// Pass it as `after` for the next page; `None` on the last.
    pub next: Option<i64>,
}

/// What waits for this user. Not what he submitted, nor plans he has decided on.
pub async fn of_user(
    db: &Db,
    user: UserId,
    after: Option<i64>,
    limit: u32,
) -> Result<Page, ReviewError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let query = sql!(
        "SELECT u.id AS place, n.id AS node_id, n.node_code, n.node_name, n.update_time,
                p.id AS plan_id, p.from_id, p.from_num, p.type, p.epctenantid, p.organisation,
                p.submitter, p.submit_round, p.data_version
         FROM review_business_node_user u
         JOIN review_business_node n ON n.id = u.node_id AND n.status = 'DOING' AND n.deleted = 0
         JOIN review_business_plan p ON p.id = n.plan_id AND p.status = 'DOING' AND p.deleted = 0
         WHERE u.user_id = :user AND u.has_turn = 1 AND u.id > :after AND u.decision IS NULL
           AND u.deleted = 0 AND (p.submitter IS NULL OR p.submitter <> :user)
           AND NOT EXISTS (SELECT 1 FROM review_business_node d
                           WHERE d.plan_id = p.id AND d.decided_by = :user)
         ORDER BY u.id LIMIT :limit",
        user = user.0,
        after = after.unwrap_or(0),
        limit = limit + 1,
    );
    page(&db.rows(query).await?, limit)
}

/// What waits for anybody: for those who look after the reviewers.
pub async fn of_everybody(db: &Db, after: Option<i64>, limit: u32) -> Result<Page, ReviewError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let query = sql!(
        "SELECT n.id AS place, n.id AS node_id, n.node_code, n.node_name, n.update_time,
                p.id AS plan_id, p.from_id, p.from_num, p.type, p.epctenantid, p.organisation,
                p.submitter, p.submit_round, p.data_version
         FROM review_business_node n
         JOIN review_business_plan p ON p.id = n.plan_id AND p.status = 'DOING' AND p.deleted = 0
         WHERE n.status = 'DOING' AND n.id > :after AND n.deleted = 0
         ORDER BY n.id LIMIT :limit",
        after = after.unwrap_or(0),
        limit = limit + 1,
    );
    page(&db.rows(query).await?, limit)
}

/// Who may decide a node, for people: at most [`crate::configuration::MAX_REVIEWERS`].
pub async fn reviewers_of(db: &Db, node: i64) -> Result<Vec<UserId>, ReviewError> {
    let query = sql!(
        "SELECT user_id FROM review_business_node_user
         WHERE node_id = :node AND deleted = 0 ORDER BY user_id LIMIT :limit",
        node = node,
        limit = i64::try_from(crate::configuration::MAX_REVIEWERS).unwrap_or(i64::MAX),
    );
    let rows = db.rows(query).await?;
    let users = rows.iter().map(|row| Ok(UserId(row.int("user_id")?)));
    users.collect()
}

fn page(rows: &[Row], limit: u32) -> Result<Page, ReviewError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let shown = &rows[..rows.len().min(limit)];
    let next = match shown.last().filter(|_| rows.len() > limit) {
        Some(last) => Some(last.int("place")?),
        None => None,
    };
    Ok(Page { items: shown.iter().map(item).collect::<Result<_, _>>()?, next })
}

fn item(row: &Row) -> Result<Item, ReviewError> {
    Ok(Item {
        plan: PlanId(row.int("plan_id")?),
        node: row.int("node_id")?,
        node_code: row.text("node_code")?,
        node_name: row.text("node_name")?,
        from_id: OrderId(row.int("from_id")?),
        from_num: row.text("from_num")?,
        type_name: row.text("type")?,
        epctenantid: row.text("epctenantid")?,
        organisation: row.text("organisation")?,
        submitter: row.maybe_int("submitter")?.map(UserId),
        round: row.maybe_int("submit_round")?.map(SubmitRound),
        data_version: row.maybe_int("data_version")?.map(DataVersion),
        since: row.instant("update_time")?,
    })
}
