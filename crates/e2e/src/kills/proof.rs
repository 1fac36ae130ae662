//! The proof at the end: nothing lost, nothing twice, nothing stuck without a visible reason.

use counterfoil_payment::order_view;
use counterfoil_protocol::OrderId;
use tokio::process::Command;

use super::outside::Outside;
use super::{KillPlan, KillReport};
use crate::TestApp;

/// Proves the end; panics with the seed when it cannot.
pub(super) async fn prove(
    app: &TestApp,
    plan: &KillPlan,
    outside: &Outside,
    report: &mut KillReport,
) {
    let seed = plan.seed;
    let checked = Command::new(&plan.binary)
        .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "check"])
        .output()
        .await
        .expect("counterfoil check");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "seed {seed}: {said}");
    published(app, seed, report).await;
    projected(app, seed).await;
    ended(app, seed, report).await;
    paid_once(app, seed, outside, report).await;
    told_once(app, seed, report).await;
}

/// While no process lives: a bill that no refresh and no cancellation has touched and no S04 is at
/// was projected exactly once by each published version that pays it. Every approved order was in
/// that state when its reviewers began.
pub(super) async fn projected_once(app: &TestApp, seed: u64) {
    let settled = "SELECT d.station_id, d.financial_version, (
           SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
           JOIN fi_resident_income_payment_order_version v
             ON v.payment_order_id = l.payment_order_id
            AND v.target_data_version = l.data_version
           WHERE l.diff_id = d.id AND l.line_type = 10
             AND v.version_build_status = 'PUBLISHED') AS expected
         FROM fi_monthly_income_difference d
         WHERE NOT EXISTS (
           SELECT 1 FROM fi_resident_income_payment_order_bill l
           JOIN fi_resident_income_payment_order_version v
             ON v.payment_order_id = l.payment_order_id
            AND v.target_data_version = l.data_version
           JOIN selection_session s ON s.id = v.session_id
           JOIN fi_resident_income_payment_order o ON o.id = l.payment_order_id
           LEFT JOIN fi_resident_income_payment_status_refresh_shard h
             ON h.payment_order_id = l.payment_order_id
           WHERE l.diff_id = d.id
             AND (s.status <> 'COMPLETED' OR o.status = 90 OR h.id IS NOT NULL))";
    for line in app.lines(settled).await {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells[1], cells[2], "seed {seed}: {line}: a projection was lost or repeated");
    }
}

async fn published(app: &TestApp, seed: u64, report: &mut KillReport) {
    let published = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_order_version
        WHERE version_build_status = 'PUBLISHED'";
    report.published = app.value(published).await.parse().expect("a count");
    let rounds =
        "SELECT CAST(SUM(submit_round) AS {bigint}) AS n FROM fi_resident_income_payment_order";
    assert_eq!(app.value(rounds).await, report.published.to_string(), "seed {seed}");
    let activated = "SELECT CAST(COALESCE(SUM(processed_count), 0) AS {bigint}) AS n
        FROM selection_submit_batch
        WHERE batch_phase = 'LOCK_ACTIVATE'";
    let locks = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_bill_lock
        WHERE lock_scene <> 'BUILD_RELEASE'";
    assert_eq!(app.value(activated).await, app.value(locks).await, "seed {seed}");
}

