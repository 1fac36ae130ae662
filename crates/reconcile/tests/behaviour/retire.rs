//! Rows that the centre does not have: gone only with its proof.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_reconcile::form_centre::grant::{self, Rights};

use super::pair::{Pair, at, uuid};

/// Three answers on both sides, and one more at the hall, made before the task.
async fn with_an_extra(app: TestApp) -> Pair {
    let pair = Pair::new(app).await;
    for number in 1..=3 {
        pair.answer(number, Some("{}")).await;
    }
    pair.copy_all().await;
    extra(&pair, 9, "'2026-09-07 00:00:00'").await;
    pair
}

pub async fn extra(pair: &Pair, number: u32, created: &str) {
    let created = match pair.app.db.dialect_name() {
        "sqlite" => created.replace(' ', "T").replace(":00'", ":00+00:00'"),
        "postgres" => created.replace(":00'", ":00+00'"),
        _ => created.to_owned(),
    };
    let insert = format!(
        "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision, content_hash,
           values_json, form_version, create_time)
         VALUES ('{}', 'school-1', 'form-1', 4, 'h', '{{}}', 1, {created})",
        uuid(number)
    );
    pair.app.execute(&insert).await;
}

pub trait DialectName {
    fn dialect_name(&self) -> &'static str;
}

impl DialectName for counterfoil_db::Db {
    fn dialect_name(&self) -> &'static str {
        use counterfoil_db::Read;
        self.dialect().name()
    }
}

pub async fn live(pair: &Pair) -> String {
    pair.app.value("SELECT COUNT(*) AS n FROM fc_answer_projection WHERE deleted = 0").await
}

on_every_database! {
    async fn a_row_that_only_the_hall_has_is_retired_by_the_centres_proof(app: TestApp) {
        let pair = with_an_extra(app).await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 4, equal 3, extra 1, retired 1");
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(live(&pair).await, "3");
        let again = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&again).await, "scanned 3, equal 3");
    }

    async fn a_retired_row_comes_back_by_an_update_with_a_new_birth(app: TestApp) {
        let pair = with_an_extra(app).await;
        pair.task().await;
        pair.run().await;
        pair.pass(60);
        pair.answer(9, Some("{\"back\":true}")).await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 4, equal 3, missing 1, repaired 1");
        assert_eq!(pair.differing().await, [""; 0]);
        let born = format!(
            "SELECT COUNT(*) AS n FROM fc_answer_projection WHERE answer_uuid = '{}'
             AND create_time > (SELECT MIN(create_time) FROM answer_reconcile_task)",
            uuid(9)
        );
        assert_eq!(pair.app.value(&born).await, "1");
    }

    async fn a_row_born_after_the_window_or_without_a_birth_is_reported_only(app: TestApp) {
        let pair = with_an_extra(app).await;
        extra(&pair, 10, "'2026-09-30 00:00:00'").await;
        extra(&pair, 11, "NULL").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 6, equal 3, extra 3, retired 1, reported 2");
        assert_eq!(pair.state(&task).await, "PARTIAL");
        assert_eq!(pair.errors(&task).await, ["EXTRA_ROW", "EXTRA_ROW"]);
        assert_eq!(live(&pair).await, "5");
    }

    async fn a_centre_whose_clock_is_ahead_retires_nothing_newer(app: TestApp) {
        let pair = Pair::new(app).await;
        // The hall's clock is ten minutes behind; the row came in five minutes ago by it.
        pair.hall_clock.advance(-chrono::TimeDelta::minutes(10));
        pair.answer(1, Some("{}")).await;
        pair.copy_all().await;
        extra(&pair, 9, "'2026-09-08 01:55:00'").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 2, equal 1, extra 1, reported 1");
        assert_eq!(live(&pair).await, "2");
    }

    async fn one_candidate_too_many_and_none_is_retired(app: TestApp) {
        let mut pair = with_an_extra(app).await;
        pair.hall_settings.max_pending_extras = 2;
        extra(&pair, 10, "'2026-09-07 00:00:00'").await;
        extra(&pair, 11, "'2026-09-07 00:00:00'").await;
        extra(&pair, 12, "'2026-09-07 00:00:00'").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 7, equal 3, extra 4, reported 4");
        assert_eq!(live(&pair).await, "7");
    }

    async fn a_forged_proof_retires_nothing(app: TestApp) {
        let pair = with_an_extra(app).await;
        for field in [
            "proofId", "taskId", "consumerAppKey", "consumerSchoolId", "formUuid", "schId",
            "answerUuid", "expectedRevision", "grantEpoch",
        ] {
            pair.bend(move |call, mut word| {
                if call == "answers" {
                    let forged = &mut word[0]["proof"][field];
                    *forged = if forged.is_number() { 77.into() } else { "".into() };
                }
                Some(word)
            });
            let task = pair.task().await;
            pair.run().await;
            assert_eq!(pair.errors(&task).await, ["PROOF_MISMATCH"], "{field}");
            assert_eq!(live(&pair).await, "4", "{field}");
        }
        // A proof that took a minute and more on the hall's own clock is no proof any more.
        pair.straighten();
        let slow = pair.hall_clock.clone();
        pair.after("answers", move || {
            slow.advance(chrono::TimeDelta::seconds(61));
            Box::pin(async {})
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.errors(&task).await, ["PROOF_MISMATCH"]);
        assert_eq!(live(&pair).await, "4");
    }

    async fn a_row_that_changes_after_the_scan_is_not_retired(app: TestApp) {
        let pair = with_an_extra(app).await;
        let writer = pair.clone();
        pair.after("answers", move || {
            let pair = writer.clone();
            Box::pin(async move {
                pair.app.execute("UPDATE fc_answer_projection SET projection_version = 5").await;
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.errors(&task).await, ["RETIRE_CONFLICT"]);
        assert_eq!(live(&pair).await, "4");
    }

    async fn an_answer_that_came_into_being_meanwhile_is_compared_not_retired(app: TestApp) {
        let pair = with_an_extra(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        pair.answer(9, Some("{\"n\":1}")).await;
        for _ in 0..4 {
            pair.answer(9, Some("{\"n\":2}")).await;
        }
        pair.work().await;
        assert_eq!(pair.counts(&task).await, "scanned 4, equal 3, extra 1, repaired 1");
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn a_grant_revoked_in_the_middle_repairs_and_retires_nothing_more(app: TestApp) {
        let pair = with_an_extra(app).await.by_rows();
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        let centre = pair.app.db.clone();
        pair.after("manifest", move || {
            let centre = centre.clone();
            Box::pin(async move {
                grant::set(&centre, &at(None), Rights::NONE).await.unwrap();
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "CANCELLED");
        let reason =
            format!("SELECT reason_code FROM answer_reconcile_task WHERE task_id = '{task}'");
        assert_eq!(pair.app.value(&reason).await, "GRANT_REVOKED");
        let row = "SELECT state, result_state FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, "DONE|CANCELLED");
        assert_eq!(live(&pair).await, "4");
    }

    async fn an_unreachable_grant_check_puts_repairs_off_and_ends_partial(app: TestApp) {
        let pair = with_an_extra(app).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        pair.bend(|call, word| (call != "grant").then_some(word));
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        assert!(pair.counts(&task).await.ends_with("deferred 1"));
        assert_eq!(live(&pair).await, "4");
    }
}
