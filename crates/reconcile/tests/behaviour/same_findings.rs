//! Digests and the full walk find the same and leave the same behind, on random pairs of sets.

use std::fmt::Write as _;

use counterfoil_e2e::on_every_database;
use counterfoil_protocol::canon::{AnswerContent, Json};
use counterfoil_protocol::range::spelt;
use counterfoil_reconcile::service_hall::Narrowing;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::pair::{FORM, Pair, SCHOOL};
use super::retire::DialectName;

/// What a run found and left behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    state: String,
    counts: String,
    items: Vec<String>,
    set: Vec<String>,
}

/// How two sets differ.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Few,
    Many,
    Everything,
    HotRange,
    NothingHere,
    NothingThere,
}

/// One row as one side has it.
#[derive(Debug, Clone)]
struct Made {
    uuid: String,
    revision: i64,
    values: String,
    is_deleted: bool,
}

impl Made {
    fn hash(&self) -> String {
        let content = AnswerContent {
            answer_uuid: self.uuid.clone(),
            form_uuid: FORM.into(),
            form_version: 1,
            is_deleted: self.is_deleted,
            sch_id: SCHOOL.into(),
            values: Json::Null,
        };
        content.with_values(Some(&self.values)).unwrap().hash().unwrap().0
    }
}

fn key(shape: Shape, random: &mut StdRng) -> u128 {
    match (shape, random.random_range(0..20)) {
        (Shape::HotRange, 1..) => (0xabcd_u128 << 112) + u128::from(random.random::<u8>()),
        (_, 0) => *[0, 1, u128::MAX - 1, u128::MAX].get(random.random_range(0..4)).unwrap(),
        _ => random.random(),
    }
}

/// Both sets, the hall's with what is wrong with each row's stored hash.
fn sets(shape: Shape, seed: u64) -> (Vec<Made>, Vec<(Made, bool)>) {
    let mut random = StdRng::seed_from_u64(seed);
    let chance = match shape {
        Shape::Few | Shape::HotRange => 6,
        Shape::Many => 40,
        _ => 100,
    };
    let keys: std::collections::BTreeSet<u128> =
        (0..random.random_range(20..60)).map(|_| key(shape, &mut random)).collect();
    let (mut there, mut here) = (Vec::new(), Vec::new());
    for key in keys {
        let row = Made {
            uuid: spelt(key),
            revision: random.random_range(1..9),
            values: format!("{{\"n\":{}}}", random.random_range(0..9)),
            is_deleted: random.random_range(0..10) == 0,
        };
        let mut other = row.clone();
        let is_changed = random.random_range(0..100) < chance;
        match (is_changed, random.random_range(0..9)) {
            (false, _) => {
                there.push(row);
                here.push((other, false));
            }
            (true, 0 | 1) => there.push(row),
            (true, 2 | 3) => here.push((other, false)),
            (true, kind) => {
                match kind {
                    4 => other.revision += 1,
                    5 => other.revision -= 1,
                    6 => other.values = "{\"n\":\"forged\"}".into(),
                    7 => other.is_deleted = !other.is_deleted,
                    _ => {}
                }
                let mut row = row;
                if kind == 8 && random.random_range(0..2) == 0 {
                    row.revision = 0;
                }
                there.push(row);
                here.push((other, kind == 8));
            }
        }
    }
    match shape {
        Shape::NothingHere => here.clear(),
        Shape::NothingThere => there.clear(),
        _ => {}
    }
    (there, here)
}

/// Puts both sets where an earlier run left others.
async fn lay_out(pair: &Pair, shape: Shape, seed: u64) {
    for table in [
        "answer",
        "fc_answer_projection",
        "answer_reconcile_work",
        "answer_reconcile_result",
        "answer_reconcile_manifest_row",
        "answer_reconcile_task",
    ] {
        pair.app.execute(&format!("DELETE FROM {table}")).await;
    }
    let (there, here) = sets(shape, seed);
    let born = match pair.app.db.dialect_name() {
        "sqlite" => "2026-09-01T00:00:00+00:00",
        "postgres" => "2026-09-01 00:00:00+00",
        _ => "2026-09-01 00:00:00",
    };
    let mut rows = String::new();
    for (at, row) in there.iter().enumerate() {
        let Made { uuid, revision, values, is_deleted } = row;
        let deleted = i32::from(*is_deleted);
        let comma = if at == 0 { "" } else { "," };
        write!(
            rows,
            "{comma}('{uuid}', '{FORM}', '{SCHOOL}', {revision}, 1, {at}, '{values}', {deleted})"
        )
        .unwrap();
    }
    if !rows.is_empty() {
        let insert = "INSERT INTO answer
            (uuid, form_uuid, sch_id, revision, version, seq_no, values_json, is_deleted) VALUES";
        pair.app.execute(&format!("{insert} {rows}")).await;
    }
    let mut rows = String::new();
    for (at, (row, is_lying)) in here.iter().enumerate() {
        let hash = if *is_lying { "lies".to_owned() } else { row.hash() };
        let Made { uuid, revision, values, is_deleted } = row;
        let deleted = i32::from(*is_deleted);
        let comma = if at == 0 { "" } else { "," };
        // One in three has no birth that is known: it can only be reported.
        let birth = if at % 3 == 0 { "NULL".to_owned() } else { format!("'{born}'") };
        write!(
            rows,
            "{comma}('{uuid}', '{SCHOOL}', '{FORM}', {revision}, '{hash}', 1, '{values}',
              {deleted}, {birth})"
        )
        .unwrap();
    }
    if !rows.is_empty() {
        let insert = "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
            content_hash, form_version, values_json, is_deleted, create_time) VALUES";
        pair.app.execute(&format!("{insert} {rows}")).await;
    }
}

