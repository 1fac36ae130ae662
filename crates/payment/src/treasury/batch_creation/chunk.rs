//! The middle step: at most 1000 lines become details, with their batches, totals and the cursor
//! in one commit.

use std::collections::{BTreeSet, HashMap};

use counterfoil_db::{Bind, Query, Read, Row, Text, Tx, Value, sql};

use super::Target;
use super::open::{self, Build};
use super::split::{Group, Part, Placing, SplitRule};
use crate::row_batch::{insert_rows, update_rows};
use crate::treasury::{CHUNK, TreasuryError};

pub(super) enum Step {
    Done,
    Nothing,
    Abandoned(String),
}

struct Line {
    id: i64,
    group: Group,
    rule: SplitRule,
    amount: i64,
    payee: [Option<String>; 3],
}

pub(super) async fn one(tx: &mut Tx, target: Target) -> Result<Step, TreasuryError> {
    let standing = open::lock_order(tx, target).await?;
    let Some(build) = open::build(tx, target).await? else {
        return Ok(Step::Nothing);
    };
    if let Some(why) = standing {
        open::abandon(tx, build.id).await?;
        return Ok(Step::Abandoned(why));
    }
    let lines = lines(tx, target, &build).await?;
    let Some(last) = lines.last().map(|line| line.id) else {
        return Ok(Step::Nothing);
    };
    let known = filling(tx, target, &lines).await?;
    let mut placing = Placing::from(known);
    let parts: Vec<i64> =
        lines.iter().map(|line| placing.place(&line.group, line.rule, line.amount)).collect();
    let placed = placing.into_parts();
    let added = insert_batches(tx, target, &build, &placed).await?;
    update_batches(tx, &placed).await?;
    let batches = batch_ids(tx, target, &lines, &parts, placed).await?;
    insert_details(tx, &lines, &parts, &batches).await?;
    advance(tx, &build, last, &lines, added).await?;
    Ok(Step::Done)
}

async fn lines(tx: &mut Tx, target: Target, build: &Build) -> Result<Vec<Line>, TreasuryError> {
    let rules = build.rules()?;
    let query = sql!(
        "SELECT id, project_company_id, partner_id, station_id, pay_amount, payee_name,
            payee_account, payee_bank
         FROM fi_resident_income_payment_order_bill
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND line_type = 10 AND deleted = 0 AND id > :after
         ORDER BY id LIMIT :limit",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
        after = build.cursor,
        limit = CHUNK,
    );
    let line = |row: &Row| {
        let partner = row.maybe_int("partner_id")?;
        let rule = partner.and_then(|partner| rules.get(&partner)).copied();
        let rule = rule.unwrap_or(SplitRule::None);
        let company = row.maybe_int("project_company_id")?.unwrap_or(0);
        Ok(Line {
            id: row.int("id")?,
            group: (company, rule.group(partner, &row.text("station_id")?)),
            rule,
            amount: row.int("pay_amount")?,
            payee: [
                row.maybe_text("payee_name")?,
                row.maybe_text("payee_account")?,
                row.maybe_text("payee_bank")?,
            ],
        })
    };
    tx.rows(query).await?.iter().map(line).collect()
}

/// The parts of these lines' groups that an earlier chunk left open.
async fn filling(
    tx: &mut Tx,
    target: Target,
    lines: &[Line],
) -> Result<HashMap<Group, Part>, TreasuryError> {
    let groups: BTreeSet<&str> = lines.iter().map(|line| line.group.1.as_str()).collect();
    let query = sql!(
        "SELECT id, project_company_id, group_key, part_no, detail_count, total_amount
         FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND filling = 1 AND group_key IN :groups",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    let mut parts = HashMap::new();
    for row in tx.rows(query.bind_list("groups", groups)).await? {
        let group = (row.int("project_company_id")?, row.text("group_key")?);
        let part = Part {
            batch: Some(row.int("id")?),
            number: row.int("part_no")?,
            lines: row.int("detail_count")?,
            amount: row.int("total_amount")?,
        };
        parts.insert(group, part);
    }
    Ok(parts)
}

type Placed = Vec<(Group, Part, bool)>;

/// New batches, unseen until the build is finished. Answers how many.
async fn insert_batches(
    tx: &mut Tx,
    target: Target,
    build: &Build,
    placed: &Placed,
) -> Result<i64, TreasuryError> {
    let now = tx.now();
    let mut rows = Vec::new();
    for (group, part, filling) in placed.iter().filter(|(_, part, _)| part.batch.is_none()) {
        let number = build.batches + i64::try_from(rows.len()).unwrap_or(0) + 1;
        let (order, data, round) = (target.order.0, target.data.0, target.round.0);
        rows.push(vec![
            format!("PB{order}-{data}-{round}-{number}").bind(),
            order.bind(),
            data.bind(),
            round.bind(),
            group.0.bind(),
            part.split_key(&group.1).bind(),
            part.amount.bind(),
            part.lines.bind(),
            build.strategy.as_str().bind(),
            group.1.as_str().bind(),
            part.number.bind(),
            (*filling).bind(),
            1_i64.bind(),
            now.bind(),
            now.bind(),
        ]);
    }
    let added = i64::try_from(rows.len()).unwrap_or(0);
    insert_rows(tx, INSERT_BATCHES, rows).await?;
    Ok(added)
}

const INSERT_BATCHES: Text = Text::Same(
    "INSERT INTO fi_resident_income_payment_push_batch
       (batch_no, payment_order_id, data_version, submit_round, project_company_id, split_key,
        total_amount, detail_count, strategy, group_key, part_no, filling, deleted, create_time,
        update_time)
     VALUES :rows",
);

/// The totals of batches that earlier chunks made.
async fn update_batches(tx: &mut Tx, placed: &Placed) -> Result<(), TreasuryError> {
    let row = |(_, part, filling): &(Group, Part, bool)| {
        let batch = part.batch?;
        Some(vec![batch.bind(), part.lines.bind(), part.amount.bind(), (*filling).bind()])
    };
    let rows: Vec<Vec<Value>> = placed.iter().filter_map(row).collect();
    update_rows(tx, UPDATE_BATCHES, rows).await?;
    Ok(())
}

const UPDATE_BATCHES: Text = Text::Forked {
    standard: "WITH fresh (id, detail_count, total_amount, filling) AS (VALUES :rows)
     UPDATE fi_resident_income_payment_push_batch AS b
     SET detail_count = fresh.detail_count, total_amount = fresh.total_amount,
         filling = fresh.filling, update_time = :now
     FROM fresh WHERE b.id = fresh.id AND b.deleted = 1",
    mariadb: "UPDATE fi_resident_income_payment_push_batch b
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', detail_count BIGINT PATH '$[1]',
         total_amount BIGINT PATH '$[2]', filling SMALLINT PATH '$[3]')) fresh
       ON b.id = fresh.id
     SET b.detail_count = fresh.detail_count, b.total_amount = fresh.total_amount,
         b.filling = fresh.filling, b.update_time = :now
     WHERE b.deleted = 1",
};

