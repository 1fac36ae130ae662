//! What people do between two kills: select, submit, revise, review, cancel, record payments.

use counterfoil_db::{Read, sql};
use counterfoil_payment::order_cancel::cancel;
use counterfoil_payment::session::submit;
use counterfoil_payment::treasury::record_payment::record_payment;
use counterfoil_protocol::{OrderId, PlanId, SessionId, UserId};
use counterfoil_review::decision;
use counterfoil_task::Kicker;

use super::Random;
use crate::{Bill, CREATOR, Fixture, TestApp};

/// Orders of a set: the first three are paid by the treasury and want each other's bills, the
/// fourth is paid offline, the last has nothing to pay.
const ORDERS: i64 = 5;
const CONTESTED_ORDERS: i64 = 3;
const OFFLINE_ORDER: i64 = 3;
const UNPAYABLE_ORDER: i64 = 4;
const BILLS_AN_ORDER: i64 = 12;
/// Stations each order may use; the first one is contested by the order before.
const STATIONS_AN_ORDER: i64 = 16;
const BATCH_SIZE: i64 = 6;
const MAX_REVISIONS: i64 = 2;
/// Decisions of one plan at most.
const MAX_DECISIONS: u32 = 20;
const REASON: &str = "农户租金异常";

/// Bills of so many sets of orders, with everything that a payment needs.
pub(super) async fn begin(app: &TestApp, sets: u32) {
    let a_set = ORDERS * STATIONS_AN_ORDER;
    let stations = i64::from(sets) * a_set;
    Fixture(app).records(stations).await;
    let first_offline = OFFLINE_ORDER * STATIONS_AN_ORDER;
    let after_offline = first_offline + STATIONS_AN_ORDER;
    app.execute(&format!(
        "UPDATE fi_monthly_income_difference SET contract_rent = 10000, actual_rent = 10000,
           project_company_id = CASE WHEN (id - 1) % {a_set} >= {first_offline}
             AND (id - 1) % {a_set} < {after_offline} THEN 2 ELSE 1 END;
         \nUPDATE fi_customer_bill SET customer_account_id = id;
         \nUPDATE fi_customer_bill_partner SET partner_id = 1;
         \nINSERT INTO sys_project_company (id, name, asset_manager_code, payer_account)
         VALUES (1, 'Company 1', 'CAM', '95550000001'), (2, 'Company 2', 'OTHER', '95550000002');
         \nINSERT INTO sys_dict (dict_type, dict_key) VALUES ('ASSET_MANAGER', 'CAM')"
    ))
    .await;
    for number in 1..=stations {
        app.execute(&format!(
            "INSERT INTO fi_customer_account (id, customer_id, holder_name, account_no, bank_name)
             VALUES ({number}, 'C{number}', 'Farmer {number}', '622200{number}', 'Bank')"
        ))
        .await;
    }
}

/// The first selections of a set. An order also wants one bill of the next one: a conflict.
pub(super) async fn open(app: &TestApp, set: u32) {
    let first = i64::from(set) * ORDERS;
    for kind in 0..ORDERS {
        let order = first + kind;
        let mut bills: Vec<Bill> = own_bills(order).map(|number| bill(order, number)).collect();
        if kind < CONTESTED_ORDERS {
            let next = first + (kind + 1) % CONTESTED_ORDERS;
            bills.push(Bill::payable(next * STATIONS_AN_ORDER + 1));
        }
        Fixture(app).new_session(&bills).await;
    }
}

fn own_bills(order: i64) -> impl Iterator<Item = i64> {
    let first = order * STATIONS_AN_ORDER + 1;
    first..first + BILLS_AN_ORDER
}

fn bill(order: i64, number: i64) -> Bill {
    match order % ORDERS {
        UNPAYABLE_ORDER => Bill::unqualified(number, REASON, 0),
        _ => Bill::payable(number),
    }
}

/// One turn of everybody. `calm` people finish what there is: nobody rejects, and only what was
/// rejected is revised.
pub(super) async fn act(app: &TestApp, random: &mut Random, calm: bool) {
    for session in sessions(app, "status IN ('EDITING', 'SUBMIT_FAILED')").await {
        drop_conflicts(app, session).await;
        // Refused while S06 of the last attempt is not done, or while an approval is being
        // applied: the next turn tries again.
        if let Ok(submission) = submit(&app.db, &Kicker::none(), session, CREATOR).await {
            Fixture(app).batch_size(&submission, BATCH_SIZE).await;
        }
    }
    for (order, version, status) in revisable(app).await {
        if status == 30 && !calm && random.below(4) == 0 {
            let order = OrderId(order);
            let cancelled = cancel(&app.db, &Kicker::none(), order, CREATOR, "given up").await;
            cancelled.expect("a cancellation");
        } else if status == 30 || (!calm && random.below(6) == 0) {
            revise(app, order, version, random).await;
        }
    }
    for plan in open_plans(app).await {
        review(app, plan, random, calm).await;
    }
    let offline = "SELECT id FROM fi_resident_income_payment_order
        WHERE status = 40 AND payment_type = 'OFFLINE'";
    for id in app.lines(offline).await {
        let order = OrderId(id.parse().expect("an id"));
        let recorded = record_payment(&app.db, order, "bank receipt", None, CREATOR).await;
        recorded.expect("a recorded payment");
    }
    app.execute(&format!(
        "UPDATE fi_resident_income_payment_review_callback_progress SET batch_size = {BATCH_SIZE}
         WHERE main_task_status = 'RUNNING'"
    ))
    .await;
}

