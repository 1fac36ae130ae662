//! `counterfoil delivery`: what partners were told, and telling one again.

use anyhow::Result;
use counterfoil_db::Db;
use counterfoil_payment::partner_push::{
    DeliveryRow, DeliverySearch, DeliveryStatus, Redelivered, deliveries, delivery, redeliver,
};
use counterfoil_protocol::{DeliveryId, OrderId, UserId};
use serde_json::json;

use super::output::{Failure, table};
use super::{Output, Session};
use crate::wiring;

/// What to do with deliveries.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists deliveries, newest first
    List {
        /// Only of this order
        #[arg(long)]
        order: Option<OrderId>,
        /// WAIT_PROCESS, SUCCESS, FAIL, UNKNOWN or SKIPPED
        #[arg(long)]
        status: Option<String>,
        /// Only deliveries before this id (the last one of the page before)
        #[arg(long)]
        before: Option<DeliveryId>,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Shows one delivery with what was sent and what came back
    Show {
        /// Its id
        id: DeliveryId,
    },
    /// Sends one delivery again under its key, whatever the partner's policy says
    Redeliver {
        /// Its id
        id: DeliveryId,
        /// Why; kept in the trace with --user
        #[arg(long)]
        reason: String,
    },
    /// Lists deliveries of answers that did not arrive, newest first
    Failed {
        /// Only rows before this one (next of the page before)
        #[arg(long)]
        before: Option<i64>,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Has one answer delivered to a consumer again
    Replay {
        /// The answer's uuid
        answer: String,
        /// The consumer's app key
        #[arg(long)]
        consumer: String,
    },
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::List { order, status, before, limit } => {
            let status = status.as_deref().map(status_of).transpose()?;
            list(&db, &DeliverySearch { order, status, before, limit }).await
        }
        Command::Show { id } => show(&db, id).await,
        Command::Failed { before, limit } => {
            super::answer_delivery::failed(&db, before, limit).await
        }
        Command::Replay { answer, consumer } => {
            super::answer_delivery::replay(&db, &answer, &consumer, &session.actor()).await
        }
        Command::Redeliver { id, reason } => {
            let user = UserId(session.user()?);
            let inbox = wiring::partner_inbox(&session.config.partner)?;
            let done = redeliver(&db, &*inbox, id, user, &reason).await?;
            let failed = done.status != DeliveryStatus::Success;
            Ok(Output::new(&done, said(&done)).failed(failed))
        }
    }
}

fn status_of(text: &str) -> Result<DeliveryStatus> {
    DeliveryStatus::of(&text.to_uppercase()).ok_or_else(|| {
        let message =
            format!("--status {text}: must be WAIT_PROCESS, SUCCESS, FAIL, UNKNOWN or SKIPPED");
        Failure { code: "invalid-input", message }.into()
    })
}

async fn list(db: &Db, search: &DeliverySearch) -> Result<Output> {
    let found = deliveries(db, search).await?;
    let rows: Vec<Vec<String>> = found.iter().map(cells).collect();
    let text = if rows.is_empty() {
        "no delivery matches".to_owned()
    } else {
        let header =
            ["ID", "ORDER", "PARTNER", "CHUNK", "LINES", "STATUS", "SENT", "TIMES", "TROUBLE"];
        table(&header, &rows)
    };
    Ok(Output::new(json!({ "deliveries": found }), text))
}

fn cells(row: &DeliveryRow) -> Vec<String> {
    let sent = row.sent_time.map(|sent| sent.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    vec![
        row.id.to_string(),
        format!("{} v{} r{}", row.payment_order_id, row.data_version, row.submit_round),
        row.partner_id.map_or_else(|| "none".to_owned(), |partner| partner.to_string()),
        format!("{}/{}", row.chunk_no, row.chunk_count),
        row.line_count.to_string(),
        row.status.as_str().to_owned(),
        sent.unwrap_or_default(),
        row.attempt_count.to_string(),
        row.last_error.as_deref().unwrap_or_default().chars().take(60).collect(),
    ]
}

async fn show(db: &Db, id: DeliveryId) -> Result<Output> {
    let row = delivery(db, id).await?;
    let json = serde_json::to_value(&row)?;
    let mut text = String::new();
    if let serde_json::Value::Object(fields) = &json {
        for (field, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{field:<16} {value}\n"));
        }
    }
    Ok(Output::new(json, text))
}

fn said(done: &Redelivered) -> String {
    let mut text = format!(
        "delivery {}: was {}, is {} after {} attempts",
        done.delivery_id,
        done.was.as_str(),
        done.status.as_str(),
        done.attempt_count
    );
    if let Some(error) = &done.error {
        text.push_str(&format!(": {error}"));
    }
    match (&done.task_code, done.unsettled_chunks) {
        (Some(code), 0) => text.push_str(&format!(
            "\nevery chunk is settled: counterfoil task rerun {code} --reason … ends its task"
        )),
        (_, 0) => {}
        (_, open) => text.push_str(&format!("\n{open} chunks of its order are not settled yet")),
    }
    text
}
