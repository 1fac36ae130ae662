//! A process may die at any commit of S12 and S13; two may work at once; a late one is fenced out.

use std::collections::BTreeSet;
use std::sync::Mutex;

use counterfoil_db::{Db, Instant};
use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_payment::kinds::{BILL_SNAPSHOT, STATUS_REFRESH};
use counterfoil_payment::status_refresh::{Source, StatusRefresh};
use counterfoil_task::{
    Engine, EngineSettings, Kind, Selector, Summary, Taken, Turn, TurnEnd, Turns, Unit, WorkError,
};

use super::hand::{Approved, RECORDS};

/// Lines of the first shard, of two sub-batches, and of both.
const SPLIT: i64 = 260;
const LINES: i64 = 280;

async fn work_off(app: &TestApp) {
    for _ in 0..2 {
        app.round(STATUS_REFRESH.handler).await;
        app.round(BILL_SNAPSHOT.handler).await;
        app.pass_minutes(11);
    }
}

/// The end without ids, attempts and times.
async fn end_state(app: &TestApp) -> Vec<String> {
    let mut state = vec![Approved(app).progress().await];
    state.extend(Approved(app).shards().await);
    for query in [
        "SELECT station_id, payment_status, locked_payment_order_id, locked_order_bill_id,
            partner_query_status, unqualified_reason, financial_version
         FROM fi_monthly_income_difference ORDER BY id",
        "SELECT station_id, payment_status, locked_order_bill_id FROM fi_customer_bill
         ORDER BY id",
        "SELECT station_id, payment_status, last_unqualified_order_bill_id
         FROM fi_customer_bill_partner ORDER BY id",
        "SELECT order_bill_id, payment_status, source_progress_id
         FROM fi_resident_income_payment_bill_dimension_snapshot ORDER BY order_bill_id",
        "SELECT status, cursor_order_bill_id, processed_count
         FROM fi_resident_income_payment_snapshot_refresh_progress ORDER BY cursor_order_bill_id",
        "SELECT task_type, task_status, COUNT(*) FROM fi_async_task
         GROUP BY task_type, task_status ORDER BY task_type, task_status",
    ] {
        state.extend(app.lines(query).await);
    }
    state
}

/// One order after the other in one database, each with a crash at another place.
async fn every_crash_ends_alike(app: &TestApp) {
    let order = Approved::planned_in_two(app, LINES, SPLIT).await;
    let crashes = app.crashes_of(work_off(app)).await;
    let expected = end_state(app).await;
    let points: BTreeSet<_> = crashes.iter().map(|crash| crash.point).collect();
    for point in [
        "status_refresh.lease",
        "status_refresh.sub_batch",
        "status_refresh.shard",
        "bill_snapshot.lease",
        "bill_snapshot.batch",
        "bill_snapshot.finish",
    ] {
        assert!(points.contains(point), "{point} was not passed: {points:?}");
    }
    let ours = |crash: &Crash| {
        crash.point.starts_with("status_refresh") || crash.point.starts_with("bill_snapshot")
    };
    for crash in crashes.into_iter().filter(ours) {
        order.wipe().await;
        Approved::planned_in_two(app, LINES, SPLIT).await;
        app.arm(crash);
        let mut crashed = false;
        for handler in [STATUS_REFRESH.handler, BILL_SNAPSHOT.handler] {
            crashed |= app.try_round(handler, "").await.is_err();
        }
        assert!(crashed && !app.faults().is_armed(), "{crash:?} did not strike");
        app.pass_minutes(11);
        work_off(app).await;
        assert_eq!(end_state(app).await, expected, "{crash:?}");
    }
}

/// S12 by a worker that selected its shard long ago.
struct Late(Mutex<Option<Unit>>);

