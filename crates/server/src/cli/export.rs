//! `counterfoil export`: an order's lines, its payments, the tasks, and the proof pack.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use counterfoil_db::{Db, Query, Read, Row, sql};
use counterfoil_payment::order_view::{find, line_status, line_type, one};
use counterfoil_protocol::{Fen, OrderId};
use serde_json::json;

use super::{Output, Session};
use crate::files::written::{Cell, Format, TableFile};
use crate::proof_file::{self, Written};

/// What to export. The file appears whole or not at all.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// The lines of an order's published version
    Order(Args),
    /// What is being paid: details of push batches, with payees in full
    Payments(Args),
    /// The proof pack: figures, decisions, deliveries, batches, rules; JSON is signed
    Proof(Args),
    /// The tasks of one type, or all
    Tasks {
        /// Only of this type
        #[arg(long = "type", value_name = "TYPE", default_value = "")]
        task_type: String,
        /// How it is written
        #[arg(long, value_enum, default_value_t = Format::Xlsx)]
        format: Format,
        /// Where [default: tasks.FORMAT]
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

/// An order's file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The order: its id or number
    order: String,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Xlsx)]
    format: Format,
    /// Where [default: KIND-ORDER.FORMAT in this folder]
    #[arg(long)]
    out: Option<PathBuf>,
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::Order(args) => {
            let order = find(&db, &args.order).await?;
            let path = place(&args, "order", order);
            let rows = lines(&db, order, &path, args.format).await?;
            Ok(said(&path, rows))
        }
        Command::Payments(args) => {
            let order = find(&db, &args.order).await?;
            let path = place(&args, "payments", order);
            let rows = payments(&db, order, &path, args.format).await?;
            Ok(said(&path, rows))
        }
        Command::Proof(args) => {
            let order = find(&db, &args.order).await?;
            let path = place(&args, "proof", order);
            let written = proof_file::write(&session.config, &db, order, &path, args.format);
            Ok(proved(&path, &written.await?))
        }
        Command::Tasks { task_type, format, out } => {
            let path = out.unwrap_or_else(|| PathBuf::from(format!("tasks.{}", ending(format))));
            let rows = tasks(&db, &task_type, &path, format).await?;
            Ok(said(&path, rows))
        }
    }
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Xlsx => "xlsx",
        Format::Csv => "csv",
        Format::Json => "json",
    }
}

fn place(args: &Args, kind: &str, order: OrderId) -> PathBuf {
    let default = || PathBuf::from(format!("{kind}-{order}.{}", ending(args.format)));
    args.out.clone().unwrap_or_else(default)
}

fn said(path: &Path, rows: u64) -> Output {
    let shown = path.display().to_string();
    Output::new(json!({ "file": shown, "rows": rows }), format!("{rows} rows in {shown}"))
}

fn proved(path: &Path, written: &Written) -> Output {
    let shown = path.display().to_string();
    let verdict = if written.all_agree {
        "every stage agrees and no rule is broken"
    } else {
        "not every stage agrees, or a rule is broken: see the figures"
    };
    let json = json!({ "file": shown, "allAgree": written.all_agree, "figures": written.figures });
    Output::new(json, format!("{shown}: {verdict}"))
}

/// Rows read at a time.
const PAGE: i64 = 1000;

/// Walks a query by its last id and writes each row. The query takes `:after` and `:size`.
async fn walk(
    db: &Db,
    query: impl Fn() -> Query,
    mut file: TableFile,
    path: &Path,
    row_of: impl Fn(&Row) -> Result<Vec<Cell>>,
) -> Result<u64> {
    let mut after = 0;
    loop {
        let rows = db.rows(query().bind("after", after).bind("size", PAGE)).await?;
        let Some(last) = rows.last() else { break };
        after = last.int("id")?;
        for row in &rows {
            file.row(&row_of(row)?)?;
        }
    }
    file.finish(path)
}

fn id(row: &Row, column: &str) -> Result<Cell> {
    let id = row.maybe_int(column)?;
    Ok(id.map_or(Cell::Empty, |id| Cell::Text(id.to_string())))
}

fn yuan(row: &Row, column: &str) -> Result<Cell> {
    Ok(row.maybe_int(column)?.map_or(Cell::Empty, |fen| Cell::Yuan(Fen(fen))))
}

fn text(row: &Row, column: &str) -> Result<Cell> {
    Ok(Cell::maybe(row.maybe_text(column)?))
}

