//! What every request meets: ids, counting, limits; and how a process ends while clients are slow.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::routing::get;
use counterfoil_e2e::{Bill, Dialect, Fixture, TestApp, on_every_database};
use counterfoil_server::config::Config;
use counterfoil_server::http::{Health, Limits, dressed, operations};
use counterfoil_server::serve::{Role, Service};
use counterfoil_server::wiring;
use counterfoil_task::{Engine, EngineSettings, Shutdown};
use reqwest::Client;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tower::ServiceExt;

const S03: &str = "residentIncomePaymentSelectionSubmitBuildAsyncTask";
/// Longer than anything takes here, and not waited for by a test that passes.
const LONG: Duration = Duration::from_secs(30);

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().tls_certs_only([]).no_proxy().build().expect("a client")
}

async fn service(app: &TestApp) -> (Service, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
    let mut config = Config::default();
    config.server.listen = "127.0.0.1:0".into();
    let roles = BTreeSet::from([Role::Api, Role::Review]);
    let service = Service::start(&app.db, &config, &roles).await.expect("a service");
    let url = format!("http://{}", service.address);
    (service, url)
}

async fn said(url: &str) -> String {
    client().get(url).send().await.expect("an answer").text().await.expect("text")
}

on_every_database! {
    async fn prometheus_is_told_what_was_done_and_how_long_work_has_waited(app: TestApp) {
        let (service, url) = service(&app).await;
        let fixture = Fixture(&app);
        fixture.records(1).await;
        let session = fixture.new_session(&[Bill::payable(1)]).await;
        fixture.submit(session).await;
        app.pass_minutes(5);
        let mut config = Config::default();
        config.signing.complete(&mut config.apps);
        let engine = wiring::engine(&app.db, &config, &url).expect("an engine");
        assert_eq!(engine.round(S03, "").await.expect("a round").succeeded, 1);
        app.pass_minutes(7);
        said(&format!("{url}/no/such/path/17")).await;
        let told = said(&format!("{url}/metrics")).await;
        let lines = [
            format!("counterfoil_outcomes_total{{handler=\"{S03}\",outcome=\"succeeded\"}} 1"),
            "counterfoil_oldest_seconds{stage=\"lock-activation\"} 420".into(),
            "counterfoil_oldest_seconds{stage=\"submit-build\"} 0".into(),
            "counterfoil_oldest_seconds{stage=\"review-progress\"} 0".into(),
            r#"counterfoil_http_requests_total{route="none",method="GET",status="404"} 1"#.into(),
        ];
        for line in lines {
            assert!(told.contains(&line), "{line} in {told}");
        }
        assert!(told.contains("counterfoil_rule_verdicts_total{"), "{told}");
        assert!(!told.contains("such"), "no path that a caller made up is a label: {told}");
        service.stop().await;
    }

    async fn a_process_is_ready_while_its_tables_are_there_and_nobody_stops_it(app: TestApp) {
        counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let engine = Engine::new(app.db.clone(), EngineSettings::default());
        let (handle, shutdown) = Shutdown::new();
        let doors = operations(Health::of(&engine, shutdown));
        let ready = async || {
            let request = Request::get("/readyz").body(Body::empty()).expect("a request");
            let response = doors.clone().oneshot(request).await.expect("an answer");
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), 1000).await.expect("a body");
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        assert_eq!(ready().await, (200, "ready\n".into()));
        app.execute("INSERT INTO counterfoil_migration (number, name, applied_time)
                     VALUES (9999, 'of a newer binary', '2026-01-01 00:00:00')").await;
        assert_eq!(ready().await.0, 200, "a newer binary only adds");
        app.execute("DELETE FROM counterfoil_migration WHERE number = 101").await;
        assert_eq!(ready().await, (503, "the database lacks migrations\n".into()));
        app.execute("INSERT INTO counterfoil_migration (number, name, applied_time)
                     VALUES (101, 'tasks', '2026-01-01 00:00:00')").await;
        handle.ask();
        assert_eq!(ready().await, (503, "stopping\n".into()));
    }
}

async fn on_sqlite<F>(sentence: impl FnOnce(TestApp) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    counterfoil_e2e::run(Dialect::Sqlite, sentence).await;
}

#[tokio::test]
async fn a_request_keeps_its_callers_name_or_gets_one() {
    on_sqlite(|app| async move {
        let (service, url) = service(&app).await;
        let named = async |name: &str| {
            let request = client().get(format!("{url}/healthz")).header("X-Request-Id", name);
            let response = request.send().await.expect("an answer");
            response.headers()["x-request-id"].to_str().expect("text").to_owned()
        };
        assert_eq!(named("order-17.a").await, "order-17.a");
        for bad in ["two words", "a\"b", &"x".repeat(65)] {
            let given = named(bad).await;
            assert!(given.len() == 32 && given != bad, "{given}");
        }
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_problems_with_a_code() {
    on_sqlite(|app| async move {
        let (service, url) = service(&app).await;
        let table = [
            ("GET", "/no/such/path", 404, "path-not-found"),
            ("POST", "/no-such-door", 404, "path-not-found"),
            ("GET", "/console/orders/%00", 404, "path-not-found"),
            ("DELETE", "/healthz", 405, "method-not-allowed"),
            ("POST", "/metrics", 405, "method-not-allowed"),
            ("GET", "/reviewBusinessPlan/initInfo", 405, "method-not-allowed"),
        ];
        for (method, path, status, code) in table {
            let method = method.parse().expect("a method");
            let request = client().request(method, format!("{url}{path}"));
            let response = request.send().await.expect("an answer");
            assert_eq!(response.status().as_u16(), status, "{path}");
            assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
            let problem: Value = response.json().await.expect("JSON");
            assert_eq!(problem["code"], code, "{path}");
        }
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_refused_unread() {
    on_sqlite(|app| async move {
        let (service, url) = service(&app).await;
        let mut socket = TcpStream::connect(url.trim_start_matches("http://")).await.expect("one");
        let head = "POST /reviewBusinessPlan/initInfo HTTP/1.1\r\nHost: x\r\n\
                    Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
        socket.write_all(head.as_bytes()).await.expect("written");
        let answer = first_bytes(&mut socket).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(answer.contains("body-too-large"), "{answer}");
        service.stop().await;
    })
    .await;
}

/// What comes first on a socket.
async fn first_bytes(socket: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let read = tokio::time::timeout(LONG, socket.read(&mut bytes)).await;
    let count = read.expect("it ends in time").unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let limits = Limits {
        connections: 1,
        head: LONG,
        body: LONG,
        request: Duration::from_millis(1),
        drain: LONG,
    };
    let doors = Router::new().route("/", get(std::future::pending::<StatusCode>));
    let request = Request::get("/").body(Body::empty()).expect("a request");
    let response = dressed(doors, limits).oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = to_bytes(response.into_body(), 4096).await.expect("a body");
    let problem: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(problem["code"], "request-timeout");
}

/// A real process on SQLite with limits in its environment.
struct Process {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Process {
    async fn start(limits: &[(&str, &str)]) -> Process {
        let folder = tempfile::tempdir().expect("a folder");
        let database = format!("sqlite:{}/slow.db", folder.path().display());
        let command = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
            command.current_dir(folder.path()).args(["--database", &database, "--json"]);
            command.args(words).envs(limits.iter().copied()).kill_on_drop(true);
            command
        };
        let migrated = command(&["migrate"]).output().await.expect("a process");
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let mut serve = command(&["serve", "--listen", "127.0.0.1:0", "--role", "review"]);
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("a process");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let address = loop {
            let line = tokio::time::timeout(LONG, log.next_line()).await.expect("it starts");
            let line = line.expect("its log").expect("it serves");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(address) = line["fields"]["address"].as_str() {
                break address.to_owned();
            }
        };
        // Its log is read on, or it would block on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        Process { child, address, _folder: folder }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.expect("a connection")
    }

    /// A connection with so much of a request on it.
    async fn with(&self, text: &str) -> TcpStream {
        let mut socket = self.connect().await;
        socket.write_all(text.as_bytes()).await.expect("written");
        socket
    }

    /// SIGTERM, and its end.
    async fn terminate(mut self) {
        let id = self.child.id().expect("a living process").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill");
        assert!(sent.success());
        let ended = tokio::time::timeout(LONG, self.child.wait()).await;
        assert!(ended.expect("it ends in time").expect("its end").success());
    }
}

const WHOLE: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_client_with_half_a_request_delays_neither_others_nor_the_end() {
    let limits = [
        ("COUNTERFOIL_SERVER__HEAD_SECONDS", "600"),
        ("COUNTERFOIL_SERVER__BODY_SECONDS", "600"),
        ("COUNTERFOIL_SERVER__DRAIN_SECONDS", "1"),
    ];
    let process = Process::start(&limits).await;
    let half_a_head = process.with("GET /healthz HT").await;
    let half_a_body = process
        .with(
            "POST /reviewBusinessPlan/initInfo HTTP/1.1\r\nHost: x\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"half\":",
        )
        .await;
    let mut other = process.with(WHOLE).await;
    assert!(first_bytes(&mut other).await.starts_with("HTTP/1.1 200"));
    process.terminate().await;
    drop((half_a_head, half_a_body));
}

#[tokio::test]
async fn a_head_and_a_body_that_do_not_come_are_not_waited_for() {
    let limits =
        [("COUNTERFOIL_SERVER__HEAD_SECONDS", "1"), ("COUNTERFOIL_SERVER__BODY_SECONDS", "1")];
    let process = Process::start(&limits).await;
    let mut half_a_head = process.with("GET /healthz HT").await;
    let answer = first_bytes(&mut half_a_head).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let mut half_a_body = process
        .with(
            "POST /reviewBusinessPlan/initInfo HTTP/1.1\r\nHost: x\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"half\":",
        )
        .await;
    let answer = first_bytes(&mut half_a_body).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("body-unreadable"), "{answer}");
    process.terminate().await;
}

#[tokio::test]
async fn more_connections_than_there_are_places_wait_and_are_served() {
    let limits =
        [("COUNTERFOIL_SERVER__HEAD_SECONDS", "1"), ("COUNTERFOIL_SERVER__MAX_CONNECTIONS", "5")];
    let process = Process::start(&limits).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(process.with("GET").await);
    }
    let mut late = process.with(WHOLE).await;
    assert!(first_bytes(&mut late).await.starts_with("HTTP/1.1 200"));
    process.terminate().await;
}
