//! An admin that writes down what it is told, and answers as a test wants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Longer than any answer takes, and not waited for by a test that passes.
pub const LONG: Duration = Duration::from_secs(30);

/// How an admin answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Accepts,
    /// Refuses everything, quoting the token.
    Refuses,
    /// As 3.5: results wrapped in an object.
    WantsWrapped,
    /// Refuses every list that holds this trigger's result.
    RefusesTrigger(i64),
}

/// What an admin was told.
#[derive(Debug)]
pub struct Told {
    pub path: String,
    pub token: String,
    pub app: String,
    pub body: Value,
}

pub struct FakeAdmin {
    pub url: String,
    manner: Arc<Mutex<Manner>>,
    told: mpsc::UnboundedReceiver<Told>,
    _server: tokio::task::JoinSet<()>,
}

#[derive(Clone)]
struct Doors {
    manner: Arc<Mutex<Manner>>,
    told: mpsc::UnboundedSender<Told>,
}

impl FakeAdmin {
    pub async fn start() -> FakeAdmin {
        let manner = Arc::new(Mutex::new(Manner::Accepts));
        let (sender, told) = mpsc::unbounded_channel();
        let doors = Doors { manner: manner.clone(), told: sender };
        let router = Router::new().route("/xxl-job-admin/api/{what}", post(take)).with_state(doors);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/xxl-job-admin", listener.local_addr().expect("an address"));
        let mut server = tokio::task::JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.expect("the admin") });
        FakeAdmin { url, manner, told, _server: server }
    }

    pub fn behave(&self, manner: Manner) {
        *self.manner.lock().expect("the manner") = manner;
    }

    /// The next thing it is told under this path; others are passed over.
    pub async fn next(&mut self, path: &str) -> Told {
        loop {
            let told = tokio::time::timeout(LONG, self.told.recv()).await;
            let told = told.unwrap_or_else(|_| panic!("no {path} came")).expect("the admin");
            if told.path == path {
                return told;
            }
        }
    }

    /// The next result as trigger, code and message; one result a call.
    pub async fn result(&mut self) -> (i64, i64, String) {
        let told = self.next("callback").await;
        let list = told.body.get("callbackList").unwrap_or(&told.body);
        let list = list.as_array().expect("a list");
        assert_eq!(list.len(), 1, "{list:?}");
        let text = list[0]["handleMsg"].as_str().expect("a message").to_owned();
        let number = |name: &str| list[0][name].as_i64().expect("a number");
        (number("logId"), number("handleCode"), text)
    }
}

async fn take(
    State(doors): State<Doors>,
    Path(what): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> String {
    let header = |name: &str| {
        headers.get(name).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
    };
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let token = header("XXL-JOB-ACCESS-TOKEN");
    let manner = *doors.manner.lock().expect("the manner");
    let has = |log: i64| {
        body.as_array().is_some_and(|list| list.iter().any(|item| item["logId"] == json!(log)))
    };
    let refused = match manner {
        Manner::Accepts => false,
        Manner::Refuses => true,
        Manner::WantsWrapped => what == "callback" && body.get("callbackList").is_none(),
        Manner::RefusesTrigger(log) => has(log) || body.get("callbackList").is_some(),
    };
    let answer = match refused {
        true => json!({ "code": 500, "msg": format!("no {token} here") }),
        false => json!({ "code": 200 }),
    };
    // What is refused is told as well: under another name, so that tests see it.
    let path = if refused { format!("refused {what}") } else { what };
    let told = Told { path, token, app: header("XXL-JOB-APPNAME"), body };
    let _ = doors.told.send(told);
    answer.to_string()
}
