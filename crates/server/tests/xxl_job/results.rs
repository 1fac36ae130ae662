//! What admins are told, and what is kept until they are.

use std::path::Path;

use counterfoil_e2e::{Dialect, TestApp, on_every_database};
use counterfoil_server::config::Config;
use counterfoil_server::wiring;
use counterfoil_server::xxl_job::{Store, Trigger, Wait};
use serde_json::{Value, json};

use crate::admin::{FakeAdmin, Manner};
use crate::house::{ADDRESS, House, TOKEN, trigger};
use crate::knock;

fn kept(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("results")).expect("the folder").count()
}

on_every_database! {
    async fn an_admin_sees_a_rounds_result_and_its_log(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        knock::accept(&app.db, 1).await;
        let mut house = House::open(&app, folder.path(), FakeAdmin::start().await).await;
        let mut body = trigger(10, "SERIAL_EXECUTION");
        body["executorParams"] = json!("{\"maxTaskCount\":3}");
        body["broadcastTotal"] = json!(4);
        assert_eq!(house.code("run", &body).await, 200);
        house.begun().await;
        let query = json!({ "logId": 10, "logDateTim": 1, "fromLineNum": 1 });
        let part = house.call("log", &query).await["data"].clone();
        assert_eq!(part["isEnd"], json!(false));
        house.go_on.add_permits(1);
        let told = house.admin.next("callback").await;
        assert_eq!((told.token.as_str(), told.app.as_str()), (TOKEN, "counterfoil"));
        let item = &told.body[0];
        assert_eq!(item["logDateTim"], json!(1_788_000_000_000_i64));
        assert_eq!(item["logDateTime"], item["logDateTim"], "both spellings");
        assert_eq!((&item["logId"], &item["handleCode"]), (&json!(10), &json!(200)));
        house.waits.is_awaited(Wait::Tell).await;
        let part = house.call("log", &query).await["content"].clone();
        let text = part["logContent"].as_str().expect("text");
        let words = ["parameter {\"maxTaskCount\":3}", "broadcast 0 of 4", "begins", "code 200"];
        for word in words {
            assert!(text.contains(word), "{word} in {text}");
        }
        assert_eq!((&part["fromLineNum"], &part["toLineNum"]), (&json!(1), &json!(3)));
        let rest = json!({ "logId": 10, "fromLineNum": 4 });
        let rest = house.call("log", &rest).await["content"].clone();
        assert_eq!((&rest["isEnd"], &rest["logContent"]), (&json!(true), &json!("")));
        house.stop().await;
    }

    async fn a_failure_and_a_refused_parameter_are_code_500_and_say_why(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        knock::accept(&app.db, -1).await;
        let mut house = House::open(&app, folder.path(), FakeAdmin::start().await).await;
        let mut refused = trigger(9, "");
        refused["executorParams"] = json!("{\"taskCodez\":[]}");
        assert_eq!(house.code("run", &refused).await, 200);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (9, 500));
        assert_eq!(said, "the parameter has the unknown field taskCodez");
        assert_eq!(house.task().await, "0|0", "nothing ran");
        assert_eq!(house.run(10, "").await, 200);
        house.go_on.add_permits(1);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (10, 500));
        let summary: Value = serde_json::from_str(&said).expect("the summary");
        assert_eq!(summary["failed"], json!(1));
        assert_eq!(summary["errors"][0]["message"], json!("nobody opens"));
        house.stop().await;
    }

    async fn every_handler_of_the_service_is_called_by_its_name(app: TestApp) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().expect("a folder");
        counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let mut config = Config::default();
        config.signing.complete(&mut config.apps);
        let engine = wiring::engine(&app.db, &config, "http://127.0.0.1:9").expect("an engine");
        let handlers = engine.handlers();
        assert!(handlers.len() > 14, "{handlers:?}");
        let admin = FakeAdmin::start().await;
        let mut house = House::around(&app, folder.path(), admin, engine).await;
        for (log, handler) in (1..).zip(handlers) {
            let mut body = trigger(log, "");
            body["executorHandler"] = json!(handler);
            assert_eq!(house.code("run", &body).await, 200, "{handler}");
            let (told, code, said) = house.admin.result().await;
            assert_eq!((told, code), (log, 200), "{handler}: {said}");
            assert!(said.contains(handler), "{said}");
        }
        house.stop().await;
    }
}

