//! Accept or reuse (task-engine.md, "Accept or reuse"): a task row comes to be in its caller's
//! transaction or not at all, and a second acceptance never changes it.

use counterfoil_db::{Db, Tx, sql};
use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_protocol::TaskCode;
use counterfoil_task::{Acceptance, Kicker, Seed, Subject, TaskError, TaskStatus, accept_or_reuse};
use tokio::sync::oneshot;

use super::errand::{Desk, code, seed, until_somebody_waits};

const TRACE: &str = "SELECT action, source_task_code, result
    FROM fi_resident_income_payment_async_operation_log ORDER BY id";

async fn begin(db: &Db) -> Tx {
    db.begin().await.expect("a transaction")
}

async fn accept(tx: &mut Tx, seed: &Seed) -> Acceptance {
    accept_or_reuse(tx, seed, &Kicker::none())
        .await
        .expect("an acceptance")
}

async fn commit(tx: Tx) {
    tx.commit("test").await.expect("a commit");
}

fn from(source: &str) -> Seed {
    Seed {
        source: Some(TaskCode::stored(source)),
        ..seed(1)
    }
}

/// The second acceptor, on connections of its own: answers what it found once it has committed.
async fn second(app: TestApp, ready: oneshot::Sender<()>) -> Acceptance {
    let other = app.second_process().await;
    ready.send(()).expect("a listener");
    let attempt = || async {
        let mut tx = other.db.begin().await?;
        let accepted = accept_or_reuse(&mut tx, &seed(1), &Kicker::none()).await?;
        tx.commit("test.second").await?;
        Ok::<_, TaskError>(accepted)
    };
    let accepted = counterfoil_db::transact!(attempt());
    other.db.close().await;
    accepted.expect("an acceptance")
}

/// The first holds its uncommitted row until the second waits for it.
async fn race(app: &TestApp, first_commits: bool) -> Acceptance {
    let mut first = begin(&app.db).await;
    assert_eq!(accept(&mut first, &seed(1)).await, Acceptance::New);
    let (ready, is_ready) = oneshot::channel();
    let second = tokio::spawn(second(app.clone(), ready));
    is_ready.await.expect("the second");
    until_somebody_waits(app).await;
    if first_commits {
        commit(first).await;
    } else {
        first.rollback().await.expect("a rollback");
    }
    second.await.expect("the second")
}

