//! A hostile peer at the doors of reconciliation, over real sockets: each gets its code, and
//! nothing changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use counterfoil_db::migrate;
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_protocol::range::spelt;
use counterfoil_protocol::signing::{
    Header, Keyring, RequestParts, SigningKey, Terms, VerifyingKey, sign_request,
};
use counterfoil_reconcile::form_centre::create::{self, Wish, WishScope};
use counterfoil_reconcile::form_centre::turns::{DISPATCH, Dispatching};
use counterfoil_reconcile::form_centre::{CentreSettings, answer, grant, manifest};
use counterfoil_reconcile::service_hall::HallSettings;
use counterfoil_reconcile::service_hall::centre::{Answer, Centre};
use counterfoil_reconcile::wire::{AskedRange, Coordinate, Question};
use counterfoil_remote::{HttpFormCentre, HttpServiceHalls, SignedClient};
use counterfoil_server::api::form_sync::{centre_router, hall_router};
use counterfoil_server::api::signed::{Gate, MAX_BODY_BYTES};
use counterfoil_server::config::Config;
use counterfoil_server::signing_config::{AppConfig, AppKeyConfig};
use counterfoil_server::wiring;
use counterfoil_task::{Engine, EngineSettings};

/// Base64 of 32 bytes: the private keys of the centre, its hall, another consumer, and a stranger.
const CENTRE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const HALL: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
const OTHER: &str = "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=";
const STRANGER: &str = "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ=";

const ORDERS: &str = "/oapi/form-sync/reconcile";

fn key(text: &str) -> SigningKey {
    SigningKey::read("ed25519", text).unwrap()
}

fn at() -> Coordinate {
    Coordinate {
        consumer: "hall".into(),
        school: "school-1".into(),
        form: "form-1".into(),
        answer: None,
    }
}

/// The doors of both sides in one process, and a task of the hall's.
struct House {
    app: TestApp,
    url: String,
    task: String,
}

