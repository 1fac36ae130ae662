//! The demo's story, told with the same calls that the commands make.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use counterfoil_db::{Db, Instant, Query, Read, sql};
use counterfoil_payment::PaymentError;
use counterfoil_payment::bill_import::{
    ImportOptions, import_accounts, import_bills, import_companies, import_dictionary,
    import_partners,
};
use counterfoil_payment::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::add::{BillKey, Selection, add_bills};
use counterfoil_payment::session::edit::{Editor, mark_unqualified, remove_bills};
use counterfoil_payment::session::open::{open_new, open_revise};
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::session::{Submission, submit};
use counterfoil_protocol::{BillMonth, OrderId, SessionId};
use counterfoil_task::{Engine, Kicker, Summary};

use super::{PREPARER, Progress, Proof};
use crate::config::Config;
use crate::serve::OwnPeers;
use crate::{files, sample, wiring};

/// Of every so many payable bills one is left out of V1 and added by V2 (D), one is removed by V2
/// (B), one becomes unqualified in V2 (C). The others stay (A).
const ONE_OF: usize = 20;
/// Bills taken by one of B, C and D at most: a list that a person could give.
const MAX_MOVED: usize = 1000;

/// What V2 does to V1.
#[derive(Debug)]
pub struct Plan {
    /// The session that revises.
    pub session: SessionId,
    /// Removed by V2.
    pub b: Vec<BillKey>,
    /// Unqualified in V2.
    pub c: Vec<BillKey>,
    /// Added by V2.
    pub d: Vec<BillKey>,
}

/// Imports the sample files, and shows that the bad one is refused whole.
pub async fn import(db: &Db, folder: &Path) -> Result<Vec<Proof>> {
    let options = ImportOptions::default();
    let file = |name: &str| files::open(&folder.join(name));
    import_companies(db, file("companies.csv")?, options).await?;
    import_partners(db, file("partners.csv")?, options).await?;
    import_accounts(db, file("accounts.csv")?, options).await?;
    import_dictionary(db, file("dictionary.csv")?, options).await?;
    let bills = import_bills(db, file("bills.csv")?, options).await?;
    let good = Proof::new(
        "bills imported",
        bills.created > 0 && bills.refused == 0,
        format!("{} bills, each with its records and account", bills.created),
    );
    let before = ledger_rows(db).await?;
    let refused = match import_bills(db, file("bills-bad.csv")?, options).await {
        Err(PaymentError::RowsRefused(faults)) => faults.total(),
        Err(error) => return Err(error.into()),
        Ok(_) => 0,
    };
    let after = ledger_rows(db).await?;
    let bad = Proof::new(
        "bad file refused whole",
        refused > 0 && before == after,
        format!("{refused} faults named by line and column, {} rows written", after - before),
    );
    Ok(vec![good, bad])
}

async fn ledger_rows(db: &Db) -> Result<i64> {
    Ok(db.count(sql!("SELECT COUNT(*) FROM fi_monthly_income_difference")).await?)
}

/// V1: all bills of the month that the treasury pays but D, through S03, S04 and S05.
pub async fn first_version(db: &Db, config: &Config, progress: &Progress) -> Result<Submission> {
    let session = open_new(db, PREPARER).await?;
    let editor = Editor { session, user: PREPARER };
    // All companies but the last: that one's asset manager is paid offline, in an order of its own.
    for company in sample::treasury_companies() {
        let month: BillMonth = sample::MONTH.parse().context("the sample's month")?;
        let bills = Selection::Month { month, company: Some(company), partner: None };
        add_bills(db, editor, &bills, &Tolerance::default()).await?;
    }
    let left_out = every(db, session, 3).await?;
    remove_bills(db, editor, &Selection::Bills(left_out)).await?;
    let v1 = submit(db, &Kicker::none(), session, PREPARER).await?;
    let engine = engine(db, config).await?;
    let lines = items(db, session).await?;
    let build = round(&engine.0, SUBMIT_BUILD.handler);
    succeeded(progress.watch(db, v1.version, "BUILD", lines, build).await?)?;
    let activate = round(&engine.0, LOCK_ACTIVATE.handler);
    succeeded(progress.watch(db, v1.version, "LOCK_ACTIVATE", lines, activate).await?)?;
    succeeded(round(&engine.0, AUDIT_PLAN_CREATE.handler).await?)?;
    Ok(v1)
}

/// Opens the revision and applies B, C and D.
pub async fn revise(db: &Db, order: OrderId) -> Result<Plan> {
    let session = open_revise(db, PREPARER, order).await?;
    let editor = Editor { session, user: PREPARER };
    let b = every(db, session, 1).await?;
    remove_bills(db, editor, &Selection::Bills(b.clone())).await?;
    let c = every(db, session, 2).await?;
    mark_unqualified(db, editor, &c).await?;
    let d = not_selected(db, session, &b).await?;
    add_bills(db, editor, &Selection::Bills(d.clone()), &Tolerance::default()).await?;
    Ok(Plan { session, b, c, d })
}

