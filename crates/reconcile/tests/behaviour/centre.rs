//! The centre: which tasks there are, what their manifests hold, and what reports make of them.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_reconcile::form_centre::create::{self, WishScope};
use counterfoil_reconcile::form_centre::dispatch::cancel;
use counterfoil_reconcile::form_centre::grant::{self, Rights};
use counterfoil_reconcile::form_centre::{authority, manifest, report};
use counterfoil_reconcile::refusal::Code;
use counterfoil_reconcile::wire::{Coordinate, Counts, Decision, Question, Report};

use super::pair::{HALL, Pair, at, uuid};

async fn five(app: TestApp) -> Pair {
    let pair = Pair::new(app).await;
    for number in 1..=5 {
        pair.answer(number, Some("{}")).await;
    }
    pair
}

async fn made(pair: &Pair) -> create::Made {
    let wish = pair.wish(WishScope::Form);
    let made = create::create(&pair.app.db, &pair.centre_settings, &wish, "test").await;
    made.unwrap().remove(0)
}

fn report_of(task: &str, attempt: i64, state: &str) -> Report {
    Report {
        task_id: task.into(),
        attempt,
        state: state.into(),
        manifest_complete: true,
        local_completed: true,
        counts: Counts { scanned: 5, ..Counts::default() },
        unresolved: 0,
        errors: Vec::new(),
        consumer_app_key: HALL.into(),
    }
}

async fn say(pair: &Pair, report: &Report) -> Result<(Decision, Option<String>), Code> {
    let (db, settings) = (&pair.app.db, &pair.centre_settings);
    match report::receive(db, settings, &report.task_id, HALL, report).await {
        Ok(ack) => Ok((ack.decision, ack.result_state)),
        Err(refusal) => Err(refusal.refused().unwrap()),
    }
}