async fn serve(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

impl House {
    async fn open(app: TestApp) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        migrate(&app.db, &wiring::migrations()).await.unwrap();
        let db = &app.db;
        grant::scope(db, "hall", "school-1", true).await.unwrap();
        grant::set(db, &at(), grant::Rights::ALL).await.unwrap();
        for number in 1..=5 {
            let write = answer::AnswerWrite {
                uuid: Some(spelt(number)),
                form: "form-1".into(),
                school: "school-1".into(),
                version: None,
                values: Some("{\"n\":1}".into()),
                expected: None,
            };
            answer::write(db, &write, "test").await.unwrap();
        }
        let settings = CentreSettings {
            source_app_key: "centre".into(),
            dispatch_enabled: true,
            ..CentreSettings::default()
        };
        let wish = Wish {
            scope: WishScope::Form,
            consumer: "hall".into(),
            school: Some("school-1".into()),
            form: Some("form-1".into()),
            answer: None,
        };
        let task = create::create(db, &settings, &wish, "test").await.unwrap().remove(0).task_id;
        manifest::materialise(db, &settings, &task).await.unwrap();
        let mut config = Config::default();
        config.signing.app_key = "centre".into();
        config.signing.private_key = CENTRE.into();
        for (name, text) in [("hall", HALL), ("other", OTHER)] {
            let key = AppKeyConfig { alg: "ed25519".into(), key: key(text).public().unwrap() };
            config.apps.insert(name.into(), AppConfig { keys: vec![key] });
        }
        let gate = Gate::new(db, &config).unwrap();
        let hall = HallSettings {
            enabled: true,
            app_key: "hall".into(),
            source_app_key: "hall".into(),
            ..HallSettings::default()
        };
        let router = centre_router(db.clone(), settings, gate.clone()).merge(hall_router(
            db.clone(),
            hall,
            gate,
            ORDERS,
        ));
        House { url: serve(router).await, app, task }
    }

    /// Calls as `app`, signed with `secret`; answers the status and the code.
    async fn call(&self, app: &str, secret: &str, path: &str, body: &Body) -> (u16, String) {
        let url = format!("{}{path}", self.url);
        let (method, kind, bytes) = match body {
            Body::None => ("GET", None, Vec::new()),
            Body::Json(text) => ("POST", Some("application/json"), text.clone().into_bytes()),
            Body::Compact(bytes) => {
                ("POST", Some(counterfoil_reconcile::compact::MEDIA_TYPE), bytes.clone())
            }
        };
        let mut headers: Vec<Header> = Vec::new();
        headers.extend(kind.map(|kind| ("content-type".to_owned(), kind.to_owned())));
        let parts = RequestParts { method, target_uri: &url, headers: &headers, body: &bytes };
        let nonce = format!("{:032x}", rand::random::<u128>());
        let now = self.app.now();
        let added = sign_request(parts, app, &key(secret), &nonce, now, Terms::default()).unwrap();
        headers.extend(added);
        let client = reqwest::Client::new();
        let mut request = match method {
            "GET" => client.get(&url),
            _ => client.post(&url).body(bytes),
        };
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        (status, said["code"].as_str().unwrap_or_default().to_owned())
    }

    async fn as_hall(&self, path: &str, body: Body) -> (u16, String) {
        self.call("hall", HALL, path, &body).await
    }

    fn of_task(&self, rest: &str) -> String {
        format!("/oapi/form-sync/tasks/{}/{rest}", self.task)
    }

    /// Everything that a peer could have changed.
    async fn all(&self) -> Vec<String> {
        let mut all = Vec::new();
        for table in [
            "answer",
            "form_consumer_grant",
            "answer_reconcile_task",
            "answer_reconcile_manifest_row",
            "answer_reconcile_result",
            "answer_reconcile_work",
            "fc_answer_projection",
        ] {
            all.extend(self.app.lines(&format!("SELECT * FROM {table} ORDER BY id")).await);
        }
        all
    }

    fn report(&self, app: &str) -> String {
        serde_json::json!({
            "taskId": self.task, "attempt": 0, "state": "COMPLETED", "manifestComplete": true,
            "localCompleted": true, "unresolved": 0, "consumerAppKey": app,
        })
        .to_string()
    }

    /// The hall's client of whatever stands at `url`.
    fn client(&self, url: &str) -> HttpFormCentre {
        let mut ring = Keyring::new("hall", Some(key(HALL)));
        let public = key(CENTRE).public().unwrap();
        ring.trust("centre", VerifyingKey::read("ed25519", &public).unwrap()).unwrap();
        let ring = Arc::new(ring);
        HttpFormCentre::new(SignedClient::new(url, "centre", ring, Terms::default()).unwrap())
    }
}

/// What is sent.
enum Body {
    None,
    Json(String),
    Compact(Vec<u8>),
}

fn whole() -> Vec<AskedRange> {
    vec![AskedRange { from: spelt(0), to: spelt(u128::MAX), parts: 4 }]
}

const WHOLE: &str = r#"{"ranges":[{"from":"00000000000000000000000000000000",
    "to":"ffffffffffffffffffffffffffffffff"}]}"#;

/// A proxy that passes the first call on and answers every later one with that first answer.
async fn replaying(behind: String) -> String {
    type Recorded = Arc<Mutex<Option<(StatusCode, HeaderMap, Bytes)>>>;
    let recorded = Recorded::default();
    let proxy = move |method: axum::http::Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let (recorded, behind) = (recorded.clone(), behind.clone());
        async move {
            let known = recorded.lock().unwrap().clone();
            let answer = match known {
                Some(answer) => answer,
                None => {
                    let url = format!("{behind}{uri}");
                    let request = reqwest::Client::new().request(method, url).headers(headers);
                    let response = request.body(body).send().await.unwrap();
                    let (status, headers) = (response.status(), response.headers().clone());
                    let answer = (status, headers, response.bytes().await.unwrap());
                    *recorded.lock().unwrap() = Some(answer.clone());
                    answer
                }
            };
            answer.into_response()
        }
    };
    serve(axum::Router::new().fallback(proxy)).await
}

