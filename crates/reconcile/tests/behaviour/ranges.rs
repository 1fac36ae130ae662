//! Range digests: what the centre says of a range, and what the hall makes of it.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_protocol::range::{RangeDigest, empty_digest, spelt};
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::form_centre::grant::{self, Rights};
use counterfoil_reconcile::form_centre::{authorise, digest};
use counterfoil_reconcile::refusal::Code;
use counterfoil_reconcile::wire::{AskedRange, KeySpan};

use super::crash::{break_it, crash_everywhere, fifteen, to_the_end};
use super::pair::{HALL, Pair, at, uuid};
use super::retire::{extra, live};

const WORK: &str = "SELECT state, last_error_code FROM answer_reconcile_work";

/// Fifteen answers on both sides, in ranges so small that they take many.
async fn narrowing(app: TestApp) -> Pair {
    fifteen(Pair::new(app).await.by_ranges()).await
}

fn whole(parts: u32) -> Vec<AskedRange> {
    vec![AskedRange { from: spelt(0), to: spelt(u128::MAX), parts }]
}

async fn refused(pair: &Pair, task: &str, ranges: &[AskedRange]) -> (Option<Code>, String) {
    match digest::digests(&pair.app.db, task, HALL, ranges).await {
        Ok(said) => panic!("{said:?}"),
        Err(refusal) => (refusal.refused(), refusal.to_string()),
    }
}

/// Bends one kind of answer from its `nth` on.
fn bend_from(
    pair: &Pair,
    kind: &'static str,
    nth: usize,
    bend: impl Fn(&mut serde_json::Value) + Send + Sync + 'static,
) {
    let seen = std::sync::atomic::AtomicUsize::new(0);
    pair.bend(move |call, mut word| {
        let is_due =
            call == kind && seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 >= nth;
        if is_due {
            bend(&mut word);
        }
        Some(word)
    });
}

