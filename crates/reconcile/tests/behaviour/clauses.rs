//! Clauses of the source's chapter 10 that no other test holds: see docs/reconcile-clauses.md.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_reconcile::form_centre::{authority, manifest};
use counterfoil_reconcile::refusal::Code;
use counterfoil_reconcile::service_hall::receive::receive;
use counterfoil_reconcile::wire::{Authority, Dispatch, Envelope, Proof, Question};

use super::crash::to_the_end;
use super::pair::{CENTRE, HALL, Pair, uuid};

async fn five(app: TestApp) -> Pair {
    let pair = Pair::new(app).await;
    for number in 1..=5 {
        pair.answer(number, Some("{\"n\":\"SECRET\"}")).await;
    }
    pair
}

/// What the centre says of one answer.
async fn ask(pair: &Pair, task: &str, number: u32) -> Result<Authority, Option<Code>> {
    let asked = [Question { answer_uuid: uuid(number), expected_revision: Some(4) }];
    let said = authority::ask(&pair.app.db, &pair.centre_settings, task, HALL, &asked).await;
    said.map(|mut said| said.remove(0)).map_err(|refusal| refusal.refused())
}

async fn envelope(pair: &Pair, task: &str, number: u32) -> Envelope {
    match ask(pair, task, number).await {
        Ok(Authority::Present { envelope }) => *envelope,
        other => panic!("{other:?}"),
    }
}

async fn proof(pair: &Pair, task: &str, number: u32) -> Option<Proof> {
    match ask(pair, task, number).await {
        Ok(Authority::Absent { proof }) => proof,
        other => panic!("{other:?}"),
    }
}

