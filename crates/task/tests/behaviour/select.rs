//! What a round takes (task-engine.md, "Selecting"), the same on all three databases.

use counterfoil_e2e::{TestApp, on_every_database};

use super::errand::{Desk, ERRAND, code, counts, observed};

/// The ids in the order the round ran them.
async fn ran(app: &TestApp, parameter: &str) -> Vec<i64> {
    let (engine, ran) = observed(app);
    let summary = engine
        .round(ERRAND.handler, parameter)
        .await
        .expect("a round");
    let ran = ran.lock().expect("no panic").clone();
    assert_eq!(summary.succeeded as usize, ran.len(), "{summary:?}");
    ran
}

on_every_database! {
    async fn due_tasks_come_null_first_then_by_due_time_retries_and_id(app: TestApp) {
        let desk = Desk::open(&app).await;
        let rows = [
            // id, due (minutes), status, retries
            (1, Some(-1), 0, "2"),
            (2, Some(-5), 3, "1"),
            (3, None, 0, "2"),
            (4, None, 3, "NULL"),
            (5, Some(-5), 0, "0"),
            (6, None, 0, "0"),
            (7, Some(0), 3, "0"),
            (8, Some(-5), 0, "1"),
            (9, None, 1, "1"),
            (10, Some(-1), 1, "2"),
        ];
        for (id, due, status, retries) in rows {
            let due = due.map_or("NULL".to_owned(), |minutes| desk.minutes(minutes));
            let values = format!("{due}, {status}, {retries}, {}", desk.minutes(-10));
            let columns = "next_execute_time, task_status, retry_count, update_time";
            desk.by_hand(id, columns, &values).await;
        }
        assert_eq!(ran(&app, r#"{"maxTaskCount":4}"#).await, [4, 6, 9, 3]);
        assert_eq!(ran(&app, "").await, [5, 2, 8, 1, 10, 7]);
    }

    async fn due_times_are_told_apart_to_the_microsecond(app: TestApp) {
        let desk = Desk::open(&app).await;
        let at = |micros| desk.at(chrono::TimeDelta::microseconds(micros));
        for (id, due) in [(1, -1), (2, -2_000), (3, 0), (4, -1_000_000), (5, -1_999_999), (6, 1)] {
            desk.by_hand(id, "next_execute_time", &at(due)).await;
        }
        assert_eq!(ran(&app, "").await, [5, 4, 2, 1, 3]);
    }

    async fn a_limit_of_zero_stays_zero_and_no_limit_is_three(app: TestApp) {
        let desk = Desk::open(&app).await;
        let rows = [
            (1, "0", "0"), (2, "NULL", "0"), (3, "2", "NULL"), (4, "3", "NULL"),
            (5, "NULL", "NULL"),
            (6, "4", "5"), (7, "5", "5"), (8, "0", "1"), (9, "0", "-1"),
        ];
        for (id, retries, most) in rows {
            let values = format!("{retries}, {most}");
            desk.by_hand(id, "retry_count, max_retry_count", &values).await;
        }
        let mut ran = ran(&app, "").await;
        ran.sort_unstable();
        assert_eq!(ran, [3, 5, 6, 8]);
    }

    async fn what_is_not_due_deleted_ended_or_of_another_type_is_not_selected(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "next_execute_time", &desk.at(chrono::TimeDelta::microseconds(1))).await;
        desk.by_hand(2, "deleted", "1").await;
        desk.by_hand(3, "task_status", "2").await;
        desk.by_hand(4, "task_status", "4").await;
        desk.by_hand(5, "", "").await;
        desk.raw("UPDATE fi_async_task SET task_type = 'OTHER' WHERE id = 5").await;
        let before = app.lines("SELECT * FROM fi_async_task ORDER BY id").await;
        let (engine, _) = observed(&app);
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [0; 5]);
        assert_eq!(app.lines("SELECT * FROM fi_async_task ORDER BY id").await, before);
    }

    async fn a_scan_takes_fifty_by_default_and_two_hundred_at_most(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=300 {
            desk.by_hand(id, "", "").await;
        }
        assert_eq!(ran(&app, "").await.len(), 50);
        assert_eq!(ran(&app, r#"{"maxTaskCount":-3}"#).await.len(), 50);
        assert_eq!(ran(&app, r#"{"maxTaskCount":100000}"#).await.len(), 200);
    }

    async fn a_person_names_tasks_by_codes_or_keys_in_any_status_by_id(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=8 {
            desk.by_hand(id, "task_status, retry_count, next_execute_time, update_time",
                &format!("{}, 9, {}, {}", id % 5, desk.minutes(60), desk.minutes(-10))).await;
        }
        let parameter = format!(
            r#"{{"data":{{"taskCode":" {c8} ","taskCodes":["{c3}","","{c8}","{c4}"],
                "businessKey":"ERRAND:7","businessKeys":["ERRAND:3","ERRAND:1","ERRAND:2"]}}}}"#,
            c3 = code(3),
            c4 = code(4),
            c8 = code(8),
        );
        let (engine, ran) = observed(&app);
        let summary = engine.round(ERRAND.handler, &parameter).await.expect("a round");
        // 2 and 7 are SUCCESS, 4 is CANCELLED: selected, and skipped.
        assert_eq!(counts(&summary), [6, 3, 3, 3, 0]);
        assert_eq!(*ran.lock().expect("no panic"), [1, 3, 8]);
    }

    async fn a_person_gets_at_most_the_number_he_says(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in [3, 1, 2] {
            desk.by_hand(id, "", "").await;
        }
        let parameter = r#"{"businessKeys":["ERRAND:3","ERRAND:2","ERRAND:1"],"maxTaskCount":2}"#;
        assert_eq!(ran(&app, parameter).await, [1, 2]);
    }

    async fn a_selector_does_not_reach_deleted_tasks_or_those_of_another_type(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "deleted", "1").await;
        desk.by_hand(2, "", "").await;
        desk.raw("UPDATE fi_async_task SET task_type = 'OTHER' WHERE id = 2").await;
        let parameter = r#"{"businessKeys":["ERRAND:1","ERRAND:2","ERRAND:3"]}"#;
        assert_eq!(ran(&app, parameter).await, [0; 0]);
    }

    async fn a_parameter_that_is_refused_runs_nothing(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "", "").await;
        let before = desk.row(1).await;
        for parameter in [r#"{"businessKey":"ERRAND:1""#, r#"{"businesskey":"ERRAND:1"}"#,
            r#"{"taskCode":" "}"#, r#"{"businessKeys":["", " "]}"#, "[]", "null", "7",
            r#"{"maxTaskCount":"1"}"#, r#"{"data":{"data":{}}}"#] {
            let (engine, _) = observed(&app);
            let refused = engine.round(ERRAND.handler, parameter).await;
            assert!(matches!(refused, Err(counterfoil_task::RoundError::Parameter(_))),
                "{parameter}: {refused:?}");
            assert_eq!(desk.row(1).await, before, "{parameter}");
        }
    }
}
