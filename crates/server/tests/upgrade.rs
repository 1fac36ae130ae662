//! Old and new binaries side by side on one database.

use std::collections::BTreeSet;

use counterfoil_db::Migration;
use counterfoil_e2e::{Bill, Fixture, TestApp, on_every_database};
use counterfoil_server::config::Config;
use counterfoil_server::serve::{Role, Service};
use counterfoil_server::wiring;
use serde_json::Value;

const S03: &str = "residentIncomePaymentSelectionSubmitBuildAsyncTask";
/// Code, type, business key and data of tasks as the first binary wrote them. Never changed: they
/// are what stands in databases.
const OF_THE_FIRST: [(&str, &str, &str, &str); 6] = [
    (
        "RIPSB:aace449381eb3b4a096d4ede39561330",
        "RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD",
        "SUBMIT_BUILD:123456789",
        "{\"paymentOrderVersionId\":123456789,\"taskScene\":\"SUBMIT_BUILD\"}",
    ),
    (
        "RIPLA:e2f3729a9930dff9b4214538a97460b9",
        "RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE",
        "LOCK_ACTIVATE:123456789",
        "{\"paymentOrderVersionId\":123456789,\"taskScene\":\"LOCK_ACTIVATE\"}",
    ),
    (
        "RIPAP:6b5aa87414825eb8bb1c0a02a3524206",
        "RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE",
        "AUDIT_PLAN_CREATE:123456789",
        "{\"paymentOrderVersionId\":123456789,\"taskScene\":\"AUDIT_PLAN_CREATE\"}",
    ),
    (
        "RIPLR:97e8fb236ffa45559b8089d1d82df531",
        "RESIDENT_INCOME_PAYMENT_LOCK_RELEASE",
        "LOCK_RELEASE:123456789:SUBMIT_CONFLICT",
        concat!(
            r#"{"paymentOrderVersionId":123456789,"taskScene":"LOCK_RELEASE","#,
            r#""releaseReason":"SUBMIT_CONFLICT"}"#
        ),
    ),
    (
        "RIPRC:f13531f1ca508c24e5bb0a5200905303",
        "RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY",
        "REVIEW_CALLBACK:1:2:3:4:5:PASS",
        concat!(
            r#"{"paymentOrderId":1,"reviewPlanId":2,"reviewPassed":true,"reviewRemark":null,"#,
            r#""reviewTime":null,"dataVersion":3,"approvalAttempt":4,"submitRound":5}"#
        ),
    ),
    (
        "RIPBS:f6a124346914d6a98bbd07a1e83f14ea",
        "RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT",
        "BILL_SNAPSHOT:11:12",
        "{\"progressId\":11,\"shardId\":12}",
    ),
];

async fn command(app: &TestApp, words: &[&str]) -> (i32, Value) {
    let done = tokio::process::Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["--database", app.url(), "--json"])
        .args(words)
        .kill_on_drop(true)
        .output()
        .await
        .expect("the process");
    let said = serde_json::from_slice(&done.stdout).unwrap_or(Value::Null);
    (done.status.code().expect("a code"), said)
}

/// What a newer binary leaves: a column more, a table more, and its number.
async fn migrated_by_a_newer_one(app: &TestApp) {
    let newer = Migration {
        number: 9_999,
        name: "of a newer binary",
        ddl: "ALTER TABLE fi_async_task ADD COLUMN of_the_newer VARCHAR(8) NULL;
CREATE TABLE IF NOT EXISTS of_the_newer (id {id}) {table_options};
",
    };
    let mut steps = wiring::migrations();
    steps.push(newer);
    counterfoil_db::migrate(&app.db, &steps).await.expect("migrations");
}

on_every_database! {
    async fn an_older_binary_does_not_begin_on_a_newer_database(app: TestApp) {
        migrated_by_a_newer_one(&app).await;
        for words in [&["serve"][..], &["migrate"], &["order", "list"], &["check"]] {
            let (code, said) = command(&app, words).await;
            assert_eq!(code, 2, "{words:?} {said}");
            let text = said.to_string();
            assert!(text.contains("[9999]") && text.contains("older than the database"), "{text}");
        }
        let (code, said) = command(&app, &["order", "list"]).await;
        assert_eq!((code, &said["code"]), (2, &Value::from("database-newer")));
    }

    async fn a_running_binary_goes_on_while_a_newer_one_migrates(app: TestApp) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let mut config = Config::default();
        config.server.listen = "127.0.0.1:0".into();
        config.signing.complete(&mut config.apps);
        let roles = BTreeSet::from([Role::Api, Role::Review]);
        let service = Service::start(&app.db, &config, &roles).await.expect("the old binary");
        migrated_by_a_newer_one(&app).await;
        let fixture = Fixture(&app);
        fixture.records(1).await;
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        fixture.submit(session).await;
        let url = format!("http://{}", service.address);
        let engine = wiring::engine(&app.db, &config, &url).expect("its engine");
        let summary = engine.round(S03, "").await.expect("a round");
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        service.stop().await;
    }

    async fn tasks_of_every_kind_that_the_first_binary_accepted_are_understood(app: TestApp) {
        counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        for (code, task_type, key, data) in OF_THE_FIRST {
            app.execute(&format!(
                "INSERT INTO fi_async_task (task_code, task_type, business_key, task_data)
                 VALUES ('{code}', '{task_type}', '{key}', '{data}')"
            ))
            .await;
        }
        let engine = app.engine();
        for kind in engine.kinds() {
            let is_its = |code: &str| code.split(':').next() == Some(kind.prefix);
            let Some(first) = OF_THE_FIRST.iter().find(|(code, ..)| is_its(code)) else {
                continue;
            };
            let summary = engine.round(kind.handler, "").await.expect("a round");
            assert_eq!((summary.selected, summary.claimed), (1, 1), "{}", first.2);
            // What it is about is not here; which task it is must be beyond doubt.
            for trouble in &summary.errors {
                let doubts = ["task_data", "business_key is", "task_code is"];
                let is_doubted = doubts.iter().any(|doubt| trouble.message.contains(doubt));
                assert!(!is_doubted, "{}: {}", first.2, trouble.message);
            }
        }
    }

    async fn a_task_that_the_first_binary_accepted_is_done_by_a_later_one(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(1).await;
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        let version = fixture.submit(session).await.version;
        let (key, code) = (format!("SUBMIT_BUILD:{version}"), "RIPSB");
        let code = counterfoil_protocol::TaskCode::of(code, &key);
        app.execute("DELETE FROM fi_async_task").await;
        app.execute(&format!(
            "INSERT INTO fi_async_task (task_code, task_type, business_key, task_data, task_status,
               retry_count, max_retry_count, running_attempt, error_message)
             VALUES ('{code}', '{}', '{key}',
               '{{\"paymentOrderVersionId\":{version},\"taskScene\":\"SUBMIT_BUILD\"}}',
               3, 1, 3, 1, 'failed once under the first binary')",
            OF_THE_FIRST[0].1
        ))
        .await;
        counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let summary = app.round(S03).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        let task = "SELECT task_status, retry_count, running_attempt FROM fi_async_task
                    WHERE task_type = 'RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD'";
        assert_eq!(app.value(task).await, "2|1|2");
    }
}
