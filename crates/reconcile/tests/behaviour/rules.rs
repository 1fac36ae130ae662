//! Every rule of reconciliation can break, and names the row.

use counterfoil_db::Read;
use counterfoil_e2e::{Dialect, TestApp, on_every_database};
use counterfoil_reconcile::rules::{RULES, check_hashes};
use counterfoil_task::check;

use super::pair::{Pair, uuid};

/// A rule, the change that breaks it after a reconciliation, and a cell of the broken row.
const BREAKS: &[(&str, &str, &str)] = &[
    (
        "reconcile-lease-is-looked-after",
        "UPDATE answer_reconcile_task SET state = 'RUNNING', lease_until = '2026-09-08 00:59:00Z'",
        "state=RUNNING",
    ),
    (
        "reconcile-lease-is-looked-after",
        "UPDATE answer_reconcile_task SET state = 'DISPATCHED', lease_until = NULL",
        "state=DISPATCHED",
    ),
    (
        "reconcile-is-not-forgotten",
        "UPDATE answer_reconcile_task SET state = 'QUEUED', update_time = '2026-09-07 01:59:00Z'",
        "manifest_state=COMPLETE",
    ),
    (
        "completed-reconcile-read-both-sets",
        "UPDATE answer_reconcile_task SET manifest_complete = 0",
        "manifest_complete=0",
    ),
    (
        "completed-reconcile-read-both-sets",
        "UPDATE answer_reconcile_result SET local_completed = 0",
        "local_completed=0",
    ),
    ("completed-reconcile-read-both-sets", "DELETE FROM answer_reconcile_result", "attempt=1"),
    (
        "consumer-has-one-reconcile-in-flight",
        "UPDATE answer_reconcile_task SET state = 'RUNNING', lease_until = '2026-09-09 00:00:00Z';
         \nINSERT INTO answer_reconcile_task (task_id, consumer_app_key, state)
         VALUES ('another', '100018', 'DISPATCHED')",
        "tasks=2",
    ),
    (
        "ended-reconcile-holds-no-place",
        "UPDATE answer_reconcile_task SET active_consumer_key = '100018'",
        "active_consumer_key=100018",
    ),
    (
        "ended-reconcile-says-why",
        "UPDATE answer_reconcile_task SET state = 'FAILED', reason_code = NULL",
        "state=FAILED",
    ),
    (
        "manifest-has-its-rows",
        "UPDATE answer_reconcile_task SET state = 'QUEUED', total_rows = 7",
        "manifest_rows=2",
    ),
    (
        "delivery-arrives-within-a-day",
        "UPDATE answer_delivery SET state = 'RETURNED', create_time = '2026-09-07 01:59:00Z';
         \nUPDATE answer_reconcile_task SET state = 'PARTIAL'",
        "state=RETURNED",
    ),
    (
        "answer-stands-where-its-log-says",
        "UPDATE answer SET revision = 9 WHERE uuid = '00000000000000000000000000000001'",
        "revision=9",
    ),
    ("answer-stands-where-its-log-says", "DELETE FROM answer_op_log", "revision=1"),
    (
        "hall-work-is-looked-after",
        "UPDATE answer_reconcile_work
         SET state = 'RUNNING', lease_expire_time = '2026-09-08 00:59:00Z'",
        "attempt=1",
    ),
    (
        "stalled-work-is-taken-up",
        "UPDATE answer_reconcile_work SET state = 'STALLED', update_time = '2026-09-07 01:59:00Z'",
        "attempt=1",
    ),
    (
        "done-work-knows-its-end",
        "UPDATE answer_reconcile_work SET result_state = 'RUNNING'",
        "result_state=RUNNING",
    ),
    (
        "retired-row-has-its-proof",
        "UPDATE fc_answer_projection SET deleted = 1 WHERE answer_uuid <> ''",
        "revision=1",
    ),
];

async fn wipe(app: &TestApp) {
    for table in [
        "answer_reconcile_task",
        "answer_reconcile_result",
        "answer_reconcile_manifest_row",
        "answer_reconcile_work",
        "answer_delivery",
        "answer_op_log",
        "answer",
        "fc_answer_projection",
    ] {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
}

/// Instants as each database writes them.
fn for_database(app: &TestApp, change: &str) -> String {
    match app.db.dialect() {
        Dialect::Sqlite => {
            let days = ["2026-09-07 ", "2026-09-08 ", "2026-09-09 "];
            let change = days
                .iter()
                .fold(change.to_owned(), |text, day| text.replace(day, &day.replace(' ', "T")));
            change.replace(":00Z'", ":00.000000+00:00'")
        }
        Dialect::MariaDb => change.replace(":00Z'", ":00'"),
        Dialect::Postgres => change.to_owned(),
    }
}

/// Two answers, delivered by a reconciliation that is COMPLETED.
async fn reconciled(pair: &Pair) {
    pair.answer(1, Some("1")).await;
    pair.answer(2, Some("2")).await;
    let task = pair.task().await;
    pair.run().await;
    assert_eq!(pair.state(&task).await, "COMPLETED");
}

on_every_database! {
    async fn every_rule_of_reconciliation_can_break_and_names_the_row(app: TestApp) {
        let pair = Pair::new(app).await;
        for (name, change, named) in BREAKS {
            reconciled(&pair).await;
            let rule = RULES.iter().find(|rule| rule.name == *name).expect(name);
            assert_eq!(check(&pair.app.db, rule).await.expect(name), None, "{name} before");
            pair.app.execute(&for_database(&pair.app, change)).await;
            let breach = check(&pair.app.db, rule).await.expect(name);
            let breach = breach.unwrap_or_else(|| panic!("{name} holds after {change}"));
            let row = &breach.rows[0];
            assert!(row.split(' ').any(|cell| cell == *named), "{name}: {row}");
            wipe(&pair.app).await;
        }
        for rule in RULES {
            assert!(BREAKS.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
        }
    }

    async fn a_stored_hash_unlike_its_content_is_found_by_reading_it(app: TestApp) {
        let pair = Pair::new(app).await;
        assert_eq!(check_hashes(&pair.hall).await.unwrap(), None, "no row, no breach");
        reconciled(&pair).await;
        assert_eq!(check_hashes(&pair.hall).await.unwrap(), None);
        pair.app
            .execute(&format!(
                "UPDATE fc_answer_projection SET values_json = '[]' WHERE answer_uuid = '{}'",
                uuid(2)
            ))
            .await;
        let breach = check_hashes(&pair.hall).await.unwrap().expect("a breach");
        assert_eq!(breach.rows, [format!("answer_uuid={} revision=1", uuid(2))]);
    }

    async fn a_retired_row_keeps_the_proof_that_it_was_retired_by(app: TestApp) {
        let pair = Pair::new(app).await;
        reconciled(&pair).await;
        pair.pass(1);
        pair.app.execute("DELETE FROM answer WHERE uuid LIKE '%2'").await;
        pair.app.execute("DELETE FROM answer_op_log").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 2, equal 1, extra 1, retired 1");
        let query = "SELECT conflict_detail FROM fc_answer_projection WHERE deleted = 1";
        let evidence: serde_json::Value =
            serde_json::from_str(&pair.app.value(query).await).unwrap();
        assert_eq!((&evidence["code"], &evidence["taskId"]), (&"RETIRED".into(), &task.into()));
        assert!(evidence["proofId"].as_str().is_some_and(|id| id.len() == 36), "{evidence}");
        let rule = RULES.iter().find(|rule| rule.name == "retired-row-has-its-proof").unwrap();
        assert_eq!(check(&pair.hall, rule).await.unwrap(), None);
    }
}
