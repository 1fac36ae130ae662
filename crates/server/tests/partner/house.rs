//! Approved orders as FINALIZE leaves them, and partners who listen behind real sockets.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use counterfoil_db::Read;
use counterfoil_e2e::TestApp;
use counterfoil_payment::kinds::SIDE_EFFECT;
use counterfoil_payment::partner_push::{self, KeyReference, PartnerInbox};
use counterfoil_payment::side_effect::{Rebuild, SeedFacts, SideEffect, seeds};
use counterfoil_protocol::ProgressId;
use counterfoil_remote::{HttpPartnerInbox, Secrets};
use counterfoil_server::api::partner::{PartnerSimulator, Trouble};
use counterfoil_task::{Engine, EngineSettings, Kicker, Subject, Summary, accept_or_reuse};
use tokio::net::TcpListener;

pub const RENT_ABNORMAL: &str = "农户租金异常";
/// Longer than any answer takes.
pub const LONG: Duration = Duration::from_secs(30);
/// Short enough not to be felt, for a partner that never answers.
pub const SHORT: Duration = Duration::from_millis(400);

/// Secrets by reference: `sign:NAME`, `seal:NAME` of 32 bytes and `sm4:NAME` of 16; the first
/// letter of the name makes the difference.
#[derive(Debug)]
pub struct Vault;

impl Secrets for Vault {
    fn read(&self, reference: &str) -> Result<String, String> {
        let (what, name) = reference.split_once(':').ok_or("no reference")?;
        let letter = name.chars().next().ok_or("no name")?;
        let text = |count: usize| letter.to_string().repeat(count);
        match what {
            "sign" => Ok(format!("whsec_{}", text(32))),
            "seal" => Ok(format!("{}A", text(42))),
            "sm4" => Ok(format!("{}A", text(21))),
            _ => Err("nothing is kept there".into()),
        }
    }
}

/// A key whose secrets differ by the first letter of its name.
pub fn key(name: &str, suite: &str) -> KeyReference {
    let seal = if suite == "gm" { "sm4" } else { "seal" };
    KeyReference {
        key_id: name.into(),
        suite: suite.into(),
        signing: format!("sign:{name}"),
        encryption: format!("{seal}:{name}"),
    }
}

/// The app with its partners.
#[derive(Clone)]
pub struct House {
    pub app: TestApp,
    pub partners: PartnerSimulator,
    pub address: String,
}

impl House {
    pub async fn build(app: &TestApp) -> House {
        let partners = PartnerSimulator::new(app.db.clone(), Arc::new(Vault));
        House::with(app, partners).await
    }

    pub async fn with(app: &TestApp, partners: PartnerSimulator) -> House {
        // The second test of a process finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let router: Router = partners.clone().router(address);
        tokio::spawn(async move { axum::serve(listener, router).await });
        House { app: app.clone(), partners, address: format!("http://{address}") }
    }

    /// Order, progress and partner `n`: two payable lines and an unqualified one, its push seeded.
    pub async fn approved(&self, n: i64, policy: &str) {
        self.partner(n, policy).await;
        self.order(n, 2, 1).await;
        let lines = format!(
            "INSERT INTO fi_resident_income_payment_order_bill
               (id, payment_order_id, data_version, submit_round, line_type, line_status,
                station_id, bill_yearmonth, partner_id, pay_amount, unqualified_reason)
             VALUES ({n}01, {n}, 1, 1, 10, 20, 'S1', '202609', {n}, 100, NULL),
               ({n}02, {n}, 1, 1, 10, 20, 'S2', '202609', {n}, 200, NULL),
               ({n}03, {n}, 1, 1, 20, 50, 'S3', '202609', {n}, 0, '{RENT_ABNORMAL}')"
        );
        self.app.execute(&lines).await;
        self.seed(n).await;
    }

    /// A partner with one key, who listens here.
    pub async fn partner(&self, n: i64, policy: &str) {
        let address = &self.address;
        self.app
            .execute(&format!(
                "INSERT INTO sys_partner (id, name, partner_no, retry_policy, endpoint, key_id)
                 VALUES ({n}, 'Partner {n}', 'P{n}', '{policy}',
                   '{address}/partner/{n}/review-results', 'k');\n
                 INSERT INTO partner_key (partner_id, key_id, signing_secret_ref,
                   encryption_key_ref) VALUES ({n}, 'k', 'sign:k', 'seal:k')"
            ))
            .await;
    }

