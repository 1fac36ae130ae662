//! Two real processes, each with a database of its own, talking signed HTTP on the loopback.

use std::time::Duration;

use chrono::TimeDelta;
use counterfoil_e2e::Dialect;
use counterfoil_e2e::two_sides::{
    BadLine, SetKillPlan, Side, TwoSides, TwoSidesPlan, kill_both_sides,
};

fn plan(centre: Dialect, hall: Dialect) -> TwoSidesPlan {
    TwoSidesPlan {
        binary: env!("CARGO_BIN_EXE_counterfoil").into(),
        centre,
        hall,
        clocks: (TimeDelta::zero(), TimeDelta::zero()),
        more: String::new(),
    }
}

fn answers(count: u32) -> impl Iterator<Item = (u32, String)> {
    (1..=count).map(|number| (number, format!("{{\"n\":{number},\"名\":\"值 0.10\",\"x\":0.10}}")))
}

async fn reconciles(plan: &TwoSidesPlan) {
    let mut sides = TwoSides::make(plan, async |port| port).await;
    sides.put(answers(120)).await;
    sides.start().await;
    let task = sides.create().await;
    assert_eq!(sides.ended(&task).await, "COMPLETED");
    sides.assert_agree().await;
    sides.put([(7, "{\"n\":\"newer\"}".to_owned())]).await;
    let forged = "UPDATE fc_answer_projection SET values_json = '[]' WHERE answer_uuid LIKE '%09'";
    sides.hall.execute(forged).await;
    let task = sides.create().await;
    let followed = sides.centre.says(&["reconcile", "show", "--follow", &task]).await;
    assert_eq!(followed["task"]["state"], "COMPLETED");
    let counts = &followed["task"]["counts"];
    for (name, count) in
        [("scanned", 120), ("equal", 118), ("stale", 1), ("hashConflict", 1), ("repaired", 2)]
    {
        assert_eq!(counts[name], count, "{name}: {counts}");
    }
    sides.assert_agree().await;
    let listed = sides.centre.says(&["reconcile", "list"]).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    sides.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_with_databases_of_different_kinds_agree_in_the_end() {
    reconciles(&plan(Dialect::MariaDb, Dialect::Postgres)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_embedded_databases_agree_in_the_end() {
    reconciles(&plan(Dialect::Sqlite, Dialect::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_are_minutes_apart_either_way_change_nothing() {
    for clocks in [(4, 0), (0, 4)] {
        let clocks = (TimeDelta::minutes(clocks.0), TimeDelta::minutes(clocks.1));
        reconciles(&TwoSidesPlan { clocks, ..plan(Dialect::Postgres, Dialect::MariaDb) }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_came_after_the_window_by_the_halls_own_clock_is_never_retired() {
    // The centre is four minutes ahead: by its clock the hall's newest row is long there.
    let clocks = (TimeDelta::minutes(4), TimeDelta::zero());
    let plan = TwoSidesPlan { clocks, ..plan(Dialect::MariaDb, Dialect::Postgres) };
    let mut sides = TwoSides::make(&plan, async |port| port).await;
    sides.put(answers(3)).await;
    let task = sides.create().await;
    let insert = |uuid: &str, created: &str| {
        format!(
            "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision,
               content_hash, values_json, projection_version, create_time)
             VALUES ('{uuid}', 'school-1', 'form-1', 1, 'x', '1', 1, '{created}')"
        )
    };
    let now = sides.hall.now().await;
    let (old, young) = (now - TimeDelta::minutes(10), now + TimeDelta::minutes(1));
    sides.hall.execute(&insert(&"a".repeat(32), &old.to_rfc3339())).await;
    sides.hall.execute(&insert(&"b".repeat(32), &young.to_rfc3339())).await;
    sides.start().await;
    assert_eq!(sides.ended(&task).await, "PARTIAL");
    let left = "SELECT answer_uuid FROM fc_answer_projection
                WHERE deleted = 0 AND content_hash = 'x'";
    assert_eq!(sides.hall.rows(left).await, ["b".repeat(32)]);
    sides.remove().await;
}

/// Refused, slow and cut connections, and requests that are sent twice: the work goes on, and the
/// second copy of a request is never let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_line_between_them_delays_and_changes_nothing() {
    let mut line = None;
    let between = async |port: u16| {
        let bad = BadLine::to(port, 15, 7).await;
        let own = bad.port;
        line = Some(bad);
        own
    };
    let mut sides = TwoSides::make(&plan(Dialect::MariaDb, Dialect::Postgres), between).await;
    sides.put(answers(900)).await;
    sides.start().await;
    let task = sides.create().await;
    assert_eq!(sides.ended(&task).await, "COMPLETED");
    sides.assert_agree().await;
    let report = line.unwrap().report();
    assert!(report.refused > 0 && report.cut > 0 && report.slow > 0, "{report:?}");
    assert!(!report.repeated.is_empty(), "{report:?}");
    for status in &report.repeated {
        assert_eq!(status, "HTTP/1.1 401 Unauthorized", "{report:?}");
    }
    sides.remove().await;
}

/// Ten kills of either process or both, at random moments, while both sides are written to.
/// The soak command runs any number: `cargo run -p counterfoil-e2e --bin soak -- --sets`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_kills_of_either_process_end_with_equal_sets() {
    let sides = plan(Dialect::MariaDb, Dialect::Postgres);
    let plan = SetKillPlan { sides, kills: 10, seed: 20_260_908, answers: 600 };
    let report = kill_both_sides(&plan).await;
    assert!(report.centre > 0 && report.hall > 0 && report.under_way > 0, "{report:?}");
}

/// Deliveries over a real RabbitMQ, also while the hall is dead: its queue keeps them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_over_rabbitmq_reach_the_hall_and_wait_for_it_when_it_is_dead() {
    let default = || "amqp://guest:guest@127.0.0.1:5672/%2f".to_owned();
    let url = std::env::var("COUNTERFOIL_TEST_RABBITMQ").unwrap_or_else(|_| default());
    // A hall's queue is called after the exchange: this test's own.
    let exchange = format!("counterfoil-test-{}", std::process::id());
    let more = format!("[answer-delivery]\namqp-url = \"{url}\"\nexchange = \"{exchange}\"\n");
    let plan = TwoSidesPlan { more, ..plan(Dialect::MariaDb, Dialect::Postgres) };
    let mut sides = TwoSides::make(&plan, async |port| port).await;
    sides.hall.start().await;
    // Nobody's queue is bound before the hall listens: until then, what is published comes back.
    let count = "SELECT COUNT(*) AS n FROM answer_delivery WHERE state = 'CONFIRMED'";
    sides.centre.start().await;
    let first: Vec<u32> = (1..=300).collect();
    for round in 0.. {
        assert!(round < 100, "{:?}", sides.centre.rows("SELECT * FROM answer_delivery").await);
        sides.put([(1, format!("{{\"round\":{round}}}"))]).await;
        if until(&sides.centre, count, "0", 10).await != "0" {
            break;
        }
    }
    sides.put(first.iter().map(|number| (*number, format!("{{\"n\":{number}}}")))).await;
    let held = "SELECT COUNT(*) AS n FROM fc_answer_projection WHERE deleted = 0";
    assert_eq!(reaches(&sides.hall, held, "300").await, "300");
    sides.hall.kill().await;
    sides.put((301..=400).map(|number| (number, "1".to_owned()))).await;
    let open = "SELECT COUNT(*) AS n FROM answer_delivery WHERE state = 'PENDING'";
    assert_eq!(reaches(&sides.centre, open, "0").await, "0");
    sides.hall.start().await;
    assert_eq!(reaches(&sides.hall, held, "400").await, "400");
    sides.assert_agree().await;
    let tasks = "SELECT COUNT(*) AS n FROM answer_reconcile_task";
    assert_eq!(sides.centre.rows(tasks).await, ["0"], "no reconciliation was needed");
    sides.remove().await;
}

/// The value of a query once it is `wanted`, or the last one after a minute.
async fn reaches(side: &Side, query: &str, wanted: &str) -> String {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let mut value = String::new();
    for _ in 0..600 {
        looks.tick().await;
        value = side.rows(query).await.concat();
        if value == wanted {
            break;
        }
    }
    value
}

/// The value of a query once it is no longer `known`, or the last one after so many looks.
async fn until(side: &Side, query: &str, known: &str, most: u32) -> String {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let mut value = String::new();
    for _ in 0..most {
        looks.tick().await;
        value = side.rows(query).await.concat();
        if value != known {
            break;
        }
    }
    value
}
