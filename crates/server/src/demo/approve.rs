//! From the reviewers' decision to a refreshed order: the same handlers that the service runs.

use anyhow::{Context, Result, ensure};
use counterfoil_db::{Db, Read, sql};
use counterfoil_payment::kinds::{BILL_SNAPSHOT, REVIEW_CALLBACK, REVIEW_PROGRESS, STATUS_REFRESH};
use counterfoil_protocol::{OrderId, PlanId, UserId};
use counterfoil_review::decision;
use counterfoil_review::decision_notice::DECISION_NOTICE;
use counterfoil_task::{Engine, Summary};

use super::{Progress, Proof};

/// Rounds of one handler at most.
const MAX_ROUNDS: u32 = 10_000;

/// Runs a handler until it finds nothing to do.
pub async fn drain(engine: &Engine, handler: &str, progress: &Progress) -> Result<()> {
    for _ in 0..MAX_ROUNDS {
        let summary: Summary = engine.round(handler, "").await?;
        ensure!(summary.failed == 0, "a round failed: {summary:?}");
        if summary.selected == 0 {
            return Ok(());
        }
        progress.tick();
    }
    anyhow::bail!("{handler} does not come to an end")
}

/// Every reviewer of the order's plan approves, node by node.
pub async fn approve(db: &Db, order: OrderId) -> Result<()> {
    let plan = plan(db, order).await?;
    for reviewer in reviewers(db, plan).await? {
        decision::approve(db, plan, reviewer, "核对无误").await?;
    }
    Ok(())
}

/// The first reviewer of the order's plan rejects it.
pub async fn reject(db: &Db, order: OrderId) -> Result<()> {
    let plan = plan(db, order).await?;
    let first = reviewers(db, plan).await?.into_iter().next().context("a reviewer")?;
    decision::reject(db, plan, first, "金额需要核实").await?;
    Ok(())
}

/// The decision reaches payment and is applied, to the end of the refresh.
pub async fn apply(engine: &Engine, progress: &Progress) -> Result<()> {
    for kind in [&DECISION_NOTICE, &REVIEW_CALLBACK, &REVIEW_PROGRESS, &STATUS_REFRESH] {
        drain(engine, kind.handler, progress).await?;
    }
    drain(engine, BILL_SNAPSHOT.handler, progress).await
}

async fn plan(db: &Db, order: OrderId) -> Result<PlanId> {
    let query = sql!(
        "SELECT review_plan_id FROM fi_resident_income_payment_order WHERE id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the order")?;
    Ok(PlanId(row.maybe_int("review_plan_id")?.context("the order's plan")?))
}

/// One person a node, in the order of the nodes, nobody twice.
async fn reviewers(db: &Db, plan: PlanId) -> Result<Vec<UserId>> {
    let query = sql!(
        "SELECT u.user_id, u.node_id FROM review_business_node n
         JOIN review_business_node_user u ON u.node_id = n.id
         WHERE n.plan_id = :plan AND u.deleted = 0 ORDER BY n.sort, n.id, u.id",
        plan = plan.0,
    );
    let mut chosen = Vec::new();
    let mut decided = None;
    for row in db.rows(query).await? {
        let (user, node) = (UserId(row.int("user_id")?), row.int("node_id")?);
        if decided != Some(node) && !chosen.contains(&user) {
            chosen.push(user);
            decided = Some(node);
        }
    }
    Ok(chosen)
}

/// The order is effective, every shard has ended and every payable line has its snapshot.
pub async fn prove(db: &Db, order: OrderId) -> Result<Vec<Proof>> {
    let query = sql!(
        "SELECT o.status, o.payable_count, p.phase, p.refresh_ready, p.shard_expected,
            p.payable_updated_count, p.unqualified_updated_count,
            (SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard s
              WHERE s.source_id = p.id AND s.task_status = 'SUCCESS') AS shards,
            (SELECT COUNT(*) FROM fi_resident_income_payment_bill_dimension_snapshot n
              WHERE n.payment_order_id = o.id) AS snapshots,
            (SELECT COUNT(*) FROM fi_monthly_income_difference d
              WHERE d.locked_payment_order_id = o.id AND d.payment_status = 40) AS wait_pay
         FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_review_callback_progress p ON p.payment_order_id = o.id
         WHERE o.id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the order's progress")?;
    let payable = row.int("payable_count")?;
    let (updated, unqualified) =
        (row.int("payable_updated_count")?, row.int("unqualified_updated_count")?);
    let effective = Proof::new(
        "approved and effective",
        row.int("status")? == 40 && updated == payable,
        format!("{updated} lines approved, {unqualified} unqualified; the order is WAIT_PAY"),
    );
    let (shards, expected) = (row.int("shards")?, row.int("shard_expected")?);
    let wait_pay = row.int("wait_pay")?;
    let refreshed = Proof::new(
        "business tables refreshed",
        row.int("refresh_ready")? == 1 && shards == expected && wait_pay == payable,
        format!("{shards} of {expected} shards, {wait_pay} ledger rows at WAIT_PAY"),
    );
    let snapshots = row.int("snapshots")?;
    let shown = Proof::new(
        "snapshots made",
        snapshots == payable,
        format!("{snapshots} snapshots = {payable} payable lines"),
    );
    Ok(vec![effective, refreshed, shown])
}
