//! The ordinary delivery path: lost, repeated, reordered and corrupted deliveries.

use std::sync::Mutex;

use counterfoil_e2e::on_every_database;
use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::form_centre::delivery::{failed, publish, replay};
use counterfoil_reconcile::service_hall::inbox::{Taken, take, take_all};
use counterfoil_reconcile::wire::Envelope;

use super::pair::{HALL, Pair, at, uuid};

/// Keeps what it is given, and confirms it.
#[derive(Default)]
struct Kept(Mutex<Vec<Envelope>>);

#[async_trait::async_trait]
impl Carrier for Kept {
    async fn carry(&self, envelope: &Envelope) -> Carried {
        self.0.lock().unwrap().push(envelope.clone());
        Carried::Confirmed
    }
}

/// Never has anybody to give it to.
struct Nobody;

#[async_trait::async_trait]
impl Carrier for Nobody {
    async fn carry(&self, _: &Envelope) -> Carried {
        Carried::Returned { message: "no queue is bound".into() }
    }
}

/// Never hears of what it sent.
struct Silent;

#[async_trait::async_trait]
impl Carrier for Silent {
    async fn carry(&self, _: &Envelope) -> Carried {
        Carried::Unknown { message: "no confirm".into() }
    }
}

async fn published(pair: &Pair) -> Vec<Envelope> {
    let kept = Kept::default();
    publish(&pair.app.db, &pair.centre_settings, &kept).await.unwrap();
    kept.0.into_inner().unwrap()
}

async fn given(pair: &Pair, envelope: &Envelope) -> Taken {
    take(&pair.hall, &pair.hall_settings, envelope).await.unwrap()
}

