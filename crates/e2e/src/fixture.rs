//! Rows that tests start from, written by hand as an acceptance check would: only the columns they
//! need.

use counterfoil_db::{Read, sql};
use counterfoil_payment::session::{Submission, submit};
use counterfoil_protocol::{SessionId, UserId};
use counterfoil_task::Kicker;

use crate::TestApp;

/// Who opens sessions and creates orders here.
pub const CREATOR: UserId = UserId(7);

/// One bill of the month 202609 with all three business records, whose ids are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// Station `S<n>`, and the ids of the records.
    pub number: i64,
    /// PAYABLE, or UNQUALIFIED with this reason.
    pub unqualified: Option<&'static str>,
    /// `pre_rent` in fen.
    pub pre_rent: i64,
}

impl Bill {
    /// A payable bill of 100 yuan.
    pub fn payable(number: i64) -> Bill {
        Bill { number, unqualified: None, pre_rent: 10_000 }
    }

    /// An unqualified bill.
    pub fn unqualified(number: i64, reason: &'static str, pre_rent: i64) -> Bill {
        Bill { number, unqualified: Some(reason), pre_rent }
    }
}

/// Writes rows into an app's database.
#[derive(Debug, Clone, Copy)]
pub struct Fixture<'a>(pub &'a TestApp);

impl Fixture<'_> {
    /// The three business records of stations `S1` to `S<count>`, of one partner with its managers.
    pub async fn records(&self, count: i64) {
        self.write_records(count).await;
        self.0
            .execute(
                "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
                 VALUES (1, 'Partner', 101, 102);
                 UPDATE fi_monthly_income_difference SET partner_id = 1",
            )
            .await;
    }

    async fn write_records(&self, count: i64) {
        let mut tx = self.0.db.begin().await.expect("a transaction");
        for number in 1..=count {
            for table in
                ["fi_monthly_income_difference", "fi_customer_bill", "fi_customer_bill_partner"]
            {
                let text = format!(
                    "INSERT INTO {table} (id, station_id, bill_yearmonth)
                     VALUES ({number}, 'S{number}', '202609')"
                );
                tx.execute(counterfoil_db::Query::built(text)).await.expect("a record");
            }
        }
        tx.commit("test").await.expect("a commit");
    }

    /// An EDITING session of mode NEW with these bills.
    pub async fn new_session(&self, bills: &[Bill]) -> SessionId {
        self.session("NEW", None, bills).await
    }

    /// An EDITING session that revises `order`; bills of its published version are kept.
    pub async fn revise_session(&self, order: i64, bills: &[Bill]) -> SessionId {
        self.session("REVISE", Some(order), bills).await
    }

    async fn session(&self, mode: &str, order: Option<i64>, bills: &[Bill]) -> SessionId {
        let mut tx = self.0.db.begin().await.expect("a transaction");
        let now = tx.now();
        let id = tx
            .insert(sql!(
                "INSERT INTO selection_session
                   (mode, status, creator_user_id, target_payment_order_id, create_time,
                    update_time)
                 VALUES (:mode, 'EDITING', :creator, :order, :now, :now)",
                mode = mode,
                creator = CREATOR.0,
                order = order,
                now = now,
            ))
            .await
            .expect("a session");
        for bill in bills {
            let query = sql!(
                "INSERT INTO selection_session_item
                   (session_id, station_id, bill_yearmonth, diff_id, small_bill_id,
                    partner_bill_id, line_type, unqualified_reason, pre_rent, pay_amount)
                 VALUES (:session, :station, '202609', :number, :number, :number, :line_type,
                    :reason, :pre_rent, :pay_amount)",
                session = id,
                station = format!("S{}", bill.number),
                number = bill.number,
                line_type = if bill.unqualified.is_some() { 20 } else { 10 },
                reason = bill.unqualified,
                pre_rent = bill.pre_rent,
                pay_amount = if bill.unqualified.is_some() { 0 } else { bill.pre_rent },
            );
            tx.execute(query).await.expect("an item");
        }
        tx.commit("test").await.expect("a commit");
        SessionId(id)
    }

    /// Sets the batch size of a version's batches.
    pub async fn batch_size(&self, submission: &Submission, size: i64) {
        let text = format!(
            "UPDATE selection_submit_batch SET batch_size = {size}
             WHERE payment_order_version_id = {}",
            submission.version
        );
        self.0.execute(&text).await;
    }

    /// Submits a session as its creator.
    pub async fn submit(&self, session: SessionId) -> Submission {
        submit(&self.0.db, &Kicker::none(), session, CREATOR).await.expect("a submission")
    }

    /// How many rows a table has.
    pub async fn count(&self, table_and_condition: &str) -> i64 {
        let text = format!("SELECT COUNT(*) FROM {table_and_condition}");
        self.0.db.count(counterfoil_db::Query::built(text)).await.expect("a count")
    }
}
