//! The two sets of `bench reconcile`.

use anyhow::{Context, Result};
use counterfoil_db::{Bind, Db, Query, Read, Tx, Value, sql};
use counterfoil_protocol::canon::{AnswerContent, Json};
use counterfoil_protocol::range::spelt;
use counterfoil_reconcile::form_centre::grant;
use counterfoil_reconcile::wire::Coordinate;

/// The consumer, the centre, and the answers' school.
pub(super) const HALL: &str = "hall";
pub(super) const CENTRE: &str = "centre";
pub(super) const SCHOOL: &str = "school-1";

/// Rows of one statement, and statements of one commit.
const BATCH: u64 = 500;
const BATCHES: u64 = 20;
/// The centre's revision of every row.
const REVISION: i64 = 2;

/// A set of answers.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) form: &'static str,
    pub(super) rows: u64,
    /// Whether the hall has it too.
    pub(super) is_here: bool,
}

/// Sebastiano Vigna's splitmix64: keys that look random and are the same in every run.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The `number`th key of a form; the low half makes it its own.
fn key(form: &str, number: u64) -> String {
    let salt = form.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let high = mixed(number ^ (salt << 40));
    spelt((u128::from(high) << 64) | u128::from(salt << 40 | number))
}

fn content(form: &str, number: u64) -> Result<AnswerContent> {
    let values = format!(
        "{{\"n\":{number},\"name\":\"answer {number}\",\"score\":{},\"text\":\"值\"}}",
        mixed(number) % 100
    );
    let content = AnswerContent {
        answer_uuid: key(form, number),
        form_uuid: form.into(),
        form_version: 1,
        is_deleted: false,
        sch_id: SCHOOL.into(),
        values: Json::Null,
    };
    content.with_values(Some(&values)).map_err(|fault| anyhow::anyhow!("{fault}"))
}

/// Fills both sides.
pub(super) async fn fill(centre: &Db, hall: &Db, set: &Set) -> Result<()> {
    let at = Coordinate {
        consumer: HALL.into(),
        school: SCHOOL.into(),
        form: set.form.into(),
        answer: None,
    };
    grant::scope(centre, HALL, SCHOOL, true).await?;
    grant::set(centre, &at, grant::Rights::ALL).await?;
    let mut from = 0;
    while from < set.rows {
        let to = set.rows.min(from + BATCH * BATCHES);
        let (mut there, mut here) = (centre.begin().await?, hall.begin().await?);
        while from < to {
            let next = to.min(from + BATCH);
            write(&mut there, &mut here, set, from..next).await?;
            from = next;
        }
        there.commit("bench.fill").await?;
        here.commit("bench.fill").await?;
    }
    Ok(())
}

async fn write(
    there: &mut Tx,
    here: &mut Tx,
    set: &Set,
    numbers: std::ops::Range<u64>,
) -> Result<()> {
    let born = here.now() - chrono::TimeDelta::days(1);
    let (mut answers, mut copies): (Vec<Vec<Value>>, Vec<Vec<Value>>) = Default::default();
    for number in numbers {
        let content = content(set.form, number)?;
        let values = content.canonical_values().map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let hash = content.hash().map_err(|fault| anyhow::anyhow!("{fault}"))?.0;
        let uuid = content.answer_uuid;
        answers.push(vec![
            uuid.clone().bind(),
            set.form.bind(),
            SCHOOL.bind(),
            REVISION.bind(),
            i64::try_from(number)?.bind(),
            values.clone().bind(),
        ]);
        copies.push(vec![
            uuid.bind(),
            SCHOOL.bind(),
            set.form.bind(),
            REVISION.bind(),
            hash.bind(),
            1.bind(),
            values.bind(),
            born.bind(),
        ]);
    }
    let insert = Query::new(
        "INSERT INTO answer (uuid, form_uuid, sch_id, revision, seq_no, values_json) VALUES :rows",
    );
    there.execute(insert.bind_rows("rows", answers)).await?;
    if set.is_here {
        let insert = Query::new(
            "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
               content_hash, form_version, values_json, create_time) VALUES :rows",
        );
        here.execute(insert.bind_rows("rows", copies)).await?;
    }
    Ok(())
}

/// Puts `count` rows of the hall one revision behind, spread over the whole set.
pub(super) async fn spread(hall: &Db, set: &Set, count: u64) -> Result<()> {
    let step = set.rows / count.max(1);
    let numbers: Vec<u64> = (0..count).map(|at| at * step).collect();
    let mut tx = hall.begin().await?;
    for batch in numbers.chunks(usize::try_from(BATCH)?) {
        let uuids: Vec<String> = batch.iter().map(|number| key(set.form, *number)).collect();
        let update = Query::new(
            "UPDATE fc_answer_projection
             SET revision = revision - 1, projection_version = projection_version + 1
             WHERE sch_id = :school AND form_uuid = :form AND answer_uuid IN :uuids",
        );
        let update = update.bind("school", SCHOOL).bind("form", set.form);
        tx.execute(update.bind_list("uuids", uuids)).await?;
    }
    Ok(tx.commit("bench.spread").await?)
}

/// Puts `count` rows that follow each other one revision behind.
pub(super) async fn hot(hall: &Db, set: &Set, count: u64) -> Result<()> {
    let first = i64::try_from((set.rows - count) / 3)?;
    let mut bounds = Vec::new();
    for offset in [first, first + i64::try_from(count.saturating_sub(1))?] {
        let row = hall.row(sql!(
            "SELECT answer_uuid FROM fc_answer_projection
             WHERE sch_id = :school AND form_uuid = :form
             ORDER BY answer_uuid LIMIT 1 OFFSET :offset",
            school = SCHOOL,
            form = set.form,
            offset = offset,
        ));
        bounds
            .push(row.await?.context("the set is smaller than it should be")?.text("answer_uuid")?);
    }
    let mut tx = hall.begin().await?;
    tx.execute(sql!(
        "UPDATE fc_answer_projection
         SET revision = revision - 1, projection_version = projection_version + 1
         WHERE sch_id = :school AND form_uuid = :form AND answer_uuid >= :low
           AND answer_uuid <= :high",
        school = SCHOOL,
        form = set.form,
        low = bounds.first().map(String::as_str),
        high = bounds.last().map(String::as_str),
    ))
    .await?;
    Ok(tx.commit("bench.hot").await?)
}
