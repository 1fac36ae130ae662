//! How many rows a step reads for each line, at two sizes: a step that walks its whole version for
//! every batch, or for every line, reads more for each line the more there are.
//!
//! Nothing is analysed here: the planner knows as little of the lines as it does of those of a
//! version that was built a moment ago.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_db::{Query, Read as _};
use counterfoil_e2e::{CREATOR, Fixture, TestApp};
use counterfoil_payment::kinds::{
    LOCK_ACTIVATE, REVIEW_CALLBACK, REVIEW_PROGRESS, STATUS_REFRESH, SUBMIT_BUILD,
};
use counterfoil_payment::review_callback::{Callback, Conclusion, accept};
use counterfoil_payment::session::open::open_revise;
use counterfoil_payment::session::submit;
use counterfoil_protocol::{OrderId, PlanId, SessionId};
use counterfoil_task::Kicker;

use super::data;

/// Rows read for each line, in hundredths, by step.
pub type Read = BTreeMap<&'static str, i64>;

struct Scale<'a> {
    app: &'a TestApp,
    lines: i64,
    read: Read,
}

/// Walks an order with so many lines from its selection to its approval.
pub async fn read_for_each_line(app: &TestApp, lines: i64) -> Read {
    data::numbers(app, lines).await;
    for text in data::RECORDS {
        app.execute(text).await;
    }
    app.execute(
        "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
         VALUES (1, 'Partner', 101, 102);
INSERT INTO sys_project_company (id, name, asset_manager_code) VALUES (1, 'Company', 'AM');
INSERT INTO sys_dict (dict_type, dict_key, status) VALUES ('ASSET_MANAGER', 'AM', 1);
UPDATE fi_monthly_income_difference SET partner_id = 1, project_company_id = 1;
UPDATE fi_customer_bill SET customer_account_id = id;
INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
 SELECT n, 'Holder', 'ACC' || n, 'Bank' FROM plan_number ORDER BY n",
    )
    .await;
    let mut scale = Scale { app, lines, read: Read::new() };
    let order = scale.new_order().await;
    scale.revision(order).await;
    scale.approval(order).await;
    scale.read
}

impl Scale<'_> {
    /// Runs all that a handler has to do through connections of its own, and counts what they read.
    async fn step(&mut self, name: &'static str, handler: &str) {
        let (before, own) = (read_so_far(self.app).await, connections(self.app, "1 = 1").await);
        let process = self.app.second_process().await;
        loop {
            let round = process.round_with(handler, r#"{"maxTaskCount":100}"#).await;
            assert_eq!(round.failed, 0, "{name}: {round:?}");
            if round.selected == 0 {
                break;
            }
        }
        let others = connections(self.app, "pid <> pg_backend_pid()").await;
        let others: BTreeSet<String> = others.difference(&own).cloned().collect();
        process.db.close().await;
        // A connection tells what it has read when it ends.
        while !connections(self.app, "1 = 1").await.is_disjoint(&others) {
            tokio::task::yield_now().await;
        }
        let read = read_so_far(self.app).await - before;
        self.read.insert(name, read * 100 / self.lines);
    }

    async fn submitted(&self, session: SessionId) -> OrderId {
        let submitted = submit(&self.app.db, &Kicker::none(), session, CREATOR).await;
        submitted.expect("a submission").order
    }

    async fn new_order(&mut self) -> OrderId {
        let session = Fixture(self.app).new_session(&[]).await;
        self.app
            .execute(&format!(
                "INSERT INTO selection_session_item
                   (session_id, station_id, bill_yearmonth, diff_id, small_bill_id,
                    partner_bill_id, pre_rent, pay_amount)
                 SELECT {session}, station_id, bill_yearmonth, id, id, id, 10000, 10000
                 FROM fi_monthly_income_difference ORDER BY id"
            ))
            .await;
        let order = self.submitted(session).await;
        self.step("S03 of a new order", SUBMIT_BUILD.handler).await;
        self.step("S04 of a new order", LOCK_ACTIVATE.handler).await;
        order
    }

    /// Keeps most lines, drops some, makes some unqualified.
    async fn revision(&mut self, order: OrderId) {
        let session = open_revise(&self.app.db, CREATOR, order).await.expect("a revision");
        self.app
            .execute(&format!(
                "DELETE FROM selection_session_item
                 WHERE session_id = {session} AND diff_id % 10 = 0;
UPDATE selection_session_item
 SET line_type = 20, unqualified_reason = '农户租金异常', pay_amount = 0
 WHERE session_id = {session} AND diff_id % 10 = 1"
            ))
            .await;
        self.submitted(session).await;
        self.step("S03 of a revision", SUBMIT_BUILD.handler).await;
        self.step("S04 of a revision", LOCK_ACTIVATE.handler).await;
    }

    async fn approval(&mut self, order: OrderId) {
        self.app
            .execute(&format!(
                "UPDATE fi_resident_income_payment_order
                 SET review_plan_id = 1, business_status = 'UNDER_REVIEW',
                     audit_plan_status = 'CREATED' WHERE id = {order};
INSERT INTO fi_resident_income_payment_order_approval_instance
  (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
 VALUES ({order}, 2, 1, 1, 2)"
            ))
            .await;
        let callback = Callback {
            order,
            plan: PlanId(1),
            conclusion: Conclusion::Pass,
            remark: None,
            time: None,
            data_version: None,
            attempt: None,
            round: None,
            evidence: None,
        };
        accept(&self.app.db, &Kicker::none(), &callback).await.expect("an acceptance");
        self.step("S07", REVIEW_CALLBACK.handler).await;
        self.step("S08", REVIEW_PROGRESS.handler).await;
        self.step("S12", STATUS_REFRESH.handler).await;
    }
}

/// Rows and index entries that ended connections have read, of all tables.
async fn read_so_far(app: &TestApp) -> i64 {
    let read = "SELECT CAST(COALESCE(SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0) AS BIGINT)
          + (SELECT CAST(COALESCE(SUM(idx_tup_read), 0) AS BIGINT) FROM pg_stat_user_indexes)
        FROM pg_stat_user_tables";
    app.db.count(Query::built(read.to_owned())).await.expect("a sum")
}

/// The server's processes that serve connections to this database.
async fn connections(app: &TestApp, condition: &str) -> BTreeSet<String> {
    let open = format!(
        "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend' AND {condition}"
    );
    app.lines(&open).await.into_iter().collect()
}
