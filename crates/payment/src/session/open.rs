//! Opening a session.

use counterfoil_db::{Db, Read, Tx, sql, transact};
use counterfoil_protocol::{OrderId, SessionId, UserId};

use super::check_revisable;
use super::creation_key::{CreationKey, Keyed, keep};
use crate::PaymentError;

/// Opens a NEW session: what is selected in it becomes an order of its own.
///
/// # Errors
/// Nobody in particular cannot open one.
pub async fn open_new(db: &Db, user: UserId) -> Result<SessionId, PaymentError> {
    check_user(user)?;
    Ok(transact!(start_new(db, user, None))?.session)
}

/// Opens a session once for a key, however often it is asked for: NEW, or to revise `order`.
///
/// # Errors
/// As [`open_new`] and [`open_revise`]; [`PaymentError::KeyReused`] when the key opened a session
/// for another request.
pub async fn open_once(
    db: &Db,
    user: UserId,
    order: Option<OrderId>,
    key: &CreationKey,
) -> Result<Keyed, PaymentError> {
    check_user(user)?;
    if let Some(session) = key.known(db).await? {
        return Ok(Keyed { session, is_new: false });
    }
    match order {
        None => transact!(start_new(db, user, Some(key))),
        Some(order) => transact!(start_revision(db, user, order, Some(key))),
    }
}

async fn start_new(
    db: &Db,
    user: UserId,
    key: Option<&CreationKey>,
) -> Result<Keyed, PaymentError> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO selection_session
           (mode, status, creator_user_id, heartbeat_time, create_time, update_time)
         VALUES ('NEW', 'EDITING', :user, :now, :now, :now)",
        user = user.0,
        now = now,
    );
    let session = tx.insert(insert).await?;
    let scope = sql!(
        "UPDATE selection_session SET active_scope_key = :scope WHERE id = :session",
        scope = format!("scope:{session}"),
        session = session,
    );
    tx.execute(scope).await?;
    let session = SessionId(session);
    if let Some(earlier) = keep(&mut tx, key, session).await? {
        return Ok(Keyed { session: earlier, is_new: false });
    }
    tx.commit("session.open-new").await?;
    Ok(Keyed { session, is_new: true })
}

/// Opens a REVISE session with the lines of the order's published version.
///
/// # Errors
/// Refuses everybody but the order's first creator, a second revision of the order, and an order
/// that cannot be revised as it stands.
pub async fn open_revise(db: &Db, user: UserId, order: OrderId) -> Result<SessionId, PaymentError> {
    check_user(user)?;
    Ok(transact!(start_revision(db, user, order, None))?.session)
}

async fn start_revision(
    db: &Db,
    user: UserId,
    order: OrderId,
    key: Option<&CreationKey>,
) -> Result<Keyed, PaymentError> {
    let mut tx = db.begin().await?;
    let source = lock_source(&mut tx, user, order).await?;
    let session = claim_revision(&mut tx, user, order, source.status).await?;
    copy_lines(&mut tx, session, order, &source).await?;
    if let Some(earlier) = keep(&mut tx, key, session).await? {
        return Ok(Keyed { session: earlier, is_new: false });
    }
    tx.commit("session.open-revise").await?;
    Ok(Keyed { session, is_new: true })
}

fn check_user(user: UserId) -> Result<(), PaymentError> {
    match user.0 > 0 {
        true => Ok(()),
        false => Err(PaymentError::invalid("user", "must be a positive id")),
    }
}

/// The published version that a revision starts from.
struct RevisionSource {
    status: i64,
    data_version: i64,
    round: i64,
}

/// Locks the order's row, which publishing, cancelling and the final decision take too, and
/// decides whether this person may revise it now.
async fn lock_source(
    tx: &mut Tx,
    user: UserId,
    order: OrderId,
) -> Result<RevisionSource, PaymentError> {
    let query = sql!(
        "SELECT status, current_publish_version, submit_round, create_user_id
         FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = order.0,
    );
    let row = tx.row(query).await?.ok_or(PaymentError::OrderNotFound(order))?;
    let creator = row.int("create_user_id")?;
    if creator != user.0 {
        return Err(PaymentError::Forbidden(format!(
            "order {order} can be revised by its first creator, user {creator}, only"
        )));
    }
    check_revisable(tx, order, &row).await?;
    Ok(RevisionSource {
        status: row.int("status")?,
        data_version: row.int("current_publish_version")?,
        round: row.int("submit_round")?,
    })
}

/// Inserts the session, unless the order has an active revision: `active_revise_key` is unique.
async fn claim_revision(
    tx: &mut Tx,
    user: UserId,
    order: OrderId,
    order_status: i64,
) -> Result<SessionId, PaymentError> {
    let now = tx.now();
    let key = format!("revise:{order}");
    let insert = sql!(
        "{insert_ignore} INTO selection_session
           (mode, status, creator_user_id, target_payment_order_id, active_revise_key,
            heartbeat_time, create_time, update_time)
         VALUES ('REVISE', 'EDITING', :user, :order, :key, :now, :now, :now)
         {or_ignore}",
        user = user.0,
        order = order.0,
        key = &key,
        now = now,
    );
    let won = tx.execute(insert).await? == 1;
    let holder = sql!("SELECT id FROM selection_session WHERE active_revise_key = :key", key = key);
    let session = SessionId(tx.count(holder).await?);
    match won {
        true => Ok(session),
        false => Err(PaymentError::OrderState {
            order,
            status: order_status.to_string(),
            why: format!("session {session} revises it already"),
        }),
    }
}

async fn copy_lines(
    tx: &mut Tx,
    session: SessionId,
    order: OrderId,
    source: &RevisionSource,
) -> Result<u64, PaymentError> {
    let now = tx.now();
    let copy = sql!(
        "INSERT INTO selection_session_item
           (session_id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id,
            line_type, unqualified_reason, source_order_bill_id, pre_rent, pay_amount, create_time,
            update_time)
         SELECT :session, b.station_id, b.bill_yearmonth, b.diff_id, b.small_bill_id,
            b.partner_bill_id, b.line_type, b.unqualified_reason, b.id, b.pre_rent, b.pay_amount,
            :now, :now
         FROM fi_resident_income_payment_order_bill b
         WHERE b.payment_order_id = :order AND b.data_version = :data_version
           AND b.submit_round = :round AND b.deleted = 0
         ORDER BY b.id",
        session = session.0,
        order = order.0,
        data_version = source.data_version,
        round = source.round,
        now = now,
    );
    Ok(tx.execute(copy).await?)
}
