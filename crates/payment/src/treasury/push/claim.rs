//! Winning the right to push: one commit that says what will be sent.

use counterfoil_db::{Db, Read, Row, Tx, sql};

use super::document::{self, Document, Made};
use super::{Asked, PUSH_LEASE, Sending, payee};
use crate::treasury::port::{Channels, Message};
use crate::treasury::{MAX_MESSAGE, MAX_PUSH_COUNT, TreasuryError, cut, sum_up};

pub(super) enum Claimed {
    Send(Box<Sending>),
    NeedsData,
    Refused,
    Lost,
}

pub(super) async fn claim(
    db: &Db,
    channels: &Channels,
    batch: i64,
    asked: Asked,
) -> Result<Claimed, TreasuryError> {
    let mut tx = db.begin().await?;
    let row = facts(&tx, batch).await?;
    let strategy = row.text("strategy")?;
    let Some(channel) = channels.get(&strategy) else {
        return Err(TreasuryError::StrategyUnknown { batch, strategy });
    };
    let order = row.int("payment_order_id")?;
    if !lock_payable_order(&mut tx, order).await? || !win(&mut tx, batch, asked).await? {
        tx.rollback().await?;
        return Ok(Claimed::Lost);
    }
    payee::set_changed_aside(&mut tx, batch).await?;
    let document = match document::make(&mut tx, batch, &row, channel.as_ref()).await? {
        Made::Document(document) => document,
        Made::NeedsData => {
            give_back(&mut tx, batch).await?;
            tx.commit("treasury.push.needs_data").await?;
            return Ok(Claimed::NeedsData);
        }
        Made::NoPayer => {
            put_off(&mut tx, batch).await?;
            tx.commit("treasury.push.no_payer").await?;
            return Ok(Claimed::Refused);
        }
    };
    let push = record(&mut tx, batch, &strategy, &document).await?;
    sum_up::order(&mut tx, batch).await?;
    tx.commit("treasury.push.claim").await?;
    let message = document.message;
    Ok(Claimed::Send(Box::new(Sending { push, batch, order, token: 1, strategy, message })))
}

async fn facts(tx: &Tx, batch: i64) -> Result<Row, TreasuryError> {
    let query = sql!(
        "SELECT b.payment_order_id, b.batch_no, b.strategy,
            c.name AS company, COALESCE(p.payer_account, c.payer_account) AS payer_account
         FROM fi_resident_income_payment_push_batch b
         LEFT JOIN sys_project_company c ON c.id = b.project_company_id AND c.deleted = 0
         LEFT JOIN fi_resident_income_payment_order_project_payment p
           ON p.payment_order_id = b.payment_order_id AND p.data_version = b.data_version
          AND p.submit_round = b.submit_round AND p.project_company_id = b.project_company_id
          AND p.deleted = 0
         WHERE b.id = :batch AND b.deleted = 0",
        batch = batch,
    );
    let row = tx.row(query).await?;
    row.ok_or_else(|| TreasuryError::BatchNotFound(batch.to_string()))
}

/// Every transaction of a push locks the order first, then batch, pushes and details.
async fn lock_payable_order(tx: &mut Tx, order: i64) -> Result<bool, TreasuryError> {
    let query = sql!(
        "SELECT status FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = order,
    );
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.int("status")).transpose()? == Some(40))
}

/// Guard: WAIT_PUSH or PUSH_FAIL, and no push without a verdict; unless a person asks, also due and
/// below the limit.
async fn win(tx: &mut Tx, batch: i64, asked: Asked) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET status = 'PUSHING', push_count = push_count + 1, next_handle_time = NULL,
             error_message = NULL, update_time = :now
         WHERE id = :batch AND deleted = 0 AND status IN ('WAIT_PUSH', 'PUSH_FAIL')
           AND (:person = 1 OR (push_count < :most
                AND (next_handle_time IS NULL OR next_handle_time <= :now)))
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_push p
             WHERE p.push_batch_id = fi_resident_income_payment_push_batch.id
               AND p.push_state IN ('SENDING', 'UNKNOWN'))",
        now = now,
        batch = batch,
        person = asked == Asked::ByPerson,
        most = MAX_PUSH_COUNT,
    );
    Ok(tx.execute(update).await? == 1)
}

