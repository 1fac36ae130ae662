//! `counterfoil order` and `counterfoil bill` as real processes: what machines read of them.

use counterfoil_db::migrate;
use counterfoil_e2e::{Bill, Fixture, TestApp, on_every_database};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::Submission;
use counterfoil_server::wiring;
use serde_json::{Value, json};

/// What one command answered.
struct Answered {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Answered {
    /// The one object on the one line of stdout.
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{} {}", self.out, self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

async fn counterfoil(app: &TestApp, words: &[&str]) -> Answered {
    // The binary has tables of its own beside the domains'.
    migrate(&app.db, &wiring::migrations()).await.expect("migrations");
    let now = app.now().to_rfc3339();
    let done = tokio::process::Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["--database", app.url(), "--now", &now])
        .args(words)
        .kill_on_drop(true)
        .output()
        .await
        .expect("the process");
    Answered {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).expect("text"),
        err: String::from_utf8(done.stderr).expect("text"),
    }
}

/// Succeeds, and answers the object.
async fn told(app: &TestApp, words: &[&str]) -> Value {
    let answered = counterfoil(app, &[&["--json"], words].concat()).await;
    assert_eq!(answered.code, Some(0), "{words:?}: {} {}", answered.out, answered.err);
    answered.json()
}

/// Is refused with exit code 2; answers the problem.
async fn refused(app: &TestApp, words: &[&str]) -> Value {
    let answered = counterfoil(app, &[&["--json"], words].concat()).await;
    assert_eq!(answered.code, Some(2), "{words:?}: {} {}", answered.out, answered.err);
    answered.json()
}

async fn submitted(app: &TestApp) -> Submission {
    let fixture = Fixture(app);
    fixture.records(4).await;
    let session = fixture.new_session(&[1, 2, 3].map(Bill::payable)).await;
    fixture.submit(session).await
}

async fn publish(app: &TestApp) {
    app.round(SUBMIT_BUILD.handler).await;
    app.round(LOCK_ACTIVATE.handler).await;
}

async fn revised(app: &TestApp) -> Submission {
    let first = submitted(app).await;
    publish(app).await;
    let fixture = Fixture(app);
    let bills = [Bill::payable(1), Bill::unqualified(3, "农户租金异常", 0), Bill::payable(4)];
    let session = fixture.revise_session(first.order.0, &bills).await;
    let second = fixture.submit(session).await;
    publish(app).await;
    second
}

