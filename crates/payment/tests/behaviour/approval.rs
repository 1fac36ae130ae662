//! An order under review, as S03 to S05 leave it, and what a decision does to it.

use counterfoil_db::Read;
use counterfoil_e2e::{Bill, Dialect, Fixture, TestApp};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, REVIEW_CALLBACK, REVIEW_PROGRESS, SUBMIT_BUILD};
use counterfoil_payment::review_callback::{
    AcceptedCallback, Callback, CallbackError, Conclusion, accept,
};
use counterfoil_protocol::{OrderId, PlanId};
use counterfoil_task::Kicker;

/// The audit plan of the first version.
pub const PLAN: i64 = 900;
/// When the reviewers decided.
pub const DECIDED: &str = "2026-09-08T01:00:00Z";

/// Accounts for the small bills of `records`, one company with a normal asset manager.
pub async fn references(app: &TestApp, count: i64) {
    let mut statements = String::from(
        "INSERT INTO sys_project_company (id, name, asset_manager_code, payer_account)
         VALUES (1, 'Company', 'AM', 'PAYER-1');
         INSERT INTO sys_dict (dict_type, dict_key, status) VALUES ('ASSET_MANAGER', 'AM', 1);
         UPDATE fi_monthly_income_difference SET project_company_id = 1;
         UPDATE fi_customer_bill SET customer_account_id = id",
    );
    for number in 1..=count {
        statements.push_str(&format!(
            ";\nINSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
             VALUES ({number}, 'Holder {number}', 'ACC-{number}', 'Bank')"
        ));
    }
    app.execute(&statements.replace(";\n         ", ";\n")).await;
}

/// An order under review with these bills, its plan and its approval instance.
pub async fn under_review(app: &TestApp, bills: &[Bill]) -> OrderId {
    let fixture = Fixture(app);
    let count = i64::try_from(bills.len()).expect("few");
    fixture.records(count).await;
    references(app, count).await;
    let session = fixture.new_session(bills).await;
    let order = fixture.submit(session).await.order;
    app.round(SUBMIT_BUILD.handler).await;
    app.round(LOCK_ACTIVATE.handler).await;
    open_plan(app, order, 1, 1, PLAN).await;
    order
}

/// What S05 writes once the centre has answered.
pub async fn open_plan(app: &TestApp, order: OrderId, data: i64, round: i64, plan: i64) {
    app.execute(&format!(
        "UPDATE fi_resident_income_payment_order
          SET review_plan_id = {plan}, business_status = 'UNDER_REVIEW',
              audit_plan_status = 'CREATED' WHERE id = {order};
INSERT INTO fi_resident_income_payment_order_approval_instance
  (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
 VALUES ({order}, {data}, 1, {plan}, {round});
UPDATE fi_async_task SET task_status = 2
 WHERE task_type = 'RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE'"
    ))
    .await;
}

/// The reviewers' decision, as the centre sends it.
pub fn decision(order: OrderId, conclusion: Conclusion) -> Callback {
    Callback {
        order,
        plan: PlanId(PLAN),
        conclusion,
        remark: Some("looked at".into()),
        time: DECIDED.parse().ok(),
        data_version: None,
        attempt: None,
        round: None,
        evidence: None,
    }
}

/// Takes a decision in.
pub async fn decide(
    app: &TestApp,
    order: OrderId,
    conclusion: Conclusion,
) -> Result<AcceptedCallback, CallbackError> {
    accept(&app.db, &Kicker::none(), &decision(order, conclusion)).await
}

/// An approval that S07 has prepared.
pub async fn prepared(app: &TestApp, order: OrderId) {
    decide(app, order, Conclusion::Pass).await.expect("acceptance");
    let round = app.round(REVIEW_CALLBACK.handler).await;
    assert_eq!((round.handed_over, round.failed), (1, 0), "{round:?}");
}

/// Turns of S08 until nothing is eligible.
pub async fn advance(app: &TestApp) {
    for _ in 0..50 {
        let round = app.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(round.failed, 0, "{round:?}");
        if round.selected == 0 {
            return;
        }
    }
    panic!("S08 does not come to an end");
}

/// The progress row as `phase|phase_status|main|…`.
pub async fn progress(app: &TestApp) -> String {
    app.value(
        "SELECT phase, phase_status, main_task_status, payable_updated_count,
           unqualified_updated_count, refresh_ready
         FROM fi_resident_income_payment_review_callback_progress",
    )
    .await
}

/// An instant as the database writes it in SQL by hand.
pub fn instant(app: &TestApp, text: &str) -> String {
    match app.db.dialect() {
        Dialect::MariaDb => text.replace('T', " ").replace("+00:00", ""),
        Dialect::Sqlite | Dialect::Postgres => text.to_owned(),
    }
}
