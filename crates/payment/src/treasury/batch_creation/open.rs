//! The first step: may the order be pushed, do locks and amounts agree, what are the split rules.

use std::collections::BTreeMap;

use counterfoil_db::{Read, Row, Tx, sql};

use super::Target;
use super::split::SplitRule;
use crate::PaymentError;
use crate::treasury::TreasuryError;

/// Partners with a split rule of their own in one order at most.
const MAX_SPLITTING_PARTNERS: u32 = 10_000;

pub(super) enum Opened {
    Building,
    Exists,
    NotApplicable(String),
}

/// A build as stored.
pub(super) struct Build {
    pub(super) id: i64,
    status: String,
    pub(super) strategy: String,
    pub(super) cursor: i64,
    pub(super) batches: i64,
    rules: Option<String>,
}

impl Build {
    /// The split rules by partner, as they stood when building began.
    pub(super) fn rules(&self) -> Result<BTreeMap<i64, SplitRule>, TreasuryError> {
        let text = self.rules.as_deref().unwrap_or("{}");
        let stored: BTreeMap<i64, String> = serde_json::from_str(text)
            .map_err(|error| TreasuryError::invalid("split_rules", error.to_string()))?;
        stored.into_iter().map(|(partner, rule)| parse(partner, &rule)).collect()
    }
}

fn parse(partner: i64, rule: &str) -> Result<(i64, SplitRule), TreasuryError> {
    match SplitRule::parse(rule) {
        Ok(parsed) => Ok((partner, parsed)),
        Err(why) => Err(TreasuryError::SplitRule { partner, rule: rule.to_owned(), why }),
    }
}

pub(super) async fn open(
    tx: &mut Tx,
    target: Target,
    strategy: &str,
) -> Result<Opened, TreasuryError> {
    let standing = lock_order(tx, target).await?;
    match build(tx, target).await? {
        Some(build) if build.status == "DONE" => return Ok(Opened::Exists),
        Some(build) if build.status == "ABANDONED" => {
            let why = "its batches were given up, because the order moved on".to_owned();
            return Ok(Opened::NotApplicable(why));
        }
        Some(build) => {
            return Ok(match standing {
                None => Opened::Building,
                Some(why) => {
                    abandon(tx, build.id).await?;
                    Opened::NotApplicable(why)
                }
            });
        }
        None => {}
    }
    if batches_exist(tx, target).await? {
        return Ok(Opened::Exists);
    }
    if let Some(why) = standing {
        return Ok(Opened::NotApplicable(why));
    }
    prove_amounts(tx, target).await?;
    if prove_locks(tx, target).await? == 0 {
        return Ok(Opened::NotApplicable(format!("order {} has no payable line", target.order)));
    }
    let rules = split_rules(tx, target).await?;
    insert(tx, target, strategy, &rules).await?;
    Ok(Opened::Building)
}

/// Locks the order; answers why its batches must not be created, if so.
pub(super) async fn lock_order(
    tx: &mut Tx,
    target: Target,
) -> Result<Option<String>, TreasuryError> {
    let query = sql!(
        "SELECT status, payment_type, push_status, current_publish_version, submit_round
         FROM fi_resident_income_payment_order
         WHERE id = :order AND deleted = 0 {for_update}",
        order = target.order.0,
    );
    let row = tx.row(query).await?.ok_or(PaymentError::OrderNotFound(target.order))?;
    Ok(standing(&row, target)?)
}

fn standing(row: &Row, target: Target) -> Result<Option<String>, counterfoil_db::Error> {
    let (order, status) = (target.order, row.int("status")?);
    let pointer = row.int("current_publish_version")?;
    let round = row.int("submit_round")?;
    if (pointer, round) != (target.data.0, target.round.0) {
        return Ok(Some(format!(
            "order {order} moved on to data version {pointer} in round {round}"
        )));
    }
    let kind = row.maybe_text("payment_type")?;
    if kind.as_deref() != Some("TREASURY") {
        let kind = kind.unwrap_or_else(|| "nobody yet".into());
        return Ok(Some(format!("order {order} is paid by {kind}, not by TREASURY")));
    }
    if status != 40 {
        return Ok(Some(format!("order {order} is at {status}, not at 40 WAIT_PAY")));
    }
    Ok(None)
}

pub(super) async fn build(tx: &mut Tx, target: Target) -> Result<Option<Build>, TreasuryError> {
    let query = sql!(
        "SELECT id, build_status, strategy, cursor_order_bill_id, batch_count, split_rules
         FROM fi_resident_income_payment_push_build
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(None);
    };
    Ok(Some(Build {
        id: row.int("id")?,
        status: row.text("build_status")?,
        strategy: row.text("strategy")?,
        cursor: row.int("cursor_order_bill_id")?,
        batches: row.int("batch_count")?,
        rules: row.maybe_text("split_rules")?,
    }))
}

