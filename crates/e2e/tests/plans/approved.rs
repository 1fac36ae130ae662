//! From the reviewers' decision to the money: an approval of its own, walked to PAID.

use std::sync::Arc;

use counterfoil_e2e::{CREATOR, Fixture};
use counterfoil_payment::kinds::{
    BILL_SNAPSHOT, LOCK_ACTIVATE, REVIEW_CALLBACK, REVIEW_PROGRESS, SIDE_EFFECT, STATUS_REFRESH,
    SUBMIT_BUILD,
};
use counterfoil_payment::order_view;
use counterfoil_payment::review_callback::{Callback, Conclusion, accept};
use counterfoil_payment::session::submit;
use counterfoil_payment::side_effect::{Rebuild, SideEffect};
use counterfoil_payment::treasury::batch_creation::BatchCreation;
use counterfoil_payment::treasury::data_fix::{self, PayeeFix};
use counterfoil_payment::treasury::guard::DatabaseOnly;
use counterfoil_payment::treasury::notice::{PUSH_BATCH_NOTIFY, PushBatchNotify};
use counterfoil_payment::treasury::port::{Channels, ReportEntry, Reported, ResultReport};
use counterfoil_payment::treasury::push::{PUSH_RETRY, PushRetry};
use counterfoil_payment::treasury::{result, view};
use counterfoil_protocol::{OrderId, PlanId};
use counterfoil_remote::iso20022::{Characters, OutboxChannel};
use counterfoil_remote::{EnvironmentAndFiles, HttpPartnerInbox, MAX_PARTNER_TIME};
use counterfoil_task::{Engine, Kicker};

use super::Walk;
use crate::data::ROWS;

/// Bills of the approved order: three batches.
const BILLS: i64 = 2_500;
/// After those of the other paths.
const FIRST: i64 = ROWS + 7_000;
/// Bills that the bank refuses.
const REFUSED: usize = 100;
/// The strategy of its batches.
const STRATEGY: &str = "iso20022-pain001";

