//! Lost attempts (task-engine.md, "Claiming"): work that kills its process must not kill every
//! process.

use counterfoil_db::Side;
use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_task::{RoundError, WorkError};

use super::errand::{Desk, ERRAND, counts, engine, fail, key, log, observed, succeed};

/// A process that runs errand 1 dies in its batch.
async fn process_dies(app: &TestApp) {
    let crash = Crash {
        point: "errand.batch",
        side: Side::Before,
        passage: 1,
    };
    app.arm(crash);
    let engine = engine(app, |id, run| {
        Box::pin(async move {
            let mut tx = run.begin().await?;
            log(&mut tx, id, 1).await?;
            tx.commit("errand.batch").await?;
            succeed(id, run).await
        })
    });
    let lost = engine.round(ERRAND.handler, "").await;
    assert!(matches!(lost, Err(RoundError::Lost { .. })), "{lost:?}");
    assert!(!app.faults().is_armed());
    app.pass_minutes(10);
}

async fn rerun(app: &TestApp) -> [u32; 5] {
    let parameter = format!(r#"{{"businessKey":"{}"}}"#, key(1));
    counts(
        &observed(app)
            .0
            .round(ERRAND.handler, &parameter)
            .await
            .expect("a round"),
    )
}

on_every_database! {
    async fn after_five_lost_attempts_the_scan_leaves_the_task_and_takes_the_others(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for attempt in 1..=5 {
            process_dies(&app).await;
            assert_eq!(desk.state(1).await, format!("1|0|{attempt}|NULL"));
        }
        desk.accept(2).await;
        let (engine, ran) = observed(&app);
        engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(*ran.lock().expect("no panic"), [2]);
        assert_eq!(desk.state(1).await, "1|0|5|NULL");
        assert_eq!(rerun(&app).await, [1, 1, 1, 0, 0], "a person may");
        assert_eq!(desk.state(1).await, "2|0|6|NULL");
    }

    async fn a_task_that_is_left_to_a_person_takes_no_place_in_the_round(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for _ in 0..5 {
            process_dies(&app).await;
        }
        desk.accept(2).await;
        let round = observed(&app).0.round(ERRAND.handler, r#"{"maxTaskCount":1}"#).await;
        assert_eq!(counts(&round.expect("a round")), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(2).await, "2|0|1|NULL");
    }

    async fn a_verdict_resets_the_counter(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for _ in 0..4 {
            process_dies(&app).await;
        }
        let failing = engine(&app, |_, _| fail("a verdict"));
        failing.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(1).await, "3|1|5|a verdict");
        app.pass_minutes(10);
        for _ in 0..5 {
            process_dies(&app).await;
        }
        assert_eq!(counts(&observed(&app).0.round(ERRAND.handler, "").await.expect("a round")),
            [0; 5]);
        assert_eq!(desk.state(1).await, "1|1|10|a verdict");
    }

    async fn a_hand_back_is_no_verdict(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for _ in 0..4 {
            process_dies(&app).await;
        }
        let stopping = engine(&app, |_, _| Box::pin(async { Err(WorkError::Stopping) }));
        stopping.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(1).await, "0|0|5|NULL");
        process_dies(&app).await;
        let left = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&left), [0; 5], "the fifth lost attempt in a row");
    }
}