/// Nothing can be sent: the batch says so at once, and this was no push.
async fn give_back(tx: &mut Tx, batch: i64) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET push_count = push_count - 1, update_time = :now,
             error_message = 'nothing can be sent before its data is put right'
         WHERE id = :batch AND status = 'PUSHING'",
        now = now,
        batch = batch,
    ))
    .await?;
    sum_up::batch(tx, batch).await?;
    sum_up::order(tx, batch).await
}

/// Certainly nothing was sent: tried again by schedule, so that importing the company is enough.
async fn put_off(tx: &mut Tx, batch: i64) -> Result<(), TreasuryError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET status = 'PUSH_FAIL', next_handle_time = :next, update_time = :now,
             error_message = 'payer-missing: neither the project payment nor the project company '
               || 'names the account that pays'
         WHERE id = :batch AND status = 'PUSHING'",
        next = now + PUSH_LEASE,
        now = now,
        batch = batch,
    ))
    .await?;
    sum_up::order(tx, batch).await
}

/// A batch that cannot be pushed as this process is set up waits, and says why.
pub(super) async fn postpone(
    db: &Db,
    batch: i64,
    claimed: &Result<Claimed, TreasuryError>,
) -> Result<(), TreasuryError> {
    let Err(trouble) = claimed else { return Ok(()) };
    let mut tx = db.begin().await?;
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET next_handle_time = :next, error_message = :message, update_time = :now
         WHERE id = :batch AND deleted = 0 AND status IN ('WAIT_PUSH', 'PUSH_FAIL')",
        next = now + PUSH_LEASE,
        message = cut(&trouble.to_string(), MAX_MESSAGE),
        now = now,
        batch = batch,
    ))
    .await?;
    Ok(tx.commit("treasury.push.postpone").await?)
}

/// The push, the lines in it, and the bytes.
async fn record(
    tx: &mut Tx,
    batch: i64,
    strategy: &str,
    document: &Document,
) -> Result<i64, TreasuryError> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_push
           (push_batch_id, push_no, message_id, strategy, push_state, detail_count, total_amount,
            body, body_sha256, send_count, lease_expire_time, create_time, update_time)
         VALUES (:batch, :number, :message, :strategy, 'SENDING', :details, :total, :body, :sha256,
            1, :until, :now, :now)",
        batch = batch,
        number = document.number,
        message = &document.message.message_id,
        strategy = strategy,
        details = document.count(),
        total = document.total(),
        body = &document.message.body,
        sha256 = &document.message.sha256,
        until = now + PUSH_LEASE,
        now = now,
    );
    let push = tx.insert(insert).await?;
    document::record_items(tx, push, document).await?;
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_batch
         SET push_id = :push, update_time = :now WHERE id = :batch",
        push = push,
        now = now,
        batch = batch,
    );
    tx.execute(update).await?;
    Ok(push)
}

/// Takes over a push whose pusher died or got no verdict. Guard: no verdict yet, as seen, and
/// nobody else's lease.
pub(super) async fn take_over(db: &Db, push: i64) -> Result<Option<Sending>, TreasuryError> {
    let mut tx = db.begin().await?;
    let query = sql!(
        "SELECT p.push_batch_id, b.payment_order_id, p.strategy, p.message_id, p.body,
            p.body_sha256, p.send_count
         FROM fi_resident_income_payment_push p
         JOIN fi_resident_income_payment_push_batch b ON b.id = p.push_batch_id
         WHERE p.id = :push AND p.push_state IN ('SENDING', 'UNKNOWN')",
        push = push,
    );
    let Some(row) = tx.row(query).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    let seen = row.int("send_count")?;
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push
         SET send_count = send_count + 1, lease_expire_time = :until, update_time = :now
         WHERE id = :push AND push_state IN ('SENDING', 'UNKNOWN') AND send_count = :seen
           AND (lease_expire_time IS NULL OR lease_expire_time <= :now)",
        until = now + PUSH_LEASE,
        now = now,
        push = push,
        seen = seen,
    );
    if tx.execute(update).await? != 1 {
        tx.rollback().await?;
        return Ok(None);
    }
    let sending = Sending {
        push,
        batch: row.int("push_batch_id")?,
        order: row.int("payment_order_id")?,
        token: seen + 1,
        strategy: row.text("strategy")?,
        message: Message {
            message_id: row.text("message_id")?,
            body: row.maybe_text("body")?.unwrap_or_default(),
            sha256: row.text("body_sha256")?,
        },
    };
    tx.commit("treasury.push.take_over").await?;
    Ok(Some(sending))
}
