//! What leaves the tables that rounds scan, what stays, and what is known of it afterwards.

use counterfoil_db::Read;
use counterfoil_e2e::{Dialect, TestApp, on_every_database};
use counterfoil_payment::partner_push::delivery;
use counterfoil_protocol::DeliveryId;
use counterfoil_server::retention::{RETENTION, Retention, RetentionConfig};
use counterfoil_server::wiring;
use counterfoil_task::{
    Acceptance, Engine, EngineSettings, Kicker, Seed, Subject, TaskStatus, accept_or_reuse,
};

/// Batches of two, so that five rows take three.
const CONFIG: RetentionConfig =
    RetentionConfig { task_days: 400, delivery_days: 400, manifest_days: 90, batch_rows: 2 };

fn engine(app: &TestApp) -> Engine {
    Engine::new(app.db.clone(), EngineSettings::default()).with_turns(Retention(CONFIG))
}

/// Five snapshot tasks of 2025-01-01 with their traces, one that is young, one that failed, and an
/// S03 of 2025-01-01; deliveries and manifests likewise.
const ROWS: &str = "
    INSERT INTO fi_async_task (id, task_code, task_type, business_key, task_data, task_status,
      create_time, update_time)
    VALUES (1, 'RIPBS:1', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:1', '{}', 2,
        '{old}', '{old}'),
      (2, 'RIPBS:2', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:2', '{}', 2,
        '{old}', '{old}'),
      (3, 'RIPBS:3', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:3', '{}', 4,
        '{old}', '{old}'),
      (4, 'RIPBS:4', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:4', '{}', 2,
        '{old}', '{old}'),
      (5, 'RVDN:5', 'REVIEW_DECISION_NOTICE', 'REVIEW_DECISION:5:PASS', '{}', 2,
        '{old}', '{old}'),
      (6, 'RIPBS:6', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:6', '{}', 2,
        '{young}', '{young}'),
      (7, 'RIPBS:7', 'RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT', 'BILL_SNAPSHOT:7:7', '{}', 3,
        '{old}', '{old}'),
      (8, 'RIPSB:8', 'RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD', 'SUBMIT_BUILD:8', '{}', 2,
        '{old}', '{old}');
    INSERT INTO fi_resident_income_payment_async_operation_log (id, task_id, task_code, task_type,
      business_key, action, payment_order_id, result)
    SELECT id, id, task_code, task_type, business_key, 'ACCEPT', 9, 'PENDING' FROM fi_async_task;
    INSERT INTO fi_resident_income_payment_order (id, order_no, status)
    VALUES (50, 'PAID', 50), (40, 'OPEN', 40);
    INSERT INTO fi_resident_income_payment_external_log (id, idempotency_key, log_type,
      payment_order_id, request_body, response_body, status, update_time)
    VALUES (1, 'one', 'PARTNER_REVIEW_RESULT', 50, '{\"n\":1}', '{\"state\":1}', 'SUCCESS',
        '{old}'),
      (2, 'two', 'PARTNER_REVIEW_RESULT', 40, '{\"n\":2}', NULL, 'SUCCESS',
        '{old}'),
      (3, 'three', 'PARTNER_REVIEW_RESULT', 50, '{\"n\":3}', NULL, 'FAIL',
        '{old}'),
      (4, 'four', 'PARTNER_REVIEW_RESULT', 50, '{\"n\":4}', NULL, 'SUCCESS',
        '{young}');
    INSERT INTO answer_reconcile_task (id, task_id, state, finished_at)
    VALUES (1, 'old', 'COMPLETED', '{old}'),
      (2, 'young', 'COMPLETED', '{young}'), (3, 'open', 'RUNNING', NULL);
    INSERT INTO answer_reconcile_manifest_row (task_id, answer_uuid)
    VALUES ('old', 'a'), ('old', 'b'), ('old', 'c'), ('young', 'a'), ('open', 'a')";

const TABLES: [&str; 8] = [
    "fi_async_task",
    "fi_async_task_archive",
    "fi_resident_income_payment_async_operation_log",
    "fi_resident_income_payment_async_operation_log_archive",
    "fi_resident_income_payment_external_log",
    "fi_resident_income_payment_external_log_archive",
    "answer_reconcile_task",
    "answer_reconcile_manifest_row",
];

