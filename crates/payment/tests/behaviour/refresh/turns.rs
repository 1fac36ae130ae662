//! S12 turn by turn: the way of one order, repetition, gates, caps, DONE.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::kinds::STATUS_REFRESH;
use counterfoil_payment::status_refresh::Source;

use super::hand::{Approved, RECORDS};

const SHARD: &str = "fi_resident_income_payment_status_refresh_shard";
const PROGRESS: &str = "fi_resident_income_payment_review_callback_progress";

/// A shard written by hand: only what cannot be left to a default.
async fn shard(app: &TestApp, id: i64, source: &str, source_id: i64, first: i64, last: i64) {
    app.execute(&format!(
        "INSERT INTO {SHARD} (id, source_type, source_id, payment_order_id, data_version,
           submit_round, start_order_bill_id, end_order_bill_id)
         VALUES ({id}, '{source}', {source_id}, 1, 1, 1, {first}, {last})"
    ))
    .await;
}

async fn set(app: &TestApp, table: &str, change: &str) {
    app.execute(&format!("UPDATE {table} SET {change}")).await;
}

on_every_database! {
    async fn an_approved_order_of_2500_lines_is_refreshed_to_the_end(app: TestApp) {
        let order = Approved::planned(&app, 2500).await;
        app.pass_minutes(1);
        // Four sub-batches for each of two thousand lines, two for the last five hundred.
        assert_eq!(order.refreshed().await, 10);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|3");
        let shards = ["SUCCESS|1000|1000", "SUCCESS|1000|2000", "SUCCESS|500|2500"];
        assert_eq!(order.shards().await, shards);
        for table in RECORDS {
            let by_status = format!("SELECT payment_status, COUNT(*) FROM {table}
                GROUP BY payment_status ORDER BY payment_status");
            assert_eq!(app.lines(&by_status).await, ["10|250", "20|250", "40|2000"], "{table}");
        }
        assert_eq!(order.bill(1).await, "40|1|1|20|0|NULL|0|0");
        assert_eq!(order.bill(1805).await, "20|NULL|NULL|30|1|农户租金异常|0|0");
        assert_eq!(order.bill(2500).await, "10|NULL|NULL|30|1|农户租金异常|0|0");
        let last = "SELECT COUNT(*) FROM fi_customer_bill_partner
            WHERE last_unqualified_order_bill_id = id - 30000";
        assert_eq!(app.value(last).await, "500");
        let guards = "SELECT COUNT(*), MIN(guard_version), MAX(guard_version)
            FROM fi_resident_income_payment_status_refresh_scope_guard";
        assert_eq!(app.value(guards).await, "2500|1|1");
        let seeds = "SELECT COUNT(*) FROM fi_async_task
            WHERE task_type = 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT' AND task_status = 0";
        assert_eq!(app.value(seeds).await, "3");
        let done = format!("SELECT done_time FROM {PROGRESS}");
        assert_eq!(app.value(&done).await, "2026-09-08T02:01:00Z");
        assert_eq!(order.refresh().await.selected, 0);
    }

    async fn refreshing_again_changes_no_row_no_time_and_no_version_number(app: TestApp) {
        let order = Approved::planned(&app, 600).await;
        order.refreshed().await;
        let before = order.business().await;
        app.pass_minutes(30);
        order.plan(Source::Manual, 1).await;
        order.plan(Source::PaymentResult, 1).await;
        assert_eq!(order.refreshed().await, 6);
        assert_eq!(order.business().await, before);
        // Begun anew by hand, as if nothing had been remembered.
        set(&app, SHARD, "task_status = 'PENDING', cursor_order_bill_id = 0").await;
        set(&app, PROGRESS, "phase = 'REFRESH_SHARD', refresh_ready = 0").await;
        app.pass_minutes(30);
        assert_eq!(order.refreshed().await, 9);
        assert_eq!(order.business().await, before);
        assert_eq!(order.shards().await, vec!["SUCCESS|600|600"; 3]);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
        let seeds = "SELECT COUNT(*) FROM fi_async_task
            WHERE task_type = 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT'";
        assert_eq!(app.value(seeds).await, "1", "only a review's shard has a snapshot task");
    }

    async fn a_ledger_row_that_changes_has_a_higher_financial_version(app: TestApp) {
        let order = Approved::planned(&app, 5).await;
        order.refreshed().await;
        let versions = "SELECT financial_version FROM fi_monthly_income_difference ORDER BY id";
        assert_eq!(app.lines(versions).await, ["1"; 5]);
        // Only the reason differs: the status does not move, and neither does its time.
        let time = "SELECT payment_status_update_time FROM fi_monthly_income_difference
            WHERE id = 10005";
        let moved = app.value(time).await;
        set(&app, "fi_monthly_income_difference", "unqualified_reason = NULL").await;
        app.pass_minutes(5);
        order.plan(Source::Manual, 1).await;
        order.refreshed().await;
        assert_eq!(app.lines(versions).await, ["1", "1", "1", "1", "2"]);
        assert_eq!(app.value(time).await, moved);
        assert_eq!(order.bill(5).await, "20|NULL|NULL|30|1|农户租金异常|0|0");
    }

    async fn a_reviews_shard_waits_until_its_locks_are_released_and_the_others_do_not(
        app: TestApp
    ) {
        for (held_back, free) in [
            ("phase = 'LOCK_RELEASE'", "phase = 'REFRESH_SHARD'"),
            ("main_task_status = 'RUNNING'", "main_task_status = 'SUCCESS'"),
            ("lock_release_expected = 3, lock_release_success = 2",
             "lock_release_success = 3"),
        ] {
            let order = Approved::planned(&app, 10).await;
            set(&app, PROGRESS, held_back).await;
            assert_eq!(order.refresh().await.selected, 0, "{held_back}");
            order.plan(Source::PaymentResult, 1).await;
            order.plan(Source::Manual, 1).await;
            assert_eq!(order.refreshed().await, 2, "{held_back}");
            set(&app, PROGRESS, free).await;
            assert_eq!(order.refreshed().await, 1, "{free}");
            assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
            order.wipe().await;
        }
    }

    async fn shards_wait_their_time_after_a_failure_and_while_another_holds_the_lease(
        app: TestApp
    ) {
        let order = Approved::planned(&app, 10).await;
        let (later, earlier) = (order.instant(1), order.instant(-1));
        set(&app, SHARD, &format!("task_status = 'FAILED', next_retry_time = {later}")).await;
        assert_eq!(order.refresh().await.selected, 0);
        set(&app, SHARD, &format!("task_status = 'RUNNING', worker_id = 'w',
            running_attempt = 7, lease_expire_time = {later}")).await;
        assert_eq!(order.refresh().await.selected, 0);
        set(&app, SHARD, &format!("lease_expire_time = {earlier}")).await;
        assert_eq!(order.refreshed().await, 1);
        let taken = format!("SELECT task_status, running_attempt, lease_expire_time FROM {SHARD}");
        assert_eq!(app.value(&taken).await, "SUCCESS|8|NULL");
        // As written by hand: RUNNING without a lease, FAILED without a time.
        for state in ["task_status = 'RUNNING', lease_expire_time = NULL",
            "task_status = 'FAILED', next_retry_time = NULL"] {
            set(&app, SHARD, state).await;
            set(&app, PROGRESS, "phase = 'REFRESH_SHARD'").await;
            assert_eq!(order.refreshed().await, 1, "{state}");
        }
    }

    async fn no_more_shards_run_at_once_than_the_caps_allow(app: TestApp) {
        let order = Approved::planned(&app, 10).await;
        order.plan(Source::Manual, 1).await;
        let lease = order.instant(5);
        for n in 0..8 {
            shard(&app, 100 + n, "REVIEW_APPROVED", 50 + n, 1, 10).await;
        }
        set(&app, SHARD, &format!("task_status = 'RUNNING', worker_id = 'other',
            lease_expire_time = {lease} WHERE id >= 100 AND id < 1000")).await;
        // Eight of approved reviews run elsewhere: this one waits, the person's does not.
        assert_eq!(order.refreshed().await, 1);
        assert_eq!(order.progress().await, "REFRESH_SHARD|INIT|0|0");
        let code = "SELECT 'RIPRS:' || id FROM fi_resident_income_payment_status_refresh_shard
            WHERE source_id = 5";
        let code = app.value(code).await;
        let named = format!(r#"{{"taskCode":"{code}"}}"#);
        let summary = app.round_with(STATUS_REFRESH.handler, &named).await;
        assert_eq!((summary.claimed, summary.skipped), (0, 1), "{summary:?}");
        // Their owners are dead.
        app.pass_minutes(6);
        app.execute(&format!("DELETE FROM {SHARD} WHERE id = 107")).await;
        assert_eq!(order.refreshed().await, 1);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
    }

    async fn done_needs_every_expected_shard_to_have_ended(app: TestApp) {
        let order = Approved::planned(&app, 10).await;
        for wrong in ["shard_expected = 0", "shard_expected = 2"] {
            set(&app, PROGRESS, wrong).await;
            set(&app, SHARD, "task_status = 'PENDING', cursor_order_bill_id = 0").await;
            assert_eq!(order.refreshed().await, 1, "{wrong}");
            assert_eq!(order.progress().await, "REFRESH_SHARD|INIT|0|1", "{wrong}");
        }
        // The second shard fails, and then succeeds: only now.
        shard(&app, 100, "REVIEW_APPROVED", 5, 11, 20).await;
        set(&app, SHARD, "task_status = 'FAILED', next_retry_time = '2036-01-01 00:00:00'
            WHERE id = 100").await;
        assert_eq!(order.refresh().await.selected, 0);
        assert_eq!(order.progress().await, "REFRESH_SHARD|INIT|0|1");
        let named = r#"{"taskCode":"RIPRC:900"}"#;
        let summary = app.round_with(STATUS_REFRESH.handler, named).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|2");
    }

    async fn a_progress_whose_counts_agree_only_later_becomes_done_all_the_same(app: TestApp) {
        let order = Approved::planned(&app, 10).await;
        set(&app, PROGRESS, "shard_expected = 2").await;
        order.refreshed().await;
        set(&app, PROGRESS, "shard_expected = 1").await;
        assert_eq!(order.refresh().await.selected, 0);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
    }

    async fn a_shard_whose_lines_changed_fails_counted_and_goes_on_once_they_are_back(
        app: TestApp
    ) {
        let order = Approved::planned(&app, 300).await;
        let before = order.business().await;
        let line = "fi_resident_income_payment_order_bill";
        set(&app, line, "station_id = 'OTHER' WHERE id = 299").await;
        let summary = order.refresh().await;
        assert_eq!((summary.succeeded, summary.failed), (0, 1), "{summary:?}");
        assert_eq!(order.business().await, before);
        let state = format!("SELECT task_status, retry_count, error_code, next_retry_time
            FROM {SHARD}");
        let failed = "FAILED|1|refresh-scope-changed|2026-09-08T02:00:30Z";
        assert_eq!(app.value(&state).await, failed);
        assert_eq!(order.refresh().await.selected, 0);
        app.pass_minutes(1);
        assert_eq!(order.refresh().await.failed, 1);
        set(&app, line, "station_id = 'S299' WHERE id = 299").await;
        app.pass_minutes(2);
        assert_eq!(order.refreshed().await, 2);
        assert_eq!(app.value(&state).await, "SUCCESS|0|NULL|NULL");
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
    }

    async fn a_line_that_is_gone_or_a_scope_of_another_builder_is_a_changed_scope(app: TestApp) {
        let order = Approved::planned(&app, 10).await;
        let code = format!("SELECT error_code FROM {SHARD}");
        for (table, change, back) in [
            ("fi_resident_income_payment_order_bill", "deleted = 1 WHERE id = 4", "deleted = 0"),
            (SHARD, "scope_builder_version = 2", "scope_builder_version = 1"),
            (SHARD, "scope_count = 11", "scope_count = 10"),
        ] {
            set(&app, table, change).await;
            assert_eq!(order.refresh().await.failed, 1, "{change}");
            assert_eq!(app.value(&code).await, "refresh-scope-changed", "{change}");
            set(&app, table, back).await;
            app.pass_minutes(31);
        }
        assert_eq!(order.refreshed().await, 1);
    }

    async fn a_shard_written_by_hand_without_a_hash_is_refreshed(app: TestApp) {
        let order = Approved::order(&app, 20).await;
        shard(&app, 100, "REVIEW_APPROVED", 5, 1, 12).await;
        shard(&app, 101, "REVIEW_APPROVED", 5, 13, 20).await;
        set(&app, PROGRESS, "shard_expected = 2").await;
        assert_eq!(order.refreshed().await, 2);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|2");
        assert_eq!(order.shards().await, ["SUCCESS|12|12", "SUCCESS|8|20"]);
        for n in [1, 12, 13, 19] {
            assert_eq!(order.bill(n).await, format!("40|1|{n}|20|0|NULL|0|0"));
        }
    }

    async fn a_shard_without_lines_ends_and_has_its_snapshot_task(app: TestApp) {
        let order = Approved::order(&app, 5).await;
        shard(&app, 100, "REVIEW_APPROVED", 5, 7000, 8000).await;
        set(&app, PROGRESS, "shard_expected = 1").await;
        assert_eq!(order.refreshed().await, 1);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|1");
        let seed = "SELECT business_key, task_data FROM fi_async_task WHERE id <> 900";
        assert_eq!(app.value(seed).await,
            r#"BILL_SNAPSHOT:5:100|{"progressId":5,"shardId":100}"#);
    }
}
