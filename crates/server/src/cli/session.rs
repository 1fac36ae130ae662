//! `counterfoil session`.

use anyhow::{Context, Result};
use counterfoil_db::Db;
use counterfoil_payment::session::add::{Added, BillKey, Selection, add_bills};
use counterfoil_payment::session::edit::{
    Editor, Marked, mark_payable, mark_unqualified, remove_bills,
};
use counterfoil_payment::session::open::{open_new, open_revise};
use counterfoil_payment::session::show::show;
use counterfoil_payment::session::submit;
use counterfoil_protocol::{BillMonth, SessionId, UserId};
use counterfoil_task::Kicker;
use serde_json::json;

use super::output::Failure;
use super::session_text::describe;
use super::{Output, Session};
use crate::told;

/// What to do with selection sessions.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Opens a session: for a new order, or to revise one
    Create {
        /// The order to revise: its id or number [default: a new order]
        #[arg(long)]
        revise: Option<String>,
    },
    /// Adds bills and judges each
    Add {
        /// The session
        session: SessionId,
        #[command(flatten)]
        bills: Bills,
    },
    /// Takes bills out
    Remove {
        /// The session
        session: SessionId,
        #[command(flatten)]
        bills: Bills,
    },
    /// Sets bills to not being paid, by hand
    MarkUnqualified {
        /// The session
        session: SessionId,
        /// STATION:MONTH, repeated
        #[arg(long = "bill", required = true)]
        bills: Vec<String>,
    },
    /// Takes such a mark back
    MarkPayable {
        /// The session
        session: SessionId,
        /// STATION:MONTH, repeated
        #[arg(long = "bill", required = true)]
        bills: Vec<String>,
    },
    /// Submits a session: its order and version are recorded, S03 is accepted
    Submit {
        /// The session
        session: SessionId,
    },
    /// Shows a session, and what its last submission failed for
    Show {
        /// The session
        session: SessionId,
    },
}

/// Which bills.
#[derive(Debug, clap::Args)]
pub(super) struct Bills {
    /// All bills of a month (YYYYMM) that can be selected
    #[arg(long)]
    month: Option<String>,
    /// Only those of one project company
    #[arg(long, requires = "month")]
    company: Option<i64>,
    /// Only those of one partner
    #[arg(long, requires = "month")]
    partner: Option<i64>,
    /// STATION:MONTH, repeated
    #[arg(long = "bill", conflicts_with = "month")]
    bills: Vec<String>,
}

impl Bills {
    fn selection(&self) -> Result<Selection> {
        match &self.month {
            Some(month) => Ok(Selection::Month {
                month: parse_month("--month", month)?,
                company: self.company,
                partner: self.partner,
            }),
            None if self.bills.is_empty() => {
                Err(invalid("name --month YYYYMM or --bill STATION:MONTH".into()))
            }
            None => Ok(Selection::Bills(keys(&self.bills)?)),
        }
    }
}

fn invalid(message: String) -> anyhow::Error {
    Failure { code: "invalid-input", message }.into()
}

fn parse_month(field: &str, text: &str) -> Result<BillMonth> {
    text.parse().map_err(|error| invalid(format!("{field} {text} {error}")))
}

fn keys(bills: &[String]) -> Result<Vec<BillKey>> {
    bills.iter().map(|text| key(text)).collect()
}

fn key(text: &str) -> Result<BillKey> {
    let parts = text.rsplit_once(':').filter(|(station, _)| !station.is_empty());
    let Some((station, month)) = parts else {
        return Err(invalid(format!("--bill {text}: write STATION:MONTH")));
    };
    let month = parse_month(&format!("--bill {text}:"), month)?;
    Ok(BillKey { station: station.to_owned(), month })
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    if let Command::Show { session } = command {
        let view = show(&db, session).await?;
        let (json, text) = describe(&view);
        return Ok(Output::new(json, text));
    }
    let user = UserId(session.user()?);
    let editor = |session| Editor { session, user };
    // One yuan or five percent: `[qualification]` of the configuration.
    let tolerance = session.config.qualification.tolerance();
    match command {
        Command::Create { revise } => create(&db, user, revise.as_deref()).await,
        Command::Add { session, bills } => {
            let selection = bills.selection()?;
            let added = add_bills(&db, editor(session), &selection, &tolerance).await?;
            Ok(said_added(session, &added))
        }
        Command::Remove { session, bills } => {
            let removed = remove_bills(&db, editor(session), &bills.selection()?).await?;
            let json = json!({ "sessionId": session, "removed": removed });
            Ok(Output::new(json, format!("{removed} bills removed from session {session}")))
        }
        Command::MarkUnqualified { session, bills } => {
            let marked = mark_unqualified(&db, editor(session), &keys(&bills)?).await?;
            Ok(said_marked(session, &marked))
        }
        Command::MarkPayable { session, bills } => {
            let marked = mark_payable(&db, editor(session), &keys(&bills)?, &tolerance).await?;
            Ok(said_marked(session, &marked))
        }
        Command::Submit { session } => submit_one(&db, session, user).await,
        Command::Show { .. } => unreachable!("answered above"),
    }
}

async fn create(db: &Db, user: UserId, revise: Option<&str>) -> Result<Output> {
    let (session, mode) = match revise {
        None => (open_new(db, user).await?, "NEW"),
        Some(order) => {
            let order = counterfoil_payment::order_view::find(db, order)
                .await
                .context("--revise names no order")?;
            (open_revise(db, user, order).await?, "REVISE")
        }
    };
    let json = json!({ "sessionId": session, "mode": mode });
    Ok(Output::new(json, format!("session {session} opened, mode {mode}")))
}

fn said_added(session: SessionId, added: &Added) -> Output {
    let json = told::added(session, added);
    let mut text = format!(
        "{} payable, {} unqualified, {} there already, {} cannot be selected",
        added.payable, added.unqualified, added.already, added.unselectable_count
    );
    for one in &added.unselectable {
        text.push_str(&format!("\n  {} {}: {}", one.bill.station, one.bill.month, one.why));
    }
    Output::new(json, text).failed(added.unselectable_count > 0)
}

fn said_marked(session: SessionId, marked: &Marked) -> Output {
    let mut text = format!("{} lines changed", marked.changed);
    for one in &marked.unmarked {
        text.push_str(&format!("\n  {} {}: {}", one.bill.station, one.bill.month, one.why));
    }
    let failed = !marked.unmarked.is_empty();
    let json = told::marked(session, marked);
    Output::new(json, text).failed(failed)
}

async fn submit_one(db: &Db, session: SessionId, user: UserId) -> Result<Output> {
    let done = submit(db, &Kicker::none(), session, user).await?;
    let json = told::submitted(session, &done);
    let text = format!(
        "session {session} submitted: order {}, version {}, attempt {}; accepted, not built yet: \
         task {}",
        done.order, done.version, done.attempt, done.task
    );
    Ok(Output::new(json, text))
}
