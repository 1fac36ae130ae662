//! A person sends one chunk again.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::partner_push::{DeliverySearch, DeliveryStatus, deliveries, redeliver};
use counterfoil_protocol::{DeliveryId, OrderId, UserId};
use counterfoil_server::api::partner::Trouble;

use crate::house::{House, LONG, SHORT};

on_every_database! {
    async fn a_person_sends_an_unknown_chunk_again_whatever_the_policy_says(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        house.trouble(Trouble::AcceptThenHang);
        house.round_within(SHORT).await;
        house.well_again();
        assert_eq!((house.chunks(1).await, house.received(1).await),
            ("UNKNOWN|1".to_owned(), "1".to_owned()));
        let delivery = DeliveryId(house.delivery(1).await);
        let inbox = House::inbox(LONG);
        let done = redeliver(&app.db, &*inbox, delivery, UserId(7), "the partner asks for it")
            .await
            .expect("sent");
        assert_eq!((done.was, done.status), (DeliveryStatus::Unknown, DeliveryStatus::Success));
        assert_eq!((done.attempt_count, done.unsettled_chunks), (2, 0));
        // The same key and the same body: the partner tells that it has it already.
        assert_eq!(house.received(1).await, "2");
        let trace = "SELECT action, result, operator_user_id, payment_order_id
            FROM fi_resident_income_payment_async_operation_log
            WHERE action = 'REDELIVER' ORDER BY id";
        assert_eq!(app.lines(trace).await, ["REDELIVER|SENDING|7|1", "REDELIVER|SUCCESS|7|1"]);
        let why = app.value("SELECT detail FROM fi_resident_income_payment_async_operation_log
            WHERE result = 'SENDING'").await;
        assert!(why.contains("the partner asks for it"), "{why}");
        // Every chunk is settled: the task runs to its end without sending anything.
        assert_eq!(house.task(1).await, "3|1");
        assert_eq!(house.rerun(1).await.succeeded, 1);
        assert_eq!((house.task(1).await, house.received(1).await),
            ("2|1".to_owned(), "2".to_owned()));
    }

    async fn a_redelivery_in_trouble_says_so_and_can_be_repeated(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        house.trouble(Trouble::Refuse);
        house.round().await;
        let delivery = DeliveryId(house.delivery(1).await);
        let inbox = House::inbox(LONG);
        let again = || redeliver(&app.db, &*inbox, delivery, UserId(7), "again");
        let refused = again().await.expect("an answer");
        assert_eq!((refused.status, refused.unsettled_chunks), (DeliveryStatus::Fail, 1));
        assert!(refused.error.is_some_and(|why| why.contains("partner-refuses")));
        house.trouble(Trouble::ServerError);
        assert_eq!(again().await.expect("an answer").status, DeliveryStatus::Unknown);
        house.well_again();
        assert_eq!(again().await.expect("an answer").status, DeliveryStatus::Success);
        let accepted = again().await;
        assert!(matches!(accepted, Err(PaymentError::DeliveryState { .. })), "{accepted:?}");
        assert_eq!(house.received(1).await, "1");
    }

    async fn a_skipped_chunk_is_sent_once_its_partner_has_an_address(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE sys_partner SET key_id = endpoint").await;
        app.execute("UPDATE sys_partner SET endpoint = NULL").await;
        assert_eq!(house.round().await.succeeded, 1);
        let delivery = DeliveryId(house.delivery(1).await);
        let inbox = House::inbox(LONG);
        let again = || redeliver(&app.db, &*inbox, delivery, UserId(7), "it has one now");
        let nowhere = again().await;
        assert!(matches!(nowhere, Err(PaymentError::DeliveryState { .. })), "{nowhere:?}");
        app.execute("UPDATE sys_partner SET endpoint = key_id").await;
        assert_eq!(again().await.expect("sent").status, DeliveryStatus::Success);
        assert_eq!(house.received(1).await, "1");
    }

    async fn nobody_sends_again_without_a_name_and_a_reason(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        house.trouble(Trouble::Refuse);
        house.round().await;
        let inbox = House::inbox(LONG);
        let id = house.delivery(1).await;
        for (id, user, reason, code) in [
            (id, 0, "why", "invalid-input"),
            (id, 7, "  ", "invalid-input"),
            (5, 7, "why", "delivery-not-found"),
        ] {
            let done = redeliver(&app.db, &*inbox, DeliveryId(id), UserId(user), reason).await;
            assert_eq!(done.err().map(|error| error.code()), Some(code));
        }
        assert_eq!(house.chunks(1).await, "FAIL|1");
    }

    async fn deliveries_are_listed_by_order_and_status(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        house.approved(2, "never").await;
        house.partners.set_trouble(Some(Trouble::Refuse), Some(1));
        house.round().await;
        let found = async |order: Option<i64>, status| {
            let order = order.map(OrderId);
            let search = DeliverySearch { order, status, before: None, limit: 9 };
            let rows = deliveries(&app.db, &search).await.expect("rows");
            rows.iter().map(|row| row.payment_order_id.0).collect::<Vec<_>>()
        };
        assert_eq!(found(None, None).await, [2, 1]);
        assert_eq!(found(Some(2), None).await, [2]);
        assert_eq!(found(None, Some(DeliveryStatus::Fail)).await, [1]);
        assert!(found(Some(2), Some(DeliveryStatus::Fail)).await.is_empty());
    }
}
