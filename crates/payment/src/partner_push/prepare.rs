//! Cuts the lines of the approved version into chunks: one committed row of the external log each,
//! all of them before the first is sent. A crash goes on after the last row.

use counterfoil_db::{Bind, Db, Query, Read, sql, transact};
use counterfoil_protocol::PartnerId;
use counterfoil_task::{Run, WorkError};

use super::body::{Line, Place};
use super::terms::{Terms, terms};
use super::{CHUNK_LINES, LOG_TYPE, PAGE};
use crate::PaymentError;
use crate::side_effect::ProgressFacts;

/// What one partner has to be told.
struct Share {
    partner: Option<PartnerId>,
    lines: i64,
}

impl Share {
    fn chunks(&self) -> i64 {
        (self.lines + CHUNK_LINES - 1) / CHUNK_LINES
    }
}

pub(super) async fn all_chunks(
    run: &Run<'_>,
    progress: &ProgressFacts,
    order_no: &str,
) -> Result<(), WorkError> {
    let mut seen = 0;
    if let Some(share) = nameless(run.db(), progress).await? {
        seen += share.lines;
        partner_chunks(run, progress, order_no, &share).await?;
    }
    let mut after = i64::MIN;
    loop {
        let page = shares(run.db(), progress, after).await?;
        for share in &page {
            seen += share.lines;
            partner_chunks(run, progress, order_no, share).await?;
        }
        match page.last().and_then(|share| share.partner) {
            Some(last) => after = last.0,
            None => break,
        }
    }
    if seen == 0 && progress.payable_count + progress.unqualified_count > 0 {
        return Err(WorkError::failed(
            "partner-push-lines-missing",
            format!(
                "order {} has no lines of data version {}, round {}",
                progress.order, progress.data_version, progress.round
            ),
        ));
    }
    Ok(())
}

/// The approved order.
pub(super) struct Order {
    pub(super) number: String,
    pub(super) is_cancelled: bool,
}

pub(super) async fn order(db: &Db, progress: &ProgressFacts) -> Result<Order, WorkError> {
    let query = sql!(
        "SELECT order_no, status FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0",
        order = progress.order.0,
    );
    let row = db.row(query).await?.ok_or(PaymentError::OrderNotFound(progress.order))?;
    let number = row.maybe_text("order_no")?.unwrap_or_default();
    Ok(Order { number, is_cancelled: row.int("status")? == 90 })
}

/// The lines of the approved version, as a prefix of every statement here.
fn of_version(text: &'static str, progress: &ProgressFacts) -> Query {
    sql!(
        text,
        order = progress.order.0,
        version = progress.data_version.0,
        round = progress.round.0,
    )
}

async fn nameless(db: &Db, progress: &ProgressFacts) -> Result<Option<Share>, WorkError> {
    let query = of_version(
        "SELECT COUNT(*) AS line_count FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
           AND partner_id IS NULL AND deleted = 0",
        progress,
    );
    let lines = db.count(query).await?;
    Ok((lines > 0).then_some(Share { partner: None, lines }))
}

async fn shares(db: &Db, progress: &ProgressFacts, after: i64) -> Result<Vec<Share>, WorkError> {
    let query = of_version(
        "SELECT partner_id, COUNT(*) AS line_count FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
           AND partner_id > :after AND deleted = 0
         GROUP BY partner_id ORDER BY partner_id LIMIT :limit",
        progress,
    );
    let query = query.bind("after", after).bind("limit", PAGE);
    let mut shares = Vec::new();
    for row in db.rows(query).await? {
        let partner = Some(PartnerId(row.int("partner_id")?));
        shares.push(Share { partner, lines: row.int("line_count")? });
    }
    Ok(shares)
}

async fn partner_chunks(
    run: &Run<'_>,
    progress: &ProgressFacts,
    order_no: &str,
    share: &Share,
) -> Result<(), WorkError> {
    let terms = terms(run.db(), share.partner).await?;
    let (mut number, mut after) = last_chunk(run.db(), progress, share.partner).await?;
    // One more than there are: the last one must be found empty.
    for _ in 0..=share.chunks() {
        run.checkpoint()?;
        let lines = lines(run.db(), progress, share.partner, after).await?;
        let Some(last) = lines.last().map(|line| line.id) else {
            return Ok(());
        };
        number += 1;
        let place = Place {
            progress,
            order_no,
            partner: share.partner.map_or(0, |partner| partner.0),
            partner_no: &terms.partner_no,
            number,
            of: share.chunks(),
        };
        transact!(write(run, &place, share.partner, &terms, &lines))?;
        after = last;
    }
    Ok(())
}

