//! Submitting a session: the order, the version record and S03's task, in one transaction.
//!
//! Source: payment-flow.md "Submit and S03 build".

use counterfoil_db::{Db, Read, Row, Tx, sql, transact};
use counterfoil_protocol::{
    DataVersion, OrderId, SessionId, SubmitAttempt, SubmitRound, TaskCode, UserId, VersionId,
};
use counterfoil_task::{Kicker, Seed, Subject, accept_or_reuse};

use crate::PaymentError;
use crate::kinds::{SUBMIT_BUILD, business_key};
use crate::review_progress::is_review_being_applied;
use crate::version::{Mode, SubmitBuildPayload};

/// A submission that was accepted; nothing is built yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The order, new or revised.
    pub order: OrderId,
    /// The version record.
    pub version: VersionId,
    /// The session's attempt.
    pub attempt: SubmitAttempt,
    /// S03's task.
    pub task: TaskCode,
}

/// Submits an EDITING or SUBMIT_FAILED session.
///
/// # Errors
/// Refuses a stranger's session, an empty one, one whose last attempt is still being released, and
/// one that is over; a concurrent submit of the same session loses.
pub async fn submit(
    db: &Db,
    kicker: &Kicker,
    session: SessionId,
    user: UserId,
) -> Result<Submission, PaymentError> {
    match transact!(try_submit(db, kicker, session, user))? {
        Outcome::Accepted(submission) => Ok(submission),
        Outcome::Over => Err(PaymentError::SessionState {
            session,
            status: "SUBMIT_FAILED".into(),
            why: "it was invalidated and is over; open a new session".into(),
        }),
    }
}

enum Outcome {
    Accepted(Submission),
    Over,
}

struct Facts {
    mode: Mode,
    status: String,
    creator: UserId,
    order: Option<OrderId>,
    attempt: SubmitAttempt,
    active_submit: Option<i64>,
    invalidated: bool,
    state_version: i64,
}

fn facts(row: &Row) -> Result<Facts, counterfoil_db::Error> {
    Ok(Facts {
        mode: Mode::stored(&row.text("mode")?),
        status: row.text("status")?,
        creator: UserId(row.int("creator_user_id")?),
        order: row.maybe_int("target_payment_order_id")?.map(OrderId),
        attempt: SubmitAttempt(row.int("submit_attempt")?),
        active_submit: row.maybe_int("active_submit_id")?,
        invalidated: row.int("invalidated_flag")? == 1,
        state_version: row.int("state_version")?,
    })
}

/// The order as a submission finds it.
#[derive(Debug, Clone, Copy)]
struct Source {
    order: OrderId,
    pointer: DataVersion,
    round: SubmitRound,
}

async fn try_submit(
    db: &Db,
    kicker: &Kicker,
    session: SessionId,
    user: UserId,
) -> Result<Outcome, PaymentError> {
    let mut tx = db.begin().await?;
    let row = tx
        .row(sql!(
            "SELECT mode, status, creator_user_id, target_payment_order_id, submit_attempt,
                    active_submit_id, invalidated_flag, state_version
             FROM selection_session WHERE id = :session AND deleted = 0 {for_update}",
            session = session.0,
        ))
        .await?
        .ok_or(PaymentError::SessionNotFound(session))?;
    let facts = facts(&row)?;
    check_submittable(session, user, &facts)?;
    if facts.invalidated {
        give_up_keys(&mut tx, session).await?;
        tx.commit("session.over").await?;
        return Ok(Outcome::Over);
    }
    check_items(&mut tx, session).await?;
    let source = match (facts.mode, facts.order) {
        (Mode::New, None) => new_order(&mut tx, user).await?,
        (Mode::New, Some(order)) => drafted_order(&mut tx, order).await?,
        (Mode::Revise, Some(order)) => revised_order(&mut tx, order, user).await?,
        (Mode::Revise, None) => {
            let why = "a REVISE session names its order";
            return Err(PaymentError::invalid("target_payment_order_id", why));
        }
    };
    if facts.mode == Mode::Revise {
        name_source_lines(&mut tx, session, source.order, source.pointer).await?;
    }
    let submission = record(&mut tx, kicker, session, &facts, source).await?;
    tx.commit("session.submit").await?;
    Ok(Outcome::Accepted(submission))
}