    /// An order and its finalized progress, without lines.
    pub async fn order(&self, n: i64, payable: i64, unqualified: i64) {
        self.app
            .execute(&format!(
                "INSERT INTO fi_resident_income_payment_order
                   (id, order_no, status, current_publish_version, submit_round, review_plan_id,
                    payment_type, payable_count, unqualified_count, create_user_id)
                 VALUES ({n}, 'PO-{n}', 40, 1, 1, 9, 'OFFLINE', {payable}, {unqualified}, 7);\n
                 INSERT INTO fi_resident_income_payment_review_callback_progress
                   (id, payment_order_id, data_version, review_plan_id, submit_round,
                    approval_attempt, phase, phase_status, main_task_status, payable_count,
                    unqualified_count, total_count, finalize_time)
                 VALUES ({n}, {n}, 1, 9, 1, 1, 'LOCK_RELEASE', 'INIT', 'SUCCESS', {payable},
                   {unqualified}, {payable} + {unqualified}, '2026-09-08 01:00:00')"
            ))
            .await;
    }

    /// Accepts the push of progress `n`, as FINALIZE does.
    pub async fn seed(&self, n: i64) {
        let facts = SeedFacts { payable_count: 2, unqualified_count: 1, is_treasury: false };
        let mut tx = self.app.db.begin().await.expect("a transaction");
        for seed in seeds(ProgressId(n), facts, &Subject::none(), None) {
            accept_or_reuse(&mut tx, &seed, &Kicker::none()).await.expect("accepted");
        }
        tx.commit("test").await.expect("a commit");
    }

    /// The inbox under test.
    pub fn inbox(max_time: Duration) -> Arc<dyn PartnerInbox> {
        Arc::new(HttpPartnerInbox::new(Arc::new(Vault), max_time).expect("a client"))
    }

    pub fn engine(app: &TestApp, inbox: Arc<dyn PartnerInbox>) -> Engine {
        Engine::new(app.db.clone(), EngineSettings::default())
            .with(SideEffect::new(inbox))
            .with_turns(Rebuild::default())
            .with_rules(partner_push::RULES)
    }

    /// An automatic round of S09.
    pub async fn round(&self) -> Summary {
        self.round_within(LONG).await
    }

    pub async fn round_within(&self, max_time: Duration) -> Summary {
        let engine = House::engine(&self.app, House::inbox(max_time));
        let summary = engine.round(SIDE_EFFECT.handler, "").await.expect("a round");
        assert_eq!(engine.breaches(), 0, "rules hold after every round");
        summary
    }

    /// Runs the push of progress `n` again, as a person does.
    pub async fn rerun(&self, n: i64) -> Summary {
        let engine = House::engine(&self.app, House::inbox(LONG));
        let parameter =
            format!(r#"{{"businessKey":"SIDE_EFFECT:{n}:PARTNER_BILL_REVIEW_RESULT_PUSH"}}"#);
        engine.round(SIDE_EFFECT.handler, &parameter).await.expect("a round")
    }

    pub fn trouble(&self, trouble: Trouble) {
        self.partners.set_trouble(Some(trouble), None);
    }

    pub fn well_again(&self) {
        self.partners.set_trouble(None, None);
    }

    /// `status|attempts` of the chunks of order `n`.
    pub async fn chunks(&self, n: i64) -> String {
        let query = format!(
            "SELECT status, attempt_count FROM fi_resident_income_payment_external_log
             WHERE payment_order_id = {n} ORDER BY id"
        );
        self.app.lines(&query).await.join(" ")
    }

    /// `status|failures` of the push of progress `n`.
    pub async fn task(&self, n: i64) -> String {
        let query = format!(
            "SELECT task_status, retry_count FROM fi_async_task
             WHERE business_key = 'SIDE_EFFECT:{n}:PARTNER_BILL_REVIEW_RESULT_PUSH'"
        );
        self.app.value(&query).await
    }

    pub async fn message(&self, n: i64) -> String {
        let query = format!(
            "SELECT error_message FROM fi_async_task
             WHERE business_key = 'SIDE_EFFECT:{n}:PARTNER_BILL_REVIEW_RESULT_PUSH'"
        );
        self.app.value(&query).await
    }

    /// How often partner `n` got each of its messages.
    pub async fn received(&self, n: i64) -> String {
        let query = format!(
            "SELECT received_count FROM partner_received WHERE partner_id = {n} ORDER BY id"
        );
        self.app.lines(&query).await.join(" ")
    }

    /// The id of the only chunk of order `n`.
    pub async fn delivery(&self, n: i64) -> i64 {
        let query = format!(
            "SELECT id FROM fi_resident_income_payment_external_log WHERE payment_order_id = {n}"
        );
        self.app.db.count(counterfoil_db::Query::built(query)).await.expect("a delivery")
    }

    /// Due again after a counted failure, stale after a crash.
    pub fn later(&self) {
        self.app.pass_minutes(25);
    }
}