async fn sessions(app: &TestApp, condition: &str) -> Vec<SessionId> {
    let query = format!("SELECT id FROM selection_session WHERE {condition} ORDER BY id");
    let lines = app.lines(&query).await;
    lines.iter().map(|id| SessionId(id.parse().expect("an id"))).collect()
}

async fn drop_conflicts(app: &TestApp, session: SessionId) {
    app.execute(&format!(
        "UPDATE selection_session_item SET deleted = 1
         WHERE session_id = {session} AND deleted = 0 AND EXISTS (
           SELECT 1 FROM selection_conflict c
           JOIN fi_resident_income_payment_order_version v ON v.id = c.payment_order_version_id
           WHERE v.session_id = {session}
             AND c.station_id = selection_session_item.station_id
             AND c.bill_yearmonth = selection_session_item.bill_yearmonth)"
    ))
    .await;
}

/// Orders under review or rejected whose published version is complete, with few revisions yet
/// and no decision under way: id, version, status.
async fn revisable(app: &TestApp) -> Vec<(i64, i64, i64)> {
    let query = sql!(
        "SELECT o.id, o.current_publish_version AS version, o.status
         FROM fi_resident_income_payment_order o
         JOIN fi_resident_income_payment_order_version v
           ON v.payment_order_id = o.id AND v.target_data_version = o.current_publish_version
         JOIN selection_session s ON s.id = v.session_id
         WHERE o.status IN (20, 30) AND s.status = 'COMPLETED' AND o.submit_round <= :most
           AND NOT EXISTS (SELECT 1 FROM selection_session r
             WHERE r.target_payment_order_id = o.id AND r.status <> 'COMPLETED')
           AND (o.status = 30 OR NOT EXISTS (SELECT 1 FROM review_business_plan p
             WHERE p.from_id = o.id AND p.submit_round = o.submit_round
               AND p.status IN ('PASSED', 'REJECTED')))
         ORDER BY o.id",
        most = MAX_REVISIONS,
    );
    let rows = app.db.rows(query).await.expect("orders");
    let int = |row: &counterfoil_db::Row, column| row.int(column).expect("a number");
    rows.iter().map(|row| (int(row, "id"), int(row, "version"), int(row, "status"))).collect()
}

async fn revise(app: &TestApp, order: i64, version: i64, random: &mut Random) {
    let first = app
        .value(&format!(
            "SELECT diff_id FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = {order} AND data_version = {version}
             ORDER BY id LIMIT 1"
        ))
        .await;
    let index = (first.parse::<i64>().expect("a record") - 1) / STATIONS_AN_ORDER;
    let start = index * STATIONS_AN_ORDER + 2; // the first one is contested
    let mut bills = Vec::new();
    for number in start..start + STATIONS_AN_ORDER - 1 {
        match random.below(6) {
            0 => {}
            1 => bills.push(Bill::unqualified(number, REASON, 0)),
            _ => bills.push(bill(index, number)),
        }
    }
    let session = Fixture(app).revise_session(order, &bills).await;
    if let Ok(submission) = submit(&app.db, &Kicker::none(), session, CREATOR).await {
        Fixture(app).batch_size(&submission, BATCH_SIZE).await;
    }
}

/// Plans of current versions that nobody is about to replace.
async fn open_plans(app: &TestApp) -> Vec<PlanId> {
    let query = "SELECT p.id FROM fi_resident_income_payment_order o
        JOIN review_business_plan p ON p.id = o.review_plan_id AND p.status = 'DOING'
        WHERE o.status = 20 AND o.audit_plan_status = 'CREATED'
          AND NOT EXISTS (SELECT 1 FROM selection_session r
            WHERE r.target_payment_order_id = o.id AND r.status <> 'COMPLETED')
        ORDER BY p.id";
    let lines = app.lines(query).await;
    lines.iter().map(|id| PlanId(id.parse().expect("an id"))).collect()
}

/// Reviewers approve whatever waits for them.
pub(super) async fn approve(app: &TestApp) {
    for plan in open_plans(app).await {
        review(app, plan, &mut Random::new(1), true).await;
    }
}

/// Reviewers look at a plan: they approve it to the end, or a node of it, or reject it.
async fn review(app: &TestApp, plan: PlanId, random: &mut Random, calm: bool) {
    let choice = if calm { 7 } else { random.below(8) };
    let decisions = match choice {
        0 | 1 => 1,
        _ => MAX_DECISIONS,
    };
    for _ in 0..decisions {
        let candidates = app
            .lines(&format!(
                "SELECT u.user_id FROM review_business_node n
                 JOIN review_business_node_user u ON u.node_id = n.id
                 WHERE n.plan_id = {} AND n.status = 'DOING' AND u.deleted = 0 ORDER BY u.id",
                plan.0
            ))
            .await;
        let mut decided = false;
        for user in candidates.iter().map(|user| UserId(user.parse().expect("a user"))) {
            // Refused to one who has decided on an earlier node: somebody else of this node does.
            let said = match choice {
                0 => decision::reject(&app.db, plan, user, "look again").await,
                _ => decision::approve(&app.db, plan, user, "checked").await,
            };
            decided = said.is_ok();
            if decided {
                break;
            }
        }
        if !decided {
            return;
        }
    }
}
