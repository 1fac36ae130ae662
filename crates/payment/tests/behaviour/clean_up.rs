//! Step 6 of S04 (payment-flow.md; seed 001, 4.5): old references are taken back, nobody else's.

use counterfoil_e2e::{TestApp, on_every_database};

use super::hand::{Hand, RECORDS};

/// A lock of order 9: `key` differs from the bill's own, which ours still occupies.
async fn lock_of_another(app: &TestApp, key: &str, columns: &str, values: &str) {
    app.execute(&format!(
        "INSERT INTO fi_resident_income_payment_bill_lock
           (id, lock_key, payment_order_id, order_bill_id, data_version, submit_round,
            session_id, submit_attempt, {columns})
         VALUES (2000, '{key}', 9, 900, 1, 1, 90, 1, {values})"
    ))
    .await;
}

/// B's lock was released a while ago; its clean-up is still missing.
async fn released_before(hand: Hand<'_>, minutes: i64) {
    hand.0
        .execute(&format!(
            "UPDATE fi_resident_income_payment_bill_lock SET lock_status = 'RELEASED',
               lock_key = 'S2:202609:RELEASED:1002', lock_scene = 'PUBLISHED_RELEASE',
               release_reason = 'REVISE_REMOVED', release_time = {} WHERE id = 1002",
            hand.minutes(-minutes)
        ))
        .await;
}

/// The three records of a bill, whole.
async fn records(hand: Hand<'_>, n: i64) -> Vec<String> {
    let mut rows = Vec::new();
    for (table, first) in RECORDS {
        rows.push(hand.row(table, first + n).await);
    }
    rows
}

/// S04 succeeds and leaves the records of B alone.
async fn leaves_alone(hand: Hand<'_>, why: &str) {
    let before = records(hand, 2).await;
    hand.activated().await;
    assert_eq!(records(hand, 2).await, before, "{why}");
}

