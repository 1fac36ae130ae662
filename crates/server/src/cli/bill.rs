//! `counterfoil bill`: everything one bill went through, and whether it can be paid again.

use anyhow::Result;
use counterfoil_payment::{PaymentError, order_view};
use counterfoil_protocol::BillMonth;

use super::order_text as text;
use super::{Output, Session};

/// Which bill.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The station
    station: String,
    /// The month, YYYYMM
    month: String,
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Output> {
    let month: BillMonth = args
        .month
        .parse()
        .map_err(|error| PaymentError::invalid("month", format!("{} {error}", args.month)))?;
    if args.station.trim().is_empty() {
        return Err(PaymentError::invalid("station", "name a station").into());
    }
    let db = session.open_migrated().await?;
    let tolerance = session.config.qualification.tolerance();
    let view = order_view::bill(&db, args.station.trim(), &month, &tolerance).await?;
    let text = text::bill(&view);
    Ok(Output::new(view, text))
}
