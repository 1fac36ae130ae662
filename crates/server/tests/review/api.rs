//! `/reviewBusinessPlan/…` as its callers see it.

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use crate::centre::working;
use crate::database::TestDb;
use crate::everywhere;
use crate::house::House;

everywhere! {
    initinfo_answers_created_then_reused_then_conflict_with_a_lower_round;
    every_wrong_field_is_named;
    a_body_that_cannot_be_read_is_a_problem_too;
    what_a_page_of_another_site_can_send_decides_nothing;
    reviewers_decide_over_http_and_refusals_have_stable_codes;
    the_inbox_is_paged_by_an_opaque_cursor;
    a_withdrawal_answers_what_it_withdrew;
}

struct Api {
    base: String,
    client: Client,
    _house: House,
}

impl Api {
    async fn new(test: TestDb) -> Api {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let house = House::build(test).await;
        let base = working(&house.db).await;
        Api { base, client: Client::builder().no_proxy().build().unwrap(), _house: house }
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let url = format!("{}/reviewBusinessPlan/{path}", self.base);
        read(self.client.post(url).json(body).send().await.unwrap()).await
    }

    async fn post_raw(&self, path: &str, body: String) -> (StatusCode, Value) {
        let url = format!("{}/reviewBusinessPlan/{path}", self.base);
        let request = self.client.post(url).header("content-type", "application/json");
        read(request.body(body).send().await.unwrap()).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let url = format!("{}/reviewBusinessPlan/{path}", self.base);
        read(self.client.get(url).send().await.unwrap()).await
    }

    async fn open(&self, order: i64) -> i64 {
        let (status, body) = self.post("initInfo", &plan(order, 1)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["planId"].as_i64().unwrap()
    }
}

/// Every error is problem+json whose members agree.
async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body: Value = response.json().await.unwrap();
    if status.is_success() {
        assert_eq!(kind, "application/json");
    } else {
        assert_eq!(kind, "application/problem+json");
        assert_eq!(body["status"], status.as_u16());
        let code = body["code"].as_str().unwrap();
        assert_eq!(body["type"], format!("urn:counterfoil:problem:{code}"));
        assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
    }
    (status, body)
}

fn plan(order: i64, round: i64) -> Value {
    json!({
        "fromId": order, "fromNum": format!("PO{order}"), "type": "RESIDENT_INCOME_PAYMENT_REVIEW",
        "epctenantid": "T1", "organisation": "ORG1", "submitter": 7, "submitRound": round,
        "dataVersion": round, "managersA": [11, 12], "managersB": [21],
    })
}

async fn initinfo_answers_created_then_reused_then_conflict_with_a_lower_round(test: TestDb) {
    let api = Api::new(test).await;
    let (status, created) = api.post("initInfo", &plan(9, 2)).await;
    assert_eq!((status, &created["outcome"]), (StatusCode::CREATED, &json!("CREATED")));
    let (status, reused) = api.post("initInfo", &plan(9, 2)).await;
    assert_eq!((status, &reused["outcome"]), (StatusCode::OK, &json!("REUSED")));
    assert_eq!(created["planId"], reused["planId"]);
    let (status, refused) = api.post("initInfo", &plan(9, 1)).await;
    assert_eq!((status, &refused["code"]), (StatusCode::CONFLICT, &json!("review-round-stale")));
}

fn faults(body: &Value) -> Vec<String> {
    let errors = body["errors"].as_array().unwrap();
    let texts = errors.iter().map(|error| {
        format!("{} {}", error["field"].as_str().unwrap(), error["detail"].as_str().unwrap())
    });
    texts.collect()
}

async fn every_wrong_field_is_named(test: TestDb) {
    let api = Api::new(test).await;
    let mut wrong = plan(9, 1);
    wrong["fromId"] = json!("9");
    wrong["submitRound"] = json!(1.5);
    wrong["managersA"] = json!([11, "12"]);
    wrong["managersB"] = json!(21);
    wrong["organisation"] = json!(null);
    wrong["epctenantid"] = json!(["T1"]);
    wrong["submiter"] = json!(7);
    wrong.as_object_mut().unwrap().remove("submitter");
    let (status, body) = api.post("initInfo", &wrong).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("invalid-input"))
    );
    assert_eq!(
        faults(&body),
        [
            "fromId must be a positive whole number",
            "epctenantid must be a text",
            "organisation is missing",
            "submitter is missing",
            "submitRound must be a positive whole number",
            "managersA must hold positive whole numbers only",
            "managersB must be a list of positive whole numbers",
            "submiter is unknown",
        ]
    );
    let mut long = plan(9, 1);
    long["fromNum"] = json!("x".repeat(65));
    let (_, body) = api.post("initInfo", &long).await;
    assert_eq!(faults(&body), ["fromNum must not be longer than 64 characters"]);
    let (_, body) = api
        .post("initInfo", &{
            let mut p = plan(9, 1);
            p["type"] = json!("a\0");
            p
        })
        .await;
    assert_eq!(faults(&body), ["type must not contain NUL"]);
    let (_, body) = api.post("x7/decisions", &json!({"decision": "", "remark": 5})).await;
    assert_eq!(
        faults(&body),
        [
            "planId must be a positive whole number",
            "userId is missing",
            "decision must be APPROVE or REJECT",
            "remark must be a text",
        ]
    );
    let (_, body) = api.get("inbox?userId=0&limit=many&cursor=12&page=2&page=3").await;
    assert_eq!(
        faults(&body),
        [
            "page is given twice",
            "userId must be a positive whole number",
            "limit must be a positive whole number",
            "cursor must be a nextCursor of this list",
            "page is unknown",
        ]
    );
}

