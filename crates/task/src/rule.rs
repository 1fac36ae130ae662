//! Invariants: read-only rules over what must hold at all times.

use counterfoil_db::{Db, Instant, Query, Read, Result, sql};
use serde::Serialize;

use crate::metric;

/// Rows shown of a broken rule; more are not read.
pub const MAX_SHOWN: u32 = 20;
/// What rules mean by `:long_ago`: long enough for every lease and every retry of a claim.
pub const LONG: chrono::TimeDelta = chrono::TimeDelta::hours(1);
/// What rules mean by `:half_hour_ago`: within it, whatever moved on is put right by itself.
pub const HALF_HOUR: chrono::TimeDelta = chrono::TimeDelta::minutes(30);
/// What rules mean by `:day_ago`: by then a person should have looked.
pub const DAY: chrono::TimeDelta = chrono::TimeDelta::days(1);

/// A rule: its SQL finds the rows that break it.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// A stable name.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub holds: &'static str,
    /// The rows that break it: columns for people, `LIMIT :limit`; `:long_ago`,
    /// `:half_hour_ago` and `:day_ago` may be used.
    pub sql: &'static str,
    /// The same for the subjects a round touched, `IN :ids`; `None` = only on schedule.
    pub touched: Option<&'static str>,
    /// The handlers after whose rounds it runs.
    pub handlers: &'static [&'static str],
}

/// A broken rule with the first rows that break it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// The rule.
    pub rule: &'static str,
    /// What should hold.
    pub holds: &'static str,
    /// `column=value` pairs a row, at most [`MAX_SHOWN`].
    pub rows: Vec<String>,
}

/// Checks one rule on the whole database.
pub async fn check(db: &Db, rule: &Rule) -> Result<Option<Breach>> {
    let now = db.now().await?;
    breach(db, rule, bound(rule.sql, now)).await
}

pub(crate) async fn check_touched(db: &Db, rule: &Rule, ids: &[i64]) -> Result<Option<Breach>> {
    let Some(text) = rule.touched else {
        return Ok(None);
    };
    let query = bound(text, db.now().await?);
    breach(db, rule, query.bind_list("ids", ids.iter().copied())).await
}

fn bound(text: &'static str, now: Instant) -> Query {
    sql!(
        text,
        long_ago = now - LONG,
        half_hour_ago = now - HALF_HOUR,
        day_ago = now - DAY,
        limit = MAX_SHOWN,
    )
}

async fn breach(db: &Db, rule: &Rule, query: Query) -> Result<Option<Breach>> {
    let rows = db.rows(query).await.inspect_err(|_| metric::rule(rule.name, "unreadable"))?;
    if rows.is_empty() {
        metric::rule(rule.name, "held");
        return Ok(None);
    }
    metric::rule(rule.name, "broken");
    let shown = rows.iter().map(|row| {
        let cells = row.columns().into_iter().map(|column| {
            let value = row.shown(&column).unwrap_or_else(|| "NULL".into());
            format!("{column}={value}")
        });
        cells.collect::<Vec<_>>().join(" ")
    });
    Ok(Some(Breach { rule: rule.name, holds: rule.holds, rows: shown.collect() }))
}
