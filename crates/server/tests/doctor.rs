//! `counterfoil doctor` as a real process: what `serve` would refuse is said first.

use counterfoil_e2e::{TestApp, on_every_database};
use serde_json::Value;

/// The exit code, and whether each thing looked at is well.
async fn examined(app: &TestApp, environment: &[(&str, &str)]) -> (i32, Vec<(String, bool)>) {
    let done = tokio::process::Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["--database", app.url(), "--json", "doctor"])
        .env("COUNTERFOIL_SERVER__LISTEN", "127.0.0.1:0")
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the process");
    let said: Value = serde_json::from_slice(&done.stdout).expect("one object");
    let findings = said["findings"].as_array().expect("findings").iter();
    let finding = |one: &Value| {
        (one["what"].as_str().expect("what").to_owned(), one["ok"].as_bool().expect("ok"))
    };
    (done.status.code().expect("a code"), findings.map(finding).collect())
}

async fn migrated(app: &TestApp) {
    let done = tokio::process::Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["--database", app.url(), "migrate"])
        .output()
        .await
        .expect("the process");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn troubled(findings: &[(String, bool)]) -> Vec<&str> {
    findings.iter().filter(|(_, good)| !good).map(|(what, _)| what.as_str()).collect()
}

on_every_database! {
    async fn a_house_that_serve_would_start_in_is_well(app: TestApp) {
        assert_eq!(troubled(&examined(&app, &[]).await.1), ["migrations"]);
        migrated(&app).await;
        let (code, findings) = examined(&app, &[]).await;
        assert_eq!((code, troubled(&findings)), (0, vec![]));
        let looked: Vec<&str> = findings.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(looked, [
            "configuration", "database", "clock", "migrations", "work", "keys", "address",
            "review centre", "xxl-job",
        ]);
    }

    // From fresh eyes of the first session: doctor found nothing wrong where serve refused.
    async fn what_serve_would_refuse_is_named(app: TestApp) {
        migrated(&app).await;
        let table = [
            ("COUNTERFOIL_SCHEDULER__RULES_CRON", "every now and then", vec!["work"]),
            ("COUNTERFOIL_SCHEDULER__DEFAULT_CRON", "61 * * * * *", vec!["work"]),
            ("COUNTERFOIL_SIGNING__PRIVATE_KEY", "a key", vec!["work", "keys"]),
            ("COUNTERFOIL_SERVER__LISTEN", "192.0.2.1:80", vec!["address"]),
            ("COUNTERFOIL_REVIEW__URL", "http://127.0.0.1:9", vec!["review centre"]),
        ];
        for (variable, value, expected) in table {
            let (code, findings) = examined(&app, &[(variable, value)]).await;
            assert_eq!((code, troubled(&findings)), (1, expected), "{variable}");
        }
    }

    async fn an_executor_that_serve_would_not_start_is_named(app: TestApp) {
        migrated(&app).await;
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("executor").display().to_string();
        let admin = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let admin = format!("[\"http://{}/x\"]", admin.local_addr().expect("an address"));
        let table = [
            ("env:A_TOKEN", "of-our-own", admin.as_str(), true),
            ("env:A_TOKEN", "default_token", admin.as_str(), false),
            ("env:ANOTHER_TOKEN", "of-our-own", admin.as_str(), false),
            ("of-our-own", "of-our-own", admin.as_str(), false),
            ("env:A_TOKEN", "of-our-own", "[\"http://127.0.0.1:9/\"]", false),
            ("env:A_TOKEN", "of-our-own", "[\"ftp://127.0.0.1/\"]", false),
        ];
        for (reference, token, admins, expected) in table {
            let environment = [
                ("COUNTERFOIL_XXL_JOB__ADMIN_ADDRESSES", admins),
                ("COUNTERFOIL_XXL_JOB__ACCESS_TOKEN", reference),
                ("COUNTERFOIL_XXL_JOB__DATA_DIR", data.as_str()),
                ("A_TOKEN", token),
            ];
            let (_, findings) = examined(&app, &environment).await;
            let troubled = troubled(&findings);
            assert_eq!(troubled, if expected { vec![] } else { vec!["xxl-job"] }, "{token}");
        }
    }
}