/// The last chunk that was cut, and its last line.
async fn last_chunk(
    db: &Db,
    progress: &ProgressFacts,
    partner: Option<PartnerId>,
) -> Result<(i64, i64), WorkError> {
    let text = match partner {
        Some(_) => {
            "SELECT chunk_no, last_line_id FROM fi_resident_income_payment_external_log
             WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
               AND log_type = :log_type AND partner_id = :partner
             ORDER BY chunk_no DESC LIMIT 1"
        }
        None => {
            "SELECT chunk_no, last_line_id FROM fi_resident_income_payment_external_log
             WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
               AND log_type = :log_type AND partner_id IS NULL
             ORDER BY chunk_no DESC LIMIT 1"
        }
    };
    let query = of_version(text, progress).bind("log_type", LOG_TYPE);
    let query = query.bind("partner", partner.map(|partner| partner.0));
    let (number, mut after) = match db.row(query).await? {
        Some(row) => (row.int("chunk_no")?, row.int("last_line_id")?),
        None => (0, 0),
    };
    if after == 0 {
        // A row written by hand names no last line: its place tells it.
        for _ in 0..number {
            let lines = lines(db, progress, partner, after).await?;
            after = lines.last().map_or(after, |line| line.id);
        }
    }
    Ok((number, after))
}

async fn lines(
    db: &Db,
    progress: &ProgressFacts,
    partner: Option<PartnerId>,
    after: i64,
) -> Result<Vec<Line>, WorkError> {
    let text = match partner {
        Some(_) => {
            "SELECT id, line_type, line_status, station_id, bill_yearmonth, unqualified_reason,
                    pay_amount
             FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
               AND partner_id = :partner AND id > :after AND deleted = 0
             ORDER BY id LIMIT :limit"
        }
        None => {
            "SELECT id, line_type, line_status, station_id, bill_yearmonth, unqualified_reason,
                    pay_amount
             FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
               AND partner_id IS NULL AND id > :after AND deleted = 0
             ORDER BY id LIMIT :limit"
        }
    };
    let query = of_version(text, progress)
        .bind("partner", partner.map(|partner| partner.0))
        .bind("after", after)
        .bind("limit", CHUNK_LINES);
    let rows = db.rows(query).await?;
    Ok(rows.iter().map(Line::read).collect::<counterfoil_db::Result<_>>()?)
}

/// One chunk's row. SKIPPED at once where there is no address: that is no trouble to wait for.
async fn write(
    run: &Run<'_>,
    place: &Place<'_>,
    partner: Option<PartnerId>,
    terms: &Terms,
    lines: &[Line],
) -> Result<(), WorkError> {
    let body = place.body(lines).map_err(|line| {
        WorkError::failed(
            "partner-push-line-open",
            format!(
                "line {} (type {}, status {}) has no review result; nothing is sent",
                line.line, line.line_type, line.line_status
            ),
        )
    })?;
    let (status, why) = match (partner, &terms.endpoint) {
        (_, Some(_)) => ("WAIT_PROCESS", None),
        (Some(partner), None) => ("SKIPPED", Some(format!("partner {partner} has no address"))),
        (None, None) => ("SKIPPED", Some("these lines name no partner".to_owned())),
    };
    let mut tx = run.begin().await?;
    let now = tx.now();
    let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
    let insert = of_version(
        "{insert_ignore} INTO fi_resident_income_payment_external_log
           (idempotency_key, log_type, payment_order_id, data_version, submit_round, partner_id,
            chunk_no, chunk_count, request_body, status, last_error, progress_id, line_count,
            last_line_id, create_time, update_time)
         VALUES (:key, :log_type, :order, :version, :round, :partner, :number, :of, :body, :status,
            :why, :progress, :count, :last, :now, :now)
         {or_ignore}",
        place.progress,
    )
    .bind("key", place.key())
    .bind("log_type", LOG_TYPE)
    .bind("partner", partner.map(|partner| partner.0).bind())
    .bind("number", place.number)
    .bind("of", place.of)
    .bind("body", body)
    .bind("status", status)
    .bind("why", why)
    .bind("progress", place.progress.progress.0)
    .bind("count", count)
    .bind("last", lines.last().map_or(0, |line| line.id))
    .bind("now", now);
    if tx.execute(insert).await? == 0 {
        // The fence keeps a second pusher out; somebody wrote this key by hand.
        return Err(PaymentError::Conflict(format!("delivery {}", place.key())).into());
    }
    tx.commit("partner_push.prepared").await
}