fn check_submittable(session: SessionId, user: UserId, facts: &Facts) -> Result<(), PaymentError> {
    if facts.creator != user {
        return Err(PaymentError::Forbidden(format!(
            "session {session} belongs to user {}, not to user {user}",
            facts.creator
        )));
    }
    let state = |why: &str| PaymentError::SessionState {
        session,
        status: facts.status.clone(),
        why: why.to_owned(),
    };
    match facts.status.as_str() {
        "EDITING" => Ok(()),
        "SUBMIT_FAILED" if facts.invalidated || facts.active_submit.is_none() => Ok(()),
        "SUBMIT_FAILED" => Err(state(
            "the locks of its last attempt are still being released (S06); submit again once that \
             is SUCCESS",
        )),
        _ => Err(state("only an EDITING or SUBMIT_FAILED session can be submitted")),
    }
}

async fn give_up_keys(tx: &mut Tx, session: SessionId) -> Result<(), PaymentError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE selection_session
         SET active_scope_key = NULL, active_revise_key = NULL, active_submit_id = NULL,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session",
        now = now,
        session = session.0,
    ))
    .await?;
    Ok(())
}

async fn check_items(tx: &mut Tx, session: SessionId) -> Result<(), PaymentError> {
    let items = sql!(
        "SELECT COUNT(*) FROM selection_session_item
         WHERE session_id = :session AND deleted = 0",
        session = session.0,
    );
    if tx.count(items).await? == 0 {
        return Err(PaymentError::invalid("session", "it holds no bills; add some first"));
    }
    Ok(())
}

/// A DRAFT order. Its number is PO, the day in Asia/Shanghai, and its place in the id sequence:
/// unique without a counter that every submission would queue for.
async fn new_order(tx: &mut Tx, user: UserId) -> Result<Source, PaymentError> {
    let now = tx.now();
    let order = tx
        .insert(sql!(
            "INSERT INTO fi_resident_income_payment_order
               (status, business_status, build_status, create_user_id, create_time, update_time)
             VALUES (10, 'DRAFT', 'BUILDING', :user, :now, :now)",
            user = user.0,
            now = now,
        ))
        .await?;
    let order_no = free_number(tx, order_number(order, now)).await?;
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_order SET order_no = :order_no WHERE id = :order",
        order_no = order_no,
        order = order,
    ))
    .await?;
    Ok(Source { order: OrderId(order), pointer: DataVersion(0), round: SubmitRound(0) })
}

/// Orders that may have been written by hand with one generated number.
const MAX_NUMBER_SUFFIX: u32 = 20;

/// Generated ids start here; what is above it is the sequence.
const FIRST_ID: i64 = 1_000_000_000_000;

fn order_number(id: i64, now: counterfoil_db::Instant) -> String {
    // Asia/Shanghai has had no daylight saving since 1991: a fixed offset is exact.
    let shanghai = now + chrono::TimeDelta::hours(8);
    let sequence = if id >= FIRST_ID { id - FIRST_ID + 1 } else { id };
    format!("PO{}{sequence:06}", shanghai.format("%Y%m%d"))
}

/// A row written by hand may have the next generated number: the order is then told apart by a
/// suffix, and does not fail.
async fn free_number(tx: &mut Tx, number: String) -> Result<String, PaymentError> {
    let mut free = number.clone();
    for suffix in 2..=MAX_NUMBER_SUFFIX {
        let taken = sql!(
            "SELECT COUNT(*) FROM fi_resident_income_payment_order WHERE order_no = :order_no",
            order_no = free.as_str(),
        );
        if tx.count(taken).await? == 0 {
            break;
        }
        free = format!("{number}-{suffix}");
    }
    // Were all taken, the unique key refuses the last one, and nothing is submitted.
    Ok(free)
}

