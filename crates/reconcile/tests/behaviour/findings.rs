//! Every kind of difference, and what is done about it.

use counterfoil_e2e::{TestApp, on_every_database};

use super::pair::{Pair, uuid};

/// Ten answers on both sides.
async fn ten(app: TestApp) -> Pair {
    let pair = Pair::new(app).await;
    for number in 1..=10 {
        pair.answer(number, Some(&format!("{{\"n\":{number},\"名\":\"值\"}}"))).await;
    }
    pair.copy_all().await;
    pair
}

async fn by_hand(pair: &Pair, number: u32, set: &str) {
    let uuid = uuid(number);
    let update = format!("UPDATE fc_answer_projection SET {set} WHERE answer_uuid = '{uuid}'");
    pair.app.execute(&update).await;
}

on_every_database! {
    async fn equal_sets_are_found_equal_without_fetching_any_answer(app: TestApp) {
        let pair = ten(app).await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 10");
        assert_eq!((pair.called("answers"), pair.called("grant")), (0, 0));
    }

    async fn every_kind_of_difference_is_found_and_repaired(app: TestApp) {
        let pair = ten(app).await;
        let gone = format!("DELETE FROM fc_answer_projection WHERE answer_uuid = '{}'", uuid(1));
        pair.app.execute(&gone).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        by_hand(&pair, 3, "values_json = '{\"n\":\"forged\"}'").await;
        by_hand(&pair, 4, "content_hash = 'lies'").await;
        pair.answer(5, None).await;
        by_hand(&pair, 5, "biz_ext_json = '{\"kept\":1}', apply_id = 'A', flow_guid = 'F'").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(
            pair.counts(&task).await,
            "scanned 10, equal 5, missing 1, stale 1, hashConflict 2, tombstone 1, repaired 5"
        );
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(pair.errors(&task).await, ["HASH_CONFLICT", "HASH_CONFLICT"]);
        assert_eq!(pair.differing().await, [""; 0]);
        let tombstone = format!(
            "SELECT is_deleted, values_json, biz_ext_json, apply_id, flow_guid
             FROM fc_answer_projection WHERE answer_uuid = '{}'",
            uuid(5)
        );
        assert_eq!(pair.app.value(&tombstone).await, "1|NULL|{\"kept\":1}|A|F");
        // Nothing of the ordinary path was touched.
        assert_eq!(pair.app.value("SELECT COUNT(*) AS n FROM fc_inbox").await, "0");
        assert_eq!(pair.app.value("SELECT COUNT(*) AS n FROM fc_apply_intent").await, "0");
        // And the second run finds nothing.
        let again = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&again).await, "scanned 10, equal 10");
    }

    async fn a_row_ahead_of_the_centre_is_reported_and_never_overwritten(app: TestApp) {
        let pair = ten(app).await;
        by_hand(&pair, 7, "revision = 9").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 9, localAhead 1, reported 1");
        assert_eq!(pair.errors(&task).await, ["LOCAL_AHEAD"]);
        let local = format!(
            "SELECT revision FROM fc_answer_projection WHERE answer_uuid = '{}'",
            uuid(7)
        );
        assert_eq!(pair.app.value(&local).await, "9");
    }

    async fn a_row_that_was_ahead_is_repaired_when_the_centre_has_gone_further(app: TestApp) {
        let pair = ten(app).await;
        by_hand(&pair, 7, "revision = 2").await;
        let task = pair.task().await;
        pair.dispatch().await;
        // After the manifest was frozen at revision 1 the centre goes on to 3.
        pair.answer(7, Some("{\"n\":2}")).await;
        pair.answer(7, Some("{\"n\":3}")).await;
        pair.work().await;
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 9, localAhead 1, repaired 1");
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn revision_zero_is_reported_only_unless_both_sides_agree(app: TestApp) {
        let pair = ten(app).await;
        for number in [3, 4] {
            let zero = format!("UPDATE answer SET revision = 0 WHERE uuid = '{}'", uuid(number));
            pair.app.execute(&zero).await;
        }
        by_hand(&pair, 3, "revision = 0").await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 9, revisionZero 1, reported 1");
        assert_eq!(pair.errors(&task).await, ["DIFF_REVISION_ZERO"]);
    }

    async fn a_row_that_changes_during_its_repair_is_read_again_and_repaired(app: TestApp) {
        let pair = ten(app).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        let writer = pair.clone();
        pair.after("answers", move || {
            let (pair, uuid) = (writer.clone(), uuid(2));
            Box::pin(async move {
                // Once: between the fetch and the write another writer touches the row.
                if pair.called("answers") == 1 {
                    let touch = format!(
                        "UPDATE fc_answer_projection SET projection_version = 77
                         WHERE answer_uuid = '{uuid}'"
                    );
                    pair.app.execute(&touch).await;
                }
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 9, stale 1, repaired 1");
        assert_eq!(pair.called("answers"), 2);
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn a_row_that_changes_at_every_try_is_reported_in_the_end(app: TestApp) {
        let pair = ten(app).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        let writer = pair.clone();
        pair.after("answers", move || {
            let pair = writer.clone();
            Box::pin(async move {
                pair.app
                    .execute(
                        "UPDATE fc_answer_projection
                         SET projection_version = projection_version + 9",
                    )
                    .await;
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 10, equal 9, stale 1, reported 1");
        assert_eq!(pair.errors(&task).await, ["REPAIR_EXHAUSTED"]);
        assert_eq!(pair.called("answers"), 4);
    }

    async fn a_missing_row_that_comes_in_during_its_repair_is_compared_like_others(app: TestApp) {
        let pair = ten(app).await;
        let copy = format!(
            "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
               content_hash, values_json, form_version)
             VALUES ('{}', 'school-1', 'form-1', 1, 'x', '{{}}', 1)",
            uuid(11)
        );
        pair.answer(11, Some("{\"n\":11}")).await;
        let writer = pair.clone();
        pair.after("answers", move || {
            let (pair, copy) = (writer.clone(), copy.clone());
            Box::pin(async move {
                if pair.called("answers") == 1 {
                    pair.app.execute(&copy).await;
                }
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 11, equal 10, missing 1, repaired 1");
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn a_task_of_one_answer_sees_that_answer_only(app: TestApp) {
        use counterfoil_reconcile::form_centre::create::{WishScope, create};
        let pair = ten(app).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        pair.answer(3, Some("{\"n\":\"newer\"}")).await;
        let wish = counterfoil_reconcile::form_centre::create::Wish {
            answer: Some(uuid(2)),
            school: None,
            form: None,
            ..pair.wish(WishScope::Answer)
        };
        let made = create(&pair.app.db, &pair.centre_settings, &wish, "test").await.unwrap();
        pair.run().await;
        assert_eq!(pair.counts(&made[0].task_id).await, "scanned 1, stale 1, repaired 1");
        assert_eq!(pair.differing().await.len(), 2);
    }

    async fn an_envelope_that_differs_in_any_field_writes_nothing(app: TestApp) {
        let fields = [
            ("taskId", "x"), ("sourceAppKey", "x"), ("consumerAppKey", "x"),
            ("consumerSchoolId", "x"), ("schId", "x"), ("formUuid", "x"), ("answerUuid", "x"),
            ("contentHash", "x"), ("values", "x"), ("formVersion", "7"), ("grantEpoch", "7"),
            ("revision", "0"),
        ];
        let pair = ten(app).await;
        pair.answer(2, Some("{\"n\":\"newer\"}")).await;
        for (field, value) in fields {
            let value: serde_json::Value =
                value.parse::<i64>().map_or_else(|_| value.into(), Into::into);
            pair.bend(move |call, mut word| {
                if call == "answers" {
                    assert!(!word[0]["envelope"][field].is_null(), "{field}");
                    word[0]["envelope"][field] = value.clone();
                }
                Some(word)
            });
            let task = pair.task().await;
            pair.run().await;
            let said = pair.errors(&task).await;
            assert_eq!(said, ["IDENTITY_MISMATCH"], "{field}");
            assert_eq!(pair.state(&task).await, "PARTIAL", "{field}");
            assert_eq!(pair.differing().await.len(), 2, "{field}");
        }
    }
}
