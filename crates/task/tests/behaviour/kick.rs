//! Kicks (task-engine.md, "Kick"): a hint after the commit that a task is ready. A lost kick never
//! loses the task.

use std::sync::Arc;

use counterfoil_db::{Dialect, Query, Read};
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{
    Engine, EngineSettings, KickSettings, Kicker, Shutdown, accept_or_reuse, listen,
};

use super::errand::{Desk, ERRAND, Errands, counts, engine, observed, seed, succeed, until};

async fn accept(app: &TestApp, kicker: &Kicker, id: i64) {
    let mut tx = app.db.begin().await.expect("a transaction");
    accept_or_reuse(&mut tx, &seed(id), kicker).await.expect("an acceptance");
    tx.commit("test.accept").await.expect("a commit");
}

fn pool() -> Kicker {
    Kicker::pool(KickSettings::default())
}

fn kicked_engine(app: &TestApp, kicker: &Kicker) -> Arc<Engine> {
    let engine = Engine::new(app.db.clone(), EngineSettings::default());
    Arc::new(engine.with(Errands::doing(succeed)).with_kicker(kicker.clone()))
}

/// Works the pool off: returns when no hint waits and nobody works any more.
async fn work_off(app: &TestApp, kicker: &Kicker) {
    let (handle, shutdown) = Shutdown::new();
    let serving = tokio::spawn(kicked_engine(app, kicker).serve_kicks(shutdown));
    until("no hint waits", || async { kicker.waiting() == 0 }).await;
    handle.ask();
    serving.await.expect("a pool");
}

/// Until somebody listens whose server process is not that of `before`; answers which is.
async fn until_it_listens(app: &TestApp, before: i64) -> i64 {
    let query = format!(
        "SELECT COALESCE(MAX(pid), 0) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> {before}"
    );
    let listener = || async { app.db.count(Query::built(query.clone())).await.expect("a count") };
    until("the other listens", || async { listener().await != 0 }).await;
    listener().await
}