on_every_database! {
    async fn a_new_task_is_pending_due_at_once_and_traced(app: TestApp) {
        let desk = Desk::open(&app).await;
        let mut tx = begin(&app.db).await;
        let subject = Subject::none().with("payment_order_id", 77_i64);
        let new = Seed { subject, ..from("ORIGIN") };
        assert_eq!(accept(&mut tx, &new).await, Acceptance::New);
        commit(tx).await;
        let columns = "SELECT task_code, task_type, business_key, task_data, task_status,
            retry_count, max_retry_count, running_attempt, error_message, deleted
            FROM fi_async_task";
        let expected = format!("{}|ERRAND|ERRAND:1|{}|0|0|3|0|NULL|0", code(1), seed(1).data);
        assert_eq!(app.value(columns).await, expected);
        assert_eq!(desk.due_in(1).await, Some(0));
        assert_eq!(app.lines(TRACE).await, ["ACCEPT|ORIGIN|PENDING"]);
        let about = "SELECT task_code, task_type, business_key, payment_order_id
            FROM fi_resident_income_payment_async_operation_log";
        assert_eq!(app.value(about).await, format!("{}|ERRAND|ERRAND:1|77", code(1)));
    }

    async fn reuse_changes_no_column_in_any_status_and_is_traced_once_a_source(app: TestApp) {
        let desk = Desk::open(&app).await;
        for status in TaskStatus::ALL {
            for (retries, most, exhausted) in
                [("0", "3", false), ("3", "3", true), ("2", "NULL", false), ("0", "0", true)]
            {
                let columns = "task_status, retry_count, max_retry_count, next_execute_time,
                    running_attempt, error_message";
                let due = desk.minutes(90);
                let values = format!("{}, {retries}, {most}, {due}, 9, 'old'", status.code());
                desk.by_hand(1, columns, &values).await;
                let before = desk.row(1).await;
                app.pass_minutes(30);
                for _ in 0..2 {
                    let mut tx = begin(&app.db).await;
                    for source in ["FIRST", "OTHER", "FIRST"] {
                        let found = accept(&mut tx, &from(source)).await;
                        assert_eq!(found, Acceptance::Reused { status, exhausted });
                    }
                    commit(tx).await;
                }
                assert_eq!(desk.row(1).await, before, "{status}");
                let expected = ["FIRST", "OTHER"].map(|by| format!("REUSE|{by}|{status}"));
                assert_eq!(app.lines(TRACE).await, expected, "{status}");
                desk.raw("DELETE FROM fi_async_task").await;
                desk.raw("DELETE FROM fi_resident_income_payment_async_operation_log").await;
            }
        }
    }

    async fn a_code_that_is_another_task_fails_the_whole_transaction(app: TestApp) {
        let desk = Desk::open(&app).await;
        for (task_type, key) in [("OTHER", "ERRAND:1"), ("ERRAND", "ERRAND:2"),
            ("ERRAND", "errand:1"), ("ERRAND", "ERRAND:1 ")] {
            desk.raw(&format!("INSERT INTO fi_async_task
                (id, task_code, task_type, business_key)
                VALUES (1, '{}', '{task_type}', '{key}')", code(1))).await;
            let before = app.value("SELECT * FROM fi_async_task").await;
            let mut tx = begin(&app.db).await;
            let business = sql!("INSERT INTO errand_log (errand_id) VALUES (1)");
            tx.execute(business).await.expect("a business row");
            let refused = accept_or_reuse(&mut tx, &from("FIRST"), &Kicker::none()).await;
            assert!(matches!(refused, Err(TaskError::Identity { .. })), "{refused:?}");
            drop(tx);
            assert_eq!(desk.logged("errand_id = 1").await, 0, "{task_type} {key}");
            assert_eq!(app.value("SELECT * FROM fi_async_task").await, before);
            assert_eq!(app.lines(TRACE).await, [""; 0]);
            desk.raw("DELETE FROM fi_async_task").await;
        }
    }

    async fn a_task_accepted_in_a_transaction_that_fails_was_never_accepted(app: TestApp) {
        let mut tx = begin(&app.db).await;
        accept(&mut tx, &from("FIRST")).await;
        tx.rollback().await.expect("a rollback");
        assert_eq!(app.value("SELECT COUNT(*) FROM fi_async_task").await, "0");
        assert_eq!(app.lines(TRACE).await, [""; 0]);
    }

    async fn of_two_acceptors_at_once_the_second_reuses_what_the_first_commits(app: TestApp) {
        let found = race(&app, true).await;
        let reused = Acceptance::Reused { status: TaskStatus::Pending, exhausted: false };
        assert_eq!(found, reused);
        assert_eq!(app.value("SELECT COUNT(*) FROM fi_async_task").await, "1");
    }

    async fn of_two_acceptors_at_once_the_second_inserts_what_the_first_rolls_back(app: TestApp) {
        assert_eq!(race(&app, false).await, Acceptance::New);
        assert_eq!(app.value("SELECT task_status FROM fi_async_task").await, "0");
        assert_eq!(app.lines(TRACE).await, ["ACCEPT|NULL|PENDING"]);
    }

    async fn eight_acceptors_at_once_make_one_task(app: TestApp) {
        let acceptors = (0..8).map(|_| {
            let db = app.db.clone();
            tokio::spawn(async move {
                let attempt = || async {
                    let mut tx = db.begin().await?;
                    let found = accept_or_reuse(&mut tx, &seed(1), &Kicker::none()).await?;
                    tx.commit("test.acceptor").await?;
                    Ok::<_, TaskError>(found)
                };
                counterfoil_db::transact!(attempt()).expect("an acceptance")
            })
        });
        let mut new = 0;
        for acceptor in acceptors.collect::<Vec<_>>() {
            new += usize::from(acceptor.await.expect("an acceptor") == Acceptance::New);
        }
        assert_eq!(new, 1);
        assert_eq!(app.value("SELECT COUNT(*) FROM fi_async_task").await, "1");
    }
}
