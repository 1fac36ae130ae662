//! Shards of a refresh: ranges of about a thousand lines with a hash of their scopes.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::status_refresh::{
    LinesOf, PlannedShard, SHARD_LINES, Source, insert_shards, plan_shards, plan_shards_between,
};
use counterfoil_protocol::{DataVersion, LineId, OrderId, SubmitRound};

const LINES: LinesOf = LinesOf { order: OrderId(1), data: DataVersion(1), round: SubmitRound(1) };

/// Lines with these ids of an order and a version; every third is UNQUALIFIED.
async fn lines(app: &TestApp, order: i64, data: i64, ids: impl Iterator<Item = i64>) {
    let rows: Vec<String> = ids
        .map(|id| {
            let line_type = if id % 3 == 0 { 20 } else { 10 };
            format!("({id}, {order}, {data}, 1, {line_type}, 'S{id}', '202609')")
        })
        .collect();
    for some in rows.chunks(1000) {
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_order_bill
               (id, payment_order_id, data_version, submit_round, line_type, station_id,
                bill_yearmonth) VALUES {}",
            some.join(", ")
        ))
        .await;
    }
}

async fn plan(app: &TestApp) -> Vec<PlannedShard> {
    let LinesOf { order, data, round } = LINES;
    plan_shards(&app.db, order, data, round).await.expect("a plan")
}

async fn insert(app: &TestApp, shards: &[PlannedShard]) -> u64 {
    let mut tx = app.db.begin().await.expect("a transaction");
    let inserted = insert_shards(&mut tx, Source::ReviewApproved, 5, &LINES, shards).await;
    tx.commit("test").await.expect("a commit");
    inserted.expect("shards")
}

const SHARDS: &str = "SELECT source_type, source_id, payment_order_id, data_version, submit_round,
    start_order_bill_id, end_order_bill_id, scope_count, processed_scope_count, task_status
    FROM fi_resident_income_payment_status_refresh_shard ORDER BY id";

on_every_database! {
    async fn every_line_of_both_types_is_in_one_shard_by_id(app: TestApp) {
        // Two orders and two versions, their ids interleaved.
        lines(&app, 1, 1, (0..2500).map(|n| 10 + 4 * n)).await;
        lines(&app, 2, 1, (0..50).map(|n| 11 + 4 * n)).await;
        lines(&app, 1, 2, (0..50).map(|n| 12 + 4 * n)).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET deleted = 1
            WHERE id = 14").await;
        let shards = plan(&app).await;
        let ranges: Vec<_> = shards.iter().map(|s| (s.first.0, s.last.0, s.scopes)).collect();
        assert_eq!(ranges, [(10, 4010, 1000), (4014, 8010, 1000), (8014, 10006, 499)]);
        assert!(shards.iter().all(|shard| shard.scopes <= SHARD_LINES));
        assert_eq!(insert(&app, &shards).await, 3);
        assert_eq!(app.lines(SHARDS).await, [
            "REVIEW_APPROVED|5|1|1|1|10|4010|1000|0|PENDING",
            "REVIEW_APPROVED|5|1|1|1|4014|8010|1000|0|PENDING",
            "REVIEW_APPROVED|5|1|1|1|8014|10006|499|0|PENDING",
        ]);
    }

    async fn planning_again_says_the_same_and_inserting_again_changes_nothing(app: TestApp) {
        lines(&app, 1, 1, 1..=1001).await;
        let shards = plan(&app).await;
        assert_eq!(plan(&app).await, shards);
        assert_eq!(insert(&app, &shards).await, 2);
        let all = "SELECT * FROM fi_resident_income_payment_status_refresh_shard ORDER BY id";
        let before = app.lines(all).await;
        app.pass_minutes(5);
        assert_eq!(insert(&app, &shards).await, 0);
        assert_eq!(app.lines(all).await, before);
    }

    async fn a_changed_scope_changes_the_hash_of_its_shard_only(app: TestApp) {
        lines(&app, 1, 1, 1..=1500).await;
        let before = plan(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill
            SET station_id = 'OTHER' WHERE id = 1200").await;
        let after = plan(&app).await;
        assert_eq!(before[0], after[0]);
        assert_ne!(before[1].hash, after[1].hash);
    }

    async fn an_order_without_lines_has_no_shard_and_a_part_is_planned_alone(app: TestApp) {
        assert!(plan(&app).await.is_empty());
        assert_eq!(insert(&app, &[]).await, 0);
        lines(&app, 1, 1, 1..=20).await;
        let part = plan_shards_between(&app.db, &LINES, LineId(5), LineId(9)).await;
        let part = part.expect("a plan");
        assert_eq!(part.len(), 1);
        assert_eq!((part[0].first, part[0].last, part[0].scopes), (LineId(5), LineId(9), 5));
    }
}
