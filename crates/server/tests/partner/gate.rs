//! When a side effect may run, and what a partner reads then.

use counterfoil_e2e::on_every_database;

use crate::house::{House, RENT_ABNORMAL};

on_every_database! {
    async fn a_partner_reads_what_the_review_said_of_each_bill(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET line_status = 40
                     WHERE id = 102").await;
        let summary = house.round().await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        assert_eq!(house.chunks(1).await, "SUCCESS|1");
        assert_eq!(house.task(1).await, "2|0");
        let body = app.value("SELECT body FROM partner_received").await;
        let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["idempotencyKey"], "PARTNER_REVIEW_RESULT:1:1:1:1:1");
        assert_eq!((&body["orderNo"], &body["chunkCount"]), (&"PO-1".into(), &1.into()));
        let lines: Vec<String> = body["lines"].as_array().expect("lines").iter().map(|line| {
            format!("{}|{}|{}", line["stationId"], line["result"], line["reason"])
        }).collect();
        let unqualified = format!(r#""S3"|"校核不通过"|"{RENT_ABNORMAL}""#);
        assert_eq!(
            lines,
            [r#""S1"|"校核通过"|null"#, r#""S2"|"校核通过"|null"#, unqualified.as_str()]
        );
        let answer = app.value(
            "SELECT response_body FROM fi_resident_income_payment_external_log").await;
        assert!(answer.contains(r#""state":1"#), "{answer}");
        // Again: nothing is sent, nothing changes.
        house.later();
        assert_eq!(house.round().await.selected, 0);
        assert_eq!(house.rerun(1).await.skipped, 1);
        assert_eq!(house.received(1).await, "1");
    }

    async fn nothing_is_sent_before_the_main_business_is_effective(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        let progress = "fi_resident_income_payment_review_callback_progress";
        for not_yet in [
            "finalize_time = NULL",
            "main_task_status = 'RUNNING', finalize_time = '2026-09-08 01:00:00'",
            "main_task_status = 'SUPERSEDED'",
            "main_task_status = 'SUCCESS', deleted = 1",
        ] {
            app.execute(&format!("UPDATE {progress} SET {not_yet}")).await;
            let summary = house.rerun(1).await;
            assert_eq!((summary.failed, summary.succeeded), (1, 0), "{not_yet}: {summary:?}");
            assert_eq!(house.chunks(1).await, "", "{not_yet}");
        }
        // The refresh may still be under way.
        app.execute(&format!("UPDATE {progress} SET deleted = 0, refresh_ready = 0")).await;
        assert_eq!(house.rerun(1).await.succeeded, 1);
    }

    async fn of_a_cancelled_order_nothing_more_is_said(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "idempotent").await;
        house.trouble(counterfoil_server::api::partner::Trouble::Refuse);
        house.round().await;
        house.well_again();
        app.execute("UPDATE fi_resident_income_payment_order SET status = 90").await;
        house.later();
        let summary = house.round().await;
        assert_eq!((summary.cancelled, summary.failed), (1, 0), "{summary:?}");
        assert_eq!((house.task(1).await, house.chunks(1).await),
            ("4|1".to_owned(), "FAIL|1".to_owned()));
        assert_eq!(house.received(1).await, "");
    }

    async fn a_line_without_a_result_keeps_everything_at_home(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET line_status = 10
                     WHERE id = 103").await;
        assert_eq!(house.round().await.failed, 1);
        assert!(house.message(1).await.contains("line 103 (type 20, status 10)"));
        assert_eq!(house.chunks(1).await, "");
        assert_eq!(house.received(1).await, "");
    }

    async fn every_rule_of_the_push_can_break_and_names_the_row(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        house.round().await;
        let broken = async || {
            let mut names = Vec::new();
            for rule in counterfoil_payment::partner_push::RULES {
                if let Some(breach) = counterfoil_task::check(&app.db, rule).await.expect("read") {
                    assert_eq!(breach.rows.len(), 1, "{breach:?}");
                    names.push(rule.name);
                }
            }
            names
        };
        assert!(broken().await.is_empty());
        app.execute("UPDATE fi_resident_income_payment_external_log SET status = 'WAIT_PROCESS'")
            .await;
        assert_eq!(broken().await, ["pushed-means-every-chunk-is-settled"]);
        app.execute("DELETE FROM fi_async_task").await;
        app.pass_minutes(300);
        assert_eq!(broken().await, ["no-delivery-hangs"]);
        app.execute("UPDATE fi_resident_income_payment_external_log SET status = 'UNKNOWN'").await;
        assert!(broken().await.is_empty());
        app.pass_minutes(24 * 60 + 1);
        assert_eq!(broken().await, ["no-delivery-stays-unknown"]);
    }

    async fn a_base_data_build_fails_visibly_where_nothing_builds(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE fi_resident_income_payment_order SET payment_type = 'TREASURY'").await;
        let engine = House::engine(&app, House::inbox(crate::house::LONG));
        let rebuilt = engine
            .round(counterfoil_payment::kinds::SIDE_EFFECT_REBUILD.handler, "")
            .await
            .expect("a round");
        assert_eq!(rebuilt.succeeded, 1, "{rebuilt:?}");
        let summary = house.round().await;
        assert_eq!((summary.succeeded, summary.failed), (1, 1), "{summary:?}");
    }
}
