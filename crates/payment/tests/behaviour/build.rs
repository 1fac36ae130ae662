//! S03 over rows written by hand: what a submission leaves, with the least that may be written.

use counterfoil_e2e::on_every_database;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};

use super::hand::Hand;

/// A submitted NEW session, not yet built.
const SUBMITTED: &str = "
INSERT INTO fi_resident_income_payment_order (id, order_no, create_user_id)
 VALUES (1, 'PO-1', 7);
INSERT INTO selection_session
  (id, status, creator_user_id, target_payment_order_id, submit_attempt, active_submit_id)
 VALUES (12, 'SUBMITTING', 7, 1, 1, 22);
INSERT INTO fi_resident_income_payment_order_version
  (id, payment_order_id, session_id, target_data_version, target_submit_round, submit_attempt)
 VALUES (22, 1, 12, 1, 1, 1);
INSERT INTO selection_submit_batch (id, payment_order_version_id, batch_phase)
 VALUES (30, 22, 'BUILD'), (31, 22, 'LOCK_ACTIVATE');
INSERT INTO selection_session_item (id, session_id, station_id, bill_yearmonth, diff_id,
   small_bill_id, partner_bill_id, line_type, pre_rent, pay_amount, unqualified_reason, deleted)
 VALUES (1, 12, 'S1', '202609', 51, 61, 71, 10, 10000, 10000, NULL, 0),
  (2, 12, 'S2', '202609', 52, NULL, NULL, 10, NULL, NULL, NULL, 0),
  (3, 12, 'S3', '202609', NULL, NULL, 73, 20, 0, 0, '内部原因', 0),
  (4, 12, 'S4', '202609', 54, 64, 74, 10, 1, 1, NULL, 1);
INSERT INTO fi_monthly_income_difference
  (id, station_id, bill_yearmonth, payment_status, partner_query_status, project_company_id,
   partner_id)
 VALUES (51, 'S1', '202609', 20, 20, 5, 3), (52, 'S2', '202609', 20, 10, 6, NULL);
INSERT INTO fi_customer_bill (id, station_id, bill_yearmonth, customer_account_id)
 VALUES (61, 'S1', '202609', 8);
INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
 VALUES (8, '张三', '6222', '农行');
INSERT INTO fi_customer_bill_partner
  (id, station_id, bill_yearmonth, partner_id, partner_account_id, payment_status)
 VALUES (71, 'S1', '202609', 3, 9, 20), (73, 'S3', '202609', 4, 9, 20);
INSERT INTO fi_customer_account_partner (id, partner_id, holder_name, account_no, bank_name)
 VALUES (9, 4, '合作方', '6333', '建行')";

/// A submitted revision of the running example's V1, not yet built: A kept, C UNQUALIFIED, D new.
/// Its items name no source lines.
const REVISION: &str = "
DELETE FROM fi_async_task;
DELETE FROM fi_resident_income_payment_order_bill WHERE data_version = 2;
DELETE FROM fi_resident_income_payment_bill_lock WHERE id = 1004;
UPDATE fi_resident_income_payment_order SET current_publish_version = 1, submit_round = 1;
UPDATE fi_resident_income_payment_order_version SET version_build_status = 'BUILDING'
 WHERE id = 22;
UPDATE selection_session SET status = 'SUBMITTING' WHERE id = 12;
INSERT INTO selection_submit_batch (id, payment_order_version_id, batch_phase)
 VALUES (30, 22, 'BUILD');
INSERT INTO selection_session_item (id, session_id, station_id, bill_yearmonth, diff_id,
   small_bill_id, partner_bill_id, line_type, pre_rent, pay_amount, unqualified_reason)
 VALUES (1, 12, 'S1', '202609', 51, 61, 71, 10, 10000, 10000, NULL),
  (3, 12, 'S3', '202609', 53, 63, 73, 20, 0, 0, '农户租金异常'),
  (4, 12, 'S4', '202609', 54, 64, 74, 10, 10000, 10000, NULL)";

