//! What the demo proves, each by counting rows that could have come out otherwise.

use anyhow::Result;
use counterfoil_db::{Db, Query, Read, sql};
use counterfoil_payment::session::Submission;
use counterfoil_payment::session::add::BillKey;
use counterfoil_protocol::OrderId;
use serde::Serialize;

use super::steps::Plan;
use crate::wiring;

/// One thing that was proved, or not.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    /// What.
    pub what: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// The figures.
    pub figures: String,
}

impl Proof {
    /// A proof with its figures.
    pub fn new(what: &'static str, holds: bool, figures: impl Into<String>) -> Proof {
        Proof { what, holds, figures: figures.into() }
    }
}

/// How S04 was found after its process was killed.
#[derive(Debug)]
pub struct Interrupted {
    session: String,
    task_status: i64,
    projected: i64,
    payable: i64,
}

impl Interrupted {
    /// Whether it really was in the middle: something done, something not.
    pub fn is_interrupted(&self) -> bool {
        self.session == "PUBLISHED_LOCK_SYNCING"
            && self.task_status == 1
            && (1..self.payable).contains(&self.projected)
    }

    /// In a sentence.
    pub fn describe(&self) -> String {
        format!(
            "process killed with {} of {} ledger rows projected, session {}; the next one went on",
            self.projected, self.payable, self.session
        )
    }
}

/// Reads how far a version's S04 has come.
pub async fn interrupted(db: &Db, version: &Submission) -> Result<Interrupted> {
    let session = sql!(
        "SELECT s.status FROM selection_session s
         JOIN fi_resident_income_payment_order_version v ON v.session_id = s.id
         WHERE v.id = :version",
        version = version.version.0,
    );
    let session = db.row(session).await?.map(|row| row.text("status")).transpose()?;
    let task = sql!(
        "SELECT task_status FROM fi_async_task
         WHERE business_key = 'LOCK_ACTIVATE:' || :version",
        version = version.version.0,
    );
    let projected = sql!(
        "SELECT COUNT(*) FROM fi_monthly_income_difference d
         JOIN fi_resident_income_payment_order_bill l ON l.id = d.locked_order_bill_id
         JOIN fi_resident_income_payment_order_version v
           ON v.payment_order_id = l.payment_order_id AND v.target_data_version = l.data_version
         WHERE v.id = :version",
        version = version.version.0,
    );
    let payable = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_order_version v
           ON v.payment_order_id = l.payment_order_id AND v.target_data_version = l.data_version
         WHERE v.id = :version AND l.line_type = 10",
        version = version.version.0,
    );
    Ok(Interrupted {
        session: session.unwrap_or_default(),
        task_status: db.count(task).await?,
        projected: db.count(projected).await?,
        payable: db.count(payable).await?,
    })
}

/// V1 is published, locked and under review.
pub async fn first_version(db: &Db, v1: &Submission) -> Result<Vec<Proof>> {
    let state = interrupted(db, v1).await?;
    let locks = active_locks(db, v1.order).await?;
    let locked = Proof::new(
        "V1 published and locked",
        state.session == "COMPLETED" && state.projected == state.payable && locks == state.payable,
        format!(
            "{} payable lines = {locks} ACTIVE locks = {} ledger references",
            state.payable, state.projected
        ),
    );
    Ok(vec![locked, audit_plan(db, v1.order, "V1 has its audit plan").await?])
}

async fn active_locks(db: &Db, order: OrderId) -> Result<i64> {
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status = 'ACTIVE'",
        order = order.0,
    );
    Ok(db.count(query).await?)
}

async fn audit_plan(db: &Db, order: OrderId, what: &'static str) -> Result<Proof> {
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order o
         JOIN review_business_plan p ON p.id = o.review_plan_id AND p.status = 'DOING'
         JOIN fi_resident_income_payment_order_approval_instance a
           ON a.review_plan_id = p.id AND a.data_version = o.current_publish_version
         WHERE o.id = :order AND o.audit_plan_status = 'CREATED'",
        order = order.0,
    );
    let plans = db.count(query).await?;
    let figures = format!("{plans} plan under way, created over HTTP, with its approval instance");
    Ok(Proof::new(what, plans == 1, figures))
}

/// A kept, B released and free, C released and unqualified, D active.
pub async fn second_version(db: &Db, plan: &Plan, v2: &Submission) -> Result<Vec<Proof>> {
    let state = interrupted(db, v2).await?;
    let kept = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
         WHERE payment_order_id = :order AND lock_status = 'ACTIVE'
           AND lock_origin = 'REVISE_KEEP_ACTIVE' AND data_version = 2",
        order = v2.order.0,
    );
    let kept = db.count(kept).await?;
    let added = i64::try_from(plan.d.len())?;
    let locks = active_locks(db, v2.order).await?;
    let a = Proof::new(
        "A kept its locks, D got new ones",
        kept + added == locks && locks == state.payable && state.projected == state.payable,
        format!("{kept} kept + {added} new = {locks} ACTIVE locks = {} payable", state.payable),
    );
    let b_free = free(db, &plan.b, "d.unqualified_flag = 0").await?;
    let b = Proof::new(
        "B is free again",
        b_free == plan.b.len(),
        format!("{b_free} of {} released, unpaid, without a reference", plan.b.len()),
    );
    let c_free = free(db, &plan.c, "d.unqualified_reason = '用户手动选到不合格'").await?;
    let c = Proof::new(
        "C is unqualified and free",
        c_free == plan.c.len(),
        format!("{c_free} of {} released, with the reason a partner may see", plan.c.len()),
    );
    Ok(vec![a, b, c, audit_plan(db, v2.order, "V2 has its own audit plan").await?])
}

/// Bills a statement.
const CHUNK: usize = 500;

/// How many of these bills have a RELEASED lock, no reference, and the given state in the ledger.
async fn free(db: &Db, bills: &[BillKey], state: &'static str) -> Result<usize> {
    let mut found = 0;
    for some in bills.chunks(CHUNK) {
        let query = Query::built(format!(
            "SELECT COUNT(*) FROM fi_monthly_income_difference d
             JOIN fi_resident_income_payment_bill_lock k
               ON k.station_id = d.station_id AND k.bill_yearmonth = d.bill_yearmonth
             WHERE d.station_id IN :stations AND d.locked_order_bill_id IS NULL
               AND d.locked_payment_order_id IS NULL AND d.payment_status IN (10, 20)
               AND k.lock_status = 'RELEASED' AND k.release_reason = 'REVISE_REMOVED' AND {state}"
        ))
        .bind_list("stations", some.iter().map(|bill| bill.station.as_str()));
        found += usize::try_from(db.count(query).await?)?;
    }
    Ok(found)
}

/// All rules hold.
pub async fn rules(db: &Db) -> Result<Proof> {
    let rules = wiring::rules();
    let mut broken = Vec::new();
    for rule in &rules {
        broken.extend(wiring::check(db, rule).await?.map(|breach| breach.rule));
    }
    let figures = match broken.as_slice() {
        [] => format!("{} invariant rules read the whole database, none is broken", rules.len()),
        names => format!("broken: {}", names.join(", ")),
    };
    Ok(Proof::new("all rules hold", broken.is_empty(), figures))
}

/// The order's number, for people.
pub async fn order_number(db: &Db, order: OrderId) -> Result<String> {
    let query = sql!(
        "SELECT order_no FROM fi_resident_income_payment_order WHERE id = :order",
        order = order.0,
    );
    let row = db.row(query).await?;
    Ok(row.map(|row| row.maybe_text("order_no")).transpose()?.flatten().unwrap_or_default())
}