type BatchIds = HashMap<(Group, i64), i64>;

/// The batch of each group and part that these lines go to.
async fn batch_ids(
    tx: &mut Tx,
    target: Target,
    lines: &[Line],
    parts: &[i64],
    placed: Placed,
) -> Result<BatchIds, TreasuryError> {
    let mut ids: BatchIds = placed
        .into_iter()
        .filter_map(|(group, part, _)| Some(((group, part.number), part.batch?)))
        .collect();
    let key = |line: &Line, number: i64| {
        Part { batch: None, number, lines: 0, amount: 0 }.split_key(&line.group.1)
    };
    let wanted: BTreeSet<String> = lines
        .iter()
        .zip(parts)
        .filter(|(line, part)| !ids.contains_key(&(line.group.clone(), **part)))
        .map(|(line, part)| key(line, *part))
        .collect();
    let query: Query = sql!(
        "SELECT id, project_company_id, group_key, part_no
         FROM fi_resident_income_payment_push_batch
         WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
           AND split_key IN :keys",
        order = target.order.0,
        data = target.data.0,
        round = target.round.0,
    );
    for row in tx.rows(query.bind_list("keys", wanted)).await? {
        let group = (row.int("project_company_id")?, row.text("group_key")?);
        ids.insert((group, row.int("part_no")?), row.int("id")?);
    }
    Ok(ids)
}

/// One detail a line; `order_bill_id` is unique, so that no line is ever in two.
async fn insert_details(
    tx: &mut Tx,
    lines: &[Line],
    parts: &[i64],
    batches: &BatchIds,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    let mut rows = Vec::with_capacity(lines.len());
    for (line, part) in lines.iter().zip(parts) {
        let batch = batches.get(&(line.group.clone(), *part)).copied();
        let batch = batch.ok_or_else(|| TreasuryError::BatchNotFound(line.group.1.clone()))?;
        let [name, account, bank] = line.payee.clone();
        rows.push(vec![
            batch.bind(),
            line.id.bind(),
            line.amount.bind(),
            name.bind(),
            account.bind(),
            bank.bind(),
            now.bind(),
            now.bind(),
        ]);
    }
    insert_rows(tx, INSERT_DETAILS, rows).await?;
    Ok(())
}

const INSERT_DETAILS: Text = Text::Same(
    "INSERT INTO fi_resident_income_payment_push_batch_detail
       (push_batch_id, order_bill_id, amount, payee_name, payee_account, payee_bank, create_time,
        update_time)
     VALUES :rows",
);

async fn advance(
    tx: &mut Tx,
    build: &Build,
    last: i64,
    lines: &[Line],
    batches: i64,
) -> Result<(), TreasuryError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_push_build
         SET cursor_order_bill_id = :last, line_count = line_count + :lines,
             batch_count = batch_count + :batches, total_amount = total_amount + :amount,
             update_time = :now
         WHERE id = :build AND build_status = 'BUILDING' AND cursor_order_bill_id = :before",
        last = last,
        lines = i64::try_from(lines.len()).unwrap_or(i64::MAX),
        batches = batches,
        amount = lines.iter().map(|line| line.amount).sum::<i64>(),
        now = now,
        build = build.id,
        before = build.cursor,
    );
    if tx.execute(update).await? == 1 {
        return Ok(());
    }
    Err(crate::PaymentError::Conflict(format!("batch build {}", build.id)).into())
}
