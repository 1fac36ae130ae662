//! The hot paths, walked by the code itself while a recorder remembers its statements.

use counterfoil_db::{Query, Recorder, Side};
use counterfoil_e2e::{CREATOR, Crash, Fixture, TestApp};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::order_view::{self, OrderQuery};
use counterfoil_payment::session::open::open_revise;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::session::{Submission, submit};
use counterfoil_payment::{audit_plan, order_cancel, rules};
use counterfoil_protocol::{BillMonth, OrderId, SessionId, UserId};
use counterfoil_review::inbox;
use counterfoil_task::Kicker;

use super::data::ROWS;

#[path = "approved.rs"]
mod approved;

/// Bills of the order whose paths are walked: four batches, a twentieth of each table at most.
const BILLS: i64 = 4_000;

/// One path with what it ran.
pub struct Path {
    /// What it is.
    pub name: &'static str,
    /// Its statements with their values, in order.
    pub statements: Vec<Query>,
}

pub struct Walk<'w> {
    /// Writes what the walk starts from; not recorded.
    app: &'w TestApp,
    recorded: &'w TestApp,
    recorder: &'w Recorder,
    paths: Vec<Path>,
}

/// Walks all hot paths.
pub async fn walk(app: &TestApp, recorded: &TestApp, recorder: &Recorder) -> Vec<Path> {
    let mut walk = Walk { app, recorded, recorder, paths: Vec::new() };
    let order = walk.new_order().await;
    walk.revision(order).await;
    walk.conflict().await;
    walk.approval().await;
    walk.cancellation(order).await;
    walk.pages(order).await;
    walk.paths
}

impl Walk<'_> {
    fn keep(&mut self, name: &'static str) {
        let statements = self.recorder.take();
        self.paths.push(Path { name, statements });
    }

    async fn round(&mut self, name: &'static str, handler: &str) {
        let engine = self.recorded.engine();
        let engine = engine
            .with_rules(rules::RULES)
            .with_rules(audit_plan::RULES)
            .with_rules(counterfoil_task::RULES);
        let summary = engine.round(handler, "").await.expect("a round");
        assert_eq!((summary.claimed, summary.failed), (1, 0), "{summary:?}");
        self.keep(name);
    }

    /// Bills `after + 1` to `after + BILLS`, selected by nobody yet.
    async fn select(&self, session: SessionId, after: i64, bills: i64) {
        self.app
            .execute(&format!(
                "INSERT INTO selection_session_item
                   (session_id, station_id, bill_yearmonth, diff_id, small_bill_id,
                    partner_bill_id, pre_rent, pay_amount)
                 SELECT {session}, station_id, bill_yearmonth, id, id, id, 10000, 10000
                 FROM fi_monthly_income_difference
                 WHERE id > {after} AND id <= {after} + {bills} ORDER BY id"
            ))
            .await;
    }

    async fn submit(&mut self, name: &'static str, session: SessionId) -> Submission {
        let submitted = submit(&self.recorded.db, &Kicker::none(), session, CREATOR).await;
        self.keep(name);
        submitted.expect("a submission")
    }

    async fn new_order(&mut self) -> OrderId {
        let session = Fixture(self.app).new_session(&[]).await;
        self.select(session, ROWS, BILLS).await;
        let submission = self.submit("submit of a new order", session).await;
        self.round("S03 of a new order", SUBMIT_BUILD.handler).await;
        self.round("S04 of a new order", LOCK_ACTIVATE.handler).await;
        submission.order
    }

    /// Keeps most lines, drops some, makes some unqualified, adds some.
    async fn revision(&mut self, order: OrderId) {
        let session = open_revise(&self.recorded.db, CREATOR, order).await;
        let session = session.expect("a revision");
        self.keep("opening a revision");
        self.app
            .execute(&format!(
                "DELETE FROM selection_session_item
                 WHERE session_id = {session} AND diff_id % 5 = 0;
                 UPDATE selection_session_item
                 SET line_type = 20, unqualified_reason = '农户租金异常', pay_amount = 0
                 WHERE session_id = {session} AND diff_id % 5 = 1;
                 UPDATE selection_session_item SET source_order_bill_id = NULL
                 WHERE session_id = {session} AND diff_id % 5 = 2"
            ))
            .await;
        self.select(session, ROWS + BILLS, BILLS / 4).await;
        self.submit("submit of a revision", session).await;
        self.round("S03 of a revision", SUBMIT_BUILD.handler).await;
        self.round("S04 of a revision", LOCK_ACTIVATE.handler).await;
    }

    /// A build dies after its first batch; meanwhile somebody takes a bill of the second.
    async fn conflict(&mut self) {
        let after = ROWS + BILLS + BILLS / 4;
        let session = Fixture(self.app).new_session(&[]).await;
        self.select(session, after, BILLS / 2).await;
        submit(&self.app.db, &Kicker::none(), session, CREATOR).await.expect("a submission");
        self.recorded.arm(Crash { point: "submit_build.batch", side: Side::After, passage: 1 });
        let died = self.recorded.try_round(SUBMIT_BUILD.handler, "").await;
        assert!(died.is_err(), "{died:?}");
        let taken = after + BILLS / 2;
        self.app
            .execute(&format!(
                "INSERT INTO fi_resident_income_payment_bill_lock
                   (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
                 VALUES ('S{taken}:202609', 'ACTIVE', 1, 'S{taken}', '202609')"
            ))
            .await;
        self.app.pass_minutes(11);
        self.recorder.take();
        self.round("S03 in conflict", SUBMIT_BUILD.handler).await;
        self.round("S06 of a failed submission", LOCK_RELEASE.handler).await;
    }

    async fn cancellation(&mut self, order: OrderId) {
        let db = &self.recorded.db;
        order_cancel::cancel(db, &Kicker::none(), order, CREATOR, "given up")
            .await
            .expect("a cancellation");
        self.keep("cancelling an order");
        // Nobody listens where the review centre is: S06 releases the locks and fails at the plan.
        let round = self.recorded.round(LOCK_RELEASE.handler).await;
        assert_eq!((round.claimed, round.failed), (1, 1), "{round:?}");
        self.keep("S06 of a cancelled order");
        let selector = format!(r#"{{"taskCodes":["OLD:1","OLD:2"],"businessKey":"OLD:{ROWS}"}}"#);
        self.recorded.round_with(LOCK_ACTIVATE.handler, &selector).await;
        self.keep("manual selection");
    }

    async fn pages(&mut self, order: OrderId) {
        let db = &self.recorded.db;
        for (status, creator) in
            [(None, None), (Some(20), None), (None, Some(CREATOR)), (Some(20), Some(CREATOR))]
        {
            let query = OrderQuery { status, creator, ..OrderQuery::default() };
            order_view::list(db, &query).await.expect("orders");
        }
        self.keep("the order list");
        order_view::one(db, order).await.expect("the order");
        self.keep("one order");
        let month = BillMonth::stored("202609");
        let station = format!("S{}", ROWS + 7);
        order_view::bill(db, &station, &month, &Tolerance::default()).await.expect("the bill");
        self.keep("one bill");
        inbox::of_user(db, UserId(51), None, 50).await.expect("the inbox");
        inbox::of_everybody(db, None, 50).await.expect("the inbox");
        self.keep("the inbox");
    }
}
