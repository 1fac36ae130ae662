//! Results: each line's own, and nothing claimed of a line that no report names.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::port::{GroupStatus, ReportEntry, Reported, ResultReport};
use counterfoil_protocol::Fen;

use super::hand::{Hand, Scripted, TREASURER, line, unknown};
use Reported::{Paid, Pending, Rejected};

on_every_database! {
    async fn an_order_is_paid_when_every_line_is_and_not_before(app: TestApp) {
        let hand = pushed(&app).await;
        let first = hand.report("R1", &[(101, Paid), (102, Pending)]).await;
        let applied = hand.import(&first).await.unwrap();
        assert_eq!((applied.changed, applied.refused), (1, 0));
        assert_eq!(hand.standing().await, ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAID|30",
            "102|PUSHED|PAYING|20", "103|PUSHED|PAYING|20"]);
        let rest = hand.report("R2", &[(102, Paid), (103, Paid)]).await;
        hand.import(&rest).await.unwrap();
        assert_eq!(hand.standing().await[1], "50|PUSHED");
        let log = "SELECT operation_type, from_status, to_status
            FROM fi_resident_income_payment_order_log";
        assert_eq!(app.lines(log).await, ["PAID|40|50"]);
        hand.rules_hold_but(&[]).await;
    }

    async fn shards_of_the_touched_lines_are_planned(app: TestApp) {
        let hand = pushed(&app).await;
        let report = hand.report("R1", &[(103, Paid), (101, Rejected), (102, Pending)]).await;
        let applied = hand.import(&report).await.unwrap();
        let shards = "SELECT source_type, source_id, payment_order_id, data_version, submit_round,
            start_order_bill_id, end_order_bill_id, scope_count, task_status
            FROM fi_resident_income_payment_status_refresh_shard";
        let expected = format!("PAYMENT_RESULT|{}|1|1|1|101|103|3|PENDING", applied.result_id);
        assert_eq!(app.lines(shards).await, [expected]);
    }

    async fn the_same_report_again_changes_nothing_and_another_under_its_id_is_refused(
        app: TestApp
    ) {
        let hand = pushed(&app).await;
        let report = hand.report("R1", &[(101, Paid)]).await;
        hand.import(&report).await.unwrap();
        let before = (hand.standing().await, everything(&app).await);
        let again = hand.import(&report).await.unwrap();
        assert!(again.known);
        assert_eq!((hand.standing().await, everything(&app).await), before);
        let forged = ResultReport { entries: hand.report("R1", &[(102, Paid)]).await.entries,
            ..report };
        let refused = counterfoil_payment::treasury::result::import(&app.db, &forged,
            b"other bytes", TREASURER).await.unwrap_err();
        assert_eq!(refused.code(), "result-report-conflict");
        assert_eq!((hand.standing().await, everything(&app).await), before);
    }

    async fn entries_that_cannot_be_applied_are_named_and_leave_the_others_alone(app: TestApp) {
        let hand = pushed(&app).await;
        let mut report = hand.report("R1", &[(101, Paid), (101, Paid), (102, Paid),
            (102, Rejected), (103, Paid)]).await;
        report.entries[4].amount = Some(Fen(301));
        report.entries.push(ReportEntry {
            end_to_end_id: "CFD999-1".into(), status: Paid, amount: None, reason_code: None,
            reason: None,
        });
        let applied = hand.import(&report).await.unwrap();
        assert_eq!((applied.entries, applied.changed, applied.refused), (6, 1, 4));
        let outcomes = "SELECT entry_no, outcome
            FROM fi_resident_income_payment_push_result_entry ORDER BY entry_no";
        assert_eq!(app.lines(outcomes).await, ["1|APPLIED", "2|DUPLICATE", "3|CONTRADICTION",
            "4|CONTRADICTION", "5|AMOUNT_DIFFERS", "6|UNKNOWN_LINE"]);
        assert_eq!(hand.standing().await[2..], ["101|PUSHED|PAID|30", "102|PUSHED|PAYING|20",
            "103|PUSHED|PAYING|20"]);
    }

    async fn a_report_about_nothing_of_ours_or_about_nothing_is_refused(app: TestApp) {
        let hand = pushed(&app).await;
        let report = hand.report("R1", &[(101, Paid)]).await;
        let before = everything(&app).await;
        let stranger = ResultReport { message_id: "CF999-1".into(), ..report.clone() };
        let refused = hand.import(&stranger).await.unwrap_err();
        assert_eq!(refused.code(), "result-report-stranger");
        let empty = ResultReport { entries: Vec::new(), ..report.clone() };
        let refused = hand.import(&empty).await.unwrap_err();
        assert_eq!(refused.code(), "result-report-unreadable");
        let nameless = ResultReport { report_id: " ".into(), ..report };
        assert_eq!(hand.import(&nameless).await.unwrap_err().code(), "result-report-unreadable");
        assert_eq!(everything(&app).await, before);
    }

    async fn a_payment_that_comes_back_takes_the_order_back_to_wait_pay(app: TestApp) {
        let hand = pushed(&app).await;
        let all = [(101, Paid), (102, Paid), (103, Paid)];
        let report = hand.report("R1", &all).await;
        hand.import(&report).await.unwrap();
        let back = hand.report("R2", &[(102, Rejected)]).await;
        hand.import(&back).await.unwrap();
        assert_eq!(hand.standing().await, ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAID|30",
            "102|PUSHED|PAY_FAILED|40", "103|PUSHED|PAID|30"]);
        let log = "SELECT operation_type, from_status, to_status
            FROM fi_resident_income_payment_order_log ORDER BY id";
        assert_eq!(app.lines(log).await, ["PAID|40|50", "PAYMENT_RETURNED|50|40"]);
        let paid = "SELECT COUNT(*) FROM fi_resident_income_payment_push_batch_detail
            WHERE paid_time IS NOT NULL";
        assert_eq!(app.value(paid).await, "2");
        hand.rules_hold_but(&[]).await;
    }

    async fn paid_after_failed_is_for_a_person_and_breaks_a_rule(app: TestApp) {
        let hand = pushed(&app).await;
        let failed = hand.report("R1", &[(101, Rejected)]).await;
        hand.import(&failed).await.unwrap();
        let paid = hand.report("R2", &[(101, Paid)]).await;
        let applied = hand.import(&paid).await.unwrap();
        assert_eq!((applied.changed, applied.refused), (0, 1));
        assert_eq!(hand.standing().await[2], "101|PUSHED|PAY_FAILED|40");
        hand.rules_hold_but(&["no-result-contradicts"]).await;
        let rule = counterfoil_payment::treasury::rules::RULES.iter()
            .find(|rule| rule.name == "no-result-contradicts").unwrap();
        assert!(counterfoil_task::check(&app.db, rule).await.unwrap().is_some());
    }

    async fn a_message_refused_as_a_whole_fails_all_its_lines(app: TestApp) {
        let hand = pushed(&app).await;
        let group = GroupStatus { code: "RJCT".into(), is_rejected: true,
            reason_code: Some("FF01".into()), reason: None };
        let report = hand.report("R1", &[]).await;
        hand.import(&ResultReport { group: Some(group), ..report }).await.unwrap();
        let failed = |line| format!("{line}|PUSHED|PAY_FAILED|40");
        assert_eq!(hand.standing().await[2..], [failed(101), failed(102), failed(103)]);
        hand.rules_hold_but(&[]).await;
    }

    async fn a_message_accepted_as_a_whole_says_nothing_of_its_lines(app: TestApp) {
        let hand = pushed(&app).await;
        let before = hand.standing().await;
        let group = GroupStatus { code: "ACSC".into(), is_rejected: false, reason_code: None,
            reason: None };
        let report = hand.report("R1", &[]).await;
        let applied = hand.import(&ResultReport { group: Some(group), ..report }).await.unwrap();
        assert_eq!((applied.entries, applied.changed), (0, 0));
        assert_eq!(hand.standing().await, before);
    }

    async fn a_result_settles_a_push_without_a_verdict_line_by_line(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 100), line(2, 200), line(3, 300)]).await;
        hand.create().await.unwrap();
        let channel = Scripted::default();
        channel.answers(unknown());
        hand.push_round(&channel).await;
        let some = hand.report("R1", &[(101, Paid), (102, Rejected)]).await;
        hand.import(&some).await.unwrap();
        assert_eq!(hand.standing().await, ["PUSHING", "40|PUSHING", "101|PUSHED|PAID|30",
            "102|PUSHED|PAY_FAILED|40", "103|WAIT_PUSH|NULL|20"]);
        let rest = hand.report("R2", &[(103, Pending)]).await;
        hand.import(&rest).await.unwrap();
        assert_eq!(hand.standing().await, ["PUSH_SUCCESS", "40|PUSHED", "101|PUSHED|PAID|30",
            "102|PUSHED|PAY_FAILED|40", "103|PUSHED|PAYING|20"]);
        assert_eq!(channel.sent().len(), 1);
        hand.rules_hold_but(&[]).await;
    }

    async fn two_imports_of_one_report_at_once_apply_it_once(app: TestApp) {
        let hand = pushed(&app).await;
        let report = hand.report("R1", &[(101, Paid)]).await;
        let other = app.second_process().await;
        let rival = Hand(&other);
        let (a, b) = tokio::join!(hand.import(&report), rival.import(&report));
        let known = [a.unwrap().known, b.unwrap().known];
        assert_eq!(known.iter().filter(|known| **known).count(), 1, "{known:?}");
        let entries = "SELECT COUNT(*) FROM fi_resident_income_payment_push_result_entry";
        assert_eq!(app.value(entries).await, "1");
        other.db.close().await;
    }
}

/// Three lines on their way.
async fn pushed(app: &counterfoil_e2e::TestApp) -> Hand<'_> {
    let hand = Hand::order(app, "NONE", &[line(1, 100), line(2, 200), line(3, 300)]).await;
    hand.create().await.expect("batches");
    hand.push_round(&Scripted::default()).await;
    hand
}

async fn everything(app: &counterfoil_e2e::TestApp) -> Vec<String> {
    let mut lines = Vec::new();
    for table in [
        "push_result",
        "push_result_entry",
        "status_refresh_shard",
        "order_log",
        "push_batch",
        "push_batch_detail",
    ] {
        let query = format!("SELECT * FROM fi_resident_income_payment_{table} ORDER BY id");
        lines.extend(app.lines(&query).await);
    }
    lines
}