on_every_database! {
    async fn a_submission_written_by_hand_is_built_and_published(app: TestApp) {
        let hand = Hand(&app);
        app.execute(SUBMITTED).await;
        hand.task("SUBMIT_BUILD", 22).await;
        let summary = app.round(SUBMIT_BUILD.handler).await;
        assert_eq!((summary.succeeded, summary.failed), (1, 0), "{summary:?}");
        let lines = "SELECT station_id, line_type, line_status, data_version, submit_round,
            before_payment_status, before_partner_query_status, payee_name, payee_account,
            project_company_id, partner_id
            FROM fi_resident_income_payment_order_bill ORDER BY id";
        let expected = ["S1|10|10|1|1|20|20|张三|6222|5|3",
            "S2|10|10|1|1|20|10|NULL|NULL|6|NULL", "S3|20|10|1|1|20|10|合作方|6333|NULL|4"];
        assert_eq!(app.lines(lines).await, expected);
        let locks = "SELECT k.lock_key, k.lock_status, k.lock_scene, k.submit_attempt, l.station_id
            FROM fi_resident_income_payment_bill_lock k
            JOIN fi_resident_income_payment_order_bill l ON l.id = k.order_bill_id ORDER BY k.id";
        let expected = ["S1:202609|RESERVED|BUILD_RESERVE|1|S1",
            "S2:202609|RESERVED|BUILD_RESERVE|1|S2"];
        assert_eq!(app.lines(locks).await, expected);
        let order = "SELECT status, business_status, build_status, current_publish_version,
            submit_round, total_amount, payable_count, unqualified_count
            FROM fi_resident_income_payment_order";
        let expected = "20|PENDING_AUDIT_PLAN|PUBLISHED|1|1|10000|2|1";
        assert_eq!(app.value(order).await, expected);
        let payments = "SELECT project_company_id, payment_status, amount FROM
            fi_resident_income_payment_order_project_payment ORDER BY project_company_id";
        let expected = ["0|NO_NEED_PAYMENT|0", "5|WAIT_PAYMENT|10000", "6|NO_NEED_PAYMENT|0"];
        assert_eq!(app.lines(payments).await, expected);
        let batch = "SELECT batch_status, last_item_id, processed_count
            FROM selection_submit_batch WHERE id = 30";
        assert_eq!(app.value(batch).await, "DONE|3|3");
        let version = "SELECT v.version_build_status, s.status, s.active_submit_id
            FROM fi_resident_income_payment_order_version v, selection_session s";
        assert_eq!(app.value(version).await, "PUBLISHED|PUBLISHED_LOCK_SYNCING|22");
        assert_eq!(hand.task_state("SUBMIT_BUILD:22").await, "2|0|NULL");
        assert_eq!(hand.task_state("LOCK_ACTIVATE:22").await, "0|0|NULL");
    }

    async fn a_revision_finds_the_lines_it_comes_from_by_station_and_month(app: TestApp) {
        let hand = Hand::revision(&app).await;
        app.execute(REVISION).await;
        hand.task("SUBMIT_BUILD", 22).await;
        let built = app.round(SUBMIT_BUILD.handler).await;
        assert_eq!((built.succeeded, built.failed), (1, 0), "{built:?}");
        let lines = "SELECT station_id, source_order_bill_id, line_type
            FROM fi_resident_income_payment_order_bill WHERE data_version = 2 ORDER BY id";
        assert_eq!(app.lines(lines).await, ["S1|101|10", "S3|103|20", "S4|NULL|10"]);
        let reserved = "SELECT station_id FROM fi_resident_income_payment_bill_lock
            WHERE lock_status = 'RESERVED'";
        assert_eq!(app.lines(reserved).await, ["S4"]);
        assert_eq!(app.round(LOCK_ACTIVATE.handler).await.succeeded, 1);
        assert_eq!(hand.references(2).await, "20|NULL|NULL");
        assert_eq!(hand.references(3).await, "10|NULL|NULL");
        assert!(hand.references(1).await.starts_with("30|1|"));
        assert!(hand.lock(1001).await.starts_with("ACTIVE|S1:202609|"));
    }

    async fn a_submission_that_moved_on_is_not_built(app: TestApp) {
        for change in [
            "UPDATE selection_session SET status = 'EDITING'",
            "UPDATE selection_session SET active_submit_id = 23",
            "UPDATE selection_session SET submit_attempt = 2",
            "UPDATE fi_resident_income_payment_order_version SET
               version_build_status = 'BUILD_FAILED'",
            "UPDATE fi_resident_income_payment_order_version SET
               version_build_status = 'PUBLISHED'",
            "DELETE FROM selection_submit_batch",
            "UPDATE fi_resident_income_payment_order SET deleted = 1",
        ] {
            let hand = Hand(&app);
            hand.wipe().await;
            for table in ["selection_session_item", "fi_customer_account",
                "fi_customer_account_partner"] {
                app.execute(&format!("DELETE FROM {table}")).await;
            }
            app.execute(SUBMITTED).await;
            app.execute(change).await;
            hand.task("SUBMIT_BUILD", 22).await;
            let before = hand.everything().await;
            let summary = app.round(SUBMIT_BUILD.handler).await;
            assert_eq!((summary.succeeded, summary.failed), (0, 1), "{change}: {summary:?}");
            assert_eq!(hand.everything().await, before, "{change}");
        }
    }
}
