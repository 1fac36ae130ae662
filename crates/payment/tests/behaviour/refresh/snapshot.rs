//! S13: snapshots of payable lines, with a progress and a lease of their own.

use counterfoil_e2e::{TestApp, on_every_database};

use super::hand::Approved;

const SNAPSHOTS: &str = "fi_resident_income_payment_bill_dimension_snapshot";
const OWN: &str = "fi_resident_income_payment_snapshot_refresh_progress";

async fn refreshed(app: &TestApp, lines: i64) -> Approved<'_> {
    let order = Approved::planned(app, lines).await;
    order.refreshed().await;
    assert!(order.progress().await.starts_with("DONE|"));
    order
}

on_every_database! {
    async fn the_payable_lines_of_each_shard_become_snapshots_once(app: TestApp) {
        let order = refreshed(&app, 1300).await;
        assert_eq!(app.value(&format!("SELECT COUNT(*) FROM {SNAPSHOTS}")).await, "0",
            "DONE says that they are queued");
        app.pass_minutes(1);
        let summary = order.snapshot().await;
        assert_eq!((summary.succeeded, summary.failed), (2, 0), "{summary:?}");
        let all = format!("SELECT COUNT(*) FROM {SNAPSHOTS} WHERE pay_amount = 10000");
        assert_eq!(app.value(&all).await, "1040");
        let one = format!("SELECT payment_order_id, data_version, station_id, bill_yearmonth,
            pay_amount, payee_name, payee_account, payee_bank, payment_status, finalize_time,
            source_progress_id, snapshot_version FROM {SNAPSHOTS} WHERE order_bill_id = 1299");
        assert_eq!(app.value(&one).await, "1|1|S1299|202609|10000|Payee 1299|ACC1299|Bank|40|\
            2026-09-08T02:00:00Z|5|1");
        let own = format!("SELECT progress_id, cursor_order_bill_id, processed_count, status,
            running_attempt, lease_expire_time FROM {OWN} ORDER BY id");
        let ended = ["5|999|800|SUCCESS|1|NULL", "5|1299|240|SUCCESS|1|NULL"];
        assert_eq!(app.lines(&own).await, ended);
        assert_eq!(order.snapshot().await.selected, 0);
    }

    async fn making_them_again_changes_no_snapshot_and_no_time(app: TestApp) {
        let order = refreshed(&app, 10).await;
        order.snapshot().await;
        let before = app.lines(&format!("SELECT * FROM {SNAPSHOTS} ORDER BY id")).await;
        app.pass_minutes(10);
        for again in ["status = 'SUCCESS'", "status = 'INIT', cursor_order_bill_id = 0"] {
            app.execute(&format!("UPDATE {OWN} SET {again};
                UPDATE fi_async_task SET task_status = 0 WHERE id <> 900").replace(";\n ", ";\n"))
                .await;
            let summary = order.snapshot().await;
            assert_eq!((summary.succeeded, summary.failed), (1, 0), "{again}: {summary:?}");
            let after = app.lines(&format!("SELECT * FROM {SNAPSHOTS} ORDER BY id")).await;
            assert_eq!(after, before, "{again}");
        }
    }

    async fn a_progress_that_another_leases_puts_the_task_back(app: TestApp) {
        let order = refreshed(&app, 10).await;
        let shard = "SELECT id FROM fi_resident_income_payment_status_refresh_shard";
        let shard = app.value(shard).await;
        let lease = order.instant(5);
        app.execute(&format!("INSERT INTO {OWN} (progress_id, shard_id, status, worker_id,
            running_attempt, lease_expire_time) VALUES (5, {shard}, 'RUNNING', 'w', 3, {lease})"))
            .await;
        let summary = order.snapshot().await;
        assert_eq!((summary.succeeded, summary.failed, summary.skipped), (0, 0, 1));
        app.pass_minutes(6);
        assert_eq!(order.snapshot().await.succeeded, 1);
        let own = format!("SELECT status, running_attempt, processed_count FROM {OWN}");
        assert_eq!(app.value(&own).await, "SUCCESS|4|8");
    }

    async fn a_task_without_its_shard_or_with_another_key_makes_nothing(app: TestApp) {
        let order = refreshed(&app, 10).await;
        app.execute("DELETE FROM fi_async_task WHERE id <> 900").await;
        order.snapshot_task(5, 77).await;
        order.snapshot_task(6, 1).await;
        app.execute(r#"UPDATE fi_async_task SET task_data = '{"progressId":5,"shardId":0}'
            WHERE business_key = 'BILL_SNAPSHOT:6:1'"#).await;
        let summary = order.snapshot().await;
        assert_eq!((summary.succeeded, summary.failed), (0, 2), "{summary:?}");
        assert_eq!(app.value(&format!("SELECT COUNT(*) FROM {SNAPSHOTS}")).await, "0");
    }
}