const LINE_COLUMNS: [&str; 10] = [
    "order_bill_id",
    "station_id",
    "bill_yearmonth",
    "line_type",
    "line_status",
    "pre_rent_yuan",
    "pay_amount_yuan",
    "project_company_id",
    "partner_id",
    "unqualified_reason",
];

async fn lines(db: &Db, order: OrderId, path: &Path, format: Format) -> Result<u64> {
    let shown = one(db, order).await?.order;
    let (data, round) = (shown.published_data_version, shown.submit_round);
    let query = || {
        sql!(
            "SELECT id, station_id, bill_yearmonth, line_type, line_status, pre_rent, pay_amount,
                    project_company_id, partner_id, unqualified_reason
             FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND deleted = 0 AND id > :after ORDER BY id LIMIT :size",
            order = order.0,
            data = data.0,
            round = round.0,
        )
    };
    let file = TableFile::create(path, format, &LINE_COLUMNS)?;
    walk(db, query, file, path, |row| {
        Ok(vec![
            id(row, "id")?,
            text(row, "station_id")?,
            text(row, "bill_yearmonth")?,
            Cell::Text(line_type(row.int("line_type")?).into()),
            Cell::Text(line_status(row.int("line_status")?).into()),
            yuan(row, "pre_rent")?,
            yuan(row, "pay_amount")?,
            id(row, "project_company_id")?,
            id(row, "partner_id")?,
            text(row, "unqualified_reason")?,
        ])
    })
    .await
}

const PAYMENT_COLUMNS: [&str; 12] = [
    "detail_id",
    "batch_no",
    "order_bill_id",
    "station_id",
    "bill_yearmonth",
    "amount_yuan",
    "payee_name",
    "payee_account",
    "payee_bank",
    "push_status",
    "pay_status",
    "error",
];

async fn payments(db: &Db, order: OrderId, path: &Path, format: Format) -> Result<u64> {
    let query = || {
        sql!(
            "SELECT d.id, b.batch_no, d.order_bill_id, l.station_id, l.bill_yearmonth, d.amount,
                    d.payee_name, d.payee_account, d.payee_bank, d.push_status, d.pay_status,
                    d.error_message
             FROM fi_resident_income_payment_push_batch b
             JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
             LEFT JOIN fi_resident_income_payment_order_bill l ON l.id = d.order_bill_id
             WHERE b.payment_order_id = :order AND b.deleted = 0 AND d.deleted = 0
               AND d.id > :after ORDER BY d.id LIMIT :size",
            order = order.0,
        )
    };
    let file = TableFile::create(path, format, &PAYMENT_COLUMNS)?;
    walk(db, query, file, path, |row| {
        Ok(vec![
            id(row, "id")?,
            text(row, "batch_no")?,
            id(row, "order_bill_id")?,
            text(row, "station_id")?,
            text(row, "bill_yearmonth")?,
            yuan(row, "amount")?,
            text(row, "payee_name")?,
            text(row, "payee_account")?,
            text(row, "payee_bank")?,
            text(row, "push_status")?,
            text(row, "pay_status")?,
            text(row, "error_message")?,
        ])
    })
    .await
}

const TASK_COLUMNS: [&str; 8] = [
    "task_code",
    "task_type",
    "business_key",
    "task_status",
    "retry_count",
    "running_attempt",
    "error_message",
    "update_time",
];

async fn tasks(db: &Db, task_type: &str, path: &Path, format: Format) -> Result<u64> {
    let query = || {
        sql!(
            "SELECT id, task_code, task_type, business_key, task_status,
                    COALESCE(retry_count, 0) AS retry_count,
                    COALESCE(running_attempt, 0) AS running_attempt, error_message, update_time
             FROM fi_async_task
             WHERE deleted = 0 AND id > :after AND (:all_types = 1 OR task_type = :task_type)
             ORDER BY id LIMIT :size",
            all_types = task_type.is_empty(),
            task_type = task_type,
        )
    };
    let file = TableFile::create(path, format, &TASK_COLUMNS)?;
    walk(db, query, file, path, |row| {
        let status = counterfoil_task::TaskStatus::of_code(row.int("task_status")?);
        let status = status.context("a task_status that is none")?;
        Ok(vec![
            text(row, "task_code")?,
            text(row, "task_type")?,
            text(row, "business_key")?,
            Cell::Text(status.to_string()),
            Cell::Number(row.int("retry_count")?),
            Cell::Number(row.int("running_attempt")?),
            text(row, "error_message")?,
            Cell::Text(row.instant("update_time")?.to_rfc3339()),
        ])
    })
    .await
}