/// Batches that were imported or made before builds were recorded.
async fn batches_exist(tx: &mut Tx, target: Target) -> Result<bool, TreasuryError> {
    let query = sql!(
        "SELECT COUNT(*) FROM (
           SELECT id FROM fi_resident_income_payment_push_batch
           WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           LIMIT 1) AS one",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    Ok(tx.count(query).await? > 0)
}

/// Guard: BUILDING.
pub(super) async fn abandon(tx: &mut Tx, build: i64) -> Result<bool, TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_build
         SET build_status = 'ABANDONED', update_time = :now
         WHERE id = :build AND build_status = 'BUILDING'",
        now = now,
        build = build,
    );
    Ok(tx.execute(update).await? == 1)
}

async fn prove_amounts(tx: &mut Tx, target: Target) -> Result<(), TreasuryError> {
    let query = sql!(
        "SELECT MIN(id) AS line FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND line_type = 10 AND deleted = 0 AND COALESCE(pay_amount, 0) <= 0",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    let row = tx.row(query).await?;
    match row.map(|row| row.maybe_int("line")).transpose()?.flatten() {
        Some(line) => Err(TreasuryError::LineAmount { order: target.order, line }),
        None => Ok(()),
    }
}

/// The first and the last payable line. Others' lines may stand between them.
pub(super) async fn ends(tx: &mut Tx, target: Target) -> Result<(i64, i64), TreasuryError> {
    let query = sql!(
        "SELECT COALESCE(MIN(id), 0) AS first, COALESCE(MAX(id), 0) AS last
         FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND line_type = 10",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    match tx.row(query).await? {
        Some(row) => Ok((row.int("first")?, row.int("last")?)),
        None => Ok((0, 0)),
    }
}

/// Answers how many lines are payable. `k.payment_order_id + 0` keeps a line to its own lock, as in
/// S04's projection.
async fn prove_locks(tx: &mut Tx, target: Target) -> Result<i64, TreasuryError> {
    let (first, last) = ends(tx, target).await?;
    let query = sql!(
        "SELECT COUNT(*) AS payable, COUNT(k.id) AS locked
         FROM fi_resident_income_payment_order_bill l
         LEFT JOIN fi_resident_income_payment_bill_lock k
           ON k.order_bill_id = l.id AND k.lock_status = 'ACTIVE' AND k.deleted = 0
          AND k.payment_order_id + 0 = :order
          AND k.order_bill_id >= :first AND k.order_bill_id <= :last
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.submit_round = :round
           AND l.line_type = 10 AND l.deleted = 0",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        first = first,
        last = last,
    );
    let Some(row) = tx.row(query).await? else {
        return Ok(0);
    };
    let (lines, locks) = (row.int("payable")?, row.int("locked")?);
    let expected = target.payable_count.unwrap_or(lines);
    if lines == locks && lines == expected {
        return Ok(lines);
    }
    Err(TreasuryError::LocksDiffer { order: target.order, lines, locks, expected })
}

/// The rules of the lines' partners, read strictly, all of them before anything is created.
async fn split_rules(tx: &mut Tx, target: Target) -> Result<BTreeMap<i64, String>, TreasuryError> {
    let query = sql!(
        "SELECT DISTINCT p.id, p.split_rule
         FROM fi_resident_income_payment_order_bill l
         JOIN sys_partner p ON p.id = l.partner_id AND p.deleted = 0
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.submit_round = :round
           AND l.line_type = 10 AND l.deleted = 0
         ORDER BY p.id LIMIT :limit",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        limit = MAX_SPLITTING_PARTNERS + 1,
    );
    let rows = tx.rows(query).await?;
    if rows.len() > MAX_SPLITTING_PARTNERS as usize {
        let why = format!("an order has {MAX_SPLITTING_PARTNERS} partners at most");
        return Err(TreasuryError::invalid("partner", why));
    }
    let mut rules = BTreeMap::new();
    for row in rows {
        let (partner, text) = (row.int("id")?, row.text("split_rule")?);
        if parse(partner, &text)?.1 != SplitRule::None {
            rules.insert(partner, text);
        }
    }
    Ok(rules)
}

async fn insert(
    tx: &mut Tx,
    target: Target,
    strategy: &str,
    rules: &BTreeMap<i64, String>,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    let text = serde_json::to_string(rules)
        .map_err(|error| TreasuryError::invalid("split_rules", error.to_string()))?;
    tx.execute(sql!(
        "INSERT INTO fi_resident_income_payment_push_build
           (payment_order_id, data_version, submit_round, build_status, strategy, split_rules,
            create_time, update_time)
         VALUES (:order, :data, :round, 'BUILDING', :strategy, :rules, :now, :now)",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        strategy = strategy,
        rules = text,
        now = now,
    ))
    .await?;
    Ok(())
}
