//! Building: session items become formal lines; payable ones without a lock to carry reserve one.

use counterfoil_db::{Read, Tx, sql, transact};
use counterfoil_task::{Progress, Run, WorkError};

use super::Batch;
use crate::version::VersionContext;

/// How building ended.
pub(super) enum Built {
    /// Every item has its line, every line that needs one its lock.
    All,
    /// Somebody else took a bill meanwhile; the last batch was rolled back.
    Conflict,
}

pub(super) async fn build(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &mut Batch,
) -> Result<Built, WorkError> {
    loop {
        run.checkpoint()?;
        match transact!(one_batch(run, context, batch))? {
            Step::Done { last, before } => {
                batch.cursor = last;
                batch.built = before;
            }
            Step::Conflict => return Ok(Built::Conflict),
            Step::Nothing => return Ok(Built::All),
        }
    }
}

enum Step {
    /// The last item built, and the last line there was before its batch.
    Done {
        last: i64,
        before: i64,
    },
    Conflict,
    Nothing,
}

async fn one_batch(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Step, WorkError> {
    let mut tx = run.begin().await?;
    let Some((last, items)) = end_of_batch(&mut tx, context, batch).await? else {
        tx.rollback().await?;
        return Ok(Step::Nothing);
    };
    let before = last_line(&mut tx, context, batch.built).await?;
    insert_lines(&mut tx, context, batch.cursor, last).await?;
    let wanted = count_unlocked(&mut tx, context, before).await?;
    let reserved = reserve(&mut tx, context, before).await?;
    if reserved != wanted {
        tx.rollback().await?;
        return Ok(Step::Conflict);
    }
    let progress = Progress::none().set("last_item_id", last).add("processed_count", items);
    if !batch.lease.advance(&mut tx, progress).await? {
        return Err(WorkError::failed("lease-lost", "the BUILD batch's lease was lost"));
    }
    tx.commit("submit_build.batch").await?;
    Ok(Step::Done { last, before })
}

async fn end_of_batch(
    tx: &mut Tx,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Option<(i64, u64)>, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last, COUNT(*) AS items FROM (
           SELECT id FROM selection_session_item
           WHERE session_id = :session AND deleted = 0 AND id > :cursor
           ORDER BY id LIMIT :size) AS batch",
        session = context.session.0,
        cursor = batch.cursor,
        size = batch.size,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(None);
    };
    let items = u64::try_from(row.int("items")?).unwrap_or(0);
    Ok(row.maybe_int("last")?.map(|last| (last, items)))
}

/// The version's last line, which is `built` or a later one. Each line type is walked backwards in
/// the order of its index, so that no batch reads the lines of the batches before it again.
async fn last_line(tx: &mut Tx, context: &VersionContext, built: i64) -> Result<i64, WorkError> {
    let query = sql!(
        "SELECT MAX(id) AS last FROM (
           SELECT id FROM (
             SELECT id FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 10 AND id >= :built ORDER BY id DESC LIMIT 1) AS payable
           UNION ALL
           SELECT id FROM (
             SELECT id FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 20 AND id >= :built ORDER BY id DESC LIMIT 1) AS unqualified
         ) AS newest",
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        built = built,
    );
    Ok(tx.count(query).await?)
}