on_every_database! {
    async fn a_newer_revision_wins_an_event_counts_once_and_a_conflict_is_recorded(app: TestApp) {
        let pair = Pair::new(app).await;
        pair.answer(1, Some("{\"n\":1}")).await;
        let first = published(&pair).await.remove(0);
        pair.answer(1, Some("{\"n\":2}")).await;
        let second = published(&pair).await.remove(0);
        assert_eq!(given(&pair, &second).await, Taken::Applied);
        assert_eq!(given(&pair, &first).await, Taken::Older);
        assert_eq!(given(&pair, &second).await, Taken::Duplicate);
        assert_eq!(pair.differing().await, [""; 0]);
        // Every write of the projection raises its version, a duplicate's too.
        let versions = "SELECT projection_version FROM fc_answer_projection";
        assert_eq!(pair.app.value(versions).await, "3");
        assert_eq!(pair.app.value("SELECT COUNT(*) AS n FROM fc_apply_intent").await, "1");
        pair.app.execute("UPDATE fc_answer_projection SET values_json = '{\"n\":9}'").await;
        let replayed = replay(&pair.app.db, &uuid(1), HALL, "7").await.unwrap();
        let again = published(&pair).await.remove(0);
        assert_eq!(again.event_id, replayed);
        assert_eq!(given(&pair, &again).await, Taken::Conflict);
        let row = pair.app.value("SELECT values_json FROM fc_answer_projection").await;
        assert_eq!(row, "{\"n\":9}");
        let conflict = pair.app.value("SELECT conflict_detail FROM fc_answer_projection").await;
        assert!(conflict.contains("HASH_CONFLICT"), "{conflict}");
    }

    async fn a_corrupted_or_foreign_delivery_writes_nothing(app: TestApp) {
        let pair = Pair::new(app).await;
        pair.answer(1, Some("{\"n\":1}")).await;
        let right = published(&pair).await.remove(0);
        let changes: [fn(&mut Envelope); 5] = [
            |envelope| envelope.content_hash = "x".into(),
            |envelope| envelope.revision = 0,
            |envelope| envelope.source_app_key = "stranger".into(),
            |envelope| envelope.consumer_app_key = "stranger".into(),
            |envelope| envelope.sch_id = "school-2".into(),
        ];
        for change in changes {
            let mut wrong = right.clone();
            change(&mut wrong);
            assert!(take(&pair.hall, &pair.hall_settings, &wrong).await.is_err());
        }
        assert_eq!(pair.app.lines("SELECT id FROM fc_answer_projection").await, [""; 0]);
        assert_eq!(pair.app.lines("SELECT id FROM fc_inbox").await, [""; 0]);
    }

    async fn what_nobody_took_is_listed_and_a_replay_asks_the_grant_first(app: TestApp) {
        use counterfoil_reconcile::form_centre::grant::{self, Rights};
        let pair = Pair::new(app).await;
        pair.answer(1, Some("{\"n\":1}")).await;
        publish(&pair.app.db, &pair.centre_settings, &Nobody).await.unwrap();
        let (rows, _) = failed(&pair.app.db, None, 10).await.unwrap();
        assert_eq!((rows.len(), rows[0].state.as_str()), (1, "RETURNED"));
        grant::set(&pair.app.db, &at(None), Rights::NONE).await.unwrap();
        assert!(replay(&pair.app.db, &uuid(1), HALL, "7").await.is_err());
        // And reconciliation brings what delivery lost.
        grant::set(&pair.app.db, &at(None), Rights::ALL).await.unwrap();
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 1, missing 1, repaired 1");
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn deliveries_taken_together_end_like_those_taken_one_by_one(app: TestApp) {
        let pair = Pair::new(app).await;
        for number in 1..=6 {
            pair.answer(number, Some(&format!("{{\"n\":{number}}}"))).await;
        }
        let first = published(&pair).await;
        for number in 1..=3 {
            pair.answer(number, Some(&format!("{{\"later\":{number}}}"))).await;
        }
        pair.answer(4, None).await;
        let second = published(&pair).await;
        let mut wrong = first[5].clone();
        wrong.content_hash = "x".into();
        // Reordered, repeated, one corrupted, one lost.
        let mut sent = vec![second[0].clone(), first[0].clone(), second[0].clone(), wrong];
        sent.extend(first[1..5].iter().cloned());
        sent.extend(second[1..4].iter().cloned());
        let mut alone = Vec::new();
        for envelope in &sent {
            alone.push(take(&pair.hall, &pair.hall_settings, envelope).await.ok());
        }
        let rows = "SELECT answer_uuid, revision, content_hash, is_deleted, projection_version,
                      last_event_id, conflict_detail, deleted
                    FROM fc_answer_projection ORDER BY answer_uuid";
        let others = "SELECT event_id, answer_uuid, revision FROM fc_inbox ORDER BY event_id";
        let intents = "SELECT answer_uuid, revision FROM fc_apply_intent ORDER BY 1, 2";
        let mut expected = Vec::new();
        for query in [rows, others, intents] {
            expected.push(pair.app.lines(query).await);
        }
        for table in ["fc_answer_projection", "fc_inbox", "fc_apply_intent"] {
            pair.app.execute(&format!("DELETE FROM {table}")).await;
        }
        let together = take_all(&pair.hall, &pair.hall_settings, &sent).await;
        let together: Vec<Option<Taken>> = together.into_iter().map(Result::ok).collect();
        assert_eq!(together, alone);
        for (query, expected) in [rows, others, intents].into_iter().zip(expected) {
            assert_eq!(pair.app.lines(query).await, expected);
        }
        assert_eq!(alone.iter().flatten().count(), sent.len() - 1, "the corrupted one alone");
    }

    async fn a_confirmed_delivery_is_settled_once_and_a_lost_word_is_tried_again(app: TestApp) {
        let pair = Pair::new(app).await;
        pair.answer(1, Some("1")).await;
        pair.answer(2, Some("2")).await;
        let settings = &pair.centre_settings;
        let both = publish(&pair.app.db, settings, &Kept::default()).await.unwrap();
        assert_eq!(both, (2, 0));
        let none = publish(&pair.app.db, settings, &Kept::default()).await.unwrap();
        assert_eq!(none, (0, 0));
        pair.answer(1, Some("3")).await;
        assert_eq!(publish(&pair.app.db, settings, &Silent).await.unwrap(), (0, 1));
        let states = "SELECT state, attempts FROM answer_delivery ORDER BY id";
        assert_eq!(pair.app.lines(states).await, ["CONFIRMED|1", "CONFIRMED|1", "PENDING|1"]);
        assert_eq!(publish(&pair.app.db, settings, &Silent).await.unwrap(), (0, 0), "not due yet");
        for _ in 1..8 {
            pair.pass(3600);
            publish(&pair.app.db, settings, &Silent).await.unwrap();
        }
        assert_eq!(pair.app.lines(states).await[2], "FAILED|8");
    }
}
