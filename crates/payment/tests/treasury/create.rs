//! Batches come to exactly the payable lines, once.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::batch_creation::{Created, Target};

use super::hand::{Hand, Line, TARGET, line};

on_every_database! {
    async fn one_batch_a_project_company_without_a_split_rule(app: TestApp) {
        let lines = [
            line(1, 100),
            Line { company: 2, ..line(2, 200) },
            Line { partner: 8, ..line(3, 300) },
        ];
        let hand = Hand::order(&app, "NONE", &lines).await;
        assert_eq!(hand.create().await.unwrap(), Created::Now);
        assert_eq!(hand.batches().await, ["1|1:ALL|2|400", "2|1:ALL|1|200"]);
        assert_eq!(hand.standing().await, [
            "WAIT_PUSH", "WAIT_PUSH", "40|PUSHING", "101|WAIT_PUSH|NULL|20",
            "102|WAIT_PUSH|NULL|20", "103|WAIT_PUSH|NULL|20",
        ]);
        hand.rules_hold_but(&[]).await;
    }

    async fn a_partners_rule_splits_his_lines_and_no_others(app: TestApp) {
        let lines = [
            line(1, 60), line(2, 40), line(1, 10), line(3, 500), line(4, 1),
            Line { partner: 8, ..line(5, 7) },
        ];
        for (rule, expected) in [
            ("BY_STATION", vec!["1|1:ALL|1|7", "1|1:P7:S1|2|70", "1|1:P7:S2|1|40",
                "1|1:P7:S3|1|500", "1|1:P7:S4|1|1"]),
            ("MAX_LINES:2", vec!["1|1:ALL|1|7", "1|1:P7|2|100", "1|2:P7|2|510", "1|3:P7|1|1"]),
            ("MAX_AMOUNT:100", vec!["1|1:ALL|1|7", "1|1:P7|2|100", "1|2:P7|1|10",
                "1|3:P7|1|500", "1|4:P7|1|1"]),
        ] {
            let hand = Hand::order(&app, rule, &lines).await;
            hand.create().await.unwrap();
            let mut batches = hand.batches().await;
            batches.sort();
            assert_eq!(batches, expected, "{rule}");
            hand.rules_hold_but(&[]).await;
            wipe(&app).await;
        }
    }

    async fn more_lines_than_a_chunk_come_to_exactly_their_sum(app: TestApp) {
        let lines: Vec<Line> = (1..=2300).map(|n| line(n % 50, n)).collect();
        let hand = Hand::order(&app, "MAX_LINES:900", &lines).await;
        hand.create().await.unwrap();
        let batches = hand.batches().await;
        let sums = [(1, 900), (901, 1800), (1801, 2300)]
            .map(|(first, last)| (last - first + 1, (first..=last).sum::<i64>()));
        let expected = (1..).zip(sums).map(|(n, (count, sum))| format!("1|{n}:P7|{count}|{sum}"));
        assert_eq!(batches, expected.collect::<Vec<_>>());
        hand.rules_hold_but(&[]).await;
    }

    async fn creating_again_changes_nothing(app: TestApp) {
        let hand = Hand::order(&app, "MAX_LINES:1", &[line(1, 5), line(2, 6)]).await;
        hand.create().await.unwrap();
        let before = (hand.batches().await, hand.standing().await);
        assert_eq!(hand.create().await.unwrap(), Created::Before);
        assert_eq!((hand.batches().await, hand.standing().await), before);
        let notices = "SELECT COUNT(*) FROM fi_async_task";
        assert_eq!(app.value(notices).await, "1");
    }

    async fn a_rule_that_cannot_be_read_creates_nothing(app: TestApp) {
        let hand = Hand::order(&app, "MAX_LINES:0", &[line(1, 5)]).await;
        let refused = hand.create().await.unwrap_err();
        assert_eq!(refused.code(), "split-rule-invalid");
        assert!(refused.to_string().contains("partner 7"), "{refused}");
        nothing_was_created(&app).await;
    }

    async fn a_line_without_an_amount_above_zero_creates_nothing(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 5), line(2, 6)]).await;
        for amount in ["0", "-1", "NULL"] {
            app.execute(&format!("UPDATE fi_resident_income_payment_order_bill
                SET pay_amount = {amount} WHERE id = 102")).await;
            let refused = hand.create().await.unwrap_err();
            assert_eq!(refused.code(), "treasury-line-amount");
            assert!(refused.to_string().contains("line 102"), "{refused}");
            nothing_was_created(&app).await;
        }
    }

    async fn a_missing_lock_or_another_approved_count_creates_nothing(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 5), line(2, 6)]).await;
        let three = Target { payable_count: Some(3), ..TARGET };
        let refused = hand.create_of(three).await.unwrap_err();
        assert_eq!(refused.code(), "treasury-locks-differ");
        app.execute("UPDATE fi_resident_income_payment_bill_lock SET lock_status = 'RELEASED'
            WHERE order_bill_id = 102").await;
        let refused = hand.create().await.unwrap_err();
        assert_eq!(refused.code(), "treasury-locks-differ");
        nothing_was_created(&app).await;
    }

    async fn an_order_that_is_not_to_be_pushed_is_left_alone(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 5)]).await;
        for change in ["payment_type = 'OFFLINE'", "payment_type = NULL", "status = 90",
            "status = 20", "current_publish_version = 2", "submit_round = 2"] {
            app.execute(&format!("UPDATE fi_resident_income_payment_order SET {change}")).await;
            let created = hand.create().await.unwrap();
            assert!(matches!(created, Created::NotApplicable(_)), "{change}: {created:?}");
            nothing_was_created(&app).await;
            app.execute("UPDATE fi_resident_income_payment_order SET payment_type = 'TREASURY',
                status = 40, current_publish_version = 1, submit_round = 1").await;
        }
        assert_eq!(hand.create().await.unwrap(), Created::Now);
    }

    async fn two_creators_at_once_make_one_set_of_batches(app: TestApp) {
        let lines: Vec<Line> = (1..=1500).map(|n| line(n, n)).collect();
        let hand = Hand::order(&app, "MAX_LINES:400", &lines).await;
        let other = app.second_process().await;
        let rival = Hand(&other);
        let (mine, theirs) = tokio::join!(hand.create(), rival.create());
        let ended = [mine.is_ok(), theirs.is_ok()];
        assert!(ended.contains(&true), "{mine:?} {theirs:?}");
        for created in [mine, theirs] {
            if let Err(error) = created {
                assert_eq!(error.code(), "changed-meanwhile", "{error:?}");
            }
        }
        let totals = "SELECT COUNT(*) AS batches, CAST(SUM(detail_count) AS {bigint}) AS details,
            CAST(SUM(total_amount) AS {bigint}) AS total
            FROM fi_resident_income_payment_push_batch WHERE deleted = 0";
        let sum: i64 = (1..=1500).sum();
        assert_eq!(app.value(totals).await, format!("4|1500|{sum}"));
        hand.rules_hold_but(&[]).await;
        other.db.close().await;
    }
}

async fn nothing_was_created(app: &counterfoil_e2e::TestApp) {
    for table in ["push_batch", "push_batch_detail", "push_build"] {
        let count = format!("SELECT COUNT(*) FROM fi_resident_income_payment_{table}");
        assert_eq!(app.value(&count).await, "0", "{table}");
    }
    let order = "SELECT push_status FROM fi_resident_income_payment_order";
    assert_eq!(app.value(order).await, "NOT_PUSHED");
}

/// Takes away all that these tests write.
pub async fn wipe(app: &counterfoil_e2e::TestApp) {
    for table in [
        "sys_partner",
        "sys_project_company",
        "fi_customer_account",
        "fi_customer_bill",
        "fi_async_task",
    ] {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
    for table in [
        "order",
        "order_bill",
        "order_log",
        "bill_lock",
        "async_operation_log",
        "push_build",
        "push_batch",
        "push_batch_detail",
        "push",
        "push_item",
        "push_result",
        "push_result_entry",
        "offline_payment",
        "status_refresh_shard",
    ] {
        app.execute(&format!("DELETE FROM fi_resident_income_payment_{table}")).await;
    }
}
