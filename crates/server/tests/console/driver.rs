//! A real browser, driven by the W3C WebDriver protocol: Debian's chromium and its chromedriver.
//! The protocol is a handful of JSON calls; the crates for it bring cookie jars with the `time`
//! crate, which this house does not build.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// One window of one browser.
pub struct Browser {
    client: reqwest::Client,
    session: String,
    // Dropping it ends the browser with the test.
    _driver: Child,
}

/// How an element is named in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Starts a browser that asks for pages in this language.
    pub async fn start(language: &str) -> Browser {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver: ./test installs chromium and chromium-driver");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = loop {
            let line = lines.next_line().await.expect("a line").expect("it says its port");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        // The pipe is read on, so that the driver never waits for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let mut browser = Browser {
            client: reqwest::Client::new(),
            session: format!("http://127.0.0.1:{port}/session"),
            _driver: driver,
        };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--window-size=1280,900",
        ];
        let options = json!({
            "args": arguments, "prefs": { "intl.accept_languages": language },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let opened = browser.call("", &wanted).await;
        let id = opened["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.expect("the driver").text().await.expect("a body");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer["value"]["error"].is_null(), "{path}: {}", answer["value"]);
        answer["value"].clone()
    }

    pub async fn go(&self, url: &str) {
        self.call("/url", &json!({ "url": url })).await;
    }

    pub async fn script(&self, script: &str) -> Value {
        self.call("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    async fn element(&self, css: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": css });
        let found = self.call("/element", &wanted).await;
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    pub async fn click(&self, css: &str) {
        let element = self.element(css).await;
        self.call(&format!("/element/{element}/click"), &json!({})).await;
    }

    pub async fn write(&self, css: &str, text: &str) {
        let element = self.element(css).await;
        self.call(&format!("/element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Presses keys wherever the focus is.
    pub async fn press(&self, keys: &str) {
        let mut actions = Vec::new();
        for key in keys.chars() {
            actions.push(json!({ "type": "keyDown", "value": key.to_string() }));
            actions.push(json!({ "type": "keyUp", "value": key.to_string() }));
        }
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.call("/actions", &json!({ "actions": [keyboard] })).await;
    }

    /// What a person reads.
    pub async fn text(&self) -> String {
        let text = self.script("return document.body.innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub async fn path(&self) -> String {
        let path = self.script("return location.pathname").await;
        path.as_str().unwrap_or_default().to_owned()
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.call("/goog/cdp/execute", &body).await
    }

    /// As wide as a screen or a phone.
    pub async fn width(&self, width: u32) {
        let metrics = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Whether pages may run scripts.
    pub async fn scripts(&self, may_run: bool) {
        let off = json!({ "value": !may_run });
        self.devtools("Emulation.setScriptExecutionDisabled", off).await;
    }

    /// What the browser complained of since it was asked last: refused scripts, broken links.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.call("/se/log", &json!({ "type": "browser" })).await;
        let entries = log.as_array().into_iter().flatten();
        // Hints about better forms are no complaints.
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    /// The whole page as a picture, where a folder for pictures is named.
    pub async fn picture(&self, name: &str, width: u32) {
        let Ok(folder) = std::env::var("COUNTERFOIL_PICTURES") else {
            return;
        };
        let height = self.script("return document.documentElement.scrollHeight").await;
        let height = height.as_u64().unwrap_or(900).min(4000);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wanted = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        let taken = self.devtools("Page.captureScreenshot", wanted).await;
        let data = taken["data"].as_str().expect("a picture");
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
        std::fs::write(format!("{folder}/{name}.png"), bytes).expect("the picture is written");
    }
}