/// Submits and publishes V2; S04 is left to a process that can be killed.
pub async fn publish_revision(
    db: &Db,
    config: &Config,
    plan: &Plan,
    progress: &Progress,
) -> Result<Submission> {
    let v2 = submit(db, &Kicker::none(), plan.session, PREPARER).await?;
    let engine = engine(db, config).await?;
    let lines = items(db, plan.session).await?;
    let build = round(&engine.0, SUBMIT_BUILD.handler);
    succeeded(progress.watch(db, v2.version, "BUILD", lines, build).await?)?;
    Ok(v2)
}

/// One round of S05.
pub async fn audit_plan(db: &Db, config: &Config) -> Result<()> {
    let engine = engine(db, config).await?;
    succeeded(round(&engine.0, AUDIT_PLAN_CREATE.handler).await?)
}

/// One round of S04 in a process of its own; with `killed` it dies before its second projection
/// commit. Answers whether the process said that it succeeded.
pub async fn activate_in_process(database: &Path, now: Instant, killed: bool) -> Result<bool> {
    let own = std::env::current_exe().context("the path of this program")?;
    let mut command = tokio::process::Command::new(own);
    command
        .args(["--database", &format!("sqlite:{}", database.display())])
        .args(["--now", &now.to_rfc3339(), "--quiet", "--json"])
        .args(["job", "run", LOCK_ACTIVATE.handler])
        .env_remove("COUNTERFOIL_DATABASE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if killed {
        command.env("COUNTERFOIL_FAULT", "lock_activation.project:before:2");
    }
    let output = command.output().await.context("a second process")?;
    Ok(output.status.success())
}

/// The engine of one step, with the peers it talks to.
pub async fn engine(db: &Db, config: &Config) -> Result<(Engine, OwnPeers)> {
    let mut config = config.clone();
    config.signing.complete(&mut config.apps);
    let own = OwnPeers::start(db, &config).await?;
    let engine = wiring::engine(db, &config, &own.url)?;
    Ok((engine, own))
}

async fn round(engine: &Engine, handler: &str) -> Result<Summary> {
    Ok(engine.round(handler, "").await?)
}

fn succeeded(summary: Summary) -> Result<()> {
    ensure!(summary.succeeded == 1 && summary.failed == 0, "a round failed: {summary:?}");
    Ok(())
}

async fn items(db: &Db, session: SessionId) -> Result<u64> {
    let query = sql!(
        "SELECT COUNT(*) FROM selection_session_item
         WHERE session_id = :session AND deleted = 0",
        session = session.0,
    );
    Ok(u64::try_from(db.count(query).await?)?)
}

/// Every so many payable bills of a session, counted from `offset`.
async fn every(db: &Db, session: SessionId, offset: usize) -> Result<Vec<BillKey>> {
    let query = sql!(
        "SELECT station_id, bill_yearmonth FROM selection_session_item
         WHERE session_id = :session AND deleted = 0 AND line_type = 10 ORDER BY id LIMIT :most",
        session = session.0,
        most = i64::try_from(ONE_OF * MAX_MOVED)?,
    );
    let rows = db.rows(query).await?;
    rows.iter().skip(offset).step_by(ONE_OF).map(key).collect()
}

/// Bills of V1's companies that the session does not hold and did not just give up.
async fn not_selected(db: &Db, session: SessionId, given_up: &[BillKey]) -> Result<Vec<BillKey>> {
    let query = Query::new(
        "SELECT d.station_id, d.bill_yearmonth FROM fi_monthly_income_difference d
         WHERE d.locked_order_bill_id IS NULL AND d.deleted = 0
           AND d.project_company_id IN :companies
           AND NOT EXISTS (SELECT 1 FROM selection_session_item i
             WHERE i.session_id = :session AND i.station_id = d.station_id
               AND i.bill_yearmonth = d.bill_yearmonth AND i.deleted = 0)
         ORDER BY d.id LIMIT :most",
    )
    .bind("session", session.0)
    .bind("most", i64::try_from(MAX_MOVED)?)
    .bind_list("companies", sample::treasury_companies());
    let rows = db.rows(query).await?;
    let keys: Vec<BillKey> = rows.iter().map(key).collect::<Result<_>>()?;
    Ok(keys.into_iter().filter(|key| !given_up.contains(key)).collect())
}

fn key(row: &counterfoil_db::Row) -> Result<BillKey> {
    Ok(BillKey {
        station: row.text("station_id")?,
        month: BillMonth::stored(row.text("bill_yearmonth")?),
    })
}
