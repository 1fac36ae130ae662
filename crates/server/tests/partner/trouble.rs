//! Every way in which a partner can be in trouble, under every policy.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::partner_push::{Delivery, DeliveryAnswer};
use counterfoil_server::api::partner::Trouble;

use crate::house::{House, LONG, SHORT, key};

const POLICIES: [(i64, &str); 3] = [(1, "never"), (2, "definite"), (3, "idempotent")];

/// What a chunk is after the trouble, and what the next run makes of it under each policy.
struct Expected {
    after: &'static str,
    then: [&'static str; 3],
    /// How often each partner got it in the end.
    received: [&'static str; 3],
}

const DEFINITE: Expected = Expected {
    after: "FAIL|1",
    then: ["FAIL|1", "SUCCESS|2", "SUCCESS|2"],
    received: ["", "1", "1"],
};

/// No verdict, and the partner had kept nothing.
const UNKNOWN: Expected = Expected {
    after: "UNKNOWN|1",
    then: ["UNKNOWN|1", "UNKNOWN|1", "SUCCESS|2"],
    received: ["", "", "1"],
};

/// No verdict, although the partner had kept it.
const KEPT: Expected = Expected { received: ["1", "1", "2"], ..UNKNOWN };

async fn walk(app: &TestApp, trouble: Option<Trouble>, expected: Expected) {
    let house = House::build(app).await;
    for (n, policy) in POLICIES {
        house.approved(n, policy).await;
    }
    let addresses = "UPDATE sys_partner SET endpoint = REPLACE(endpoint, ";
    let away = format!("{addresses}'{}', 'http://127.0.0.1:9')", house.address);
    let back = format!("{addresses}'http://127.0.0.1:9', '{}')", house.address);
    match trouble {
        Some(trouble) => house.trouble(trouble),
        None => app.execute(&away).await,
    }
    let is_slow = trouble == Some(Trouble::AcceptThenHang);
    let summary = house.round_within(if is_slow { SHORT } else { LONG }).await;
    assert_eq!((summary.failed, summary.succeeded), (3, 0), "{summary:?}");
    for (n, policy) in POLICIES {
        assert_eq!(house.chunks(n).await, expected.after, "{policy}");
        assert_eq!(house.task(n).await, "3|1", "a push that was not accepted is no success");
    }
    house.well_again();
    app.execute(&back).await;
    house.later();
    house.round().await;
    let ends = expected.then.into_iter().zip(expected.received);
    for ((n, policy), (then, received)) in POLICIES.into_iter().zip(ends) {
        assert_eq!(house.chunks(n).await, then, "{policy}");
        assert_eq!(house.received(n).await, received, "{policy}");
        let task = if then.starts_with("SUCCESS") { "2|1" } else { "3|2" };
        assert_eq!(house.task(n).await, task, "{policy}");
        if task == "3|2" {
            let message = house.message(n).await;
            assert!(message.contains("1 need a person") && message.contains("chunk 1/1"));
        }
    }
    house.later();
    house.round().await;
    for ((n, policy), then) in POLICIES.into_iter().zip(expected.then) {
        assert_eq!(house.chunks(n).await, then, "{policy}: a third run changes nothing");
    }
}

on_every_database! {
    async fn a_partner_that_is_down_certainly_accepted_nothing(app: TestApp) {
        walk(&app, None, DEFINITE).await;
    }

    async fn a_partner_that_refuses_certainly_accepted_nothing(app: TestApp) {
        walk(&app, Some(Trouble::Refuse), DEFINITE).await;
    }

    async fn a_state_that_is_not_1_is_a_refusal(app: TestApp) {
        walk(&app, Some(Trouble::StateZero), DEFINITE).await;
    }

    async fn a_500_is_no_verdict(app: TestApp) {
        walk(&app, Some(Trouble::ServerError), UNKNOWN).await;
    }

    async fn a_lost_answer_is_no_verdict_although_the_partner_kept_the_message(app: TestApp) {
        walk(&app, Some(Trouble::AcceptThenHang), KEPT).await;
    }

    async fn an_answer_under_a_wrong_signature_is_no_verdict(app: TestApp) {
        walk(&app, Some(Trouble::WrongSignature), KEPT).await;
    }

    async fn an_answer_about_another_message_is_no_verdict(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        let earlier = Delivery {
            key: "X:1".into(),
            endpoint: format!("{}/partner/1/review-results", house.address),
            keys: vec![key("k", "jose")],
            sent: app.now(),
            body: r#"{"idempotencyKey":"X:1"}"#.into(),
        };
        let answer = House::inbox(LONG).deliver(&earlier).await;
        assert!(matches!(answer, DeliveryAnswer::Accepted { .. }), "{answer:?}");
        house.trouble(Trouble::EarlierAnswer);
        house.round().await;
        assert_eq!(house.chunks(1).await, "UNKNOWN|1");
        assert!(house.message(1).await.contains("its answer is about another message"));
    }

    async fn a_partner_without_an_address_is_skipped_and_that_is_said(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        app.execute("UPDATE sys_partner SET endpoint = ' '").await;
        app.execute("INSERT INTO fi_resident_income_payment_order_bill
               (payment_order_id, data_version, submit_round, line_type, line_status, partner_id)
             VALUES (1, 1, 1, 10, 20, NULL), (1, 1, 1, 10, 20, 77)").await;
        assert_eq!(house.round().await.succeeded, 1);
        let log = "SELECT COALESCE(partner_id, 0) AS p, status, attempt_count, last_error
                   FROM fi_resident_income_payment_external_log ORDER BY p";
        assert_eq!(
            app.lines(log).await,
            [
                "0|SKIPPED|0|these lines name no partner",
                "1|SKIPPED|0|partner 1 has no address",
                "77|SKIPPED|0|partner 77 has no address",
            ]
        );
    }

    async fn a_partner_without_a_usable_key_gets_nothing_and_the_push_fails(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        let table = [
            ("retired_time = '2026-09-08 02:00:00'", "no key of the partner counts now"),
            ("retired_time = NULL, signing_secret_ref = 'no:k'", "nothing is kept there"),
            ("signing_secret_ref = 'sign:k', encryption_key_ref = 'sm4:k'", "jose takes 32"),
        ];
        for (wrong, why) in table {
            app.execute(&format!("UPDATE partner_key SET {wrong}")).await;
            assert_eq!(house.rerun(1).await.failed, 1);
            let message = house.message(1).await;
            assert!(message.contains(why), "{message}");
        }
        assert_eq!(house.received(1).await, "");
        app.execute("UPDATE partner_key SET encryption_key_ref = 'seal:k'").await;
        assert_eq!(house.rerun(1).await.succeeded, 1);
    }

    async fn a_process_that_died_while_sending_left_no_verdict(app: TestApp) {
        let house = House::build(&app).await;
        for (n, policy) in POLICIES {
            house.approved(n, policy).await;
        }
        // Written by hand: the first run is let fail at home, then the rows are as a crash leaves
        // them, also with one of the two marks only.
        house.trouble(Trouble::Refuse);
        house.round().await;
        app.execute("UPDATE fi_resident_income_payment_external_log SET status = 'WAIT_PROCESS'")
            .await;
        app.execute("UPDATE fi_resident_income_payment_external_log SET sent_time = NULL
                     WHERE payment_order_id = 2").await;
        house.well_again();
        house.later();
        house.round().await;
        let found = [house.chunks(1).await, house.chunks(2).await, house.chunks(3).await];
        assert_eq!(found, ["UNKNOWN|1", "UNKNOWN|1", "SUCCESS|2"]);
        assert!(house.message(2).await.contains("the process ended while it was sending"));
    }

    async fn a_silent_partner_is_asked_once_a_run_and_the_others_are_told(app: TestApp) {
        let house = House::build(&app).await;
        house.approved(1, "definite").await;
        house.partner(2, "definite").await;
        app.execute("UPDATE sys_partner SET endpoint = 'http://127.0.0.1:9/' WHERE id = 1").await;
        app.execute("INSERT INTO fi_resident_income_payment_order_bill
               (id, payment_order_id, data_version, submit_round, line_type, line_status,
                partner_id)
             VALUES (104, 1, 1, 1, 10, 20, 2)").await;
        assert_eq!(house.round().await.failed, 1);
        // A second chunk of the silent partner, as a longer order has it.
        app.execute("INSERT INTO fi_resident_income_payment_external_log
               (idempotency_key, log_type, payment_order_id, data_version, submit_round,
                partner_id, chunk_no, chunk_count, request_body, last_line_id)
             VALUES ('PARTNER_REVIEW_RESULT:1:1:1:1:2', 'PARTNER_REVIEW_RESULT', 1, 1, 1, 1, 2, 2,
               '{}', 103)").await;
        assert_eq!(house.chunks(1).await, "FAIL|1 SUCCESS|1 WAIT_PROCESS|0");
        house.later();
        assert_eq!(house.round().await.failed, 1);
        assert_eq!(house.chunks(1).await, "FAIL|2 SUCCESS|1 WAIT_PROCESS|0");
        assert!(house.message(1).await.starts_with("2 of 3 chunks are not settled"));
    }
}
