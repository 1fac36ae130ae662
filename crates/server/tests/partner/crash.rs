//! The process dies on either side of every commit of the push and of a redelivery.

use counterfoil_db::Side;
use counterfoil_e2e::{Crash, on_every_database};
use counterfoil_payment::kinds::SIDE_EFFECT;
use counterfoil_payment::partner_push::redeliver;
use counterfoil_protocol::{DeliveryId, UserId};
use counterfoil_server::api::partner::Trouble;

use crate::house::{House, LONG};

/// Runs a round that dies.
async fn die(house: &House, crash: Crash) {
    house.app.arm(crash);
    let engine = House::engine(&house.app, House::inbox(LONG));
    let died = engine.round(SIDE_EFFECT.handler, "").await;
    assert!(died.is_err() && !house.app.faults().is_armed(), "{crash:?}: {died:?}");
    house.later();
}

/// The commit points of a push; the partner's own are not the push's.
async fn crashes(house: &House) -> Vec<Crash> {
    let crashes = house.app.crashes_of(house.round()).await;
    crashes.into_iter().filter(|crash| !crash.point.starts_with("partner.")).collect()
}

on_every_database! {
    async fn a_push_commits_where_these_tests_strike(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "never").await;
        let points = |crashes: Vec<Crash>| {
            let mut points: Vec<&str> = crashes.into_iter().map(|crash| crash.point).collect();
            points.dedup();
            points
        };
        house.trouble(Trouble::Refuse);
        assert_eq!(
            points(crashes(&house).await),
            ["task.claim", "partner_push.prepared", "partner_push.sending",
             "partner_push.answered", "task.failure"]
        );
        house.well_again();
        house.approved(2, "never").await;
        assert_eq!(
            points(crashes(&house).await),
            ["task.claim", "partner_push.prepared", "partner_push.sending",
             "partner_push.answered", "partner_push.settled"]
        );
    }

    async fn whatever_commit_it_dies_at_an_idempotent_partner_is_told_in_the_end(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "idempotent").await;
        for (n, crash) in (2..).zip(crashes(&house).await) {
            house.approved(n, "idempotent").await;
            die(&house, crash).await;
            house.round().await;
            assert!(house.chunks(n).await.starts_with("SUCCESS|"), "{crash:?}");
            assert!(house.task(n).await.starts_with("2|"), "{crash:?}");
            let kept = house.received(n).await;
            let lost_its_answer = crash.point == "partner_push.answered"
                && crash.side == Side::Before;
            assert_eq!(kept, if lost_its_answer { "2" } else { "1" }, "{crash:?}");
        }
    }

    async fn whatever_commit_it_dies_at_no_other_partner_is_told_twice(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        for (n, crash) in (2..).zip(crashes(&house).await) {
            house.approved(n, "definite").await;
            die(&house, crash).await;
            house.round().await;
            let may_have_been_sent = match (crash.point, crash.side) {
                ("partner_push.sending", Side::After) => Some(""),
                ("partner_push.answered", Side::Before) => Some("1"),
                _ => None,
            };
            match may_have_been_sent {
                Some(received) => {
                    assert_eq!(house.chunks(n).await, "UNKNOWN|1", "{crash:?}");
                    assert_eq!(house.received(n).await, received, "{crash:?}");
                    assert!(house.message(n).await.contains("1 need a person"), "{crash:?}");
                }
                None => {
                    assert_eq!(house.chunks(n).await, "SUCCESS|1", "{crash:?}");
                    assert_eq!(house.received(n).await, "1", "{crash:?}");
                    assert!(house.task(n).await.starts_with("2|"), "{crash:?}");
                }
            }
        }
    }

    async fn a_crash_while_a_lost_sender_is_noted_changes_nothing_of_the_end(app: TestApp) {
        let house = House::build(&app).await;
        for (n, side) in [(1, Side::Before), (2, Side::After)] {
            house.approved(n, "definite").await;
            let sending = Crash { point: "partner_push.sending", side: Side::After, passage: 1 };
            die(&house, sending).await;
            die(&house, Crash { point: "partner_push.unsent", side, passage: 1 }).await;
            house.round().await;
            assert_eq!(house.chunks(n).await, "UNKNOWN|1", "{side:?}");
            app.execute("DELETE FROM fi_async_task").await;
        }
    }

    async fn a_redelivery_that_dies_leaves_no_verdict_and_can_be_repeated(app: TestApp) {
        let house = House::build(&app).await;
        let points = ["partner_push.redelivery_sending", "partner_push.redelivery_answered"];
        let both = [Side::Before, Side::After];
        let crashes = points.into_iter().flat_map(|point| both.map(|side| (point, side)));
        for (n, (point, side)) in (1..).zip(crashes) {
            house.approved(n, "never").await;
            house.trouble(Trouble::ServerError);
            house.round().await;
            house.well_again();
            let delivery = DeliveryId(house.delivery(n).await);
            let inbox = House::inbox(LONG);
            let again = || redeliver(&app.db, &*inbox, delivery, UserId(7), "asked for");
            app.arm(Crash { point, side, passage: 1 });
            assert!(again().await.is_err(), "{point} {side:?}");
            house.later();
            // The task that finds it on its way says that nobody knows.
            house.round().await;
            let expected = match (point, side) {
                ("partner_push.redelivery_sending", Side::Before) => "UNKNOWN|1",
                ("partner_push.redelivery_answered", Side::After) => "SUCCESS|2",
                _ => "UNKNOWN|2",
            };
            assert_eq!(house.chunks(n).await, expected, "{point} {side:?}");
            if expected != "SUCCESS|2" {
                again().await.expect("sent again");
            }
            assert!(house.chunks(n).await.starts_with("SUCCESS"), "{point} {side:?}");
            assert_eq!(house.rerun(n).await.failed, 0, "{point} {side:?}");
            assert!(house.task(n).await.starts_with("2|"), "{point} {side:?}");
        }
    }
}
