//! Races over real connections: one bill, one session, many sessions.

use counterfoil_e2e::{Bill, CREATOR, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::session::submit;
use counterfoil_protocol::SessionId;
use counterfoil_task::{Kicker, Summary};

const RACES: i64 = 20;
const SESSIONS: i64 = 200;

/// Both processes build at once.
async fn build(one: &TestApp, other: &TestApp) -> Summary {
    let (first, second) = tokio::join!(
        one.round(SUBMIT_BUILD.handler),
        other.round(SUBMIT_BUILD.handler)
    );
    assert_eq!(first.failed + second.failed, 0, "{first:?} {second:?}");
    Summary {
        succeeded: first.succeeded + second.succeeded,
        cancelled: first.cancelled + second.cancelled,
        ..Summary::default()
    }
}

async fn submitted(app: TestApp, session: SessionId) -> bool {
    submit(&app.db, &Kicker::none(), session, CREATOR)
        .await
        .is_ok()
}

on_every_database! {
    async fn of_two_sessions_that_race_for_one_bill_exactly_one_wins(app: TestApp) {
        let fixture = Fixture(&app);
        let other = app.second_process().await;
        for bill in 1..=RACES {
            for own in [1_000, 2_000] {
                // The contested bill is the last of several, so that both have begun.
                let bills = [own + bill * 2, own + bill * 2 + 1, bill].map(Bill::payable);
                let session = fixture.new_session(&bills).await;
                let submission = fixture.submit(session).await;
                fixture.batch_size(&submission, 1).await;
            }
            let built = build(&app, &other).await;
            assert_eq!((built.succeeded, built.cancelled), (1, 1), "race {bill}");
            let holders = format!("SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
                WHERE station_id = 'S{bill}' AND lock_status <> 'RELEASED'");
            assert_eq!(app.value(&holders).await, "1", "race {bill}");
            assert_eq!(app.round(LOCK_RELEASE.handler).await.succeeded, 1, "race {bill}");
        }
        other.db.close().await;
        let published = "SELECT COUNT(*) FROM fi_resident_income_payment_order_version
            WHERE version_build_status = 'PUBLISHED'";
        assert_eq!(app.value(published).await, RACES.to_string());
        let held = "SELECT COUNT(*) FROM fi_resident_income_payment_bill_lock
            WHERE lock_status <> 'RELEASED'";
        assert_eq!(app.value(held).await, (RACES * 3).to_string(), "the losers hold nothing");
    }

    async fn two_sessions_with_the_same_bills_in_opposite_order_do_not_block_each_other(
        app: TestApp
    ) {
        let fixture = Fixture(&app);
        let other = app.second_process().await;
        let forwards: Vec<Bill> = (1..=40).map(Bill::payable).collect();
        let backwards: Vec<Bill> = forwards.iter().rev().copied().collect();
        for bills in [&forwards, &backwards] {
            let session = fixture.new_session(bills).await;
            fixture.submit(session).await;
        }
        let built = build(&app, &other).await;
        other.db.close().await;
        assert_eq!((built.succeeded, built.cancelled), (1, 1));
        let conflicts = "SELECT COUNT(*) FROM selection_conflict";
        assert_eq!(app.value(conflicts).await, "40");
    }

    async fn two_hundred_submissions_at_once_all_succeed_with_numbers_of_their_own(app: TestApp) {
        let fixture = Fixture(&app);
        let mut sessions = Vec::new();
        for bill in 1..=SESSIONS {
            sessions.push(fixture.new_session(&[Bill::payable(bill)]).await);
        }
        let submitting: Vec<_> = sessions.into_iter()
            .map(|session| tokio::spawn(submitted(app.clone(), session))).collect();
        for submitted in submitting {
            assert!(submitted.await.expect("no panic"));
        }
        let numbers = "SELECT COUNT(DISTINCT order_no) FROM fi_resident_income_payment_order
            WHERE order_no LIKE 'PO20260908%'";
        assert_eq!(app.value(numbers).await, SESSIONS.to_string());
        let tasks = "SELECT COUNT(*) FROM fi_async_task WHERE task_status = 0";
        assert_eq!(app.value(tasks).await, SESSIONS.to_string());
    }

    async fn of_twenty_submissions_of_one_session_one_wins(app: TestApp) {
        let fixture = Fixture(&app);
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        let other = app.second_process().await;
        let submitting: Vec<_> = (0..20).map(|n| {
            let app = if n % 2 == 0 { app.clone() } else { other.clone() };
            tokio::spawn(submitted(app, session))
        }).collect();
        let mut won = 0;
        for submitted in submitting {
            won += usize::from(submitted.await.expect("no panic"));
        }
        other.db.close().await;
        assert_eq!(won, 1);
        assert_eq!(fixture.count("fi_resident_income_payment_order").await, 1);
        assert_eq!(fixture.count("fi_resident_income_payment_order_version").await, 1);
        assert_eq!(fixture.count("selection_submit_batch").await, 2);
        let attempt = "SELECT submit_attempt, state_version FROM selection_session";
        assert_eq!(app.value(attempt).await, "1|1");
    }

    async fn two_processes_take_turns_over_many_orders_and_lose_none(app: TestApp) {
        let fixture = Fixture(&app);
        fixture.records(12).await;
        for bill in 1..=12 {
            let session = fixture.new_session(&[Bill::payable(bill)]).await;
            fixture.submit(session).await;
        }
        let other = app.second_process().await;
        let built = build(&app, &other).await;
        assert_eq!((built.succeeded, built.cancelled), (12, 0));
        let (one, two) =
            tokio::join!(app.round(LOCK_ACTIVATE.handler), other.round(LOCK_ACTIVATE.handler));
        other.db.close().await;
        assert_eq!(one.succeeded + two.succeeded, 12, "{one:?} {two:?}");
        assert_eq!(one.failed + two.failed, 0, "{one:?} {two:?}");
        let attempts = "SELECT DISTINCT running_attempt FROM fi_async_task WHERE task_status = 2";
        assert_eq!(app.lines(attempts).await, ["1"]);
    }
}