on_every_database! {
    async fn a_kicked_task_runs_without_a_scan(app: TestApp) {
        let desk = Desk::open(&app).await;
        let kicker = pool();
        let (handle, shutdown) = Shutdown::new();
        let serving = tokio::spawn(kicked_engine(&app, &kicker).serve_kicks(shutdown));
        for id in 1..=10 {
            accept(&app, &kicker, id).await;
        }
        until("all ten ran", || async { desk.logged("1 = 1").await == 10 }).await;
        until("all ten are SUCCESS", || async {
            app.value("SELECT COUNT(*) FROM fi_async_task WHERE task_status = 2").await == "10"
        }).await;
        handle.ask();
        serving.await.expect("a pool");
        accept(&app, &kicker, 11).await;
        assert_eq!((kicker.waiting(), kicker.dropped()), (0, 1), "the pool is closed");
        assert_eq!(desk.state(11).await, "0|0|0|NULL", "the scan will find it");
    }

    async fn a_kick_fires_after_the_commit_and_never_for_what_was_rolled_back(app: TestApp) {
        let kicker = pool();
        let mut tx = app.db.begin().await.expect("a transaction");
        accept_or_reuse(&mut tx, &seed(1), &kicker).await.expect("an acceptance");
        assert_eq!(kicker.waiting(), 0);
        tx.rollback().await.expect("a rollback");
        assert_eq!(kicker.waiting(), 0);
        accept(&app, &kicker, 1).await;
        assert_eq!(kicker.waiting(), 1);
    }

    async fn hints_of_one_task_wait_once(app: TestApp) {
        let kicker = pool();
        for id in [1, 1, 2, 1, 2] {
            accept(&app, &kicker, id).await;
        }
        assert_eq!((kicker.waiting(), kicker.dropped()), (2, 0));
    }

    async fn a_full_queue_drops_hints_and_the_scan_finds_their_tasks(app: TestApp) {
        let desk = Desk::open(&app).await;
        let kicker = Kicker::pool(KickSettings { queue: 2, ..KickSettings::default() });
        for id in 1..=5 {
            accept(&app, &kicker, id).await;
        }
        assert_eq!((kicker.waiting(), kicker.dropped()), (2, 3));
        work_off(&app, &kicker).await;
        assert_eq!(desk.logged("errand_id IN (1, 2)").await, 2);
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 3, 3, 0, 0]);
    }

    async fn a_stage_that_is_off_or_at_gray_zero_is_not_kicked(app: TestApp) {
        let stage = || ERRAND.stage.to_owned();
        let off = KickSettings { disabled_stages: [stage()].into(), ..KickSettings::default() };
        let gray = |percent| KickSettings {
            gray_percent: [(stage(), percent)].into(),
            queue: 1_000,
            ..KickSettings::default()
        };
        let mut next = 0;
        for (settings, expected) in
            [(off, 0..=0), (gray(0), 0..=0), (gray(100), 100..=100), (gray(50), 25..=75)]
        {
            let kicker = Kicker::pool(settings);
            for _ in 0..100 {
                next += 1;
                accept(&app, &kicker, next).await;
            }
            assert!(expected.contains(&kicker.waiting()), "{}", kicker.waiting());
            assert_eq!(kicker.dropped(), 0);
        }
    }

    async fn reusing_an_ended_task_kicks_nothing_and_an_open_one_does(app: TestApp) {
        let desk = Desk::open(&app).await;
        for (status, hints) in [(0, 1), (1, 1), (2, 0), (3, 1), (4, 0)] {
            desk.raw("DELETE FROM fi_async_task").await;
            desk.by_hand(1, "task_status", &status.to_string()).await;
            let kicker = pool();
            accept(&app, &kicker, 1).await;
            assert_eq!(kicker.waiting(), hints, "{status}");
        }
    }

    async fn a_kicked_task_takes_the_ordinary_claim(app: TestApp) {
        let desk = Desk::open(&app).await;
        let live = format!("1, 0, {}, {}", desk.minutes(-1), desk.minutes(-9));
        let rows = [
            (1, format!("0, 0, {}, {}", desk.minutes(1), desk.minutes(0))),
            (2, format!("3, 3, {}, {}", desk.minutes(-1), desk.minutes(0))),
            (3, live),
        ];
        let mut before = Vec::new();
        for (id, values) in rows {
            let columns = "task_status, retry_count, next_execute_time, update_time";
            desk.by_hand(id, columns, &values).await;
            before.push(desk.row(id).await);
        }
        let kicker = pool();
        for id in 1..=4 {
            accept(&app, &kicker, id).await;
        }
        assert_eq!(kicker.waiting(), 4);
        work_off(&app, &kicker).await;
        for (id, before) in (1..=3).zip(before) {
            assert_eq!(desk.row(id).await, before);
        }
        assert_eq!(desk.state(4).await, "2|0|1|NULL");
    }

    async fn a_round_without_a_pool_drops_the_kicks_raised_in_it(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        let engine = engine(&app, |id, run| Box::pin(async move {
            let mut tx = run.begin().await?;
            tx.accept(&seed(id + 1)).await?;
            tx.succeed("errand.hand_over").await
        }));
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
        assert_eq!(engine.kicker().waiting(), 0);
        assert_eq!(desk.state(2).await, "0|0|0|NULL", "the next step can be watched");
    }

    async fn a_kick_reaches_another_process_where_the_database_can_tell_it(app: TestApp) {
        if app.db.dialect() != Dialect::Postgres {
            return;
        }
        let desk = Desk::open(&app).await;
        let other = app.second_process().await;
        let (own_kicker, other_kicker) = (pool(), pool());
        let engine = kicked_engine(&other, &other_kicker);
        let (handle, shutdown) = Shutdown::new();
        let serving = tokio::spawn(engine.clone().serve_kicks(shutdown.clone()));
        let listening = tokio::spawn(listen(engine, other.db.clone(), shutdown));
        until_it_listens(&app, 0).await;
        accept(&app, &own_kicker, 1).await;
        until("the other ran it", || async { desk.state(1).await == "2|0|1|NULL" }).await;
        assert_eq!(own_kicker.waiting(), 1, "our own hint is ours alone");
        handle.ask();
        serving.await.expect("a pool");
        listening.await.expect("a listener");
        other.db.close().await;
    }

    async fn kicks_are_heard_again_after_the_connection_was_lost(app: TestApp) {
        if app.db.dialect() != Dialect::Postgres {
            return;
        }
        let desk = Desk::open(&app).await;
        let other = app.second_process().await;
        let (own_kicker, other_kicker) = (pool(), pool());
        let engine = kicked_engine(&other, &other_kicker);
        let (handle, shutdown) = Shutdown::new();
        let serving = tokio::spawn(engine.clone().serve_kicks(shutdown.clone()));
        let listening = tokio::spawn(listen(engine, other.db.clone(), shutdown));
        let mut listener = 0;
        for id in 1..=3 {
            if listener != 0 {
                app.lines(&format!("SELECT pg_terminate_backend({listener}) AS cut")).await;
            }
            listener = until_it_listens(&app, listener).await;
            accept(&app, &own_kicker, id).await;
            until("the other ran it", || async { desk.state(id).await == "2|0|1|NULL" }).await;
        }
        handle.ask();
        serving.await.expect("a pool");
        listening.await.expect("a listener");
        other.db.close().await;
    }
}