on_every_database! {
    async fn the_digests_of_all_parts_are_those_of_the_manifests_rows(app: TestApp) {
        let pair = narrowing(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let manifest = format!(
            "SELECT answer_uuid, revision, content_hash, is_deleted
             FROM answer_reconcile_manifest_row WHERE task_id = '{task}' ORDER BY answer_uuid"
        );
        let mut whole_digest = RangeDigest::new(&task);
        for line in pair.app.lines(&manifest).await {
            let cells: Vec<&str> = line.split('|').collect();
            whole_digest.row(cells[0], cells[1].parse().unwrap(), cells[2], cells[3] == "1");
        }
        let said = digest::digests(&pair.app.db, &task, HALL, &whole(1)).await.unwrap();
        assert_eq!((said.task_id.as_str(), said.total_rows), (task.as_str(), 15));
        assert_eq!(said.ranges[0].count, 15);
        assert_eq!(said.ranges[0].digest, whole_digest.finish());
        // Parts of ranges with a gap between them, the greatest key among them.
        let ranges = [
            AskedRange { from: spelt(0), to: spelt(4), parts: 2 },
            AskedRange { from: spelt(4), to: spelt(6), parts: 1 },
            AskedRange { from: spelt(10), to: spelt(u128::MAX), parts: 3 },
        ];
        let said = digest::digests(&pair.app.db, &task, HALL, &ranges).await.unwrap();
        let counts: Vec<i64> = said.ranges.iter().map(|range| range.count).collect();
        assert_eq!(counts, [1, 2, 2, 6, 0, 0]);
        assert_eq!(said.ranges[5].digest, empty_digest(&task));
        assert_eq!(said.ranges[5].to, spelt(u128::MAX));
        assert!(said.ranges.windows(2).all(|two| two[0].to <= two[1].from));
        let spans =
            [KeySpan { from: spelt(2), to: spelt(4) }, KeySpan { from: spelt(15), to: spelt(99) }];
        let rows = digest::rows(&pair.app.db, &task, HALL, &spans).await.unwrap().rows;
        let uuids: Vec<_> = rows.into_iter().map(|row| row.answer_uuid).collect();
        assert_eq!(uuids, [uuid(2), uuid(3), uuid(15)]);
    }

    async fn a_range_that_is_none_is_refused_by_its_field_and_changes_nothing(app: TestApp) {
        let pair = narrowing(app).await;
        let task = pair.task().await;
        pair.dispatch().await;
        let before = pair.app.lines("SELECT * FROM answer_reconcile_task").await;
        let [mut from, mut to, mut parts] = [whole(1), whole(1), whole(257)];
        from[0].from = "x".into();
        to[0].to = spelt(0);
        let twice = [whole(1), whole(1)].concat();
        for (ranges, field) in [
            (&mut from, "ranges[0].from"),
            (&mut to, "ranges[0].to"),
            (&mut parts, "ranges[0].parts"),
            (&mut Vec::new(), "ranges"),
            (&mut twice.clone(), "ranges[1].from"),
        ] {
            let (code, text) = refused(&pair, &task, ranges).await;
            assert_eq!(code, Some(Code::RangeInvalid));
            assert!(text.starts_with(&format!("RANGE_INVALID: {field}:")), "{text}");
        }
        assert_eq!(pair.app.lines("SELECT * FROM answer_reconcile_task").await, before);
    }

    async fn digests_and_rows_have_the_guards_of_the_manifest(app: TestApp) {
        let pair = narrowing(app).await;
        let task = pair.task().await;
        let code = |outcome: Result<(), Refusal>| outcome.unwrap_err().refused().unwrap().as_str();
        let span = [KeySpan { from: spelt(0), to: spelt(u128::MAX) }];
        let ask = async |task: &str, app: &str| {
            let db = &pair.app.db;
            let digests = digest::digests(db, task, app, &whole(1)).await.map(|_| ());
            let rows = digest::rows(db, task, app, &span).await.map(|_| ());
            (code(digests), code(rows))
        };
        assert_eq!(ask(&task, HALL).await, ("MANIFEST_INCOMPLETE", "MANIFEST_INCOMPLETE"));
        pair.dispatch().await;
        assert_eq!(ask("none", HALL).await, ("TASK_NOT_FOUND", "TASK_NOT_FOUND"));
        assert_eq!(ask(&task, "other").await, ("IDENTITY_MISMATCH", "IDENTITY_MISMATCH"));
        grant::set(&pair.app.db, &at(None), Rights::NONE).await.unwrap();
        assert_eq!(ask(&task, HALL).await.1, "TASK_CANCELLED");
        assert_eq!(pair.state(&task).await, "CANCELLED");
        let word = authorise::authorise(&pair.app.db, &task, HALL).await.unwrap_err();
        assert_eq!(word.refused(), Some(Code::TaskCancelled));
    }

    async fn equal_sets_cost_one_call_of_a_few_hundred_bytes(app: TestApp) {
        let pair = narrowing(app).await;
        let mut wide = pair.clone();
        wide.hall_settings.narrowing = counterfoil_reconcile::service_hall::Narrowing::default();
        let task = wide.task().await;
        wide.dispatch().await;
        wide.line.bytes.store(0, std::sync::atomic::Ordering::SeqCst);
        wide.work().await;
        assert_eq!(wide.counts(&task).await, "scanned 15, equal 15");
        assert_eq!(wide.state(&task).await, "COMPLETED");
        let calls = wide.line.calls.lock().unwrap().clone();
        assert_eq!(calls, ["digests", "result"]);
        let row = "SELECT state, \"cursor\", manifest_completed, local_completed
                   FROM answer_reconcile_work";
        assert_eq!(wide.app.value(row).await, format!("DONE|{}|1|1", spelt(u128::MAX)));
    }

    async fn only_ranges_that_differ_are_read_and_the_findings_are_the_same(app: TestApp) {
        let pair = narrowing(app).await;
        break_it(&pair).await;
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(
            pair.counts(&task).await,
            "scanned 16, equal 11, missing 1, stale 1, hashConflict 1, tombstone 1, extra 1, \
             repaired 4, retired 1"
        );
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(pair.differing().await, [""; 0]);
        assert_eq!(pair.called("manifest"), 0);
        assert!(pair.called("rows") > 0 && pair.called("digests") > 2);
    }

    async fn a_set_that_differs_everywhere_is_walked_not_split(app: TestApp) {
        let pair = narrowing(app).await;
        for number in 1..=15 {
            pair.answer(number, Some("{\"n\":\"newer\"}")).await;
        }
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 15, stale 15, repaired 15");
        assert_eq!(pair.differing().await, [""; 0]);
        // And a set that is not there at all costs one digest.
        pair.app.execute("DELETE FROM fc_answer_projection").await;
        pair.line.calls.lock().unwrap().clear();
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.counts(&task).await, "scanned 15, missing 15, repaired 15");
        assert_eq!((pair.called("digests"), pair.called("rows")), (1, 1));
    }

    async fn a_centre_without_digests_is_read_row_by_row(app: TestApp) {
        let pair = narrowing(app).await;
        break_it(&pair).await;
        let task = pair.task().await;
        pair.bend(|call, word| (!["digests", "rows"].contains(&call)).then_some(word));
        pair.run().await;
        assert_eq!(pair.state(&task).await, "COMPLETED");
        assert_eq!(pair.called("digests"), 1);
        assert!(pair.called("manifest") > 3);
        assert_eq!(pair.differing().await, [""; 0]);
    }

    async fn digests_that_are_cut_keep_the_cursor_and_are_asked_for_again(app: TestApp) {
        let mut pair = narrowing(app).await;
        pair.hall_settings.narrowing.stretch_rows = 4;
        break_it(&pair).await;
        let task = pair.task().await;
        let seen = std::sync::atomic::AtomicUsize::new(0);
        pair.bend(move |call, word| {
            let is_third = call == "digests"
                && seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 3;
            (!is_third).then_some(word)
        });
        pair.dispatch().await;
        assert_eq!(pair.work().await.failed, 1);
        let row = "SELECT state, last_error_code FROM answer_reconcile_work
                   WHERE \"cursor\" IS NOT NULL";
        assert_eq!(pair.app.value(row).await, "QUEUED|CENTRE_UNREACHABLE");
        let retired = "SELECT COUNT(*) AS n FROM fc_answer_projection WHERE deleted = 1";
        assert_eq!(pair.app.value(retired).await, "0");
        assert_eq!(to_the_end(&pair, &task).await, "COMPLETED");
        assert!(pair.counts(&task).await.ends_with("retired 1, resumed 1"));
        assert_eq!(pair.differing().await, [""; 0]);
        assert_eq!(pair.called("manifest"), 0);
    }

    async fn a_digest_or_row_that_was_tampered_with_is_refused_and_retires_nothing(app: TestApp) {
        let pair = narrowing(app).await;
        type Tamper = fn(&mut serde_json::Value);
        let tampers: [(&str, &'static str, usize, Tamper); 11] = [
            ("a greater count", "digests", 1, |word| word["ranges"][0]["count"] = 99.into()),
            ("a count below", "digests", 2, |word| word["ranges"][0]["count"] = 0.into()),
            ("a negative count", "digests", 1, |word| word["ranges"][0]["count"] = (-1).into()),
            ("another range", "digests", 1, |word| word["ranges"][0]["to"] = spelt(3).into()),
            ("a range less", "digests", 1, |word| {
                word["ranges"].as_array_mut().unwrap().pop();
            }),
            ("another task", "digests", 1, |word| word["taskId"] = "x".into()),
            ("another total", "digests", 2, |word| word["totalRows"] = 14.into()),
            ("a row less", "rows", 1, |word| {
                word["rows"].as_array_mut().unwrap().pop();
            }),
            ("another row", "rows", 1, |word| word["rows"][0]["revision"] = 77.into()),
            ("another form", "rows", 1, |word| word["rows"][0]["formUuid"] = "x".into()),
            ("rows of another task", "rows", 1, |word| word["taskId"] = "x".into()),
        ];
        for (what, kind, nth, tamper) in tampers {
            break_it(&pair).await;
            let task = pair.task().await;
            bend_from(&pair, kind, nth, tamper);
            pair.run().await;
            assert_eq!(pair.app.value(WORK).await, "STALLED|DIGESTS_WRONG", "{what}");
            let retired = "SELECT COUNT(*) AS n FROM fc_answer_projection WHERE deleted = 1";
            assert_eq!(pair.app.value(retired).await, "0", "{what}");
            assert_eq!(pair.called("result"), 0, "{what}");
            pair.straighten();
            assert_eq!(to_the_end(&pair, &task).await, "COMPLETED", "{what}");
            assert_eq!(pair.differing().await, [""; 0], "{what}");
            pair.app.execute("DELETE FROM answer_reconcile_work").await;
            pair.line.calls.lock().unwrap().clear();
        }
    }

    async fn counts_that_do_not_add_up_to_the_whole_retire_nothing(app: TestApp) {
        let pair = narrowing(app).await;
        extra(&pair, 77, "'2026-09-07 00:00:00'").await;
        let task = pair.task().await;
        // From the first word on the manifest is said to be larger than it is.
        bend_from(&pair, "digests", 1, |word| word["totalRows"] = 99.into());
        let rows = pair.clone();
        pair.after("digests", move || {
            let pair = rows.clone();
            Box::pin(async move { bend_both(&pair) })
        });
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        assert_eq!(pair.errors(&task).await, ["COUNTS_DIFFER", "EXTRA_ROW"]);
        assert_eq!(pair.counts(&task).await, "scanned 16, equal 15, extra 1, reported 1");
        assert_eq!(live(&pair).await, "16");
    }

    async fn keys_that_are_none_are_compared_row_by_row(app: TestApp) {
        let pair = narrowing(app).await;
        let strange = format!(
            "UPDATE fc_answer_projection SET answer_uuid = 'zz' WHERE answer_uuid = '{}'",
            uuid(3)
        );
        pair.app.execute(&strange).await;
        let task = pair.task().await;
        pair.run().await;
        let counts = pair.counts(&task).await;
        let expected = "scanned 16, equal 14, missing 1, extra 1, repaired 1, reported 1";
        assert_eq!(counts, expected);
        assert_eq!(pair.errors(&task).await, ["EXTRA_ROW"]);
        assert!(pair.called("manifest") > 0);
    }

    async fn a_crash_at_any_commit_with_digests_ends_with_equal_sets(app: TestApp) {
        let expected = [
            "manifest.complete", "dispatch.claim", "dispatch.sent", "report.running",
            "report.final", "receive.new", "work.claim", "work.repair", "work.ranges",
            "work.retire", "work.extras", "work.result", "work.done",
        ];
        let mut pair = narrowing(app).await;
        pair.hall_settings.progress_report_rounds = 1;
        crash_everywhere(pair, &expected).await;
    }

    async fn writers_at_both_sides_lose_nothing_newer_and_nothing_new(app: TestApp) {
        let pair = narrowing(app).await;
        break_it(&pair).await;
        let writer = pair.clone();
        pair.after("digests", move || {
            let pair = writer.clone();
            Box::pin(async move {
                let turn = u32::try_from(pair.called("digests")).unwrap();
                // The centre goes on; the hall gets rows and revisions that the manifest has not.
                pair.answer(1 + turn % 15, Some(&format!("{{\"n\":{}}}", 100 + turn))).await;
                let ahead = format!(
                    "UPDATE fc_answer_projection
                     SET revision = 50, projection_version = projection_version + 1
                     WHERE answer_uuid = '{}'",
                    uuid(1 + (turn * 7) % 15)
                );
                pair.app.execute(&ahead).await;
                extra(&pair, 200 + turn, "'2026-09-30 00:00:00'").await;
            })
        });
        let task = pair.task().await;
        pair.run().await;
        assert_eq!(pair.state(&task).await, "PARTIAL");
        let turns = pair.called("digests");
        let newer = "SELECT COUNT(*) AS n FROM fc_answer_projection WHERE revision = 50";
        let ahead: std::collections::BTreeSet<_> =
            (1..=turns).map(|turn| 1 + (turn * 7) % 15).collect();
        // Every key that was put ahead still is: its row was not there, or nothing overwrote it.
        let there: usize = pair.app.value(newer).await.parse().unwrap();
        let missing = ahead.contains(&2) as usize;
        assert!(there >= ahead.len() - missing, "{there} of {}", ahead.len());
        let new = format!(
            "SELECT COUNT(*) AS n FROM fc_answer_projection
             WHERE deleted = 0 AND answer_uuid > '{}'",
            uuid(200)
        );
        assert_eq!(pair.app.value(&new).await, turns.to_string());
    }
}

/// Digests and rows both say the larger total.
fn bend_both(pair: &Pair) {
    pair.bend(|call, mut word| {
        if ["digests", "rows"].contains(&call) {
            word["totalRows"] = 99.into();
        }
        Some(word)
    });
}
