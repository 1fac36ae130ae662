//! `counterfoil order cancel`.

use anyhow::Result;
use counterfoil_payment::order_cancel::cancel;
use counterfoil_payment::order_view::find;
use counterfoil_protocol::UserId;
use counterfoil_task::Kicker;

use super::{Output, Session};
use crate::told;

/// Which order, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its id or number
    order: String,
    /// Why; kept in the order's log
    #[arg(long)]
    reason: String,
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Output> {
    let user = UserId(session.user()?);
    let db = session.open_migrated().await?;
    let order = find(&db, &args.order).await?;
    let done = cancel(&db, &Kicker::none(), order, user, &args.reason).await?;
    let json = told::cancelled(&done);
    let text = format!(
        "order {} is CANCELLED with {} unfinished tasks; its bills are let go by task {}",
        done.order, done.tasks, done.release
    );
    Ok(Output::new(json, text))
}
