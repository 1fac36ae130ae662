//! S09's partner half: each partner is told what the review said of its bills (合作方校核结果推送).
//!
//! The order of work: the lines of the approved version are cut into chunks, one row of the
//! external log each, committed before anything is sent; then chunk by chunk, with no transaction
//! open while the partner is asked: mark it as being sent, send it, write the answer. The stored
//! body is what is sent, every time, under one idempotency key. What becomes of a chunk in trouble
//! is the partner's policy. The task is SUCCESS only when every chunk was accepted or has nobody to
//! go to; a person can send a single chunk again. Source: payment-flow.md, S09; seed 003, chapters
//! 7.5 and 9.3, whose way (a failed notice inside a successful task) is not repeated here.

mod archive;
mod body;
mod list;
mod port;
mod prepare;
mod record;
mod redeliver;
mod rules;
mod send;
mod settle;
mod step;
mod terms;

use counterfoil_task::{Run, Verdict, WorkError};

pub use archive::{MAX_ARCHIVED, archive_bodies, oldest_archivable};
pub use list::{DeliveryRow, DeliverySearch, MAX_LISTED, deliveries, delivery};
pub use port::{Delivery, DeliveryAnswer, KeyReference, PartnerInbox};
pub use redeliver::{Redelivered, redeliver};
pub use rules::RULES;
pub use step::{DeliveryStatus, RetryPolicy};
pub use terms::receiving_keys;

use crate::side_effect::ProgressFacts;

/// `log_type` of these rows.
pub const LOG_TYPE: &str = "PARTNER_REVIEW_RESULT";
/// Lines of a chunk.
pub const CHUNK_LINES: i64 = 1000;
/// Partners and log rows read at a time.
const PAGE: i64 = 200;
/// Characters of `last_error`.
const MAX_ERROR: usize = 1000;

/// Tells the partners; ends the task.
pub(crate) async fn push(
    run: &Run<'_>,
    inbox: &dyn PartnerInbox,
    progress: &ProgressFacts,
) -> Result<Verdict, WorkError> {
    let order = prepare::order(run.db(), progress).await?;
    if order.is_cancelled {
        // What a partner has been told by then stands in the log; nothing more is said.
        let tx = run.begin().await?;
        return tx.cancel("partner_push.cancelled", "the order was cancelled").await;
    }
    prepare::all_chunks(run, progress, &order.number).await?;
    send::due_chunks(run, inbox, progress).await?;
    settle::settle(run, progress).await
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_ERROR).collect()
}
