//! Leases (task-engine.md, "Long work"): a right that expires, and who may write under it.

use chrono::TimeDelta;
use counterfoil_db::{Read, Tx};
use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_task::{Lease, LeaseTerms, LeaseUnavailable, Progress, Run, WorkError};

use super::errand::{BATCH, Desk, ERRAND, Ending, counts, fail, named_engine};

type Leased = Result<Lease, LeaseUnavailable>;

async fn acquire(tx: &mut Tx, version: i64, worker: &str) -> Leased {
    let leased = Lease::acquire(tx, &BATCH, 1, version, worker, LeaseTerms::default()).await;
    leased.expect("a statement")
}

/// One transaction of a worker.
async fn take(app: &TestApp, version: i64, worker: &str) -> Leased {
    let mut tx = app.db.begin().await.expect("a transaction");
    let leased = acquire(&mut tx, version, worker).await;
    tx.commit("test.lease").await.expect("a commit");
    leased
}

/// One write under a lease; whether it won.
#[derive(Clone, Copy, Debug)]
enum Write {
    Advance,
    Finish,
    Fail,
    Release,
}

async fn write(app: &TestApp, lease: &Lease, write: Write) -> bool {
    let mut tx = app.db.begin().await.expect("a transaction");
    let progress = Progress::none().set("step", 7).add("done", 2);
    let won = match write {
        Write::Advance => lease.advance(&mut tx, progress).await,
        Write::Finish => lease.finish(&mut tx).await,
        Write::Fail => lease.fail(&mut tx, "broken", "what broke").await,
        Write::Release => lease.release(&mut tx).await,
    };
    tx.commit("test.lease").await.expect("a commit");
    won.expect("a statement")
}

const STATE: &str = "SELECT status, worker_id, lease_version, step, done, error_code
    FROM errand_batch WHERE id = 1";

/// Leases batch 1 as the row says, then ends as the test says.
async fn lease_of<'r>(run: &'r Run<'r>) -> Result<Lease, WorkError> {
    let mut tx = run.begin().await?;
    let row = tx.row(counterfoil_db::sql!(
        "SELECT lease_version FROM errand_batch WHERE id = 1"
    ));
    let version = row.await?.expect("a batch").int("lease_version")?;
    let lease = run.lease(&mut tx, &BATCH, 1, version).await?;
    tx.commit("errand.lease").await?;
    Ok(lease)
}

fn lease_then_fail<'r>(_: i64, run: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async move {
        lease_of(run).await?;
        fail("after the lease").await
    })
}

fn lease_then_stop<'r>(_: i64, run: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async move {
        lease_of(run).await?;
        Err(WorkError::Stopping)
    })
}

