//! `counterfoil check`: the invariant rules.

use anyhow::Result;
use serde_json::json;

use super::{Output, Session};
use crate::wiring;

/// Which rules.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this rule
    #[arg(long)]
    rule: Option<String>,
    /// Name the rules and what they hold, check nothing
    #[arg(long)]
    list: bool,
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Output> {
    let mut rules = wiring::rules();
    if let Some(name) = &args.rule {
        rules.retain(|rule| rule.name == name);
        anyhow::ensure!(!rules.is_empty(), "there is no rule {name}; --list names them");
    }
    if args.list {
        let json: Vec<_> =
            rules.iter().map(|rule| json!({ "rule": rule.name, "holds": rule.holds })).collect();
        let rows: Vec<Vec<String>> =
            rules.iter().map(|rule| vec![rule.name.into(), rule.holds.into()]).collect();
        let text = super::output::table(&["RULE", "WHAT MUST HOLD"], &rows);
        return Ok(Output::new(json!({ "rules": json }), text));
    }
    let db = session.open_migrated().await?;
    let mut broken = Vec::new();
    for rule in &rules {
        broken.extend(wiring::check(&db, rule).await?);
    }
    let mut text = String::new();
    for breach in &broken {
        text.push_str(&format!("BROKEN {}: {}\n", breach.rule, breach.holds));
        for row in &breach.rows {
            text.push_str(&format!("  {row}\n"));
        }
    }
    text.push_str(&format!("{} rules checked, {} broken", rules.len(), broken.len()));
    let failed = !broken.is_empty();
    let json = json!({ "checked": rules.len(), "broken": broken });
    Ok(Output::new(json, text).failed(failed))
}
