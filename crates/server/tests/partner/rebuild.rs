//! The repair that adds the side-effect tasks which a finalized callback lacks.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::kinds::SIDE_EFFECT_REBUILD;
use counterfoil_payment::side_effect::rebuild_missing_seeds;
use counterfoil_task::{Kicker, Summary};

use crate::house::{House, LONG};

async fn rebuild(app: &TestApp, parameter: &str) -> Summary {
    let engine = House::engine(app, House::inbox(LONG));
    engine.round(SIDE_EFFECT_REBUILD.handler, parameter).await.expect("a round")
}

const TASKS: &str = "SELECT business_key, task_status, retry_count FROM fi_async_task
    WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT' ORDER BY business_key";

on_every_database! {
    async fn only_what_a_finalized_callback_lacks_is_added(app: TestApp) {
        let house = House::build(&app).await;
        for n in 1..=6 {
            house.order(n, 2, 1).await;
        }
        let progress = "fi_resident_income_payment_review_callback_progress";
        for changed in [
            "UPDATE fi_resident_income_payment_order SET payment_type = 'TREASURY' WHERE id = 2",
            "UPDATE fi_resident_income_payment_order SET status = 90 WHERE id = 3",
        ] {
            app.execute(changed).await;
        }
        app.execute(&format!("UPDATE {progress} SET finalize_time = NULL WHERE id = 4")).await;
        app.execute(&format!("UPDATE {progress} SET main_task_status = 'RUNNING' WHERE id = 5"))
            .await;
        // The sixth has its task, which failed for good; it is not opened again.
        house.seed(6).await;
        app.execute("UPDATE fi_async_task SET task_status = 3, retry_count = 3").await;
        let before = app.lines(&format!("SELECT * FROM {progress} ORDER BY id")).await;
        let summary = rebuild(&app, "").await;
        assert_eq!((summary.selected, summary.succeeded, summary.failed), (2, 2, 0));
        assert_eq!(
            app.lines(TASKS).await,
            [
                "SIDE_EFFECT:1:PARTNER_BILL_REVIEW_RESULT_PUSH|0|0",
                "SIDE_EFFECT:2:PARTNER_BILL_REVIEW_RESULT_PUSH|0|0",
                "SIDE_EFFECT:2:PAYMENT_RESULT_BASE_DATA_BUILD|0|0",
                "SIDE_EFFECT:6:PARTNER_BILL_REVIEW_RESULT_PUSH|3|3",
            ]
        );
        let trace = "SELECT COUNT(*) FROM fi_resident_income_payment_async_operation_log";
        let traced = app.value(trace).await;
        assert_eq!(rebuild(&app, "").await.selected, 0, "again there is nothing to do");
        assert_eq!(app.value(trace).await, traced);
        assert_eq!(app.lines(&format!("SELECT * FROM {progress} ORDER BY id")).await, before);
    }

    async fn one_rows_trouble_does_not_keep_the_others_from_theirs(app: TestApp) {
        let house = House::build(&app).await;
        for n in 1..=3 {
            house.order(n, 2, 0).await;
        }
        // Another task stands under the code of the first one's push.
        house.seed(1).await;
        app.execute("UPDATE fi_async_task SET business_key = 'OTHER'").await;
        let summary = rebuild(&app, "").await;
        assert_eq!((summary.succeeded, summary.failed), (2, 1), "{summary:?}");
        let done = rebuild_missing_seeds(&app.db, &Kicker::none(), 10).await.expect("done");
        assert_eq!((done.selected, done.added, done.errors.len()), (1, 0, 1), "{done:?}");
    }

    async fn a_rebuild_of_named_callbacks_leaves_the_others(app: TestApp) {
        let house = House::build(&app).await;
        house.order(1, 2, 0).await;
        house.order(2, 2, 0).await;
        app.execute("INSERT INTO fi_async_task (id, task_code, task_type, business_key, task_status)
                     VALUES (71, 'RIPRC:1', 'X', 'REVIEW_CALLBACK:1', 2)").await;
        app.execute("UPDATE fi_resident_income_payment_review_callback_progress
                     SET async_task_id = 71 WHERE id = 1").await;
        let summary = rebuild(&app, r#"{"businessKey":"REVIEW_CALLBACK:1"}"#).await;
        assert_eq!((summary.selected, summary.succeeded), (1, 1), "{summary:?}");
        assert_eq!(app.lines(TASKS).await, ["SIDE_EFFECT:1:PARTNER_BILL_REVIEW_RESULT_PUSH|0|0"]);
    }
}
