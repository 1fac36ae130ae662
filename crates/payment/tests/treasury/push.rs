//! Pushing: claimed once, settled by a verdict, and never paid twice for want of one.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::port::{PushAnswer, ReportEntry, Reported};
use counterfoil_payment::treasury::push::{Asked, Pushed, push_one};

use super::create::wipe;
use super::hand::{Hand, Scripted, accepted, channels, line, refused, unknown};

on_every_database! {
    async fn an_accepted_push_is_under_way_and_no_more(app: TestApp) {
        let hand = two_lines(&app).await;
        let channel = Scripted::default();
        let summary = hand.push_round(&channel).await;
        assert_eq!((summary.selected, summary.succeeded, summary.failed), (1, 1, 0));
        assert_eq!(hand.standing().await,
            ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAYING|20", "102|PUSHED|PAYING|20"]);
        let push = "SELECT push_no, push_state, detail_count, total_amount, external_ref
            FROM fi_resident_income_payment_push";
        assert_eq!(app.lines(push).await, ["1|ACCEPTED|2|300|T-1"]);
        let stored = app.lines("SELECT body, body_sha256 FROM fi_resident_income_payment_push")
            .await;
        let sent = channel.sent();
        assert_eq!(stored, [format!("{}|{}", sent[0].body, sent[0].sha256)]);
        assert_eq!(hand.push_round(&channel).await.selected, 0, "nothing is due any more");
        hand.rules_hold_but(&[]).await;
    }

    async fn a_certain_refusal_is_pushed_again_when_due_at_most_ten_times(app: TestApp) {
        let hand = two_lines(&app).await;
        let channel = Scripted::default();
        for push in 1..=10 {
            channel.answers(refused());
            let summary = hand.push_round(&channel).await;
            assert_eq!((summary.selected, summary.failed), (1, 1), "push {push}");
            assert_eq!(hand.standing().await[..2], ["PUSH_FAIL", "40|PUSH_FAILED"]);
            assert_eq!(hand.push_round(&channel).await.selected, 0, "not due before its time");
            app.pass_minutes(61);
        }
        assert_eq!(hand.push_round(&channel).await.selected, 0, "the limit is reached");
        assert_eq!(channel.sent().len(), 10);
        let mut ids: Vec<String> = channel.sent().into_iter().map(|m| m.message_id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 10, "a new push has a new id");
        let by_person = push_one(&app.db, &channels(&channel), hand.batch().await,
            Asked::ByPerson).await.unwrap();
        assert_eq!(by_person, Pushed::Accepted, "a person may push all the same");
        assert_eq!(hand.standing().await[..2], ["PUSH_SUCCESS", "40|PUSHED"]);
        hand.rules_hold_but(&[]).await;
    }

    async fn a_push_without_a_verdict_is_never_sent_again_to_who_would_pay_twice(app: TestApp) {
        let hand = two_lines(&app).await;
        let channel = Scripted::default();
        channel.answers(unknown());
        hand.push_round(&channel).await;
        for _ in 0..20 {
            assert_eq!(hand.standing().await,
                ["PUSHING", "40|PUSHING", "101|WAIT_PUSH|NULL|20", "102|WAIT_PUSH|NULL|20"]);
            app.pass_minutes(61);
            hand.push_round(&channel).await;
            let pushed = push_one(&app.db, &channels(&channel), hand.batch().await,
                Asked::ByPerson).await.unwrap();
            assert_eq!(pushed, Pushed::Lost, "no person can push it either");
        }
        assert_eq!(channel.sent().len(), 1);
        assert_eq!(channel.asked().len(), 20);
        let shown = "SELECT error_message FROM fi_resident_income_payment_push_batch";
        assert!(app.value(shown).await.contains("no verdict"), "it is shown");
        channel.tells(accepted());
        app.pass_minutes(61);
        hand.push_round(&channel).await;
        assert_eq!(hand.standing().await,
            ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAYING|20", "102|PUSHED|PAYING|20"]);
        hand.rules_hold_but(&[]).await;
    }

    async fn identical_bytes_go_again_under_the_same_id_where_that_is_declared_harmless(
        app: TestApp
    ) {
        let hand = two_lines(&app).await;
        let channel = Scripted::idempotent();
        channel.answers(unknown()).answers(unknown());
        hand.push_round(&channel).await;
        for _ in 0..2 {
            app.pass_minutes(61);
            hand.push_round(&channel).await;
        }
        let sent = channel.sent();
        assert_eq!(sent.len(), 3);
        assert!(sent.iter().all(|message| *message == sent[0]), "{sent:?}");
        assert_eq!(hand.standing().await[..2], ["PUSH_SUCCESS", "40|PUSHED"]);
        let pushes = "SELECT push_count FROM fi_resident_income_payment_push_batch";
        assert_eq!(app.value(pushes).await, "1", "it was one push all along");
    }

    async fn two_pushers_at_once_send_once(app: TestApp) {
        let hand = two_lines(&app).await;
        let channel = Scripted::default();
        let batch = hand.batch().await;
        let other = app.second_process().await;
        let pushes = [&app, &other, &app, &other].map(|app| {
            let (db, channels) = (app.db.clone(), channels(&channel));
            tokio::spawn(async move { push_one(&db, &channels, batch, Asked::BySchedule).await })
        });
        let mut ended = Vec::new();
        for push in pushes {
            ended.push(push.await.expect("no panic").expect("no error"));
        }
        let won = ended.iter().filter(|pushed| **pushed == Pushed::Accepted).count();
        assert_eq!(won, 1, "{ended:?}");
        assert_eq!(channel.sent().len(), 1);
        other.db.close().await;
    }

    async fn a_payee_changed_after_approval_waits_and_the_others_go(app: TestApp) {
        for change in [
            "UPDATE fi_customer_account SET account_no = 'OTHER' WHERE id = 102",
            "UPDATE fi_customer_account SET holder_name = 'farmer 102' WHERE id = 102",
            "UPDATE fi_customer_account SET bank_name = '' WHERE id = 102",
            "UPDATE fi_customer_account SET status = 0 WHERE id = 102",
            "DELETE FROM fi_customer_account WHERE id = 102",
            "UPDATE fi_customer_bill SET customer_account_id = 101 WHERE id = 102",
        ] {
            let hand = two_lines(&app).await;
            app.execute(change).await;
            let channel = Scripted::default();
            hand.push_round(&channel).await;
            assert_eq!(hand.standing().await, ["WAIT_DATA_FIX", "40|PUSH_PARTIAL",
                "101|PUSHED|PAYING|20", "102|WAIT_DATA_FIX|NULL|20"], "{change}");
            let why = "SELECT error_code FROM fi_resident_income_payment_push_batch_detail
                WHERE order_bill_id = 102";
            assert_eq!(app.value(why).await, "payee-changed");
            assert!(!channel.sent()[0].body.contains("102"), "{change}");
            hand.rules_hold_but(&[]).await;
            wipe(&app).await;
        }
    }

    async fn a_batch_of_which_nothing_can_be_sent_is_no_push(app: TestApp) {
        let hand = two_lines(&app).await;
        app.execute("UPDATE fi_customer_account SET status = 0").await;
        let channel = Scripted::default();
        let summary = hand.push_round(&channel).await;
        assert_eq!((summary.failed, channel.sent().len()), (1, 0));
        assert_eq!(hand.standing().await[..2], ["WAIT_DATA_FIX", "40|PUSH_FAILED"]);
        let push = "SELECT push_count FROM fi_resident_income_payment_push_batch";
        assert_eq!(app.value(push).await, "0");
    }

    async fn what_the_channel_or_nobody_can_send_waits_for_data(app: TestApp) {
        let hand = two_lines(&app).await;
        app.execute("UPDATE fi_customer_bill SET customer_account_id = NULL;
            \nUPDATE fi_resident_income_payment_push_batch_detail SET payee_account = ' '
            WHERE order_bill_id = 101;
            \nUPDATE fi_resident_income_payment_push_batch_detail SET amount = 0
            WHERE order_bill_id = 102").await;
        hand.push_round(&Scripted::default()).await;
        let why = "SELECT push_status, error_code
            FROM fi_resident_income_payment_push_batch_detail ORDER BY id";
        assert_eq!(app.lines(why).await,
            ["WAIT_DATA_FIX|payee-missing", "WAIT_DATA_FIX|amount-not-positive"]);
    }

    async fn without_an_account_that_pays_nothing_is_sent_until_there_is_one(app: TestApp) {
        let hand = two_lines(&app).await;
        app.execute("UPDATE sys_project_company SET payer_account = NULL").await;
        let channel = Scripted::default();
        hand.push_round(&channel).await;
        assert_eq!(hand.standing().await[..2], ["PUSH_FAIL", "40|PUSH_FAILED"]);
        let why = "SELECT error_message FROM fi_resident_income_payment_push_batch";
        let why = app.value(why).await;
        assert!(why.contains("payer-missing"), "{why}");
        app.execute("INSERT INTO fi_resident_income_payment_order_project_payment
            (payment_order_id, data_version, submit_round, project_company_id, payer_account)
            VALUES (1, 1, 1, 1, 'PAYER9')").await;
        app.pass_minutes(11);
        hand.push_round(&channel).await;
        assert!(channel.sent()[0].body.contains("PAYER9"));
        assert_eq!(hand.standing().await[..2], ["PUSH_SUCCESS", "40|PUSHED"]);
    }

    async fn a_strategy_that_nobody_configured_is_named_and_sends_nothing(app: TestApp) {
        let hand = two_lines(&app).await;
        app.execute("UPDATE fi_resident_income_payment_push_batch SET strategy = 'pigeon'").await;
        let channel = Scripted::default();
        let summary = hand.push_round(&channel).await;
        assert_eq!((summary.selected, summary.failed), (1, 1), "one turn, not fifty");
        assert!(summary.errors[0].message.contains("pigeon"), "{summary:?}");
        assert_eq!(hand.standing().await[0], "WAIT_PUSH");
        assert_eq!(channel.sent().len(), 0);
    }

    async fn an_answer_may_refuse_single_lines_and_pay_others(app: TestApp) {
        let hand = two_lines(&app).await;
        let entry = |line: i64, status| async move {
            ReportEntry {
                end_to_end_id: format!("CFD{}-1", hand.detail(line).await),
                status, amount: None,
                reason_code: Some("AC01".into()), reason: Some("no such account".into()),
            }
        };
        let entries = vec![entry(101, Reported::Paid).await, entry(102, Reported::Rejected).await];
        let channel = Scripted::default();
        channel.answers(PushAnswer::Accepted { reference: None, entries });
        hand.push_round(&channel).await;
        assert_eq!(hand.standing().await, ["PUSH_PARTIAL_SUCCESS", "40|PUSH_PARTIAL",
            "101|PUSHED|PAID|30", "102|REJECTED|PAY_FAILED|40"]);
        let why = "SELECT error_code, error_message
            FROM fi_resident_income_payment_push_batch_detail WHERE order_bill_id = 102";
        assert_eq!(app.value(why).await, "AC01|no such account");
        hand.rules_hold_but(&[]).await;
    }

    async fn nothing_is_pushed_of_an_order_that_is_not_at_40(app: TestApp) {
        let hand = two_lines(&app).await;
        let channel = Scripted::default();
        for status in [20, 50, 90] {
            app.execute(&format!(
                "UPDATE fi_resident_income_payment_order SET status = {status}")).await;
            assert_eq!(hand.push_round(&channel).await.selected, 0);
            let pushed = push_one(&app.db, &channels(&channel), hand.batch().await,
                Asked::ByPerson).await.unwrap();
            assert_eq!(pushed, Pushed::Lost);
        }
        assert_eq!(channel.sent().len(), 0);
    }
}

async fn two_lines(app: &counterfoil_e2e::TestApp) -> Hand<'_> {
    let hand = Hand::order(app, "NONE", &[line(1, 100), line(2, 200)]).await;
    hand.create().await.expect("batches");
    hand
}