/// The keys of an object, sorted.
fn keys(object: &Value) -> Vec<&str> {
    let map = object.as_object().expect("an object");
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// `stage=state` of every stage, in order.
fn looks(view: &Value) -> Vec<String> {
    let stages = view["stages"].as_array().expect("stages");
    let look = |stage: &Value| {
        let text = |key: &str| stage[key].as_str().unwrap_or_default().to_owned();
        format!("{}={}", text("stage"), text("state"))
    };
    stages.iter().map(look).collect()
}

on_every_database! {
    async fn a_fresh_submission_is_shown_with_its_verdict_its_stages_and_six_successes(
        app: TestApp
    ) {
        let submission = submitted(&app).await;
        let view = told(&app, &["order", "show", &submission.order.to_string()]).await;
        assert_eq!(keys(&view), [
            "approval", "callbackProgress", "conflicts", "deliveries", "locks", "order", "payments",
            "pushBatches", "recheckViolationCount", "recheckViolations", "session", "stages",
            "success", "verdict", "version", "versions",
        ]);
        let sentence = view["verdict"]["sentence"].as_str().expect("a sentence");
        assert!(sentence.contains("is at S03 build"), "{sentence}");
        let command = "counterfoil job run residentIncomePaymentSelectionSubmitBuildAsyncTask";
        assert_eq!(view["verdict"]["actions"][0]["command"], command);
        assert_eq!(view["order"]["paymentOrderId"], submission.order.0);
        assert_eq!(view["order"]["statusName"], "DRAFT");
        assert_eq!(view["order"]["totalAmount"], json!({ "fen": 0, "yuan": "0.00" }));
        assert_eq!(view["order"]["createTime"], "2026-09-08T02:00:00Z");
        assert_eq!(view["version"]["paymentOrderVersionId"], submission.version.0);
        assert_eq!(looks(&view), [
            "submitted=done", "build=waiting", "published=not_yet", "lock_activation=not_yet",
            "audit_plan=not_yet", "review=not_yet", "review_callback=not_yet",
            "main_business=not_yet", "status_refresh=not_yet", "bill_snapshot=not_yet",
            "side_effects=not_yet", "payment=not_yet",
        ]);
        let build = &view["stages"][1];
        assert_eq!(build["blocker"], "the next round");
        assert_eq!((&build["retryCount"], &build["maxRetryCount"]), (&json!(0), &json!(3)));
        assert_eq!(build["batchStatus"], "INIT");
        assert_eq!(build["taskCode"], submission.task.as_str());
        let answers = |kind: &str| view["success"][kind]["answer"].clone();
        assert_eq!(keys(&view["success"]), [
            "accepted", "handedOver", "mainBusinessEffective", "outsideWorldAnswered",
            "refreshDone", "roundRan",
        ]);
        assert_eq!((answers("accepted"), answers("roundRan")), (json!("yes"), json!("not_yet")));
    }

    async fn a_completed_version_is_shown_by_its_number_with_its_locks(app: TestApp) {
        let submission = submitted(&app).await;
        publish(&app).await;
        let id = submission.order.to_string();
        let number = told(&app, &["order", "show", &id]).await["order"]["orderNo"].clone();
        let view = told(&app, &["order", "show", number.as_str().expect("a number")]).await;
        assert_eq!(view["order"]["paymentOrderId"], submission.order.0);
        assert_eq!(looks(&view)[..5], [
            "submitted=done", "build=done", "published=done", "lock_activation=done",
            "audit_plan=waiting",
        ]);
        let activation = &view["stages"][3];
        assert_eq!((&activation["batchStatus"], &activation["processedCount"]),
            (&json!("DONE"), &json!(3)));
        assert_eq!(view["locks"], json!({ "reserved": 0, "active": 3, "released": 0 }));
        assert_eq!(view["order"]["totalAmount"], json!({ "fen": 30000, "yuan": "300.00" }));
        assert_eq!(view["success"]["handedOver"]["answer"], "yes");
        assert_eq!(view["success"]["mainBusinessEffective"]["answer"], "not_yet");
        let text = counterfoil(&app, &["order", "show", &id]).await;
        assert_eq!(text.code, Some(0));
        assert!(text.out.starts_with("Order PO"), "the verdict comes first: {}", text.out);
        assert!(text.out.contains("● done"), "{}", text.out);
    }

    async fn orders_and_lines_are_listed_page_by_page(app: TestApp) {
        let submission = submitted(&app).await;
        publish(&app).await;
        let page = told(&app, &["order", "list", "--status", "under_review"]).await;
        assert_eq!(keys(&page), ["nextBefore", "orders"]);
        assert_eq!(page["orders"][0]["paymentOrderId"], submission.order.0);
        assert_eq!(page["nextBefore"], Value::Null);
        let none = told(&app, &["order", "list", "--creator", "99"]).await;
        assert_eq!(none["orders"], json!([]));
        let id = submission.order.to_string();
        let page = told(&app, &["order", "lines", &id, "--limit", "2"]).await;
        assert_eq!(keys(&page), ["dataVersion", "lines", "nextAfter", "paymentOrderId"]);
        let after = page["nextAfter"].as_i64().expect("a next page").to_string();
        let page = told(&app, &["order", "lines", &id, "--after", &after]).await;
        let line = &page["lines"][0];
        assert_eq!((&line["stationId"], &line["lineType"]), (&json!("S3"), &json!("PAYABLE")));
        assert_eq!(line["payAmount"], json!({ "fen": 10000, "yuan": "100.00" }));
        assert_eq!(page["nextAfter"], Value::Null);
    }

    async fn a_diff_and_a_timeline_tell_what_a_revision_did(app: TestApp) {
        let order = revised(&app).await.order.to_string();
        let told_diff = told(&app, &["order", "diff", &order, "1", "2"]).await;
        let counts: Vec<(&str, i64)> = told_diff["kinds"]
            .as_array()
            .expect("kinds")
            .iter()
            .map(|kind| (kind["kind"].as_str().unwrap_or(""), kind["bills"].as_i64().unwrap_or(-1)))
            .collect();
        assert_eq!(counts, [
            ("kept", 1), ("removed", 1), ("added", 1), ("payableToUnqualified", 1),
            ("unqualifiedToPayable", 0), ("amountChanged", 0), ("payeeChanged", 0),
            ("amountAndPayeeChanged", 0),
        ]);
        assert_eq!(told_diff["kinds"][1]["first"][0]["stationId"], "S2");
        assert_eq!(told_diff["kinds"][3]["amountBefore"]["yuan"], "100.00");
        let timeline = told(&app, &["order", "timeline", &order]).await;
        let entries = timeline["entries"].as_array().expect("entries");
        let published = entries.iter().filter(|entry| entry["kind"] == "version"
            && entry["what"].as_str().is_some_and(|what| what.ends_with("published")));
        assert_eq!(published.count(), 2);
        assert_eq!(timeline["truncated"], false);
        assert!(entries.iter().all(|entry| entry["time"].as_str().is_some_and(|time| {
            time.ends_with('Z')
        })));
    }

    async fn a_bill_says_whether_it_can_be_paid_again(app: TestApp) {
        revised(&app).await;
        app.execute("UPDATE fi_monthly_income_difference SET pre_rent = 10000,
            actual_rent = 10000, contract_rent = 10000 WHERE station_id IN ('S1', 'S2')").await;
        let held = told(&app, &["bill", "S1", "202609"]).await;
        assert_eq!(keys(&held), [
            "billYearmonth", "canBePaidAgain", "lines", "locks", "notes", "records", "stationId",
            "truncated",
        ]);
        assert_eq!(held["canBePaidAgain"]["verdict"], "no");
        assert_eq!(held["canBePaidAgain"]["because"][0]["reason"], "held");
        assert_eq!(held["lines"].as_array().map(Vec::len), Some(2));
        assert_eq!(held["records"].as_array().map(Vec::len), Some(3));
        let free = told(&app, &["bill", "S2", "202609"]).await;
        assert_eq!(free["canBePaidAgain"]["verdict"], "yes");
        assert_eq!(free["locks"][0]["releaseReason"], "REVISE_REMOVED");
        let text = counterfoil(&app, &["bill", "S1", "202609"]).await;
        assert!(text.out.starts_with("S1 202609 cannot be paid again\nheld: PO"), "{}", text.out);
    }

    async fn a_repair_of_a_publish_record_is_done_once_and_by_somebody(app: TestApp) {
        let order = submitted(&app).await.order.to_string();
        publish(&app).await;
        let repair = ["order", "repair-publish", &order, "--reason", "checked by hand"];
        let by_user = [&repair[..], &["--user", "42"]].concat();
        let problem = refused(&app, &by_user).await;
        assert_eq!(problem["code"], "publish-repair-refused");
        app.execute("UPDATE fi_resident_income_payment_order_version
            SET version_build_status = 'BUILT'").await;
        let view = told(&app, &["order", "show", &order]).await;
        let command = view["verdict"]["actions"][0]["command"].as_str().unwrap_or_default();
        assert!(command.starts_with("counterfoil order repair-publish"), "{view}");
        let problem = refused(&app, &repair).await;
        assert!(problem["message"].as_str().is_some_and(|text| text.contains("--user")));
        let done = told(&app, &by_user).await;
        assert_eq!((&done["was"], &done["dataVersion"]), (&json!("BUILT"), &json!(1)));
        assert_eq!(refused(&app, &by_user).await["code"], "publish-repair-refused");
    }

    async fn what_is_wrong_is_refused_with_the_name_of_its_field(app: TestApp) {
        let order = submitted(&app).await.order.to_string();
        let table: &[(&[&str], &str, &str)] = &[
            (&["order", "show", "PO0"], "order-not-found", "order"),
            (&["order", "lines", "77"], "order-not-found", "order"),
            (&["order", "timeline", ""], "order-not-found", "order"),
            (&["order", "repair-publish", "x", "--reason", "r", "--user", "1"],
                "order-not-found", "order"),
            (&["order", "repair-publish", &order, "--reason", " ", "--user", "1"],
                "invalid-input", "reason"),
            (&["order", "list", "--status", "LOST"], "invalid-input", "status"),
            (&["order", "lines", &order, "--data-version", "x"], "invalid-input", "dataVersion"),
            (&["order", "lines", &order, "--data-version", "7"], "invalid-input", "dataVersion"),
            (&["order", "diff", &order, "x", "1"], "invalid-input", "v1"),
            (&["order", "diff", &order, "1", "9"], "invalid-input", "v2"),
            (&["bill", "S1", "2026-09"], "invalid-input", "month"),
            (&["bill", " ", "202609"], "invalid-input", "station"),
            (&["bill", "S9", "202609"], "bill-not-found", "station"),
        ];
        for (words, code, field) in table {
            let problem = refused(&app, words).await;
            assert_eq!(problem["code"], *code, "{words:?}: {problem}");
            let message = problem["message"].as_str().unwrap_or_default();
            assert!(message.starts_with(field), "{words:?}: {message}");
        }
    }
}
