//! Failures (task-engine.md, "Running, failing, fencing"): counted, backed off, kept until a person
//! reruns.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{Summary, WorkError};

use super::errand::{Desk, ERRAND, code, counts, engine, fail, key, log, observed, succeed};

async fn failing_round(app: &TestApp, parameter: &str) -> Summary {
    let engine = engine(app, |_, _| fail("it did not work"));
    engine
        .round(ERRAND.handler, parameter)
        .await
        .expect("a round")
}

on_every_database! {
    async fn three_executions_back_off_ten_fifteen_and_twenty_minutes(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for (retries, minutes) in [(1, 10), (2, 15), (3, 20)] {
            let summary = failing_round(&app, "").await;
            assert_eq!(counts(&summary), [1, 1, 0, 0, 1]);
            assert_eq!(summary.errors[0].task_code, code(1).to_string());
            assert!(summary.errors[0].message.contains("it did not work"), "{summary:?}");
            assert!(!summary.is_success());
            let expected = format!("3|{retries}|{retries}|it did not work");
            assert_eq!(desk.state(1).await, expected);
            assert_eq!(desk.due_in(1).await, Some(minutes));
            app.pass_minutes(minutes - 1);
            assert_eq!(counts(&failing_round(&app, "").await), [0; 5], "too early");
            app.pass_minutes(1);
        }
        let before = desk.row(1).await;
        app.pass_minutes(10_000);
        assert_eq!(counts(&failing_round(&app, "").await), [0; 5], "exhausted");
        assert_eq!(desk.row(1).await, before);
    }

    async fn a_rerun_by_a_person_does_not_reset_the_count(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "task_status, retry_count", "3, 3").await;
        let parameter = format!(r#"{{"businessKey":"{}"}}"#, key(1));
        failing_round(&app, &parameter).await;
        assert_eq!(desk.state(1).await, "3|4|1|it did not work");
        assert_eq!(desk.due_in(1).await, Some(25));
        desk.raw("UPDATE fi_async_task SET retry_count = 40").await;
        failing_round(&app, &parameter).await;
        assert_eq!(desk.state(1).await, "3|41|2|it did not work");
        assert_eq!(desk.due_in(1).await, Some(60));
    }

    async fn a_retry_count_of_null_counts_as_zero(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "retry_count, max_retry_count", "NULL, NULL").await;
        failing_round(&app, "").await;
        assert_eq!(desk.state(1).await, "3|1|1|it did not work");
        assert_eq!(desk.due_in(1).await, Some(10));
    }

    async fn a_message_is_cut_to_a_thousand_characters_of_any_width(app: TestApp) {
        let desk = Desk::open(&app).await;
        for letter in ["账", "a", "é", "🏠"] {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.accept(1).await;
            let engine = engine(&app, move |_, _| {
                Box::pin(async move {
                    Err(WorkError::failed("errand-failed", letter.repeat(1_001)))
                })
            });
            engine.round(ERRAND.handler, "").await.expect("a round");
            let message = app.value("SELECT error_message FROM fi_async_task").await;
            assert_eq!(message, letter.repeat(1_000));
        }
    }

    async fn success_clears_message_and_due_time_and_keeps_the_count(app: TestApp) {
        let desk = Desk::open(&app).await;
        let values = format!("3, 2, 'old trouble', {}", desk.minutes(-1));
        let columns = "task_status, retry_count, error_message, next_execute_time";
        desk.by_hand(1, columns, &values).await;
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(1).await, "2|2|1|NULL");
        assert_eq!(desk.due_in(1).await, None);
    }

    async fn a_failure_takes_its_own_batch_back_and_keeps_the_ones_before(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        let engine = engine(&app, |id, run| {
            Box::pin(async move {
                let mut tx = run.begin().await?;
                log(&mut tx, id, 1).await?;
                tx.commit("errand.batch").await?;
                let mut tx = run.begin().await?;
                log(&mut tx, id, 2).await?;
                Err(WorkError::failed("errand-failed", "in the second batch"))
            })
        });
        engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(1).await, "3|1|1|in the second batch");
        assert_eq!(app.lines("SELECT step FROM errand_log").await, ["1"]);
    }

    async fn one_failure_does_not_keep_the_others_from_running(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let engine = engine(&app, |id, run| if id == 2 { fail("two") } else { succeed(id, run) });
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 3, 2, 0, 1]);
        assert_eq!(summary.errors.len(), 1);
        assert_eq!(desk.state(3).await, "2|0|1|NULL");
    }
}
