//! Identity (task-engine.md, "Accept or reuse"): before work, key and code are rebuilt from
//! task_data and compared. Nothing is guessed.

use counterfoil_e2e::{TestApp, on_every_database};

use super::errand::{Desk, ERRAND, code, counts, observed};

/// What no failure may touch.
const OTHER_COLUMNS: &str = "SELECT id, task_code, task_type, business_key, task_data,
    max_retry_count, update_user_id, deleted, create_time FROM fi_async_task";

/// Runs the one task of the table and proves that it failed and that nothing else happened.
async fn is_refused(app: &TestApp, why: &str) {
    let before = app.value(OTHER_COLUMNS).await;
    let (engine, ran) = observed(app);
    let summary = engine.round(ERRAND.handler, "").await.expect("a round");
    assert_eq!(counts(&summary), [1, 1, 0, 0, 1], "{why}: {summary:?}");
    assert!(
        ran.lock().expect("no panic").is_empty(),
        "{why}: the work ran"
    );
    let after = "SELECT task_status, retry_count, running_attempt FROM fi_async_task";
    assert_eq!(app.value(after).await, "3|1|1", "{why}");
    assert_eq!(app.value(OTHER_COLUMNS).await, before, "{why}");
    let message = app.value("SELECT error_message FROM fi_async_task").await;
    assert!(
        message != "NULL" && !message.is_empty(),
        "{why}: no message"
    );
}

on_every_database! {
    async fn broken_task_data_fails_the_task_and_changes_nothing_else(app: TestApp) {
        let desk = Desk::open(&app).await;
        for data in [
            "NULL",
            "''",
            "'  '",
            "'{'",
            "'[]'",
            "'{}'",
            "'null'",
            "'7'",
            "'\"ERRAND:7\"'",
            r#"'[7,"ERRAND"]'"#,
            r#"'[{"errandId":7,"taskScene":"ERRAND"}]'"#,
            r#"'{"errandId":7}'"#,
            r#"'{"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":7,"taskScene":"OTHER"}'"#,
            r#"'{"errandId":7,"taskScene":"errand"}'"#,
            r#"'{"errandId":7,"taskScene":""}'"#,
            r#"'{"errandId":7,"taskScene":null}'"#,
            r#"'{"errandId":0,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":-7,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":"7","taskScene":"ERRAND"}'"#,
            r#"'{"errandId":7.0,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":7e0,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":null,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":9223372036854775808,"taskScene":"ERRAND"}'"#,
            r#"'{"errand_id":7,"task_scene":"ERRAND"}'"#,
            r#"'{"errandId":7,"errandId":7,"taskScene":"ERRAND"}'"#,
            r#"'{"errandId":7,"taskScene":"ERRAND"} x'"#,
        ] {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.by_hand(7, "", "").await;
            desk.raw(&format!("UPDATE fi_async_task SET task_data = {data}")).await;
            is_refused(&app, data).await;
        }
    }

    async fn a_key_or_a_code_that_is_not_the_data_s_own_fails_the_task(app: TestApp) {
        let desk = Desk::open(&app).await;
        let other = code(8);
        let upper = code(7).as_str().to_uppercase();
        for change in [
            "business_key = 'ERRAND:8'".to_owned(),
            "business_key = 'ERRAND:7 '".to_owned(),
            "business_key = 'errand:7'".to_owned(),
            "business_key = ''".to_owned(),
            "task_code = 'ER:7'".to_owned(),
            format!("task_code = '{other}'"),
            format!("task_code = '{upper}'"),
            format!("task_code = '{}'", code(7).as_str().replace("ER:", "OT:")),
            r#"task_data = '{"errandId":8,"taskScene":"ERRAND"}'"#.to_owned(),
        ] {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.by_hand(7, "", "").await;
            desk.raw(&format!("UPDATE fi_async_task SET {change}")).await;
            is_refused(&app, &change).await;
        }
    }

    async fn white_space_and_the_order_of_fields_are_no_identity(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(7, "", "").await;
        desk.raw(r#"UPDATE fi_async_task
            SET task_data = '  { "taskScene" : "ERRAND" ,  "errandId" : 7 } '"#).await;
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
    }
}
