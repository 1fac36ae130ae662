//! One task's trouble never ends the round for the others; a lost database does (task-engine.md,
//! "Running, failing, fencing").

use counterfoil_db::{Dialect, Query, Read};
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_task::{RoundError, WorkError};

use super::errand::{Desk, ERRAND, code, counts, engine, fail, log, observed, succeed};

/// Makes the database refuse an update of a task's row.
async fn refuse_updates(desk: Desk<'_>, when: &str) {
    match desk.0.db.dialect() {
        Dialect::Sqlite => {
            desk.raw(&format!(
                "CREATE TRIGGER refusal BEFORE UPDATE ON fi_async_task WHEN {when}
                 BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
            ))
            .await;
        }
        Dialect::Postgres => {
            desk.raw(&format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF {when} THEN RAISE EXCEPTION 'refused by the test'; END IF;
                 RETURN NEW; END $$"
            ))
            .await;
            desk.raw(
                "CREATE TRIGGER refusal BEFORE UPDATE ON fi_async_task
                 FOR EACH ROW EXECUTE FUNCTION refuse()",
            )
            .await;
        }
        Dialect::MariaDb => {
            desk.raw(&format!(
                "CREATE TRIGGER refusal BEFORE UPDATE ON fi_async_task FOR EACH ROW
                 IF {when} THEN
                   SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the test';
                 END IF"
            ))
            .await;
        }
    }
}

async fn allow_updates(desk: Desk<'_>) {
    let on = match desk.0.db.dialect() {
        Dialect::Postgres => " ON fi_async_task",
        _ => "",
    };
    desk.raw(&format!("DROP TRIGGER refusal{on}")).await;
}

/// The server ends every other connection to this database.
async fn cut_connections(app: &TestApp) {
    let other = app.second_process().await;
    match app.db.dialect() {
        Dialect::Sqlite => {}
        Dialect::Postgres => {
            let cut = "SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            other.lines(cut).await;
        }
        Dialect::MariaDb => {
            let ids = "SELECT id FROM information_schema.processlist
                WHERE db = DATABASE() AND id <> CONNECTION_ID()";
            for id in other.lines(ids).await {
                Desk(&other).raw(&format!("KILL {id}")).await;
            }
        }
    }
    other.db.close().await;
}

on_every_database! {
    async fn a_claim_that_errs_is_named_and_the_others_run(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let before = desk.row(2).await;
        let claim_of_two = "OLD.task_status = 0 AND NEW.task_status = 1
            AND NEW.business_key = 'ERRAND:2'";
        refuse_updates(desk, claim_of_two).await;
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 2, 2, 0, 1]);
        assert_eq!(summary.errors.len(), 1);
        assert_eq!(summary.errors[0].task_code, code(2).to_string());
        assert!(!summary.is_success());
        assert_eq!(desk.row(2).await, before, "nothing counted, nothing changed");
        allow_updates(desk).await;
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
    }

    async fn a_failure_that_cannot_be_written_is_named_and_the_others_run(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        refuse_updates(desk, "NEW.task_status = 3").await;
        let failing = || engine(&app, |id, run| match id {
            2 => fail("the true reason"),
            _ => succeed(id, run),
        });
        let summary = failing().round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 3, 2, 0, 1]);
        let of_two = code(2).to_string();
        assert!(summary.errors.iter().all(|trouble| trouble.task_code == of_two));
        let said: Vec<&str> = summary.errors.iter().map(|e| e.message.as_str()).collect();
        assert!(said.join("\n").contains("the true reason"), "{said:?}");
        assert!(said.join("\n").contains("could not be written"), "{said:?}");
        assert_eq!(desk.state(2).await, "1|0|1|NULL", "it will be stale");
        allow_updates(desk).await;
        app.pass_minutes(10);
        failing().round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(desk.state(2).await, "3|1|2|the true reason");
    }

    async fn a_hand_back_that_cannot_be_written_is_a_failure_of_the_round(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        refuse_updates(desk, "NEW.task_status = 0").await;
        let engine = engine(&app, |_, _| Box::pin(async { Err(WorkError::Stopping) }));
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 0, 0, 1]);
        assert_eq!(summary.errors[0].task_code, code(1).to_string());
    }

    async fn a_statement_the_database_refuses_fails_its_task_only(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let engine = engine(&app, |id, run| Box::pin(async move {
            let mut tx = run.begin().await?;
            if id == 2 {
                tx.execute(Query::new("UPDATE no_such_table SET x = 1")).await?;
            }
            log(&mut tx, id, 1).await?;
            tx.succeed("errand.done").await
        }));
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 3, 2, 0, 1]);
        assert!(desk.state(2).await.starts_with("3|1|1|"));
        assert!(desk.state(2).await.contains("no_such_table"));
    }

    async fn work_that_panics_is_a_lost_attempt_and_the_others_run(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let engine = engine(&app, |id, run| Box::pin(async move {
            let mut tx = run.begin().await?;
            log(&mut tx, id, 1).await?;
            assert_ne!(id, 2, "on purpose");
            tx.succeed("errand.done").await
        }));
        let summary = engine.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [3, 3, 2, 0, 1]);
        assert_eq!(summary.errors[0].task_code, code(2).to_string());
        assert_eq!(desk.state(2).await, "1|0|1|NULL");
        assert_eq!(desk.logged("errand_id = 2").await, 0);
        app.pass_minutes(10);
        let summary = observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0]);
    }

    async fn a_lost_database_ends_the_round_which_says_what_it_had_done(app: TestApp) {
        let desk = Desk::open(&app).await;
        for id in 1..=3 {
            desk.accept(id).await;
        }
        let engine = engine(&app, |id, run| Box::pin(async move {
            if id == 2 {
                run.db().close().await;
            }
            succeed(id, run).await
        }));
        let lost = engine.round(ERRAND.handler, "").await;
        let Err(RoundError::Lost { done, .. }) = lost else {
            panic!("{lost:?}");
        };
        assert_eq!(counts(&done), [3, 2, 1, 0, 0]);
        let other = app.second_process().await;
        let desk = Desk(&other);
        assert_eq!(desk.state(1).await, "2|0|1|NULL");
        assert_eq!(desk.state(2).await, "1|0|1|NULL");
        assert_eq!(desk.state(3).await, "0|0|0|NULL");
        other.db.close().await;
    }

    async fn a_database_that_is_lost_before_the_round_is_an_error(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        app.db.close().await;
        let lost = observed(&app).0.round(ERRAND.handler, "").await;
        assert!(matches!(lost, Err(RoundError::Lost { .. })), "{lost:?}");
    }

    async fn a_connection_cut_by_the_server_is_no_verdict_on_the_task(app: TestApp) {
        if app.db.dialect() == Dialect::Sqlite {
            return; // no server
        }
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        let inner = app.clone();
        let engine = engine(&app, move |id, run| {
            let app = inner.clone();
            Box::pin(async move {
                let mut tx = run.begin().await?;
                cut_connections(&app).await;
                log(&mut tx, id, 1).await?;
                tx.succeed("errand.done").await
            })
        });
        let lost = engine.round(ERRAND.handler, "").await;
        assert!(matches!(lost, Err(RoundError::Lost { .. })), "{lost:?}");
        let other = app.second_process().await;
        assert_eq!(Desk(&other).state(1).await, "1|0|1|NULL");
        other.db.close().await;
    }
}
