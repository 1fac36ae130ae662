//! Retirement of rows that the centre does not have: only with its proof, row by row, and none at
//! all when there are too many.

use chrono::TimeDelta;
use counterfoil_db::Instant;
use counterfoil_protocol::range::spelt;
use serde_json::json;

use super::advance::{Difference, Session, Stop};
use super::compare::{Finding, compare};
use super::projection::{self, Scanned};
use super::repair::{CHUNK, remote};
use super::work::Extra;
use crate::wire::{Authority, ErrorItem, Proof, Question};

/// How long a proof is good, on our own clock from sending the request.
const PROOF_LASTS: TimeDelta = TimeDelta::seconds(60);

/// The rows that were compared are not as many as the manifest has.
const COUNTS_DIFFER: &str = "COUNTS_DIFFER";

impl Session<'_> {
    /// Retires the candidates that may be retired; the others are reported. Both sets were read to
    /// their ends by now.
    pub(super) async fn retire_extras(&mut self) -> Result<(), Stop> {
        let is_whole = self.work.total_rows.is_none_or(|total| total == self.work.remote_rows);
        let is_noted = self.work.errors.iter().any(|item| item.code == COUNTS_DIFFER);
        if !is_whole && !is_noted {
            self.work.unresolved += 1;
            let range = Some(format!("{}..{}", spelt(0), spelt(u128::MAX)));
            let code = COUNTS_DIFFER.to_owned();
            self.work.errors.push(ErrorItem { code, range, ..ErrorItem::default() });
        }
        if !is_whole || self.work.extras.len() > self.settings.max_pending_extras {
            return self.report_extras().await;
        }
        while !self.work.extras.is_empty() {
            if self.turn.is_stopping() {
                return Err(Stop::Stopping);
            }
            self.fresh_grant().await?;
            let chunk: Vec<Extra> = self.work.extras.iter().take(CHUNK).cloned().collect();
            let sent = self.now().await?;
            let questions: Vec<Question> = chunk.iter().map(question).collect();
            let authorities = self.ask(&questions).await?;
            for (extra, authority) in chunk.into_iter().zip(authorities) {
                self.judge(extra, authority, sent).await?;
            }
            self.commit("work.extras").await?;
            self.sign_of_life().await?;
        }
        Ok(())
    }

    /// None may be retired: all are reported.
    async fn report_extras(&mut self) -> Result<(), Stop> {
        let most = self.settings.max_error_items;
        let found = self.work.counts.extra;
        for extra in std::mem::take(&mut self.work.extras) {
            let revision = Some(extra.revision);
            self.work.note(most, Finding::Extra.code(), &extra.answer_uuid, revision);
        }
        self.work.counts.reported += found;
        self.work.unresolved += found;
        self.commit("work.too_many_extras").await
    }

    async fn judge(
        &mut self,
        extra: Extra,
        authority: Authority,
        sent: Instant,
    ) -> Result<(), Stop> {
        let most = self.settings.max_error_items;
        let uuid = extra.answer_uuid.clone();
        // Whatever becomes of it, it is no candidate any more; saved with what becomes of it.
        self.work.extras.retain(|other| other.answer_uuid != uuid);
        let proof = match authority {
            Authority::Present { envelope } => {
                // The centre has it by now: an ordinary comparison.
                let local = projection::find(self.db, &self.work.coordinate, &uuid).await?;
                let finding = compare(Some(remote(&envelope)), local.as_ref());
                let difference = Difference { uuid, finding, local };
                return self.repair(&difference, Authority::Present { envelope }).await;
            }
            Authority::Absent { proof } => proof,
        };
        let is_old = extra.created.is_some_and(|created| created <= self.work.window_start);
        let is_scoped = self.work.coordinate.sees(&uuid);
        let now = self.now().await?;
        let proved = proof
            .as_ref()
            .filter(|proof| self.proves(proof, &extra) && now - sent <= PROOF_LASTS)
            .filter(|_| is_old && is_scoped);
        let Some(proved) = proved else {
            let code =
                if proof.is_some() && is_old { "PROOF_MISMATCH" } else { Finding::Extra.code() };
            self.work.stands(most, code, &uuid, Some(extra.revision));
            return Ok(());
        };
        self.fresh_grant().await?;
        if !self.retire(&extra, proved).await? {
            self.work.stands(most, "RETIRE_CONFLICT", &uuid, Some(extra.revision));
        }
        Ok(())
    }

    /// Field by field.
    fn proves(&self, proof: &Proof, extra: &Extra) -> bool {
        let (work, at) = (&self.work, &self.work.coordinate);
        !proof.proof_id.is_empty()
            && proof.proof_id.len() <= 128
            && proof.task_id == work.task_id
            && proof.consumer_app_key == at.consumer
            && proof.consumer_school_id == at.school
            && proof.sch_id == at.school
            && proof.form_uuid == at.form
            && proof.answer_uuid == extra.answer_uuid
            && proof.expected_revision == Some(extra.revision)
            && proof.grant_epoch == work.grant_epoch
    }

    /// The row, its count and the list of candidates in one commit. False = the row changed.
    async fn retire(&mut self, extra: &Extra, proof: &Proof) -> Result<bool, Stop> {
        let mut tx = self.begin().await?;
        let scanned = Scanned {
            revision: extra.revision,
            stored_hash: &extra.stored_hash,
            is_deleted: extra.is_deleted,
            version: extra.version,
        };
        let at = &self.work.coordinate;
        let evidence = evidence(proof);
        if !projection::retire(&mut tx, at, &extra.answer_uuid, scanned, &evidence).await? {
            tx.rollback().await?;
            return Ok(false);
        }
        self.work.counts.retired += 1;
        if !self.work.save(&mut tx, &self.lease).await? {
            return Err(Stop::Fenced);
        }
        tx.commit("work.retire").await?;
        self.saved = self.work.clone();
        Ok(true)
    }
}

/// What stays with the row: whose word it was retired by.
fn evidence(proof: &Proof) -> String {
    json!({
        "code": "RETIRED",
        "proofId": proof.proof_id,
        "taskId": proof.task_id,
        "expectedRevision": proof.expected_revision,
        "grantEpoch": proof.grant_epoch,
        "issuedAt": proof.issued_at,
    })
    .to_string()
}

fn question(extra: &Extra) -> Question {
    Question { answer_uuid: extra.answer_uuid.clone(), expected_revision: Some(extra.revision) }
}
