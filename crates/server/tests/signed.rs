//! The door for programs, over a real socket: who is let in, and what goes out signed.

use axum::Json;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use chrono::TimeDelta;
use counterfoil_db::migrate;
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_protocol::signing::{
    Header, Keyring, RequestParts, ResponseParts, SigningKey, Terms, VerifyingKey, sign_request,
    verify_response,
};
use counterfoil_remote::{SignedAnswer, SignedClient};
use counterfoil_server::api::signed::{Caller, Gate, MAX_BODY_BYTES, admit};
use counterfoil_server::config::Config;
use counterfoil_server::signing_config::{AppConfig, AppKeyConfig};
use counterfoil_server::wiring;
use serde_json::json;

/// Base64 of 32 bytes, all ones and all twos: the private keys of the two sides.
const OURS: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const THEIRS: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

fn key(text: &str) -> SigningKey {
    SigningKey::read("ed25519", text).unwrap()
}

/// A process with one door, which answers who came in.
struct House {
    app: TestApp,
    url: String,
}

impl House {
    async fn open(app: TestApp) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        migrate(&app.db, &wiring::migrations()).await.unwrap();
        let url = serve(&app).await;
        House { app, url }
    }

    async fn nonces(&self) -> String {
        self.app.value("SELECT COUNT(*) AS n FROM signing_nonce").await
    }
}

async fn serve(app: &TestApp) -> String {
    let mut config = Config::default();
    config.signing.app_key = "centre".into();
    config.signing.private_key = OURS.into();
    let key = AppKeyConfig { alg: "ed25519".into(), key: key(THEIRS).public().unwrap() };
    config.apps.insert("hall".into(), AppConfig { keys: vec![key] });
    let gate = Gate::new(&app.db, &config).unwrap();
    let who = |Caller(app): Caller, body: String| async move {
        Json(json!({ "caller": app, "bytes": body.len() }))
    };
    let router =
        axum::Router::new().route("/who", post(who)).layer(from_fn_with_state(gate, admit));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// A request of the hall, signed; the test may change it before it is sent.
#[derive(Clone)]
struct Sent {
    url: String,
    headers: Vec<Header>,
    body: String,
}

impl Sent {
    fn signed(house: &House, nonce: &str, body: String) -> Sent {
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        let mut sent = Sent { url: format!("{}/who", house.url), headers: vec![kind], body };
        let now = house.app.now();
        let key = key(THEIRS);
        let added = sign_request(sent.parts(), "hall", &key, nonce, now, Terms::default()).unwrap();
        sent.headers.extend(added);
        sent
    }

    fn parts(&self) -> RequestParts<'_> {
        RequestParts {
            method: "POST",
            target_uri: &self.url,
            headers: &self.headers,
            body: self.body.as_bytes(),
        }
    }

    async fn send(&self) -> (u16, Vec<Header>, Vec<u8>) {
        let mut request = reqwest::Client::new().post(&self.url).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let pairs = response.headers().iter();
        let headers = pairs
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        (status, headers, response.bytes().await.unwrap().to_vec())
    }

    fn believes(&self, house: &House, answer: &(u16, Vec<Header>, Vec<u8>)) -> bool {
        let mut ring = Keyring::new("hall", None);
        let public = key(OURS).public().unwrap();
        ring.trust("centre", VerifyingKey::read("ed25519", &public).unwrap()).unwrap();
        let (status, headers, body) = answer;
        let response = ResponseParts { status: *status, headers, body };
        let (now, terms) = (house.app.now(), Terms::default());
        verify_response(response, self.parts(), "centre", &ring, now, terms).is_ok()
    }
}

on_every_database! {
    async fn a_signed_request_is_let_in_once_and_its_answer_is_signed(app: TestApp) {
        let house = House::open(app).await;
        let sent = Sent::signed(&house, "n1", "{}".into());
        let answer = sent.send().await;
        assert_eq!(answer.0, 200);
        assert_eq!(answer.2, br#"{"bytes":2,"caller":"hall"}"#);
        assert!(sent.believes(&house, &answer));
        // The very same bytes again, also through another process on the same database.
        assert_eq!(sent.send().await.0, 401);
        let other = serve(&house.app.second_process().await).await;
        assert_eq!(Sent { url: format!("{other}/who"), ..sent.clone() }.send().await.0, 401);
        assert_eq!(Sent::signed(&house, "n2", "{}".into()).send().await.0, 200);
        assert_eq!(house.nonces().await, "2");
    }

    async fn of_many_copies_of_one_request_sent_at_once_one_is_let_in(app: TestApp) {
        let house = House::open(app).await;
        let sent = Sent::signed(&house, "n1", "{}".into());
        let mut copies = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let sent = sent.clone();
            copies.spawn(async move { sent.send().await.0 });
        }
        let mut statuses = copies.join_all().await;
        statuses.sort_unstable();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 11, "{statuses:?}");
    }

    async fn what_is_not_believed_gets_401_and_nothing_else_and_burns_no_nonce(app: TestApp) {
        let house = House::open(app).await;
        let sent = Sent::signed(&house, "n1", "{}".into());
        let mut unsigned = sent.clone();
        unsigned.headers.truncate(1);
        let mut changed = sent.clone();
        changed.body = "[]".into();
        let mut elsewhere = sent.clone();
        elsewhere.url.push_str("?x=1");
        for other in [unsigned, changed, elsewhere] {
            let (status, headers, body) = other.send().await;
            assert_eq!((status, body.as_slice()), (401, [].as_slice()));
            assert!(!headers.iter().any(|(name, _)| name == "signature"));
        }
        assert_eq!(house.nonces().await, "0");
        house.app.pass_minutes(11);
        assert_eq!(sent.send().await.0, 401);
        assert_eq!(house.nonces().await, "0");
    }

    async fn the_client_believes_only_what_its_peer_signed(app: TestApp) {
        let house = House::open(app).await;
        let client = |trusted: &str| {
            let mut ring = Keyring::new("hall", Some(key(THEIRS)));
            let public = key(trusted).public().unwrap();
            ring.trust("centre", VerifyingKey::read("ed25519", &public).unwrap()).unwrap();
            SignedClient::new(&house.url, "centre", ring.into(), Terms::default()).unwrap()
        };
        let answer = client(OURS).post("/who", b"{}".to_vec(), house.app.now()).await;
        let body = br#"{"bytes":2,"caller":"hall"}"#.to_vec();
        assert_eq!(answer, SignedAnswer::Proved { status: 200, body });
        let answer = client(THEIRS).post("/who", b"{}".to_vec(), house.app.now()).await;
        assert!(matches!(answer, SignedAnswer::Unknown { .. }), "{answer:?}");
        let late = house.app.now() - TimeDelta::minutes(11);
        let answer = client(OURS).post("/who", b"{}".to_vec(), late).await;
        assert_eq!(answer, SignedAnswer::Proved { status: 401, body: Vec::new() });
    }

    async fn a_body_over_the_limit_is_refused_by_a_signed_answer(app: TestApp) {
        let house = House::open(app).await;
        let sent = Sent::signed(&house, "n1", "x".repeat(MAX_BODY_BYTES + 1));
        let answer = sent.send().await;
        assert_eq!(answer.0, 413);
        assert!(sent.believes(&house, &answer));
        assert_eq!(house.nonces().await, "0");
    }
}