async fn lock_order(tx: &mut Tx, order: OrderId) -> Result<Row, PaymentError> {
    tx.row(sql!(
        "SELECT status, current_publish_version, submit_round, create_user_id
         FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = order.0,
    ))
    .await?
    .ok_or(PaymentError::OrderNotFound(order))
}

async fn drafted_order(tx: &mut Tx, order: OrderId) -> Result<Source, PaymentError> {
    let row = lock_order(tx, order).await?;
    let status = row.int("status")?;
    if status != 10 {
        return Err(order_state(order, status, "only a DRAFT can be submitted as NEW again"));
    }
    source(order, &row)
}

fn source(order: OrderId, row: &Row) -> Result<Source, PaymentError> {
    Ok(Source {
        order,
        pointer: DataVersion(row.int("current_publish_version")?),
        round: SubmitRound(row.int("submit_round")?),
    })
}

fn order_state(order: OrderId, status: i64, why: &str) -> PaymentError {
    PaymentError::OrderState { order, status: status.to_string(), why: why.to_owned() }
}

async fn revised_order(tx: &mut Tx, order: OrderId, user: UserId) -> Result<Source, PaymentError> {
    let row = lock_order(tx, order).await?;
    let creator = row.int("create_user_id")?;
    if creator != user.0 {
        return Err(PaymentError::Forbidden(format!(
            "order {order} can be revised by its first creator, user {creator}, only"
        )));
    }
    check_revisable(tx, order, &row).await?;
    source(order, &row)
}

/// Whether an order may be revised now: at opening, at submit and again at publish.
///
/// Open at 20 and 30, with the session of the published version COMPLETED and no decision being
/// applied. The caller holds the
/// order's row lock.
pub(crate) async fn check_revisable(
    tx: &mut Tx,
    order: OrderId,
    row: &Row,
) -> Result<(), PaymentError> {
    let status = row.int("status")?;
    if status != 20 && status != 30 {
        let why = "only an order under review (20) or rejected (30) can be revised";
        return Err(order_state(order, status, why));
    }
    if is_review_being_applied(&*tx, order).await? {
        let why = "its reviewers' decision is being applied; wait until that has ended";
        return Err(order_state(order, status, why));
    }
    let published = sql!(
        "SELECT s.status FROM fi_resident_income_payment_order_version v
         JOIN selection_session s ON s.id = v.session_id AND s.deleted = 0
         WHERE v.payment_order_id = :order AND v.target_data_version = :pointer
           AND v.deleted = 0",
        order = order.0,
        pointer = row.int("current_publish_version")?,
    );
    let session = tx.row(published).await?.map(|row| row.text("status")).transpose()?;
    match session.as_deref() {
        Some("COMPLETED") => Ok(()),
        Some(other) => Err(order_state(
            order,
            status,
            &format!("the session of its published version is {other}, not COMPLETED"),
        )),
        None => Err(order_state(order, status, "its published version has no session")),
    }
}

/// Items name the line of the version they revise: a bill that was taken out and put back is still
/// the bill of its source line. What an item names already stays. `+ 0` has the line found by its
/// bill: by the order's index every item would read the whole version.
pub(crate) async fn name_source_lines(
    tx: &mut Tx,
    session: SessionId,
    order: OrderId,
    source_data: DataVersion,
) -> Result<(), PaymentError> {
    tx.execute(sql!(
        "UPDATE selection_session_item
         SET source_order_bill_id = (
               SELECT MAX(l.id) FROM fi_resident_income_payment_order_bill l
               WHERE l.payment_order_id + 0 = :order AND l.data_version = :source_data
                 AND l.station_id = selection_session_item.station_id
                 AND l.bill_yearmonth = selection_session_item.bill_yearmonth
                 AND l.deleted = 0)
         WHERE session_id = :session AND source_order_bill_id IS NULL AND deleted = 0",
        order = order.0,
        source_data = source_data.0,
        session = session.0,
    ))
    .await?;
    Ok(())
}

