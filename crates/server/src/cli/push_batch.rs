//! `counterfoil push-batch`: what is to be paid, what became of it, and putting payees right.

use std::path::PathBuf;

use anyhow::{Context, Result};
use counterfoil_payment::order_view::find;
use counterfoil_payment::treasury::TreasuryError;
use counterfoil_payment::treasury::data_fix::{PayeeFix, fix};
use counterfoil_payment::treasury::push::{Asked, Pushed, push_one};
use counterfoil_payment::treasury::result::{self, Applied};
use counterfoil_payment::treasury::view::{self, BatchPage, BatchQuery, BatchView};
use counterfoil_protocol::{Fen, UserId};
use counterfoil_remote::iso20022::{MAX_REPORT_BYTES, read_report};
use serde_json::json;

use super::output::table;
use super::{Output, Session};
use crate::treasury;

/// What to do with push batches. BATCH is an id or a batch number.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists batches, by id
    List {
        /// Only of this order: its id or number
        #[arg(long)]
        order: Option<String>,
        /// Only in this status: WAIT_PUSH, PUSHING, WAIT_DATA_FIX, …
        #[arg(long)]
        status: Option<String>,
        /// Only after this id (nextAfter of the page before)
        #[arg(long, value_name = "ID")]
        after: Option<i64>,
        /// Rows at most
        #[arg(long)]
        limit: Option<u32>,
    },
    /// One batch, its pushes, and the details that need a person first
    Show {
        /// Its id or number
        batch: String,
    },
    /// Pushes a batch now, if it waits to be pushed
    Push {
        /// Its id or number
        batch: String,
    },
    /// Applies a bank's status report (pain.002.001.12)
    Result {
        /// The file
        file: PathBuf,
    },
    /// Puts a detail's payee right, or confirms it; the detail is then pushed again alone
    Fix {
        /// The detail's id
        detail: i64,
        /// The payee's name [default: as it is]
        #[arg(long)]
        name: Option<String>,
        /// The account number [default: as it is]
        #[arg(long)]
        account: Option<String>,
        /// The bank [default: as it is]
        #[arg(long)]
        bank: Option<String>,
        /// Why; kept for ever
        #[arg(long)]
        reason: String,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    match command {
        Command::List { order, status, after, limit } => {
            let db = session.open_migrated().await?;
            let order = match order {
                Some(order) => Some(find(&db, &order).await?.0),
                None => None,
            };
            let query = BatchQuery { order, status, after, limit };
            let page = view::list(&db, &query).await?;
            let text = batches(&page);
            Ok(Output::new(page, text))
        }
        Command::Show { batch } => {
            let db = session.open_migrated().await?;
            let view = view::show(&db, &batch).await?;
            let text = one(&view);
            Ok(Output::new(view, text))
        }
        Command::Push { batch } => push(session, &batch).await,
        Command::Result { file } => import(session, &file).await,
        Command::Fix { detail, name, account, bank, reason } => {
            let user = UserId(session.user()?);
            let db = session.open_migrated().await?;
            let payee = PayeeFix { name, account, bank };
            let fixed = fix(&db, detail, &payee, &reason, user).await?;
            let text = format!(
                "detail {} waits to be pushed again; batch {} is {}",
                fixed.detail_id, fixed.push_batch_id, fixed.batch_status
            );
            Ok(Output::new(fixed, text))
        }
    }
}

async fn push(session: &Session, named: &str) -> Result<Output> {
    session.user()?;
    let db = session.open_migrated().await?;
    let batch = view::show(&db, named).await?.batch;
    let channels = treasury::channels(&session.config.treasury)?;
    let pushed = push_one(&db, &channels, batch.id, Asked::ByPerson).await?;
    let now = view::show(&db, named).await?.batch;
    let (word, what) = match pushed {
        Pushed::Accepted => ("ACCEPTED", "the receiver accepted it"),
        Pushed::Refused => ("REFUSED", "certainly not accepted; it is tried again when due"),
        Pushed::Unknown => ("UNKNOWN", "no verdict: a status query or a result decides"),
        Pushed::NeedsData => ("NEEDS_DATA", "nothing in it can be sent before a person's fix"),
        Pushed::Lost => {
            let why = "only a batch that waits or failed, of an order at 40, can be pushed";
            let refused = TreasuryError::BatchState {
                batch: batch.id,
                status: now.status,
                why: why.to_owned(),
            };
            return Err(refused.into());
        }
    };
    let json = json!({ "pushBatchId": batch.id, "outcome": word, "status": now.status });
    let text = format!("batch {}: {what}; it is {}", now.batch_no, now.status);
    Ok(Output::new(json, text).failed(pushed != Pushed::Accepted))
}