on_every_database! {
    async fn only_init_failed_and_expired_running_can_be_leased(app: TestApp) {
        let desk = Desk::open(&app).await;
        let micro = TimeDelta::microseconds(1);
        let rows = [
            ("'INIT', NULL", true),
            ("'FAILED', NULL", true),
            (&format!("'FAILED', {}", desk.minutes(5)), true),
            (&format!("'RUNNING', {}", desk.minutes(-1)), true),
            (&format!("'RUNNING', {}", desk.minutes(0)), true),
            (&format!("'RUNNING', {}", desk.at(micro)), false),
            (&format!("'RUNNING', {}", desk.minutes(10)), false),
            ("'DONE', NULL", false),
            (&format!("'DONE', {}", desk.minutes(-1)), false),
        ];
        for (values, leased) in rows {
            desk.raw("DELETE FROM errand_batch").await;
            desk.raw(&format!("INSERT INTO errand_batch
                (id, lease_version, status, lease_expire_time) VALUES (1, 4, {values})")).await;
            let before = app.value("SELECT * FROM errand_batch").await;
            assert!(take(&app, 3, "w").await.is_err(), "{values}: another version");
            assert!(take(&app, 5, "w").await.is_err(), "{values}: another version");
            assert_eq!(app.value("SELECT * FROM errand_batch").await, before, "{values}");
            assert_eq!(take(&app, 4, "w").await.is_ok(), leased, "{values}");
            if leased {
                assert_eq!(app.value(STATE).await, "RUNNING|w|5|0|0|NULL", "{values}");
                let until = "SELECT lease_expire_time FROM errand_batch";
                let until = app.value(until).await;
                assert_eq!(until, "2026-09-08T02:10:00Z", "{values}");
            } else {
                assert_eq!(app.value("SELECT * FROM errand_batch").await, before, "{values}");
            }
        }
    }

    async fn of_two_who_saw_the_same_version_one_gets_the_lease(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        assert!(take(&app, 0, "one").await.is_ok());
        let until = app.now() + TimeDelta::minutes(10);
        let held = take(&app, 0, "two").await.err();
        assert_eq!(held, Some(LeaseUnavailable::Held { until }));
        let held = take(&app, 1, "two").await.err();
        assert_eq!(held, Some(LeaseUnavailable::Held { until }));
        app.pass_minutes(10);
        assert_eq!(take(&app, 0, "two").await.err(), Some(LeaseUnavailable::Moved));
        assert!(take(&app, 1, "two").await.is_ok());
        assert_eq!(app.value(STATE).await, "RUNNING|two|2|0|0|NULL");
    }

    async fn each_write_needs_worker_version_and_all_but_failure_an_unexpired_lease(app: TestApp) {
        let desk = Desk::open(&app).await;
        use Write::{Advance, Fail, Finish, Release};
        let cases = [
            ("", 9, [true, true, true, true]),
            ("", 10, [false, false, true, false]),
            ("worker_id = 'other'", 0, [false; 4]),
            ("lease_version = 9", 0, [false; 4]),
            ("status = 'DONE'", 0, [false; 4]),
            ("status = 'INIT'", 0, [false; 4]),
        ];
        for (change, minutes, wins) in cases {
            for (at, wins) in [Advance, Finish, Fail, Release].into_iter().zip(wins) {
                desk.raw("DELETE FROM errand_batch").await;
                desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
                let lease = take(&app, 0, "w").await.expect("a lease");
                if !change.is_empty() {
                    desk.raw(&format!("UPDATE errand_batch SET {change}")).await;
                }
                app.pass_minutes(minutes);
                let before = app.value("SELECT * FROM errand_batch").await;
                assert_eq!(write(&app, &lease, at).await, wins, "{at:?} {change} {minutes}");
                if !wins {
                    let after = app.value("SELECT * FROM errand_batch").await;
                    assert_eq!(after, before, "{at:?} {change} {minutes}");
                }
            }
        }
    }

    async fn a_batch_moves_cursor_and_counter_and_renews(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id, done) VALUES (1, 40)").await;
        let lease = take(&app, 0, "w").await.expect("a lease");
        for done in [42, 44, 46] {
            app.pass_minutes(9);
            assert!(write(&app, &lease, Write::Advance).await);
            assert_eq!(app.value(STATE).await, format!("RUNNING|w|1|7|{done}|NULL"));
        }
        assert!(write(&app, &lease, Write::Finish).await);
        let end = "SELECT status, lease_expire_time FROM errand_batch";
        assert_eq!(app.value(end).await, "DONE|NULL");
    }

    async fn a_batch_leased_by_another_puts_the_task_back_until_the_lease_ends(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        take(&app, 0, "other").await.expect("a lease");
        desk.by_hand(1, "retry_count, error_message", "2, 'old'").await;
        let batch = app.value("SELECT * FROM errand_batch").await;
        app.pass_minutes(3);
        let engine = named_engine(&app, "me", lease_then_fail);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
        assert!(summary.is_success());
        assert_eq!(desk.state(1).await, "0|2|1|old");
        assert_eq!(desk.due_in(1).await, Some(7));
        assert_eq!(app.value("SELECT * FROM errand_batch").await, batch);
        app.pass_minutes(7);
        let engine = named_engine(&app, "me", lease_then_fail);
        engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(1).await, "3|3|2|after the lease");
    }

    async fn a_failing_task_fails_its_own_batch_in_the_same_commit(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        desk.accept(1).await;
        app.arm(Crash {
            point: "task.failure",
            side: counterfoil_db::Side::Before,
            passage: 1,
        });
        let engine = named_engine(&app, "me", lease_then_fail);
        engine.round(ERRAND.handler, "").await.expect_err("a crash");
        assert_eq!(desk.state(1).await, "1|0|1|NULL");
        assert_eq!(app.value(STATE).await, "RUNNING|me|1|0|0|NULL");
        app.pass_minutes(10);
        let engine = named_engine(&app, "you", lease_then_fail);
        engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(1).await, "3|1|2|after the lease");
        assert_eq!(app.value(STATE).await, "FAILED|you|2|0|0|errand-failed");
        let message = "SELECT error_message, lease_expire_time FROM errand_batch";
        assert_eq!(app.value(message).await, "after the lease|NULL");
    }

    async fn stopping_lets_go_of_the_lease_so_that_the_next_need_not_wait(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        desk.by_hand(1, "retry_count", "1").await;
        let engine = named_engine(&app, "me", lease_then_stop);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
        assert_eq!(desk.state(1).await, "0|1|1|NULL");
        let engine = named_engine(&app, "you", lease_then_fail);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 0, 1], "at the same instant");
        assert_eq!(app.value(STATE).await, "FAILED|you|2|0|0|errand-failed");
    }

    async fn a_failure_without_a_lease_touches_no_batch(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id, status) VALUES (1, 'DONE')").await;
        desk.accept(1).await;
        let before = app.value("SELECT * FROM errand_batch").await;
        let engine = named_engine(&app, "me", lease_then_fail);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 0, 1]);
        assert!(desk.state(1).await.starts_with("3|1|1|"));
        assert_eq!(app.value("SELECT * FROM errand_batch").await, before);
    }
}
