//! `counterfoil order record-payment`.

use anyhow::Result;
use counterfoil_db::Instant;
use counterfoil_payment::order_view::find;
use counterfoil_payment::treasury::record_payment::record_payment;
use counterfoil_protocol::UserId;

use super::{Output, Session};
use crate::config;

/// Which order was paid outside, and what proves it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its id or number
    order: String,
    /// What proves the payment; kept in the order's log
    #[arg(long)]
    evidence: String,
    /// When it was paid [default: now]
    #[arg(long, value_parser = config::instant)]
    paid_at: Option<Instant>,
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Output> {
    let user = UserId(session.user()?);
    let db = session.open_migrated().await?;
    let order = find(&db, &args.order).await?;
    let done = record_payment(&db, order, &args.evidence, args.paid_at, user).await?;
    let text = if done.known {
        format!("order {order} was recorded as paid before; nothing changed")
    } else {
        format!("order {order} is PAID with {} lines; their bills are refreshed next", done.lines)
    };
    Ok(Output::new(done, text))
}
