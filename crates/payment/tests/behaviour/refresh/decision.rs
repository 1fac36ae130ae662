//! Every branch of the decision, from rows to rows: bills 101 and up, each a scope of its own in a
//! shard of order 1.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::status_refresh::Source;

use super::hand::{Approved, REASON, RECORDS};

/// One bill: its facts as SQL, and what its records say afterwards.
struct Case {
    /// What it is.
    name: &'static str,
    /// Of its line in order 1: `line_type, line_status, pay_amount, pre_rent, reason`.
    line: Line,
    /// The status of the order that holds it by an ACTIVE lock.
    held_at: Option<i64>,
    /// Changes to its ledger row.
    ledger: &'static str,
    /// `status|reference|query|flag|reason|paid|cumulative`.
    expected: &'static str,
}

const PAYABLE: Line = (10, 20, 10_000, Some(10_000), None);
const PAID: Line = (10, 30, 10_000, Some(10_000), None);

type Line = (i64, i64, i64, Option<i64>, Option<&'static str>);

const fn case(
    name: &'static str,
    line: Line,
    held_at: Option<i64>,
    ledger: &'static str,
    expected: &'static str,
) -> Case {
    Case { name, line, held_at, ledger, expected }
}

const fn concluded(pre_rent: Option<i64>, reason: &'static str) -> Line {
    (20, 50, 0, pre_rent, Some(reason))
}

const CASES: &[Case] = &[
    case("paid in full", PAID, Some(40), "", "60|held|10|0|NULL|10000|10000"),
    case("paid, the order too", PAID, Some(50), "", "60|held|10|0|NULL|10000|10000"),
    case(
        "paid, the lesser rent",
        PAID,
        None,
        "contract_rent = 9999, actual_rent = 99999",
        "60|none|10|0|NULL|10000|10000",
    ),
    case(
        "paid in part",
        PAID,
        None,
        "contract_rent = 10001, actual_rent = 10001",
        "50|none|10|0|NULL|10000|10000",
    ),
    case(
        "paid, a rent unknown",
        PAID,
        None,
        "actual_rent = NULL, pre_rent = 10001",
        "50|none|10|0|NULL|10000|10000",
    ),
    case(
        "paid, all rents unknown",
        PAID,
        None,
        "actual_rent = NULL, contract_rent = NULL, pre_rent = NULL",
        "50|none|10|0|NULL|10000|10000",
    ),
    case(
        "a payment that failed",
        (10, 40, 10_000, Some(10_000), None),
        Some(40),
        "paid_amount = 10000, cumulative_paid_amount = 10000",
        "40|held|20|0|NULL|0|0",
    ),
    case("waits for payment", PAYABLE, Some(40), "", "40|held|20|0|NULL|0|0"),
    case("under review", PAYABLE, Some(20), "", "30|held|10|0|NULL|0|0"),
    case("rejected", PAYABLE, Some(30), "", "30|held|10|0|NULL|0|0"),
    case("held by an order without payment", PAYABLE, Some(55), "", "20|held|10|0|NULL|0|0"),
    case(
        "held by one without payment, nothing due",
        PAYABLE,
        Some(55),
        "pre_rent = 0",
        "10|held|10|0|NULL|0|0",
    ),
    case("concluded", concluded(Some(1), REASON), None, "", "20|none|30|1|农户租金异常|0|0"),
    case(
        "concluded, nothing due",
        concluded(Some(0), REASON),
        None,
        "",
        "10|none|30|1|农户租金异常|0|0",
    ),
    case(
        "concluded, the ledger knows the rent",
        concluded(None, REASON),
        None,
        "pre_rent = 0",
        "10|none|30|1|农户租金异常|0|0",
    ),
    case(
        "concluded for a reason of our own",
        concluded(Some(1), "内部原因"),
        None,
        "unqualified_flag = 1, unqualified_reason = '农户租金异常'",
        "20|none|30|0|NULL|0|0",
    ),
    case(
        "concluded, and held by another review",
        concluded(Some(0), REASON),
        Some(20),
        "",
        "30|held|10|0|NULL|0|0",
    ),
    case(
        "neither held nor concluded",
        PAYABLE,
        None,
        "locked_payment_order_id = 1, locked_order_bill_id = 7, payment_status = 30",
        "20|none|10|0|NULL|0|0",
    ),
    case("neither, nothing due", PAYABLE, None, "pre_rent = 0", "10|none|10|0|NULL|0|0"),
    case("neither, rent unknown", PAYABLE, None, "pre_rent = NULL", "20|none|10|0|NULL|0|0"),
    case(
        "amounts paid before this system",
        PAYABLE,
        None,
        "paid_amount = 77",
        "20|none|10|0|NULL|77|0",
    ),
];

fn literal(text: Option<&str>) -> String {
    text.map_or("NULL".to_owned(), |text| format!("'{text}'"))
}

async fn line(app: &TestApp, id: i64, order: i64, n: i64, case: &Case) {
    let (line_type, status, pay, pre_rent, reason) = case.line;
    let pre_rent = pre_rent.map_or("NULL".to_owned(), |fen| fen.to_string());
    app.execute(&format!(
        "INSERT INTO fi_resident_income_payment_order_bill
           (id, payment_order_id, data_version, submit_round, line_type, line_status, station_id,
            bill_yearmonth, diff_id, small_bill_id, partner_bill_id, pay_amount, pre_rent,
            unqualified_reason)
         VALUES ({id}, {order}, 1, 1, {line_type}, {status}, 'S{n}', '202609', {}, {}, {}, {pay},
           {pre_rent}, {})",
        n + 10_000,
        n + 20_000,
        n + 30_000,
        literal(reason)
    ))
    .await;
}

/// The case's rows. A holder is an order of its own, 1000 + n, with line 5000 + n.
async fn write(app: &TestApp, order: Approved<'_>, n: i64, case: &Case) {
    order.records(n, n).await;
    line(app, n, 1, n, case).await;
    if !case.ledger.is_empty() {
        let ledger = format!("UPDATE {} SET {} WHERE id = {}", RECORDS[0], case.ledger, n + 10_000);
        app.execute(&ledger).await;
    }
    if let Some(status) = case.held_at {
        app.execute(&format!(
            "INSERT INTO fi_resident_income_payment_order (id, order_no, status)
             VALUES ({0}, 'PO-{0}', {status});
             \nINSERT INTO fi_resident_income_payment_bill_lock
               (id, lock_key, lock_status, payment_order_id, order_bill_id, station_id,
                bill_yearmonth)
             VALUES ({n}, 'S{n}:202609', 'ACTIVE', {0}, {1}, 'S{n}', '202609')",
            n + 1000,
            n + 5000
        ))
        .await;
    }
}

async fn ledger(app: &TestApp, n: i64) -> String {
    let row = app
        .value(&format!(
            "SELECT payment_status, locked_payment_order_id, locked_order_bill_id,
               partner_query_status, unqualified_flag, unqualified_reason, paid_amount,
               cumulative_paid_amount FROM {} WHERE id = {}",
            RECORDS[0],
            n + 10_000
        ))
        .await;
    let held = format!("|{}|{}|", n + 1000, n + 5000);
    row.replacen(&held, "|held|", 1).replacen("|NULL|NULL|", "|none|", 1)
}

async fn refresh_all(app: &TestApp, order: Approved<'_>) {
    app.execute("DELETE FROM fi_resident_income_payment_status_refresh_shard").await;
    order.plan(Source::Manual, 1).await;
    order.refreshed().await;
}

on_every_database! {
    async fn every_branch_is_written_to_the_ledger_and_the_other_tables_agree(app: TestApp) {
        let order = Approved::order(&app, 1).await;
        for (n, case) in (101..).zip(CASES) {
            write(&app, order, n, case).await;
        }
        refresh_all(&app, order).await;
        for (n, case) in (101..).zip(CASES) {
            assert_eq!(ledger(&app, n).await, case.expected, "{}", case.name);
            let statuses = format!("SELECT d.payment_status - s.payment_status,
                  d.payment_status - p.payment_status,
                  COALESCE(d.locked_order_bill_id, 0) - COALESCE(s.locked_order_bill_id, 0),
                  COALESCE(d.locked_order_bill_id, 0) - COALESCE(p.locked_order_bill_id, 0),
                  d.partner_query_status - p.partner_query_status
                FROM {} d JOIN {} s ON s.id = d.id + 10000 JOIN {} p ON p.id = d.id + 20000
                WHERE d.id = {n} + 10000", RECORDS[0], RECORDS[1], RECORDS[2]);
            assert_eq!(app.value(&statuses).await, "0|0|0|0|0", "{}", case.name);
        }
        let before = order.business().await;
        app.pass_minutes(10);
        refresh_all(&app, order).await;
        assert_eq!(order.business().await, before, "deciding again changes nothing");
    }

    async fn a_line_whose_progress_lacks_finalize_time_is_no_conclusion(app: TestApp) {
        let order = Approved::order(&app, 1).await;
        order.records(101, 101).await;
        let concluded = |pre_rent| Case { name: "", line: (20, 50, 0, Some(pre_rent), Some(REASON)),
            held_at: None, ledger: "", expected: "" };
        line(&app, 101, 1, 101, &concluded(5)).await;
        // Newer orders: 2 was never finalized, 3 was, earlier than order 1; 4 has no progress.
        for (id, finalized) in [(2, "NULL".to_owned()), (3, order.instant(-60))] {
            app.execute(&format!("INSERT INTO fi_resident_income_payment_review_callback_progress
                (id, payment_order_id, data_version, finalize_time)
                VALUES ({id}, {id}, 1, {finalized})")).await;
        }
        for newer in 2..=4 {
            line(&app, 101 + newer, newer, 101, &concluded(0)).await;
        }
        refresh_all(&app, order).await;
        let partner = "SELECT payment_status, last_unqualified_order_bill_id
            FROM fi_customer_bill_partner WHERE id = 30101";
        assert_eq!(app.value(partner).await, "20|101");
        // Finalized last decides, whatever the ids of the lines.
        let later = order.instant(60);
        app.execute(&format!("UPDATE fi_resident_income_payment_review_callback_progress
            SET finalize_time = {later} WHERE id = 3")).await;
        refresh_all(&app, order).await;
        assert_eq!(app.value(partner).await, "10|104");
        app.execute("UPDATE fi_resident_income_payment_review_callback_progress
            SET finalize_time = NULL").await;
        refresh_all(&app, order).await;
        assert_eq!(app.value(partner).await, "20|104", "no conclusion is left; the last one stays");
    }

    async fn a_bill_without_a_record_id_or_with_a_deleted_record_has_no_such_row(app: TestApp) {
        let order = Approved::order(&app, 2).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill
            SET small_bill_id = NULL, diff_id = NULL WHERE id = 1;
            \nUPDATE fi_customer_bill_partner SET deleted = 1 WHERE id = 30002;
            \nUPDATE fi_customer_bill SET payment_status = 20 WHERE id = 20001").await;
        let untouched = async || {
            [app.value("SELECT * FROM fi_customer_bill WHERE id = 20001").await,
             app.value("SELECT * FROM fi_monthly_income_difference WHERE id = 10001").await,
             app.value("SELECT * FROM fi_customer_bill_partner WHERE id = 30002").await]
        };
        let before = untouched().await;
        app.pass_minutes(1);
        refresh_all(&app, order).await;
        assert_eq!(untouched().await, before);
        let partner = "SELECT payment_status FROM fi_customer_bill_partner WHERE id = 30001";
        assert_eq!(app.value(partner).await, "40");
        let small = "SELECT payment_status FROM fi_customer_bill WHERE id = 20002";
        assert_eq!(app.value(small).await, "40");
    }

    async fn two_lines_of_one_bill_are_one_scope_with_one_guard(app: TestApp) {
        let order = Approved::order(&app, 1).await;
        let twice = Case { name: "", line: PAID, held_at: None, ledger: "", expected: "" };
        order.records(101, 101).await;
        line(&app, 101, 1, 101, &twice).await;
        line(&app, 102, 1, 101, &twice).await;
        refresh_all(&app, order).await;
        assert_eq!(ledger(&app, 101).await, "60|none|10|0|NULL|20000|20000");
        let guards = "SELECT COUNT(*), MAX(guard_version)
            FROM fi_resident_income_payment_status_refresh_scope_guard WHERE station_id = 'S101'";
        assert_eq!(app.value(guards).await, "1|1");
    }
}