async fn record(
    tx: &mut Tx,
    kicker: &Kicker,
    session: SessionId,
    facts: &Facts,
    source: Source,
) -> Result<Submission, PaymentError> {
    let attempt = SubmitAttempt(facts.attempt.0 + 1);
    let target = next_data_version(tx, source).await?;
    let version = insert_version(tx, session, facts.mode, source, target, attempt).await?;
    for phase in ["BUILD", "LOCK_ACTIVATE"] {
        insert_batch(tx, session, version, phase).await?;
    }
    if !move_session(tx, session, facts, source.order, version, attempt).await? {
        return Err(PaymentError::Conflict(format!("session {session}")));
    }
    let subject = Subject::none()
        .with("payment_order_id", source.order.0)
        .with("payment_order_version_id", version.0)
        .with("data_version", target.0)
        .with("submit_round", source.round.0 + 1);
    let seed = Seed {
        kind: &SUBMIT_BUILD,
        business_key: business_key::submit_build(version),
        data: SubmitBuildPayload::data(version),
        subject,
        source: None,
    };
    accept_or_reuse(tx, &seed, kicker).await?;
    Ok(Submission { order: source.order, version, attempt, task: seed.code() })
}

/// The highest data version ever used by the order, plus one: a failed one is not used again.
async fn next_data_version(tx: &mut Tx, source: Source) -> Result<DataVersion, PaymentError> {
    let highest = sql!(
        "SELECT MAX(target_data_version) AS highest
         FROM fi_resident_income_payment_order_version WHERE payment_order_id = :order",
        order = source.order.0,
    );
    let highest = tx.count(highest).await?;
    Ok(DataVersion(highest.max(source.pointer.0) + 1))
}

async fn insert_version(
    tx: &mut Tx,
    session: SessionId,
    mode: Mode,
    source: Source,
    target: DataVersion,
    attempt: SubmitAttempt,
) -> Result<VersionId, PaymentError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_version
           (payment_order_id, session_id, mode, source_data_version, target_data_version,
            source_submit_round, target_submit_round, submit_attempt, version_build_status,
            create_time, update_time)
         VALUES (:order, :session, :mode, :source_data, :target_data, :source_round,
            :target_round, :attempt, 'BUILDING', :now, :now)",
        order = source.order.0,
        session = session.0,
        mode = mode.as_str(),
        source_data = source.pointer.0,
        target_data = target.0,
        source_round = source.round.0,
        target_round = source.round.0 + 1,
        attempt = attempt.0,
        now = now,
    );
    Ok(VersionId(tx.insert(insert).await?))
}

async fn insert_batch(
    tx: &mut Tx,
    session: SessionId,
    version: VersionId,
    phase: &'static str,
) -> Result<(), PaymentError> {
    let now = tx.now();
    tx.execute(sql!(
        "INSERT INTO selection_submit_batch
           (payment_order_version_id, session_id, batch_phase, batch_status, create_time,
            update_time)
         VALUES (:version, :session, :phase, 'INIT', :now, :now)",
        version = version.0,
        session = session.0,
        phase = phase,
        now = now,
    ))
    .await?;
    Ok(())
}

/// Guard: the state version read under the row lock.
async fn move_session(
    tx: &mut Tx,
    session: SessionId,
    facts: &Facts,
    order: OrderId,
    version: VersionId,
    attempt: SubmitAttempt,
) -> Result<bool, PaymentError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET status = 'SUBMITTING', submit_attempt = :attempt, active_submit_id = :version,
             target_payment_order_id = :order, failure_phase = NULL, heartbeat_time = :now,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND state_version = :state_version
           AND status IN ('EDITING', 'SUBMIT_FAILED')",
        attempt = attempt.0,
        version = version.0,
        order = order.0,
        now = now,
        session = session.0,
        state_version = facts.state_version,
    );
    Ok(tx.execute(update).await? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_number_names_the_day_in_shanghai_and_its_place_in_the_sequence() {
        let late = "2026-09-08T20:00:00Z".parse().unwrap();
        assert_eq!(order_number(FIRST_ID + 41, late), "PO20260909000042");
    }
}
