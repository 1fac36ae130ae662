//! Every rule of the treasury can break, and names the row.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::port::Reported;
use counterfoil_payment::treasury::rules::RULES;
use counterfoil_task::check;

use super::create::wipe;
use super::hand::{Hand, Scripted, line};

/// A rule, the change that breaks it in a paid order of two lines, and a cell of the broken row.
const BREAKS: &[(&str, &str, &str)] = &[
    (
        "line-is-in-one-detail",
        "DROP INDEX {uk_push_detail_line};
         \nINSERT INTO fi_resident_income_payment_push_batch_detail (push_batch_id, order_bill_id)
         VALUES (1, 101)",
        "order_bill_id=101",
    ),
    (
        "details-come-to-the-payable-lines",
        "UPDATE fi_resident_income_payment_push_batch_detail SET amount = 99
         WHERE order_bill_id = 101",
        "order_bill_id=101",
    ),
    (
        "batch-totals-are-those-of-its-details",
        "UPDATE fi_resident_income_payment_push_batch SET total_amount = total_amount + 1",
        "total_amount=301",
    ),
    (
        "paid-order-has-its-evidence",
        "UPDATE fi_resident_income_payment_push_batch_detail SET pay_status = 'PAYING'
         WHERE order_bill_id = 102",
        "order_bill_id=102",
    ),
    (
        "paid-order-has-its-evidence",
        "UPDATE fi_resident_income_payment_order_bill SET line_status = 40 WHERE id = 102",
        "order_bill_id=102",
    ),
    (
        "line-and-detail-agree",
        "UPDATE fi_resident_income_payment_order_bill SET line_status = 20 WHERE id = 102",
        "order_bill_id=102",
    ),
    (
        "push-status-agrees",
        "UPDATE fi_resident_income_payment_push_batch SET status = 'PUSH_FAIL'",
        "payment_order_id=1",
    ),
    (
        "push-status-agrees",
        "UPDATE fi_resident_income_payment_order SET push_status = 'NOT_PUSHED'",
        "payment_order_id=1",
    ),
    (
        "no-push-stays-without-verdict",
        "UPDATE fi_resident_income_payment_push
         SET push_state = 'UNKNOWN', create_time = '2026-09-08 00:59:00+00:00'",
        "push_state=UNKNOWN",
    ),
    (
        "no-result-contradicts",
        "UPDATE fi_resident_income_payment_push_result_entry SET outcome = 'SUPERSEDED'
         WHERE entry_no = 1",
        "outcome=SUPERSEDED",
    ),
];

on_every_database! {
    async fn every_rule_can_break_and_names_the_row(app: TestApp) {
        for (name, change, named) in BREAKS.iter().rev() {
            paid_order(&app).await;
            let rule = RULES.iter().find(|rule| rule.name == *name).expect(name);
            assert_eq!(check(&app.db, rule).await.expect(name), None, "{name} before");
            app.execute(&for_database(&app, change)).await;
            let breach = check(&app.db, rule).await.expect(name);
            let breach = breach.unwrap_or_else(|| panic!("{name} holds after {change}"));
            let row = &breach.rows[0];
            assert!(row.split(' ').any(|cell| cell == *named), "{name}: {row}");
            wipe(&app).await;
        }
    }

    async fn no_rule_is_left_out(app: TestApp) {
        let _ = app;
        for rule in RULES {
            assert!(BREAKS.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
        }
    }
}

fn for_database(app: &counterfoil_e2e::TestApp, change: &str) -> String {
    use counterfoil_db::{Dialect, Read};
    let dialect = app.db.dialect();
    let index = match dialect {
        Dialect::MariaDb => "uk_push_detail_line ON fi_resident_income_payment_push_batch_detail",
        _ => "uk_push_detail_line",
    };
    let change = change.replace("{uk_push_detail_line}", index);
    match dialect {
        Dialect::Sqlite => change.replace("2026-09-08 00:59", "2026-09-08T00:59"),
        Dialect::MariaDb => change.replace("00:59:00+00:00", "00:59:00"),
        Dialect::Postgres => change,
    }
}

async fn paid_order(app: &counterfoil_e2e::TestApp) {
    let hand = Hand::order(app, "NONE", &[line(1, 100), line(2, 200)]).await;
    hand.create().await.expect("batches");
    hand.push_round(&Scripted::default()).await;
    let report = hand.report("R1", &[(101, Reported::Paid), (102, Reported::Paid)]).await;
    hand.import(&report).await.expect("results");
}
