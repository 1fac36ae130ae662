//! What the doors answer.

use counterfoil_e2e::{Dialect, TestApp};
use serde_json::{Value, json};

use crate::admin::FakeAdmin;
use crate::house::{House, TOKEN, trigger};

/// Runs a sentence in a house on SQLite: the database has no part in it.
async fn at_the_doors<F>(sentence: impl FnOnce(House) -> F + Send + 'static)
where
    F: Future<Output = House> + Send + 'static,
{
    counterfoil_e2e::run(Dialect::Sqlite, |app: TestApp| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let admin = FakeAdmin::start().await;
        let house = House::open(&app, folder.path(), admin).await;
        sentence(house).await.stop().await;
    })
    .await;
}

#[tokio::test]
async fn only_an_admin_that_shows_the_token_is_let_in() {
    at_the_doors(|house| async move {
        for path in ["beat", "idleBeat", "run", "trigger", "kill", "log"] {
            let body = trigger(1, "").to_string().into_bytes();
            let longer = format!("{TOKEN}x");
            let wrong = [None, Some(""), Some("wrong"), Some(&TOKEN[1..]), Some(longer.as_str())];
            for token in wrong {
                let answer = house.call_as(token, path, body.clone()).await;
                assert_eq!(answer["code"], json!(500), "{path} {token:?}");
                assert!(!answer.to_string().contains(TOKEN));
            }
        }
        assert_eq!(house.code("beat", &Value::Null).await, 200);
        assert_eq!(house.code("idleBeat", &json!({ "jobId": 1 })).await, 200);
        assert_eq!(house.code("kill", &json!({ "jobId": 1 })).await, 200, "nothing runs");
        house
    })
    .await;
}

#[tokio::test]
async fn what_is_no_handler_or_brings_code_along_is_refused() {
    at_the_doors(|house| async move {
        let table = [
            ("executorHandler", json!("noSuchTask"), "job handler [noSuchTask] not found"),
            ("executorHandler", Value::Null, "job handler [] not found"),
            ("glueType", json!("GLUE_SHELL"), "only glueType BEAN"),
            ("glueType", json!("GLUE_GROOVY"), "only glueType BEAN"),
            ("jobId", json!("one"), "the body cannot be read"),
        ];
        for (field, value, expected) in table {
            let mut body = trigger(1, "");
            body[field] = value;
            let answer = house.call("run", &body).await;
            assert_eq!(answer["code"], json!(500), "{field}");
            let said = answer["msg"].as_str().expect("a message");
            assert!(said.starts_with(expected), "{said}");
            assert_eq!(house.code("idleBeat", &json!({ "jobId": 1 })).await, 200);
        }
        house
    })
    .await;
}

#[tokio::test]
async fn a_body_of_five_mebibytes_is_read_and_a_longer_one_refused() {
    at_the_doors(|house| async move {
        let body = |length: usize| {
            let mut body = b"{\"jobId\":1}".to_vec();
            body.resize(length, b' ');
            body
        };
        let most = 5 * 1024 * 1024;
        let answer = house.call_as(Some(TOKEN), "kill", body(most)).await;
        assert_eq!(answer["code"], json!(200));
        let answer = house.call_as(Some(TOKEN), "kill", body(most + 1)).await;
        assert_eq!(answer["code"], json!(500));
        let said = answer["msg"].as_str().expect("a message");
        assert!(said.contains("longer than 5242880 bytes"), "{said}");
        house
    })
    .await;
}

#[tokio::test]
async fn unknown_paths_and_other_methods_are_answered_in_the_protocols_own_way() {
    at_the_doors(|house| async move {
        let answer = house.call("noSuchDoor", &Value::Null).await;
        assert_eq!(answer["code"], json!(500));
        let got = house.client().get(format!("{}/beat", house.url)).send().await.expect("one");
        assert_eq!(got.status().as_u16(), 200);
        let got: Value = got.json().await.expect("JSON");
        assert_eq!(got["code"], json!(500));
        house
    })
    .await;
}

#[tokio::test]
async fn a_payload_stands_under_both_names() {
    at_the_doors(|house| async move {
        let query = json!({ "logId": 404, "logDateTim": 1, "fromLineNum": 1 });
        let answer = house.call("log", &query).await;
        assert_eq!(answer["content"], answer["data"]);
        assert_eq!(answer["content"]["isEnd"], json!(true));
        assert_eq!(answer["content"]["toLineNum"], json!(0));
        house
    })
    .await;
}
