//! Two who push or send again at once.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::kinds::SIDE_EFFECT;
use counterfoil_payment::partner_push::{Delivery, DeliveryAnswer, PartnerInbox, redeliver};
use counterfoil_protocol::{DeliveryId, UserId};
use counterfoil_server::api::partner::Trouble;
use tokio::sync::Semaphore;

use crate::house::{House, LONG};

/// An inbox that says when it has been asked, and answers when it is let.
struct Held {
    inner: Arc<dyn PartnerInbox>,
    asked: Semaphore,
    let_go: Semaphore,
}

impl Held {
    fn new() -> Arc<Held> {
        let inner = House::inbox(LONG);
        Arc::new(Held { inner, asked: Semaphore::new(0), let_go: Semaphore::new(0) })
    }
}

#[async_trait::async_trait]
impl PartnerInbox for Held {
    async fn deliver(&self, delivery: &Delivery) -> DeliveryAnswer {
        let answer = self.inner.deliver(delivery).await;
        self.asked.add_permits(1);
        self.let_go.acquire().await.expect("open").forget();
        answer
    }
}

async fn failed(house: &House) -> DeliveryId {
    house.trouble(Trouble::ServerError);
    house.round().await;
    house.well_again();
    DeliveryId(house.delivery(1).await)
}

on_every_database! {
    async fn two_pushers_at_once_send_each_chunk_once(app: TestApp) {
        let house = House::build(&app).await;
        for n in 1..=6 {
            house.approved(n, "idempotent").await;
        }
        let other = House { app: app.second_process().await, ..house.clone() };
        let (a, b, c) = tokio::join!(house.round(), other.round(), other.round());
        assert_eq!(a.succeeded + b.succeeded + c.succeeded, 6, "{a:?} {b:?} {c:?}");
        assert_eq!(a.failed + b.failed + c.failed, 0, "{a:?} {b:?} {c:?}");
        for n in 1..=6 {
            assert_eq!(house.chunks(n).await, "SUCCESS|1");
            assert_eq!(house.received(n).await, "1");
        }
        other.app.db.close().await;
    }

    async fn a_pusher_that_was_taken_over_writes_nothing(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        let held = Held::new();
        let slow = House::engine(&app, held.clone());
        let slow = tokio::spawn(async move { slow.round(SIDE_EFFECT.handler, "").await });
        held.asked.acquire().await.expect("asked").forget();
        house.later();
        let taken_over = house.round().await;
        assert_eq!((taken_over.claimed, taken_over.failed), (1, 1), "{taken_over:?}");
        assert_eq!(house.chunks(1).await, "UNKNOWN|1");
        held.let_go.add_permits(1);
        let summary = slow.await.expect("ended").expect("a round");
        assert_eq!((summary.skipped, summary.succeeded, summary.failed), (1, 0, 0));
        // It was accepted, but by an attempt that is nobody's any more: a person decides.
        assert_eq!(house.chunks(1).await, "UNKNOWN|1");
    }

    async fn of_two_operators_who_send_a_chunk_again_one_sends_it(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        let delivery = failed(&house).await;
        let other = app.second_process().await;
        let inbox = House::inbox(LONG);
        let (a, b) = tokio::join!(
            redeliver(&app.db, &*inbox, delivery, UserId(7), "first"),
            redeliver(&other.db, &*inbox, delivery, UserId(8), "second"),
        );
        let won = [&a, &b].into_iter().filter(|done| done.is_ok()).count();
        assert_eq!(won, 1, "{a:?} {b:?}");
        assert_eq!(house.chunks(1).await, "SUCCESS|2");
        assert_eq!(house.received(1).await, "1");
        other.db.close().await;
    }

    async fn a_task_waits_while_a_person_is_sending(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "idempotent").await;
        let delivery = failed(&house).await;
        app.pass_minutes(11);
        let held = Held::new();
        let (inbox, db) = (held.clone(), app.db.clone());
        let person = tokio::spawn(async move {
            redeliver(&db, &*inbox, delivery, UserId(7), "asked for").await
        });
        held.asked.acquire().await.expect("asked").forget();
        // Another person is told to wait, and the task puts itself off without a failure.
        let inbox = House::inbox(Duration::from_secs(1));
        let second = redeliver(&app.db, &*inbox, delivery, UserId(8), "me too").await;
        assert!(matches!(second, Err(PaymentError::DeliveryState { .. })), "{second:?}");
        let summary = house.round().await;
        assert_eq!((summary.claimed, summary.skipped, summary.failed), (1, 1, 0), "{summary:?}");
        assert_eq!((house.task(1).await, house.chunks(1).await),
            ("0|1".to_owned(), "WAIT_PROCESS|2".to_owned()));
        held.let_go.add_permits(1);
        let done = person.await.expect("ended").expect("sent");
        assert_eq!((done.status.as_str(), done.unsettled_chunks), ("SUCCESS", 0));
        app.pass_minutes(11);
        assert_eq!(house.round().await.succeeded, 1);
        assert_eq!(house.received(1).await, "1");
    }
}