async fn outcome(pair: &Pair, shape: Shape, seed: u64) -> Outcome {
    lay_out(pair, shape, seed).await;
    let task = pair.task().await;
    pair.run().await;
    let errors = "SELECT errors FROM answer_reconcile_result";
    let items: Vec<serde_json::Value> =
        serde_json::from_str(&pair.app.value(errors).await).unwrap();
    // Which come first depends on what is fetched together.
    let mut items: Vec<_> = items.iter().map(ToString::to_string).collect();
    items.sort();
    let set = "SELECT answer_uuid, revision, content_hash, is_deleted, values_json, deleted,
                 projection_version
               FROM fc_answer_projection ORDER BY answer_uuid";
    Outcome {
        state: pair.state(&task).await,
        counts: pair.counts(&task).await,
        items,
        set: pair.app.lines(set).await,
    }
}

on_every_database! {
    async fn digests_find_what_the_full_walk_finds_on_random_pairs_of_sets(app: TestApp) {
        let pair = Pair::new(app).await;
        let (rows, ranges) = (pair.clone().by_rows(), pair.clone().by_ranges());
        let mut found = std::collections::BTreeSet::new();
        let shapes = [
            Shape::Few, Shape::Few, Shape::Few, Shape::Many, Shape::HotRange, Shape::HotRange,
            Shape::Everything, Shape::NothingHere, Shape::NothingThere,
        ];
        for seed in 1..=3 {
            for (at, shape) in shapes.into_iter().enumerate() {
                let seed = seed * 100 + u64::try_from(at).unwrap();
                let walked = outcome(&rows, shape, seed).await;
                let mut ranges = ranges.clone();
                // Stretches of every size, so that their edges fall everywhere.
                ranges.hall_settings.narrowing.stretch_rows = 3 + at * 5;
                ranges.hall_settings.narrowing.leaf_rows = 1 + at % 3;
                let narrowed = outcome(&ranges, shape, seed).await;
                assert_eq!(walked, narrowed, "{shape:?} seed {seed}");
                let names = walked.counts.split(", ").filter_map(|one| one.split(' ').next());
                found.extend(names.map(str::to_owned));
            }
        }
        let all: Vec<_> = found.into_iter().collect();
        assert_eq!(
            all,
            [
                "equal", "extra", "hashConflict", "localAhead", "missing", "repaired", "reported",
                "retired", "revisionZero", "scanned", "stale", "tombstone",
            ],
            "the sets hold every kind of difference"
        );
    }

    async fn what_equal_sets_cost_grows_with_their_ranges_not_their_rows(app: TestApp) {
        let mut pair = Pair::new(app).await;
        let mut costs = Vec::new();
        for (rows, ranges) in [(1_u128, 1_u128), (40, 1), (2_000, 1), (2_000, 50)] {
            pair.hall_settings.narrowing = Narrowing::default();
            if ranges > 1 {
                pair.hall_settings.narrowing.span_rows = usize::try_from(rows / ranges).unwrap();
            }
            lay_out(&pair, Shape::NothingThere, 1).await;
            equal(&pair, rows).await;
            let task = pair.task().await;
            pair.dispatch().await;
            pair.line.bytes.store(0, std::sync::atomic::Ordering::SeqCst);
            pair.work().await;
            assert_eq!(pair.counts(&task).await, format!("scanned {rows}, equal {rows}"));
            costs.push(pair.line.bytes.load(std::sync::atomic::Ordering::SeqCst));
        }
        let [one, few, many, ranges] = costs[..] else { panic!() };
        assert!(one < 900 && few - one < 20 && many - one < 20, "{costs:?}");
        let of_a_range = (ranges - many).div_ceil(49);
        // Equal sets of a million: as many ranges as make it up, and an acknowledgement.
        let spans = 1_000_000_usize.div_ceil(Narrowing::default().span_rows);
        let of_a_million = one + of_a_range * spans;
        assert!(of_a_million < 20_000, "{of_a_million} of {of_a_range} a range");
    }
}

/// The same rows on both sides.
async fn equal(pair: &Pair, rows: u128) {
    pair.app.execute("DELETE FROM fc_answer_projection").await;
    let (mut answers, mut copies) = (String::new(), String::new());
    for at in 0..rows {
        let uuid = spelt(at.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let row = Made { uuid, revision: 1, values: format!("{{\"n\":{at}}}"), is_deleted: false };
        let (uuid, values, hash) = (&row.uuid, &row.values, row.hash());
        let comma = if at == 0 { "" } else { "," };
        write!(answers, "{comma}('{uuid}', '{FORM}', '{SCHOOL}', 1, 1, {at}, '{values}', 0)")
            .unwrap();
        write!(copies, "{comma}('{uuid}', '{SCHOOL}', '{FORM}', 1, '{hash}', 1, '{values}', 0)")
            .unwrap();
    }
    pair.app
        .execute(&format!(
            "INSERT INTO answer (uuid, form_uuid, sch_id, revision, version, seq_no, values_json,
               is_deleted) VALUES {answers}"
        ))
        .await;
    pair.app
        .execute(&format!(
            "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
               content_hash, form_version, values_json, is_deleted) VALUES {copies}"
        ))
        .await;
}
