//! The executor against a real XXL-Job admin, `ratchjob`, end to end: it registers, is triggered
//! on cron, the round runs, and the admin shows its result and its log.
//!
//! ```sh
//! cargo install ratchjob --version 0.3.1 --locked   # five minutes and more: so it is no test
//! cargo run -p counterfoil-server --example xxl_admin -- "$(command -v ratchjob)"
//! ```

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use counterfoil_e2e::{Bill, Dialect, Fixture, TestApp};
use counterfoil_server::config::Config;
use counterfoil_server::serve::{Role, Service};
use counterfoil_server::wiring;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Real time for the admin to come up, and for a trigger to come back.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const TOKEN: &str = "a-token-of-this-run";
const HANDLER: &str = "residentIncomePaymentSelectionSubmitBuildAsyncTask";

struct Admin {
    api: String,
    console: String,
    client: Client,
    _process: Child,
}

impl Admin {
    /// Starts one with a folder of its own.
    async fn start(binary: &str, folder: &Path) -> Admin {
        let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let process = Command::new(binary)
            .env("RATCH_DATA_DIR", folder.join("admin"))
            .env("RATCH_HTTP_API_PORT", ports[0].to_string())
            .env("RATCH_HTTP_CONSOLE_PORT", ports[1].to_string())
            .env("RATCH_GRPC_CLUSTER_PORT", ports[2].to_string())
            .env("RATCH_XXL_DEFAULT_ACCESS_TOKEN", TOKEN)
            .env("RATCH_CONSOLE_ENABLE_CAPTCHA", "false")
            .env("RATCH_INIT_ADMIN_PASSWORD", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("ratchjob");
        let client = Client::builder().tls_certs_only([]).no_proxy().build().expect("a client");
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        Admin { api: at(ports[0]), console: at(ports[1]), client, _process: process }
    }

    async fn get(&self, url: &str, token: &str) -> Option<Value> {
        let response = self.client.get(url).header("Token", token).send().await.ok()?;
        response.json().await.ok()
    }

    async fn post(&self, url: &str, kind: &str, body: String) -> Option<Value> {
        let request = self.client.post(url).header("content-type", kind).body(body);
        request.send().await.ok()?.json().await.ok()
    }

    /// The addresses of the executors that are registered.
    async fn executors(&self) -> Option<String> {
        let url = format!("{}/ratch/v1/app/instance/addrs?appName=counterfoil", self.api);
        Some(self.get(&url, "").await?["data"].to_string())
    }

    /// A job that is triggered every second.
    async fn create_job(&self, key: &str, parameter: &str) -> Option<i64> {
        let job = json!({
            "enable": true, "appName": "counterfoil", "namespace": "xxl", "key": key,
            "description": "S03", "scheduleType": "CRON", "cronValue": "* * * * * *",
            "runMode": "BEAN", "handleName": HANDLER, "triggerParam": parameter,
            "routerStrategy": "FIRST", "pastDueStrategy": "DEFAULT",
            "blockingStrategy": "SERIAL_EXECUTION", "timeoutSecond": 30, "tryTimes": 0,
        });
        let url = format!("{}/ratch/v1/job/create", self.api);
        let created = self.post(&url, "application/json", job.to_string()).await?;
        let id = &created["content"]["id"];
        id.as_i64().or_else(|| panic!("the job was not created: {created}"))
    }

    /// The triggers of a job that have ended, the oldest first.
    async fn ended(&self, job: i64) -> Option<Vec<Value>> {
        let url = format!("{}/ratch/v1/job/task/list?jobId={job}&pageSize=100", self.api);
        let page = self.get(&url, "").await?;
        let mut list = page["data"]["list"].as_array()?.clone();
        list.retain(|one| one["status"] == "SUCCESS" || one["status"] == "FAIL");
        list.sort_by_key(|one| one["taskId"].as_i64());
        Some(list).filter(|list| !list.is_empty())
    }

    /// The log of a trigger, as a person reads it in the console.
    async fn log(&self, job: i64, task: i64) -> Option<String> {
        use base64::Engine as _;
        let password = base64::engine::general_purpose::STANDARD.encode(TOKEN);
        let form = format!("username=admin&password={}", password.replace('=', "%3D"));
        let base = format!("{}/ratchjob/api/console/v1", self.console);
        let kind = "application/x-www-form-urlencoded";
        let login = self.post(&format!("{base}/login/login"), kind, form).await?;
        let token = login["data"]["token"].as_str()?.to_owned();
        let url = format!("{base}/job/task/log?jobId={job}&taskId={task}&fromLineNum=1");
        let answer = self.get(&url, &token).await?;
        Some(answer["data"]["logContent"].as_str()?.to_owned())
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Looks again until there is something to see.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let mut every = tokio::time::interval(LOOK_EVERY);
    let looked = tokio::time::timeout(MAX_WAIT, async {
        loop {
            every.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
        }
    });
    looked.await.unwrap_or_else(|_| panic!("{what}: not within {MAX_WAIT:?}"))
}

async fn prove(app: TestApp, binary: String) {
    let folder = tempfile::tempdir().expect("a folder");
    counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
    let fixture = Fixture(&app);
    fixture.records(2).await;
    let session = fixture.new_session(&[Bill::payable(1), Bill::payable(2)]).await;
    fixture.submit(session).await;

    let admin = Admin::start(&binary, folder.path()).await;
    until("the admin comes up", || admin.executors()).await;
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).expect("the token");
    let mut config = Config::default();
    config.server.listen = "127.0.0.1:0".into();
    config.xxl_job.admin_addresses = vec![format!("{}/xxl-job-admin", admin.api)];
    config.xxl_job.access_token = format!("file:{}", token.display());
    config.xxl_job.data_dir = folder.path().join("executor");
    // Neither scheduler nor worker: whatever runs here, the admin has triggered.
    let roles = BTreeSet::from([Role::Api, Role::Review]);
    let service = Service::start(&app.db, &config, &roles).await.expect("the service");
    let address = format!("http://{}/xxl/", service.address);
    until("it registers", || async {
        admin.executors().await.filter(|known| known.contains(&address))
    })
    .await;
    say(&format!("registered as {address}"));

    let created = admin.create_job("s03", "{\"maxTaskCount\":5}");
    let job = created.await.expect("a job");
    let ended = until("a trigger ends", || admin.ended(job)).await;
    let first = &ended[0];
    say(&format!("the admin shows {first}"));
    assert_eq!(first["status"], "SUCCESS", "{first}");
    let status = app.value("SELECT status FROM selection_session").await;
    assert_eq!(status, "PUBLISHED_LOCK_SYNCING", "S03 ran, and nothing else");
    let task = first["taskId"].as_i64().expect("its number");
    let log = until("the log is read", || admin.log(job, task)).await;
    say(&format!("its log:\n{log}"));
    assert!(log.contains("the round begins") && log.contains("ended with code 200"), "{log}");

    let created = admin.create_job("refused", "{\"taskCodez\":[]}");
    let refused = created.await.expect("a job");
    let ended = until("a refused trigger ends", || admin.ended(refused)).await;
    say(&format!("the admin shows {}", ended[0]));
    assert_eq!(ended[0]["status"], "FAIL");
    let said = ended[0]["callbackMessage"].as_str().unwrap_or_default();
    assert!(said.contains("unknown field taskCodez"), "{said}");

    service.stop().await;
    until("it leaves the registry", || async {
        admin.executors().await.filter(|known| !known.contains(&address))
    })
    .await;
    say("it left the registry; all seen");
}

fn say(text: &str) {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{text}").expect("stdout");
}

fn main() {
    let binary = std::env::args().nth(1).unwrap_or_else(|| "ratchjob".into());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(counterfoil_e2e::run(Dialect::Sqlite, |app| prove(app, binary)));
}