impl Walk<'_> {
    /// Some lines unqualified, with locks left on a few of them as historical data has them.
    pub(super) async fn approval(&mut self) {
        let order = self.under_review().await;
        self.decision(order).await;
        self.turns("S08", REVIEW_PROGRESS.handler).await;
        self.turns("S12", STATUS_REFRESH.handler).await;
        self.rest_of("S13", BILL_SNAPSHOT.handler).await;
        self.rest_of("S09", SIDE_EFFECT.handler).await;
        self.rest_of("pushing by notice", PUSH_BATCH_NOTIFY.handler).await;
        self.rest_of("pushing by schedule", PUSH_RETRY.handler).await;
        self.result().await;
        self.rest_of("pushing what was put right", PUSH_RETRY.handler).await;
        self.turns("S12 of payments", STATUS_REFRESH.handler).await;
        order_view::one(&self.recorded.db, order).await.expect("the order");
        self.keep("one approved order");
    }

    async fn under_review(&mut self) -> OrderId {
        let session = Fixture(self.app).new_session(&[]).await;
        self.select(session, FIRST, BILLS).await;
        self.app
            .execute(&format!(
                "UPDATE selection_session_item
                 SET line_type = 20, unqualified_reason = '农户租金异常', pay_amount = 0
                 WHERE session_id = {session} AND diff_id % 5 = 1"
            ))
            .await;
        let submitted = submit(&self.app.db, &Kicker::none(), session, CREATOR).await;
        let order = submitted.expect("a submission").order;
        for handler in [SUBMIT_BUILD.handler, LOCK_ACTIVATE.handler] {
            let round = self.app.round(handler).await;
            assert_eq!((round.succeeded, round.failed), (1, 0), "{round:?}");
        }
        self.app
            .execute(&format!(
                "UPDATE fi_resident_income_payment_order
                 SET review_plan_id = {order}, business_status = 'UNDER_REVIEW',
                     audit_plan_status = 'CREATED' WHERE id = {order};
INSERT INTO fi_resident_income_payment_order_approval_instance
  (payment_order_id, data_version, approval_attempt, review_plan_id, submit_round)
 VALUES ({order}, 1, 1, {order}, 1);
INSERT INTO fi_resident_income_payment_bill_lock
  (lock_key, lock_status, payment_order_id, order_bill_id, data_version, submit_round, station_id,
   bill_yearmonth)
 SELECT station_id || ':' || bill_yearmonth, 'ACTIVE', payment_order_id, id, 1, 1, station_id,
   bill_yearmonth
 FROM fi_resident_income_payment_order_bill
 WHERE payment_order_id = {order} AND line_type = 20 AND diff_id % 10 = 1"
            ))
            .await;
        self.recorder.take();
        order
    }

    async fn decision(&mut self, order: OrderId) {
        let callback = Callback {
            order,
            plan: PlanId(order.0),
            conclusion: Conclusion::Pass,
            remark: None,
            time: None,
            data_version: None,
            attempt: None,
            round: None,
            evidence: None,
        };
        accept(&self.recorded.db, &Kicker::none(), &callback).await.expect("an acceptance");
        self.keep("accepting a decision");
        let round = self.engine().round(REVIEW_CALLBACK.handler, "").await.expect("a round");
        assert_eq!((round.handed_over, round.failed), (1, 0), "{round:?}");
        self.keep("S07");
    }

    /// All there is to do, in rounds of a few turns.
    async fn turns(&mut self, name: &'static str, handler: &str) {
        let engine = self.engine();
        for _ in 0..100 {
            let round = engine.round(handler, r#"{"maxTaskCount":20}"#).await.expect("a round");
            assert_eq!(round.failed, 0, "{name}: {round:?}");
            if round.selected == 0 {
                self.keep(name);
                return;
            }
        }
        panic!("{name} does not come to an end");
    }

    /// One round, whatever it comes to: a partner without keys is refused.
    async fn rest_of(&mut self, name: &'static str, handler: &str) {
        let round = self.engine().round(handler, "").await.expect("a round");
        assert!(round.succeeded > 0 || name == "pushing by schedule", "{name}: {round:?}");
        self.keep(name);
    }

    /// The bank pays most and refuses some; one of those is put right.
    async fn result(&mut self) {
        let newest = "SELECT message_id FROM fi_resident_income_payment_push
            WHERE id = (SELECT MAX(id) FROM fi_resident_income_payment_push)";
        let references = "SELECT end_to_end_id FROM fi_resident_income_payment_push_item
            WHERE push_id = (SELECT MAX(id) FROM fi_resident_income_payment_push) ORDER BY id";
        let said = |at| if at < REFUSED { Reported::Rejected } else { Reported::Paid };
        let entry = |(at, end_to_end_id)| ReportEntry {
            end_to_end_id,
            status: said(at),
            amount: None,
            reason_code: Some("AC04".into()),
            reason: Some("closed account".into()),
        };
        let references = self.app.lines(references).await;
        assert_eq!(references.len() as i64, BILLS * 4 / 5);
        let report = ResultReport {
            report_id: "R-1".into(),
            message_id: self.app.value(newest).await,
            group: None,
            entries: references.into_iter().enumerate().map(entry).collect(),
        };
        let db = &self.recorded.db;
        let applied = result::import(db, &report, b"R-1", CREATOR).await.expect("a result");
        assert_eq!((applied.changed, applied.refused), (BILLS * 4 / 5, 0), "{applied:?}");
        self.keep("a bank's report");
        let query = view::BatchQuery { order: None, ..view::BatchQuery::default() };
        view::list(db, &query).await.expect("batches");
        let refused = "SELECT MIN(id) AS id FROM fi_resident_income_payment_push_batch_detail
            WHERE pay_status = 'PAY_FAILED'";
        let refused: i64 = self.app.value(refused).await.parse().expect("an id");
        let right = PayeeFix { account: Some("ACC-NEW".into()), ..PayeeFix::default() };
        let fixed = data_fix::fix(db, refused, &right, "a new account", CREATOR).await;
        let batch = fixed.expect("a fix").push_batch_id;
        view::show(db, &batch.to_string()).await.expect("the batch");
        self.keep("putting a payee right, and its batch");
    }

    fn engine(&self) -> Engine {
        // Another test of this process may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = std::env::temp_dir().join(format!("plans-{}", std::process::id()));
        let channel = OutboxChannel::new(folder, Characters::Printable);
        let channels = Channels::default().with(STRATEGY, Arc::new(channel));
        let inbox = HttpPartnerInbox::new(Arc::new(EnvironmentAndFiles), MAX_PARTNER_TIME);
        let inbox = Arc::new(inbox.expect("a client"));
        let creation = BatchCreation::new(STRATEGY, Arc::new(DatabaseOnly));
        let effects = SideEffect::new(inbox).with_base_data(Arc::new(creation));
        self.recorded
            .engine()
            .with(effects)
            .with(PushBatchNotify::in_process(channels.clone()))
            .with_turns(PushRetry::new(channels))
            .with_turns(Rebuild::default())
    }
}
