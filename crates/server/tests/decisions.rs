//! From the reviewers' last word to an effective order, through real sockets and real signatures;
//! and the proof pack of what came of it.

use std::sync::Arc;

use counterfoil_db::migrate;
use counterfoil_e2e::{Bill, CREATOR, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{
    AUDIT_PLAN_CREATE, LOCK_ACTIVATE, REVIEW_CALLBACK, REVIEW_PROGRESS, STATUS_REFRESH,
    SUBMIT_BUILD,
};
use counterfoil_payment::session::submit;
use counterfoil_protocol::signing::{Keyring, SigningKey, Terms, VerifyingKey};
use counterfoil_protocol::{OrderId, PlanId, UserId};
use counterfoil_remote::{SignedAnswer, SignedClient};
use counterfoil_review::decision::{approve, reject};
use counterfoil_review::decision_notice::DECISION_NOTICE;
use counterfoil_server::config::Config;
use counterfoil_server::files::written::Format;
use counterfoil_server::serve::OwnPeers;
use counterfoil_server::{proof_file, wiring};
use counterfoil_task::{Engine, Kicker};
use serde_json::{Value, json};

/// A process with its own review centre and payment.
struct House {
    app: TestApp,
    config: Config,
    peers: OwnPeers,
}

impl House {
    async fn open(app: TestApp) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let mut config = Config::default();
        config.signing.complete(&mut config.apps);
        let peers = OwnPeers::start(&app.db, &config).await.expect("peers");
        House { app, config, peers }
    }

    fn engine(&self) -> Engine {
        wiring::engine(&self.app.db, &self.config, &self.peers.url).expect("an engine")
    }

    async fn round(&self, handler: &str) -> counterfoil_task::Summary {
        self.engine().round(handler, "").await.expect("a round")
    }

    /// A client that signs as `app` with this process's own key, or with another one.
    fn client(&self, app: &str, private: &str) -> SignedClient {
        let key = SigningKey::read("ed25519", private).expect("a key");
        let mut ring = Keyring::new(app, Some(key));
        for (peer, known) in &self.config.apps {
            for key in &known.keys {
                ring.trust(peer, VerifyingKey::read(&key.alg, &key.key).unwrap()).unwrap();
            }
        }
        let (url, terms) = (&self.peers.url, Terms::default());
        SignedClient::new(url, &self.config.signing.app_key, Arc::new(ring), terms).unwrap()
    }

    fn own(&self) -> SignedClient {
        self.client(&self.config.signing.app_key, &self.config.signing.private_key)
    }

    async fn post(&self, client: &SignedClient, body: &Value) -> (u16, Value) {
        let body = serde_json::to_vec(body).unwrap();
        let now = self.app.now();
        match client.post("/api/payment/review-callbacks", body, now).await {
            SignedAnswer::Proved { status, body } => {
                (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
            }
            SignedAnswer::Unknown { message } => panic!("{message}"),
        }
    }

    /// An order that the centre reviews: S03, S04 and S05 have run.
    async fn under_review(&self) -> (OrderId, PlanId) {
        let fixture = Fixture(&self.app);
        fixture.records(3).await;
        self.app.execute(REFERENCES).await;
        let bills = [Bill::payable(1), Bill::payable(2), Bill::unqualified(3, "农户租金异常", 0)];
        let session = fixture.new_session(&bills).await;
        let order = submit(&self.app.db, &Kicker::none(), session, CREATOR).await.unwrap().order;
        for kind in [&SUBMIT_BUILD, &LOCK_ACTIVATE, &AUDIT_PLAN_CREATE] {
            let round = self.round(kind.handler).await;
            assert_eq!((round.succeeded, round.failed), (1, 0), "{round:?}");
        }
        let plan = "SELECT review_plan_id FROM fi_resident_income_payment_order";
        (order, PlanId(self.app.value(plan).await.parse().unwrap()))
    }
}

const REFERENCES: &str = "INSERT INTO sys_project_company (id, name, asset_manager_code)
 VALUES (1, 'Company', 'AM');
INSERT INTO sys_dict (dict_type, dict_key, status) VALUES ('ASSET_MANAGER', 'AM', 1);
UPDATE fi_monthly_income_difference SET project_company_id = 1, contract_rent = 10000,
  actual_rent = 10000;
INSERT INTO fi_customer_account (id, holder_name, account_no, bank_name)
 VALUES (1, 'One', 'ACC-1', 'Bank'), (2, 'Two', 'ACC-2', 'Bank'), (3, 'Three', 'ACC-3', 'Bank');
UPDATE fi_customer_bill SET customer_account_id = id";

const ORDER: &str = "SELECT status, payment_type, push_status
   FROM fi_resident_income_payment_order";

on_every_database! {
    async fn a_signed_decision_is_taken_in_once_and_kept_as_it_came(app: TestApp) {
        let house = House::open(app).await;
        let (order, plan) = house.under_review().await;
        let body = json!({
            "paymentOrderId": order, "reviewPlanId": plan, "reviewPassed": true,
            "reviewRemark": "核对无误", "reviewTime": "2026-09-08T01:00:00Z",
        });
        let own = house.own();
        let (status, answer) = house.post(&own, &body).await;
        assert_eq!((status, &answer["outcome"]), (202, &json!("ACCEPTED")), "{answer}");
        let key = answer["businessKey"].as_str().unwrap_or_default();
        assert_eq!(key, format!("REVIEW_CALLBACK:{order}:{plan}:1:1:1:PASS"));
        let (status, again) = house.post(&own, &body).await;
        assert_eq!((status, &again["outcome"]), (200, &json!("REUSED")), "{again}");
        let evidence = "SELECT COUNT(*) AS found, MAX(signature_verdict) AS verdict
           FROM review_callback_evidence";
        assert_eq!(house.app.value(evidence).await, "1|VERIFIED");
        let mut opposite = body.clone();
        opposite["reviewPassed"] = json!(false);
        let (status, refused) = house.post(&own, &opposite).await;
        assert_eq!((status, &refused["code"]), (409, &json!("review-callback-opposite")));
        let mut unknown = body.clone();
        unknown["paymentOrderId"] = json!(404);
        let (status, refused) = house.post(&own, &unknown).await;
        assert_eq!((status, &refused["code"]), (404, &json!("order-not-found")));
        let mut wrong = body.clone();
        wrong["reviewPassed"] = json!("yes");
        wrong["reviewTime"] = json!("yesterday");
        wrong["more"] = json!(1);
        let (status, refused) = house.post(&own, &wrong).await;
        assert_eq!(status, 422, "{refused}");
        let fields: Vec<&str> = refused["errors"].as_array().into_iter().flatten()
            .filter_map(|fault| fault["field"].as_str()).collect();
        assert_eq!(fields, ["reviewPassed", "reviewTime", "more"], "{refused}");
    }

    async fn who_is_not_believed_or_not_meant_decides_nothing(app: TestApp) {
        let house = House::open(app).await;
        let (order, plan) = house.under_review().await;
        let body = json!({ "paymentOrderId": order, "reviewPlanId": plan, "reviewPassed": true });
        let url = format!("{}/api/payment/review-callbacks", house.peers.url);
        let unsigned = reqwest::Client::new().post(url).json(&body).send().await.unwrap();
        assert_eq!(unsigned.status().as_u16(), 401);
        let stranger = house.client("stranger", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
        assert_eq!(house.post(&stranger, &body).await.0, 401);
        let tasks = "SELECT COUNT(*) FROM fi_async_task
           WHERE task_type = 'RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY'";
        assert_eq!(house.app.value(tasks).await, "0");
    }

    async fn the_last_reviewers_word_reaches_the_order_and_makes_it_effective(app: TestApp) {
        let house = House::open(app).await;
        let (order, plan) = house.under_review().await;
        approve(&house.app.db, plan, UserId(101), "fine").await.unwrap();
        let notices = "SELECT COUNT(*) FROM fi_async_task
           WHERE task_type = 'REVIEW_DECISION_NOTICE'";
        assert_eq!(house.app.value(notices).await, "0", "one node is not the last word");
        approve(&house.app.db, plan, UserId(102), "agreed").await.unwrap();
        assert_eq!(house.app.value(notices).await, "1");
        assert_eq!(house.app.value(ORDER).await, "20|NULL|NULL");
        assert_eq!(house.round(DECISION_NOTICE.handler).await.succeeded, 1);
        assert_eq!(house.round(REVIEW_CALLBACK.handler).await.handed_over, 1);
        assert_eq!(house.app.value(ORDER).await, "20|NULL|NULL", "handed over is not effective");
        let progress = house.round(REVIEW_PROGRESS.handler).await;
        assert_eq!(progress.failed, 0, "{progress:?}");
        assert_eq!(house.app.value(ORDER).await, "40|TREASURY|NOT_PUSHED");
        let ready = "SELECT refresh_ready
           FROM fi_resident_income_payment_review_callback_progress";
        assert_eq!(house.app.value(ready).await, "0", "effective is not refreshed");
        assert_eq!(house.round(STATUS_REFRESH.handler).await.failed, 0);
        assert_eq!(house.app.value(ready).await, "1");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof.json");
        let pack = proof_file::write(&house.config, &house.app.db, order, &path, Format::Json);
        assert!(!pack.await.unwrap().all_agree, "what is not pushed is not confirmed");
        proves_itself(&path);
    }

    async fn a_rejection_is_told_and_leaves_the_order_to_its_creator(app: TestApp) {
        let house = House::open(app).await;
        let (_, plan) = house.under_review().await;
        reject(&house.app.db, plan, UserId(101), "金额不符").await.unwrap();
        assert_eq!(house.round(DECISION_NOTICE.handler).await.succeeded, 1);
        assert_eq!(house.round(REVIEW_CALLBACK.handler).await.succeeded, 1);
        assert_eq!(house.app.value(ORDER).await, "30|NULL|NULL");
    }

    async fn a_decision_that_finds_nobody_is_told_until_somebody_is_there(app: TestApp) {
        let house = House::open(app).await;
        let (_, plan) = house.under_review().await;
        reject(&house.app.db, plan, UserId(101), "").await.unwrap();
        let nowhere = wiring::engine(&house.app.db, &house.config, "http://127.0.0.1:9").unwrap();
        for tries in 1..=5 {
            let round = nowhere.round(DECISION_NOTICE.handler, "").await.unwrap();
            assert_eq!((round.selected, round.failed), (1, 1), "{tries}: {round:?}");
            house.app.pass_minutes(61);
        }
        assert_eq!(house.round(DECISION_NOTICE.handler).await.succeeded, 1);
    }
}

/// The signature is over the canonical form of what the file says.
fn proves_itself(path: &std::path::Path) {
    use base64::Engine as _;
    use ed25519_dalek::Verifier as _;
    let said: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let body = json!({ "pack": said["pack"], "rules": said["rules"] });
    let read = counterfoil_protocol::canon::read(body.to_string().as_bytes(), 64).unwrap();
    let canonical = counterfoil_protocol::canon::canonical(&read).unwrap();
    let base64 = base64::engine::general_purpose::STANDARD;
    let bytes = |name: &str| base64.decode(said["signature"][name].as_str().unwrap()).unwrap();
    let key: [u8; 32] = bytes("publicKey").try_into().unwrap();
    let key = ed25519_dalek::VerifyingKey::from_bytes(&key).unwrap();
    let signature = ed25519_dalek::Signature::from_slice(&bytes("value")).unwrap();
    key.verify(canonical.as_bytes(), &signature).expect("the pack's signature");
    assert!(key.verify(b"another pack", &signature).is_err());
}
