//! S05 when the centre is in trouble: the failure lasts, and a later round puts it right.

use std::time::Duration;

use axum::http::StatusCode;
use counterfoil_remote::MAX_ANSWER_BYTES;

use crate::centre::{self, working};
use crate::database::TestDb;
use crate::everywhere;
use crate::house::{House, LONG, http, round};

everywhere! {
    a_centre_that_is_down_fails_the_task_and_the_failure_lasts;
    a_centre_that_never_answers_is_given_up_after_the_time_out;
    an_answer_that_was_lost_is_asked_for_again_and_finds_the_same_plan;
    an_answer_that_is_no_answer_is_unknown;
    a_round_behind_the_newest_plan_is_refused_with_the_centres_code;
    a_plan_nobody_could_decide_fails_visibly;
    a_version_without_managers_is_not_even_asked_for;
    a_version_whose_locks_are_not_in_line_fails_and_nothing_is_written;
    after_three_failures_the_order_stays_create_failed_until_a_person_reruns_it;
}

/// Short enough not to be felt, for a centre that never answers.
const SHORT: Duration = Duration::from_millis(200);

/// One failed round; answers the task's message.
async fn fail_once(house: &House, centre: &str, max_time: Duration) -> String {
    let db = house.process(1).await;
    let summary = round(&db, http(centre, max_time)).await.unwrap();
    assert_eq!((summary.failed, summary.succeeded), (1, 0), "{summary:?}");
    assert_eq!(house.audit_plan_status().await, "CREATE_FAILED CREATE_FAILED");
    assert_eq!(house.instances().await, "");
    let task = house.task().await;
    task.strip_prefix("3|1|").unwrap_or_else(|| panic!("{task}")).to_owned()
}

/// The next automatic round, with a working centre, ends as if nothing had happened.
async fn recover(house: &House) {
    let due_again = 12;
    let summary = house.round(due_again, &working(&house.db).await).await;
    assert_eq!(summary.succeeded, 1, "{summary:?}");
    house.assert_created_once().await;
}

async fn a_centre_that_is_down_fails_the_task_and_the_failure_lasts(test: TestDb) {
    let house = House::build(test).await;
    let message = fail_once(&house, &centre::down().await, LONG).await;
    assert!(message.contains("no connection, nothing was sent"), "{message}");
    recover(&house).await;
}

async fn a_centre_that_never_answers_is_given_up_after_the_time_out(test: TestDb) {
    let house = House::build(test).await;
    let message = fail_once(&house, &centre::slow().await, SHORT).await;
    assert!(message.contains("no answer within 200 ms"), "{message}");
    recover(&house).await;
}

async fn an_answer_that_was_lost_is_asked_for_again_and_finds_the_same_plan(test: TestDb) {
    let house = House::build(test).await;
    let (centre, done) = centre::mute(&house.db).await;
    let message = fail_once(&house, &centre, SHORT).await;
    assert!(message.contains("no verdict"), "{message}");
    done.notified().await;
    assert_eq!(house.plans().await, "DOING", "the centre did its work");
    recover(&house).await;
}

async fn an_answer_that_is_no_answer_is_unknown(test: TestDb) {
    let house = House::build(test).await;
    let ok = StatusCode::OK;
    let long = format!(r#"{{"planId":7,"more":"{}"}}"#, "x".repeat(MAX_ANSWER_BYTES));
    let table = [
        (centre::answering(ok, "<html>Welcome</html>".into()).await, "without a planId"),
        (centre::answering(ok, r#"{"planId":"seven"}"#.into()).await, "without a planId"),
        (centre::answering(ok, String::new()).await, "without a planId"),
        (centre::answering(ok, long).await, "longer than"),
        (
            centre::answering(StatusCode::BAD_GATEWAY, r#"{"planId":7}"#.into()).await,
            "it answered 502",
        ),
        (centre::answering(StatusCode::FOUND, String::new()).await, "it answered 302"),
        (centre::hanging_up().await, "the request may have arrived"),
    ];
    for (centre, expected) in table {
        let message = fail_once(&house, &centre, LONG).await;
        let verdict = "the review centre gave no verdict";
        assert!(message.contains(verdict) && message.contains(expected), "{message}");
        let again = "UPDATE fi_async_task
                     SET task_status = 0, retry_count = 0, next_execute_time = NULL";
        house.by_hand(again).await;
    }
    recover(&house).await;
}

async fn a_round_behind_the_newest_plan_is_refused_with_the_centres_code(test: TestDb) {
    let house = House::build(test).await;
    let newer = "INSERT INTO review_business_plan
                   (from_id, from_num, type, epctenantid, status, submit_round, data_version)
                 VALUES (2, 'X', 'RESIDENT_INCOME_PAYMENT_REVIEW', 'T1', 'PASSED', 2, 2)";
    house.by_hand(newer).await;
    let message = fail_once(&house, &working(&house.db).await, LONG).await;
    assert!(message.contains("refused (review-round-stale)"), "{message}");
    assert_eq!(house.plans().await, "PASSED");
}

async fn a_plan_nobody_could_decide_fails_visibly(test: TestDb) {
    let house = House::build(test).await;
    // The submitter is the only manager B.
    house.by_hand("UPDATE sys_partner SET manager_b_user_id = 7").await;
    let message = fail_once(&house, &working(&house.db).await, LONG).await;
    assert!(message.contains("refused (review-nobody-left)"), "{message}");
    assert_eq!(house.plans().await, "");
    house.by_hand("UPDATE sys_partner SET manager_b_user_id = 21").await;
    recover(&house).await;
}

async fn a_version_without_managers_is_not_even_asked_for(test: TestDb) {
    let house = House::build(test).await;
    house.by_hand("UPDATE sys_partner SET manager_a_user_id = NULL").await;
    let (centre, asked) = centre::counting(&house.db).await;
    let message = fail_once(&house, &centre, LONG).await;
    assert!(message.contains("names an operations manager A"), "{message}");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 0);
}

async fn a_version_whose_locks_are_not_in_line_fails_and_nothing_is_written(test: TestDb) {
    let house = House::build(test).await;
    house.by_hand("UPDATE selection_session SET status = 'PUBLISHED_LOCK_SYNCING'").await;
    let (centre, asked) = centre::counting(&house.db).await;
    let summary = house.round(1, &centre).await;
    assert_eq!(summary.failed, 1, "{summary:?}");
    assert_eq!(house.audit_plan_status().await, "- -");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 0);
    house.by_hand("UPDATE selection_session SET status = 'COMPLETED'").await;
    recover(&house).await;
}

async fn after_three_failures_the_order_stays_create_failed_until_a_person_reruns_it(test: TestDb) {
    let house = House::build(test).await;
    let down = centre::down().await;
    for minutes in [1, 20, 60, 1000] {
        house.round(minutes, &down).await;
    }
    assert!(house.task().await.starts_with("3|3|"), "{}", house.task().await);
    assert_eq!(house.audit_plan_status().await, "CREATE_FAILED CREATE_FAILED");
    let db = house.process(1001).await;
    let centre = http(&working(&house.db).await, LONG);
    let engine = counterfoil_task::Engine::new(db, counterfoil_task::EngineSettings::default())
        .with(counterfoil_payment::audit_plan::AuditPlan::new(centre));
    let handler = counterfoil_payment::kinds::AUDIT_PLAN_CREATE.handler;
    let rerun = engine.round(handler, r#"{"businessKey":"AUDIT_PLAN_CREATE:1"}"#).await.unwrap();
    assert_eq!(rerun.succeeded, 1, "{rerun:?}");
    house.assert_created_once().await;
}
