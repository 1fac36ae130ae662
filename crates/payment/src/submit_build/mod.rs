//! S03: builds formal lines and reserves locks for a submitted version, then publishes it.
//!
//! Source: payment-flow.md "Submit and S03 build".

mod build;
mod conflict;
mod publish;

use counterfoil_db::{Read, Tx, sql, transact};
use counterfoil_protocol::VersionId;
use counterfoil_task::{Kind, Lease, Run, Verdict, Work, WorkError};

use crate::kinds::SUBMIT_BUILD;
use crate::session::name_source_lines;
use crate::submit_batch::{self, SUBMIT_BATCH};
use crate::version::{Mode, SubmitBuildPayload, VersionContext};

/// The work of S03.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubmitBuild;

#[async_trait::async_trait]
impl Work for SubmitBuild {
    type Payload = SubmitBuildPayload;

    fn kind(&self) -> &'static Kind {
        &SUBMIT_BUILD
    }

    async fn run(&self, payload: SubmitBuildPayload, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let (context, mut batch) = transact!(enter(run, payload.version()))?;
        if conflict::exists(run.db(), &context).await? {
            return transact!(conflict::fail(run, &context, &batch));
        }
        match build::build(run, &context, &mut batch).await? {
            build::Built::All => {}
            build::Built::Conflict => return transact!(conflict::fail(run, &context, &batch)),
        }
        transact!(publish::publish(run, &context, &batch))
    }
}

/// The BUILD batch under lease.
pub(crate) struct Batch {
    lease: Lease,
    size: u32,
    /// The last session item built.
    cursor: i64,
    /// A line of the version: where to look for its last one from. 0 when none is known yet.
    built: i64,
}

async fn enter(run: &Run<'_>, version: VersionId) -> Result<(VersionContext, Batch), WorkError> {
    let mut tx = run.begin().await?;
    let context = VersionContext::read(&*tx, version).await?;
    check(&context)?;
    let batch = lease(run, &mut tx, version).await?;
    if context.mode == Mode::Revise {
        // Submitting has done it; a session written or repaired by hand may not have.
        name_source_lines(&mut tx, context.session, context.order, context.source_data).await?;
    }
    tx.commit("submit_build.enter").await?;
    Ok((context, batch))
}

/// The submission is still the one being built.
fn check(context: &VersionContext) -> Result<(), WorkError> {
    let moved = |what: String| Err(WorkError::failed("submission-moved", what));
    if !matches!(context.build_status.as_str(), "BUILDING" | "BUILT") {
        return moved(format!("version {} is {}", context.version, context.build_status));
    }
    if context.session_status != "SUBMITTING"
        || context.active_submit != Some(context.version)
        || context.session_attempt != context.attempt
    {
        return moved(format!(
            "session {} is {} at attempt {}, not submitting version {} at attempt {}",
            context.session,
            context.session_status,
            context.session_attempt,
            context.version,
            context.attempt
        ));
    }
    Ok(())
}

async fn lease(run: &Run<'_>, tx: &mut Tx, version: VersionId) -> Result<Batch, WorkError> {
    let query = sql!(
        "SELECT id, lease_version, batch_size, last_item_id FROM selection_submit_batch
         WHERE payment_order_version_id = :version AND batch_phase = 'BUILD' AND deleted = 0",
        version = version.0,
    );
    let Some(row) = tx.row(query).await? else {
        let message = format!("version {version} has no BUILD batch");
        return Err(WorkError::failed("batch-missing", message));
    };
    let lease_version = row.int("lease_version")?;
    let lease = run.lease(tx, &SUBMIT_BATCH, row.int("id")?, lease_version).await?;
    Ok(Batch {
        lease,
        size: submit_batch::size(row.maybe_int("batch_size")?),
        cursor: row.int("last_item_id")?,
        built: 0,
    })
}
