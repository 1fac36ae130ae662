//! The commands and the simulated partner as processes of their own.

use std::process::Stdio;

use counterfoil_e2e::{TestApp, on_every_database};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::house::House;

fn counterfoil(app: &TestApp, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
    command
        .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "--json"])
        .args(words)
        .env("CF_SIGN", format!("whsec_{}", "k".repeat(32)))
        .env("CF_SEAL", format!("{}A", "k".repeat(42)))
        .env("COUNTERFOIL_LOG", "warn")
        .kill_on_drop(true);
    command
}

async fn told(app: &TestApp, code: i32, words: &[&str]) -> Value {
    let done = counterfoil(app, words).output().await.expect("the process");
    let out = String::from_utf8(done.stdout).expect("text");
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{words:?}: {out} {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

on_every_database! {
    async fn a_person_works_with_deliveries_from_the_command_line(app: TestApp) {
        let house = House::build(&app).await;
        // The binary's own tables too.
        told(&app, 0, &["migrate"]).await;
        let words = ["serve", "--role", "partner", "--listen", "127.0.0.1:0"];
        let mut partner = counterfoil(&app, &words)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the partner's process");
        let mut lines = BufReader::new(partner.stderr.take().expect("stderr")).lines();
        let address = loop {
            let line = lines.next_line().await.expect("a line").expect("it says where it listens");
            let said: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(address) = said["fields"]["address"].as_str() {
                break address.to_owned();
            }
        };
        let house = House { address: format!("http://{address}"), ..house };
        house.approved(1, "never").await;
        app.execute("UPDATE partner_key SET signing_secret_ref = 'env:CF_SIGN',
                     encryption_key_ref = 'env:CF_SEAL'").await;
        let trouble = reqwest::Client::new()
            .put(format!("http://{address}/partner/trouble"))
            .body(r#"{"trouble":"refuse","times":1}"#)
            .send()
            .await
            .expect("an answer");
        assert!(trouble.status().is_success());
        let handler = "residentIncomePaymentReviewCallbackSideEffectTask";
        let round = told(&app, 1, &["job", "run", handler]).await;
        assert_eq!(round["failed"], 1, "{round}");
        let listed = told(&app, 0, &["delivery", "list", "--order", "1", "--status", "fail"]).await;
        let row = &listed["deliveries"][0];
        assert_eq!((&row["status"], &row["attemptCount"]), (&"FAIL".into(), &1.into()));
        let id = row["id"].to_string();
        let shown = told(&app, 0, &["delivery", "show", &id]).await;
        assert!(shown["requestBody"].as_str().is_some_and(|body| body.contains("校核通过")));
        let words = ["delivery", "redeliver", &id, "--reason", "asked for", "--user", "7"];
        let done = told(&app, 0, &words).await;
        assert_eq!((&done["status"], &done["unsettledChunks"]), (&"SUCCESS".into(), &0.into()));
        let refused = told(&app, 2, &words).await;
        assert_eq!(refused["code"], "delivery-state");
        let code = done["taskCode"].as_str().expect("a task").to_owned();
        let words = ["task", "rerun", &code, "--reason", "delivered", "--user", "7"];
        assert_eq!(told(&app, 0, &words).await["succeeded"], 1);
        assert_eq!(house.received(1).await, "1");
        partner.kill().await.expect("ended");
    }
}