/// One line an item. What was before comes from the business tables, and for a kept line from its
/// source line, so that a chain of revisions still knows the state before the first. The payee is
/// the small bill's account where that bill is pushed, else the partner bill's.
async fn insert_lines(
    tx: &mut Tx,
    context: &VersionContext,
    after: i64,
    last: i64,
) -> Result<u64, WorkError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_bill
           (payment_order_id, data_version, submit_round, line_type, line_status, station_id,
            bill_yearmonth, diff_id, small_bill_id, partner_bill_id, source_order_bill_id,
            pre_rent, pay_amount, unqualified_reason, before_payment_status,
            before_partner_query_status, project_company_id, partner_id, payee_name,
            payee_account, payee_bank, create_time, update_time)
         SELECT :order, :data, :round, i.line_type, 10, i.station_id, i.bill_yearmonth, i.diff_id,
            i.small_bill_id, i.partner_bill_id, i.source_order_bill_id, i.pre_rent, i.pay_amount,
            i.unqualified_reason,
            CASE WHEN s.id IS NULL
                 THEN COALESCE(d.payment_status, b.payment_status, p.payment_status)
                 ELSE s.before_payment_status END,
            CASE WHEN s.id IS NULL THEN COALESCE(d.partner_query_status, p.partner_query_status)
                 ELSE s.before_partner_query_status END,
            d.project_company_id, COALESCE(d.partner_id, p.partner_id),
            COALESCE(ca.holder_name, pa.holder_name), COALESCE(ca.account_no, pa.account_no),
            COALESCE(ca.bank_name, pa.bank_name), :now, :now
         FROM selection_session_item i
         LEFT JOIN fi_resident_income_payment_order_bill s ON s.id = i.source_order_bill_id
         LEFT JOIN fi_monthly_income_difference d ON d.id = i.diff_id AND d.deleted = 0
         LEFT JOIN fi_customer_bill b ON b.id = i.small_bill_id AND b.deleted = 0
         LEFT JOIN fi_customer_account ca
           ON ca.id = b.customer_account_id AND ca.deleted = 0 AND b.pushed_flag = 1
         LEFT JOIN fi_customer_bill_partner p ON p.id = i.partner_bill_id AND p.deleted = 0
         LEFT JOIN fi_customer_account_partner pa
           ON pa.id = p.partner_account_id AND pa.deleted = 0
         WHERE i.session_id = :session AND i.deleted = 0 AND i.id > :after AND i.id <= :last
         ORDER BY i.id",
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        now = now,
        session = context.session.0,
        after = after,
        last = last,
    );
    Ok(tx.execute(insert).await?)
}

/// Payable lines built after `before` that have no ACTIVE lock of the source version to carry.
///
/// The inner order is that of the index that has the id: statistics know nothing of the lines yet,
/// and by another index every batch would read the whole version. The locks are counted, so that
/// no planner joins all there are.
macro_rules! lines_to_lock {
    () => {
        "FROM (SELECT * FROM fi_resident_income_payment_order_bill
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
             AND line_type = 10 AND deleted = 0 AND id > :before
           ORDER BY id) AS l
         WHERE (SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock k
             WHERE k.order_bill_id = l.source_order_bill_id AND k.payment_order_id + 0 = :order
               AND k.data_version = :source_data AND k.submit_round = :source_round
               AND k.lock_status = 'ACTIVE') = 0"
    };
}

async fn count_unlocked(
    tx: &mut Tx,
    context: &VersionContext,
    before: i64,
) -> Result<u64, WorkError> {
    let query = sql!(
        concat!("SELECT COUNT(*) ", lines_to_lock!()),
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        before = before,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
    );
    Ok(u64::try_from(tx.count(query).await?).unwrap_or(0))
}

/// Reserves one lock a line; a taken lock_key is passed over, and the count tells. In the order of
/// the keys: two builds that want the same bills wait for each other and never in a circle.
async fn reserve(tx: &mut Tx, context: &VersionContext, before: i64) -> Result<u64, WorkError> {
    let now = tx.now();
    let insert = sql!(
        concat!(
            "{insert_ignore} INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, lock_scene, lock_origin, payment_order_id, order_bill_id,
                data_version, submit_round, session_id, submit_attempt, station_id,
                bill_yearmonth, diff_id, small_bill_id, partner_bill_id, source_payment_status,
                source_partner_query_status, create_time, update_time)
             SELECT l.station_id || ':' || l.bill_yearmonth, 'RESERVED', 'BUILD_RESERVE',
                CASE WHEN :source_data = 0 THEN 'SUBMIT_NEW' ELSE NULL END,
                l.payment_order_id, l.id, l.data_version, l.submit_round, :session, :attempt,
                l.station_id, l.bill_yearmonth, l.diff_id, l.small_bill_id, l.partner_bill_id,
                l.before_payment_status, l.before_partner_query_status, :now, :now ",
            lines_to_lock!(),
            " ORDER BY l.station_id, l.bill_yearmonth {or_ignore}"
        ),
        order = context.order.0,
        data = context.target_data.0,
        round = context.target_round.0,
        before = before,
        source_data = context.source_data.0,
        source_round = context.source_round.0,
        session = context.session.0,
        attempt = context.attempt.0,
        now = now,
    );
    Ok(tx.execute(insert).await?)
}
