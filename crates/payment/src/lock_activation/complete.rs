//! Step 8: verification, DONE, COMPLETED, the hand-over to S05 and SUCCESS, in one commit.

use counterfoil_db::{Tx, sql, transact};
use counterfoil_task::{Fenced, Run, Seed, Verdict, WorkError};

use super::batch::Batch;
use super::verify;
use crate::kinds::{AUDIT_PLAN_CREATE, business_key};
use crate::version::{AuditPlanPayload, VersionContext};

/// Verifies and completes. S04's success says: locks and tables agree and S05 is accepted.
pub(super) async fn complete(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Verdict, WorkError> {
    transact!(try_complete(run, context, batch))
}

/// DONE and COMPLETED already: only the hand-over is missing.
pub(super) async fn hand_over(
    run: &Run<'_>,
    context: &VersionContext,
) -> Result<Verdict, WorkError> {
    transact!(try_hand_over(run, context))
}

async fn try_complete(
    run: &Run<'_>,
    context: &VersionContext,
    batch: &Batch,
) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    verify::verify(&mut tx, context).await?;
    batch.finish(&mut tx).await?;
    if !complete_session(&mut tx, context).await? {
        let message = format!(
            "session {} is no longer syncing version {} at attempt {}",
            context.session, context.version, context.attempt
        );
        return Err(WorkError::failed("session-moved", message));
    }
    accept_audit_plan(&mut tx, run, context).await?;
    tx.succeed("lock_activation.complete").await
}

async fn try_hand_over(run: &Run<'_>, context: &VersionContext) -> Result<Verdict, WorkError> {
    let mut tx = run.begin().await?;
    accept_audit_plan(&mut tx, run, context).await?;
    tx.succeed("lock_activation.hand_over").await
}

async fn accept_audit_plan(
    tx: &mut Fenced<'_>,
    run: &Run<'_>,
    context: &VersionContext,
) -> Result<(), WorkError> {
    let seed = Seed {
        kind: &AUDIT_PLAN_CREATE,
        business_key: business_key::audit_plan_create(context.version),
        data: AuditPlanPayload::data(context.version),
        subject: context.subject(),
        source: Some(run.code().clone()),
    };
    let acceptance = tx.accept(&seed).await?;
    if acceptance.is_blocked() {
        // S04 still succeeds: its own promise holds. The rule `blocked-hand-over` shows it.
        tracing::warn!(version = %context.version, ?acceptance, "the audit plan task is blocked");
    }
    Ok(())
}

/// Guard: PUBLISHED_LOCK_SYNCING, this version active, this attempt. An incident keeps its
/// active_revise_key: completing does not settle it.
async fn complete_session(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET status = 'COMPLETED', failure_phase = NULL, active_submit_id = NULL,
             active_scope_key = NULL,
             active_revise_key = CASE
               WHEN invalidated_flag = 1
                AND invalidated_reason = 'INVALID_REVISE_SESSION_PUBLISHED_INCIDENT'
               THEN active_revise_key ELSE NULL END,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND status = 'PUBLISHED_LOCK_SYNCING'
           AND active_submit_id = :version AND submit_attempt = :attempt",
        now = now,
        session = context.session.0,
        version = context.version.0,
        attempt = context.attempt.0,
    );
    Ok(tx.execute(update).await? == 1)
}
