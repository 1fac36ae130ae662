//! S13 (账单维度快照): the payable lines of a refreshed shard become bill-dimension snapshots.
//!
//! Its progress row and lease are its own: DONE of the review's progress says that the snapshots
//! are queued, not that they are made. A line has one snapshot, which stays as it was first made.
//! Source: payment-flow.md "S13 snapshot"; seed 003, chapter 7.3.

mod make;
mod progress;
mod source;

use counterfoil_db::transact;
use counterfoil_task::{Kind, Payload, Run, Verdict, Work, WorkError};
use serde::Deserialize;

use crate::kinds::{BILL_SNAPSHOT, business_key};
use progress::Begun;

/// S13's work.
#[derive(Debug, Clone, Copy, Default)]
pub struct BillSnapshot;

/// `task_data` of S13.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BillSnapshotPayload {
    progress_id: i64,
    shard_id: i64,
}

impl Payload for BillSnapshotPayload {
    fn business_key(&self) -> String {
        business_key::bill_snapshot(self.progress_id, self.shard_id)
    }

    fn defect(&self) -> Option<String> {
        if self.progress_id <= 0 {
            return Some("progressId is not positive".into());
        }
        (self.shard_id <= 0).then(|| "shardId is not positive".into())
    }

    fn subject_id(&self) -> i64 {
        self.shard_id
    }
}

#[async_trait::async_trait]
impl Work for BillSnapshot {
    type Payload = BillSnapshotPayload;

    fn kind(&self) -> &'static Kind {
        &BILL_SNAPSHOT
    }

    async fn run(&self, payload: BillSnapshotPayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let BillSnapshotPayload { progress_id, shard_id } = payload;
        let source = source::read(run.db(), progress_id, shard_id).await?;
        let (lease, mut after) = match transact!(progress::begin(run, progress_id, shard_id))? {
            Begun::Leased { lease, cursor } => (lease, cursor),
            Begun::Over => return transact!(progress::over(run)),
        };
        loop {
            run.checkpoint()?;
            match transact!(make::batch(run, &source, &lease, after))? {
                Some(last) => after = last,
                None => return transact!(progress::finish(run, &lease)),
            }
        }
    }
}
