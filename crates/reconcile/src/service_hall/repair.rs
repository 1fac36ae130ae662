//! Repair: the centre's snapshot as it is now, checked field by field, under the row as it was
//! read. Nothing else of the chain is touched: no inbox, no intent, no flow.

use counterfoil_db::Tx;
use serde_json::json;

use super::advance::{Difference, Session, Stop, said};
use super::compare::{Finding, Remote, compare};
use super::projection::{self, Local, Snapshot};
use crate::wire::{Authority, Envelope, Question};

/// Answers asked for at once.
pub(super) const CHUNK: usize = 200;

/// How one try of a repair ended.
enum Tried {
    /// The projection holds the snapshot, or held it already.
    Applied,
    /// The row is not as it was read.
    LocalChanged,
}

impl Session<'_> {
    /// Fetches and repairs differences. Equal rows never come here: they cost no call.
    pub(super) async fn repair_all(&mut self, differences: Vec<Difference>) -> Result<(), Stop> {
        for chunk in differences.chunks(CHUNK) {
            self.fresh_grant().await?;
            let questions: Vec<Question> = chunk.iter().map(question).collect();
            let authorities = self.ask(&questions).await?;
            for (difference, authority) in chunk.iter().zip(authorities) {
                self.repair(difference, authority).await?;
            }
        }
        Ok(())
    }

    /// A look at the grant that is fresh enough; counts what has to be put off.
    pub(super) async fn fresh_grant(&mut self) -> Result<(), Stop> {
        let outcome = self.ensure_grant().await;
        if matches!(outcome, Err(Stop::Deferred)) {
            self.work.counts.deferred += 1;
        }
        outcome
    }

    /// The centre's word on some answers; one for each question.
    pub(super) async fn ask(&mut self, questions: &[Question]) -> Result<Vec<Authority>, Stop> {
        let now = self.now().await?;
        let said = said(self.centre.answers(&self.work.task_id, questions, now).await)?;
        if said.len() != questions.len() {
            return Err(Stop::Later("the centre answered another number of questions".into()));
        }
        Ok(said)
    }

    /// Repairs one difference, again when the row changed meanwhile, a bounded number of times.
    pub(super) async fn repair(
        &mut self,
        difference: &Difference,
        authority: Authority,
    ) -> Result<(), Stop> {
        let most = self.settings.max_error_items;
        let (uuid, code) = (difference.uuid.as_str(), difference.finding.code());
        let (mut authority, mut local) = (authority, difference.local.clone());
        for tries in 0..=self.settings.max_repair_retries {
            let Authority::Present { envelope } = &authority else {
                self.work.stands(most, code, uuid, local.as_ref().map(|local| local.revision));
                return Ok(());
            };
            let Some(values) = self.checked(envelope, uuid) else {
                self.work.stands(most, "IDENTITY_MISMATCH", uuid, Some(envelope.revision));
                return Ok(());
            };
            let ahead = local.as_ref().filter(|local| local.revision > envelope.revision);
            if let Some(local) = ahead {
                self.work.stands(most, "LOCAL_AHEAD", uuid, Some(local.revision));
                return Ok(());
            }
            self.fresh_grant().await?;
            let finding = compare(Some(remote(envelope)), local.as_ref());
            if finding == Finding::Equal {
                return Ok(());
            }
            match self.try_repair(envelope, values.as_deref(), local.as_ref(), finding).await? {
                Tried::Applied => {
                    self.work.counts.repaired += 1;
                    return Ok(());
                }
                Tried::LocalChanged if tries == self.settings.max_repair_retries => break,
                Tried::LocalChanged => {
                    // Outside the transaction that was given up: both sides as they are now.
                    local = projection::find(self.db, &self.work.coordinate, uuid).await?;
                    let expected_revision = local.as_ref().map(|local| local.revision);
                    let question = Question { answer_uuid: uuid.to_owned(), expected_revision };
                    let mut again = self.ask(&[question]).await?;
                    let Some(word) = again.pop() else { break };
                    authority = word;
                }
            }
        }
        let revision = local.map(|local| local.revision);
        self.work.stands(most, "REPAIR_EXHAUSTED", uuid, revision);
        Ok(())
    }

    /// The values to store, if the envelope is all it must be. The inner `None` is a tombstone's.
    fn checked(&self, envelope: &Envelope, uuid: &str) -> Option<Option<String>> {
        let (work, at) = (&self.work, &self.work.coordinate);
        let is_ours = envelope.task_id.as_deref() == Some(&work.task_id)
            && envelope.source_app_key == self.settings.source_app_key
            && envelope.consumer_app_key == at.consumer
            && envelope.consumer_school_id == at.school
            && envelope.sch_id == at.school
            && envelope.form_uuid == at.form
            && envelope.answer_uuid == uuid
            && envelope.grant_epoch == work.grant_epoch
            && envelope.revision >= 1
            && i32::try_from(envelope.form_version).is_ok();
        if !is_ours {
            return None;
        }
        values_of(envelope)
    }

    /// One short transaction under the lease.
    async fn try_repair(
        &mut self,
        envelope: &Envelope,
        values: Option<&str>,
        local: Option<&Local>,
        finding: Finding,
    ) -> Result<Tried, Stop> {
        let conflict = (finding == Finding::HashConflict).then(|| conflict_of(envelope, local));
        let snapshot = Snapshot { envelope, values, conflict: conflict.as_deref() };
        let mut retry = counterfoil_db::Retry::default();
        loop {
            match self.write(snapshot, local).await {
                Err(Stop::Db(error)) if retry.again(&error).await => {}
                other => return other,
            }
        }
    }

    async fn write(&self, snapshot: Snapshot<'_>, local: Option<&Local>) -> Result<Tried, Stop> {
        let mut tx = self.begin().await?;
        let is_written = match local {
            None => projection::insert(&mut tx, snapshot).await?,
            Some(read) => projection::replace(&mut tx, snapshot, read).await?,
        };
        if !is_written {
            tx.rollback().await?;
            return Ok(Tried::LocalChanged);
        }
        tx.commit("work.repair").await?;
        Ok(Tried::Applied)
    }

    /// A transaction that has proved the lease.
    pub(super) async fn begin(&self) -> Result<Tx, Stop> {
        let mut tx = self.db.begin().await?;
        let renewed = self.lease.advance(&mut tx, counterfoil_task::Progress::none()).await?;
        if !renewed {
            return Err(Stop::Fenced);
        }
        Ok(tx)
    }
}

fn question(difference: &Difference) -> Question {
    Question {
        answer_uuid: difference.uuid.clone(),
        expected_revision: difference.local.as_ref().map(|local| local.revision),
    }
}

pub(super) fn remote(envelope: &Envelope) -> Remote<'_> {
    Remote {
        revision: envelope.revision,
        hash: &envelope.content_hash,
        is_deleted: envelope.is_deleted,
    }
}

/// The values to store, if the envelope's hash is its content's. The inner `None` is a
/// tombstone's.
pub(super) fn values_of(envelope: &Envelope) -> Option<Option<String>> {
    let content = envelope.content().ok()?;
    if content.hash().ok()?.0 != envelope.content_hash {
        return None;
    }
    let values = content.canonical_values().ok()?;
    Some((!envelope.is_deleted).then_some(values))
}

/// Both hashes: what there was, and what is there now.
pub(super) fn conflict_of(envelope: &Envelope, local: Option<&Local>) -> String {
    json!({
        "code": "HASH_CONFLICT",
        "revision": envelope.revision,
        "localHash": local.map(|local| local.hash.as_str()),
        "storedHash": local.map(|local| local.stored_hash.as_str()),
        "centreHash": envelope.content_hash,
    })
    .to_string()
}
