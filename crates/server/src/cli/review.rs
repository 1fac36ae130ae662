//! `counterfoil review`: the review centre's inbox and decisions.

use anyhow::Result;
use counterfoil_protocol::{PlanId, UserId};
use counterfoil_review::decision::{Decided, approve, reject};
use counterfoil_review::inbox::{self, Item};
use serde_json::{Value, json};

use super::output::table;
use super::{Output, Session};

/// What to do with reviews.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// What waits for a decision: of everybody, or with --user of one reviewer
    List {
        /// Only what comes after this (nextAfter of the page before)
        #[arg(long)]
        after: Option<i64>,
        /// Rows at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Approves the node that has the turn
    Approve(Decision),
    /// Rejects the plan
    Reject(Decision),
}

/// A decision on a plan.
#[derive(Debug, clap::Args)]
pub(super) struct Decision {
    /// The plan
    plan: PlanId,
    /// Why
    #[arg(long, default_value = "")]
    remark: String,
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::List { after, limit } => {
            let page = match session.globals.user {
                Some(user) => inbox::of_user(&db, UserId(user), after, limit).await?,
                None => inbox::of_everybody(&db, after, limit).await?,
            };
            Ok(list(&page.items, page.next))
        }
        Command::Approve(decision) => {
            let user = UserId(session.user()?);
            Ok(said(&approve(&db, decision.plan, user, &decision.remark).await?))
        }
        Command::Reject(decision) => {
            let user = UserId(session.user()?);
            Ok(said(&reject(&db, decision.plan, user, &decision.remark).await?))
        }
    }
}

fn list(items: &[Item], next: Option<i64>) -> Output {
    let json: Vec<Value> = items
        .iter()
        .map(|item| {
            json!({
                "planId": item.plan, "nodeId": item.node, "nodeCode": item.node_code,
                "nodeName": item.node_name, "fromId": item.from_id, "fromNum": item.from_num,
                "submitterUserId": item.submitter, "submitRound": item.round,
                "dataVersion": item.data_version, "since": item.since,
            })
        })
        .collect();
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            vec![
                item.plan.to_string(),
                item.from_num.clone(),
                item.round.map_or_else(String::new, |round| round.to_string()),
                item.node_code.clone(),
                item.node_name.clone(),
                item.since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            ]
        })
        .collect();
    let text = if rows.is_empty() {
        "nothing waits for a decision".to_owned()
    } else {
        table(&["PLAN", "ORDER", "ROUND", "NODE", "NAME", "SINCE"], &rows)
    };
    Output::new(json!({ "items": json, "nextAfter": next }), text)
}

fn said(decided: &Decided) -> Output {
    let status = decided.status.as_str();
    let json = json!({
        "planId": decided.plan, "status": status, "nodeCode": decided.node_code,
        "nextNodeCode": decided.next_node_code,
    });
    let next = match &decided.next_node_code {
        Some(node) => format!("next is {node}"),
        None => "that was the last decision".to_owned(),
    };
    let text = format!(
        "plan {}: {} decided, the plan is {status}; {next}",
        decided.plan, decided.node_code
    );
    Output::new(json, text)
}
