//! One clock decides, and it may jump (task-engine.md, "Clock").

use counterfoil_db::Instant;
use counterfoil_e2e::{TestApp, on_every_database};

use super::errand::{Desk, ERRAND, counts, engine, fail, observed};

async fn scan(app: &TestApp) -> [u32; 5] {
    counts(
        &observed(app)
            .0
            .round(ERRAND.handler, "")
            .await
            .expect("a round"),
    )
}

on_every_database! {
    async fn a_clock_that_jumps_back_makes_nobody_stale(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "task_status, update_time", &format!("1, {}", desk.minutes(0))).await;
        app.pass_minutes(-120);
        assert_eq!(scan(&app).await, [1, 0, 0, 1, 0]);
        app.pass_minutes(129);
        assert_eq!(scan(&app).await, [1, 0, 0, 1, 0]);
        app.pass_minutes(1);
        assert_eq!(scan(&app).await, [1, 1, 1, 0, 0]);
    }

    async fn a_clock_that_jumps_back_delays_what_was_due_and_loses_nothing(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        app.pass_minutes(-30);
        assert_eq!(scan(&app).await, [0; 5]);
        app.pass_minutes(30);
        let failing = engine(&app, |_, _| fail("no"));
        failing.round(ERRAND.handler, "").await.expect("a round");
        app.pass_minutes(-30);
        assert_eq!(scan(&app).await, [0; 5]);
        app.pass_minutes(40);
        assert_eq!(scan(&app).await, [1, 1, 1, 0, 0]);
    }

    async fn a_jump_forwards_makes_everything_due_and_dead_work_stale_once(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.by_hand(1, "next_execute_time", &desk.minutes(600)).await;
        desk.by_hand(2, "task_status, update_time", &format!("1, {}", desk.minutes(0))).await;
        app.pass_minutes(100_000);
        assert_eq!(scan(&app).await, [2, 2, 2, 0, 0]);
        assert_eq!(scan(&app).await, [0; 5]);
        assert_eq!(desk.logged("1 = 1").await, 2);
    }

    async fn an_instant_comes_back_as_it_was_written_to_the_microsecond(app: TestApp) {
        let desk = Desk::open(&app).await;
        for text in ["2026-09-08T02:00:00Z", "2026-09-08T02:00:00.123Z",
            "2026-09-08T02:00:00.123400Z", "2026-09-08T02:00:00.999999Z",
            "2026-12-31T23:59:59.000001Z"] {
            let instant: Instant = text.parse().expect("an instant");
            app.clock.advance(instant - app.now());
            desk.accept(1).await;
            assert_eq!(desk.due_in(1).await, Some(0), "{text}");
            let equal = format!("SELECT COUNT(*) FROM fi_async_task
                WHERE next_execute_time = {0} AND update_time = {0}", desk.minutes(0));
            assert_eq!(app.value(&equal).await, "1", "{text}: what a hand would write");
            desk.raw("DELETE FROM fi_async_task").await;
        }
    }
}
