//! `counterfoil serve`.

use anyhow::Result;
use counterfoil_db::{Clock, Db};
use serde_json::json;

use super::{Output, Session};
use crate::serve::{self, DEFAULT_ROLES, Role};

/// What to serve.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Roles of this process [default: api,worker,scheduler,review]
    #[arg(long = "role", value_delimiter = ',')]
    roles: Vec<Role>,
    /// Where to listen, such as 127.0.0.1:8080; port 0 takes a free one
    #[arg(long)]
    listen: Option<String>,
    /// The cron expression of handlers that have none of their own
    #[arg(long)]
    cron: Option<String>,
}

pub(super) async fn run(mut session: Session, args: Args) -> Result<Output> {
    if let Some(listen) = args.listen {
        session.config.server.listen = listen;
    }
    if let Some(cron) = args.cron {
        session.config.scheduler.default_cron = cron;
    }
    let roles = if args.roles.is_empty() { DEFAULT_ROLES.to_vec() } else { args.roles };
    let roles = roles.into_iter().collect();
    let clock = clock(&session).await?;
    let db = session.open_with(clock).await?;
    serve::run(&db, &session.config, &roles, |_| {}).await?;
    Ok(Output::new(json!({ "stopped": true }), "stopped"))
}

/// `--now T` starts at T and runs on: the shift against the database's clock, read once.
async fn clock(session: &Session) -> Result<Clock> {
    let Some(start) = session.globals.now else {
        return Ok(Clock::Database);
    };
    let db: Db = session.open_with(Clock::Database).await?;
    let shift = start - db.now().await?;
    db.close().await;
    Ok(Clock::Shifted(shift))
}
