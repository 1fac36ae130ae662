//! `/api/payment/…` over real sockets: what programs may read and do, as whom, and what not.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use counterfoil_db::migrate;
use counterfoil_e2e::{Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_protocol::signing::{Header, RequestParts, SigningKey, Terms, sign_request};
use counterfoil_server::config::Config;
use counterfoil_server::serve::{Role, Service};
use counterfoil_server::signing_config::{AppConfig, AppKeyConfig};
use counterfoil_server::wiring;
use serde_json::{Value, json};

/// Base64 of 32 bytes: the programs' private keys.
const ERP: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
const STRANGER: &str = "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=";

/// A service whose interface lets the program `erp` act as user 7; `stranger` is known and named
/// nowhere.
struct House {
    app: TestApp,
    service: Service,
    nonce: AtomicU32,
}

fn key(text: &str) -> SigningKey {
    SigningKey::read("ed25519", text).unwrap()
}

impl House {
    async fn open(app: TestApp) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let mut config = Config::default();
        config.server.listen = "127.0.0.1:0".into();
        for (app, private) in [("erp", ERP), ("stranger", STRANGER)] {
            let public = key(private).public().unwrap();
            let keys = vec![AppKeyConfig { alg: "ed25519".into(), key: public }];
            config.apps.insert(app.into(), AppConfig { keys });
        }
        config.payment.api_apps.insert("erp".into(), 7);
        let roles = BTreeSet::from([Role::Api]);
        let service = Service::start(&app.db, &config, &roles).await.expect("a service");
        House { app, service, nonce: AtomicU32::new(0) }
    }

    async fn asked(
        &self,
        app: (&str, &str),
        method: reqwest::Method,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> (u16, Value) {
        let url = format!("http://{}{path}", self.service.address);
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let mut headers: Vec<Header> = vec![kind];
        let parts = RequestParts {
            method: method.as_str(),
            target_uri: &url,
            headers: &headers,
            body: body.as_bytes(),
        };
        let nonce = format!("n{}", self.nonce.fetch_add(1, Ordering::Relaxed));
        let (now, terms) = (self.app.now(), Terms::default());
        let added = sign_request(parts, app.0, &key(app.1), &nonce, now, terms).unwrap();
        headers.extend(added);
        let mut request = reqwest::Client::new().request(method, &url).body(body);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.asked(("erp", ERP), reqwest::Method::GET, path, None, &[]).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.asked(("erp", ERP), reqwest::Method::POST, path, Some(body), &[]).await
    }

    async fn keyed(&self, key: &str, body: &Value) -> (u16, Value) {
        let (method, more) = (reqwest::Method::POST, [("idempotency-key", key)]);
        self.asked(("erp", ERP), method, "/api/payment/sessions", Some(body), &more).await
    }

    /// An order of three bills, published, through the interface alone.
    async fn published(&self) -> String {
        Fixture(&self.app).records(3).await;
        let (status, opened) = self.post("/api/payment/sessions", &json!({})).await;
        assert_eq!((status, &opened["mode"]), (201, &json!("NEW")), "{opened}");
        let session = format!("/api/payment/sessions/{}", opened["sessionId"]);
        let month = json!({ "billYearmonth": "202609" });
        let (status, added) = self.post(&format!("{session}/bills"), &month).await;
        assert_eq!((status, &added["unselectableCount"]), (200, &json!(0)), "{added}");
        let (status, done) = self.post(&format!("{session}/submission"), &json!({})).await;
        assert_eq!(status, 202, "{done}");
        for kind in [SUBMIT_BUILD, LOCK_ACTIVATE] {
            assert!(self.app.round(kind.handler).await.is_success());
        }
        done["paymentOrderId"].to_string()
    }

    async fn close(self) {
        self.service.stop().await;
    }
}

fn fields(refused: &Value) -> Vec<&str> {
    let faults = refused["errors"].as_array().into_iter().flatten();
    faults.filter_map(|fault| fault["field"].as_str()).collect()
}

on_every_database! {
    async fn an_order_goes_from_its_session_to_its_cancellation_over_http(app: TestApp) {
        let house = House::open(app).await;
        let order = house.published().await;
        let (status, view) = house.get(&format!("/api/payment/orders/{order}")).await;
        assert_eq!((status, &view["order"]["statusName"]), (200, &json!("UNDER_REVIEW")), "{view}");
        assert_eq!(view["success"]["handedOver"]["answer"], "yes");
        assert_eq!(view["success"]["mainBusinessEffective"]["answer"], "not_yet");
        let path = format!("/api/payment/orders/{order}/timeline");
        assert_eq!(house.get(&path).await.0, 200);
        let (status, bill) = house.get("/api/payment/bills/S1/202609").await;
        assert_eq!((status, &bill["canBePaidAgain"]["verdict"]), (200, &json!("no")), "{bill}");
        let (status, batches) = house.get("/api/payment/push-batches").await;
        assert_eq!((status, &batches["batches"]), (200, &json!([])));
        let cancellation = format!("/api/payment/orders/{order}/cancellation");
        let (status, refused) = house.post(&cancellation, &json!({ "reason": " " })).await;
        assert_eq!((status, fields(&refused)), (422, vec!["reason"]));
        let (status, done) = house.post(&cancellation, &json!({ "reason": "twice" })).await;
        assert_eq!((status, &done["status"]), (200, &json!(90)), "{done}");
        let who = "SELECT create_user_id FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(who).await, "7");
        house.close().await;
    }

    async fn lists_are_walked_by_opaque_cursors(app: TestApp) {
        let house = House::open(app).await;
        let order = house.published().await;
        let path = format!("/api/payment/orders/{order}/lines?limit=2");
        let (_, first) = house.get(&path).await;
        assert_eq!(first["lines"].as_array().map(Vec::len), Some(2), "{first}");
        let cursor = first["nextCursor"].as_str().expect("a next page");
        let (_, second) = house.get(&format!("{path}&cursor={cursor}")).await;
        assert_eq!(second["lines"].as_array().map(Vec::len), Some(1), "{second}");
        assert_eq!(second["nextCursor"], Value::Null);
        let (status, refused) = house.get(&format!("{path}&cursor=7&more=1")).await;
        assert_eq!((status, fields(&refused)), (422, vec!["cursor", "more"]));
        let (status, page) = house.get("/api/payment/orders?status=UNDER_REVIEW").await;
        assert_eq!((status, page["orders"].as_array().map(Vec::len)), (200, Some(1)), "{page}");
        let (status, refused) = house.get("/api/payment/orders?status=LOST").await;
        assert_eq!((status, fields(&refused)), (422, vec!["status"]));
        house.close().await;
    }

    async fn a_task_that_failed_is_found_planned_and_run_again_with_a_reason(app: TestApp) {
        let house = House::open(app).await;
        house.published().await;
        house.app.execute("UPDATE fi_async_task SET task_status = 3, retry_count = 3,
            next_execute_time = NULL, error_message = 'a full disk' WHERE task_status = 0").await;
        let (status, page) = house.get("/api/payment/tasks?status=FAILED&limit=1").await;
        let task = &page["tasks"][0];
        assert_eq!((status, &task["errorMessage"]), (200, &json!("a full disk")), "{page}");
        let path = format!("/api/payment/tasks/{}", task["taskCode"].as_str().unwrap());
        let (_, one) = house.get(&path).await;
        assert_eq!((&one["status"], &one["retryCount"]), (&json!("FAILED"), &json!(3)), "{one}");
        let (status, planned) = house.get(&format!("{path}/rerun-plan")).await;
        assert_eq!((status, &planned["plan"]["willRun"]), (200, &json!(true)), "{planned}");
        let (status, refused) = house.post(&format!("{path}/reruns"), &json!({})).await;
        assert_eq!((status, fields(&refused)), (422, vec!["reason", "reason"]), "{refused}");
        let reason = json!({ "reason": "the disk has room again" });
        let (status, done) = house.post(&format!("{path}/reruns"), &reason).await;
        assert_eq!((status, &done["summary"]["claimed"]), (200, &json!(1)), "{done}");
        let (_, one) = house.get(&path).await;
        let rerun = one["trace"].as_array().unwrap().iter().find(|row| row["action"] == "RERUN");
        assert_eq!(rerun.expect("a trace")["operatorUserId"], json!(7), "{one}");
        house.close().await;
    }

    async fn what_is_done_or_given_up_is_not_run_and_the_answer_says_why(app: TestApp) {
        let house = House::open(app).await;
        house.published().await;
        let (_, page) = house.get("/api/payment/tasks?status=success").await;
        let path = format!("/api/payment/tasks/{}", page["tasks"][0]["taskCode"].as_str().unwrap());
        let reason = json!({ "reason": "once more" });
        for door in ["reruns", "cancellation"] {
            let (status, refused) = house.post(&format!("{path}/{door}"), &reason).await;
            assert_eq!((status, &refused["code"]), (409, &json!("task-state")), "{refused}");
        }
        let (_, page) = house.get("/api/payment/tasks?status=PENDING").await;
        let path = format!("/api/payment/tasks/{}", page["tasks"][0]["taskCode"].as_str().unwrap());
        let (status, done) = house.post(&format!("{path}/cancellation"), &reason).await;
        assert_eq!((status, &done["status"]), (200, &json!("CANCELLED")), "{done}");
        assert_eq!(house.get("/api/payment/tasks/no-such-task").await.0, 404);
        house.close().await;
    }

    async fn a_round_is_run_and_its_wrong_parameter_refused(app: TestApp) {
        let house = House::open(app).await;
        house.published().await;
        let (_, listed) = house.get("/api/payment/handlers").await;
        let known = listed["handlers"].as_array().unwrap();
        assert!(known.iter().any(|kind| kind["handler"] == LOCK_ACTIVATE.handler), "{listed}");
        let rounds = format!("/api/payment/handlers/{}/rounds", LOCK_ACTIVATE.handler);
        let (status, summary) = house.post(&rounds, &json!({})).await;
        assert_eq!((status, &summary["failed"]), (200, &json!(0)), "{summary}");
        let (status, refused) = house.post(&rounds, &json!({ "colour": "red" })).await;
        assert_eq!((status, &refused["code"]), (422, &json!("invalid-parameter")), "{refused}");
        let (status, refused) = house.post("/api/payment/handlers/none/rounds", &json!({})).await;
        assert_eq!((status, &refused["code"]), (404, &json!("unknown-handler")), "{refused}");
        let (status, rules) = house.get("/api/payment/rules").await;
        assert_eq!((status, &rules["broken"]), (200, &json!([])), "{rules}");
        house.close().await;
    }

    async fn a_report_that_is_none_and_a_batch_that_is_not_there_are_refused_by_name(app: TestApp) {
        let house = House::open(app).await;
        let table = [
            ("/api/payment/payment-reports", json!({}), 422, "result-report-unreadable"),
            ("/api/payment/push-batches/404/pushes", json!({}), 404, "push-batch-not-found"),
            ("/api/payment/push-details/404/fixes", json!({ "reason": "moved" }), 404,
                "push-detail-not-found"),
            ("/api/payment/deliveries/404/redeliveries", json!({ "reason": "lost" }), 404,
                "delivery-not-found"),
        ];
        for (path, body, expected, code) in table {
            let (status, refused) = house.post(path, &body).await;
            assert_eq!((status, &refused["code"]), (expected, &json!(code)), "{path} {refused}");
        }
        let (status, page) = house.get("/api/payment/deliveries?status=UNKNOWN").await;
        assert_eq!((status, &page["deliveries"]), (200, &json!([])), "{page}");
        house.close().await;
    }

    async fn one_key_opens_one_session_however_often_and_whoever_races(app: TestApp) {
        let house = House::open(app).await;
        let new = json!({});
        let once = || house.keyed("k-1", &new);
        let (a, b, c, d) = tokio::join!(once(), once(), once(), once());
        let answers = [a, b, c, d];
        let created = answers.iter().filter(|(status, _)| *status == 201).count();
        assert_eq!(created, 1, "{answers:?}");
        assert!(answers.iter().all(|(_, answer)| answer == &answers[0].1), "{answers:?}");
        assert_eq!(house.app.value("SELECT COUNT(*) AS n FROM selection_session").await, "1");
        let order = house.published().await;
        let (status, refused) = house.keyed("k-1", &json!({ "revise": order })).await;
        assert_eq!((status, &refused["code"]), (422, &json!("idempotency-key-reused")));
        let (status, refused) = house.keyed("a key", &json!({})).await;
        assert_eq!((status, fields(&refused)), (422, vec!["Idempotency-Key"]), "{refused}");
        let (status, revision) = house.keyed("k-2", &json!({ "revise": order })).await;
        assert_eq!((status, &revision["mode"]), (201, &json!("REVISE")), "{revision}");
        assert_eq!(house.keyed("k-2", &json!({ "revise": order })).await, (200, revision));
        house.close().await;
    }

    async fn a_program_that_acts_for_nobody_is_let_in_nowhere(app: TestApp) {
        let house = House::open(app).await;
        let order = house.published().await;
        let stranger = ("stranger", STRANGER);
        let cancellation = format!("/api/payment/orders/{order}/cancellation");
        let table = [
            (reqwest::Method::GET, "/api/payment/orders".to_owned(), None),
            (reqwest::Method::GET, format!("/api/payment/orders/{order}"), None),
            (reqwest::Method::POST, "/api/payment/sessions".to_owned(), Some(json!({}))),
            (reqwest::Method::POST, cancellation, Some(json!({ "reason": "mine" }))),
        ];
        for (method, path, body) in table {
            let (status, refused) = house.asked(stranger, method, &path, body.as_ref(), &[]).await;
            assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{path}");
        }
        let unsigned = format!("http://{}/api/payment/orders", house.service.address);
        assert_eq!(reqwest::get(unsigned).await.unwrap().status().as_u16(), 401);
        let status = "SELECT status FROM fi_resident_income_payment_order";
        assert_eq!(house.app.value(status).await, "20");
        house.close().await;
    }

    async fn what_uses_the_refreshed_state_waits_for_it_and_what_shows_the_stages_does_not(
        app: TestApp
    ) {
        let house = House::open(app).await;
        let order = house.published().await;
        house.app.execute(&format!(
            "UPDATE fi_resident_income_payment_order
             SET status = 40, payment_type = 'OFFLINE' WHERE id = {order};
             \nINSERT INTO fi_resident_income_payment_review_callback_progress
               (payment_order_id, data_version, review_plan_id, submit_round, approval_attempt,
                phase, phase_status, main_task_status, refresh_ready)
             VALUES ({order}, 1, 1, 1, 1, 'REFRESH_SHARD', 'INIT', 'SUCCESS', 0)"
        )).await;
        let paid = json!({ "evidence": "receipt 1" });
        let record = format!("/api/payment/orders/{order}/payment-record");
        let refused = [
            house.get("/api/payment/bills/S1/202609").await,
            house.post(&record, &paid).await,
        ];
        for (status, refused) in refused {
            let code = &json!("review-callback-refresh-pending");
            assert_eq!((status, &refused["code"]), (409, code), "{refused}");
        }
        let (status, view) = house.get(&format!("/api/payment/orders/{order}")).await;
        assert_eq!((status, &view["success"]["refreshDone"]["answer"]), (200, &json!("not_yet")));
        house.app.execute("UPDATE fi_resident_income_payment_review_callback_progress
            SET refresh_ready = 1, phase = 'DONE', phase_status = 'SUCCESS'").await;
        assert_eq!(house.get("/api/payment/bills/S1/202609").await.0, 200);
        assert_eq!(house.post(&record, &paid).await.0, 200);
        house.close().await;
    }

    async fn what_is_wrong_is_named_by_its_field_and_what_is_unknown_by_its_name(app: TestApp) {
        let house = House::open(app).await;
        let (_, opened) = house.post("/api/payment/sessions", &json!({})).await;
        let bills = format!("/api/payment/sessions/{}/bills", opened["sessionId"]);
        let table = [
            (json!({}), vec!["bills"]),
            (json!({ "billYearmonth": "2026-9" }), vec!["billYearmonth", "bills"]),
            (json!({ "bills": [{ "stationId": "S1" }] }), vec!["bills[0]"]),
            (json!({ "bills": [], "billYearmonth": "202609" }), vec!["bills"]),
            (json!({ "bills": 3, "colour": "red" }), vec!["bills", "bills", "colour"]),
        ];
        for (body, expected) in table {
            let (status, refused) = house.post(&bills, &body).await;
            assert_eq!((status, fields(&refused)), (422, expected), "{body} {refused}");
        }
        let table = [
            ("/api/payment/orders/404", "order-not-found"),
            ("/api/payment/sessions/404", "session-not-found"),
            ("/api/payment/push-batches/404", "push-batch-not-found"),
            ("/api/payment/bills/S404/202609", "bill-not-found"),
        ];
        for (path, code) in table {
            let (status, refused) = house.get(path).await;
            assert_eq!((status, &refused["code"]), (404, &json!(code)), "{path}");
        }
        let delete = reqwest::Method::DELETE;
        let path = "/api/payment/orders";
        let (status, refused) = house.asked(("erp", ERP), delete, path, None, &[]).await;
        assert_eq!((status, &refused["code"]), (405, &json!("method-not-allowed")));
        house.close().await;
    }
}
