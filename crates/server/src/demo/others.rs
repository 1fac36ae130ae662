//! Two more orders: one rejected, revised and paid offline; one with nothing to pay.

use anyhow::{Context, Result, ensure};
use counterfoil_db::{Db, Read, sql};
use counterfoil_payment::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::add::{BillKey, Selection, add_bills};
use counterfoil_payment::session::edit::{Editor, mark_unqualified, remove_bills};
use counterfoil_payment::session::open::{open_new, open_revise};
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::session::submit;
use counterfoil_payment::treasury::record_payment::record_payment;
use counterfoil_protocol::{BillMonth, OrderId, SessionId};
use counterfoil_review::decision_notice::DECISION_NOTICE;
use counterfoil_task::{Engine, Kicker};

use super::approve::{self, drain};
use super::{PREPARER, Progress, Proof};
use crate::sample;

/// Bills without anything to pay in the third order.
const UNPAYABLE: i64 = 20;

async fn publish(
    db: &Db,
    engine: &Engine,
    session: SessionId,
    progress: &Progress,
) -> Result<OrderId> {
    let order = submit(db, &Kicker::none(), session, PREPARER).await?.order;
    for kind in [&SUBMIT_BUILD, &LOCK_ACTIVATE, &AUDIT_PLAN_CREATE] {
        drain(engine, kind.handler, progress).await?;
    }
    Ok(order)
}

/// The company whose asset manager is paid offline: rejected, revised, approved, recorded.
pub async fn rejected_and_revised(
    db: &Db,
    engine: &Engine,
    progress: &Progress,
) -> Result<(OrderId, Vec<Proof>)> {
    let session = open_new(db, PREPARER).await?;
    let month: BillMonth = sample::MONTH.parse().context("the sample's month")?;
    let company = Some(sample::offline_company());
    let bills = Selection::Month { month, company, partner: None };
    let editor = Editor { session, user: PREPARER };
    add_bills(db, editor, &bills, &Tolerance::default()).await?;
    let order = publish(db, engine, session, progress).await?;
    approve::reject(db, order).await?;
    drain(engine, DECISION_NOTICE.handler, progress).await?;
    approve::apply(engine, progress).await?;
    let (status, locks) = standing(db, order).await?;
    let rejected = Proof::new(
        "rejection keeps the locks",
        status == 30 && locks > 0,
        format!("the second order is REVIEW_REJECTED and still holds its {locks} bills"),
    );
    let session = open_revise(db, PREPARER, order).await?;
    let editor = Editor { session, user: PREPARER };
    let first = bills_of(db, session, 1).await?;
    remove_bills(db, editor, &Selection::Bills(first)).await?;
    publish(db, engine, session, progress).await?;
    approve::approve(db, order).await?;
    approve::apply(engine, progress).await?;
    let recorded = record_payment(db, order, "银行回单 2026-10-08 No.20261008001", None, PREPARER);
    let recorded = recorded.await?;
    let (status, _) = standing(db, order).await?;
    let paid = Proof::new(
        "revised, approved, paid offline",
        status == 50 && recorded.lines > 0,
        format!("{} lines PAID by recorded evidence, no batch was pushed", recorded.lines),
    );
    Ok((order, vec![rejected, paid]))
}

/// Bills that a person calls unqualified: approved, and there is nothing to pay.
pub async fn nothing_to_pay(db: &Db, engine: &Engine, progress: &Progress) -> Result<Proof> {
    let session = open_new(db, PREPARER).await?;
    let editor = Editor { session, user: PREPARER };
    let free = free_bills(db).await?;
    ensure!(!free.is_empty(), "no bill is free for the third order");
    add_bills(db, editor, &Selection::Bills(free), &Tolerance::default()).await?;
    let payable = payable_of(db, session).await?;
    mark_unqualified(db, editor, &payable).await?;
    let order = publish(db, engine, session, progress).await?;
    approve::approve(db, order).await?;
    approve::apply(engine, progress).await?;
    let (status, locks) = standing(db, order).await?;
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :order",
        order = order.0,
    );
    let batches = db.count(query).await?;
    Ok(Proof::new(
        "nothing to pay is no payment",
        status == 55 && locks == 0 && batches == 0,
        "the third order is NO_NEED_PAY: no lock, no batch, its partners told".to_owned(),
    ))
}

async fn standing(db: &Db, order: OrderId) -> Result<(i64, i64)> {
    let query = sql!(
        "SELECT o.status, (SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock k
             WHERE k.payment_order_id = o.id AND k.lock_status = 'ACTIVE') AS locks
         FROM fi_resident_income_payment_order o WHERE o.id = :order",
        order = order.0,
    );
    let row = db.row(query).await?.context("the order")?;
    Ok((row.int("status")?, row.int("locks")?))
}

async fn keys(db: &Db, query: counterfoil_db::Query) -> Result<Vec<BillKey>> {
    let key = |row: &counterfoil_db::Row| {
        Ok(BillKey {
            station: row.text("station_id")?,
            month: BillMonth::stored(row.text("bill_yearmonth")?),
        })
    };
    db.rows(query).await?.iter().map(key).collect()
}

async fn bills_of(db: &Db, session: SessionId, most: i64) -> Result<Vec<BillKey>> {
    let query = sql!(
        "SELECT station_id, bill_yearmonth FROM selection_session_item
         WHERE session_id = :session AND deleted = 0 AND line_type = 10 ORDER BY id LIMIT :most",
        session = session.0,
        most = most,
    );
    keys(db, query).await
}

async fn payable_of(db: &Db, session: SessionId) -> Result<Vec<BillKey>> {
    bills_of(db, session, UNPAYABLE).await
}

async fn free_bills(db: &Db) -> Result<Vec<BillKey>> {
    let query = sql!(
        "SELECT station_id, bill_yearmonth FROM fi_monthly_income_difference
         WHERE locked_order_bill_id IS NULL AND deleted = 0 AND payment_status = 20
         ORDER BY id LIMIT :most",
        most = UNPAYABLE,
    );
    keys(db, query).await
}
