//! An OFFLINE order becomes PAID by a recorded payment with its evidence.

use counterfoil_e2e::{Crash, on_every_database};
use counterfoil_payment::treasury::record_payment::record_payment;
use counterfoil_protocol::{OrderId, UserId};

use super::create::wipe;
use super::hand::{Hand, Line, line};

const CLERK: UserId = UserId(8);
const ORDER: OrderId = OrderId(1);

on_every_database! {
    async fn every_line_and_then_the_order_is_paid_and_the_evidence_is_kept(app: TestApp) {
        let lines: Vec<Line> = (1..=1200).map(|n| line(n, n)).collect();
        offline(&app, &lines).await;
        let paid_at = Some("2026-09-07T02:00:00Z".parse().unwrap());
        let done = record_payment(&app.db, ORDER, " slip 7 ", paid_at, CLERK).await.unwrap();
        assert_eq!((done.lines, done.known), (1200, false));
        let order = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(app.value(order).await, "50");
        let lines = "SELECT line_status, COUNT(*) FROM fi_resident_income_payment_order_bill
            GROUP BY line_status";
        assert_eq!(app.lines(lines).await, ["30|1200"]);
        let log = "SELECT operation_type, operation_remark, operator_user_id, from_status,
            to_status FROM fi_resident_income_payment_order_log";
        assert_eq!(app.lines(log).await, ["PAYMENT_RECORDED|slip 7|8|40|50"]);
        let record = "SELECT record_status, evidence, paid_time
            FROM fi_resident_income_payment_offline_payment";
        assert_eq!(app.lines(record).await, ["DONE|slip 7|2026-09-07T02:00:00Z"]);
        let shards = "SELECT start_order_bill_id, end_order_bill_id, scope_count
            FROM fi_resident_income_payment_status_refresh_shard ORDER BY id";
        assert_eq!(app.lines(shards).await, ["101|1100|1000", "1101|1300|200"]);
        Hand(&app).rules_hold_but(&[]).await;
    }

    async fn recording_the_same_again_changes_nothing_and_other_evidence_is_refused(app: TestApp) {
        offline(&app, &[line(1, 5)]).await;
        record_payment(&app.db, ORDER, "slip 7", None, CLERK).await.unwrap();
        let again = record_payment(&app.db, ORDER, "slip 7", None, CLERK).await.unwrap();
        assert!(again.known);
        let other = record_payment(&app.db, ORDER, "slip 8", None, CLERK).await.unwrap_err();
        assert_eq!(other.code(), "payment-recorded-otherwise");
        let log = "SELECT COUNT(*) FROM fi_resident_income_payment_order_log";
        assert_eq!(app.value(log).await, "1");
    }

    async fn what_is_no_offline_order_at_40_or_no_evidence_is_refused(app: TestApp) {
        offline(&app, &[line(1, 5)]).await;
        for evidence in ["", "  "] {
            let refused = record_payment(&app.db, ORDER, evidence, None, CLERK).await.unwrap_err();
            assert_eq!(refused.code(), "invalid-input");
        }
        let later = Some("2026-09-08T02:00:01Z".parse().unwrap());
        let refused = record_payment(&app.db, ORDER, "slip", later, CLERK).await.unwrap_err();
        assert_eq!(refused.code(), "invalid-input");
        let none = record_payment(&app.db, OrderId(9), "slip", None, CLERK).await.unwrap_err();
        assert_eq!(none.code(), "order-not-found");
        for change in ["payment_type = 'TREASURY'", "payment_type = NULL", "status = 20",
            "status = 90"] {
            app.execute("UPDATE fi_resident_income_payment_order
                SET status = 40, payment_type = 'OFFLINE'").await;
            app.execute(&format!("UPDATE fi_resident_income_payment_order SET {change}")).await;
            let refused = record_payment(&app.db, ORDER, "slip", None, CLERK).await.unwrap_err();
            assert_eq!(refused.code(), "order-state", "{change}");
        }
        let records = "SELECT COUNT(*) FROM fi_resident_income_payment_offline_payment";
        assert_eq!(app.value(records).await, "0");
    }

    async fn a_crash_at_any_commit_ends_like_no_crash_when_it_is_recorded_again(app: TestApp) {
        for point in ["treasury.record.begin", "treasury.record.batch", "treasury.record.finish"] {
            for side in [counterfoil_db::Side::Before, counterfoil_db::Side::After] {
                offline(&app, &[line(1, 5), line(2, 6)]).await;
                app.arm(Crash { point, side, passage: 1 });
                let crashed = record_payment(&app.db, ORDER, "slip", None, CLERK).await;
                assert!(crashed.is_err() && !app.faults().is_armed(), "{point} {side:?}");
                let done = record_payment(&app.db, ORDER, "slip", None, CLERK).await.unwrap();
                assert_eq!(done.lines, 2, "{point} {side:?}");
                let end = "SELECT o.status, (SELECT COUNT(*)
                    FROM fi_resident_income_payment_order_log) AS logs, (SELECT COUNT(*)
                    FROM fi_resident_income_payment_status_refresh_shard) AS shards
                    FROM fi_resident_income_payment_order o";
                assert_eq!(app.value(end).await, "50|1|1", "{point} {side:?}");
                wipe(&app).await;
            }
        }
    }
}

async fn offline(app: &counterfoil_e2e::TestApp, lines: &[Line]) {
    Hand::order(app, "NONE", lines).await;
    app.execute(
        "UPDATE fi_resident_income_payment_order
         SET payment_type = 'OFFLINE', push_status = NULL",
    )
    .await;
}
