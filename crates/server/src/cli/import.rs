//! `counterfoil import`.

use std::path::PathBuf;

use anyhow::Result;
use counterfoil_payment::bill_import::{
    ImportOptions, Imported, RowFaults, import_accounts, import_bills, import_companies,
    import_dictionary, import_partners,
};
use serde_json::{Value, json};

use super::watch::Watch;
use super::{Output, Session};
use crate::{answer_file, files};

/// What to import: CSV in UTF-8, or the first sheet of an XLSX file.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Bills: ledger, small bill, partner bill and account of each row
    Bills(Args),
    /// Accounts of customers and partners
    Accounts(Args),
    /// Partners with their managers
    Partners(Args),
    /// Project companies
    Companies(Args),
    /// Dictionary entries: ASSET_MANAGER says for whom the treasury pays
    Dictionary(Args),
    /// Answers of the form centre: CSV, XLSX or JSON lines, each row one write in its order
    Answers(Args),
}

/// A file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file
    file: PathBuf,
    /// Import the good rows of a file that has bad ones too
    #[arg(long)]
    partial: bool,
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    let (what, args) = match &command {
        Command::Bills(args) => ("bills", args),
        Command::Accounts(args) => ("accounts", args),
        Command::Partners(args) => ("partners", args),
        Command::Companies(args) => ("companies", args),
        Command::Dictionary(args) => ("dictionary", args),
        Command::Answers(args) => ("answers", args),
    };
    let name = args.file.display();
    let watch = Watch::new(session, format!("{what} of {name}"), Some("rows read"));
    let count = watch.counter();
    let options = ImportOptions { partial: args.partial };
    if let Command::Answers(_) = &command {
        let actor = session.actor();
        let imported = answer_file::import(&db, &args.file, options, &actor, count).await?;
        drop(watch);
        return Ok(said(what, &imported));
    }
    let sheet = files::open(&args.file)?.inspect(move |_| count());
    let imported = match &command {
        Command::Bills(_) => import_bills(&db, sheet, options).await?,
        Command::Accounts(_) => import_accounts(&db, sheet, options).await?,
        Command::Partners(_) => import_partners(&db, sheet, options).await?,
        Command::Companies(_) => import_companies(&db, sheet, options).await?,
        _ => import_dictionary(&db, sheet, options).await?,
    };
    drop(watch);
    Ok(said(what, &imported))
}

fn said(what: &str, imported: &Imported) -> Output {
    let Imported { created, updated, unchanged, refused, faults } = imported;
    let json = json!({
        "created": created, "updated": updated, "unchanged": unchanged, "refused": refused,
        "faults": faults_json(faults),
    });
    let mut text = format!(
        "{what}: {created} new, {updated} changed, {unchanged} unchanged, {refused} left out"
    );
    for fault in faults.shown() {
        text.push_str(&format!("\n  {fault}"));
    }
    Output::new(json, text).failed(*refused > 0)
}

/// Faults for machines: `line`, `column`, `message` each, at most as many as are shown.
pub(super) fn faults_json(faults: &RowFaults) -> Vec<Value> {
    faults
        .shown()
        .iter()
        .map(|fault| json!({ "line": fault.line, "column": fault.column, "message": fault.why }))
        .collect()
}
