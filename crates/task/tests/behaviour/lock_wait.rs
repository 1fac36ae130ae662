//! A lock that somebody else keeps ends a task's try, never a round's patience
//! (task-engine.md, "Running, failing, fencing").

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use counterfoil_db::{Dialect, Query, Read, Tx, transact};
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{Progress, Run, WorkError};

use super::errand::{BATCH, Desk, ERRAND, code, counts, engine, observed};

/// How long a statement waits for a lock here. MariaDB makes a second of it.
const SHORT: Duration = Duration::from_millis(150);

/// Another connection changes something and does not commit; on SQLite that is the one write lock.
async fn hold(app: &TestApp, statement: &str) -> Tx {
    let mut tx = app.db.begin().await.expect("a transaction");
    tx.execute(Query::built(statement.to_owned())).await.expect("a lock");
    tx
}

async fn lease_batch(run: &Run<'_>) -> Result<(), WorkError> {
    let mut tx = run.begin().await?;
    run.lease(&mut tx, &BATCH, 1, 0).await?.advance(&mut tx, Progress::none()).await?;
    tx.commit("errand.lease").await
}

async fn touch_row(run: &Run<'_>, tries: &AtomicU32) -> Result<(), WorkError> {
    tries.fetch_add(1, Ordering::SeqCst);
    let mut tx = run.begin().await?;
    tx.execute(Query::new("UPDATE errand_log SET step = 2 WHERE errand_id = 7")).await?;
    tx.commit("errand.touch").await
}

on_every_database! {
    async fn a_row_that_another_keeps_locked_fails_the_task_after_three_tries(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        desk.raw("INSERT INTO errand_batch (id) VALUES (1)").await;
        desk.raw("INSERT INTO errand_log (errand_id, step) VALUES (7, 1)").await;
        let worker = app.process_waiting(SHORT).await;
        let tries = Arc::new(AtomicU32::new(0));
        let (counted, other) = (tries.clone(), app.clone());
        let engine = engine(&worker, move |_, run| {
            let (tries, other) = (counted.clone(), other.clone());
            Box::pin(async move {
                transact!(lease_batch(run))?;
                let held = hold(&other, "UPDATE errand_log SET step = 3").await;
                let touched = transact!(touch_row(run, &tries));
                held.rollback().await?;
                touched?;
                run.begin().await?.succeed("errand.done").await
            })
        });
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 0, 1]);
        assert_eq!(tries.load(Ordering::SeqCst), 3, "whole transactions");
        let state = desk.state(1).await;
        assert!(state.starts_with("3|1|1|another connection held a lock for too long"), "{state}");
        assert_eq!(desk.due_in(1).await, Some(10), "and it comes back by itself");
        let batch = app.value("SELECT status, error_code FROM errand_batch").await;
        assert_eq!(batch, "FAILED|lock-wait-timeout");
        assert_eq!(desk.logged("step = 1").await, 1, "nothing was written");
        worker.db.close().await;
    }

    async fn a_task_whose_own_row_is_kept_locked_is_named_and_the_others_run(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let before = desk.row(2).await;
        let id = desk.id(2).await;
        let lock = format!("UPDATE fi_async_task SET error_message = 'mine' WHERE id = {id}");
        let worker = app.process_waiting(SHORT).await;
        let held = hold(&app, &lock).await;
        let summary = observed(&worker).0.round(ERRAND.handler, "").await.expect("a round");
        held.rollback().await.expect("a rollback");
        if app.db.dialect() == Dialect::Sqlite {
            assert_eq!(counts(&summary), [3, 0, 0, 0, 3], "one lock for the whole file");
        } else {
            assert_eq!(counts(&summary), [3, 2, 2, 0, 1]);
            assert_eq!(summary.errors[0].task_code, code(2).to_string());
        }
        assert!(summary.errors[0].message.contains("held a lock for too long"), "{summary:?}");
        assert_eq!(desk.row(2).await, before, "nothing counted, nothing changed");
        let summary = observed(&worker).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(summary.failed, 0);
        assert_eq!(desk.logged("step = 1").await, 3);
        worker.db.close().await;
    }
}