on_every_database! {
    async fn an_unqualified_bill_shows_one_of_four_reasons_or_none(app: TestApp) {
        for (reason, shown) in [
            ("'农户租金异常'", "1|农户租金异常"),
            ("'拟付租金校验不通过'", "1|拟付租金校验不通过"),
            ("'农户租金异常,拟付租金校验不通过'", "1|农户租金异常,拟付租金校验不通过"),
            ("'用户手动选到不合格'", "1|用户手动选到不合格"),
            ("'拟付租金校验不通过,农户租金异常'", "0|NULL"),
            ("'农户租金异常，拟付租金校验不通过'", "0|NULL"),
            ("'农户租金异常 '", "0|NULL"),
            ("'内部原因'", "0|NULL"),
            ("''", "0|NULL"),
            ("NULL", "0|NULL"),
        ] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            app.execute(&format!("UPDATE fi_resident_income_payment_order_bill
                SET unqualified_reason = {reason} WHERE id = 203;
                \nUPDATE fi_monthly_income_difference SET unqualified_flag = 1,
                unqualified_reason = 'old' WHERE id = 53")).await;
            hand.activated().await;
            for (table, id) in [("fi_monthly_income_difference", 53),
                ("fi_customer_bill_partner", 73)] {
                let columns = format!("SELECT unqualified_flag, unqualified_reason,
                    partner_query_status FROM {table} WHERE id = {id}");
                assert_eq!(app.value(&columns).await, format!("{shown}|10"), "{reason}");
            }
        }
    }

    async fn an_unqualified_bill_needs_no_pay_only_when_its_pre_rent_is_exactly_zero(
        app: TestApp
    ) {
        for (pre_rent, status) in [("0", 10), ("1", 20), ("-1", 20), ("10000", 20), ("NULL", 20)] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            app.execute(&format!("UPDATE fi_resident_income_payment_order_bill
                SET pre_rent = {pre_rent} WHERE id = 203;
                \nUPDATE fi_monthly_income_difference SET pre_rent = 0;
                \nUPDATE fi_resident_income_payment_order_bill SET pre_rent = 0
                WHERE id IN (102, 103)")).await;
            hand.activated().await;
            assert_eq!(hand.references(3).await, format!("{status}|NULL|NULL"), "{pre_rent}");
            assert_eq!(hand.references(2).await, "20|NULL|NULL", "removed bills are UNPAID");
        }
    }

    async fn a_deleted_unqualified_line_counts_as_removed(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET deleted = 1
            WHERE id = 203").await;
        hand.activated().await;
        assert_eq!(hand.references(3).await, "20|NULL|NULL");
        let query = "SELECT partner_query_status, unqualified_flag
            FROM fi_monthly_income_difference WHERE id = 53";
        assert_eq!(app.value(query).await, "20|0");
    }

    async fn a_removed_bill_keeps_its_query_status_and_shows_no_reason(app: TestApp) {
        for query_status in ["10", "20", "30"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            for (table, id) in [("fi_monthly_income_difference", 52),
                ("fi_customer_bill_partner", 72)] {
                app.execute(&format!("UPDATE {table} SET partner_query_status = {query_status},
                    unqualified_flag = 1, unqualified_reason = '农户租金异常'
                    WHERE id = {id}")).await;
            }
            hand.activated().await;
            for (table, id) in [("fi_monthly_income_difference", 52),
                ("fi_customer_bill_partner", 72)] {
                let columns = format!("SELECT unqualified_flag, unqualified_reason,
                    partner_query_status FROM {table} WHERE id = {id}");
                let expected = format!("0|NULL|{query_status}");
                assert_eq!(app.value(&columns).await, expected, "{table}");
            }
        }
    }

    async fn a_record_that_refers_to_nothing_is_restored_too(app: TestApp) {
        let hand = Hand::revision(&app).await;
        for (table, _) in RECORDS {
            app.execute(&format!("UPDATE {table} SET locked_payment_order_id = NULL,
                locked_order_bill_id = NULL WHERE station_id = 'S2'")).await;
        }
        hand.activated().await;
        assert_eq!(hand.references(2).await, "20|NULL|NULL");
    }

    async fn a_record_taken_by_another_order_is_left_alone(app: TestApp) {
        for (order, line) in [("9", "900"), ("9", "102"), ("9", "NULL"), ("1", "900"),
            ("NULL", "900")] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            for (table, _) in RECORDS {
                app.execute(&format!("UPDATE {table} SET locked_payment_order_id = {order},
                    locked_order_bill_id = {line} WHERE station_id = 'S2'")).await;
            }
            leaves_alone(hand, &format!("{order} {line}")).await;
        }
    }

    async fn a_record_with_an_active_lock_is_left_alone_whatever_its_station_says(app: TestApp) {
        let hand = Hand::revision(&app).await;
        lock_of_another(&app, "S9:202609", "lock_status, station_id, bill_yearmonth, diff_id",
            "'ACTIVE', 'S9', '202609', 52").await;
        app.execute(&format!("UPDATE fi_resident_income_payment_bill_lock SET create_time = {}
            WHERE id = 2000", hand.minutes(-600))).await;
        let ledger = hand.row("fi_monthly_income_difference", 52).await;
        hand.activated().await;
        assert_eq!(hand.row("fi_monthly_income_difference", 52).await, ledger);
        let small = hand.reference("fi_customer_bill", 2).await;
        assert_eq!(small, "20|NULL|NULL", "another record of the bill has no such lock");
    }

    async fn a_bill_that_another_order_locked_since_is_left_alone(app: TestApp) {
        for status in ["RESERVED", "ACTIVE", "RELEASED"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            released_before(hand, 60).await;
            let key = if status == "RELEASED" { "S2:202609:RELEASED:2000" } else { "S2:202609" };
            lock_of_another(&app, key, "lock_status, station_id, bill_yearmonth, create_time",
                &format!("'{status}', 'S2', '202609', {}", hand.minutes(-30))).await;
            leaves_alone(hand, status).await;
        }
    }

    async fn a_bill_that_another_order_built_a_line_for_since_is_left_alone(app: TestApp) {
        let hand = Hand::revision(&app).await;
        released_before(hand, 60).await;
        app.execute(&format!("INSERT INTO fi_resident_income_payment_order_bill
            (id, payment_order_id, station_id, bill_yearmonth, create_time)
            VALUES (900, 9, 'S2', '202609', {})", hand.minutes(-30))).await;
        leaves_alone(hand, "a line since").await;
    }

    async fn what_another_order_had_before_the_release_is_history(app: TestApp) {
        let hand = Hand::revision(&app).await;
        released_before(hand, 60).await;
        app.execute(&format!("INSERT INTO fi_resident_income_payment_order_bill
            (id, payment_order_id, station_id, bill_yearmonth, create_time)
            VALUES (900, 9, 'S2', '202609', {})", hand.minutes(-90))).await;
        lock_of_another(&app, "S2:202609:RELEASED:2000",
            "lock_status, station_id, bill_yearmonth, create_time",
            &format!("'RELEASED', 'S2', '202609', {}", hand.minutes(-90))).await;
        hand.activated().await;
        assert_eq!(hand.references(2).await, "20|NULL|NULL");
    }

    async fn a_bill_that_was_taken_again_and_is_in_review_elsewhere_stays_there(app: TestApp) {
        let hand = Hand::revision(&app).await;
        released_before(hand, 60).await;
        lock_of_another(&app, "S2:202609", "lock_status, station_id, bill_yearmonth, create_time,
            diff_id, small_bill_id, partner_bill_id",
            &format!("'ACTIVE', 'S2', '202609', {}, 52, 62, 72", hand.minutes(-30))).await;
        for (table, _) in RECORDS {
            app.execute(&format!("UPDATE {table} SET locked_payment_order_id = 9,
                locked_order_bill_id = 900 WHERE station_id = 'S2'")).await;
        }
        leaves_alone(hand, "taken again").await;
        assert_eq!(hand.references(2).await, "30|9|900");
    }

    async fn locks_released_for_another_reason_or_version_are_not_cleaned_up(app: TestApp) {
        for change in ["release_reason = 'ORDER_CANCELLED'", "release_reason = NULL",
            "data_version = 7", "submit_round = 7", "payment_order_id = 9"] {
            Hand(&app).wipe().await;
            let hand = Hand::revision(&app).await;
            released_before(hand, 60).await;
            app.execute(&format!("UPDATE fi_resident_income_payment_bill_lock SET {change}
                WHERE id = 1002")).await;
            leaves_alone(hand, change).await;
        }
    }

    async fn a_deleted_or_missing_record_of_a_removed_bill_is_no_trouble(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute("UPDATE fi_monthly_income_difference SET deleted = 1 WHERE id = 52;
            \nDELETE FROM fi_customer_bill WHERE id = 62;
            \nUPDATE fi_resident_income_payment_bill_lock SET partner_bill_id = NULL
            WHERE id = 1002").await;
        let ledger = hand.row("fi_monthly_income_difference", 52).await;
        let partner = hand.row("fi_customer_bill_partner", 72).await;
        hand.activated().await;
        assert_eq!(hand.row("fi_monthly_income_difference", 52).await, ledger);
        assert_eq!(hand.row("fi_customer_bill_partner", 72).await, partner);
    }
}
