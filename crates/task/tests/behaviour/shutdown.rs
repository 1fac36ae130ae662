//! Stopping (task-engine.md, "Long work"; conventions.md: deploys burn no attempt).

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{Engine, EngineSettings, Progress, Shutdown, ShutdownHandle};
use std::sync::Arc;

use super::errand::{BATCH, Desk, ERRAND, Errands, counts, log, observed};

/// Five batches under a lease; the process is asked to stop while the `stop_at`th is at work.
fn engine(app: &TestApp, worker: &str, stop_at: i64) -> Engine {
    let (handle, shutdown) = Shutdown::new();
    let handle: Arc<ShutdownHandle> = Arc::new(handle);
    let settings = EngineSettings {
        worker: worker.to_owned(),
        ..EngineSettings::default()
    };
    let work = Errands::doing(move |id, run| {
        let handle = handle.clone();
        Box::pin(async move {
            let mut tx = run.begin().await?;
            let (version, mut step) = batch(&mut tx).await?;
            let lease = run.lease(&mut tx, &BATCH, 1, version).await?;
            tx.commit("errand.lease").await?;
            while step < 5 {
                run.checkpoint()?;
                step += 1;
                if step == stop_at {
                    handle.ask();
                }
                let mut tx = run.begin().await?;
                log(&mut tx, id, step).await?;
                assert!(
                    lease
                        .advance(&mut tx, Progress::none().set("step", step))
                        .await?
                );
                tx.commit("errand.batch").await?;
            }
            let mut tx = run.begin().await?;
            assert!(lease.finish(&mut tx).await?);
            tx.succeed("errand.done").await
        })
    });
    Engine::new(app.db.clone(), settings)
        .with(work)
        .with_shutdown(shutdown)
}

async fn batch(
    tx: &mut counterfoil_task::Fenced<'_>,
) -> Result<(i64, i64), counterfoil_task::WorkError> {
    use counterfoil_db::{Read, sql};
    let query = sql!("SELECT lease_version, step FROM errand_batch WHERE id = 1");
    let row = tx.row(query).await?.expect("a batch");
    Ok((row.int("lease_version")?, row.int("step")?))
}

on_every_database! {
    async fn a_stop_between_batches_hands_the_task_back_and_burns_nothing(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        desk.by_hand(1, "retry_count, next_execute_time", &format!("2, {}", desk.minutes(-3)))
            .await;
        let first = engine(&app, "first", 2);
        let summary = first.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 1, 0]);
        assert!(summary.is_success() && summary.errors.is_empty(), "{summary:?}");
        assert_eq!(desk.state(1).await, "0|2|1|NULL");
        let due = "SELECT COUNT(*) FROM fi_async_task WHERE next_execute_time IS NULL
            OR next_execute_time <= ";
        assert_eq!(app.value(&format!("{due}{}", desk.minutes(0))).await, "1");
        assert_eq!(app.value("SELECT step FROM errand_batch").await, "2");
        let second = engine(&app, "second", 99);
        let summary = second.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0], "at once, from the cursor");
        assert_eq!(app.lines("SELECT step FROM errand_log ORDER BY id").await,
            ["1", "2", "3", "4", "5"]);
        assert_eq!(desk.state(1).await, "2|2|2|NULL");
    }

    async fn a_batch_at_work_is_finished_before_the_process_stops(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        desk.accept(1).await;
        let last = engine(&app, "first", 5);
        let summary = last.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(1).await, "2|0|1|NULL");
    }

    async fn a_stopping_process_claims_nothing_more(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let (handle, shutdown) = Shutdown::new();
        handle.ask();
        let (engine, ran) = observed(&app);
        let engine = engine.with_shutdown(shutdown);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 0, 0, 3, 0]);
        assert!(ran.lock().expect("no panic").is_empty());
        assert_eq!(desk.state(1).await, "0|0|0|NULL");
    }
}