async fn import(session: &Session, file: &std::path::Path) -> Result<Output> {
    let user = UserId(session.user()?);
    let db = session.open_migrated().await?;
    let length = std::fs::metadata(file).map(|metadata| metadata.len());
    let length = length.with_context(|| format!("cannot read {}", file.display()))?;
    let unreadable = |why: String| TreasuryError::ReportUnreadable(why);
    if length > u64::try_from(MAX_REPORT_BYTES)? {
        return Err(unreadable(format!("the file is longer than {MAX_REPORT_BYTES} bytes")).into());
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let report = read_report(&bytes).map_err(|error| unreadable(error.to_string()))?;
    let applied = result::import(&db, &report, &bytes, user).await?;
    let text = told(&applied);
    let refused = applied.refused > 0;
    Ok(Output::new(applied, text).failed(refused))
}

fn told(applied: &Applied) -> String {
    let mut text = format!(
        "report {}: {} entries, {} details changed, {} entries not applied{}",
        applied.report_id,
        applied.entries,
        applied.changed,
        applied.refused,
        if applied.known { "; it was applied before, nothing changed" } else { "" }
    );
    for trouble in &applied.troubles {
        text.push_str(&format!("\n  {trouble}"));
    }
    text
}

fn batches(page: &BatchPage) -> String {
    let row = |batch: &view::BatchRow| {
        vec![
            batch.id.to_string(),
            batch.batch_no.clone(),
            batch.status.clone(),
            batch.detail_count.to_string(),
            Fen(batch.total_amount).to_string(),
            batch.push_count.to_string(),
            batch.error_message.clone().unwrap_or_default().chars().take(60).collect(),
        ]
    };
    let rows: Vec<_> = page.batches.iter().map(row).collect();
    table(&["ID", "NUMBER", "STATUS", "LINES", "YUAN", "PUSHES", "WHY"], &rows)
}

fn one(view: &BatchView) -> String {
    let batch = &view.batch;
    let mut text = format!(
        "batch {} ({}) of order {}: {}, {} lines, {} yuan, by {}",
        batch.id,
        batch.batch_no,
        batch.payment_order_id,
        batch.status,
        batch.detail_count,
        Fen(batch.total_amount),
        batch.strategy
    );
    if let Some(why) = &batch.error_message {
        text.push_str(&format!("\n  {why}"));
    }
    let pushes: Vec<_> = view
        .pushes
        .iter()
        .map(|push| {
            vec![
                push.message_id.clone(),
                push.state.clone(),
                push.detail_count.to_string(),
                push.create_time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
                push.error_message.clone().unwrap_or_default(),
            ]
        })
        .collect();
    text.push_str(&format!("\n\n{}", table(&["PUSH", "STATE", "LINES", "MADE", "SAID"], &pushes)));
    let details: Vec<_> = view
        .details
        .iter()
        .map(|detail| {
            vec![
                detail.id.to_string(),
                detail.order_bill_id.to_string(),
                Fen(detail.amount).to_string(),
                detail.payee_name.clone().unwrap_or_default(),
                detail.payee_account.clone().unwrap_or_default(),
                detail.push_status.clone(),
                detail.pay_status.clone().unwrap_or_default(),
                detail.error_message.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["DETAIL", "LINE", "YUAN", "PAYEE", "ACCOUNT", "PUSH", "PAY", "WHY"];
    text.push_str(&format!("\n\n{}", table(&header, &details)));
    if view.details_not_shown > 0 {
        text.push_str(&format!(
            "\nand {} more details: counterfoil export payments {} --format csv",
            view.details_not_shown, batch.payment_order_id
        ));
    }
    text
}
