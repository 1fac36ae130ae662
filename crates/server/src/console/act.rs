//! Doing something for a person: written down before, done, and written down what came of it.

use counterfoil_account::audit::{Deed, Outcome, record};

use super::Console;
use super::door::Visitor;
use super::shell::Trouble;
use super::texts::Lang;

/// What an action answers: its value, and what is told of it.
pub(super) type Done<T> = Result<(T, String), Trouble>;

/// Does something under the eyes of the audit. Nothing is done that could not be written down.
pub(super) async fn audited<T>(
    console: &Console,
    visitor: &Visitor,
    deed: Deed<'_>,
    work: impl Future<Output = Done<T>>,
) -> Result<T, Trouble> {
    let actor = visitor.actor();
    record(&console.db, &actor, deed, Outcome::Asked, "").await?;
    let done = work.await;
    let (outcome, detail) = match &done {
        Ok((_, told)) => (Outcome::Done, told.clone()),
        Err(trouble) if trouble.is_refusal() => (Outcome::Refused, trouble.text(Lang::En)),
        Err(trouble) => (Outcome::Failed, trouble.text(Lang::En)),
    };
    if let Err(error) = record(&console.db, &actor, deed, outcome, &detail).await {
        // The question is on record; the answer is in the log at least.
        tracing::error!(%error, deed.action, deed.subject, ?outcome, "an outcome is not on record");
    }
    done.map(|(value, _)| value)
}
