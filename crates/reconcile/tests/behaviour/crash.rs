//! A process of either side dies at any of its commits, on either side of it, and both sets agree
//! in the end all the same.

use counterfoil_db::{FaultAction, FaultPlan, Side};
use counterfoil_e2e::{TestApp, on_every_database};

use super::pair::{Pair, uuid};

/// Fifteen answers on both sides.
pub async fn fifteen(pair: Pair) -> Pair {
    let mut pair = pair;
    pair.hall_settings.backoff_base = chrono::TimeDelta::seconds(1);
    pair.hall_settings.progress_report_rounds = 2;
    for number in 1..=15 {
        pair.answer(number, Some("{\"n\":1}")).await;
    }
    pair.copy_all().await;
    pair
}

async fn differing(app: TestApp) -> Pair {
    fifteen(Pair::new(app).await.by_rows()).await
}

/// A difference of each repairable kind, and one row too many.
pub async fn break_it(pair: &Pair) {
    let before = format!("DELETE FROM fc_answer_projection WHERE answer_uuid = '{}'", uuid(77));
    pair.app.execute(&before).await;
    let gone = format!("DELETE FROM fc_answer_projection WHERE answer_uuid = '{}'", uuid(2));
    pair.app.execute(&gone).await;
    pair.answer(5, Some("{\"n\":2}")).await;
    pair.answer(9, None).await;
    let forged = format!(
        "UPDATE fc_answer_projection SET values_json = '{{}}' WHERE answer_uuid = '{}'",
        uuid(12)
    );
    pair.app.execute(&forged).await;
    let born = match pair.app.url().split(':').next() {
        Some("sqlite") => "2026-09-01T00:00:00+00:00",
        Some("mysql") => "2026-09-01 00:00:00",
        _ => "2026-09-01 00:00:00+00",
    };
    let extra = format!(
        "INSERT INTO fc_answer_projection (answer_uuid, sch_id, form_uuid, revision, content_hash,
           values_json, form_version, create_time)
         VALUES ('{}', 'school-1', 'form-1', 4, 'h', '{{}}', 1, '{born}')",
        uuid(77)
    );
    pair.app.execute(&extra).await;
}

/// Runs both sides until the task is over, as processes that are started again do.
pub async fn to_the_end(pair: &Pair, task: &str) -> String {
    for _ in 0..40 {
        // A crash ends a round; the next process begins one.
        let _ = pair.centre_engine().round("answerReconcileDispatchTask", "").await;
        let _ = pair.hall_engine().round("answerReconcileWorkTask", "").await;
        let state = pair.state(task).await;
        if ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"].contains(&state.as_str()) {
            return state;
        }
        pair.pass(901);
    }
    panic!("the task never ends: {}", pair.state(task).await);
}

