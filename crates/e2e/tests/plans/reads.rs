//! What S03 and S04 read, row by row, whatever the planner's statistics know.
//!
//! S04 runs seconds after S03 has written the version's lines and locks: no analysis has seen
//! them. A plan made for one row that meets a whole version is as quick as any in a small test and
//! reads the square of its rows in production; the database's own counters of rows read tell.

use counterfoil_db::{Query, Read};
use counterfoil_e2e::{CREATOR, Dialect, Fixture, TestApp};
use counterfoil_payment::kinds::{LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_payment::session::open::open_revise;
use counterfoil_protocol::SessionId;

use super::data;

/// Lines of the smaller version; the larger has four times as many.
const FEW: i64 = 1_000;
/// Small, so that there are many batches to read too much in.
const BATCH: i64 = 50;
/// Rows read a line, in hundredths of those of the smaller version, at most.
const MOST_GROWTH: i64 = 150;

/// What has been analysed when S04 runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statistics {
    Never,
    /// While the first version's locks were RESERVED and no revision was there.
    Stale,
}

/// Rows read a line by each step, in hundredths.
async fn reads_a_line(app: &TestApp, statistics: Statistics, lines: i64) -> Vec<(String, i64)> {
    data::numbers(app, 2 * lines).await;
    for records in data::RECORDS {
        app.execute(records).await;
    }
    // One connection: the counters are its own.
    let counted = data::reopen(app, None, 1).await;
    let mut reads = Vec::new();
    let session = Fixture(app).new_session(&[]).await;
    add(app, session, 0, lines).await;
    let order = submit(app, session).await;
    reads.push(step(&counted, "S03 of a new order", SUBMIT_BUILD.handler, lines).await);
    if statistics == Statistics::Stale {
        data::analyse(app).await;
    }
    reads.push(step(&counted, "S04 of a new order", LOCK_ACTIVATE.handler, lines).await);
    let session = open_revise(&app.db, CREATOR, counterfoil_protocol::OrderId(order)).await;
    let session = session.expect("a revision");
    app.execute(&format!(
        "DELETE FROM selection_session_item WHERE session_id = {session} AND diff_id % 5 = 0;
         UPDATE selection_session_item SET line_type = 20, unqualified_reason = 'not seen'
         WHERE session_id = {session} AND diff_id % 5 = 1"
    ))
    .await;
    add(app, session, lines, lines / 4).await;
    submit(app, session).await;
    reads.push(step(&counted, "S03 of a revision", SUBMIT_BUILD.handler, lines).await);
    reads.push(step(&counted, "S04 of a revision", LOCK_ACTIVATE.handler, lines).await);
    counted.db.close().await;
    reads
}

async fn add(app: &TestApp, session: SessionId, after: i64, bills: i64) {
    app.execute(&format!(
        "INSERT INTO selection_session_item
           (session_id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id,
            pre_rent, pay_amount)
         SELECT {session}, station_id, bill_yearmonth, id, id, id, 10000, 10000
         FROM fi_monthly_income_difference
         WHERE id > {after} AND id <= {after} + {bills} ORDER BY id"
    ))
    .await;
}

/// The order.
async fn submit(app: &TestApp, session: SessionId) -> i64 {
    let fixture = Fixture(app);
    let submission = fixture.submit(session).await;
    fixture.batch_size(&submission, BATCH).await;
    submission.order.0
}

async fn step(counted: &TestApp, name: &str, handler: &str, lines: i64) -> (String, i64) {
    let before = rows_read(counted).await;
    let round = counted.round(handler).await;
    assert_eq!((round.succeeded, round.failed), (1, 0), "{name}: {round:?}");
    let read = rows_read(counted).await - before;
    (name.to_owned(), read * 100 / lines)
}

async fn rows_read(counted: &TestApp) -> i64 {
    match counted.db.dialect() {
        Dialect::MariaDb => {
            let query = Query::new(
                "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED) FROM information_schema.SESSION_STATUS
                 WHERE VARIABLE_NAME LIKE 'HANDLER_READ%'",
            );
            counted.db.count(query).await.expect("the counters")
        }
        Dialect::Postgres | Dialect::Sqlite => {
            let flush = Query::new("SELECT 1 AS flushed FROM pg_stat_force_next_flush()");
            counted.db.row(flush).await.expect("fresh counters");
            let query = Query::new(
                "SELECT CAST((SELECT SUM(seq_tup_read) FROM pg_stat_user_tables)
                   + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes) AS BIGINT)",
            );
            counted.db.count(query).await.expect("the counters")
        }
    }
}

async fn grows_with_its_rows(dialect: Dialect, statistics: Statistics) {
    let mut measured = Vec::new();
    for lines in [FEW, 4 * FEW] {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        counterfoil_e2e::run(dialect, async move |app: TestApp| {
            let reads = reads_a_line(&app, statistics, lines).await;
            sender.send(reads).await.expect("a listener");
        })
        .await;
        measured.push(receiver.recv().await.expect("the reads"));
    }
    let (few, many) = (&measured[0], &measured[1]);
    eprintln!("{dialect:?} {statistics:?} {few:?} {many:?}");
    for ((step, few), (_, many)) in few.iter().zip(many) {
        assert!(
            many * 100 <= few * MOST_GROWTH,
            "{step} reads {few}/100 rows a line of {FEW} lines and {many}/100 of four times as many"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_grow_with_the_rows_without_any_statistics_on_postgres() {
    grows_with_its_rows(Dialect::Postgres, Statistics::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_grow_with_the_rows_on_statistics_of_another_time_on_postgres() {
    grows_with_its_rows(Dialect::Postgres, Statistics::Stale).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_grow_with_the_rows_without_any_statistics_on_mariadb() {
    grows_with_its_rows(Dialect::MariaDb, Statistics::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_grow_with_the_rows_on_statistics_of_another_time_on_mariadb() {
    grows_with_its_rows(Dialect::MariaDb, Statistics::Stale).await;
}
