//! The running example of payment-flow.md: V1 has A, B, C; V2 keeps A, removes B, makes C
//! unqualified and adds D.

use counterfoil_e2e::{Bill, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::Submission;

const RENT_ABNORMAL: &str = "农户租金异常";

async fn publish(app: &TestApp, submission: &Submission) {
    Fixture(app).batch_size(submission, 2).await;
    let build = app.round(SUBMIT_BUILD.handler).await;
    assert_eq!((build.succeeded, build.failed), (1, 0), "{build:?}");
    let activate = app.round(LOCK_ACTIVATE.handler).await;
    assert_eq!((activate.succeeded, activate.failed), (1, 0), "{activate:?}");
}

async fn v1(app: &TestApp) -> Submission {
    let fixture = Fixture(app);
    fixture.records(4).await;
    let session = fixture.new_session(&[1, 2, 3].map(Bill::payable)).await;
    let submission = fixture.submit(session).await;
    publish(app, &submission).await;
    submission
}

const LOCKS: &str = "SELECT station_id, lock_key, lock_status, lock_scene, lock_origin,
      data_version, submit_round, release_reason
   FROM fi_resident_income_payment_bill_lock ORDER BY station_id";

const LEDGER: &str =
    "SELECT d.station_id, d.payment_status, d.locked_payment_order_id, l.data_version,
      d.unqualified_flag, d.unqualified_reason, d.partner_query_status
   FROM fi_monthly_income_difference d
   LEFT JOIN fi_resident_income_payment_order_bill l ON l.id = d.locked_order_bill_id
   ORDER BY d.id";

on_every_database! {
    async fn a_new_order_is_published_locked_and_handed_over(app: TestApp) {
        let v1 = v1(&app).await;
        let order = v1.order;
        let expected = [1, 2, 3].map(|n| {
            format!("S{n}|S{n}:202609|ACTIVE|PUBLISHED_ACTIVE|SUBMIT_NEW|1|1|NULL")
        });
        assert_eq!(app.lines(LOCKS).await, expected);
        let mut expected = [1, 2, 3].map(|n| format!("S{n}|30|{order}|1|0|NULL|10")).to_vec();
        expected.push("S4|20|NULL|NULL|0|NULL|10".into());
        assert_eq!(app.lines(LEDGER).await, expected);
        let state = "SELECT o.status, o.business_status, o.current_publish_version,
               o.submit_round, o.total_amount, o.payable_count, s.status AS session_status,
               s.active_submit_id, b.batch_status, b.processed_count
             FROM fi_resident_income_payment_order o
             JOIN selection_session s ON s.target_payment_order_id = o.id
             JOIN selection_submit_batch b ON b.session_id = s.id
              AND b.batch_phase = 'LOCK_ACTIVATE'";
        let expected = "20|PENDING_AUDIT_PLAN|1|1|30000|3|COMPLETED|NULL|DONE|3";
        assert_eq!(app.value(state).await, expected);
        let tasks = "SELECT task_type, task_status FROM fi_async_task ORDER BY id";
        let expected = [
            "RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD|2",
            "RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE|2",
            "RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE|0",
        ];
        assert_eq!(app.lines(tasks).await, expected);
    }

    async fn a_revision_keeps_a_removes_b_unqualifies_c_and_adds_d(app: TestApp) {
        let v1 = v1(&app).await;
        let order = v1.order;
        let kept = app.value("SELECT id FROM fi_resident_income_payment_bill_lock
            WHERE station_id = 'S1'").await;
        let fixture = Fixture(&app);
        let bills = [
            Bill::payable(1),
            Bill::unqualified(3, RENT_ABNORMAL, 0),
            Bill::payable(4),
        ];
        let session = fixture.revise_session(order.0, &bills).await;
        let v2 = fixture.submit(session).await;
        publish(&app, &v2).await;
        let locks = app.lines(LOCKS).await;
        let released = |n: i64, id: String| {
            format!("S{n}|S{n}:202609:RELEASED:{id}|RELEASED|PUBLISHED_RELEASE|SUBMIT_NEW|1|1\
                |REVISE_REMOVED")
        };
        let id_of = async |n: i64| {
            app.value(&format!("SELECT id FROM fi_resident_income_payment_bill_lock
                WHERE station_id = 'S{n}'")).await
        };
        let expected = [
            "S1|S1:202609|ACTIVE|PUBLISHED_REFRESH|REVISE_KEEP_ACTIVE|2|2|NULL".to_owned(),
            released(2, id_of(2).await),
            released(3, id_of(3).await),
            "S4|S4:202609|ACTIVE|PUBLISHED_ACTIVE|NULL|2|2|NULL".to_owned(),
        ];
        assert_eq!(locks, expected);
        assert_eq!(id_of(1).await, kept, "A keeps its lock row");
        let expected = [
            format!("S1|30|{order}|2|0|NULL|10"),
            "S2|20|NULL|NULL|0|NULL|10".to_owned(),
            format!("S3|10|NULL|NULL|1|{RENT_ABNORMAL}|10"),
            format!("S4|30|{order}|2|0|NULL|10"),
        ];
        assert_eq!(app.lines(LEDGER).await, expected);
        let versions = app.lines("SELECT financial_version FROM fi_monthly_income_difference
            ORDER BY id").await;
        assert_eq!(versions, ["2", "1", "1", "1"]);
    }
}
