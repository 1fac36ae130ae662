//! `counterfoil session`.

use anyhow::Result;
use counterfoil_payment::session::submit;
use counterfoil_protocol::{SessionId, UserId};
use counterfoil_task::Kicker;
use serde_json::json;

use super::{Output, Session};

/// What to do with selection sessions.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Submits a session: its order and version are recorded, S03 is accepted
    Submit {
        /// The session
        session: SessionId,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open().await?;
    let user = UserId(session.user()?);
    match command {
        Command::Submit { session } => {
            let done = submit(&db, &Kicker::none(), session, user).await?;
            let json = json!({
                "sessionId": session, "paymentOrderId": done.order,
                "paymentOrderVersionId": done.version, "submitAttempt": done.attempt,
                "taskCode": done.task.as_str(),
            });
            let text = format!(
                "session {session} submitted: order {}, version {}, attempt {}; accepted, not \
                 built yet: task {}",
                done.order, done.version, done.attempt, done.task
            );
            Ok(Output::new(json, text))
        }
    }
}