on_every_database! {
    async fn a_task_that_is_refused_is_a_row_that_says_why_and_is_never_dispatched(app: TestApp) {
        let mut pair = five(app).await;
        grant::set(&pair.app.db, &at(None), Rights { read: false, ..Rights::ALL }).await.unwrap();
        assert_eq!(made(&pair).await.reason_code, Some("GRANT_REVOKED"));
        grant::set(&pair.app.db, &at(None), Rights::ALL).await.unwrap();
        grant::scope(&pair.app.db, HALL, "school-1", false).await.unwrap();
        assert_eq!(made(&pair).await.reason_code, Some("SCOPE_MISMATCH"));
        grant::scope(&pair.app.db, HALL, "school-1", true).await.unwrap();
        pair.centre_settings.max_rows = 4;
        let refused = made(&pair).await;
        assert_eq!(refused.reason_code, Some("RESOURCE_LIMIT"));
        assert!(refused.reason.unwrap().contains("5 rows, at most 4"));
        let rows = pair
            .app
            .lines("SELECT state, manifest_state FROM answer_reconcile_task ORDER BY id")
            .await;
        assert_eq!(rows, ["FAILED|FAILED"; 3]);
        assert_eq!(pair.dispatch().await.selected, 0);
        assert_eq!(pair.app.lines("SELECT id FROM answer_reconcile_work").await, [""; 0]);
    }

    async fn an_epoch_rises_with_every_change_and_only_with_a_change(app: TestApp) {
        let pair = five(app).await;
        let epoch = || async { grant::set(&pair.app.db, &at(None), Rights::ALL).await.unwrap() };
        let first = epoch().await;
        assert_eq!(epoch().await, first);
        grant::set(&pair.app.db, &at(None), Rights::NONE).await.unwrap();
        assert_eq!(epoch().await, first + 2);
        grant::scope(&pair.app.db, HALL, "school-1", true).await.unwrap();
        assert_eq!(epoch().await, first + 2);
        grant::scope(&pair.app.db, HALL, "school-1", false).await.unwrap();
        assert_eq!(epoch().await, first + 3);
    }

    async fn all_is_split_by_grant_and_the_longest_unreconciled_go_first(app: TestApp) {
        let mut pair = five(app).await;
        for form in ["form-2", "form-3"] {
            let other = Coordinate { form: form.into(), ..at(None) };
            grant::set(&pair.app.db, &other, Rights::ALL).await.unwrap();
        }
        pair.centre_settings.max_tasks_per_run = 2;
        let wish = create::Wish { school: None, form: None, ..pair.wish(WishScope::All) };
        for _ in 0..2 {
            create::create(&pair.app.db, &pair.centre_settings, &wish, "test").await.unwrap();
        }
        let forms =
            pair.app.lines("SELECT form_uuid FROM answer_reconcile_task ORDER BY id").await;
        assert_eq!(forms, ["form-1", "form-2", "form-3", "form-1"]);
    }

    async fn the_schedule_makes_each_days_tasks_once(app: TestApp) {
        let mut pair = five(app).await;
        let round = |pair: Pair| async move {
            let engine = pair.centre_engine();
            engine.round("answerReconcileScheduleTask", "").await.unwrap().succeeded
        };
        assert_eq!(round(pair.clone()).await, 1);
        assert_eq!(round(pair.clone()).await, 0);
        pair.pass(24 * 3600);
        assert_eq!(round(pair.clone()).await, 1);
        pair.centre_settings.schedule_enabled = false;
        pair.pass(24 * 3600);
        assert_eq!(round(pair.clone()).await, 0);
        let keys = pair
            .app
            .lines("SELECT trigger_type, schedule_key FROM answer_reconcile_task ORDER BY id")
            .await;
        assert_eq!(keys[0], "SCHEDULED|20260908:100018:school-1:form-1");
        assert_eq!(keys.len(), 2);
    }

    async fn a_manifest_is_frozen_paged_by_key_and_ends_with_completed_only(app: TestApp) {
        let pair = five(app).await;
        pair.answer(3, None).await;
        let task = pair.task().await;
        let page = |cursor: Option<String>, size| {
            let (pair, task) = (pair.clone(), task.clone());
            async move {
                let (db, settings) = (&pair.app.db, &pair.centre_settings);
                manifest::page(db, settings, &task, HALL, cursor.as_deref(), Some(size)).await
            }
        };
        let early = page(None, 2).await.unwrap_err();
        assert_eq!(early.refused(), Some(Code::ManifestIncomplete));
        pair.dispatch().await;
        pair.answer(4, Some("{\"later\":1}")).await;
        pair.answer(6, Some("{}")).await;
        let first = page(None, 2).await.unwrap();
        assert_eq!((first.completed, first.total_rows, first.total_pages), (false, 5, 1));
        assert_eq!(first.next_cursor, Some(uuid(2)));
        let second = page(first.next_cursor, 3).await.unwrap();
        assert!(second.completed && second.next_cursor.is_none());
        let rows: Vec<_> = second.rows.iter().map(|r| (r.revision, r.is_deleted)).collect();
        assert_eq!(rows, [(2, true), (1, false), (1, false)]);
        let wrong = page(Some("xyz".into()), 2).await.unwrap_err();
        assert_eq!(wrong.refused(), Some(Code::CursorInvalid));
        let (db, settings) = (&pair.app.db, &pair.centre_settings);
        let stranger = manifest::page(db, settings, &task, "stranger", None, None).await;
        assert_eq!(stranger.unwrap_err().refused(), Some(Code::IdentityMismatch));
        let unknown = manifest::page(db, settings, "none", HALL, None, None).await;
        assert_eq!(unknown.unwrap_err().refused(), Some(Code::TaskNotFound));
    }

    async fn an_answer_without_a_hash_fails_the_task_and_is_named(app: TestApp) {
        let pair = five(app).await;
        pair.app
            .execute("UPDATE answer SET values_json = '{\"n\":9007199254740993}' WHERE version = 1")
            .await;
        let task = pair.task().await;
        pair.dispatch().await;
        assert_eq!(pair.state(&task).await, "FAILED");
        let why = pair.app.value("SELECT reason_code, reason FROM answer_reconcile_task").await;
        let named = format!("ANSWER_UNHASHABLE|answer {}: /values/n", uuid(1));
        assert!(why.starts_with(&named), "{why}");
        assert_eq!(pair.app.lines("SELECT id FROM answer_reconcile_manifest_row").await, [""; 0]);
    }

    async fn of_two_tasks_of_a_consumer_one_is_in_flight(app: TestApp) {
        let pair = five(app).await;
        let (first, second) = (pair.task().await, pair.task().await);
        let mut both = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let pair = pair.clone();
            both.spawn(async move { pair.dispatch().await });
        }
        both.join_all().await;
        assert_eq!(pair.state(&first).await, "DISPATCHED");
        assert_eq!(pair.state(&second).await, "QUEUED");
        pair.work().await;
        pair.run().await;
        assert_eq!(pair.state(&second).await, "COMPLETED");
    }

    async fn a_hall_that_is_silent_is_asked_again_a_bounded_number_of_times(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        for pause in [60, 120, 240] {
            pair.pass(901);
            pair.dispatch().await;
            assert_eq!(pair.state(&task).await, "QUEUED");
            pair.pass(pause - 1);
            assert_eq!(pair.dispatch().await.selected, 0);
            pair.pass(1);
            pair.dispatch().await;
            assert_eq!(pair.state(&task).await, "DISPATCHED");
        }
        pair.pass(901);
        pair.dispatch().await;
        let row = "SELECT state, reason_code, attempt, active_consumer_key
                   FROM answer_reconcile_task";
        assert_eq!(pair.app.value(row).await, "FAILED|LEASE_EXPIRED|4|NULL");
    }

    async fn a_hall_that_refuses_is_asked_again_and_then_the_task_fails(app: TestApp) {
        let mut pair = five(app).await;
        pair.hall_settings.app_key = "somebody else".into();
        let task = pair.task().await;
        for pause in [0, 60, 120, 240] {
            pair.pass(pause);
            pair.dispatch().await;
        }
        assert_eq!(pair.state(&task).await, "FAILED");
        let row = "SELECT reason_code, attempt FROM answer_reconcile_task";
        assert_eq!(pair.app.value(row).await, "IDENTITY_MISMATCH|4");
    }

    async fn reports_are_decided_in_the_contracts_order(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let ahead = say(&pair, &report_of(&task, 2, "COMPLETED")).await;
        assert_eq!(ahead, Err(Code::AttemptAhead));
        assert_eq!(say(&pair, &report_of(&task, 1, "DONE")).await, Err(Code::ResultStateInvalid));
        for broken in [
            Report { unresolved: 1, ..report_of(&task, 1, "COMPLETED") },
            Report { local_completed: false, ..report_of(&task, 1, "COMPLETED") },
            Report { manifest_complete: false, ..report_of(&task, 1, "COMPLETED") },
        ] {
            assert_eq!(say(&pair, &broken).await, Err(Code::ResultStateInvalid));
        }
        let accepted = |state: &str| Ok((Decision::CurrentAccepted, Some(state.to_owned())));
        assert_eq!(say(&pair, &report_of(&task, 1, "RUNNING")).await, accepted("RUNNING"));
        assert_eq!(pair.state(&task).await, "RUNNING");
        let counts = "SELECT counts FROM answer_reconcile_task";
        assert_eq!(pair.app.value(counts).await, "NULL");
        pair.pass(901);
        pair.dispatch().await;
        assert_eq!(pair.state(&task).await, "QUEUED");
        assert_eq!(say(&pair, &report_of(&task, 1, "RUNNING")).await, accepted("RUNNING"));
        pair.pass(901);
        pair.dispatch().await;
        pair.pass(60);
        pair.dispatch().await;
        let stale = say(&pair, &report_of(&task, 1, "COMPLETED")).await;
        assert_eq!(stale, Ok((Decision::StaleRetry, None)));
        assert_eq!(say(&pair, &report_of(&task, 2, "PARTIAL")).await, accepted("PARTIAL"));
        for late in ["COMPLETED", "RUNNING", "PARTIAL"] {
            let duplicate = say(&pair, &report_of(&task, 2, late)).await;
            assert_eq!(duplicate, Ok((Decision::CurrentDuplicate, Some("PARTIAL".into()))));
        }
        let terminal = say(&pair, &report_of(&task, 1, "COMPLETED")).await;
        assert_eq!(terminal, Ok((Decision::CenterTerminal, Some("PARTIAL".into()))));
        assert_eq!(pair.state(&task).await, "PARTIAL");
    }

    async fn a_foreign_report_changes_nothing_and_a_revoked_one_cancels(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let (db, settings) = (&pair.app.db, &pair.centre_settings);
        let right = report_of(&task, 1, "COMPLETED");
        let foreign = report::receive(db, settings, &task, "stranger", &right).await;
        assert_eq!(foreign.unwrap_err().refused(), Some(Code::IdentityMismatch));
        let claims = Report { consumer_app_key: "stranger".into(), ..right.clone() };
        assert_eq!(say(&pair, &claims).await, Err(Code::IdentityMismatch));
        assert_eq!(pair.state(&task).await, "DISPATCHED");
        grant::set(&pair.app.db, &at(None), Rights::NONE).await.unwrap();
        let cancelled = say(&pair, &right).await;
        assert_eq!(cancelled, Ok((Decision::CenterTerminal, Some("CANCELLED".into()))));
        assert_eq!(pair.state(&task).await, "CANCELLED");
    }

    async fn a_cancelled_task_answers_nothing_more_and_is_cancelled_once(app: TestApp) {
        let pair = five(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let db = &pair.app.db;
        assert!(cancel(db, &task, "7", "no need").await.unwrap());
        assert!(!cancel(db, &task, "7", "again").await.unwrap());
        let settings = &pair.centre_settings;
        let asked = [Question { answer_uuid: uuid(1), expected_revision: None }];
        let answer = authority::ask(db, settings, &task, HALL, &asked).await;
        assert_eq!(answer.unwrap_err().refused(), Some(Code::TaskCancelled));
        pair.work().await;
        let row = "SELECT state, result_state FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, "DONE|CANCELLED");
    }

    async fn a_manifest_is_one_moment_of_the_set_while_writers_write(app: TestApp) {
        let pair = Pair::new(app).await;
        let row = |number| format!("('{}', 'form-1', 'school-1', 1, '{{}}')", uuid(number));
        let rows = (1..=1500).map(row).collect::<Vec<_>>().join(", ");
        let insert = "INSERT INTO answer (uuid, form_uuid, sch_id, revision, values_json) VALUES";
        pair.app.execute(&format!("{insert} {rows}")).await;
        // The set's first and last answer always change in one commit.
        let both = format!(
            "UPDATE answer SET revision = revision + 1 WHERE uuid IN ('{}', '{}')",
            uuid(1),
            uuid(1500)
        );
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (writer, told) = (pair.app.second_process().await, stop.clone());
        let writing = tokio::spawn(async move {
            let mut writes = 0;
            while !told.load(std::sync::atomic::Ordering::SeqCst) {
                writer.execute(&both).await;
                writes += 1;
            }
            writer.db.close().await;
            writes
        });
        for _ in 0..4 {
            let task = pair.task().await;
            let (db, settings) = (&pair.app.db, &pair.centre_settings);
            let made = manifest::materialise(db, settings, &task).await.unwrap();
            assert_eq!(made, manifest::Materialised::Complete);
            let ends = format!(
                "SELECT revision FROM answer_reconcile_manifest_row WHERE task_id = '{task}'
                 AND answer_uuid IN ('{}', '{}')",
                uuid(1),
                uuid(1500)
            );
            let ends = pair.app.lines(&ends).await;
            assert_eq!(ends[0], ends[1]);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(writing.await.unwrap() > 0);
    }

    async fn every_write_raises_the_revision_and_leaves_a_delivery(app: TestApp) {
        use counterfoil_reconcile::form_centre::answer::{AnswerWrite, write};
        let pair = five(app).await;
        let put = AnswerWrite {
            uuid: Some(uuid(1)),
            form: "form-1".into(),
            school: "school-1".into(),
            version: None,
            values: Some("{\"n\":1e2}".into()),
            expected: Some(1),
        };
        let written = write(&pair.app.db, &put, "test").await.unwrap();
        assert_eq!(written.revision, 2);
        let again = write(&pair.app.db, &put, "test").await.unwrap_err();
        assert_eq!(again.refused(), Some(Code::RevisionConflict));
        let big = AnswerWrite { expected: None, values: Some("[1,1e16]".into()), ..put.clone() };
        let refused = write(&pair.app.db, &big, "test").await.unwrap_err();
        assert_eq!(refused.refused(), Some(Code::AnswerUnhashable));
        assert!(refused.to_string().contains("/values/1"), "{refused}");
        let row = format!("SELECT revision, values_json FROM answer WHERE uuid = '{}'", uuid(1));
        assert_eq!(pair.app.value(&row).await, "2|{\"n\":100}");
        let deliveries = "SELECT COUNT(*) AS n FROM answer_delivery WHERE state = 'PENDING'";
        assert_eq!(pair.app.value(deliveries).await, "6");
    }
}
