//! The LOCK_ACTIVATE batch: its facts, its lease, its cursor.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_protocol::VersionId;
use counterfoil_task::{Lease, Progress, WorkError};

use crate::submit_batch;

/// The batch under which S04 works.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) size: u32,
    /// The last bill-lock id activated. Moves in step 4 only.
    pub(super) cursor: i64,
    lease: Option<Lease>,
}

impl Batch {
    pub(super) fn leased(facts: &Facts, lease: Lease) -> Batch {
        Batch { size: facts.size, cursor: facts.cursor, lease: Some(lease) }
    }

    pub(super) fn reentered(facts: &Facts) -> Batch {
        Batch { size: facts.size, cursor: facts.cursor, lease: None }
    }

    pub(super) fn is_leased(&self) -> bool {
        self.lease.is_some()
    }

    /// Proves the lease and renews it, moving cursor and counters along. A re-entered batch has no
    /// lease: there the fence alone stands guard.
    pub(super) async fn renew(&self, tx: &mut Tx, progress: Progress) -> Result<(), WorkError> {
        match &self.lease {
            Some(lease) if !lease.advance(tx, progress).await? => Err(lease_lost()),
            _ => Ok(()),
        }
    }

    /// DONE, with the lease's guard.
    pub(super) async fn finish(&self, tx: &mut Tx) -> Result<(), WorkError> {
        match &self.lease {
            Some(lease) if !lease.finish(tx).await? => Err(lease_lost()),
            _ => Ok(()),
        }
    }
}

fn lease_lost() -> WorkError {
    WorkError::failed("lease-lost", "the LOCK_ACTIVATE batch's lease was lost or has expired")
}

/// The batch row as read.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) id: i64,
    pub(super) status: String,
    pub(super) lease_version: i64,
    pub(super) size: u32,
    pub(super) cursor: i64,
}

pub(super) async fn facts(tx: &mut Tx, version: VersionId) -> Result<Facts, WorkError> {
    let query = sql!(
        "SELECT id, batch_status, lease_version, batch_size, last_item_id
         FROM selection_submit_batch
         WHERE payment_order_version_id = :version AND batch_phase = 'LOCK_ACTIVATE'
           AND deleted = 0",
        version = version.0,
    );
    let Some(row) = tx.row(query).await? else {
        let message = format!("version {version} has no LOCK_ACTIVATE batch");
        return Err(WorkError::failed("batch-missing", message));
    };
    Ok(Facts {
        id: row.int("id")?,
        status: row.text("batch_status")?,
        lease_version: row.int("lease_version")?,
        size: submit_batch::size(row.maybe_int("batch_size")?),
        cursor: row.int("last_item_id")?,
    })
}