/// Each published version raised a payable bill's financial version, and so did the refreshes
/// after it; a bill of an order that is paid was paid its amount once.
async fn projected(app: &TestApp, seed: u64) {
    let wrong = "SELECT d.station_id, d.financial_version, (
           SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
           JOIN fi_resident_income_payment_order_version v
             ON v.payment_order_id = l.payment_order_id
            AND v.target_data_version = l.data_version
           WHERE l.diff_id = d.id AND l.line_type = 10
             AND v.version_build_status = 'PUBLISHED') AS expected
         FROM fi_monthly_income_difference d";
    for line in app.lines(wrong).await {
        let cells: Vec<i64> =
            line.split('|').skip(1).map(|cell| cell.parse().expect("a count")).collect();
        assert!(cells[0] >= cells[1], "seed {seed}: {line}: a projection was lost");
    }
    for table in ["fi_monthly_income_difference", "fi_customer_bill"] {
        let unpaid = format!(
            "SELECT l.id, l.line_status, l.pay_amount, d.payment_status, d.cumulative_paid_amount
             FROM fi_resident_income_payment_order o
             JOIN fi_resident_income_payment_order_bill l
               ON l.payment_order_id = o.id AND l.data_version = o.current_publish_version
              AND l.line_type = 10 AND l.deleted = 0
             JOIN {table} d ON d.id = l.diff_id
             WHERE o.status = 50 AND (l.line_status <> 30 OR d.payment_status <> 60
               OR d.cumulative_paid_amount <> l.pay_amount)"
        );
        let wrong = app.lines(&unpaid).await;
        assert!(wrong.is_empty(), "seed {seed}: {table} of paid orders: {wrong:#?}");
    }
}

/// Every order has come to an end, or its page says what it waits for and what may be done.
async fn ended(app: &TestApp, seed: u64, report: &mut KillReport) {
    let orders = app.lines("SELECT id, status FROM fi_resident_income_payment_order").await;
    for line in orders {
        let (id, status) = line.split_once('|').expect("two cells");
        *report.ends.entry(status.to_owned()).or_default() += 1;
        if ["30", "50", "55", "90"].contains(&status) {
            continue;
        }
        let order = OrderId(id.parse().expect("an id"));
        let verdict = order_view::one(&app.db, order).await.expect("the order").verdict;
        assert!(!verdict.actions.is_empty(), "seed {seed}: stuck at {status}: {verdict:?}");
        report.blocked.push(verdict.sentence);
    }
}

/// What the bank paid by its own references is what the details say, one payment a line.
async fn paid_once(app: &TestApp, seed: u64, outside: &Outside, report: &mut KillReport) {
    let items = "SELECT i.end_to_end_id, d.order_bill_id, d.pay_status, p.push_state
        FROM fi_resident_income_payment_push_item i
        JOIN fi_resident_income_payment_push p ON p.id = i.push_id
        JOIN fi_resident_income_payment_push_batch_detail d ON d.id = i.push_batch_detail_id
        ORDER BY d.order_bill_id";
    let mut known = 0;
    let mut lines = std::collections::BTreeMap::new();
    for line in app.lines(items).await {
        let cells: Vec<&str> = line.split('|').collect();
        let was_paid = outside.paid.contains(cells[0]);
        assert!(!was_paid || cells[3] == "ACCEPTED", "seed {seed}: {line}: paid, not accepted");
        known += usize::from(was_paid);
        let entry = lines.entry(cells[1].to_owned()).or_insert((0, cells[2].to_owned()));
        entry.0 += u32::from(was_paid);
    }
    assert_eq!(known, outside.paid.len(), "seed {seed}: the bank paid what nobody knows");
    for (line, (times, status)) in lines {
        let expected = u32::from(status == "PAID");
        assert_eq!(times, expected, "seed {seed}: line {line} is {status}, paid {times} times");
    }
    report.paid_lines = outside.paid.len();
    report.refused_payments = outside.refused;
}

/// Each chunk that was accepted reached the partner, under its key once.
async fn told_once(app: &TestApp, seed: u64, report: &mut KillReport) {
    let told = "SELECT e.status, COUNT(*) AS chunks, COUNT(r.id) AS received
        FROM fi_resident_income_payment_external_log e
        LEFT JOIN partner_received r ON r.idempotency_key = e.idempotency_key
        GROUP BY e.status";
    for line in app.lines(told).await {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!((cells[0], cells[1]), ("SUCCESS", cells[2]), "seed {seed}: {line}");
        report.told = cells[1].parse().expect("a count");
    }
}
