//! The fence (task-engine.md, "Running, failing, fencing"): whoever lost his attempt writes nothing
//! at all.

use std::sync::Arc;

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{Engine, Run, Summary, WorkError};
use tokio::sync::Notify;

use super::errand::{
    Desk, ERRAND, Ending, counts, engine, log, observed, succeed, until_somebody_waits,
};

/// Where a slow worker waits until its test lets it go on.
#[derive(Clone, Default)]
struct Halt {
    reached: Arc<Notify>,
    go: Arc<Notify>,
}

impl Halt {
    async fn wait(&self) {
        self.reached.notify_one();
        self.go.notified().await;
    }
}

/// A worker that commits a first batch, halts, and then does `next`.
fn slow(
    app: &TestApp,
    halt: &Halt,
    next: impl for<'r> Fn(&'r Run<'r>) -> Ending<'r> + Send + Sync + Clone + 'static,
) -> Engine {
    let halt = halt.clone();
    engine(app, move |id, run| {
        let (halt, next) = (halt.clone(), next.clone());
        Box::pin(async move {
            let mut tx = run.begin().await?;
            log(&mut tx, id, 1).await?;
            tx.commit("errand.batch").await?;
            halt.wait().await;
            next(run).await
        })
    })
}

fn spawn(engine: Engine) -> tokio::task::JoinHandle<Summary> {
    tokio::spawn(async move { engine.round(ERRAND.handler, "").await.expect("a round") })
}

/// A slow worker is overtaken while it halts; answers its summary.
async fn overtaken(
    app: &TestApp,
    next: impl for<'r> Fn(&'r Run<'r>) -> Ending<'r> + Send + Sync + Clone + 'static,
) -> Summary {
    let desk = Desk::open(app).await;
    desk.accept(1).await;
    let halt = Halt::default();
    let slow = spawn(slow(app, &halt, next));
    halt.reached.notified().await;
    app.pass_minutes(10);
    let other = app.second_process().await;
    let (second, _) = observed(&other);
    let taken = second.round(ERRAND.handler, "").await.expect("a round");
    assert_eq!(counts(&taken), [1, 1, 1, 0, 0]);
    let before = desk.row(1).await;
    app.pass_minutes(1);
    halt.go.notify_one();
    let summary = slow.await.expect("the slow worker");
    other.db.close().await;
    assert_eq!(desk.row(1).await, before, "the row is the second worker's");
    assert_eq!(desk.state(1).await, "2|0|2|NULL");
    assert_eq!(desk.logged("1 = 1").await, 2, "one batch each");
    summary
}

fn goes_on<'r>(run: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async move {
        let mut tx = run.begin().await?;
        log(&mut tx, 1, 2).await?;
        tx.succeed("errand.done").await
    })
}

fn fails<'r>(_: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async { Err(WorkError::failed("errand-failed", "too late")) })
}

fn stops<'r>(_: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async { Err(WorkError::Stopping) })
}

fn is_busy<'r>(run: &'r Run<'r>) -> Ending<'r> {
    Box::pin(async move {
        let until = run.db().now().await?;
        Err(WorkError::Busy { until })
    })
}

on_every_database! {
    async fn an_overtaken_worker_writes_nothing_and_is_counted_as_skipped(app: TestApp) {
        let summary = overtaken(&app, goes_on).await;
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
        assert!(summary.errors.is_empty(), "{summary:?}");
    }

    async fn an_overtaken_worker_that_fails_is_skipped_and_not_failed(app: TestApp) {
        let summary = overtaken(&app, fails).await;
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
        assert!(summary.errors.is_empty(), "{summary:?}");
    }

    async fn an_overtaken_worker_hands_nothing_back(app: TestApp) {
        let summary = overtaken(&app, stops).await;
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
    }

    async fn an_overtaken_worker_that_meets_a_lease_puts_nothing_back(app: TestApp) {
        let summary = overtaken(&app, is_busy).await;
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
    }

    async fn every_batch_proves_status_type_attempt_and_that_the_row_lives(app: TestApp) {
        let desk = Desk::open(&app).await;
        for change in ["running_attempt = 2", "running_attempt = 0", "task_status = 0",
            "task_status = 2", "task_status = 3", "task_status = 4", "deleted = 1",
            "task_type = 'OTHER'"] {
            desk.accept(1).await;
            let halt = Halt::default();
            let slow = spawn(slow(&app, &halt, goes_on));
            halt.reached.notified().await;
            desk.raw(&format!("UPDATE fi_async_task SET {change}")).await;
            let before = desk.row(1).await;
            halt.go.notify_one();
            let summary = slow.await.expect("the slow worker");
            assert_eq!(counts(&summary), [1, 1, 0, 1, 0], "{change}");
            assert_eq!(desk.row(1).await, before, "{change}");
            assert_eq!(desk.logged("step = 2").await, 0, "{change}");
            desk.raw("DELETE FROM fi_async_task").await;
        }
    }

    async fn live_work_is_never_stale_because_every_batch_touches_the_row(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        let halt = Halt::default();
        let steps = halt.clone();
        let engine = engine(&app, move |id, run| {
            let halt = steps.clone();
            Box::pin(async move {
                for step in 1..=3 {
                    halt.wait().await;
                    let mut tx = run.begin().await?;
                    log(&mut tx, id, step).await?;
                    tx.commit("errand.batch").await?;
                }
                succeed(id, run).await
            })
        });
        let working = spawn(engine);
        for _ in 1..=3 {
            halt.reached.notified().await;
            app.pass_minutes(9);
            let (other, _) = observed(&app);
            let summary = other.round(ERRAND.handler, "").await.expect("a round");
            assert_eq!(counts(&summary), [1, 0, 0, 1, 0]);
            halt.go.notify_one();
        }
        assert_eq!(counts(&working.await.expect("the worker")), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(1).await, "2|0|1|NULL");
    }

    async fn work_inside_a_transaction_cannot_be_taken_whatever_the_clock_says(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        let halt = Halt::default();
        let inner = halt.clone();
        let engine = engine(&app, move |id, run| {
            let halt = inner.clone();
            Box::pin(async move {
                let mut tx = run.begin().await?;
                log(&mut tx, id, 1).await?;
                halt.wait().await;
                tx.succeed("errand.done").await
            })
        });
        let working = spawn(engine);
        halt.reached.notified().await;
        app.pass_minutes(30);
        let other = app.second_process().await;
        let taker = tokio::spawn({
            let other = other.clone();
            async move { observed(&other).0.round(ERRAND.handler, "").await.expect("a round") }
        });
        until_somebody_waits(&app).await;
        halt.go.notify_one();
        assert_eq!(counts(&working.await.expect("the worker")), [1, 1, 1, 0, 0]);
        let taken = taker.await.expect("the taker");
        assert_eq!(taken.claimed, 0, "{taken:?}");
        other.db.close().await;
        assert_eq!(desk.state(1).await, "2|0|1|NULL");
        assert_eq!(desk.logged("1 = 1").await, 1);
    }
}
