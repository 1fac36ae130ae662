//! An executor at work on a test's database, its time in the test's hand.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_e2e::TestApp;
use counterfoil_remote::XxlAdmins;
use counterfoil_server::xxl_job::{Executor, Parts, Store, Wait, Waits, router};
use counterfoil_task::{Engine, Shutdown, ShutdownHandle};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::admin::{FakeAdmin, LONG};
use crate::knock;

pub const TOKEN: &str = "a-token-of-our-own";
/// The address that is registered.
pub const ADDRESS: &str = "http://10.0.0.7:8080/xxl/";

/// Time that passes when a test says so.
pub struct ByHand {
    passes: HashMap<Wait, Semaphore>,
    awaited: HashMap<Wait, Semaphore>,
}

impl ByHand {
    fn new() -> Arc<ByHand> {
        let each = || {
            let waits = [Wait::Beat, Wait::Tell, Wait::Timeout, Wait::Stop];
            waits.into_iter().map(|what| (what, Semaphore::new(0))).collect()
        };
        Arc::new(ByHand { passes: each(), awaited: each() })
    }

    /// Returns when somebody waits for this, or has.
    pub async fn is_awaited(&self, what: Wait) {
        let awaited = tokio::time::timeout(LONG, self.awaited[&what].acquire()).await;
        awaited.expect("somebody waits").expect("the test").forget();
    }

    /// One wait of this kind is over: the one that is waited for, or the next.
    pub fn pass(&self, what: Wait) {
        self.passes[&what].add_permits(1);
    }
}

#[async_trait::async_trait]
impl Waits for ByHand {
    async fn wait(&self, what: Wait, _time: Duration) {
        self.awaited[&what].add_permits(1);
        self.passes[&what].acquire().await.expect("the test").forget();
    }
}

pub struct House {
    pub app: TestApp,
    pub admin: FakeAdmin,
    pub waits: Arc<ByHand>,
    pub url: String,
    pub go_on: Arc<Semaphore>,
    begun: mpsc::UnboundedReceiver<i64>,
    client: reqwest::Client,
    handle: ShutdownHandle,
    serving: JoinSet<()>,
    doors: JoinSet<()>,
}

impl House {
    /// An executor with a folder at `folder`, registered with `admin` after nobody answered at
    /// another's address.
    pub async fn open(app: &TestApp, folder: &Path, admin: FakeAdmin) -> House {
        let (engine, begun, go_on) = knock::engine(&app.db);
        let mut house = House::around(app, folder, admin, engine).await;
        (house.begun, house.go_on) = (begun, go_on);
        house
    }

    /// The same around any engine.
    pub async fn around(app: &TestApp, folder: &Path, admin: FakeAdmin, engine: Engine) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let addresses = ["http://127.0.0.1:9/nobody".to_owned(), admin.url.clone()];
        let waits = ByHand::new();
        let parts = Parts {
            engine: Arc::new(engine),
            store: Store::open(folder).expect("a folder"),
            admins: Arc::new(XxlAdmins::new(&addresses, TOKEN, "counterfoil").expect("admins")),
            address: ADDRESS.into(),
            token: TOKEN.into(),
            log_days: 30,
            waits: waits.clone(),
        };
        let executor = Executor::new(parts).await.expect("an executor");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/xxl", listener.local_addr().expect("an address"));
        let (handle, shutdown) = Shutdown::new();
        let (mut serving, mut doors) = (JoinSet::new(), JoinSet::new());
        let router = router(executor.clone());
        doors.spawn(async move { axum::serve(listener, router).await.expect("the doors") });
        serving.spawn(executor.serve(shutdown));
        let (_, begun) = mpsc::unbounded_channel();
        let go_on = Arc::new(Semaphore::new(0));
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build();
        let client = client.expect("a client");
        let app = app.clone();
        House { app, admin, waits, url, go_on, begun, client, handle, serving, doors }
    }

    /// Calls a door as an admin does; the whole answer.
    pub async fn call(&self, path: &str, body: &Value) -> Value {
        self.call_as(Some(TOKEN), path, body.to_string().into_bytes()).await
    }

    /// Calls a door with any token and any body.
    pub async fn call_as(&self, token: Option<&str>, path: &str, body: Vec<u8>) -> Value {
        let mut request = self.client.post(format!("{}/{path}", self.url)).body(body);
        if let Some(token) = token {
            request = request.header("XXL-JOB-ACCESS-TOKEN", token);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200, "the status is always 200");
        response.json().await.expect("JSON")
    }

    /// The code of an answer.
    pub async fn code(&self, path: &str, body: &Value) -> i64 {
        self.call(path, body).await["code"].as_i64().expect("a code")
    }

    /// Triggers job 1; the answer's code.
    pub async fn run(&self, log: i64, strategy: &str) -> i64 {
        self.code("run", &trigger(log, strategy)).await
    }

    /// The next task that begins.
    pub async fn begun(&mut self) -> i64 {
        let begun = tokio::time::timeout(LONG, self.begun.recv()).await;
        begun.expect("a task begins").expect("the engine")
    }

    /// Ends the executor as SIGTERM does, and hands its admin on.
    pub async fn stop(mut self) -> FakeAdmin {
        self.handle.ask();
        let stopped = async { while self.serving.join_next().await.is_some() {} };
        tokio::time::timeout(LONG, stopped).await.expect("the executor stops");
        self.end().await
    }

    /// Ends the executor as SIGKILL does.
    pub async fn kill(mut self) -> FakeAdmin {
        self.serving.shutdown().await;
        self.end().await
    }

    async fn end(mut self) -> FakeAdmin {
        self.doors.shutdown().await;
        self.admin
    }

    /// The reqwest client, for what no admin would send.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Status and failures of the task of knock 1.
    pub async fn task(&self) -> String {
        self.app.value("SELECT task_status, retry_count FROM fi_async_task").await
    }
}

/// A trigger of job 1 as admins before 3.5 send it; the admin said broadcast 0 of 0.
pub fn trigger(log: i64, strategy: &str) -> Value {
    json!({
        "jobId": 1, "executorHandler": "knockTask", "executorParams": "",
        "executorBlockStrategy": strategy, "executorTimeout": 0, "logId": log,
        "logDateTime": 1_788_000_000_000_i64, "glueType": "BEAN", "glueSource": "",
        "glueUpdatetime": 1, "broadcastIndex": 0, "broadcastTotal": 0,
    })
}
