//! Writing down what the receiver said.

use chrono::TimeDelta;
use counterfoil_db::{Db, Read, Tx, sql};

use super::{Pushed, Sending};
use crate::treasury::port::{PushAnswer, ReportEntry, ResultReport};
use crate::treasury::result::{self, Source};
use crate::treasury::{MAX_MESSAGE, TreasuryError, cut, sum_up};

/// Minutes until a refused batch is pushed again, or a push without a verdict is asked about:
/// 5, 10, 15 … up to an hour.
fn pause(times: i64) -> TimeDelta {
    TimeDelta::minutes(times.max(1).saturating_mul(5).min(60))
}

pub(super) async fn settle(
    db: &Db,
    sending: &Sending,
    answer: &PushAnswer,
) -> Result<Pushed, TreasuryError> {
    let mut tx = db.begin().await?;
    lock_order(&mut tx, sending.order).await?;
    let pushed = match answer {
        PushAnswer::Accepted { reference, entries } => {
            if !end(&mut tx, sending, "ACCEPTED", reference.as_deref(), None).await? {
                tx.rollback().await?;
                return Ok(Pushed::Lost);
            }
            result::mark_pushed(&mut tx, sending.push).await?;
            reference_of_batch(&mut tx, sending.batch, reference.as_deref()).await?;
            sum_up::batch(&mut tx, sending.batch).await?;
            apply_entries(&mut tx, sending, entries).await?;
            Pushed::Accepted
        }
        PushAnswer::Refused { code, message } => {
            if !end(&mut tx, sending, "REFUSED", None, Some((code, message))).await? {
                tx.rollback().await?;
                return Ok(Pushed::Lost);
            }
            let message = format!("the receiver refused ({code}): {message}");
            put_off(&mut tx, sending.batch, &message).await?;
            sum_up::batch(&mut tx, sending.batch).await?;
            Pushed::Refused
        }
        PushAnswer::Unknown { message } => {
            if !no_verdict(&mut tx, sending, message).await? {
                tx.rollback().await?;
                return Ok(Pushed::Lost);
            }
            Pushed::Unknown
        }
    };
    sum_up::order(&mut tx, sending.batch).await?;
    tx.commit("treasury.push.settle").await?;
    Ok(pushed)
}

/// The order's row lock is every push's first. The order may have moved on meanwhile; what the
/// receiver said is written all the same.
async fn lock_order(tx: &mut Tx, order: i64) -> Result<(), TreasuryError> {
    let lock = sql!(
        "SELECT id FROM fi_resident_income_payment_order WHERE id = :order {for_update}",
        order = order,
    );
    tx.row(lock).await?;
    Ok(())
}

/// Guard: no verdict yet, and nobody took the push over from us.
async fn end(
    tx: &mut Tx,
    sending: &Sending,
    state: &'static str,
    reference: Option<&str>,
    trouble: Option<(&String, &String)>,
) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push
         SET push_state = :state, external_ref = :reference, error_code = :code,
             error_message = :message, lease_expire_time = NULL, settled_time = :now,
             update_time = :now
         WHERE id = :push AND push_state IN ('SENDING', 'UNKNOWN') AND send_count = :token",
        state = state,
        reference = reference.map(|text| cut(text, 128)),
        code = trouble.map(|(code, _)| cut(code, 64)),
        message = trouble.map(|(_, message)| cut(message, MAX_MESSAGE)),
        now = now,
        push = sending.push,
        token = sending.token,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Guard: as [`end`].
async fn no_verdict(tx: &mut Tx, sending: &Sending, message: &str) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let message = cut(&format!("no verdict: {message}"), MAX_MESSAGE);
    let update = sql!(
        "UPDATE fi_resident_income_payment_push
         SET push_state = 'UNKNOWN', error_message = :message, lease_expire_time = :next,
             update_time = :now
         WHERE id = :push AND push_state IN ('SENDING', 'UNKNOWN') AND send_count = :token",
        message = message.as_str(),
        next = now + pause(sending.token),
        now = now,
        push = sending.push,
        token = sending.token,
    );
    if tx.execute(update).await? != 1 {
        return Ok(false);
    }
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET error_message = :message, update_time = :now
         WHERE id = :batch AND status = 'PUSHING'",
        message = message,
        now = now,
        batch = sending.batch,
    ))
    .await?;
    Ok(true)
}

async fn put_off(tx: &mut Tx, batch: i64, message: &str) -> Result<(), TreasuryError> {
    let pushes = sql!(
        "SELECT push_count FROM fi_resident_income_payment_push_batch WHERE id = :batch",
        batch = batch,
    );
    let now = tx.now();
    let next = now + pause(tx.count(pushes).await?);
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET next_handle_time = :next, error_message = :message, update_time = :now
         WHERE id = :batch",
        next = next,
        message = cut(message, MAX_MESSAGE),
        now = now,
        batch = batch,
    ))
    .await?;
    Ok(())
}

async fn reference_of_batch(
    tx: &mut Tx,
    batch: i64,
    reference: Option<&str>,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET external_ref = COALESCE(:reference, external_ref), error_message = NULL,
             next_handle_time = NULL, update_time = :now
         WHERE id = :batch",
        reference = reference.map(|text| cut(text, 128)),
        now = now,
        batch = batch,
    ))
    .await?;
    Ok(())
}

/// What the answer says of single lines is a result like any other.
async fn apply_entries(
    tx: &mut Tx,
    sending: &Sending,
    entries: &[ReportEntry],
) -> Result<(), TreasuryError> {
    if entries.is_empty() {
        return Ok(());
    }
    let report = ResultReport {
        report_id: format!("ANSWER:{}:{}", sending.message.message_id, sending.token),
        message_id: sending.message.message_id.clone(),
        group: None,
        entries: entries.to_vec(),
    };
    result::apply(tx, &report, "", Source::Answer, None).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_an_hour() {
        let minutes: Vec<i64> = [0, 1, 2, 11, 12, 13].map(|n| pause(n).num_minutes()).to_vec();
        assert_eq!(minutes, [5, 5, 10, 55, 60, 60]);
    }
}