/// The rows as they were at first.
async fn written(app: &TestApp) {
    counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
    for table in TABLES {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
    app.execute("DELETE FROM fi_resident_income_payment_order").await;
    let at = |day: &str| match app.db.dialect() {
        Dialect::Sqlite => format!("{day}T00:00:00.000000+00:00"),
        Dialect::Postgres => format!("{day}T00:00:00Z"),
        Dialect::MariaDb => format!("{day}T00:00:00"),
    };
    let rows = ROWS.replace("{old}", &at("2025-01-01")).replace("{young}", &at("2026-09-01"));
    app.execute(&rows).await;
}

/// Everything that may change, as text.
async fn seen(app: &TestApp) -> Vec<String> {
    let mut seen = Vec::new();
    for query in [
        "SELECT 'task', id FROM fi_async_task ORDER BY id",
        "SELECT 'archived', id, task_status FROM fi_async_task_archive ORDER BY id",
        "SELECT 'trace', id FROM fi_resident_income_payment_async_operation_log ORDER BY id",
        "SELECT 'archived trace', id
         FROM fi_resident_income_payment_async_operation_log_archive ORDER BY id",
        "SELECT 'body', id FROM fi_resident_income_payment_external_log
         WHERE request_body IS NOT NULL ORDER BY id",
        "SELECT 'archived body', log_id FROM fi_resident_income_payment_external_log_archive
         ORDER BY log_id",
        "SELECT 'manifest', task_id, answer_uuid FROM answer_reconcile_manifest_row
         ORDER BY task_id, answer_uuid",
    ] {
        seen.extend(app.lines(query).await);
    }
    seen
}

/// What it is in the end.
const LEFT: [&str; 22] = [
    "task|6",
    "task|7",
    "task|8",
    "archived|1|2",
    "archived|2|2",
    "archived|3|4",
    "archived|4|2",
    "archived|5|2",
    "trace|6",
    "trace|7",
    "trace|8",
    "archived trace|1",
    "archived trace|2",
    "archived trace|3",
    "archived trace|4",
    "archived trace|5",
    "body|2",
    "body|3",
    "body|4",
    "archived body|1",
    "manifest|open|a",
    "manifest|young|a",
];

/// The rules that are broken: rows written by hand break some.
async fn broken(app: &TestApp) -> Vec<&'static str> {
    let mut broken = Vec::new();
    for rule in wiring::rules() {
        let breach = wiring::check(&app.db, &rule).await.expect("a verdict");
        broken.extend(breach.map(|breach| breach.rule));
    }
    broken
}

on_every_database! {
    async fn what_is_old_and_ended_leaves_and_everything_else_stays(app: TestApp) {
        written(&app).await;
        let before = broken(&app).await;
        let summary = engine(&app).round(RETENTION.handler, "").await.expect("a round");
        // Two batches of snapshots, one of notices, one of deliveries, two of manifest rows.
        assert_eq!((summary.succeeded, summary.failed), (6, 0), "{summary:?}");
        assert_eq!(seen(&app).await, LEFT);
        let again = engine(&app).round(RETENTION.handler, "").await.expect("a round");
        assert_eq!(again.selected, 0);
        assert_eq!(broken(&app).await, before, "no rule missed what has left");
    }

    async fn bodies_that_have_left_are_still_shown(app: TestApp) {
        written(&app).await;
        let before = delivery(&app.db, DeliveryId(1)).await.expect("a delivery");
        engine(&app).round(RETENTION.handler, "").await.expect("a round");
        let after = delivery(&app.db, DeliveryId(1)).await.expect("a delivery");
        assert_eq!(after.request_body, before.request_body);
        assert_eq!(after.response_body, before.response_body);
        assert!(after.request_body.is_some_and(|body| body.contains('1')));
    }

    async fn a_task_that_has_left_is_never_accepted_anew(app: TestApp) {
        written(&app).await;
        let kind = &counterfoil_payment::kinds::BILL_SNAPSHOT;
        let seed = |key: &str| Seed {
            kind,
            business_key: key.to_owned(),
            data: "{\"progressId\":7,\"shardId\":1}".into(),
            subject: Subject::none(),
            source: None,
        };
        let accept = async |seed: &Seed| {
            let mut tx = app.db.begin().await.expect("a transaction");
            let accepted = accept_or_reuse(&mut tx, seed, &Kicker::none()).await;
            tx.commit("test.accept").await.expect("a commit");
            accepted.expect("accepted")
        };
        let code = seed("BILL_SNAPSHOT:7:1").code();
        app.execute(&format!("UPDATE fi_async_task SET task_code = '{code}' WHERE id = 1")).await;
        engine(&app).round(RETENTION.handler, "").await.expect("a round");
        let again = accept(&seed("BILL_SNAPSHOT:7:1")).await;
        let expected = Acceptance::Reused { status: TaskStatus::Success, exhausted: false };
        assert_eq!(again, expected);
        let waiting = "SELECT COUNT(*) FROM fi_async_task WHERE task_status = 0";
        assert_eq!(app.value(waiting).await, "0");
        assert_eq!(accept(&seed("BILL_SNAPSHOT:7:99")).await, Acceptance::New);
        assert_eq!(app.value(waiting).await, "1");
    }

    async fn a_process_that_dies_between_two_batches_leaves_the_rest_to_the_next(app: TestApp) {
        written(&app).await;
        let crashes = app.crashes_of(engine(&app).round(RETENTION.handler, "")).await;
        assert_eq!(crashes.len(), 12, "six batches, both sides: {crashes:?}");
        for crash in crashes {
            written(&app).await;
            app.arm(crash);
            let round = engine(&app).round(RETENTION.handler, "").await;
            assert!(round.is_err() && !app.faults().is_armed(), "{crash:?} did not strike");
            for query in [
                "SELECT t.id FROM fi_async_task t JOIN fi_async_task_archive a ON a.id = t.id",
                "SELECT l.id FROM fi_resident_income_payment_external_log l
                 LEFT JOIN fi_resident_income_payment_external_log_archive a ON a.log_id = l.id
                 WHERE l.request_body IS NULL AND a.log_id IS NULL",
            ] {
                let astray = app.lines(query).await;
                assert!(astray.is_empty(), "{crash:?}: on both sides, or on neither: {astray:?}");
            }
            engine(&app).round(RETENTION.handler, "").await.expect("a round");
            assert_eq!(seen(&app).await, LEFT, "{crash:?}");
        }
    }
}
