//! Sends what is due, chunk by chunk. Each chunk is sent once a run at most.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_db::{Db, Instant, Query, Read, transact};
use counterfoil_protocol::PartnerId;
use counterfoil_task::{Run, WorkError};

use super::record::{
    Chunk, assemble, chunk_columns, mark_answered, mark_sending, mark_unsent, outcome,
};
use super::step::{Step, step};
use super::terms::{Terms, terms};
use super::{DeliveryAnswer, DeliveryStatus, LOG_TYPE, PAGE, PartnerInbox};
use crate::side_effect::ProgressFacts;

const LOST: &str = "no verdict: the process ended while it was sending";
const NO_ADDRESS: &str = "the partner has no address any more";

/// Partners whose terms are remembered; then they are read anew.
const MAX_REMEMBERED: usize = 1000;

pub(super) async fn due_chunks(
    run: &Run<'_>,
    inbox: &dyn PartnerInbox,
    progress: &ProgressFacts,
) -> Result<(), WorkError> {
    let mut round = Round { run, inbox, known: BTreeMap::new(), silent: BTreeSet::new() };
    let mut after = 0;
    loop {
        let page = unsettled(run.db(), progress, after, PAGE).await?;
        let Some(last) = page.last().map(|chunk| chunk.id.0) else {
            return Ok(());
        };
        for chunk in page {
            run.checkpoint()?;
            round.one(chunk).await?;
        }
        after = last;
    }
}

/// Chunks that are neither accepted nor skipped, by id.
pub(super) async fn unsettled(
    from: &impl Read,
    progress: &ProgressFacts,
    after: i64,
    limit: i64,
) -> Result<Vec<Chunk>, WorkError> {
    let query = Query::new(concat!(
        "SELECT ",
        chunk_columns!(),
        " FROM fi_resident_income_payment_external_log
         WHERE payment_order_id = :order AND data_version = :version AND submit_round = :round
           AND id > :after AND log_type = :log_type AND deleted = 0
           AND status NOT IN ('SUCCESS', 'SKIPPED')
         ORDER BY id LIMIT :limit"
    ))
    .bind("order", progress.order.0)
    .bind("version", progress.data_version.0)
    .bind("round", progress.round.0)
    .bind("after", after)
    .bind("log_type", LOG_TYPE)
    .bind("limit", limit);
    let rows = from.rows(query).await?;
    Ok(rows.iter().map(Chunk::read).collect::<counterfoil_db::Result<_>>()?)
}

/// One walk over the chunks.
struct Round<'a> {
    run: &'a Run<'a>,
    inbox: &'a dyn PartnerInbox,
    known: BTreeMap<Option<PartnerId>, Terms>,
    /// Partners that did not answer at all: the rest of their chunks waits for the next run.
    silent: BTreeSet<Option<PartnerId>>,
}

impl Round<'_> {
    async fn one(&mut self, mut chunk: Chunk) -> Result<(), WorkError> {
        let terms = self.terms(chunk.partner).await?;
        let now = self.run.db().now().await?;
        let decide = |chunk: &Chunk| step(chunk.facts, terms.policy, terms.endpoint.is_some(), now);
        let mut next = decide(&chunk);
        if next == Step::Lost {
            if !transact!(self.unsent(&chunk, DeliveryStatus::Unknown, LOST))? {
                return Ok(());
            }
            chunk.facts.status = DeliveryStatus::Unknown;
            next = decide(&chunk);
        }
        match next {
            Step::Send if !self.silent.contains(&chunk.partner) => self.send(&chunk, &terms).await,
            Step::Skip => {
                transact!(self.unsent(&chunk, DeliveryStatus::Skipped, NO_ADDRESS))?;
                Ok(())
            }
            Step::Send | Step::Wait | Step::Leave | Step::Lost => Ok(()),
        }
    }

    async fn send(&mut self, chunk: &Chunk, terms: &Terms) -> Result<(), WorkError> {
        let Some(sent) = transact!(self.sending(chunk))? else {
            return Ok(());
        };
        let delivery = assemble(self.run.db(), chunk, terms, sent).await?;
        let answer = self.inbox.deliver(&delivery).await;
        if !answer.was_answered() {
            self.silent.insert(chunk.partner);
        }
        let (status, error) = outcome(&answer);
        tracing::info!(delivery = %chunk.id, status = status.as_str(), error, "a chunk was sent");
        transact!(self.answered(chunk, &answer))
    }

    /// When it is sent; `None` = a person is quicker.
    async fn sending(&self, chunk: &Chunk) -> Result<Option<Instant>, WorkError> {
        let mut tx = self.run.begin().await?;
        let sent = tx.now();
        if !mark_sending(&mut tx, chunk, None).await? {
            tx.rollback().await?;
            return Ok(None);
        }
        tx.commit("partner_push.sending").await?;
        Ok(Some(sent))
    }

    async fn answered(&self, chunk: &Chunk, answer: &DeliveryAnswer) -> Result<(), WorkError> {
        let mut tx = self.run.begin().await?;
        if !mark_answered(&mut tx, chunk, answer).await? {
            // Ten minutes passed, and a person has sent it again since: that answer counts.
            tracing::warn!(delivery = %chunk.id, "an answer came too late and is not recorded");
        }
        tx.commit("partner_push.answered").await
    }

    async fn unsent(
        &self,
        chunk: &Chunk,
        status: DeliveryStatus,
        why: &str,
    ) -> Result<bool, WorkError> {
        let mut tx = self.run.begin().await?;
        let won = mark_unsent(&mut tx, chunk, status, why).await?;
        tx.commit("partner_push.unsent").await?;
        Ok(won)
    }

    async fn terms(&mut self, partner: Option<PartnerId>) -> Result<Terms, WorkError> {
        if let Some(known) = self.known.get(&partner) {
            return Ok(known.clone());
        }
        if self.known.len() >= MAX_REMEMBERED {
            self.known.clear();
        }
        let read = read_terms(self.run.db(), partner).await?;
        self.known.insert(partner, read.clone());
        Ok(read)
    }
}

async fn read_terms(db: &Db, partner: Option<PartnerId>) -> Result<Terms, WorkError> {
    Ok(terms(db, partner).await?)
}