on_every_database! {
    async fn an_envelope_is_of_the_answer_as_it_is_now_not_of_the_manifest(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let later = format!("UPDATE answer SET version = 3 WHERE uuid = '{}'", uuid(1));
        pair.app.execute(&later).await;
        pair.answer(2, None).await;
        let now = envelope(&pair, &task, 1).await;
        assert_eq!((now.form_version, now.revision, now.is_deleted), (3, 1, false));
        let frozen = "SELECT form_version FROM answer_reconcile_manifest_row
                      ORDER BY answer_uuid LIMIT 1";
        assert_eq!(pair.app.value(frozen).await, "1");
        let tombstone = envelope(&pair, &task, 2).await;
        assert_eq!((tombstone.revision, tombstone.is_deleted), (2, true));
        assert_eq!(tombstone.values.map_or("null".into(), |v| v.get().to_owned()), "null");
        let ids = [now.event_id.as_str(), now.proof_id.as_deref().unwrap()];
        assert!(ids[0].len() <= 36 && ids[1].len() <= 128 && ids[0] != ids[1]);
        assert_eq!((now.source_app_key.as_str(), now.consumer_app_key.as_str()), (CENTRE, HALL));
    }

    async fn a_proof_needs_a_whole_manifest_without_the_answer_and_none_now(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        assert_eq!(ask(&pair, &task, 9).await.unwrap_err(), Some(Code::ManifestIncomplete));
        pair.dispatch().await;
        let right = proof(&pair, &task, 9).await.expect("a proof");
        assert_eq!((right.answer_uuid, right.expected_revision), (uuid(9), Some(4)));
        // In the manifest, and gone since: no proof.
        let gone = format!("DELETE FROM answer WHERE uuid = '{}'", uuid(3));
        pair.app.execute(&gone).await;
        assert_eq!(proof(&pair, &task, 3).await, None);
        // Not in the manifest, and there by now: no proof, but the answer.
        pair.answer(9, Some("{}")).await;
        assert_eq!(envelope(&pair, &task, 9).await.revision, 1);
    }

    async fn a_set_that_outgrows_its_limit_leaves_no_row_of_a_manifest(app: TestApp) {
        let mut pair = five(app).await;
        pair.centre_settings.max_rows = 5;
        let task = pair.task().await;
        pair.answer(6, Some("{}")).await;
        let (db, settings) = (&pair.app.db, &pair.centre_settings);
        let made = manifest::materialise(db, settings, &task).await.unwrap();
        assert_eq!(made, manifest::Materialised::Refused);
        let row = "SELECT state, manifest_state, reason_code FROM answer_reconcile_task";
        assert_eq!(pair.app.value(row).await, "FAILED|FAILED|RESOURCE_LIMIT");
        assert_eq!(pair.app.lines("SELECT id FROM answer_reconcile_manifest_row").await, [""; 0]);
    }

    async fn a_dispatched_task_promises_nothing_about_the_halls_rows(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        assert_eq!(pair.state(&task).await, "DISPATCHED");
        assert_eq!(pair.app.value("SELECT state FROM answer_reconcile_work").await, "QUEUED");
        assert_eq!(pair.app.lines("SELECT id FROM fc_answer_projection").await, [""; 0]);
    }

    async fn an_order_without_its_coordinates_is_refused(app: TestApp) {
        let pair = five(app).await;
        let right = Dispatch {
            task_id: "t".into(),
            attempt: 1,
            source_app_key: CENTRE.into(),
            consumer_app_key: HALL.into(),
            consumer_school_id: "school-1".into(),
            form_uuid: "form-1".into(),
            scope: "FORM".into(),
            answer_uuid: None,
            grant_epoch: 1,
            window_start: pair.app.now(),
            sent_at: pair.app.now(),
        };
        type Change = (&'static str, fn(&mut Dispatch));
        let changes: [Change; 7] = [
            ("attempt", |order| order.attempt = 0),
            ("task", |order| order.task_id = String::new()),
            ("long task", |order| order.task_id = "t".repeat(37)),
            ("school", |order| order.consumer_school_id = String::new()),
            ("form", |order| order.form_uuid = String::new()),
            ("scope", |order| order.scope = "ALL".into()),
            ("answer", |order| {
                order.scope = "ANSWER".into();
                order.answer_uuid = Some("x".into());
            }),
        ];
        for (what, change) in changes {
            let mut order = right.clone();
            change(&mut order);
            let said = receive(&pair.hall, &pair.hall_settings, CENTRE, &order).await;
            assert_eq!(said.unwrap_err().refused(), Some(Code::InvalidInput), "{what}");
        }
        assert_eq!(pair.app.lines("SELECT id FROM answer_reconcile_work").await, [""; 0]);
    }

    async fn a_report_that_comes_too_late_keeps_its_result_and_waits(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.bend(|call, mut word| {
            if call == "result" {
                word["decision"] = "STALE_RETRY".into();
                word["resultState"] = serde_json::Value::Null;
                word["stale"] = true.into();
            }
            Some(word)
        });
        pair.run().await;
        let row = "SELECT state, result_state FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, "STALLED|COMPLETED");
        pair.straighten();
        assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
    }

    async fn an_acknowledgement_of_another_report_ends_nothing(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        for (field, value) in [
            ("taskId", serde_json::json!("x")),
            ("consumerAppKey", serde_json::json!("x")),
            ("reportAttempt", serde_json::json!(7)),
            ("resultState", serde_json::json!("RUNNING")),
        ] {
            pair.bend(move |call, mut word| {
                if call == "result" {
                    word[field] = value.clone();
                }
                Some(word)
            });
            pair.dispatch().await;
            pair.work().await;
            let row = "SELECT state, result_state FROM answer_reconcile_work";
            assert_eq!(pair.app.value(row).await, "QUEUED|COMPLETED", "{field}");
            pair.pass(61 * 16);
        }
        pair.straighten();
        assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
    }

    async fn what_is_reported_names_coordinates_and_never_a_value(app: TestApp) {
        let pair = five(app).await;
        pair.copy_all().await;
        let forged = format!(
            "UPDATE fc_answer_projection SET values_json = '{{\"n\":\"SECRET\",\"m\":1}}'
             WHERE answer_uuid = '{}'",
            uuid(2)
        );
        pair.app.execute(&forged).await;
        pair.app.execute("UPDATE fc_answer_projection SET revision = 9 WHERE revision = 1").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        let items = pair.app.value("SELECT errors FROM answer_reconcile_result").await;
        let parsed: Vec<serde_json::Value> = serde_json::from_str(&items).unwrap();
        assert_eq!(parsed.len(), 5, "{items}");
        for item in &parsed {
            let names: Vec<_> = item.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, ["answerUuid", "code", "range", "revision"]);
        }
        for query in [
            "SELECT * FROM answer_reconcile_result",
            "SELECT * FROM answer_reconcile_task",
            "SELECT * FROM answer_reconcile_work",
        ] {
            let all = pair.app.lines(query).await.concat();
            assert!(!all.contains("SECRET"), "{query}: {all}");
        }
    }
}
