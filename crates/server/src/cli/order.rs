//! `counterfoil order`: list, show, lines, timeline, diff, repair-publish.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::Result;
use counterfoil_db::Db;
use counterfoil_payment::PaymentError;
use counterfoil_payment::order_view::{self, LineQuery, OrderQuery, find, order_status_code};
use counterfoil_payment::publish_repair::{Repaired, repair_publish};
use counterfoil_protocol::{DataVersion, LineId, OrderId, UserId};

use super::order_text as text;
use super::{Output, Session};

/// Bills shown a kind of change when no number is asked for.
const CHANGED_SHOWN: u32 = 10;

/// What to do with payment orders. ORDER is an id or an order number.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists orders, newest first
    List {
        /// Its name or code: DRAFT, UNDER_REVIEW, REVIEW_REJECTED, WAIT_PAY, PAID, …
        #[arg(long)]
        status: Option<String>,
        /// Only orders that this user created
        #[arg(long, value_name = "ID")]
        creator: Option<i64>,
        /// Only orders before this id (nextBefore of the page before)
        #[arg(long, value_name = "ID")]
        before: Option<i64>,
        /// Rows at most
        #[arg(long)]
        limit: Option<u32>,
    },
    /// Where an order is, what it waits for, what may be done; then every stage
    Show {
        /// Its id or number
        order: String,
    },
    /// The lines of one version, by id
    Lines {
        /// Its id or number
        order: String,
        /// Of this data version [default: the published one]
        #[arg(long, value_name = "V")]
        data_version: Option<String>,
        /// Only lines after this id (nextAfter of the page before)
        #[arg(long, value_name = "ID")]
        after: Option<i64>,
        /// Rows at most
        #[arg(long)]
        limit: Option<u32>,
    },
    /// What happened to an order, oldest first
    Timeline {
        /// Its id or number
        order: String,
        /// The newest so many entries
        #[arg(long)]
        limit: Option<u32>,
    },
    /// What data version V2 changed against V1, bill by bill
    Diff {
        /// Its id or number
        order: String,
        /// A data version
        v1: String,
        /// Another one
        v2: String,
        /// Bills shown a kind
        #[arg(long, default_value_t = CHANGED_SHOWN)]
        first: u32,
    },
    /// Cancels an order that nobody is paying yet, and lets go of its bills
    Cancel(super::cancel::Args),
    /// Records that an OFFLINE order was paid outside, with its evidence
    RecordPayment(super::record_payment::Args),
    /// Sets the version that the order points to PUBLISHED, when its record says otherwise
    RepairPublish {
        /// Its id or number
        order: String,
        /// Why; kept in the trace
        #[arg(long)]
        reason: String,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    if let Command::Cancel(args) = &command {
        return super::cancel::run(session, args).await;
    }
    if let Command::RecordPayment(args) = &command {
        return super::record_payment::run(session, args).await;
    }
    let db = session.open_migrated().await?;
    match command {
        Command::Cancel(_) | Command::RecordPayment(_) => unreachable!("answered above"),
        Command::List { status, creator, before, limit } => {
            let query = OrderQuery {
                status: status.as_deref().map(status_code).transpose()?,
                creator: creator.map(UserId),
                before: before.map(OrderId),
                limit,
            };
            let page = order_view::list(&db, &query).await?;
            let text = text::orders(&page);
            Ok(Output::new(page, text))
        }
        Command::Show { order } => {
            let view = order_view::one(&db, find(&db, &order).await?).await?;
            let text = text::order(&view);
            Ok(Output::new(view, text))
        }
        Command::Lines { order, data_version, after, limit } => {
            let named = data_version.as_deref();
            let query = LineQuery {
                data_version: named.map(|v| number("dataVersion", v)).transpose()?,
                after: after.map(LineId),
                limit,
            };
            let page = order_view::lines(&db, find(&db, &order).await?, &query).await?;
            let text = text::lines(&page);
            Ok(Output::new(page, text))
        }
        Command::Timeline { order, limit } => {
            let told = order_view::timeline(&db, find(&db, &order).await?, limit).await?;
            let text = text::timeline(&told);
            Ok(Output::new(told, text))
        }
        Command::Diff { order, v1, v2, first } => diff(&db, &order, &v1, &v2, first).await,
        Command::RepairPublish { order, reason } => {
            let user = UserId(session.user()?);
            let order = find(&db, &order).await?;
            let done = repair_publish(&db, order, user, &reason).await?;
            let text = repaired(&done);
            Ok(Output::new(done, text))
        }
    }
}

async fn diff(db: &Db, order: &str, v1: &str, v2: &str, first: u32) -> Result<Output> {
    let (v1, v2): (DataVersion, DataVersion) = (number("v1", v1)?, number("v2", v2)?);
    let order = find(db, order).await?;
    let told = order_view::diff(db, order, v1, v2, first).await?;
    let text = text::diff(&told);
    Ok(Output::new(told, text))
}

fn status_code(text: &str) -> Result<i64, PaymentError> {
    order_status_code(text).ok_or_else(|| {
        let names = "DRAFT, UNDER_REVIEW, REVIEW_REJECTED, WAIT_PAY, PAID, NO_NEED_PAY, CANCELLED";
        PaymentError::invalid("status", format!("{text} is none of {names}, nor their codes"))
    })
}

/// A number that was typed, refused by the name of its field.
fn number<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, PaymentError> {
    text.trim()
        .parse()
        .map_err(|error| PaymentError::invalid(field, format!("{text} is no number: {error}")))
}

fn repaired(done: &Repaired) -> String {
    let mut text = format!(
        "order {}: data version {} said {} and is PUBLISHED now; traced under {}",
        done.payment_order_id, done.data_version, done.was, done.task_code
    );
    if done.incident_cleared {
        text.push_str("\nthe session's incident mark is taken off");
    }
    if done.revise_key_cleared {
        text.push_str("\nthe session's active_revise_key is given back");
    }
    if done.incident_remains {
        text.push_str(
            "\nit stays a publish incident: the revision is not one of the order's creator",
        );
    }
    text
}
