//! Kill, time-out and SIGTERM: no attempt is burnt, and every trigger gets its result.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_server::xxl_job::Wait;
use serde_json::json;

use crate::admin::FakeAdmin;
use crate::house::{ADDRESS, House, trigger};
use crate::knock;

async fn running(app: &TestApp, folder: &std::path::Path, timeout: i64) -> House {
    knock::accept(&app.db, 1).await;
    let mut house = House::open(app, folder, FakeAdmin::start().await).await;
    let mut body = trigger(10, "SERIAL_EXECUTION");
    body["executorTimeout"] = json!(timeout);
    assert_eq!(house.code("run", &body).await, 200);
    assert_eq!(house.begun().await, 1);
    house
}

on_every_database! {
    async fn a_kill_ends_what_runs_and_what_waits_with_code_500(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = running(&app, folder.path(), 0).await;
        assert_eq!(house.run(11, "SERIAL_EXECUTION").await, 200);
        assert_eq!(house.code("kill", &json!({ "jobId": 1 })).await, 200);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code, said.as_str()), (11, 500, "not executed: killed"));
        house.go_on.add_permits(1);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (10, 500));
        assert!(said.starts_with("killed; "), "{said}");
        assert_eq!(house.task().await, "0|0", "handed back, nothing counted");
        house.stop().await;
    }

    async fn a_round_out_of_time_stops_at_its_next_batch_with_code_502(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = running(&app, folder.path(), 60).await;
        house.waits.pass(Wait::Timeout);
        // It is asked to stop before it goes on, or it would just succeed.
        house.waits.is_awaited(Wait::Stop).await;
        house.go_on.add_permits(1);
        let (log, code, _) = house.admin.result().await;
        assert_eq!((log, code), (10, 502));
        assert_eq!(house.task().await, "0|0");
        house.stop().await;
    }

    async fn a_round_that_does_not_stop_is_dropped_as_if_its_process_had_died(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = running(&app, folder.path(), 60).await;
        house.waits.pass(Wait::Timeout);
        house.waits.pass(Wait::Stop);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (10, 502));
        assert!(said.contains("was dropped"), "{said}");
        assert_eq!(house.task().await, "1|0", "it is taken over when it is stale");
        // The job is free again.
        assert_eq!(house.code("idleBeat", &json!({ "jobId": 1 })).await, 200);
        app.pass_minutes(11);
        assert_eq!(house.run(11, "SERIAL_EXECUTION").await, 200);
        assert_eq!(house.begun().await, 1);
        house.go_on.add_permits(1);
        assert_eq!(house.admin.result().await.1, 200);
        house.stop().await;
    }

    async fn an_executor_that_ends_leaves_the_registry_and_tells_what_it_had(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = running(&app, folder.path(), 0).await;
        assert_eq!(house.run(11, "SERIAL_EXECUTION").await, 200);
        let first = house.admin.next("registry").await;
        assert_eq!(first.body["registryValue"], json!(ADDRESS));
        house.waits.pass(Wait::Stop);
        let mut admin = house.stop().await;
        let removed = admin.next("registryRemove").await;
        assert_eq!(removed.body, first.body, "the same to the byte");
        let told = admin.next("callback").await;
        let told = told.body.as_array().expect("a list").iter();
        let code = |item: &serde_json::Value| (item["logId"].clone(), item["handleCode"].clone());
        let mut told: Vec<_> = told.map(code).collect();
        told.sort_by_key(|(log, _)| log.as_i64());
        assert_eq!(told, [(json!(10), json!(500)), (json!(11), json!(500))]);
        assert_eq!(std::fs::read_dir(folder.path().join("results")).expect("it").count(), 0);
    }
}