on_every_database! {
    async fn a_signer_that_is_not_the_tasks_target_is_refused_at_every_door(app: TestApp) {
        let house = House::open(app).await;
        let before = house.all().await;
        let answers = format!(r#"{{"items":[{{"answerUuid":"{}"}}]}}"#, spelt(1));
        let doors = [
            (house.of_task("manifest"), Body::None),
            (house.of_task("grant"), Body::None),
            (house.of_task(&format!("answers/{}", spelt(1))), Body::None),
            (house.of_task("answers"), Body::Json(answers)),
            (house.of_task("digests"), Body::Json(WHOLE.into())),
            (house.of_task("rows"), Body::Json(WHOLE.into())),
            (house.of_task("result"), Body::Json(house.report("other"))),
            // A body that claims to be the target's changes nothing of whose signature it is.
            (house.of_task("result"), Body::Json(house.report("hall"))),
        ];
        for (path, body) in &doors {
            let said = house.call("other", OTHER, path, body).await;
            assert_eq!(said, (403, "IDENTITY_MISMATCH".into()), "{path}");
            // The hall's name with a key that is not its own, and a name that nobody knows.
            for app in ["hall", "nobody"] {
                let said = house.call(app, STRANGER, path, body).await;
                assert_eq!(said, (401, String::new()), "{path} as {app}");
            }
        }
        let said = house.as_hall(&house.of_task("result"), Body::Json(house.report("other"))).await;
        assert_eq!(said, (403, "IDENTITY_MISMATCH".into()));
        let said = house.as_hall("/oapi/form-sync/tasks/none/manifest", Body::None).await;
        assert_eq!(said, (404, "TASK_NOT_FOUND".into()));
        assert_eq!(house.all().await, before);
    }

    async fn a_forged_cursor_or_range_gets_its_code(app: TestApp) {
        let house = House::open(app).await;
        let before = house.all().await;
        let upper = "F".repeat(32);
        for cursor in ["1", upper.as_str(), "%27%20OR%20%271%27=%271", "7"] {
            let path = house.of_task(&format!("manifest?cursor={cursor}"));
            let said = house.as_hall(&path, Body::None).await;
            assert_eq!(said, (422, "CURSOR_INVALID".into()), "{cursor}");
        }
        for door in ["digests", "rows"] {
            for ranges in [
                r#"{"ranges":[]}"#,
                r#"{"ranges":[{"from":"x","to":"y"}]}"#,
                r#"{"ranges":[{"from":"ffffffffffffffffffffffffffffffff",
                    "to":"00000000000000000000000000000000"}]}"#,
            ] {
                let said = house.as_hall(&house.of_task(door), Body::Json(ranges.into())).await;
                assert_eq!(said, (422, "RANGE_INVALID".into()), "{door} {ranges}");
            }
        }
        assert_eq!(house.all().await, before);
    }

    async fn garbage_and_oversized_bodies_get_their_codes(app: TestApp) {
        let house = House::open(app).await;
        let before = house.all().await;
        for door in ["answers", "digests", "rows", "result"] {
            let path = house.of_task(door);
            let said = house.as_hall(&path, Body::Json("{\"items\":[".into())).await;
            assert_eq!(said, (400, "malformed-json".into()), "{door}");
            let said = house.as_hall(&path, Body::Json("{\"items\":7,\"ranges\":7}".into())).await;
            assert_eq!(said, (422, "INVALID_INPUT".into()), "{door}");
            let long = format!("{{\"ranges\":[],\"x\":\"{}\"}}", "x".repeat(MAX_BODY_BYTES));
            let said = house.as_hall(&path, Body::Json(long)).await;
            assert_eq!(said, (413, "body-too-large".into()), "{door}");
        }
        for body in [b"fcr1".to_vec(), b"fcr1a\xff\xff\xff\xff\xff".to_vec(), b"{}".to_vec()] {
            for door in ["digests", "rows"] {
                let body = Body::Compact(body.clone());
                let said = house.as_hall(&house.of_task(door), body).await;
                assert_eq!(said, (400, "malformed-json".into()), "{door}");
            }
        }
        assert_eq!(house.all().await, before);
    }

    async fn an_order_of_another_signer_or_for_another_hall_is_refused(app: TestApp) {
        let house = House::open(app).await;
        let before = house.all().await;
        let order = |source: &str, consumer: &str| {
            Body::Json(
                serde_json::json!({
                    "taskId": "t-1", "attempt": 1, "sourceAppKey": source,
                    "consumerAppKey": consumer, "consumerSchoolId": "school-1",
                    "formUuid": "form-1", "scope": "FORM", "answerUuid": null, "grantEpoch": 1,
                    "windowStart": "2026-09-08T00:00:00Z", "sentAt": "2026-09-08T00:00:00Z",
                })
                .to_string(),
            )
        };
        // The house's hall takes its orders from `hall`, whose key this test has.
        let refused = (403, "IDENTITY_MISMATCH".to_owned());
        assert_eq!(house.call("other", OTHER, ORDERS, &order("other", "hall")).await, refused);
        assert_eq!(house.call("other", OTHER, ORDERS, &order("hall", "hall")).await, refused);
        assert_eq!(house.call("hall", HALL, ORDERS, &order("other", "hall")).await, refused);
        assert_eq!(house.call("hall", HALL, ORDERS, &order("hall", "other")).await, refused);
        assert_eq!(house.call("hall", STRANGER, ORDERS, &order("hall", "hall")).await.0, 401);
        assert_eq!(house.all().await, before);
        assert_eq!(house.call("hall", HALL, ORDERS, &order("hall", "hall")).await.0, 202);
    }

    async fn a_consumer_without_an_address_is_never_called_and_its_task_fails(app: TestApp) {
        let house = House::open(app).await;
        let halls = HttpServiceHalls::new(BTreeMap::new(), ORDERS);
        let settings = CentreSettings {
            source_app_key: "centre".into(),
            dispatch_enabled: true,
            ..CentreSettings::default()
        };
        let turns = Dispatching::new(settings, Arc::new(halls));
        let engine =
            Engine::new(house.app.db.clone(), EngineSettings::default()).with_turns(turns);
        let row = "SELECT state, attempt, reason_code FROM answer_reconcile_task";
        for pause in [0, 1, 2, 4] {
            house.app.pass_minutes(pause);
            // A turn that came to nothing is told as such by the round.
            let _ = engine.round(DISPATCH.handler, "").await;
        }
        assert_eq!(house.app.value(row).await, "FAILED|4|TARGET_NOT_REGISTERED");
    }

    async fn an_answer_to_another_request_is_not_believed(app: TestApp) {
        let house = House::open(app).await;
        let centre = house.client(&replaying(house.url.clone()).await);
        let now = house.app.now();
        let said = centre.digests(&house.task, &whole(), now).await;
        let Answer::Said(first) = said else { panic!("{said:?}") };
        assert_eq!(first.ranges.iter().map(|range| range.count).sum::<i64>(), 5);
        // The same words again, signed by the centre itself, but not to these questions.
        let said = centre.digests(&house.task, &whole(), now).await;
        assert!(matches!(said, Answer::Unknown { .. }), "{said:?}");
        let question = Question { answer_uuid: spelt(77), expected_revision: Some(1) };
        let said = centre.answers(&house.task, &[question], now).await;
        assert!(matches!(said, Answer::Unknown { .. }), "{said:?}");
        let said = centre.manifest(&house.task, None, 200, now).await;
        assert!(matches!(said, Answer::Unknown { .. }), "{said:?}");
        let said = centre.grant(&house.task, now).await;
        assert!(matches!(said, Answer::Unknown { .. }), "{said:?}");
    }

    async fn digests_and_rows_are_the_same_in_json_and_in_the_compact_form(app: TestApp) {
        let house = House::open(app).await;
        let (centre, now) = (house.client(&house.url), house.app.now());
        let direct = counterfoil_reconcile::form_centre::digest::digests(
            &house.app.db, &house.task, "hall", &whole()).await.unwrap();
        // The first question goes as JSON, the second in the form that was answered in.
        for _ in 0..2 {
            let said = centre.digests(&house.task, &whole(), now).await;
            let Answer::Said(word) = said else { panic!("{said:?}") };
            assert_eq!(word, direct);
        }
        let span = counterfoil_reconcile::wire::KeySpan { from: spelt(2), to: spelt(4) };
        let said = centre.rows(&house.task, &[span], now).await;
        let Answer::Said(word) = said else { panic!("{said:?}") };
        let uuids: Vec<_> = word.rows.iter().map(|row| row.answer_uuid.clone()).collect();
        assert_eq!(uuids, [spelt(2), spelt(3)]);
    }
}
