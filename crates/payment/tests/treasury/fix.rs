//! A payee put right, and pushed again alone: the same detail, a new push.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::data_fix::{PayeeFix, fix};
use counterfoil_payment::treasury::port::Reported;

use super::hand::{Hand, Scripted, TREASURER, line, unknown};

fn account(number: &str) -> PayeeFix {
    PayeeFix { account: Some(number.into()), ..PayeeFix::default() }
}

on_every_database! {
    async fn a_returned_payment_is_pushed_again_alone_under_a_new_id(app: TestApp) {
        let hand = pushed(&app).await;
        let channel = Scripted::default();
        let all = hand.report("R1", &[(101, Reported::Paid), (102, Reported::Paid)]).await;
        hand.import(&all).await.unwrap();
        let back = hand.report("R2", &[(102, Reported::Rejected)]).await;
        hand.import(&back).await.unwrap();
        let detail = hand.detail(102).await;
        let fixed = fix(&app.db, detail, &account("NEW1"), "the farmer wrote", TREASURER).await;
        assert_eq!(fixed.unwrap().batch_status, "WAIT_PUSH");
        assert_eq!(hand.standing().await[..2], ["WAIT_PUSH", "40|PUSHING"]);
        hand.push_round(&channel).await;
        let sent = channel.sent();
        assert_eq!(sent.len(), 1);
        assert!(sent[0].message_id.ends_with("-2"), "{}", sent[0].message_id);
        assert!(sent[0].body.contains("NEW1") && !sent[0].body.contains("ACC101"));
        assert_eq!(hand.standing().await, ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAID|30",
            "102|PUSHED|PAYING|20"]);
        let paid = hand.report("R3", &[(102, Reported::Paid)]).await;
        hand.import(&paid).await.unwrap();
        assert_eq!(hand.standing().await[1], "50|PUSHED");
        let details = "SELECT COUNT(*) FROM fi_resident_income_payment_push_batch_detail";
        assert_eq!(app.value(details).await, "2", "never a second detail of a line");
        let history = format!("SELECT end_to_end_id, payee_account
            FROM fi_resident_income_payment_push_item
            WHERE push_batch_detail_id = {detail} ORDER BY id");
        assert_eq!(app.lines(&history).await,
            [format!("CFD{detail}-1|ACC102"), format!("CFD{detail}-2|NEW1")]);
        let log = "SELECT old_payee_account, new_payee_account, reason, operator_user_id
            FROM fi_resident_income_payment_push_fix";
        assert_eq!(app.lines(log).await, ["ACC102|NEW1|the farmer wrote|31"]);
        hand.rules_hold_but(&[]).await;
    }

    async fn a_changed_payee_is_confirmed_by_a_person_and_goes(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 100), line(2, 200)]).await;
        hand.create().await.unwrap();
        app.execute("UPDATE fi_customer_account SET account_no = 'OTHER' WHERE id = 102").await;
        let channel = Scripted::default();
        hand.push_round(&channel).await;
        let detail = hand.detail(102).await;
        fix(&app.db, detail, &account("OTHER"), "asked by telephone", TREASURER).await.unwrap();
        hand.push_round(&channel).await;
        assert_eq!(hand.standing().await[..2], ["PUSH_SUCCESS", "40|PUSHED"]);
        assert!(channel.sent()[1].body.contains("OTHER"));
        hand.rules_hold_but(&[]).await;
    }

    async fn what_is_under_way_paid_or_unknown_cannot_be_fixed(app: TestApp) {
        let hand = pushed(&app).await;
        let detail = hand.detail(101).await;
        let refused = async |why: &str| {
            let error = fix(&app.db, detail, &account("X"), "because", TREASURER).await;
            let error = error.expect_err(why);
            assert_eq!(error.code(), "push-detail-state", "{why}: {error}");
        };
        refused("under way").await;
        let report = hand.report("R1", &[(101, Reported::Paid)]).await;
        hand.import(&report).await.unwrap();
        refused("paid").await;
        let none = fix(&app.db, 999, &account("X"), "because", TREASURER).await;
        assert_eq!(none.unwrap_err().code(), "push-detail-not-found");
        let blank = fix(&app.db, detail, &account("X"), " ", TREASURER).await;
        assert_eq!(blank.unwrap_err().code(), "invalid-input");
        let control = fix(&app.db, detail, &account("a\nb"), "because", TREASURER).await;
        assert_eq!(control.unwrap_err().code(), "invalid-input");
    }

    async fn a_detail_whose_push_has_no_verdict_cannot_be_fixed(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 100)]).await;
        hand.create().await.unwrap();
        let channel = Scripted::default();
        channel.answers(unknown());
        hand.push_round(&channel).await;
        let detail = hand.detail(101).await;
        let fixed = fix(&app.db, detail, &account("X"), "because", TREASURER).await;
        assert_eq!(fixed.unwrap_err().code(), "push-detail-state");
    }

    async fn money_that_arrives_after_all_takes_a_fixed_detail_out_of_the_next_push(app: TestApp) {
        let hand = pushed(&app).await;
        let failed = hand.report("R1", &[(101, Reported::Rejected)]).await;
        hand.import(&failed).await.unwrap();
        let detail = hand.detail(101).await;
        fix(&app.db, detail, &account("NEW1"), "because", TREASURER).await.unwrap();
        let pending = hand.report("R2", &[(101, Reported::Rejected)]).await;
        assert_eq!(hand.import(&pending).await.unwrap().changed, 0);
        let paid = hand.report("R3", &[(101, Reported::Paid)]).await;
        hand.import(&paid).await.unwrap();
        assert_eq!(hand.standing().await[2], "101|PUSHED|PAID|30");
        let channel = Scripted::default();
        hand.push_round(&channel).await;
        assert_eq!(channel.sent().len(), 0);
    }

    async fn a_late_word_about_an_older_push_decides_nothing_and_is_shown(app: TestApp) {
        let hand = pushed(&app).await;
        let old = hand.report("R9", &[(101, Reported::Paid)]).await;
        let failed = hand.report("R1", &[(101, Reported::Rejected)]).await;
        hand.import(&failed).await.unwrap();
        let detail = hand.detail(101).await;
        fix(&app.db, detail, &account("NEW1"), "because", TREASURER).await.unwrap();
        hand.push_round(&Scripted::default()).await;
        let applied = hand.import(&old).await.unwrap();
        assert_eq!((applied.changed, applied.refused), (0, 1));
        assert_eq!(hand.standing().await[2], "101|PUSHED|PAYING|20");
        hand.rules_hold_but(&["no-result-contradicts"]).await;
    }
}

async fn pushed(app: &counterfoil_e2e::TestApp) -> Hand<'_> {
    let hand = Hand::order(app, "NONE", &[line(1, 100), line(2, 200)]).await;
    hand.create().await.expect("batches");
    hand.push_round(&Scripted::default()).await;
    hand
}