/// Dies on either side of each commit that a run passes, and runs to the end each time.
pub async fn crash_everywhere(pair: Pair, expected: &[&str]) {
    break_it(&pair).await;
    let (centre, hall) = (pair.app.db.faults().clone(), pair.hall.faults().clone());
    centre.record();
    hall.record();
    let task = pair.task().await;
    assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
    let mut points: Vec<(bool, &'static str)> = Vec::new();
    let named = |point: &&str| !["centre.create", "answer.write", "test"].contains(point);
    points.extend(centre.passed().into_iter().filter(named).map(|point| (true, point)));
    points.extend(hall.passed().into_iter().map(|point| (false, point)));
    let names: Vec<_> = points.iter().map(|(_, point)| *point).collect();
    for point in expected {
        assert!(names.contains(point), "{point} is not among {names:?}");
    }
    let ranges = names.iter().filter(|name| **name == "work.ranges").count();
    points.sort_unstable();
    points.dedup();
    for (is_centre, point) in points {
        let passages = if point == "work.ranges" { ranges.max(1) } else { 1 };
        for (side, passage) in [Side::Before, Side::After]
            .into_iter()
            .flat_map(|s| (1..=passages).map(move |p| (s, p)))
        {
            let passage = u32::try_from(passage).unwrap();
            break_it(&pair).await;
            let task = pair.task().await;
            let faults = if is_centre { &centre } else { &hall };
            let point = point.to_owned();
            faults.arm(FaultPlan { point, side, passage, action: FaultAction::Crash });
            let state = to_the_end(&pair, &task).await;
            assert!(!faults.is_armed(), "{names:?}: {passage} was not passed");
            assert_eq!(state, "COMPLETED", "{side:?} {passage}");
            assert_eq!(pair.differing().await, [""; 0], "{side:?} {passage}");
        }
    }
}

on_every_database! {
    async fn a_crash_at_any_commit_of_either_side_ends_with_equal_sets(app: TestApp) {
        let expected = [
            "manifest.complete", "dispatch.claim", "dispatch.sent", "report.running",
            "report.final", "receive.new", "work.claim", "work.repair", "work.round",
            "work.retire", "work.extras", "work.result", "work.done",
        ];
        crash_everywhere(differing(app).await, &expected).await;
    }

    async fn an_undelivered_result_is_reported_again_without_another_scan(app: TestApp) {
        let pair = differing(app).await;
        let task = pair.task().await;
        pair.bend(|call, word| (call != "result").then_some(word));
        pair.dispatch().await;
        assert_eq!(pair.work().await.failed, 1);
        let row = "SELECT state, result_state, retry_count FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, "QUEUED|COMPLETED|1");
        let pages = pair.called("manifest");
        pair.straighten();
        pair.pass(2);
        pair.work().await;
        assert_eq!(pair.called("manifest"), pages);
        assert_eq!(pair.app.value(row).await, "DONE|COMPLETED|0");
        assert_eq!(pair.state(&task).await, "COMPLETED");
    }

    async fn a_page_that_is_cut_keeps_the_cursor_and_retires_nothing(app: TestApp) {
        let pair = differing(app).await;
        break_it(&pair).await;
        let task = pair.task().await;
        let cut = std::sync::atomic::AtomicU32::new(0);
        pair.bend(move |call, word| {
            let is_third = call == "manifest"
                && cut.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 2;
            (!is_third).then_some(word)
        });
        pair.dispatch().await;
        assert_eq!(pair.work().await.failed, 1);
        let row = "SELECT state, \"cursor\", retry_count FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, format!("QUEUED|{}|1", uuid(6)));
        assert_eq!(pair.app.lines(
            "SELECT id FROM fc_answer_projection WHERE deleted = 1").await, [""; 0]);
        pair.pass(2);
        pair.work().await;
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert!(pair.counts(&task).await.ends_with("resumed 1"), "{}", pair.counts(&task).await);
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn an_empty_page_that_is_not_the_end_stalls_and_reports_nothing(app: TestApp) {
        let pair = differing(app).await;
        let task = pair.task().await;
        pair.bend(|call, mut word| {
            if call == "manifest" {
                word["rows"] = serde_json::json!([]);
                word["completed"] = false.into();
            }
            Some(word)
        });
        pair.run().await;
        let row = "SELECT state, last_error_code FROM answer_reconcile_work";
        assert_eq!(pair.app.value(row).await, "STALLED|MANIFEST_STALLED");
        assert_eq!(pair.called("result"), 0);
        pair.straighten();
        assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
    }

    async fn an_overtaken_worker_writes_nothing(app: TestApp) {
        let pair = differing(app).await;
        break_it(&pair).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let other = pair.clone();
        pair.after("answers", move || {
            let other = other.clone();
            Box::pin(async move {
                if other.called("answers") == 1 {
                    other.app.execute(
                        "UPDATE answer_reconcile_work SET work_version = work_version + 1").await;
                }
            })
        });
        pair.work().await;
        assert_eq!(pair.called("result"), 0);
        assert_eq!(pair.differing().await.len(), 6, "{:?}", pair.differing().await);
        assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
        assert_eq!(pair.differing().await, [""; 0]);
    }
}
