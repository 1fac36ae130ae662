//! The claim (task-engine.md, "Claiming"): one conditional update, won or lost.

use chrono::TimeDelta;
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::Summary;

use super::errand::{Desk, ERRAND, counts, engine, fail, key, observed, succeed};

async fn scan(app: &TestApp) -> Summary {
    observed(app).0.round(ERRAND.handler, "").await.expect("a round")
}

async fn rerun(app: &TestApp, id: i64) -> Summary {
    let parameter = format!(r#"{{"businessKey":"{}"}}"#, key(id));
    observed(app).0.round(ERRAND.handler, &parameter).await.expect("a round")
}

/// A round whose first errand changes the second's row by hand before the second is claimed.
async fn changed_meanwhile(app: &TestApp, change: &str, parameter: &str) -> Summary {
    let (inner, change) = (app.clone(), change.to_owned());
    let engine = engine(app, move |id, run| {
        let (app, change) = (inner.clone(), change.clone());
        Box::pin(async move {
            if id == 1 {
                let text = format!("UPDATE fi_async_task SET {change} WHERE id = 2");
                Desk(&app).raw(&text).await;
            }
            succeed(id, run).await
        })
    });
    engine.round(ERRAND.handler, parameter).await.expect("a round")
}

on_every_database! {
    async fn success_and_cancelled_are_never_opened_again_also_not_by_a_person(app: TestApp) {
        let desk = Desk::open(&app).await;
        for (id, status) in [(1, "2"), (2, "4")] {
            let values = format!("{status}, {}", desk.minutes(-60));
            desk.by_hand(id, "task_status, update_time", &values).await;
            let before = desk.row(id).await;
            assert_eq!(counts(&scan(&app).await), [0; 5]);
            assert_eq!(counts(&rerun(&app, id).await), [1, 0, 0, 1, 0]);
            assert_eq!(desk.row(id).await, before);
        }
        assert_eq!(desk.logged("1 = 1").await, 0);
    }

    async fn a_running_task_is_taken_at_ten_minutes_and_not_a_microsecond_before(app: TestApp) {
        let desk = Desk::open(&app).await;
        let touched = desk.at(TimeDelta::minutes(-10) + TimeDelta::microseconds(1));
        let values = format!("1, 4, {touched}");
        desk.by_hand(1, "task_status, running_attempt, update_time", &values).await;
        let before = desk.row(1).await;
        assert_eq!(counts(&scan(&app).await), [1, 0, 0, 1, 0]);
        assert_eq!(counts(&rerun(&app, 1).await), [1, 0, 0, 1, 0]);
        assert_eq!(desk.row(1).await, before);
        app.clock.advance(TimeDelta::microseconds(1));
        assert_eq!(counts(&scan(&app).await), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(1).await, "2|0|5|NULL");
    }

    async fn a_person_takes_a_stale_task_too(app: TestApp) {
        let desk = Desk::open(&app).await;
        let values = format!("1, {}, 9, {}", desk.minutes(-10), desk.minutes(60));
        let columns = "task_status, update_time, retry_count, next_execute_time";
        desk.by_hand(1, columns, &values).await;
        assert_eq!(counts(&scan(&app).await), [0; 5]);
        assert_eq!(counts(&rerun(&app, 1).await), [1, 1, 1, 0, 0]);
        assert_eq!(desk.state(1).await, "2|9|1|NULL");
    }

    async fn an_attempt_of_null_counts_as_zero_and_the_claim_raises_it(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "running_attempt, retry_count", "NULL, NULL").await;
        let engine = engine(&app, |_, _| fail("no"));
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 0, 1]);
        assert_eq!(desk.state(1).await, "3|1|1|no");
    }

    async fn the_attempt_rises_with_each_claim_and_nothing_lowers_it(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        for attempt in 1..=3 {
            let engine = engine(&app, |_, _| fail("no"));
            engine.round(ERRAND.handler, "").await.expect("a round");
            assert_eq!(desk.state(1).await, format!("3|{attempt}|{attempt}|no"));
            app.pass_minutes(60);
        }
        assert!(desk.accept(1).await.is_blocked());
        rerun(&app, 1).await;
        assert_eq!(desk.state(1).await, "2|3|4|NULL");
    }

    async fn a_claim_checks_again_what_the_scan_saw(app: TestApp) {
        let desk = Desk::open(&app).await;
        let changes = [
            format!("next_execute_time = {}", desk.minutes(1)),
            "retry_count = 3".into(),
            "max_retry_count = 0".into(),
            "running_attempt = 1".into(),
            "task_status = 2".into(),
            "task_status = 4".into(),
            format!("task_status = 1, update_time = {}", desk.minutes(0)),
            "deleted = 1".into(),
            "task_type = 'OTHER'".into(),
        ];
        for change in changes {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.by_hand(1, "", "").await;
            desk.by_hand(2, "", "").await;
            let summary = changed_meanwhile(&app, &change, "").await;
            assert_eq!(counts(&summary), [2, 1, 1, 1, 0], "{change}");
            let expected = app.value("SELECT COUNT(*) FROM fi_async_task WHERE id = 2
                AND running_attempt IN (0, 1) AND error_message IS NULL").await;
            assert_eq!(expected, "1", "{change}");
            assert_eq!(desk.logged("errand_id = 2").await, 0, "{change}");
        }
    }

    async fn a_person_skips_the_due_time_and_the_limit_and_nothing_else(app: TestApp) {
        let desk = Desk::open(&app).await;
        let both = r#"{"businessKeys":["ERRAND:1","ERRAND:2"]}"#;
        let changes = [
            (format!("next_execute_time = {}", desk.minutes(1)), true),
            ("retry_count = 3".into(), true),
            ("max_retry_count = 0".into(), true),
            ("running_attempt = 1".into(), false),
            ("task_status = 2".into(), false),
            ("task_status = 4".into(), false),
            (format!("task_status = 1, update_time = {}", desk.minutes(0)), false),
            (format!("task_status = 1, update_time = {}", desk.minutes(-10)), true),
            ("deleted = 1".into(), false),
            ("task_type = 'OTHER'".into(), false),
        ];
        for (change, claimed) in changes {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.raw("DELETE FROM errand_log").await;
            desk.by_hand(1, "", "").await;
            desk.by_hand(2, "", "").await;
            let summary = changed_meanwhile(&app, &change, both).await;
            assert_eq!(summary.claimed, 1 + u32::from(claimed), "{change}: {summary:?}");
            assert_eq!(summary.skipped, u32::from(!claimed), "{change}: {summary:?}");
            assert_eq!(desk.logged("errand_id = 2").await, i64::from(claimed), "{change}");
        }
    }

    async fn two_processes_scan_at_once_and_every_task_runs_once(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=20 {
            desk.accept(id).await;
        }
        let other = app.second_process().await;
        let (one, two) = tokio::join!(scan(&app), scan(&other));
        other.db.close().await;
        assert_eq!((one.failed, two.failed), (0, 0), "{one:?} {two:?}");
        assert_eq!(one.succeeded + two.succeeded, 20, "{one:?} {two:?}");
        assert_eq!(desk.logged("1 = 1").await, 20);
        let attempts = app.value("SELECT MAX(running_attempt) FROM fi_async_task").await;
        assert_eq!(attempts, "1");
    }
}
