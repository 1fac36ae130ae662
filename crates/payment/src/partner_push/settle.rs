//! Ends the task: SUCCESS when every chunk is settled, otherwise a failure that names the chunks.

use counterfoil_db::{Query, Read, sql, transact};
use counterfoil_task::{Run, Verdict, WorkError};

use super::LOG_TYPE;
use super::record::Chunk;
use super::send::unsettled;
use crate::side_effect::ProgressFacts;

/// Chunks that a failure names; all are counted.
const MAX_NAMED: i64 = 5;
/// Characters of a chunk's trouble in a failure: five fit into a task's message.
const MAX_TROUBLE: usize = 100;

pub(super) async fn settle(run: &Run<'_>, progress: &ProgressFacts) -> Result<Verdict, WorkError> {
    transact!(end(run, progress))
}

/// Chunks are looked at inside the ending transaction: a person may be sending one again.
async fn end(run: &Run<'_>, progress: &ProgressFacts) -> Result<Verdict, WorkError> {
    let tx = run.begin().await?;
    let first = unsettled(&*tx, progress, 0, MAX_NAMED).await?;
    if first.is_empty() {
        return tx.succeed("partner_push.settled").await;
    }
    let now = tx.now();
    let counts = counts(&*tx, progress).await?;
    tx.rollback().await?;
    if let Some(until) = first.iter().find_map(|chunk| chunk.facts.held_until(now)) {
        return Err(WorkError::Busy { until });
    }
    let named: Vec<String> = first.iter().map(trouble).collect();
    let more = counts.open.saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let (open, of, stuck) = (counts.open, counts.all, counts.stuck);
    let text = format!("{open} of {of} chunks are not settled: {}{more}", named.join("; "));
    if stuck == 0 {
        return Err(WorkError::failed("partner-push-unsettled", text));
    }
    let text = format!("{stuck} need a person (counterfoil delivery redeliver ID); {text}");
    Err(WorkError::failed("partner-push-needs-person", text))
}

fn trouble(chunk: &Chunk) -> String {
    let error = chunk.last_error.as_deref().unwrap_or("not sent yet");
    let error: String = error.chars().take(MAX_TROUBLE).collect();
    format!("{} {}: {error}", chunk.name(), chunk.facts.status.as_str())
}

struct Counts {
    all: i64,
    open: i64,
    /// Open, and the partner's policy forbids to send them again.
    stuck: i64,
}

/// The chunks of one version that its partner's policy does not send again. A partner without a
/// record has the default policy, and one without an address nothing can be sent to.
pub(super) const STUCK: &str = "(l.status = 'UNKNOWN'
      AND COALESCE(p.retry_policy, 'definite') <> 'idempotent')
   OR (l.status = 'FAIL' AND COALESCE(p.retry_policy, 'definite') = 'never')
   OR (l.status IN ('FAIL', 'UNKNOWN') AND COALESCE(p.endpoint, '') = '')";

async fn counts(from: &impl Read, progress: &ProgressFacts) -> Result<Counts, WorkError> {
    let query = Query::built(format!(
        "SELECT COUNT(*) AS every_chunk,
                COUNT(CASE WHEN l.status NOT IN ('SUCCESS', 'SKIPPED') THEN 1 END) AS open_chunks,
                COUNT(CASE WHEN {STUCK} THEN 1 END) AS stuck_chunks
         FROM fi_resident_income_payment_external_log l
         LEFT JOIN sys_partner p ON p.id = l.partner_id AND p.deleted = 0
         WHERE l.payment_order_id = :order AND l.data_version = :version
           AND l.submit_round = :round AND l.log_type = :log_type AND l.deleted = 0"
    ))
    .bind("order", progress.order.0)
    .bind("version", progress.data_version.0)
    .bind("round", progress.round.0)
    .bind("log_type", LOG_TYPE);
    let row = from.row(query).await?;
    let row = row.as_ref();
    let number = |name| row.map_or(Ok(0), |row| row.int(name));
    Ok(Counts {
        all: number("every_chunk")?,
        open: number("open_chunks")?,
        stuck: number("stuck_chunks")?,
    })
}

/// Chunks of a version that are not settled.
pub(super) async fn open_chunks(
    from: &impl Read,
    order: i64,
    version: i64,
    round: i64,
) -> counterfoil_db::Result<i64> {
    from.count(sql!(
        "SELECT COUNT(*) AS open_chunks FROM fi_resident_income_payment_external_log
         WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
           AND log_type = :log_type AND deleted = 0 AND status NOT IN ('SUCCESS', 'SKIPPED')",
        order = order,
        version = version,
        round = round,
        log_type = LOG_TYPE,
    ))
    .await
}