/// Runs a sentence on SQLite: the database has no part in it.
async fn on_sqlite<F>(sentence: impl FnOnce(TestApp) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    counterfoil_e2e::run(Dialect::Sqlite, sentence).await;
}

#[tokio::test]
async fn a_result_that_no_admin_takes_is_kept_and_told_later() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let admin = FakeAdmin::start().await;
        admin.behave(Manner::Refuses);
        let mut house = House::open(&app, folder.path(), admin).await;
        assert_eq!(house.run(10, "").await, 200);
        house.admin.next("refused callback").await;
        house.waits.is_awaited(Wait::Tell).await;
        assert_eq!(kept(folder.path()), 1);
        // A process that is killed leaves it to the next one.
        let admin = house.kill().await;
        admin.behave(Manner::Accepts);
        let mut house = House::open(&app, folder.path(), admin).await;
        assert_eq!(house.admin.result().await.0, 10);
        house.stop().await;
        assert_eq!(kept(folder.path()), 0);
    })
    .await;
}

#[tokio::test]
async fn results_are_told_again_when_their_time_has_come() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let admin = FakeAdmin::start().await;
        admin.behave(Manner::Refuses);
        let mut house = House::open(&app, folder.path(), admin).await;
        assert_eq!(house.run(10, "").await, 200);
        house.admin.next("refused callback").await;
        house.waits.is_awaited(Wait::Tell).await;
        house.admin.behave(Manner::Accepts);
        house.waits.pass(Wait::Tell);
        assert_eq!(house.admin.result().await.0, 10);
        house.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_result_that_is_refused_alone_stands_in_no_others_way() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let admin = FakeAdmin::start().await;
        admin.behave(Manner::RefusesTrigger(10));
        let mut house = House::open(&app, folder.path(), admin).await;
        assert_eq!(house.run(10, "").await, 200);
        house.admin.next("refused callback").await;
        assert_eq!(house.run(11, "").await, 200);
        assert_eq!(house.admin.result().await.0, 11);
        house.stop().await;
        assert_eq!(kept(folder.path()), 1);
    })
    .await;
}

#[tokio::test]
async fn a_trigger_whose_process_died_is_told_as_failed_by_the_next_one() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a folder");
        let trigger: Trigger = serde_json::from_value(trigger(10, "")).expect("a trigger");
        store.accept(&trigger).expect("it is kept");
        drop(store);
        let mut house = House::open(&app, folder.path(), FakeAdmin::start().await).await;
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (10, 500));
        assert!(said.starts_with("the executor ended"), "{said}");
        house.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_executor_registers_with_the_first_admin_that_answers_every_time() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = House::open(&app, folder.path(), FakeAdmin::start().await).await;
        let expected = json!({
            "registryGroup": "EXECUTOR", "registryKey": "counterfoil", "registryValue": ADDRESS,
        });
        for _ in 0..3 {
            let told = house.admin.next("registry").await;
            assert_eq!((told.body, told.token.as_str()), (expected.clone(), TOKEN));
            house.waits.pass(Wait::Beat);
        }
        house.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_admin_that_wants_results_wrapped_gets_them_so_at_once_the_next_time() {
    on_sqlite(|app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let admin = FakeAdmin::start().await;
        admin.behave(Manner::WantsWrapped);
        let mut house = House::open(&app, folder.path(), admin).await;
        assert_eq!(house.run(10, "").await, 200);
        assert!(house.admin.next("refused callback").await.body.is_array());
        let told = house.admin.next("callback").await;
        assert_eq!(told.body["callbackList"][0]["logId"], json!(10));
        house.admin.behave(Manner::RefusesTrigger(0));
        assert_eq!(house.run(11, "").await, 200);
        let refused = house.admin.next("refused callback").await;
        assert!(refused.body.get("callbackList").is_some(), "it was remembered");
        house.stop().await;
    })
    .await;
}
