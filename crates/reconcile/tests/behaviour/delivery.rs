//! The ordinary delivery path: lost, repeated, reordered and corrupted deliveries.

use std::sync::Mutex;

use counterfoil_e2e::on_every_database;
use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::form_centre::delivery::{failed, publish, replay};
use counterfoil_reconcile::service_hall::inbox::{Taken, take};
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
}
