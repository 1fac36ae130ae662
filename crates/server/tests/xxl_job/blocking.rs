//! One queue a job, and the three ways of meeting a busy one.

use counterfoil_e2e::{TestApp, on_every_database};
use serde_json::json;

use crate::admin::FakeAdmin;
use crate::house::{House, trigger};
use crate::knock;

async fn busy(app: &TestApp, folder: &std::path::Path) -> House {
    knock::accept(&app.db, 1).await;
    let mut house = House::open(app, folder, FakeAdmin::start().await).await;
    assert_eq!(house.run(10, "SERIAL_EXECUTION").await, 200);
    assert_eq!(house.begun().await, 1);
    house
}

on_every_database! {
    async fn a_trigger_of_a_busy_job_waits_or_is_refused(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = busy(&app, folder.path()).await;
        assert_eq!(house.code("idleBeat", &json!({ "jobId": 1 })).await, 500);
        assert_eq!(house.code("idleBeat", &json!({ "jobId": 2 })).await, 200);
        assert_eq!(house.run(11, "SERIAL_EXECUTION").await, 200);
        assert_eq!(house.run(12, "DISCARD_LATER").await, 500);
        // Both run and wait under their numbers: an admin that asks again is told so.
        assert_eq!(house.run(10, "SERIAL_EXECUTION").await, 500);
        assert_eq!(house.run(11, "COVER_EARLY").await, 500);
        house.go_on.add_permits(1);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (10, 200));
        assert!(said.contains("\"succeeded\":1"), "{said}");
        // The one that waited finds nothing to do any more; the refused one is never heard of.
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (11, 200));
        assert!(said.contains("\"selected\":0"), "{said}");
        house.stop().await;
    }

    async fn a_trigger_that_covers_stops_the_running_one_and_those_that_wait(app: TestApp) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut house = busy(&app, folder.path()).await;
        assert_eq!(house.run(11, "SERIAL_EXECUTION").await, 200);
        assert_eq!(house.code("trigger", &trigger(12, "COVER_EARLY")).await, 200);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (11, 500));
        assert!(said.starts_with("not executed"), "{said}");
        // The running one hands its task back at the next batch; the later one takes it again.
        house.go_on.add_permits(2);
        let (log, code, _) = house.admin.result().await;
        assert_eq!((log, code), (10, 500));
        assert_eq!(house.begun().await, 1);
        let (log, code, said) = house.admin.result().await;
        assert_eq!((log, code), (12, 200));
        assert!(said.contains("\"succeeded\":1"), "{said}");
        assert_eq!(house.task().await, "2|0");
        house.stop().await;
    }
}