#[async_trait::async_trait]
impl Turns for Late {
    fn kind(&self) -> &'static Kind {
        &STATUS_REFRESH
    }

    async fn next(&self, _: &Db, _: Instant, _: &Taken) -> Result<Option<Unit>, WorkError> {
        Ok(self.0.lock().expect("a unit").take())
    }

    async fn eligible(&self, _: &Db, _: Instant, _: i64) -> Result<Option<Unit>, WorkError> {
        Ok(None)
    }

    async fn named(&self, _: &Db, _: &Selector, _: u32) -> Result<Vec<Unit>, WorkError> {
        Ok(Vec::new())
    }

    async fn turn(&self, unit: &Unit, turn: &Turn<'_>) -> Result<TurnEnd, WorkError> {
        StatusRefresh::default().turn(unit, turn).await
    }
}

async fn both(one: &TestApp, other: &TestApp) -> Summary {
    let (first, second) =
        tokio::join!(one.round(STATUS_REFRESH.handler), other.round(STATUS_REFRESH.handler));
    assert_eq!(first.failed + second.failed, 0, "{first:?} {second:?}");
    Summary { succeeded: first.succeeded + second.succeeded, ..Summary::default() }
}

on_every_database! {
    async fn a_crash_at_any_commit_of_a_refresh_ends_like_no_crash(app: TestApp) {
        every_crash_ends_alike(&app).await;
    }

    async fn two_workers_on_the_same_shards_do_each_sub_batch_once(app: TestApp) {
        let order = Approved::planned(&app, 2000).await;
        let other = app.second_process().await;
        let mut turns = 0;
        while order.progress().await.starts_with("REFRESH_SHARD") {
            turns += both(&app, &other).await.succeeded;
        }
        other.db.close().await;
        assert_eq!(turns, 8);
        assert_eq!(order.progress().await, "DONE|SUCCESS|1|2");
        let versions = "SELECT COUNT(*), MIN(financial_version), MAX(financial_version)
            FROM fi_monthly_income_difference";
        assert_eq!(app.value(versions).await, "2000|1|1");
        let guards = "SELECT COUNT(*), MAX(guard_version)
            FROM fi_resident_income_payment_status_refresh_scope_guard";
        assert_eq!(app.value(guards).await, "2000|1");
    }

    async fn two_workers_on_shards_that_share_their_scopes_do_not_block_each_other(app: TestApp) {
        let order = Approved::planned(&app, 500).await;
        for manual in 1..=3 {
            order.plan(Source::Manual, manual).await;
            order.plan(Source::PaymentResult, manual).await;
        }
        let other = app.second_process().await;
        let pending = "SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard
            WHERE task_status <> 'SUCCESS'";
        let mut turns = 0;
        while app.value(pending).await != "0" {
            turns += both(&app, &other).await.succeeded;
        }
        other.db.close().await;
        assert_eq!(turns, 14);
        let guards = "SELECT COUNT(*), MIN(guard_version), MAX(guard_version)
            FROM fi_resident_income_payment_status_refresh_scope_guard";
        assert_eq!(app.value(guards).await, "500|7|7");
        for table in RECORDS {
            let held = format!("SELECT COUNT(*) FROM {table} WHERE payment_status = 40");
            assert_eq!(app.value(&held).await, "400", "{table}");
        }
        let versions = "SELECT MAX(financial_version) FROM fi_monthly_income_difference";
        assert_eq!(app.value(versions).await, "1", "what does not differ is not written");
    }

    async fn a_worker_that_was_overtaken_writes_nothing_and_is_counted_as_skipped(app: TestApp) {
        let order = Approved::planned(&app, 10).await;
        let late = StatusRefresh::default().next(&app.db, app.now(), &Taken::default()).await;
        let late = late.expect("a selection").expect("a shard");
        // Another worker takes the shard, and begins it anew after a failure.
        order.refreshed().await;
        app.execute("UPDATE fi_resident_income_payment_status_refresh_shard
            SET task_status = 'FAILED'").await;
        let before = order.everything().await;
        app.pass_minutes(1);
        let engine = Engine::new(app.db.clone(), EngineSettings::default())
            .with_turns(Late(Mutex::new(Some(late))));
        let summary = engine.round(STATUS_REFRESH.handler, "").await.expect("a round");
        assert_eq!((summary.selected, summary.claimed, summary.skipped), (1, 0, 1));
        assert_eq!(order.everything().await, before);
    }
}