async fn a_body_that_cannot_be_read_is_a_problem_too(test: TestDb) {
    let api = Api::new(test).await;
    for body in ["", "{", "[]", "7", r#"{"fromId":}"#] {
        let (status, problem) = api.post_raw("initInfo", body.to_owned()).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("malformed-json")));
    }
    let (status, problem) = api.post_raw("initInfo", " ".repeat(64 * 1024 + 1)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(problem["code"], "body-too-large");
    let (status, problem) = api.get("initInfo").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(problem["code"], "method-not-allowed");
}

// A fresh pair of eyes approved a review with a text/plain POST that carried a foreign Origin.
async fn what_a_page_of_another_site_can_send_decides_nothing(test: TestDb) {
    let api = Api::new(test).await;
    let plan = api.open(9).await;
    let url = format!("{}/reviewBusinessPlan/{plan}/decisions", api.base);
    let body = json!({"userId": 11, "decision": "APPROVE"});
    let foreign = api.client.post(&url).header("origin", "http://evil.example").json(&body);
    let (status, problem) = read(foreign.send().await.unwrap()).await;
    assert_eq!((status.as_u16(), &problem["code"]), (403, &json!("foreign-origin")));
    let plain = api.client.post(&url).header("content-type", "text/plain");
    let (status, problem) = read(plain.body(body.to_string()).send().await.unwrap()).await;
    assert_eq!((status.as_u16(), &problem["code"]), (415, &json!("unsupported-media-type")));
    let (status, _) = api.post(&format!("{plan}/decisions"), &body).await;
    assert_eq!(status.as_u16(), 200, "nobody has decided yet");
}

async fn reviewers_decide_over_http_and_refusals_have_stable_codes(test: TestDb) {
    let api = Api::new(test).await;
    let plan = api.open(9).await;
    let decide = async |user: i64, decision: &str| {
        let body = json!({"userId": user, "decision": decision, "remark": "r"});
        let (status, body) = api.post(&format!("{plan}/decisions"), &body).await;
        let shown = body["code"].as_str().or(body["status"].as_str()).unwrap().to_owned();
        (status.as_u16(), shown)
    };
    let expected = |status: u16, shown: &str| (status, shown.to_owned());
    assert_eq!(decide(7, "APPROVE").await, expected(403, "review-own-order"));
    assert_eq!(decide(99, "APPROVE").await, expected(403, "review-not-assigned"));
    assert_eq!(decide(21, "APPROVE").await, expected(409, "review-not-your-turn"));
    assert_eq!(decide(11, "APPROVE").await, expected(200, "DOING"));
    assert_eq!(decide(11, "REJECT").await, expected(409, "review-already-decided"));
    assert_eq!(decide(12, "APPROVE").await, expected(409, "review-not-your-turn"));
    assert_eq!(decide(21, "APPROVE").await, expected(200, "PASSED"));
    assert_eq!(decide(12, "REJECT").await, expected(409, "review-plan-state"));
    let nowhere = json!({"userId": 11, "decision": "APPROVE"});
    let (status, body) = api.post("4242/decisions", &nowhere).await;
    assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("review-plan-not-found")));
}

async fn the_inbox_is_paged_by_an_opaque_cursor(test: TestDb) {
    let api = Api::new(test).await;
    for order in [101, 102, 103] {
        api.open(order).await;
    }
    let (_, first) = api.get("inbox?userId=11&limit=2").await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let (_, second) = api.get(&format!("inbox?userId=11&limit=2&cursor={cursor}")).await;
    let orders = |page: &Value| -> Vec<i64> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["fromId"].as_i64().unwrap()).collect()
    };
    assert_eq!((orders(&first), orders(&second)), (vec![101, 102], vec![103]));
    assert!(second["nextCursor"].is_null());
    let item = &first["items"][0];
    assert_eq!(item["nodeCode"], "OPERATION_MANAGER_A");
    assert_eq!((&item["fromNum"], &item["submitter"]), (&json!("PO101"), &json!(7)));
    let (_, none) = api.get("inbox?userId=21").await;
    assert_eq!(none["items"], json!([]));
}

async fn a_withdrawal_answers_what_it_withdrew(test: TestDb) {
    let api = Api::new(test).await;
    let plan = api.open(9).await;
    let body = json!({
        "fromId": 9, "type": "RESIDENT_INCOME_PAYMENT_REVIEW", "reason": "ORDER_CANCELLED",
    });
    assert_eq!(api.post("withdraw", &body).await, (StatusCode::OK, json!({"planIds": [plan]})));
    assert_eq!(api.post("withdraw", &body).await, (StatusCode::OK, json!({"planIds": []})));
}
