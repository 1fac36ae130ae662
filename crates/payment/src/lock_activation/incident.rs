//! Entering S04: the boundary judged, incidents recorded, invalid revisions closed, the lease won.

use counterfoil_db::{Tx, sql};
use counterfoil_protocol::VersionId;
use counterfoil_task::{Action, Fenced, Run, Verdict, WorkError};

use super::batch::{self, Batch};
use super::boundary::{self, Reentry, Route};
use crate::lock_release::{self, Reason};
use crate::submit_batch::SUBMIT_BATCH;
use crate::version::{PUBLISHED_INCIDENT, VersionContext};

/// How S04 goes on after its first transaction.
pub(super) enum Entry {
    /// It is over.
    Ended(Verdict),
    /// Only the hand-over is missing.
    HandOver(VersionContext),
    /// Bring locks into line, with or without a lease.
    Work(VersionContext, Batch),
}

/// Judges the boundary and takes the lease, in one fenced transaction.
pub(super) async fn classify_and_lease(
    run: &Run<'_>,
    version: VersionId,
) -> Result<Entry, WorkError> {
    let mut tx = run.begin().await?;
    let mut context = VersionContext::read(&*tx, version).await?;
    let route = boundary::decide(boundary::facts(&context));
    if route == Route::ProceedWithIncident && !context.incident {
        // By itself: it stands, whether the batch can be had now or not.
        record(&mut tx, &context).await?;
        tx.commit("lock_activation.record_incident").await?;
        tx = run.begin().await?;
        context = VersionContext::read(&*tx, version).await?;
    }
    match boundary::decide(boundary::facts(&context)) {
        Route::Proceed => {}
        Route::ProceedWithIncident => record(&mut tx, &context).await?,
        Route::CancelWithIncident => {
            record(&mut tx, &context).await?;
            let reason =
                "publish incident: the version is PUBLISHED, the order does not point to it";
            let ended = tx.cancel("lock_activation.incident", reason).await?;
            return Ok(Entry::Ended(ended));
        }
        Route::CloseInvalid => return close_invalid(tx, &context).await.map(Entry::Ended),
        Route::NotPublished => {
            let message = format!("version {version} is not published");
            return Err(WorkError::failed("version-not-published", message));
        }
    }
    let facts = batch::facts(&mut tx, version).await?;
    let entry = match boundary::reenter(&facts.status, &context.session_status) {
        Reentry::HandOver => Entry::HandOver(context),
        Reentry::Redo => Entry::Work(context, Batch::reentered(&facts)),
        Reentry::Contradiction => {
            let message = format!(
                "the LOCK_ACTIVATE batch is DONE but session {} is {}",
                context.session, context.session_status
            );
            return Err(WorkError::failed("session-contradiction", message));
        }
        Reentry::Lease => {
            let lease = run
                .lease(&mut tx, &SUBMIT_BATCH, facts.id, facts.lease_version)
                .await?;
            Entry::Work(context, Batch::leased(&facts, lease))
        }
    };
    tx.commit("lock_activation.enter").await?;
    Ok(entry)
}

/// Marks the session and traces the incident. Repeating it changes nothing.
async fn record(tx: &mut Fenced<'_>, context: &VersionContext) -> Result<(), WorkError> {
    let now = tx.now();
    tx.execute(sql!(
        "UPDATE selection_session
         SET invalidated_flag = 1, invalidated_reason = :reason,
             state_version = state_version + 1, update_time = :now
         WHERE id = :session
           AND NOT (invalidated_flag = 1 AND COALESCE(invalidated_reason, '') = :reason)",
        reason = PUBLISHED_INCIDENT,
        now = now,
        session = context.session.0,
    ))
    .await?;
    let detail = serde_json::json!({
        "reason": PUBLISHED_INCIDENT,
        "pointer": context.pointer, "targetDataVersion": context.target_data,
        "versionBuildStatus": context.build_status,
        "sessionCreator": context.session_creator, "orderCreator": context.order_creator,
    });
    let subject = context.subject();
    tx.trace(
        Action::Incident,
        "RECORDED",
        Some(detail.to_string()),
        &subject,
    )
    .await
}

/// An invalid revision that was never published: its failure is fixed, S06 releases exactly its
/// RESERVED locks, S04 is CANCELLED, all in one commit.
async fn close_invalid(mut tx: Fenced<'_>, context: &VersionContext) -> Result<Verdict, WorkError> {
    fail_version(&mut tx, context).await?;
    fail_session(&mut tx, context).await?;
    let seed = lock_release::seed(
        context.version,
        Reason::InvalidReviseSession,
        context.subject(),
        Some(lock_release::source_of_activation(context.version)),
    );
    tx.accept(&seed).await?;
    let reason = "the revision's session is invalid and was never published";
    tx.trace(
        Action::Cancel,
        Reason::InvalidReviseSession.as_str(),
        None,
        &context.subject(),
    )
    .await?;
    tx.cancel("lock_activation.close_invalid", reason).await
}

/// Guard: the version is not PUBLISHED.
async fn fail_version(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order_version
         SET version_build_status = 'BUILD_FAILED', error_code = 'INVALID_REVISE_SESSION',
             error_message = 'the revision does not belong to the first creator of its order',
             update_time = :now
         WHERE id = :version AND version_build_status <> 'PUBLISHED'",
        now = now,
        version = context.version.0,
    );
    Ok(tx.execute(update).await? == 1)
}

async fn fail_session(tx: &mut Tx, context: &VersionContext) -> Result<bool, WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE selection_session
         SET status = 'SUBMIT_FAILED', failure_phase = 'LOCK_ACTIVATE', invalidated_flag = 1,
             invalidated_reason = 'INVALID_REVISE_SESSION',
             state_version = state_version + 1, update_time = :now
         WHERE id = :session AND status <> 'COMPLETED'",
        now = now,
        session = context.session.0,
    );
    Ok(tx.execute(update).await? == 1)
}
